package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestAPersonIsFoundByAnySpellingOfTheAddress(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	made, err := f.CreateUser(ctx, tenants.User{Email: " Ada@Example.ORG ", Name: "Ada", Locale: "de", PasswordHash: "$argon2id$x", OIDCIssuer: "https://id.example", OIDCSubject: "7"})
	must(t, err)
	for name, find := range map[string]func() (tenants.User, error){
		"id":    func() (tenants.User, error) { return f.User(ctx, made.ID) },
		"email": func() (tenants.User, error) { return f.UserByEmail(ctx, "ADA@example.org") },
		"oidc":  func() (tenants.User, error) { return f.UserByOIDC(ctx, "https://id.example", "7") },
	} {
		got, err := find()
		must(t, err)
		if d := cmp.Diff(made, got); d != "" {
			t.Errorf("by %s (-want +got)\n%s", name, d)
		}
	}
	if made.Email != "ada@example.org" || made.PasswordHash != "$argon2id$x" || made.CreatedAt.IsZero() {
		t.Errorf("stored %+v", made)
	}
	_, err = f.CreateUser(ctx, tenants.User{Email: "ada@EXAMPLE.org"})
	wantErr(t, err, tenants.ErrConflict)
	_, err = f.CreateUser(ctx, tenants.User{Email: "nobody"})
	wantErr(t, err, tenants.ErrInvalid)
	_, err = f.UserByEmail(ctx, "nobody")
	wantErr(t, err, tenants.ErrNotFound)
	_, err = f.User(ctx, uuid.New())
	wantErr(t, err, tenants.ErrNotFound)
}

func TestAnUpdateChangesOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	made, err := f.CreateUser(t.Context(), tenants.User{Email: "a@example.org", Name: "A", PasswordHash: "h", OIDCIssuer: "i", OIDCSubject: "s"})
	must(t, err)
	name, none := "B", ""
	got, err := f.UpdateUser(t.Context(), made.ID, tenants.UserUpdate{Name: &name, OIDCIssuer: &none, OIDCSubject: &none})
	must(t, err)
	want := made
	want.Name, want.OIDCIssuer, want.OIDCSubject = "B", "", ""
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	f.person(t, "taken@example.org")
	taken := "taken@example.org"
	_, err = f.UpdateUser(t.Context(), made.ID, tenants.UserUpdate{Email: &taken})
	wantErr(t, err, tenants.ErrConflict)
}

func TestAPersonSeesTheirTenantsAndNoOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	a, b := f.newHome(t, "a@example.org", home{}), f.newHome(t, "b@example.org", home{})
	f.newHome(t, "c@example.org", home{})
	f.in(t, b.tenant, func(tx tenants.Tx) error { return tx.AddMember(ctx, a.owner, tenants.Member) })
	all, err := f.MembershipsOf(ctx, a.owner)
	must(t, err)
	if len(all) != 2 || all[0].TenantID != a.tenant || all[0].Role != tenants.Owner || all[1].TenantID != b.tenant || all[1].Role != tenants.Member {
		t.Errorf("got %+v", all)
	}
	if all[0].User.Email != "a@example.org" || all[0].TenantName != "tenant of a@example.org" {
		t.Errorf("got %+v", all[0])
	}
}

func TestOperatorsListTenantsInPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want, got []tenants.ID
	for _, email := range []string{"a@example.org", "b@example.org", "c@example.org"} {
		want = append(want, f.newHome(t, email, home{}).tenant)
	}
	for after := uuid.Nil; ; {
		page, err := f.Tenants(t.Context(), after, 2)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, tenant := range page {
			got = append(got, tenant.ID)
		}
		after = got[len(got)-1]
	}
	if d := cmp.Diff(want, got); d != "" { // ids grow with time
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestATenantNeedsAnExistingOwner(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.CreateTenant(t.Context(), "x", uuid.New())
	wantErr(t, err, tenants.ErrNotFound)
	u := f.person(t, "a@example.org")
	_, err = f.CreateTenant(t.Context(), "", u.ID)
	wantErr(t, err, tenants.ErrInvalid)
}

func TestTheLastOwnerCannotLeave(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	other := f.person(t, "b@example.org").ID
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.AddMember(ctx, other, tenants.Admin) })
	wantErr(t, f.In(ctx, h.tenant, func(tx tenants.Tx) error { return tx.RemoveMember(ctx, h.owner) }), tenants.ErrLastOwner)
	wantErr(t, f.In(ctx, h.tenant, func(tx tenants.Tx) error { return tx.SetRole(ctx, h.owner, tenants.Admin) }), tenants.ErrLastOwner)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.SetRole(ctx, other, tenants.Owner))
		return tx.RemoveMember(ctx, h.owner)
	})
}

