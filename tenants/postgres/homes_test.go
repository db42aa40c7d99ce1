package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestAKeyOpensOneDoorInTheWholeInstallation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	a, b := f.newHome(t, "a@example.org", home{}), f.newHome(t, "b@example.org", home{})
	pair := func(h home) error {
		return f.In(ctx, h.tenant, func(tx tenants.Tx) error {
			_, err := tx.RegisterConnector(ctx, tenants.Connector{InstanceID: h.instance, Name: "again", PublicKey: a.key})
			return err
		})
	}
	wantErr(t, pair(b), tenants.ErrConflict)
	f.in(t, a.tenant, func(tx tenants.Tx) error { return tx.RevokeConnector(ctx, a.connector) })
	c, err := f.ConnectorByFingerprint(ctx, tenants.Fingerprint(a.key))
	must(t, err)
	if c.RevokedAt.IsZero() {
		t.Error("a revoked connector is not shown as such")
	}
	must(t, pair(b)) // after revocation the machine may be paired anew
	c, err = f.ConnectorByFingerprint(ctx, tenants.Fingerprint(a.key))
	must(t, err)
	if c.TenantID != b.tenant || !c.RevokedAt.IsZero() {
		t.Errorf("the live connector must win over the revoked one: %+v", c)
	}
	_, err = f.ConnectorByFingerprint(ctx, "no such key")
	wantErr(t, err, tenants.ErrNotFound)
	wantErr(t, f.In(ctx, a.tenant, func(tx tenants.Tx) error {
		_, err := tx.RegisterConnector(ctx, tenants.Connector{InstanceID: a.instance, PublicKey: a.key[:31]})
		return err
	}), tenants.ErrInvalid)
}

func TestEpochsAreHandedOutOnceAndOnlyToConnectorsInForce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	other := f.pair(t, h, "laptop")
	var mu sync.Mutex
	got := map[int64]bool{}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			drawn, err := f.NextEpoch(ctx, h.tenant, []tenants.ID{h.connector, other}[i%2])
			epoch := drawn.Number
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if got[epoch] {
				t.Errorf("epoch %d twice", epoch)
			}
			got[epoch] = true
		})
	}
	wg.Wait()
	for e := int64(1); e <= 20; e++ {
		if !got[e] {
			t.Errorf("epoch %d is missing", e)
		}
	}
	_, err := f.NextEpoch(ctx, h.tenant, uuid.New())
	wantErr(t, err, tenants.ErrNotFound)
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.RevokeConnector(ctx, other) })
	_, err = f.NextEpoch(ctx, h.tenant, other)
	wantErr(t, err, tenants.ErrRevoked)
	f.wantRevoked(t, tenants.RevokedConnector, other.String())
	off := false
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		_, err := tx.UpdateInstance(ctx, h.instance, tenants.InstanceUpdate{Enabled: &off})
		return err
	})
	_, err = f.NextEpoch(ctx, h.tenant, h.connector)
	wantErr(t, err, tenants.ErrRevoked)
}

func TestLastSeenOnlyGrows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	must(t, f.MarkSeen(ctx, h.tenant, h.connector, noon, "192.0.2.1", "1.1"))
	must(t, f.MarkSeen(ctx, h.tenant, h.connector, noon.Add(-time.Hour), "192.0.2.9", "1.0")) // a slower node
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		c, err := tx.Connector(ctx, h.connector)
		if !c.LastSeenAt.Equal(noon) || c.LastAddress != "192.0.2.1" || c.Version != "1.1" {
			t.Errorf("got %+v", c)
		}
		return err
	})
}

func TestRulesOfANotebookThatComesBackAreKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	both := []tenants.Notebook{{ID: diary, Name: "Diary"}, {ID: garden, Name: "Garden", Icon: "1f331", Closed: true, Position: 1}}
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.ReplaceNotebooks(ctx, h.instance, both))
		must(t, tx.SetLevel(ctx, h.instance, garden, contract.None))
		must(t, tx.ReplaceNotebooks(ctx, h.instance, nil))
		none, err := tx.Notebooks(ctx, h.instance)
		must(t, err)
		if len(none) != 0 {
			t.Errorf("notebooks %v, want none", none)
		}
		must(t, tx.ReplaceNotebooks(ctx, h.instance, both))
		got, err := tx.Notebooks(ctx, h.instance)
		must(t, err)
		if d := cmp.Diff(both, got); d != "" {
			t.Errorf("notebooks (-want +got)\n%s", d)
		}
		levels, err := tx.Levels(ctx, h.instance)
		if d := cmp.Diff(map[string]contract.Level{garden: contract.None}, levels); d != "" {
			t.Errorf("levels (-want +got)\n%s", d)
		}
		return err
	})
}

