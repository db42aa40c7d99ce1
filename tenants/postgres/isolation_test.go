package postgres_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
)

// tenantless are the tables without tenant_id, each with the reason why.
var tenantless = map[string]string{
	"tenants":               "is the tenant: isolated by its own id",
	"users":                 "a person may belong to several tenants",
	"console_sessions":      "a person looks at all their tenants in one session",
	"known_devices":         "a person's, not a tenant's",
	"one_time_links":        "lead to a person, or to one who is not there yet",
	"signing_keys":          "sign for the installation",
	"installation_settings": "belong to the installation",
	"pairings":              "belong to nobody until a person lets the machine in",
	"oauth_clients":         "a registration gives no right to anything",
	"oauth_devices":         "whose notes it will be is not known before a person answers",
	"goose_db_version":      "the schema's version",
}

func TestEveryTableOfATenantIsIsolatedEvenFromItsOwner(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	must(t, f.Maintain(t.Context(), time.Now(), 30)) // partitions count too
	rows, err := f.conn(t, f.db.AdminDSN).Query(t.Context(), `
		select c.relname, c.relrowsecurity and c.relforcerowsecurity,
			exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped),
			coalesce((select a.attname = 'tenant_id' from pg_index x join pg_attribute a on a.attrelid = c.oid and a.attnum = x.indkey[0]
				where x.indrelid = c.oid and x.indisprimary), false)
		from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')`)
	must(t, err)
	type table struct {
		name                        string
		isolated, hasTenant, pkFits bool
	}
	tables, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (x table, err error) {
		err = r.Scan(&x.name, &x.isolated, &x.hasTenant, &x.pkFits)
		return x, err
	})
	must(t, err)
	partitions := 0
	for _, x := range tables {
		_, listed := tenantless[x.name]
		switch {
		case strings.HasPrefix(x.name, "calls_"):
			partitions++
			fallthrough
		case x.hasTenant:
			if !x.isolated {
				t.Errorf("table %s has tenant_id and is not under forced row-level security", x.name)
			}
			if !x.pkFits && x.name != "revocations" { // numbered for the whole installation
				t.Errorf("the primary key of %s does not start with tenant_id", x.name)
			}
		case !listed:
			t.Errorf("table %s has no tenant_id and no reason in the list", x.name)
		case x.name == "tenants" && !x.isolated:
			t.Error("tenants is not under forced row-level security")
		}
	}
	if len(tables) < 20 || partitions == 0 {
		t.Errorf("saw %d tables and %d partitions: the walk is broken", len(tables), partitions)
	}
}

func TestTheServiceOwnsNothingAndPartitionsAreGrantedToNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	must(t, f.Maintain(t.Context(), time.Now(), 30))
	admin := f.conn(t, f.db.AdminDSN)
	var owned, granted, toPublic int
	must(t, admin.QueryRow(t.Context(), `select count(*) from pg_class where pg_get_userbyid(relowner) = any($1)`,
		[]string{f.db.Roles.Service.Name, f.db.Roles.Recorder.Name}).Scan(&owned))
	must(t, admin.QueryRow(t.Context(), `select count(*) from information_schema.role_table_grants
		where table_name like 'calls\_%' and grantee <> $1`, f.db.Roles.Owner.Name).Scan(&granted))
	must(t, admin.QueryRow(t.Context(), `select count(*) from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
		where p.pronamespace = 'public'::regnamespace and p.prosecdef and a.grantee = 0`).Scan(&toPublic))
	if owned != 0 || granted != 0 || toPublic != 0 {
		t.Errorf("service or recorder own %d relations, partitions have %d grants, %d definer functions are open to all; want 0, 0, 0", owned, granted, toPublic)
	}
}

// everywhere are all tables that hold a tenant's rows.
var everywhere = []string{"tenants", "memberships", "invitations", "teams", "team_members", "instances", "notebooks", "connectors", "agents",
	"toggles", "consents", "notebook_levels", "switches", "shares", "memories", "personal_rules", "calls", "audit", "revocations", "ended_sessions", "oauth_codes", "oauth_refresh_tokens",
	"approvals", "spent_confirmations", "transfers", "feedback", "mascots", "mascot_purchases"}

