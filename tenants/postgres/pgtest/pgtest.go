package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pglocal"
)

// password serves external servers, which may not trust connections.
const password = "siyuan-test"

// DB addresses one test's database as each of its roles.
type DB struct {
	OwnerDSN    string // direct
	ServiceDSN  string // through the pooler, when there is one
	RecorderDSN string // through the pooler, when there is one
	ListenDSN   string // the service, direct
	AdminDSN    string // a superuser, direct
	Roles       postgres.Roles
}

// cluster is the server of one test binary.
type cluster struct {
	server   *pglocal.Server // nil when external
	folder   string
	admin    string // superuser's DSN to the maintenance database
	pooler   string
	template string
	roles    postgres.Roles
}

// shared is the one cluster of this test binary; Main ends it.
var shared struct {
	sync.Mutex
	cluster *cluster
	err     error
	inMain  bool
}

// Main runs the tests and ends the server they used. Call it from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m *testing.M) int {
	shared.Lock()
	shared.inMain = true
	shared.Unlock()
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if c := shared.cluster; c != nil {
		if err := c.close(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return max(code, 1)
		}
	}
	return code
}

// New makes a database for the test. It is not dropped: the server goes with the
// test binary.
func New(t testing.TB) DB {
	t.Helper()
	c, err := get()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	db, err := c.create(t.Context())
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return db
}

func get() (*cluster, error) {
	shared.Lock()
	defer shared.Unlock()
	if !shared.inMain {
		return nil, fmt.Errorf("the package needs func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }, or its server would stay")
	}
	if shared.cluster == nil && shared.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		shared.cluster, shared.err = open(ctx)
	}
	return shared.cluster, shared.err
}

func open(ctx context.Context) (*cluster, error) {
	c := &cluster{roles: postgres.RolesNamed("siyuan_test"), template: "siyuan_test_" + randomName()}
	for _, r := range []*postgres.Role{&c.roles.Owner, &c.roles.Service, &c.roles.Recorder} {
		r.Password = password
	}
	if external := os.Getenv("TEST_DATABASE_URL"); external != "" {
		c.admin, c.pooler = external, os.Getenv("TEST_DATABASE_POOLER")
	} else if err := c.startServer(ctx); err != nil {
		return nil, err
	}
	if err := c.makeTemplate(ctx); err != nil {
		return nil, fmt.Errorf("make template database: %w (%v)", err, c.close())
	}
	return c, nil
}

func (c *cluster) startServer(ctx context.Context) (err error) {
	if c.folder, err = os.MkdirTemp("", "pgtest-"); err != nil {
		return err
	}
	if err := os.Chmod(c.folder, 0o711); err != nil { // as root, another user runs the server
		return err
	}
	c.server, err = pglocal.Start(ctx, pglocal.Options{
		DataDir:    c.folder,
		Disposable: true,
		Settings:   map[string]string{"max_connections": "300"},
	})
	if err != nil {
		_ = os.RemoveAll(c.folder)
		return err
	}
	c.admin = c.server.DSN(pglocal.Superuser, "postgres")
	return nil
}

func (c *cluster) makeTemplate(ctx context.Context) error {
	if err := postgres.Bootstrap(ctx, c.admin, c.roles, c.template); err != nil {
		return err
	}
	owner, err := c.roles.Owner.DSN(c.admin, c.template)
	if err != nil {
		return err
	}
	if _, err := postgres.Migrate(ctx, owner, c.roles); err != nil {
		return err
	}
	return c.exec(ctx, "alter database "+c.template+" with is_template true allow_connections false")
}

func (c *cluster) create(ctx context.Context) (DB, error) {
	name := "siyuan_test_" + randomName()
	if err := c.exec(ctx, "create database "+name+" template "+c.template+" owner "+c.roles.Owner.Name); err != nil {
		return DB{}, err
	}
	admin, err := url.Parse(c.admin)
	if err != nil {
		return DB{}, err
	}
	admin.Path = "/" + name
	pooled := c.admin
	if c.pooler != "" {
		pooled = throughPooler(*admin, c.pooler)
	}
	db := DB{AdminDSN: admin.String(), Roles: c.roles}
	for _, x := range []struct {
		to   *string
		role postgres.Role
		base string
	}{
		{&db.OwnerDSN, c.roles.Owner, c.admin},
		{&db.ListenDSN, c.roles.Service, c.admin},
		{&db.ServiceDSN, c.roles.Service, pooled},
		{&db.RecorderDSN, c.roles.Recorder, pooled},
	} {
		if *x.to, err = x.role.DSN(x.base, name); err != nil {
			return DB{}, err
		}
	}
	return db, nil
}

// throughPooler replaces the address's host, also where it is a socket folder in
// the query. The pooler is host:port, or the folder of its socket on port 6432.
func throughPooler(u url.URL, pooler string) string {
	q := u.Query()
	q.Del("host")
	q.Del("port")
	if u.Host = pooler; filepath.IsAbs(pooler) {
		u.Host = ""
		q.Set("host", pooler)
		q.Set("port", "6432")
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Through is an address with the host replaced by a pooler's: host:port, or the
// folder of its socket.
func Through(dsn, pooler string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // connecting will say so
	}
	return throughPooler(*u, pooler)
}

func (c *cluster) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, c.admin)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}

func (c *cluster) close() error {
	if c.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.server.Stop(ctx); err != nil {
		return err
	}
	return os.RemoveAll(c.folder)
}

func randomName() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	return hex.EncodeToString(b[:])
}
