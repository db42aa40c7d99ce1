package postgres_test

import (
	"strings"
	"testing"
	"time"

	"siyuan-broker/tenants/postgres"
)

func inspector(f fixture) postgres.Inspector {
	return postgres.Inspector{ServiceDSN: f.db.ServiceDSN, RecorderDSN: f.db.RecorderDSN, OwnerDSN: f.db.OwnerDSN, Now: time.Now}
}

// wantProblem checks that exactly one problem is found and what it says; "" for
// none.
func wantProblem(t *testing.T, want string, got []string, err error) {
	t.Helper()
	must(t, err)
	if want == "" && len(got) != 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASoundDatabasePassesInspection(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newHome(t, "a@example.org", home{}) // something to hide
	i := inspector(f)
	problems, err := i.Isolation(t.Context())
	wantProblem(t, "", problems, err)
	problems, err = i.Recorder(t.Context())
	wantProblem(t, "", problems, err)
	version, newest, err := i.Schema(t.Context())
	must(t, err)
	migrated, err := postgres.Migrate(t.Context(), f.db.OwnerDSN, f.db.Roles)
	must(t, err)
	if version != migrated || newest != migrated {
		t.Errorf("schema %d, newest %d, migrate says %d", version, newest, migrated)
	}
	s, err := i.Server(t.Context())
	must(t, err)
	if s.Major < 15 || !strings.HasPrefix(s.Version, "1") || s.Skew.Abs() > s.Within+time.Second {
		t.Errorf("server is %+v", s)
	}
}

func TestAClockThatDiffersIsMeasured(t *testing.T) {
	t.Parallel()
	i := inspector(newFixture(t))
	i.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	s, err := i.Server(t.Context())
	must(t, err)
	if d := s.Skew + time.Hour; d.Abs() > s.Within+time.Second {
		t.Errorf("skew %v ± %v, want -1h", s.Skew, s.Within)
	}
}

func TestInspectionNamesWhatVoidsIsolation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := inspector(f)
	for name, c := range map[string]struct{ dsn, want string }{
		"a superuser":             {f.db.AdminDSN, "nosuperuser"},
		"the owner":               {f.db.OwnerDSN, "service role's address"},
		"a role that bypasses it": {f.db.AdminDSN, "nobypassrls"},
	} {
		i.ServiceDSN = c.dsn
		problems, err := i.Isolation(t.Context())
		if len(problems) == 0 {
			t.Errorf("%s passed: %v", name, err)
			continue
		}
		wantProblem(t, c.want, problems[:1], err)
	}
}

func TestInspectionNamesTablesWithoutForcedIsolation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newHome(t, "a@example.org", home{})
	_, err := f.conn(t, f.db.AdminDSN).Exec(t.Context(), `alter table instances disable row level security`)
	must(t, err)
	problems, err := inspector(f).Isolation(t.Context())
	wantProblem(t, "not forced on instances", problems, err)
}

func TestInspectionNamesWhatIsWrongWithTheRecorder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := inspector(f)
	i.RecorderDSN = f.db.AdminDSN
	problems, err := i.Recorder(t.Context())
	wantProblem(t, "is a superuser", problems, err)

	i.RecorderDSN = f.db.ServiceDSN
	problems, err = i.Recorder(t.Context())
	must(t, err)
	all := strings.Join(problems, "\n")
	for _, want := range []string{"may read agents", "bypassrls", "may not insert"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in %s", want, all)
		}
	}
	i = inspector(f)
	_, err = f.conn(t, f.db.AdminDSN).Exec(t.Context(), `grant select on audit to `+f.db.Roles.Recorder.Name)
	must(t, err)
	problems, err = i.Recorder(t.Context())
	wantProblem(t, "may read audit", problems, err)
}

func TestASchemaThatIsBehindIsSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin := f.conn(t, f.db.AdminDSN)
	i := inspector(f)
	_, newest, err := i.Schema(t.Context())
	must(t, err)
	_, err = admin.Exec(t.Context(), `delete from goose_db_version where version_id = (select max(version_id) from goose_db_version)`)
	must(t, err)
	version, _, err := i.Schema(t.Context())
	must(t, err)
	if version == 0 || version >= newest {
		t.Errorf("version %d, want the one before %d", version, newest)
	}
	_, err = admin.Exec(t.Context(), `drop table goose_db_version`)
	must(t, err)
	if version, _, err = i.Schema(t.Context()); err != nil || version != 0 {
		t.Errorf("never migrated: version %d, %v; want 0", version, err)
	}
}

func TestAnInspectionErrorDoesNotRepeatThePassword(t *testing.T) {
	t.Parallel()
	i := postgres.Inspector{ServiceDSN: "postgres://role:hunter2@[bad/db", Now: time.Now}
	_, err := i.Server(t.Context())
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
