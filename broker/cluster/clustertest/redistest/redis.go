//go:build unix

// Package redistest starts real Redis servers for tests: on a Unix socket in a
// folder of their own, keeping nothing on disk. A test may freeze, kill and
// restart its own. It needs redis-server in the PATH, or its path in
// TEST_REDIS_SERVER.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const patience = 30 * time.Second

// Server is one Redis server.
type Server struct {
	URL    string // unix://…
	folder string
	socket string
	cmd    *exec.Cmd
}

var shared struct {
	sync.Mutex
	server *Server
	inMain bool
}

// Main runs the tests and ends the shared server. Call it from TestMain.
func Main(run func() int) int {
	shared.Lock()
	shared.inMain = true
	shared.Unlock()
	code := run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.close()
	}
	return code
}

// Shared is the server of this test binary, started on first use. Tests share
// it, each under its own prefix, and leave it running.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.inMain {
		t.Fatal("redistest: the package needs a TestMain that calls redistest.Main, or its server would stay")
	}
	if shared.server == nil {
		s, err := open()
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		shared.server = s
	}
	return shared.server
}

// New starts a server that the test may freeze and kill; it ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := open()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(s.close)
	return s
}

func open() (*Server, error) {
	folder, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, err
	}
	s := &Server{folder: folder, socket: filepath.Join(folder, "redis.sock")}
	s.URL = "unix://" + s.socket
	if err := s.start(); err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	return s, nil
}

func (s *Server) start() error {
	program := os.Getenv("TEST_REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	_ = os.Remove(s.socket) // a killed server leaves it
	s.cmd = exec.Command(program, "--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no",
		"--dir", s.folder, "--logfile", filepath.Join(s.folder, "log"))
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server (install it, or set TEST_REDIS_SERVER): %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := s.ping(); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.folder, "log"))
			s.Kill()
			return fmt.Errorf("redis-server does not answer: %s", log)
		}
	}
}

func (s *Server) ping() error {
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "+PONG") {
		err = errors.New(line)
	}
	return err
}

// Freeze stops the process: connections stay open and nothing answers.
func (s *Server) Freeze() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets it go on.
func (s *Server) Thaw() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// Kill ends the process with everything it knew.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // reports the signal
}

// Restart starts an empty server at the same address after Kill.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatalf("redistest: %v", err)
	}
}

func (s *Server) close() {
	s.Kill()
	_ = os.RemoveAll(s.folder)
}