func TestAReceiverHasOneShareOfANotebook(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		s := tenants.Share{InstanceID: h.instance, NotebookID: diary, MemberID: h.owner, Level: contract.Read, CreatedBy: h.owner}
		first, err := tx.Share(ctx, s)
		must(t, err)
		s.Level = contract.ReadWrite
		second, err := tx.Share(ctx, s)
		must(t, err)
		all, err := tx.Shares(ctx, tenants.ShareFilter{NotebookID: diary})
		must(t, err)
		if first.ID != second.ID || len(all) != 1 || all[0].Level != contract.ReadWrite || all[0].CreatedBy != h.owner {
			t.Errorf("got %+v", all)
		}
		must(t, tx.Unshare(ctx, first.ID))
		return nil
	})
	for name, s := range map[string]tenants.Share{
		"to nobody":  {InstanceID: h.instance, NotebookID: diary, Level: contract.Read},
		"to both":    {InstanceID: h.instance, NotebookID: diary, MemberID: h.owner, TeamID: h.owner, Level: contract.Read},
		"level none": {InstanceID: h.instance, NotebookID: diary, MemberID: h.owner},
	} {
		err := f.In(ctx, h.tenant, func(tx tenants.Tx) error { _, err := tx.Share(ctx, s); return err })
		if err == nil {
			t.Errorf("a share %s was accepted", name)
		}
	}
}

func TestAnAgentKeepsWhatAnUpdateDoesNotName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	expires := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		made, err := tx.CreateAgent(ctx, tenants.Agent{MemberID: h.owner, InstanceID: h.instance, Name: "x", Origin: tenants.FromOAuth,
			ClientID: "c", Ceiling: contract.ReadWrite, Tools: []string{"fs"}, ExpiresAt: expires})
		must(t, err)
		name := "y"
		got, err := tx.UpdateAgent(ctx, made.ID, tenants.AgentUpdate{Name: &name})
		must(t, err)
		want := made
		want.Name = "y"
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		var all []string
		got, err = tx.UpdateAgent(ctx, made.ID, tenants.AgentUpdate{Tools: &all})
		if got.Tools != nil {
			t.Errorf("tools %v, want no limitation", got.Tools)
		}
		must(t, err)
		found, err := tx.Agents(ctx, tenants.AgentFilter{ClientID: "c", InstanceID: h.instance, MemberID: h.owner})
		if len(found) != 1 || found[0].ID != made.ID {
			t.Errorf("found %v", found)
		}
		return err
	})
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct{ at, want time.Time }{
		{noon, noon}, {noon.Add(30 * time.Second), noon}, {noon.Add(2 * time.Minute), noon.Add(2 * time.Minute)},
	} {
		must(t, f.TouchAgent(ctx, h.tenant, h.agent, step.at))
		f.in(t, h.tenant, func(tx tenants.Tx) error {
			a, err := tx.Agent(ctx, h.agent)
			if !a.LastUsedAt.Equal(step.want) {
				t.Errorf("used at %s: stored %s, want %s", step.at, a.LastUsedAt, step.want)
			}
			return err
		})
	}
}

func TestRevokingAnAgentIsFinalAndTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.RevokeAgent(ctx, h.agent) })
	var first time.Time
	for range 2 {
		f.in(t, h.tenant, func(tx tenants.Tx) error {
			a, err := tx.Agent(ctx, h.agent)
			must(t, err)
			if a.RevokedAt.IsZero() || !first.IsZero() && !a.RevokedAt.Equal(first) {
				t.Errorf("revoked at %s, first at %s", a.RevokedAt, first)
			}
			first = a.RevokedAt
			return tx.RevokeAgent(ctx, h.agent)
		})
	}
	f.wantRevoked(t, tenants.RevokedAgent, h.agent.String())
}

// A connector learns until when others of its instance worked, whatever restarts.
func TestAConnectorThatTakesOverIsToldSoFromThenOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	y := f.pair(t, h, "laptop")
	draw := func(id tenants.ID) tenants.Epoch {
		t.Helper()
		e, err := f.NextEpoch(ctx, h.tenant, id)
		must(t, err)
		return e
	}
	for range 2 {
		if e := draw(h.connector); e.TookOver || !e.OthersUntil.IsZero() {
			t.Errorf("the only connector: %+v", e)
		}
	}
	must(t, f.MarkSeen(ctx, h.tenant, h.connector, time.Now().Add(-time.Hour), "192.0.2.1", "1")) // it came, and its node died
	before := time.Now()
	took := draw(y)
	if !took.TookOver || took.OthersUntil.Before(before.Add(-time.Minute)) {
		t.Errorf("a takeover: %+v", took)
	}
	if e := draw(y); e.TookOver || !e.OthersUntil.Equal(took.OthersUntil) {
		t.Errorf("the same one again: %+v, want until %v", e, took.OthersUntil)
	}
	ended := took.OthersUntil.Add(time.Second) // of the other one's session, on a node that heard late
	must(t, f.MarkSeen(ctx, h.tenant, h.connector, ended, "192.0.2.1", "1"))
	if e := draw(y); e.TookOver || !e.OthersUntil.Equal(ended) {
		t.Errorf("the other one went late: %+v, want until %v", e, ended)
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.RevokeConnector(ctx, y) })
	if e := draw(h.connector); !e.TookOver || e.OthersUntil.Before(took.OthersUntil) {
		t.Errorf("the first one came back after the second was revoked: %+v", e)
	}
	other := f.newHome(t, "b@example.org", home{})
	if e, err := f.NextEpoch(ctx, other.tenant, other.connector); err != nil || e.TookOver || !e.OthersUntil.IsZero() {
		t.Errorf("another tenant: %+v %v", e, err)
	}
}
