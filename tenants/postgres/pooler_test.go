//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

// pooled says that this process is the second run of the suite.
func pooled() bool { return os.Getenv("TEST_DATABASE_POOLER") != "" }

func TestTheWholeSuiteHoldsBehindATransactionPooler(t *testing.T) {
	if pooled() {
		t.Skip("this is that run")
	}
	if testing.Short() {
		t.Skip("runs every test of the package once more")
	}
	t.Parallel()
	admin := pgtest.New(t).AdminDSN
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.timeout=5m", "-test.parallel=4")
	cmd.Env = append(os.Environ(), "TEST_DATABASE_URL="+admin, "TEST_DATABASE_POOLER="+startPooler(t, admin))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestListeningThroughATransactionPoolerIsRefusedWithTheWayOut(t *testing.T) {
	if pooled() {
		t.Skip("brings a pooler of its own")
	}
	t.Parallel()
	db := pgtest.New(t)
	through := pgtest.Through(db.ServiceDSN, startPooler(t, db.AdminDSN))
	open := func(listen string) *postgres.Store {
		s, err := postgres.Open(t.Context(), postgres.Options{ServiceDSN: through, RecorderDSN: db.RecorderDSN, ListenDSN: listen, MasterKey: masterKey})
		must(t, err)
		t.Cleanup(s.Close)
		return s
	}
	err := open("").CanListen(t.Context())
	if !errors.Is(err, postgres.ErrNoPush) || !strings.Contains(err.Error(), "DATABASE_DIRECT_URL") {
		t.Errorf("through the pooler: %v", err)
	}
	if err := open(db.ListenDSN).CanListen(t.Context()); err != nil {
		t.Errorf("with a direct address: %v", err)
	}
}

// startPooler runs pgbouncer in transaction mode before the server of a
// superuser's address, and returns its socket folder. It ends with the test.
func startPooler(t *testing.T, admin string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil { // not on everybody's PATH
			t.Skip("pgbouncer is not installed: .ci/deps test installs it")
		}
	}
	u, err := url.Parse(admin)
	must(t, err)
	target := u.Query().Get("host")
	if target == "" {
		t.Skip("TEST_DATABASE_URL names a server of its own; put a pooler before it and set TEST_DATABASE_POOLER")
	}
	dir, err := os.MkdirTemp("", "pooler-") // short: a socket goes there
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	files := map[string]string{
		"users": `"siyuan_test_service" ""` + "\n" + `"siyuan_test_recorder" ""` + "\n",
		"ini": fmt.Sprintf("[databases]\n* = host=%s port=5432\n[pgbouncer]\nunix_socket_dir = %s\nlisten_port = 6432\n"+
			"auth_type = trust\nauth_file = %s\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 500\n",
			target, dir, filepath.Join(dir, "users")),
	}
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	var log bytes.Buffer
	cmd := exec.Command(program, filepath.Join(dir, "ini"))
	cmd.Stderr = &log
	if os.Geteuid() == 0 { // it refuses to be root; the server's account may enter the server's socket folder
		info, err := os.Stat(target)
		must(t, err)
		st := info.Sys().(*syscall.Stat_t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: st.Uid, Gid: st.Gid}}
		for _, name := range []string{"", "users", "ini"} {
			must(t, os.Chown(filepath.Join(dir, name), int(st.Uid), int(st.Gid)))
		}
	}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // reports the signal
	})
	awaitSocket(t, filepath.Join(dir, ".s.PGSQL.6432"), &log)
	return dir
}

func awaitSocket(t *testing.T, name string, log *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := net.Dial("unix", name); err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("pgbouncer does not answer: %s", log)
		}
	}
}
