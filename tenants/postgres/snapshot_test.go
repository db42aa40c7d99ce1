package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// TestASnapshotShowsRoleAndTheHighestShare crosses roles with direct and team
// shares. The expected level is the highest that reaches the member.
func TestASnapshotShowsRoleAndTheHighestShare(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "owner@example.org", home{})
	const none, r, rw, rwd = contract.None, contract.Read, contract.ReadWrite, contract.ReadWriteDelete
	cases := []struct {
		direct contract.Level
		teams  []contract.Level // of teams the member is in
		others contract.Level   // of a team the member is not in
		want   contract.Level   // None: the notebook is not in Shares
	}{
		{none, nil, none, none},
		{r, nil, none, r},
		{none, []contract.Level{rw}, none, rw},
		{r, []contract.Level{rw}, none, rw},
		{rwd, []contract.Level{r}, none, rwd},
		{none, []contract.Level{r, rwd}, none, rwd},
		{none, nil, rwd, none},
		{r, nil, rwd, r},
	}
	for i, c := range cases {
		for _, role := range []tenants.Role{tenants.Owner, tenants.Admin, tenants.Member} {
			user := f.person(t, fmt.Sprintf("%s%d@example.org", role, i)).ID
			notebook := fmt.Sprintf("notebook-%d-%s", i, role)
			var agent tenants.Agent
			f.in(t, h.tenant, func(tx tenants.Tx) (err error) {
				must(t, tx.AddMember(ctx, user, role))
				agent, err = tx.CreateAgent(ctx, tenants.Agent{MemberID: user, InstanceID: h.instance, Name: "a", Origin: tenants.FromOAuth, Ceiling: rwd})
				must(t, err)
				share := func(s tenants.Share) {
					if s.Level != none {
						s.InstanceID, s.NotebookID = h.instance, notebook
						must2(t)(tx.Share(ctx, s))
					}
				}
				share(tenants.Share{MemberID: user, Level: c.direct})
				for n, level := range append(c.teams, c.others) {
					team, err := tx.CreateTeam(ctx, fmt.Sprint(notebook, n))
					must(t, err)
					if n < len(c.teams) {
						must(t, tx.AddTeamMember(ctx, team.ID, user))
					}
					share(tenants.Share{TeamID: team.ID, Level: level})
				}
				return nil
			})
			snap, err := f.LoadSnapshot(ctx, h.tenant, agent.ID)
			must(t, err)
			if snap.Role != role || snap.Member != user {
				t.Errorf("case %d: member %s with role %s, want %s with %s", i, snap.Member, snap.Role, user, role)
			}
			want := map[string]contract.Level{}
			if c.want != none {
				want[notebook] = c.want
			}
			if d := cmp.Diff(want, snap.Shares); d != "" {
				t.Errorf("case %d, %s: shares (-want +got)\n%s", i, role, d)
			}
		}
	}
}

