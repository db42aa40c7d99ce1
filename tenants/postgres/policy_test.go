package postgres_test

import (
	"context"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// TestEveryChangeASnapshotShowsRaisesThePolicyVersionByOne runs the changes in
// order, each in a transaction of its own.
func TestEveryChangeASnapshotShowsRaisesThePolicyVersionByOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "owner@example.org", home{})
	user := f.person(t, "member@example.org").ID
	standby := f.pair(t, h, "laptop")
	var team tenants.Team
	var share tenants.Share
	f.in(t, h.tenant, func(tx tenants.Tx) (err error) { team, err = tx.CreateTeam(ctx, "team"); return err })
	name, level, off, status, tools := "new name", contract.ReadWrite, false, tenants.Suspended, []string{"fs"}
	active := tenants.Active
	books := []tenants.Notebook{{ID: diary, Name: "Diary"}, {ID: garden, Name: "Garden"}}
	effect := contract.PolicyEffect{MaxLevel: contract.Read, Digest: "1"}
	toggle := tenants.Toggle{Tool: "fs", Action: "ls"}

	for _, step := range []struct {
		what   string
		raises int64
		do     func(tx tenants.Tx) error
	}{
		{"add member", 1, func(tx tenants.Tx) error { return tx.AddMember(ctx, user, tenants.Member) }},
		{"role", 1, func(tx tenants.Tx) error { return tx.SetRole(ctx, user, tenants.Admin) }},
		{"into team", 1, func(tx tenants.Tx) error { return tx.AddTeamMember(ctx, team.ID, user) }},
		{"into team again", 0, func(tx tenants.Tx) error { return tx.AddTeamMember(ctx, team.ID, user) }},
		{"share", 1, func(tx tenants.Tx) (err error) {
			share, err = tx.Share(ctx, tenants.Share{InstanceID: h.instance, NotebookID: diary, TeamID: team.ID, Level: contract.Read})
			return err
		}},
		{"raise share", 1, func(tx tenants.Tx) error {
			_, err := tx.Share(ctx, tenants.Share{InstanceID: h.instance, NotebookID: diary, TeamID: team.ID, Level: contract.ReadWrite})
			return err
		}},
		{"unshare", 1, func(tx tenants.Tx) error { return tx.Unshare(ctx, share.ID) }},
		{"out of team", 1, func(tx tenants.Tx) error { return tx.RemoveTeamMember(ctx, team.ID, user) }},
		{"delete team", 1, func(tx tenants.Tx) error { return tx.DeleteTeam(ctx, team.ID) }},
		{"toggle", 1, func(tx tenants.Tx) error { return tx.SetToggle(ctx, h.instance, toggle) }},
		{"same toggle", 0, func(tx tenants.Tx) error { return tx.SetToggle(ctx, h.instance, toggle) }},
		{"clear toggle", 1, func(tx tenants.Tx) error { return tx.ClearToggle(ctx, h.instance, "fs", "ls") }},
		{"consent", 1, func(tx tenants.Tx) error {
			return tx.SetConsent(ctx, h.instance, tenants.Consent{Tool: "fs", Action: "rm", Mode: tenants.ConsentDeny})
		}},
		{"level", 1, func(tx tenants.Tx) error { return tx.SetLevel(ctx, h.instance, diary, contract.None) }},
		{"same level", 0, func(tx tenants.Tx) error { return tx.SetLevel(ctx, h.instance, diary, contract.None) }},
		{"clear level", 1, func(tx tenants.Tx) error { return tx.ClearLevel(ctx, h.instance, diary) }},
		{"switch on", 1, func(tx tenants.Tx) error { return tx.SetSwitch(ctx, h.instance, contract.SwitchSync, true) }},
		{"switch on again", 0, func(tx tenants.Tx) error { return tx.SetSwitch(ctx, h.instance, contract.SwitchSync, true) }},
		{"switch off", 1, func(tx tenants.Tx) error { return tx.SetSwitch(ctx, h.instance, contract.SwitchSync, false) }},
		{"notebooks", 1, func(tx tenants.Tx) error { return tx.ReplaceNotebooks(ctx, h.instance, books) }},
		{"same notebooks", 0, func(tx tenants.Tx) error { return tx.ReplaceNotebooks(ctx, h.instance, books) }},
		{"one notebook gone", 1, func(tx tenants.Tx) error { return tx.ReplaceNotebooks(ctx, h.instance, books[:1]) }},
		{"home policy", 1, func(tx tenants.Tx) error { return tx.SetPolicyEffect(ctx, h.connector, effect) }},
		{"same home policy", 0, func(tx tenants.Tx) error { return tx.SetPolicyEffect(ctx, h.connector, effect) }},
		{"revoke connector", 1, func(tx tenants.Tx) error { return tx.RevokeConnector(ctx, standby) }},
		{"default level", 1, func(tx tenants.Tx) error {
			_, err := tx.UpdateInstance(ctx, h.instance, tenants.InstanceUpdate{DefaultLevel: &level})
			return err
		}},
		{"disable instance", 1, func(tx tenants.Tx) error {
			_, err := tx.UpdateInstance(ctx, h.instance, tenants.InstanceUpdate{Enabled: &off})
			return err
		}},
		{"agent's tools", 1, func(tx tenants.Tx) error {
			_, err := tx.UpdateAgent(ctx, h.agent, tenants.AgentUpdate{Tools: &tools})
			return err
		}},
		{"revoke agent", 1, func(tx tenants.Tx) error { return tx.RevokeAgent(ctx, h.agent) }},
		{"revoke agent again", 0, func(tx tenants.Tx) error { return tx.RevokeAgent(ctx, h.agent) }},
		{"revoke token", 1, func(tx tenants.Tx) error { return tx.RevokeToken(ctx, "jti", time.Now().Add(time.Hour)) }},
		{"limits", 1, func(tx tenants.Tx) error {
			_, err := tx.UpdateTenant(ctx, tenants.TenantUpdate{Limits: &tenants.Limits{CallsPerMinute: 1}})
			return err
		}},
		{"suspend", 1, func(tx tenants.Tx) error {
			_, err := tx.UpdateTenant(ctx, tenants.TenantUpdate{Status: &status})
			return err
		}},
		{"two changes at once", 1, func(tx tenants.Tx) error {
			must2(t)(tx.UpdateTenant(ctx, tenants.TenantUpdate{Status: &active, Name: &name}))
			must(t, tx.SetToggle(ctx, h.instance, toggle))
			return tx.SetLevel(ctx, h.instance, diary, contract.Read)
		}},
		{"remove member", 1, func(tx tenants.Tx) error { return tx.RemoveMember(ctx, user) }},
		{"audit", 0, func(tx tenants.Tx) error {
			return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "system", Verb: "x"})
		}},
	} {
		before := f.version(t, h)
		f.in(t, h.tenant, step.do)
		if got := f.version(t, h) - before; got != step.raises {
			t.Errorf("%s raised the policy version by %d, want %d", step.what, got, step.raises)
		}
	}
}

