package postgres_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var masterKey = make([]byte, 32)

// fixture is a migrated database of its own with a store on it.
type fixture struct {
	*postgres.Store
	db pgtest.DB
}

func newFixture(t testing.TB) fixture {
	t.Helper()
	db := pgtest.New(t)
	s, err := postgres.Open(t.Context(), postgres.Options{ServiceDSN: db.ServiceDSN, RecorderDSN: db.RecorderDSN, ListenDSN: db.ListenDSN,
		MasterKey: masterKey, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return fixture{s, db}
}

// conn connects as one of the roles, past the store.
func (f fixture) conn(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conf.DefaultQueryExecMode = pgx.QueryExecModeExec
	c, err := pgx.ConnectConfig(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (f fixture) person(t testing.TB, email string) tenants.User {
	t.Helper()
	u, err := f.CreateUser(t.Context(), tenants.User{Email: email, Name: email})
	must(t, err)
	return u
}

// in runs fn in a tenant's transaction that must succeed.
func (f fixture) in(t testing.TB, tenant tenants.ID, fn func(tx tenants.Tx) error) {
	t.Helper()
	must(t, f.In(t.Context(), tenant, fn))
}

// home is a tenant with one of everything, under chosen ids.
type home struct {
	tenant    tenants.ID
	owner     tenants.ID
	instance  tenants.ID
	connector tenants.ID
	agent     tenants.ID
	key       ed25519.PublicKey
}

const (
	diary  = "20260101000000-diary00"
	garden = "20260101000000-garden0"
)

// newHome makes a tenant owned by email. The same ids may be used for another
// tenant; the key must differ.
func (f fixture) newHome(t testing.TB, email string, ids home) home {
	t.Helper()
	h := ids
	h.owner = f.person(t, email).ID
	tenant, err := f.CreateTenant(t.Context(), "tenant of "+email, h.owner)
	must(t, err)
	h.tenant = tenant.ID
	h.key = newKey(t)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		in, err := tx.CreateInstance(t.Context(), tenants.Instance{ID: ids.instance, Name: "home", DefaultLevel: contract.Read})
		must(t, err)
		h.instance = in.ID
		c, err := tx.RegisterConnector(t.Context(), tenants.Connector{ID: ids.connector, InstanceID: in.ID, Name: "desktop", PublicKey: h.key, PairedBy: h.owner})
		must(t, err)
		h.connector = c.ID
		a, err := tx.CreateAgent(t.Context(), tenants.Agent{ID: ids.agent, MemberID: h.owner, InstanceID: in.ID, Name: "Claude",
			Origin: tenants.FromToken, Ceiling: contract.ReadWriteDelete})
		must(t, err)
		h.agent = a.ID
		return tx.ReplaceNotebooks(t.Context(), in.ID, []tenants.Notebook{{ID: diary, Name: "Diary of " + email}})
	})
	return h
}

func newKey(t testing.TB) ed25519.PublicKey {
	t.Helper()
	key, _, err := ed25519.GenerateKey(nil)
	must(t, err)
	return key
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}