func TestASnapshotHoldsEverythingAdmissionNeeds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "owner@example.org", home{})
	expires := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	effect := contract.PolicyEffect{MaxLevel: contract.Read, Notebooks: map[string]contract.Level{diary: contract.None}, Vetoed: []string{"av"}, Digest: "d1"}
	limits, settings := tenants.Limits{CallsPerMinute: 60, WriteBudget: 7}, tenants.Settings{StrictWrites: tenants.StrictRequired}
	seen := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	notebooks := []tenants.Notebook{{ID: garden, Name: "Garten", Icon: "1f331", Position: 0}, {ID: diary, Name: "日记", Closed: true, Position: 1}}
	var agent tenants.Agent
	f.in(t, h.tenant, func(tx tenants.Tx) (err error) {
		must2(t)(tx.UpdateTenant(ctx, tenants.TenantUpdate{Limits: &limits, Settings: &settings}))
		agent, err = tx.CreateAgent(ctx, tenants.Agent{MemberID: h.owner, InstanceID: h.instance, Name: "Cursor", Origin: tenants.FromOAuth,
			ClientID: "https://cursor.example/client", Ceiling: contract.ReadWrite, Tools: []string{"fs", "block"}, ExpiresAt: expires})
		must(t, err)
		must(t, tx.SetToggle(ctx, h.instance, tenants.Toggle{Tool: "block", Action: "delete", Enabled: false}))
		must(t, tx.SetToggle(ctx, h.instance, tenants.Toggle{Tool: "av", Action: "list", Enabled: true}))
		must(t, tx.SetConsent(ctx, h.instance, tenants.Consent{Tool: "block", Action: "delete", Mode: tenants.ConsentConsole}))
		must(t, tx.SetLevel(ctx, h.instance, garden, contract.ReadWriteDelete))
		must(t, tx.SetSwitch(ctx, h.instance, contract.SwitchTags, true))
		must(t, tx.SetSwitch(ctx, h.instance, contract.SwitchSync, true))
		must(t, tx.ReplaceNotebooks(ctx, h.instance, notebooks))
		return tx.SetPolicyEffect(ctx, h.connector, effect)
	})
	drawn, err := f.NextEpoch(ctx, h.tenant, h.connector)
	epoch := drawn.Number
	must(t, err)
	must(t, f.MarkSeen(ctx, h.tenant, h.connector, seen, "192.0.2.1", "1.0"))

	got, err := f.LoadSnapshot(ctx, h.tenant, agent.ID)
	must(t, err)
	want := &tenants.Snapshot{
		TenantID: h.tenant, TenantStatus: tenants.Active, PolicyVersion: got.PolicyVersion, RulesVersion: got.RulesVersion, Limits: limits, Settings: settings,
		Agent: tenants.Agent{ID: agent.ID, MemberID: h.owner, InstanceID: h.instance, Name: "Cursor", Origin: tenants.FromOAuth,
			ClientID: "https://cursor.example/client", Ceiling: contract.ReadWrite, Tools: []string{"fs", "block"},
			CreatedAt: got.Agent.CreatedAt, ExpiresAt: expires},
		Member: h.owner, Role: tenants.Owner,
		Instance: tenants.Instance{ID: h.instance, Name: "home", DefaultLevel: contract.Read, Enabled: true, Epoch: epoch, CreatedAt: got.Instance.CreatedAt},
		Levels:   map[string]contract.Level{garden: contract.ReadWriteDelete},
		Shares:   map[string]contract.Level{},
		Toggles:  []tenants.Toggle{{Tool: "av", Action: "list", Enabled: true}, {Tool: "block", Action: "delete"}},
		Consents: []tenants.Consent{{Tool: "block", Action: "delete", Mode: tenants.ConsentConsole}},
		Switches: []contract.Switch{contract.SwitchSync, contract.SwitchTags}, Notebooks: notebooks,
		Connector: &tenants.SnapshotConnector{ID: h.connector, Name: "desktop", Epoch: epoch, LastSeenAt: seen, Effect: &effect},
		LoadedAt:  got.LoadedAt,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("snapshot (-want +got)\n%s", d)
	}
	if got.PolicyVersion < 2 || got.LoadedAt.IsZero() {
		t.Errorf("version %d, loaded at %s", got.PolicyVersion, got.LoadedAt)
	}
}

func TestASnapshotOfABareAgentHasEmptyCollections(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "owner@example.org", home{})
	var agent tenants.Agent
	f.in(t, h.tenant, func(tx tenants.Tx) (err error) {
		in, err := tx.CreateInstance(ctx, tenants.Instance{Name: "empty", DefaultLevel: contract.None})
		must(t, err)
		agent, err = tx.CreateAgent(ctx, tenants.Agent{MemberID: h.owner, InstanceID: in.ID, Name: "a", Origin: tenants.FromToken})
		return err
	})
	got, err := f.LoadSnapshot(ctx, h.tenant, agent.ID)
	must(t, err)
	if got.Connector != nil || got.Agent.Tools != nil || got.Instance.DefaultLevel != contract.None || got.Agent.Ceiling != contract.None {
		t.Errorf("got %+v", got)
	}
	if got.Levels == nil || got.Shares == nil || len(got.Levels)+len(got.Shares)+len(got.Toggles)+len(got.Switches)+len(got.Notebooks) != 0 {
		t.Errorf("collections: %+v", got)
	}
}

