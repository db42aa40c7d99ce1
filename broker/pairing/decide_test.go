package pairing

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"siyuan-broker/tenants"
)

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

func TestOnlyOwnersAndAdminsLetAMachineInAndOnlyWhereTheyAre(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	home, work := f.household("Home"), f.household("Work")
	admin, member := f.member(home, "admin@example.org", tenants.Admin), f.member(home, "member@example.org", tenants.Member)
	stranger := f.person("stranger@example.org")
	for name, c := range map[string]struct {
		who  tenants.ID
		to   Place
		want error
	}{
		"an owner":                     {home.owner, Place{Tenant: home.id, Instance: home.instance}, nil},
		"an admin":                     {admin, Place{Tenant: home.id, Instance: home.instance}, nil},
		"a member":                     {member, Place{Tenant: home.id, Instance: home.instance}, ErrNotAllowed},
		"a member with a new instance": {member, Place{Tenant: home.id, NewName: "Mine"}, ErrNotAllowed},
		"a stranger":                   {stranger, Place{Tenant: home.id, Instance: home.instance}, ErrNotAllowed},
		"another's owner":              {work.owner, Place{Tenant: home.id, Instance: home.instance}, ErrNotAllowed},
		"another's instance":           {work.owner, Place{Tenant: work.id, Instance: home.instance}, ErrNotAllowed},
		"no tenant":                    {home.owner, Place{Tenant: tenants.NewID(), Instance: home.instance}, ErrNotAllowed},
	} {
		m := f.machine()
		p := f.claim(c.who, m.open())
		_, err := f.Approve(ctx, c.who, p.ID, c.to, true)
		wantErr(t, name, err, c.want)
		if err != nil { // nothing of it happened: the machine still waits
			if _, a := m.poll(); a["error"] != "authorization_pending" {
				t.Errorf("%s: the machine is told %v", name, a)
			}
		}
	}
	for name, c := range map[string]struct {
		who  tenants.ID
		want int
	}{"an owner": {home.owner, 1}, "a member": {member, 0}, "a stranger": {stranger, 0}} {
		if all, err := f.Choices(ctx, c.who); err != nil || len(all) != c.want {
			t.Errorf("%s chooses from %d tenants, %v", name, len(all), err)
		}
		if all, err := f.List(ctx, c.who); err != nil || len(all) != c.want {
			t.Errorf("%s sees the connectors of %d tenants, %v", name, len(all), err)
		}
	}
	_, c := f.pair(home)
	wantErr(t, "a member revokes", f.Revoke(ctx, member, home.id, c.ID), ErrNotAllowed)
	wantErr(t, "another's owner revokes", f.Revoke(ctx, work.owner, home.id, c.ID), ErrNotAllowed)
	wantErr(t, "another's owner revokes by their own tenant", f.Revoke(ctx, work.owner, work.id, c.ID), ErrNotAllowed)
	wantErr(t, "an admin revokes", f.Revoke(ctx, admin, home.id, c.ID), nil)
	suspended := tenants.Suspended
	f.in(home, func(tx tenants.Tx) error {
		_, err := tx.UpdateTenant(ctx, tenants.TenantUpdate{Status: &suspended})
		return err
	})
	_, err := f.Approve(ctx, home.owner, f.claim(home.owner, f.machine().open()).ID, Place{Tenant: home.id, Instance: home.instance}, true)
	wantErr(t, "a suspended tenant", err, ErrNotAllowed)
	if all, err := f.Choices(ctx, home.owner); err != nil || len(all) != 0 {
		t.Errorf("a suspended tenant is offered: %v, %v", all, err)
	}
}

func TestOnlyWhoTypedTheCodeDecides(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	home, work := f.household("Home"), f.household("Work")
	m := f.machine()
	code := m.open()
	p := f.claim(home.owner, code)
	there := Place{Tenant: work.id, Instance: work.instance}
	_, err := f.Approve(ctx, work.owner, p.ID, there, false)
	wantErr(t, "approve by its id", err, ErrGone)
	wantErr(t, "deny by its id", f.Deny(ctx, work.owner, p.ID), ErrGone)
	_, err = f.Claimed(ctx, work.owner, p.ID)
	wantErr(t, "look by its id", err, ErrGone)
	f.claim(work.owner, code) // who types it last, decides
	_, err = f.Approve(ctx, home.owner, p.ID, Place{Tenant: home.id, Instance: home.instance}, false)
	wantErr(t, "approve after another typed it", err, ErrGone)
	_, err = f.Approve(ctx, work.owner, p.ID, there, false)
	wantErr(t, "approve", err, nil)
	_, err = f.Approve(ctx, work.owner, p.ID, there, true)
	wantErr(t, "approve twice", err, ErrGone)
	wantErr(t, "deny what is approved", f.Deny(ctx, work.owner, p.ID), ErrGone)
	_, err = f.Claim(ctx, work.owner, code)
	wantErr(t, "type a used code", err, ErrNoCode)
}

func TestGuessingIsBoundedForEachPersonAndInAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Limits.Guess, f.Limits.GuessAll = 3, 5
	h := f.household("Home")
	eve, mallory := f.person("eve@example.org"), f.person("mallory@example.org")
	code := f.machine().open()
	try := func(who tenants.ID, code string, want error) {
		t.Helper()
		_, err := f.Claim(t.Context(), who, code)
		wantErr(t, code, err, want)
	}
	for range 3 {
		try(eve, "BBBB-BBBB", ErrNoCode)
	}
	try(eve, code, ErrTooManyTries) // even the right one: an answer would be a guess
	try(h.owner, code, nil)         // others are not locked out by her
	try(mallory, "BBBB-BBBC", ErrNoCode)
	try(mallory, "BBBB-BBBD", ErrTooManyTries) // all together
}

