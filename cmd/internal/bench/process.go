package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// readyWithin bounds the start of a process; a broker makes a database first, and
// that of idle homes registers them.
const readyWithin = 5 * time.Minute

// process is a running part of the bench.
type process struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // what it prints
	log   *tail
	ended chan struct{}
	err   error // after ended
}

// tail keeps the end of a log.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.b = append(t.b, p...); len(t.b) > 8<<10 {
		t.b = bytes.Clone(t.b[len(t.b)-4<<10:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// start runs a program with more environment than ours.
func start(name, program string, env []string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(program, args...), lines: make(chan string, 64), log: &tail{}, ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), env...), p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { // ends with the process; stop waits for it
		defer close(p.ended)
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			select {
			case p.lines <- scan.Text():
			default: // nobody asked
			}
		}
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// self starts this program in a role.
func self(role string, args ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(role, program, nil, append([]string{role}, args...)...)
}

// line is the next line the process prints.
func (p *process) line(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	select {
	case l := <-p.lines:
		return l, nil
	case <-p.ended:
		return "", p.failure()
	case <-ctx.Done():
		return "", fmt.Errorf("%s says nothing: %w\n%s", p.name, ctx.Err(), p.log)
	}
}

// ask sends a command and decodes the line that answers it.
func (p *process) ask(ctx context.Context, command string, into any) error {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return errors.Join(fmt.Errorf("tell %s: %w", p.name, err), p.failure())
	}
	l, err := p.line(ctx)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(l), into); err != nil {
		return fmt.Errorf("%s answers %q to %s: %w", p.name, l, command, err)
	}
	return nil
}

func (p *process) failure() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %w\n%s", p.name, errors.Join(p.err, errors.New("it should not have")), p.log)
	default:
		return nil
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop ends the process, by force if it takes long.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// once runs a command to its end and returns what it prints.
func once(ctx context.Context, program string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, &complaint)
	}
	return out, nil
}

// cpu is the run time of all threads of a process so far; ok is false where the
// system does not tell.
func cpu(pid int) (spent time.Duration, ok bool) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is well formed
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		if fields := strings.Fields(string(b)); len(fields) > 0 {
			n, _ := strconv.ParseInt(fields[0], 10, 64)
			spent += time.Duration(n)
			ok = true
		}
	}
	return spent, ok
}

// freeAddress is an address to listen on, below the ports that the system gives
// to whoever asks for any.
func freeAddress() string {
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(18000)))
		if err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
