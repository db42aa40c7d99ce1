//go:build unix

package pglocal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	socketName   = ".s.PGSQL.5432"
	socketMax    = 103 // bytes of a socket path: 107 on Linux, 103 on macOS and the BSDs
	pollInterval = 5 * time.Millisecond
	startTimeout = 60 * time.Second // recovery of a large log may take long
	stopPatience = 10 * time.Second // then SIGQUIT
)

// Server is a running PostgreSQL.
type Server struct {
	socketDir string
	lock      *os.File
	process   *os.Process
	ended     chan struct{} // closed when the process is gone
	endErr    error         // valid after ended
	log       *lineLog
}

// Start makes the cluster when there is none, clears what a killed process left,
// and returns when the server answers. Errors a caller may tell apart:
// *NoBinariesError, *VersionError, *LockedError.
func Start(ctx context.Context, o Options) (*Server, error) {
	dataDir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	// Searchable for the server's account, readable for nobody else.
	if err := os.MkdirAll(dataDir, 0o711); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	if dataDir, err = filepath.EvalSymlinks(dataDir); err != nil { // /proc/PID/cwd shows resolved paths
		return nil, fmt.Errorf("data folder: %w", err)
	}
	held, err := lock(dataDir, filepath.Join(dataDir, "postgres.lock"))
	if err != nil {
		return nil, err
	}
	s := &Server{lock: held, ended: make(chan struct{}), log: &lineLog{logger: o.Logger}}
	if err := s.start(ctx, dataDir, o); err != nil {
		_ = held.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, dataDir string, o Options) error {
	cluster := filepath.Join(dataDir, "postgres")
	all, err := installations(ctx, o.BinDirs)
	if err != nil {
		return err
	}
	programs, err := choose(all, cluster)
	if err != nil {
		return err
	}
	as, err := serverAccount()
	if err != nil {
		return err
	}
	if err := as.reach(cluster); err != nil {
		return err
	}
	s.socketDir = socketDir(dataDir)
	if err := as.own(s.socketDir); err != nil {
		return err
	}
	if err := clearStale(ctx, cluster, s.socketDir); err != nil {
		return err
	}
	if err := initCluster(ctx, programs, as, cluster, o.Disposable); err != nil {
		return err
	}
	if err := s.launch(programs, as, cluster, o); err != nil {
		return err
	}
	return s.awaitReady(ctx)
}

// socketDir is run/ in the data folder; a path too long for a socket is replaced
// by a short one that belongs to the same data folder.
func socketDir(dataDir string) string {
	dir := filepath.Join(dataDir, "run")
	if len(filepath.Join(dir, socketName)) <= socketMax {
		return dir
	}
	sum := sha256.Sum256([]byte(dataDir))
	return "/tmp/siyuan-pg-" + hex.EncodeToString(sum[:6])
}

// initCluster makes the cluster beside its place and renames it, so that a
// half-made one is never taken for a cluster.
func initCluster(ctx context.Context, programs installation, as *account, cluster string, disposable bool) error {
	if _, err := os.Stat(filepath.Join(cluster, "PG_VERSION")); err == nil {
		return nil
	}
	unfinished := cluster + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove unfinished cluster: %w", err)
	}
	if err := as.own(unfinished); err != nil {
		return err
	}
	args := []string{"-D", unfinished, "-U", Superuser, "-A", "trust", "-E", "UTF8", "--no-locale"}
	if disposable {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(programs.dir, "initdb"), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = unfinished, environment(), as.attributes(false)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w: %s", unfinished, err, out)
	}
	if err := os.Rename(unfinished, cluster); err != nil {
		return fmt.Errorf("put cluster in place: %w", err)
	}
	return nil
}

// environment keeps the caller's variables (PGDATA, PGPORT, LC_ALL, secrets of
// the broker) away from the server.
func environment() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
}

func (s *Server) launch(programs installation, as *account, cluster string, o Options) error {
	settings := map[string]string{
		"listen_addresses":        "",
		"port":                    "5432",
		"unix_socket_directories": s.socketDir,
		"unix_socket_permissions": "0700",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off",
	}
	if o.Disposable {
		settings["fsync"], settings["synchronous_commit"], settings["full_page_writes"] = "off", "off", "off"
	}
	for k, v := range o.Settings {
		settings[k] = v
	}
	args := []string{"-D", cluster}
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", k+"="+settings[k])
	}
	// Not CommandContext: the server outlives Start, Stop ends it.
	cmd := exec.Command(filepath.Join(programs.dir, "postgres"), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = cluster, environment(), as.attributes(true)
	cmd.Stderr = s.log
	cmd.WaitDelay = stopPatience // a backend that holds stderr open cannot hold us

	started := make(chan error, 1)
	go s.run(cmd, started) // ends with the process; Stop waits for it through s.ended
	return <-started
}

// run starts the process and waits for it on one thread: the death signal is
// sent when the *thread* that started the process ends.
func (s *Server) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer close(s.ended)
	if err := cmd.Start(); err != nil {
		started <- fmt.Errorf("start PostgreSQL: %w", err)
		return
	}
	s.process = cmd.Process
	started <- nil
	s.endErr = cmd.Wait()
}

// awaitReady connects until the server lets us in.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.DSN(Superuser, "postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.ended:
			return fmt.Errorf("PostgreSQL stopped while starting (%v); its last words: %s", s.endErr, s.log.tail())
		default:
		}
		if pauseErr := pause(ctx, pollInterval); pauseErr != nil {
			stopErr := s.stopProcess(context.WithoutCancel(ctx))
			return errors.Join(fmt.Errorf("wait for PostgreSQL to be ready: %w (last answer: %w)", pauseErr, err), stopErr)
		}
	}
}

// DSN addresses a database as a role. There are no passwords: whoever may enter
// the private socket folder is trusted.
func (s *Server) DSN(role, database string) string { return address(s.socketDir, role, database) }

// Done is closed when the server process has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.ended }

// PID is the process id of the server.
func (s *Server) PID() int { return s.process.Pid }

// Stop shuts the server down, cutting its connections, and gives the data folder
// free. It is safe to call twice. After ten seconds, or when ctx ends, the
// server is made to quit at once; it recovers at the next start.
func (s *Server) Stop(ctx context.Context) error {
	err := s.stopProcess(ctx)
	if cerr := s.lock.Close(); cerr != nil && !errors.Is(cerr, os.ErrClosed) {
		err = errors.Join(err, fmt.Errorf("release data folder: %w", cerr))
	}
	return err
}

func (s *Server) stopProcess(ctx context.Context) error {
	if s.signal(syscall.SIGINT) { // SIGTERM would wait for clients
		patience, cancel := context.WithTimeout(ctx, stopPatience)
		defer cancel()
		select {
		case <-s.ended:
			return nil
		case <-patience.Done():
			s.signal(syscall.SIGQUIT)
		}
	}
	t := time.NewTimer(stopPatience)
	defer t.Stop()
	select {
	case <-s.ended:
		return nil
	case <-t.C:
		return fmt.Errorf("PostgreSQL (process %d) does not stop", s.process.Pid)
	}
}

// signal reports whether the process was still there to be signalled.
func (s *Server) signal(sig syscall.Signal) bool { return s.process.Signal(sig) == nil }