func TestAnInstanceWithAConnectorIsJoinedOnlyByWhoSaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.household("Home")
	_, first := f.pair(h)
	there := Place{Tenant: h.id, Instance: h.instance}
	p := f.claim(h.owner, f.machine().open())
	_, err := f.Approve(ctx, h.owner, p.ID, there, false)
	wantErr(t, "without saying so", err, ErrOccupied)
	_, err = f.Approve(ctx, h.owner, p.ID, there, true)
	wantErr(t, "with it", err, nil)
	list, err := f.List(ctx, h.owner)
	must(t, err)
	if len(list) != 1 || len(list[0].Rows) != 2 || list[0].Rows[0].Instance != "Notes of Home" {
		t.Errorf("%+v", list)
	}
	for _, r := range list[0].Rows {
		must(t, f.Revoke(ctx, h.owner, h.id, r.ID))
		must(t, f.Revoke(ctx, h.owner, h.id, r.ID)) // again changes nothing
	}
	_, err = f.Approve(ctx, h.owner, f.claim(h.owner, f.machine().open()).ID, there, false)
	wantErr(t, "where all are revoked", err, nil)
	if first.Name != "desk" || first.OS != "linux/amd64" || first.PairedBy != h.owner {
		t.Errorf("%+v", first)
	}
}

func TestANewInstanceNeedsANameOfItsOwnAndRoom(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.household("Home")
	f.Limits.Instances, f.Limits.Connectors = 3, 3
	approve := func(to Place) (tenants.Connector, error) {
		to.Tenant = h.id
		return f.Approve(ctx, h.owner, f.claim(h.owner, f.machine().open()).ID, to, true)
	}
	for _, name := range []string{"", "  ", "\u202e", "Notes of Home"} {
		_, err := approve(Place{NewName: name})
		wantErr(t, "named "+name, err, ErrName)
	}
	c, err := approve(Place{NewName: " Work\u202e "})
	wantErr(t, "a new one", err, nil)
	f.in(h, func(tx tenants.Tx) error {
		in, err := tx.Instance(ctx, c.InstanceID)
		if in.Name != "Work" || in.DefaultLevel.String() != "r" || !in.Enabled {
			t.Errorf("made %+v", in)
		}
		return err
	})
	_, err = approve(Place{NewName: "Third"})
	wantErr(t, "the last one", err, nil)
	_, err = approve(Place{NewName: "Fourth"})
	wantErr(t, "one too many", err, ErrLimit)
	_, err = approve(Place{Instance: h.instance})
	wantErr(t, "the third connector", err, nil)
	_, err = approve(Place{Instance: h.instance})
	wantErr(t, "the fourth connector", err, ErrLimit)
	disabled := false
	f.in(h, func(tx tenants.Tx) error {
		_, err := tx.UpdateInstance(ctx, h.instance, tenants.InstanceUpdate{Enabled: &disabled})
		return err
	})
	f.Limits.Connectors = 10
	_, err = approve(Place{Instance: h.instance})
	wantErr(t, "a disabled instance", err, ErrNotAllowed)
}

func TestALateRegistrationByHandWins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h, other := f.household("Home"), f.household("Work")
	m := f.machine()
	p := f.claim(h.owner, m.open())
	f.in(other, func(tx tenants.Tx) error {
		_, err := tx.RegisterConnector(t.Context(), tenants.Connector{InstanceID: other.instance, Name: "by hand", PublicKey: m.public()})
		return err
	})
	_, err := f.Approve(t.Context(), h.owner, p.ID, Place{Tenant: h.id, Instance: h.instance}, false)
	wantErr(t, "a key in force elsewhere", err, ErrGone)
}

func TestWhoWasLetInByWhomIsInTheLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.household("Home")
	m, c := f.pair(h)
	_, e := f.audits(h)
	var detail map[string]string
	must(t, json.Unmarshal(e.Detail, &detail))
	if e.Verb != "connector.pair" || e.ActorKind != "member" || e.ActorID != h.owner || e.Object != "connector:"+c.ID.String() ||
		detail["fingerprint"] != m.fingerprint() || detail["address"] != "203.0.113.7" || detail["name"] != "desk" || detail["instance"] != h.instance.String() {
		t.Errorf("%+v %v", e, detail)
	}
	must(t, f.Revoke(t.Context(), h.owner, h.id, c.ID))
	if _, e = f.audits(h); e.Verb != "connector.revoke" || e.ActorID != h.owner || e.Object != "connector:"+c.ID.String() {
		t.Errorf("%+v", e)
	}
}

func TestTwoDecisionsAtOnceAreOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.household("Home")
	p := f.claim(h.owner, f.machine().open())
	var approved, denied atomic.Int32
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			if i%2 == 0 {
				if _, err := f.Approve(t.Context(), h.owner, p.ID, Place{Tenant: h.id, Instance: h.instance}, true); err == nil {
					approved.Add(1)
				} else {
					wantErr(t, "approve", err, ErrGone)
				}
			} else if err := f.Deny(t.Context(), h.owner, p.ID); err == nil {
				denied.Add(1)
			} else {
				wantErr(t, "deny", err, ErrGone)
			}
		})
	}
	work.Wait()
	if approved.Load()+denied.Load() != 1 {
		t.Errorf("%d approved, %d denied", approved.Load(), denied.Load())
	}
	f.in(h, func(tx tenants.Tx) error {
		all, err := tx.Connectors(t.Context(), nobody)
		if len(all) != int(approved.Load()) {
			t.Errorf("%d connectors after %d approvals", len(all), approved.Load())
		}
		return err
	})
}