func TestTwoOwnersWhoLeaveAtOnceCannotBothGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	other := f.person(t, "b@example.org").ID
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.AddMember(ctx, other, tenants.Owner) })
	errs := make([]error, 2)
	var both, done sync.WaitGroup
	both.Add(2)
	for i, owner := range []tenants.ID{h.owner, other} {
		done.Go(func() {
			errs[i] = f.In(ctx, h.tenant, func(tx tenants.Tx) error {
				must2(t)(tx.Members(ctx)) // both transactions are open
				both.Done()
				both.Wait()
				return tx.RemoveMember(ctx, owner)
			})
		})
	}
	done.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), tenants.ErrLastOwner) {
		t.Errorf("got %v and %v, want one ErrLastOwner", errs[0], errs[1])
	}
}

func TestRemovingAMemberEndsEverythingTheyHeld(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	user := f.person(t, "b@example.org").ID
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.AddMember(ctx, user, tenants.Member))
		team, err := tx.CreateTeam(ctx, "team")
		must(t, err)
		must(t, tx.AddTeamMember(ctx, team.ID, user))
		must2(t)(tx.Share(ctx, tenants.Share{InstanceID: h.instance, NotebookID: diary, MemberID: user, Level: contract.Read}))
		must2(t)(tx.CreateAgent(ctx, tenants.Agent{MemberID: user, InstanceID: h.instance, Name: "x", Origin: tenants.FromToken}))
		return nil
	})
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.RemoveMember(ctx, user) })
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		teams, err := tx.Teams(ctx)
		must(t, err)
		shares, err := tx.Shares(ctx, tenants.ShareFilter{MemberID: user})
		must(t, err)
		live, err := tx.Agents(ctx, tenants.AgentFilter{MemberID: user})
		must(t, err)
		kept, err := tx.Agents(ctx, tenants.AgentFilter{MemberID: user, IncludeRevoked: true})
		must(t, err)
		if len(teams[0].Members) != 0 || len(shares) != 0 || len(live) != 0 || len(kept) != 1 {
			t.Errorf("left behind: team %v, shares %v, live agents %v; kept as a record: %v", teams[0].Members, shares, live, kept)
		}
		return nil
	})
	f.wantRevoked(t, tenants.RevokedMember, user.String())
}

func TestTeamsHaveNamesOfTheirOwnAndMembersOfTheTenantOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	stranger := f.person(t, "stranger@example.org").ID
	var team tenants.Team
	f.in(t, h.tenant, func(tx tenants.Tx) (err error) { team, err = tx.CreateTeam(ctx, "team"); return err })
	wantErr(t, f.In(ctx, h.tenant, func(tx tenants.Tx) error { _, err := tx.CreateTeam(ctx, "team"); return err }), tenants.ErrConflict)
	wantErr(t, f.In(ctx, h.tenant, func(tx tenants.Tx) error { return tx.AddTeamMember(ctx, team.ID, stranger) }), tenants.ErrNotFound)
	wantErr(t, f.In(ctx, h.tenant, func(tx tenants.Tx) error { return tx.DeleteTeam(ctx, uuid.New()) }), tenants.ErrNotFound)
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.RenameTeam(ctx, team.ID, "crew") })
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		got, err := tx.Teams(ctx)
		if len(got) != 1 || got[0].Name != "crew" {
			t.Errorf("teams: %v", got)
		}
		return err
	})
}

func TestAClosedTenantStaysClosedAndIsRevoked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	set := func(s tenants.Status) error {
		return f.In(ctx, h.tenant, func(tx tenants.Tx) error {
			_, err := tx.UpdateTenant(ctx, tenants.TenantUpdate{Status: &s})
			return err
		})
	}
	must(t, set(tenants.Closed))
	wantErr(t, set(tenants.Active), tenants.ErrInvalid)
	f.wantRevoked(t, tenants.RevokedTenant, h.tenant.String())
	_, err := f.NextEpoch(ctx, h.tenant, h.connector)
	wantErr(t, err, tenants.ErrRevoked)
}

func TestAFailedTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	stop := errors.New("stop")
	err := f.In(t.Context(), h.tenant, func(tx tenants.Tx) error {
		must2(t)(tx.CreateTeam(t.Context(), "team"))
		return stop
	})
	wantErr(t, err, stop)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		teams, err := tx.Teams(t.Context())
		if len(teams) != 0 {
			t.Errorf("left behind %v", teams)
		}
		return err
	})
}

// wantRevoked looks for an entry in the feed of all tenants.
func (f fixture) wantRevoked(t *testing.T, kind tenants.RevocationKind, subject string) {
	t.Helper()
	all, err := f.Revocations(context.Background(), 0, 1000)
	must(t, err)
	for _, r := range all {
		if r.Kind == kind && r.Subject == subject {
			return
		}
	}
	t.Errorf("no revocation of %s %s in %v", kind, subject, all)
}
