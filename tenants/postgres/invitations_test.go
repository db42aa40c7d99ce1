package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/tenants"
)

func invitationOf(secret, email string, role tenants.Role, by tenants.ID) tenants.Invitation {
	return tenants.Invitation{Hash: tenants.HashSecret(secret), Email: email, Role: role, InvitedBy: by, CreatedAt: midday, ExpiresAt: midday.Add(time.Hour)}
}

func (f fixture) invite(t *testing.T, tenant tenants.ID, inv tenants.Invitation) (made tenants.Invitation) {
	t.Helper()
	f.in(t, tenant, func(tx tenants.Tx) (err error) { made, err = tx.Invite(t.Context(), inv); return err })
	return made
}

func (f fixture) accept(t *testing.T, tenant tenants.ID, secret string, user tenants.ID, now time.Time) error {
	return f.In(t.Context(), tenant, func(tx tenants.Tx) error {
		_, err := tx.AcceptInvitation(t.Context(), tenants.HashSecret(secret), user, now)
		return err
	})
}

func TestAnInvitationIsForOneAddressAndWorksOnce(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	h := f.newHome(t, "a@example.org", home{})
	ann, eve := f.person(t, "ann@example.org").ID, f.person(t, "eve@example.org").ID
	made := f.invite(t, h.tenant, invitationOf("s", " Ann@Example.org ", tenants.Admin, h.owner))
	if made.Email != "ann@example.org" || made.ID == uuid.Nil {
		t.Errorf("made %+v", made)
	}
	wantErr(t, f.accept(t, h.tenant, "s", eve, midday), tenants.ErrNotFound)
	wantErr(t, f.accept(t, h.tenant, "t", ann, midday), tenants.ErrNotFound)
	wantErr(t, f.accept(t, h.tenant, "s", ann, midday.Add(time.Hour)), tenants.ErrNotFound)
	other := f.newHome(t, "b@example.org", home{})
	wantErr(t, f.accept(t, other.tenant, "s", ann, midday), tenants.ErrNotFound)

	var taken atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if f.accept(t, h.tenant, "s", ann, midday) == nil {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 {
		t.Errorf("used %d times", taken.Load())
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		m, err := tx.Member(ctx, ann)
		if m.Role != tenants.Admin {
			t.Errorf("came in as %q", m.Role)
		}
		must(t, err)
		_, err = tx.Member(ctx, eve)
		wantErr(t, err, tenants.ErrNotFound)
		return nil
	})
}

func TestANewerInvitationTakesTheOldersPlaceAndMembersGetNone(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	h := f.newHome(t, "a@example.org", home{})
	f.invite(t, h.tenant, invitationOf("old", "ann@example.org", tenants.Admin, h.owner))
	f.invite(t, h.tenant, invitationOf("new", "ann@example.org", tenants.Member, h.owner))
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		open, err := tx.Invitations(ctx, midday)
		if len(open) != 1 || open[0].Role != tenants.Member || open[0].Hash != tenants.HashSecret("new") {
			t.Errorf("open %+v", open)
		}
		_, gone := tx.Invitation(ctx, tenants.HashSecret("old"), midday)
		wantErr(t, gone, tenants.ErrNotFound)
		must(t, tx.Withdraw(ctx, open[0].ID))
		wantErr(t, tx.Withdraw(ctx, open[0].ID), tenants.ErrNotFound)
		return err
	})
	wantErr(t, f.In(ctx, h.tenant, func(tx tenants.Tx) error {
		_, err := tx.Invite(ctx, invitationOf("s", "A@example.org", tenants.Member, h.owner))
		return err
	}), tenants.ErrConflict)
	wantErr(t, f.In(ctx, h.tenant, func(tx tenants.Tx) error {
		_, err := tx.Invite(ctx, invitationOf("s", "nobody", tenants.Member, h.owner))
		return err
	}), tenants.ErrInvalid)
}

func TestAMemberWhoIsInvitedKeepsTheirRole(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	h := f.newHome(t, "a@example.org", home{})
	ann := f.person(t, "ann@example.org").ID
	f.invite(t, h.tenant, invitationOf("s", "ann@example.org", tenants.Member, h.owner))
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.AddMember(ctx, ann, tenants.Admin) })
	must(t, f.accept(t, h.tenant, "s", ann, midday))
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		m, err := tx.Member(ctx, ann)
		if m.Role != tenants.Admin {
			t.Errorf("became %q", m.Role)
		}
		return err
	})
}

