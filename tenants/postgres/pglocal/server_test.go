//go:build unix

package pglocal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// helperEnv makes the test binary a broker that starts a server and waits to be
// killed.
const helperEnv = "PGLOCAL_TEST_DATA_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		s, err := Start(context.Background(), Options{DataDir: dir, Disposable: true})
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(s.PID())
		select {}
	}
	os.Exit(m.Run())
}

func TestASecondStartFindsTheData(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	s := start(t, dir)
	query(t, s, "create table t as select 42 as answer")
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error("second Stop:", err)
	}
	if got := query(t, start(t, dir), "select answer from t"); got != "42" {
		t.Errorf("got %q, want 42", got)
	}
}

func TestASecondServerOnTheSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	s := start(t, dir)
	_, err := Start(t.Context(), Options{DataDir: dir, Disposable: true})
	var locked *LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("got %v, want *LockedError", err)
	}
	if want := fmt.Sprint(os.Getpid()); locked.Holder != want || !strings.Contains(err.Error(), dir) {
		t.Errorf("message does not say who holds what: %s", err)
	}
	if got := query(t, s, "select 1"); got != "1" {
		t.Error("the first server suffered")
	}
}

func TestAfterKillingTheBrokerTheNextStartWorks(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	broker, _ := helper(t, dir)
	kill(t, broker.Process.Pid)
	_ = broker.Wait()
	if got := query(t, start(t, dir), "select 1"); got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestTheServerDoesNotOutliveAKilledBroker(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process that its parent died; elsewhere the next start ends the server")
	}
	dir := dataFolder(t)
	broker, _ := helper(t, dir)
	kill(t, broker.Process.Pid)
	_ = broker.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for {
		left, err := processesOf(filepath.Join(dir, "postgres"))
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		if err := pause(ctx, pollInterval); err != nil {
			t.Fatalf("processes %v are still there", left)
		}
	}
}

func TestAfterKillingBrokerAndPostmasterTheNextStartWorks(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	broker, postmaster := helper(t, dir)
	kill(t, postmaster)
	kill(t, broker.Process.Pid)
	_ = broker.Wait()
	if got := query(t, start(t, dir), "select 1"); got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestAKilledPostmasterIsNoticedAndCanBeStartedAgain(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	s := start(t, dir)
	query(t, s, "create table t as select 'kept' as v")
	query(t, s, "checkpoint")
	kill(t, s.PID())
	select {
	case <-s.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the death was not noticed")
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, start(t, dir), "select v from t"); got != "kept" {
		t.Errorf("got %q", got)
	}
}

func TestPidFilesThatNameALiveStrangerDoNotPreventTheStart(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	s := start(t, dir)
	socket := s.socketDir
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// As after a crash and a reused process id: this test's own parent.
	stranger := fmt.Sprintf("%d\n%s\n0\n5432\n%s\n", os.Getppid(), filepath.Join(dir, "postgres"), socket)
	write(t, filepath.Join(dir, "postgres", "postmaster.pid"), stranger)
	write(t, filepath.Join(socket, socketName+".lock"), stranger)
	if got := query(t, start(t, dir), "select 1"); got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestAnUnfinishedClusterIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	if err := os.Mkdir(filepath.Join(dir, "postgres.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "postgres.new", "PG_VERSION"), "1")
	start(t, dir)
}

func TestAFailedStartShowsTheServersLastWordsAndFreesTheFolder(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	_, err := Start(t.Context(), Options{DataDir: dir, Disposable: true, Settings: map[string]string{"max_connections": "many"}})
	if err == nil || !strings.Contains(err.Error(), "max_connections") {
		t.Fatalf("got %v, want the server's complaint", err)
	}
	start(t, dir)
}

func TestOnlyThePrivateSocketIsOpen(t *testing.T) {
	t.Parallel()
	s := start(t, dataFolder(t))
	if got := query(t, s, "show listen_addresses"); got != "" {
		t.Errorf("listens on %q", got)
	}
	info, err := os.Stat(s.socketDir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("socket folder has mode %04o, want 0700", info.Mode().Perm())
	}
}

func TestALongDataPathGetsAShortSocketFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	long := filepath.Join(dataFolder(t), strings.Repeat("long", 25))
	s := start(t, long)
	t.Cleanup(func() { _ = os.RemoveAll(s.socketDir) })
	if len(filepath.Join(s.socketDir, socketName)) > socketMax {
		t.Errorf("%s is too long for a socket", s.socketDir)
	}
	if got := query(t, s, "select 1"); got != "1" {
		t.Errorf("got %q", got)
	}
	if s.socketDir == socketDir(long+"er") {
		t.Error("two data folders share a socket folder")
	}
}

func TestAFolderOfSomebodyElseIsNotUsedForTheSocket(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	link := filepath.Join(t.TempDir(), "run")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := (*account)(nil).own(link); err == nil || !strings.Contains(err.Error(), "belongs to somebody else") {
		t.Errorf("a planted symlink was followed: %v", err)
	}
}

func TestAParentTheServersAccountCannotPassIsNamed(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	as := &account{name: "someone", uid: 54321, gid: 54321}
	err := as.reach(filepath.Join(closed, "postgres"))
	if err == nil || !strings.Contains(err.Error(), "chmod o+x "+closed) {
		t.Errorf("got %v, want the folder and the command that helps", err)
	}
}

func TestOnlyTheFirstFittingClassOfPermissionsCounts(t *testing.T) {
	t.Parallel()
	as := &account{uid: 10, gid: 20, groups: []uint32{21}}
	for _, c := range []struct {
		st   syscall.Stat_t
		want bool
	}{
		{syscall.Stat_t{Uid: 10, Gid: 20, Mode: 0o700}, true},
		{syscall.Stat_t{Uid: 10, Gid: 20, Mode: 0o077}, false},
		{syscall.Stat_t{Uid: 1, Gid: 20, Mode: 0o010}, true},
		{syscall.Stat_t{Uid: 1, Gid: 21, Mode: 0o707}, false},
		{syscall.Stat_t{Uid: 1, Gid: 2, Mode: 0o001}, true},
		{syscall.Stat_t{Uid: 1, Gid: 2, Mode: 0o770}, false},
	} {
		if got := as.searches(&c.st); got != c.want {
			t.Errorf("uid %d gid %d mode %04o: got %v, want %v", c.st.Uid, c.st.Gid, c.st.Mode, got, c.want)
		}
	}
}

// dataFolder is a temporary folder that the server's account can reach: the
// testing package makes its own parent private.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), Options{DataDir: dir, Disposable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// helper starts this test binary as a broker and returns it and its postmaster.
func helper(t *testing.T, dir string) (broker *exec.Cmd, postmaster int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(line, &postmaster); err != nil {
		t.Fatal(line)
	}
	return cmd, postmaster
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// query runs SQL as the superuser and returns the last statement's first value.
func query(t *testing.T, s *Server, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN(Superuser, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := results[len(results)-1]
	if len(last.Rows) == 0 {
		return ""
	}
	return string(last.Rows[0][0])
}
