package brokerdoctor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/jackc/pgx/v5"

	"siyuan-broker/broker"
	"siyuan-broker/broker/cluster/clustertest/redistest"
	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/contract/wire"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(func() int { return pgtest.Main(m) })) }

const masterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// sound is a hosted broker's configuration with nothing wrong.
func sound(t *testing.T) (*Doctor, pgtest.DB) {
	t.Helper()
	db := pgtest.New(t)
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	c := broker.Config{
		Listen: "127.0.0.1:8080", LogLevel: "info", LogFormat: "json", CallTimeout: time.Minute, ShutdownTimeout: time.Second,
		MaxRequestBytes: 1 << 20, MaxResultBytes: 1 << 20, Data: dir, MasterKey: masterKey,
		DatabaseURL: db.ServiceDSN, DatabaseRecord: db.RecorderDSN, DatabaseDirect: db.OwnerDSN,
	}
	server := httptest.NewServer(http.HandlerFunc(brokerLike))
	t.Cleanup(server.Close)
	c.PublicURLs = []string{server.URL}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return &Doctor{Config: c, Free: func(string) (uint64, error) { return 50 << 30, nil }}, db
}

// brokerLike answers the paths doctor asks as a broker does.
func brokerLike(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		_, _ = w.Write([]byte(`{"status":"ok"}`))
	case wire.WellKnownPath:
		_ = json.NewEncoder(w).Encode(wire.Discovery{Issuer: "http://" + r.Host, Versions: []int{1}, Tunnel: wire.Endpoint{WSS: "ws://" + r.Host + "/tunnel"}})
	case wire.Path:
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{wire.Subprotocol}})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		c := websocket.NetConn(r.Context(), ws, websocket.MessageBinary)
		_ = wire.NewWriter(c, wire.HandshakeLimits()).Write(wire.FrameChallenge, wire.Challenge{Versions: []int{1}, Nonce: "n"}, nil)
		_, _ = c.Read(make([]byte, 1))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// findings runs every probe.
func findings(t *testing.T, d *Doctor) map[string]doctor.Finding {
	t.Helper()
	all := map[string]doctor.Finding{}
	for _, f := range doctor.Run(t.Context(), d.Probes(), func(doctor.Finding) {}) {
		all[f.Name] = f
	}
	return all
}

// want checks one finding: its status and words of it or of what to do.
func want(t *testing.T, all map[string]doctor.Finding, name string, status doctor.Status, words string) {
	t.Helper()
	f := all[name]
	if f.Status != status || !strings.Contains(f.Found+"\n"+f.Next, words) {
		t.Errorf("%s: got %+v, want %s with %q", name, f, status, words)
	}
}