// TestWhatPeopleDecideRaisesTheRulesVersion: what merely happens, at home or by
// another agent, leaves it as it is, so that approvals stay good.
func TestWhatPeopleDecideRaisesTheRulesVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "owner@example.org", home{})
	books := []tenants.Notebook{{ID: diary, Name: "Diary"}, {ID: garden, Name: "Garden"}}
	name, effect := "new name", contract.PolicyEffect{MaxLevel: contract.Read, Digest: "1"}
	with, without := effect, contract.PolicyEffect{MaxLevel: contract.ReadWrite, Digest: "2"}
	with.Tools = []contract.HomeTool{{Name: "ring"}}
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.SetPolicyEffect(ctx, h.connector, effect) })
	for _, step := range []struct {
		what   string
		raises bool
		do     func(tx tenants.Tx) error
	}{
		{"notebooks", false, func(tx tenants.Tx) error { return tx.ReplaceNotebooks(ctx, h.instance, books) }},
		{"a notebook gone", false, func(tx tenants.Tx) error { return tx.ReplaceNotebooks(ctx, h.instance, books[:1]) }},
		{"another agent", false, func(tx tenants.Tx) error {
			_, err := tx.CreateAgent(ctx, tenants.Agent{MemberID: h.owner, InstanceID: h.instance, Name: "other", Origin: tenants.FromToken, Ceiling: contract.Read})
			return err
		}},
		{"a token revoked", false, func(tx tenants.Tx) error { return tx.RevokeToken(ctx, "jti", time.Now().Add(time.Hour)) }},
		{"a plugin's tool", false, func(tx tenants.Tx) error { return tx.SetPolicyEffect(ctx, h.connector, with) }},
		{"level", true, func(tx tenants.Tx) error { return tx.SetLevel(ctx, h.instance, diary, contract.None) }},
		{"agent", true, func(tx tenants.Tx) error {
			_, err := tx.UpdateAgent(ctx, h.agent, tenants.AgentUpdate{Name: &name})
			return err
		}},
		{"home policy", true, func(tx tenants.Tx) error { return tx.SetPolicyEffect(ctx, h.connector, without) }},
		{"tenant", true, func(tx tenants.Tx) error {
			_, err := tx.UpdateTenant(ctx, tenants.TenantUpdate{Name: &name})
			return err
		}},
		{"a notebook, then a level", true, func(tx tenants.Tx) error {
			must(t, tx.ReplaceNotebooks(ctx, h.instance, books))
			return tx.SetLevel(ctx, h.instance, diary, contract.Read)
		}},
	} {
		before, err := f.LoadSnapshot(ctx, h.tenant, h.agent)
		must(t, err)
		f.in(t, h.tenant, step.do)
		after, err := f.LoadSnapshot(ctx, h.tenant, h.agent)
		must(t, err)
		if after.PolicyVersion != before.PolicyVersion+1 {
			t.Errorf("%s: policy version %d, then %d", step.what, before.PolicyVersion, after.PolicyVersion)
		}
		if want := before.RulesVersion; step.raises && after.RulesVersion != after.PolicyVersion || !step.raises && after.RulesVersion != want {
			t.Errorf("%s: rules version %d, then %d of %d", step.what, want, after.RulesVersion, after.PolicyVersion)
		}
	}
}

