package postgres_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"siyuan-broker/migrations"
	"siyuan-broker/tenants/postgres"
)

func TestMigratingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	dump := func() (columns, grants string) {
		admin := f.conn(t, f.db.AdminDSN)
		must(t, admin.QueryRow(t.Context(), `select string_agg(concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default), E'\n' order by table_name, ordinal_position)
			from information_schema.columns where table_schema = 'public'`).Scan(&columns))
		must(t, admin.QueryRow(t.Context(), `select string_agg(concat_ws(' ', relname, relacl::text), E'\n' order by relname)
			from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'S')`).Scan(&grants))
		return columns, grants
	}
	columns, grants := dump()
	first, err := postgres.Migrate(t.Context(), f.db.OwnerDSN, f.db.Roles)
	must(t, err)
	var nodes sync.WaitGroup
	for range 2 { // two nodes that start together
		nodes.Go(func() {
			if again, err := postgres.Migrate(t.Context(), f.db.OwnerDSN, f.db.Roles); err != nil || again != first {
				t.Errorf("version %d, error %v; want %d", again, err, first)
			}
		})
	}
	nodes.Wait()
	if c, g := dump(); c != columns || g != grants {
		t.Errorf("schema or grants changed:\n%s\n%s", g, grants)
	}
	must2(t)(f.LoadSnapshot(t.Context(), h.tenant, h.agent)) // the service still works, the data is there
}

func TestMigrationsCanBeTakenBackAndMadeAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	must(t, f.Maintain(t.Context(), time.Now(), 30)) // with partitions
	conf, err := pgx.ParseConfig(f.db.OwnerDSN)
	must(t, err)
	db := stdlib.OpenDB(*conf)
	t.Cleanup(func() { _ = db.Close() })
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files, goose.WithDisableGlobalRegistry(true))
	must(t, err)
	must2(t)(provider.DownTo(t.Context(), 0))
	var left []string
	must(t, f.conn(t, f.db.AdminDSN).QueryRow(t.Context(), `select array(
		select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'S') and relname not like 'goose%'
		union all select proname::text from pg_proc where pronamespace = 'public'::regnamespace
		union all select typname::text from pg_type where typnamespace = 'public'::regnamespace and typtype = 'e')`).Scan(&left))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	must2(t)(postgres.Migrate(t.Context(), f.db.OwnerDSN, f.db.Roles))
	f.newHome(t, "a@example.org", home{})
}

func TestBootstrapMayRunAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	roles := f.db.Roles
	for range 2 {
		must(t, postgres.Bootstrap(t.Context(), f.db.AdminDSN, roles, "siyuan_bootstrap_test"))
	}
	_, err := f.conn(t, f.db.AdminDSN).Exec(t.Context(), `drop database siyuan_bootstrap_test`)
	must(t, err)
}

func TestRolesThatWouldVoidIsolationAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	missing := f.db.Roles
	missing.Service.Name = "siyuan_no_such_role"
	_, err := postgres.Migrate(t.Context(), f.db.OwnerDSN, missing)
	if err == nil || !strings.Contains(err.Error(), `create role "siyuan_no_such_role"`) {
		t.Errorf("missing role: got %v, want the command that makes it", err)
	}
	swapped := f.db.Roles
	swapped.Service, swapped.Recorder = swapped.Recorder, swapped.Service
	_, err = postgres.Migrate(t.Context(), f.db.OwnerDSN, swapped)
	if err == nil || !strings.Contains(err.Error(), "nobypassrls") {
		t.Errorf("a service that bypasses row-level security: got %v", err)
	}
	same := f.db.Roles
	same.Service = same.Owner
	if _, err = postgres.Migrate(t.Context(), f.db.OwnerDSN, same); err == nil {
		t.Error("a service that is the owner was accepted")
	}
}

func TestAMasterKeyOfTheWrongSizeIsRefusedBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	_, err := postgres.Open(t.Context(), postgres.Options{MasterKey: []byte("short")})
	if err == nil || !strings.Contains(err.Error(), "32") {
		t.Errorf("got %v", err)
	}
}