func TestInvitationsEndWithTheRightToGiveThem(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	h := f.newHome(t, "a@example.org", home{})
	other := f.person(t, "o@example.org").ID
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.AddMember(ctx, other, tenants.Owner) })
	f.invite(t, h.tenant, invitationOf("owner", "1@example.org", tenants.Owner, other))
	f.invite(t, h.tenant, invitationOf("admin", "2@example.org", tenants.Admin, other))
	f.invite(t, h.tenant, invitationOf("member", "3@example.org", tenants.Member, other))
	f.invite(t, h.tenant, invitationOf("kept", "4@example.org", tenants.Owner, h.owner))
	f.invite(t, h.tenant, invitationOf("operator", "5@example.org", tenants.Owner, tenants.ID{}))
	open := func() (roles string) {
		f.in(t, h.tenant, func(tx tenants.Tx) error {
			list, err := tx.Invitations(ctx, midday)
			for _, inv := range list {
				roles += inv.Email[:1]
			}
			return err
		})
		return roles
	}
	for _, x := range []struct {
		role tenants.Role
		want string
	}{{tenants.Admin, "5432"}, {tenants.Member, "54"}} {
		f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.SetRole(ctx, other, x.role) })
		if got := open(); got != x.want {
			t.Errorf("as %s: open are %s, want %s", x.role, got, x.want)
		}
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.SetRole(ctx, other, tenants.Admin) })
	f.invite(t, h.tenant, invitationOf("again", "2@example.org", tenants.Admin, other))
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.RemoveMember(ctx, other) })
	if got := open(); got != "54" {
		t.Errorf("after they left: open are %s, want 54", got)
	}
}

func TestNobodyComesIntoASuspendedTenant(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	h := f.newHome(t, "a@example.org", home{})
	ann, status := f.person(t, "ann@example.org").ID, tenants.Suspended
	f.invite(t, h.tenant, invitationOf("s", "ann@example.org", tenants.Member, h.owner))
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		_, err := tx.UpdateTenant(ctx, tenants.TenantUpdate{Status: &status})
		return err
	})
	wantErr(t, f.accept(t, h.tenant, "s", ann, midday), tenants.ErrNotFound)
}

func TestTeamsAndInvitationsAreBounded(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	h := f.newHome(t, "a@example.org", home{})
	err := f.In(ctx, h.tenant, func(tx tenants.Tx) error {
		for i := range tenants.MaxInvitations {
			must2(t)(tx.Invite(ctx, invitationOf(fmt.Sprint(i), fmt.Sprint(i, "@example.org"), tenants.Member, h.owner)))
		}
		must2(t)(tx.Invite(ctx, invitationOf("again", "0@example.org", tenants.Member, h.owner))) // in place of another
		_, err := tx.Invite(ctx, invitationOf("more", "more@example.org", tenants.Member, h.owner))
		return err
	})
	wantErr(t, err, tenants.ErrTooMany)
	err = f.In(ctx, h.tenant, func(tx tenants.Tx) error {
		for i := range tenants.MaxTeams {
			must2(t)(tx.CreateTeam(ctx, fmt.Sprint(i)))
		}
		_, err := tx.CreateTeam(ctx, "more")
		return err
	})
	wantErr(t, err, tenants.ErrTooMany)
}

func TestARoleThatWasReadUnderTheHoldStaysTrue(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	h := f.newHome(t, "a@example.org", home{})
	other := f.person(t, "o@example.org").ID
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.AddMember(ctx, other, tenants.Admin) })
	held, let := make(chan struct{}), make(chan struct{})
	changed := make(chan error, 1)
	go func() { // ends below
		<-held
		changed <- f.In(ctx, h.tenant, func(tx tenants.Tx) error {
			close(let)
			return tx.SetRole(ctx, other, tenants.Owner)
		})
	}()
	must(t, f.In(ctx, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.HoldMembers(ctx))
		close(held)
		<-let
		for range 20 { // a change that did not wait would show in one of these
			m, err := tx.Member(ctx, other)
			must(t, err)
			if m.Role != tenants.Admin {
				return errors.New("the role changed under the hold")
			}
		}
		return nil
	}))
	must(t, <-changed)
}

func TestExpiredInvitationsAreForgotten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	now := time.Now()
	f.invite(t, h.tenant, tenants.Invitation{Hash: tenants.HashSecret("s"), Email: "ann@example.org", Role: tenants.Member, CreatedAt: now.Add(-2 * time.Hour), ExpiresAt: now.Add(-time.Hour)})
	f.invite(t, h.tenant, tenants.Invitation{Hash: tenants.HashSecret("t"), Email: "bo@example.org", Role: tenants.Member, CreatedAt: now.Add(-2 * time.Hour), ExpiresAt: now.Add(time.Hour)})
	must(t, f.Maintain(t.Context(), now, 30))
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		left, err := tx.Invitations(t.Context(), time.Time{})
		if len(left) != 1 || left[0].Email != "bo@example.org" {
			t.Errorf("left %+v", left)
		}
		return err
	})
}