func TestWorkingDoesNotRaiseThePolicyVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "owner@example.org", home{})
	before := f.version(t, h)
	must2(t)(f.NextEpoch(ctx, h.tenant, h.connector))
	must(t, f.MarkSeen(ctx, h.tenant, h.connector, time.Now(), "192.0.2.1", "1"))
	must(t, f.TouchAgent(ctx, h.tenant, h.agent, time.Now()))
	if got := f.version(t, h); got != before {
		t.Errorf("version went from %d to %d", before, got)
	}
}

func TestAChangeIsPushedWhenItCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "owner@example.org", home{})
	events := f.listen(t)
	if e := <-events; !e.Lost {
		t.Fatalf("the first event is %+v, want Lost", e)
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.SetLevel(t.Context(), h.instance, diary, contract.None) })
	if e := <-events; e.Policy != h.tenant || e.Version != f.version(t, h) {
		t.Errorf("got %+v, want tenant %s at its new version", e, h.tenant)
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.RevokeToken(t.Context(), "jti", time.Now().Add(time.Hour)) })
	var seq int64
	for range 2 { // the policy push and the revocation push, in either order
		if e := <-events; e.Revocation != 0 {
			seq = e.Revocation
		}
	}
	all, err := f.Revocations(t.Context(), 0, 0)
	must(t, err)
	if len(all) != 1 || all[0].Seq != seq {
		t.Errorf("pushed %d, feed has %v", seq, all)
	}
}

func TestListeningGoesOnOverQuietTimesAndLostConnections(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "owner@example.org", home{})
	f.SetListenIdle(20 * time.Millisecond)
	events := f.listen(t)
	<-events
	admin := f.conn(t, f.db.AdminDSN)
	_, err := admin.Exec(t.Context(), `select pg_sleep(0.1)`) // several quiet times
	must(t, err)
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.SetLevel(t.Context(), h.instance, diary, contract.None) })
	if e := <-events; e.Policy != h.tenant {
		t.Errorf("after quiet times: got %+v, want a push over the same connection", e)
	}
	_, err = admin.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
		where application_name = 'siyuan-listen' and datname = current_database()`)
	must(t, err)
	if e := <-events; !e.Lost {
		t.Errorf("after a lost connection: got %+v, want Lost", e)
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.SetLevel(t.Context(), h.instance, diary, contract.Read) })
	if e := <-events; e.Policy != h.tenant {
		t.Errorf("after connecting again: got %+v", e)
	}
}

// listen runs Listen until the test ends; the channel holds more than any test
// makes.
func (f fixture) listen(t *testing.T) <-chan tenants.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	events, ended := make(chan tenants.Event, 64), make(chan error, 1)
	go func() { ended <- f.Listen(ctx, func(e tenants.Event) { events <- e }) }()
	t.Cleanup(func() {
		cancel()
		wantErr(t, <-ended, context.Canceled)
	})
	return events
}

func (f fixture) version(t *testing.T, h home) (v int64) {
	t.Helper()
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		tenant, err := tx.Tenant(t.Context())
		v = tenant.PolicyVersion
		return err
	})
	return v
}

// pair adds a second connector to the home's instance.
func (f fixture) pair(t *testing.T, h home, name string) (id tenants.ID) {
	t.Helper()
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		c, err := tx.RegisterConnector(t.Context(), tenants.Connector{InstanceID: h.instance, Name: name, PublicKey: newKey(t)})
		id = c.ID
		return err
	})
	return id
}