// fill puts at least one row into each of them.
func (f fixture) fill(t *testing.T, h home) {
	t.Helper()
	ctx := t.Context()
	must(t, f.Maintain(ctx, time.Now(), 30))
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		team, err := tx.CreateTeam(ctx, "family")
		must(t, err)
		guest := invitationOf("invitation", "guest@example.org", tenants.Member, h.owner)
		guest.ExpiresAt = time.Now().Add(time.Hour)
		must2(t)(tx.Invite(ctx, guest))
		must(t, tx.AddTeamMember(ctx, team.ID, h.owner))
		must(t, tx.SetToggle(ctx, h.instance, tenants.Toggle{Tool: "fs", Action: "ls", Enabled: true}))
		must(t, tx.SetConsent(ctx, h.instance, tenants.Consent{Tool: "block", Action: "delete", Mode: tenants.ConsentConsole}))
		must(t, tx.SetLevel(ctx, h.instance, diary, contract.ReadWrite))
		must(t, tx.SetSwitch(ctx, h.instance, contract.SwitchSync, true))
		_, err = tx.Share(ctx, tenants.Share{InstanceID: h.instance, NotebookID: diary, TeamID: team.ID, Level: contract.Read})
		must(t, err)
		must(t, tx.Remember(ctx, tenants.Memory{InstanceID: h.instance, MemberID: h.owner, Version: 1, Text: "x", AgentID: h.agent, RequestID: tenants.NewID(), WrittenAt: time.Now()}))
		must(t, tx.SetRules(ctx, h.instance, h.owner, "be brief"))
		must(t, tx.RevokeToken(ctx, "jti", time.Now().Add(time.Hour)))
		must(t, tx.PutOAuthCode(ctx, consentOf(h, "code")))
		must(t, tx.PutRefreshToken(ctx, tenants.RefreshToken{Hash: tenants.HashSecret("refresh"), AgentID: h.agent, ExpiresAt: time.Now().Add(time.Hour)}))
		must(t, tx.OpenApproval(ctx, approvalOf(h), tenants.ApprovalBounds{PerAgent: 1, InAll: 1}))
		must(t, tx.PutTransfer(ctx, transferOf(h), tenants.TransferBounds{PerAgent: 1, InAll: 1}))
		_, err = tx.SpendConfirmation(ctx, tenants.NewID(), time.Now().Add(time.Hour))
		must(t, err)
		must2(t)(tx.AddFeedback(ctx, feedbackOf(h, "x"), time.Now()))
		return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "system", Verb: "test"})
	})
	must(t, f.EndSession(ctx, tenants.EndedSession{TenantID: h.tenant, AgentID: h.agent, SessionID: tenants.NewID(), ExpiresAt: time.Now().Add(time.Hour)}))
	must(t, f.CopyCalls(ctx, []tenants.Call{{TenantID: h.tenant, ID: h.agent, StartedAt: time.Now(), InstanceID: h.instance,
		MemberID: h.owner, AgentID: h.agent, Tool: "fs", Action: "ls", Outcome: tenants.OutcomeOK}}))
	must(t, f.EarnCoins(ctx, []tenants.Earned{{Tenant: h.tenant, Coins: 9, Tool: "fs", Action: "ls", At: time.Now()}}))
	f.in(t, h.tenant, func(tx tenants.Tx) error { must2(t)(tx.Buy(ctx, purchaseOf(h, "milk", 3))); return nil })
}

func TestWithoutATenantNothingIsSeenAndNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	f.fill(t, h)
	service, owner := f.conn(t, f.db.ServiceDSN), f.conn(t, f.db.OwnerDSN)
	// A setting that was used once is '' afterwards, not NULL: both must see nothing.
	for _, used := range []bool{false, true} {
		if used {
			_, err := service.Exec(t.Context(), `begin; select set_config('app.tenant', '`+h.tenant.String()+`', true); commit`)
			must(t, err)
		}
		for _, table := range everywhere {
			if n := count(t, service, table); n != 0 {
				t.Errorf("service without tenant (used before: %v) sees %d rows of %s", used, n, table)
			}
		}
	}
	read := []string{"revocations", "ended_sessions", "tenants", "mascots"} // by its functions
	for _, table := range everywhere {
		if n := count(t, owner, table); n != 0 && !slices.Contains(read, table) {
			t.Errorf("the owner sees %d rows of %s", n, table)
		}
	}
	_, err := service.Exec(t.Context(), `insert into teams (tenant_id, id, name) values ($1, gen_random_uuid(), 'x')`, h.tenant)
	wantCode(t, err, "42501")
}

func TestATenantCannotWriteForAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := f.newHome(t, "a@example.org", home{}), f.newHome(t, "b@example.org", home{})
	err := f.In(t.Context(), a.tenant, func(in tenants.Tx) error {
		return postgres.ExecIn(t.Context(), in, `insert into teams (tenant_id, id, name) values ($1, gen_random_uuid(), 'x')`, b.tenant)
	})
	wantCode(t, err, "42501")
	err = f.In(t.Context(), a.tenant, func(in tenants.Tx) error {
		return postgres.ExecIn(t.Context(), in, `update agents set tenant_id = $1`, b.tenant)
	})
	wantCode(t, err, "42501")
}

func TestTenantsWithEqualIdsDoNotMeet(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	ids := home{instance: tenants.NewID(), connector: tenants.NewID(), agent: tenants.NewID()}
	a := f.newHome(t, "a@example.org", ids)
	b := f.newHome(t, "b@example.org", ids) // same instance, connector, agent and notebook ids
	if a.instance != b.instance || a.connector != b.connector || a.agent != b.agent {
		t.Fatal("ids do not collide: the test is void")
	}
	f.in(t, a.tenant, func(tx tenants.Tx) error {
		must(t, tx.SetLevel(ctx, a.instance, diary, contract.None))
		must(t, tx.SetToggle(ctx, a.instance, tenants.Toggle{Tool: "fs", Action: "ls"}))
		must(t, tx.SetPolicyEffect(ctx, a.connector, contract.PolicyEffect{MaxLevel: contract.Read, Digest: "a"}))
		return tx.RevokeAgent(ctx, a.agent)
	})
	must2(t)(f.NextEpoch(ctx, a.tenant, a.connector))

	snap, err := f.LoadSnapshot(ctx, b.tenant, b.agent)
	must(t, err)
	if len(snap.Levels) != 0 || len(snap.Toggles) != 0 || !snap.Agent.RevokedAt.IsZero() || snap.Connector.Effect != nil || snap.Instance.Epoch != 0 {
		t.Errorf("b sees what was done in a: %+v", snap)
	}
	if snap.Member != b.owner || snap.Notebooks[0].Name != "Diary of b@example.org" {
		t.Errorf("b got a's agent or notebooks: %+v", snap)
	}
	for _, h := range []home{a, b} {
		c, err := f.ConnectorByFingerprint(ctx, tenants.Fingerprint(h.key))
		must(t, err)
		if c.TenantID != h.tenant {
			t.Errorf("the key of tenant %s opens %s", h.tenant, c.TenantID)
		}
		f.in(t, h.tenant, func(tx tenants.Tx) error {
			members, err := tx.Members(ctx)
			must(t, err)
			if len(members) != 1 || members[0].User.ID != h.owner {
				t.Errorf("members of %s: %v", h.tenant, members)
			}
			return nil
		})
	}
}

func TestAnotherTenantsIdsAreNotFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	a, b := f.newHome(t, "a@example.org", home{}), f.newHome(t, "b@example.org", home{})
	_, err := f.LoadSnapshot(ctx, a.tenant, b.agent)
	wantErr(t, err, tenants.ErrNotFound)
	_, err = f.NextEpoch(ctx, a.tenant, b.connector)
	wantErr(t, err, tenants.ErrNotFound)
	for name, fn := range map[string]func(tenants.Tx) error{
		"instance":  func(tx tenants.Tx) error { _, err := tx.Instance(ctx, b.instance); return err },
		"connector": func(tx tenants.Tx) error { _, err := tx.Connector(ctx, b.connector); return err },
		"agent":     func(tx tenants.Tx) error { _, err := tx.Agent(ctx, b.agent); return err },
		"member":    func(tx tenants.Tx) error { _, err := tx.Member(ctx, b.owner); return err },
		"revoke":    func(tx tenants.Tx) error { return tx.RevokeAgent(ctx, b.agent) },
		"level":     func(tx tenants.Tx) error { return tx.SetLevel(ctx, b.instance, diary, contract.Read) },
		"agent on a foreign instance": func(tx tenants.Tx) error {
			_, err := tx.CreateAgent(ctx, tenants.Agent{MemberID: a.owner, InstanceID: b.instance, Name: "x", Origin: tenants.FromToken})
			return err
		},
		"agent of a stranger": func(tx tenants.Tx) error {
			_, err := tx.CreateAgent(ctx, tenants.Agent{MemberID: b.owner, InstanceID: a.instance, Name: "x", Origin: tenants.FromToken})
			return err
		},
	} {
		if err := f.In(ctx, a.tenant, fn); !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
	}
}

func TestTheTenantEndsWithItsTransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newHome(t, "a@example.org", home{})
	for range 8 { // every connection of the pool has been used for a
		f.in(t, a.tenant, func(tx tenants.Tx) error { _, err := tx.Members(t.Context()); return err })
		must2(t)(f.LoadSnapshot(t.Context(), a.tenant, a.agent))
	}
	for range 8 {
		var n int
		must(t, f.ServicePool().QueryRow(t.Context(), `select count(*) from agents`).Scan(&n))
		if n != 0 {
			t.Fatal("a pooled connection still carries the tenant")
		}
	}
}

func TestTheRecorderCanAddCallsAndNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	f.fill(t, h)
	recorder := f.conn(t, f.db.RecorderDSN)
	for _, table := range append([]string{"users", "signing_keys", "installation_settings"}, everywhere...) {
		_, err := recorder.Exec(t.Context(), `select from `+table)
		wantCode(t, err, "42501")
	}
	for _, sql := range []string{
		`update calls set tool = 'x'`, `delete from calls`, `truncate calls`,
		`insert into users (id, email) values (gen_random_uuid(), 'x@example.org')`,
		`select drop_call_partitions(current_date)`, `select revocation_feed(0, 1)`, `select ended_session_feed(0, 1)`, `select purge_ended_sessions()`, `select purge_oauth()`, `select purge_invitations()`,
		`insert into calls_` + time.Now().UTC().Format("20060102") + ` default values`,
		`create table t ()`,
	} {
		_, err := recorder.Exec(t.Context(), sql)
		wantCode(t, err, "42501")
	}
}

func TestTheServiceCannotRewriteRecords(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	service := f.conn(t, f.db.ServiceDSN)
	for _, sql := range []string{
		`update audit set verb = 'x'`, `delete from audit`, `delete from revocations`, `delete from ended_sessions`, `update ended_sessions set expires_at = now()`, `delete from tenants`, `insert into calls default values`,
		`update calls set tool = 'x'`, `drop table calls`, `alter table teams disable row level security`, `create table t ()`,
	} {
		_, err := service.Exec(t.Context(), sql)
		wantCode(t, err, "42501")
	}
}

func count(t *testing.T, c *pgx.Conn, table string) (n int) {
	t.Helper()
	err := c.QueryRow(t.Context(), `select count(*) from `+table).Scan(&n)
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
	return n
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != code {
		t.Errorf("got %v, want SQLSTATE %s", err, code)
	}
}

// must2 checks the error of a call whose value is not looked at.
func must2(t testing.TB) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		must(t, err)
	}
}