func TestASnapshotShowsTheConnectorWithTheNewestEpoch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "owner@example.org", home{})
	standby := f.pair(t, h, "laptop")
	var last int64
	for _, id := range []tenants.ID{h.connector, standby, h.connector} {
		drawn, err := f.NextEpoch(ctx, h.tenant, id)
		epoch := drawn.Number
		must(t, err)
		if epoch <= last {
			t.Errorf("epoch %d after %d", epoch, last)
		}
		last = epoch
		snap, err := f.LoadSnapshot(ctx, h.tenant, h.agent)
		must(t, err)
		if snap.Connector.ID != id || snap.Connector.Epoch != epoch {
			t.Errorf("active connector %s at %d, want %s at %d", snap.Connector.ID, snap.Connector.Epoch, id, epoch)
		}
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.RevokeConnector(ctx, h.connector) })
	snap, err := f.LoadSnapshot(ctx, h.tenant, h.agent)
	must(t, err)
	if snap.Connector.ID != standby {
		t.Error("a revoked connector is still shown as the active one")
	}
}

func TestASnapshotShowsWhatWasTakenBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "owner@example.org", home{})
	member := f.person(t, "member@example.org").ID
	var agent tenants.Agent
	f.in(t, h.tenant, func(tx tenants.Tx) (err error) {
		must(t, tx.AddMember(ctx, member, tenants.Member))
		must2(t)(tx.Share(ctx, tenants.Share{InstanceID: h.instance, NotebookID: diary, MemberID: member, Level: contract.Read}))
		agent, err = tx.CreateAgent(ctx, tenants.Agent{MemberID: member, InstanceID: h.instance, Name: "a", Origin: tenants.FromToken})
		return err
	})
	suspended := tenants.Suspended
	off := false
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.RemoveMember(ctx, member))
		must2(t)(tx.UpdateInstance(ctx, h.instance, tenants.InstanceUpdate{Enabled: &off}))
		_, err := tx.UpdateTenant(ctx, tenants.TenantUpdate{Status: &suspended})
		return err
	})
	snap, err := f.LoadSnapshot(ctx, h.tenant, agent.ID)
	must(t, err)
	if snap.Role != "" || len(snap.Shares) != 0 || snap.Agent.RevokedAt.IsZero() || snap.Instance.Enabled || snap.TenantStatus != tenants.Suspended {
		t.Errorf("after removal, disabling and suspension: %+v", snap)
	}
	_, err = f.LoadSnapshot(ctx, h.tenant, uuid.New())
	wantErr(t, err, tenants.ErrNotFound)
}

// BenchmarkLoadSnapshot is one round trip for a home with 200 notebooks, each
// with a level and a share.
func BenchmarkLoadSnapshot(b *testing.B) {
	f := newFixture(b)
	ctx := b.Context()
	h := f.newHome(b, "owner@example.org", home{})
	f.in(b, h.tenant, func(tx tenants.Tx) error {
		var all []tenants.Notebook
		for i := range 200 {
			id := fmt.Sprintf("20260101000000-%07d", i)
			all = append(all, tenants.Notebook{ID: id, Name: "Notebook", Position: i})
			must(b, tx.SetLevel(ctx, h.instance, id, contract.ReadWrite))
			must2(b)(tx.Share(ctx, tenants.Share{InstanceID: h.instance, NotebookID: id, MemberID: h.owner, Level: contract.Read}))
		}
		return tx.ReplaceNotebooks(ctx, h.instance, all)
	})
	for b.Loop() {
		must2(b)(f.LoadSnapshot(ctx, h.tenant, h.agent))
	}
}