func exec(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsWrongWithASoundBroker(t *testing.T) {
	t.Parallel()
	d, _ := sound(t)
	db, err := broker.OpenDatabase(t.Context(), &d.Config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.PutSigningKey(t.Context(), tenants.SigningKey{KID: "k", Alg: "EdDSA", Purpose: "access", Private: []byte("x"), Public: []byte("y"), NotBefore: time.Now().AddDate(0, 0, -3)}); err != nil {
		t.Fatal(err)
	}
	db.Store.Close()
	all := findings(t, d)
	skipped := []string{"postgresql", "redis", "certificate"} // elsewhere, single node, plain http
	for name, f := range all {
		status := doctor.OK
		if slices.Contains(skipped, name) {
			status = doctor.Skip
		}
		if f.Status != status {
			t.Errorf("%s: %+v, want %s", name, f, status)
		}
	}
	want(t, all, "signing keys", doctor.OK, "3 days old")
	want(t, all, "redis", doctor.Skip, "single node")
}

func TestABadConfigurationSkipsAllTheRest(t *testing.T) {
	t.Parallel()
	d := &Doctor{ConfigErr: errors.New("listen: \"x\" is not host:port")}
	for name, f := range findings(t, d) {
		if name != configuration && f.Status != doctor.Skip {
			t.Errorf("%s: %+v", name, f)
		}
	}
	all := findings(t, d)
	want(t, all, configuration, doctor.Fail, "is not host:port")
	if !all[configuration].Config {
		t.Error("it would not exit with 78")
	}
}

func TestWhatIsWrongWithTheDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change       func(t *testing.T, d *Doctor, db pgtest.DB)
		probe, words string
		status       doctor.Status
	}{
		"nothing listens": {func(t *testing.T, d *Doctor, _ pgtest.DB) {
			d.Config.DatabaseURL = "postgres://a:hunter2@" + closedPort(t) + "/x?sslmode=disable"
		}, database, "connection refused", doctor.Fail},
		"no such database": {func(t *testing.T, d *Doctor, db pgtest.DB) {
			d.Config.DatabaseURL = regexp.MustCompile(`/siyuan_test_\w+`).ReplaceAllStringFunc(db.ServiceDSN, func(m string) string {
				if strings.HasPrefix(m, "/siyuan_test_service") {
					return m
				}
				return "/siyuan_none"
			})
		}, database, "it makes the database", doctor.Fail},
		"no address at all": {func(t *testing.T, d *Doctor, _ pgtest.DB) { d.Config.DatabaseURL = "postgres://a:hunter2@[b/c" },
			database, "must have the form postgres://", doctor.Fail},
		"the owner as service": {func(t *testing.T, d *Doctor, db pgtest.DB) { d.Config.DatabaseURL = db.OwnerDSN },
			"isolation", "service role's address", doctor.Fail},
		"a superuser as recorder": {func(t *testing.T, d *Doctor, db pgtest.DB) { d.Config.DatabaseRecord = db.AdminDSN },
			"recorder", "is a superuser", doctor.Fail},
		"a schema that is behind": {func(t *testing.T, d *Doctor, db pgtest.DB) {
			exec(t, db.AdminDSN, `delete from goose_db_version where version_id = (select max(version_id) from goose_db_version)`)
		}, "schema", "run `siyuan-broker migrate`", doctor.Fail},
		"a schema from the future": {func(t *testing.T, d *Doctor, db pgtest.DB) {
			exec(t, db.AdminDSN, `insert into goose_db_version (version_id, is_applied) values (999, true)`)
		}, "schema", "update this program", doctor.Fail},
		"a database nobody prepared": {func(t *testing.T, d *Doctor, db pgtest.DB) { exec(t, db.AdminDSN, `drop table goose_db_version`) },
			"schema", "never prepared", doctor.Fail},
		"no owner's address": {func(t *testing.T, d *Doctor, db pgtest.DB) { d.Config.DatabaseDirect = "" },
			"schema", "DATABASE_DIRECT_URL", doctor.Skip},
		"a clock an hour behind": {func(t *testing.T, d *Doctor, db pgtest.DB) {
			d.Network.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		}, "clock", "NTP", doctor.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, db := sound(t)
			c.change(t, d, db)
			all := findings(t, d)
			want(t, all, c.probe, c.status, c.words)
			for _, f := range all {
				if strings.Contains(f.Found+f.Next, "hunter2") {
					t.Errorf("the password is shown: %+v", f)
				}
			}
		})
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestSigningKeysAreOpenedAndTheirAgeIsSeen(t *testing.T) {
	t.Parallel()
	d, _ := sound(t)
	want(t, findings(t, d), "signing keys", doctor.Skip, "the first start")
	db, err := broker.OpenDatabase(t.Context(), &d.Config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Store.Close)
	if err := db.PutSigningKey(t.Context(), tenants.SigningKey{KID: "k", Alg: "EdDSA", Purpose: "access", Private: []byte("x"), Public: []byte("y"), NotBefore: time.Now().AddDate(0, 0, -101)}); err != nil {
		t.Fatal(err)
	}
	want(t, findings(t, d), "signing keys", doctor.Warn, "101 days old")
	d.Config.MasterKey = base64.StdEncoding.EncodeToString(make([]byte, 32))
	all := findings(t, d)
	want(t, all, "signing keys", doctor.Fail, "BROKER_MASTER_KEY")
	if !all["signing keys"].Config {
		t.Error("a wrong master key is a matter of configuration")
	}
}

func TestRedisIsAsked(t *testing.T) {
	t.Parallel()
	d := &Doctor{Config: broker.Config{RedisURL: redistest.Shared(t).URL}}
	if f := d.redis(t.Context()); f.Status != doctor.OK {
		t.Errorf("got %+v", f)
	}
	d.Config.RedisURL = "redis://:hunter2@" + closedPort(t)
	if f := d.redis(t.Context()); f.Status != doctor.Fail || !strings.Contains(f.Found, "connection refused") || strings.Contains(f.Found, "hunter2") {
		t.Errorf("nothing listens: %+v", f)
	}
	d.Config.RedisURL = "hunter2"
	if f := d.redis(t.Context()); f.Status != doctor.Fail || !f.Config || strings.Contains(f.Found, "hunter2") {
		t.Errorf("no URL: %+v", f)
	}
}

func TestTheBrokersOwnPostgreSQLIsNotStartedForDoctor(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	d := &Doctor{Config: broker.Config{Data: dir, Listen: "127.0.0.1:1"}, Free: func(string) (uint64, error) { return 0, nil }}
	all := findings(t, d)
	want(t, all, database, doctor.Skip, "runs while the broker does")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("doctor left %v, %v", left, err)
	}
}

func TestTheDataFolderIsClosedToOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := &Doctor{Config: broker.Config{Data: filepath.Join(dir, "none")}}
	look := func() map[string]doctor.Finding {
		return map[string]doctor.Finding{"data folder": d.dataFolder(t.Context())}
	}
	want(t, look(), "data folder", doctor.Skip, "does not exist yet")
	d.Config.Data = dir
	chmod := func(name string, mode os.FileMode) {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(dir, 0o711)
	want(t, look(), "data folder", doctor.OK, "")
	chmod(dir, 0o777)
	want(t, look(), "data folder", doctor.Fail, "chmod go-w")
	chmod(dir, 0o711)
	key := filepath.Join(dir, "master.key")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, look(), "data folder", doctor.OK, "")
	chmod(key, 0o644)
	want(t, look(), "data folder", doctor.Fail, "chmod 600 "+key)
	d.Config.Data = key
	want(t, look(), "data folder", doctor.Fail, "not a folder")
}

func TestDiskSpaceIsJudged(t *testing.T) {
	t.Parallel()
	for free, status := range map[uint64]doctor.Status{2 << 30: doctor.OK, 1<<30 - 1: doctor.Warn, 100<<20 - 1: doctor.Fail} {
		d := &Doctor{Config: broker.Config{Data: filepath.Join(t.TempDir(), "not", "yet")}, Free: func(string) (uint64, error) { return free, nil }}
		if f := d.disk(t.Context()); f.Status != status {
			t.Errorf("%d free: %+v", free, f)
		}
	}
	if free, err := freeSpace(t.TempDir()); err != nil && !errors.Is(err, errors.ErrUnsupported) || err == nil && free == 0 {
		t.Errorf("the system says %d, %v", free, err)
	}
}

func TestWhatIsWrongWithTheWayInIsNamed(t *testing.T) {
	t.Parallel()
	status := func(path string, code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				w.WriteHeader(code)
				return
			}
			brokerLike(w, r)
		}
	}
	for name, c := range map[string]struct {
		h            http.HandlerFunc
		probe, words string
		status       doctor.Status
	}{
		"all well":                  {brokerLike, "tunnel", "WebSocket opens", doctor.OK},
		"a proxy without a broker":  {status("/healthz", 502), "public url", "does the proxy know its address", doctor.Fail},
		"a redirect":                {status("/healthz", 301), "public url", "redirect", doctor.Fail},
		"another site":              {status("/healthz", 404), "public url", "every path", doctor.Fail},
		"well-known kept back":      {status(wire.WellKnownPath, 404), "discovery", ".well-known", doctor.Fail},
		"upgrades kept back":        {status(wire.Path, 400), "tunnel", "proxy_set_header Upgrade", doctor.Fail},
		"a Host header rewritten":   {func(w http.ResponseWriter, r *http.Request) { r.Host = "inner:8080"; brokerLike(w, r) }, "discovery", "calls itself http://inner:8080", doctor.Fail},
		"discovery sends elsewhere": {elsewhere, "discovery", "Host header", doctor.Warn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.h)
			t.Cleanup(server.Close)
			d := &Doctor{Config: broker.Config{PublicURLs: []string{server.URL}, Listen: "127.0.0.1:8080"}}
			all := map[string]doctor.Finding{}
			ready := doctor.Probe{Name: configuration, Run: func(context.Context) doctor.Finding { return doctor.Good("") }}
			for _, f := range doctor.Run(t.Context(), append([]doctor.Probe{ready}, d.wayIn(0, server.URL)...), func(doctor.Finding) {}) {
				all[f.Name] = f
			}
			want(t, all, c.probe, c.status, c.words)
		})
	}
}

// elsewhere is a broker whose discovery names its inner address.
func elsewhere(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != wire.WellKnownPath {
		brokerLike(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(wire.Discovery{Issuer: "http://" + r.Host, Versions: []int{1}, Tunnel: wire.Endpoint{WSS: "ws://inner/tunnel"}})
}
