package pgtest_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestEachTestHasAMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	a, b := pgtest.New(t), pgtest.New(t)
	exec(t, a.OwnerDSN, `insert into users (id, email) values (gen_random_uuid(), 'a@example.org')`)
	if got := count(t, a.ServiceDSN); got != 1 {
		t.Errorf("first database has %d users, want 1", got)
	}
	if got := count(t, b.ServiceDSN); got != 0 {
		t.Errorf("second database has %d users, want 0", got)
	}
}

func exec(t *testing.T, dsn, sql string) {
	t.Helper()
	conn := connect(t, dsn)
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, dsn string) (n int) {
	t.Helper()
	if err := connect(t, dsn).QueryRow(t.Context(), `select count(*) from users`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conf.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
