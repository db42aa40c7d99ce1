package people_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/people"
	"siyuan-broker/tenants"
)

// invite makes an invitation into a tenant and gives its link's secret.
func (x *town) invite(tenant tenants.ID, email string, role tenants.Role) string {
	x.t.Helper()
	inv, link := people.InviteInto("https://notes.example", tenant, email, role, tenants.ID{}, x.clock())
	must(x.t, x.store.In(x.t.Context(), tenant, func(tx tenants.Tx) error { _, err := tx.Invite(x.t.Context(), inv); return err }))
	at, err := url.Parse(link)
	must(x.t, err)
	if at.Path != people.JoinPath {
		x.t.Errorf("the link leads to %s", at)
	}
	return at.Query().Get("link")
}

// space makes a person with a password and gives their tenant.
func (x *town) space(email string) (tenants.User, tenants.ID) {
	x.t.Helper()
	hash, err := people.NewHasher(64, 1, 1, 1).Hash(x.t.Context(), good)
	must(x.t, err)
	u, err := x.store.SignUp(x.t.Context(), tenants.SignUp{User: tenants.User{Email: email, PasswordHash: hash}, Tenant: "of " + email, Now: x.clock()})
	must(x.t, err)
	all, err := x.store.MembershipsOf(x.t.Context(), u.ID)
	must(x.t, err)
	return u, all[0].TenantID
}

func (d *device) into(secret string) (inv people.TenantInvitation, err error) {
	d.do(func(_ http.ResponseWriter, r *http.Request) { inv, err = d.x.InvitedInto(r, secret) })
	return inv, err
}

func (d *device) accept(secret string) (err error) {
	s, ok := d.signed()
	if !ok {
		d.x.t.Fatal("not signed in")
	}
	d.do(func(_ http.ResponseWriter, r *http.Request) { err = d.x.Accept(r, s, secret) })
	return err
}

func TestWhoIsInvitedSignsInAndComesIn(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpClosed) // the invited have an account
	_, tenant := x.space("ann@example.org")
	bo, _ := x.space("bo@example.org")
	x.space("eve@example.org")
	secret := x.invite(tenant, "bo@example.org", tenants.Member)
	eve, at := x.device("192.0.2.1"), x.device("192.0.2.2")
	must(t, eve.signIn("eve@example.org", good))
	must(t, at.signIn("bo@example.org", good))

	inv, err := at.into(secret)
	must(t, err)
	if inv.Email != "bo@example.org" || inv.Role != tenants.Member || inv.Tenant.Name != "of ann@example.org" || inv.Tenant.ID != tenant {
		t.Errorf("invited to %+v", inv)
	}
	if err := eve.accept(secret); !errors.Is(err, people.ErrLink) {
		t.Errorf("another address: %v", err)
	}
	must(t, at.accept(secret))
	if err := at.accept(secret); !errors.Is(err, people.ErrLink) {
		t.Errorf("a second time: %v", err)
	}
	s, _ := at.signed()
	if m, ok := s.Tenant(); !ok || m.TenantID != tenant || m.Role != tenants.Member || len(s.Memberships) != 2 {
		t.Errorf("looks at %+v of %+v", m, s.Memberships)
	}
	if s, _ := eve.signed(); len(s.Memberships) != 1 {
		t.Error("eve came in")
	}
	must(t, x.store.In(t.Context(), tenant, func(tx tenants.Tx) error {
		log, err := tx.AuditLog(t.Context(), time.Now().Add(time.Hour), 10)
		if len(log) != 1 || log[0].ActorID != bo.ID || log[0].Verb != "invitation.accept" || !strings.HasSuffix(log[0].Object, " member") {
			t.Errorf("audit %+v", log)
		}
		return err
	}))
}

func TestAnInvitationIntoATenantMakesAnAccountOnlyWhereOnesMayBeMade(t *testing.T) {
	t.Parallel()
	for mode, may := range map[people.SignUpMode]bool{people.SignUpClosed: false, people.SignUpInvite: true, people.SignUpOpen: true} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			x := newTown(t, mode)
			_, tenant := x.space("ann@example.org")
			secret := x.invite(tenant, "bo@example.org", tenants.Member)
			d := x.device("192.0.2.1")
			err := d.join(people.NewPerson{Email: "eve@example.org", Password: good, Link: secret})
			if may {
				must(t, err)
			} else if !errors.Is(err, people.ErrLink) {
				t.Errorf("closed: %v", err)
			}
			if _, err := x.store.UserByEmail(t.Context(), "eve@example.org"); err == nil {
				t.Error("made for another address than the invited one")
			}
			if _, err := x.store.UserByEmail(t.Context(), "bo@example.org"); (err == nil) != may {
				t.Errorf("the invited has an account: %v", err)
			}
			if _, ok := d.signed(); ok {
				t.Error("signed in, which tells that nobody had the address")
			}
			if may {
				must(t, d.signIn("bo@example.org", good))
				must(t, d.accept(secret))
			}
		})
	}
}

// Whoever owns a tenant can make a link for any address, so it must not tell who
// has an account.
func TestALinkIntoATenantDoesNotTellWhoHasAnAccount(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpInvite)
	_, tenant := x.space("ann@example.org")
	x.space("bo@example.org")
	d := x.device("192.0.2.1")
	answers := map[string]string{}
	for _, email := range []string{"bo@example.org", "nobody@example.org"} {
		secret := x.invite(tenant, email, tenants.Member)
		inv, err := d.into(secret)
		must(t, err)
		inv.Invitation = tenants.Invitation{}
		join := d.join(people.NewPerson{Email: email, Password: "some other words here", Link: secret})
		_, signed := d.signed()
		_, still := d.into(secret)
		if signed || join != nil || still != nil {
			t.Errorf("%s: signed in %v, %v, %v", email, signed, join, still)
		}
		answers[inv.Tenant.Name] = email
	}
	if len(answers) != 1 {
		t.Errorf("%d answers: %v", len(answers), answers)
	}
	if err := d.signIn("bo@example.org", "some other words here"); !errors.Is(err, people.ErrWrong) {
		t.Errorf("the link set somebody's password: %v", err)
	}
}

func TestLinksIntoATenantExpireAndAreCounted(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpInvite)
	_, tenant := x.space("ann@example.org")
	_, other := x.space("bo@example.org")
	secret := x.invite(tenant, "bo@example.org", tenants.Member)
	d := x.device("192.0.2.1")
	for _, bad := range []string{"", "syi_", "syi_x", secret + "x", secret[:len(secret)-1], x.invite(other, "cy@example.org", tenants.Member)[:26] + secret[26:], strings.Repeat("x", 1000)} {
		if _, err := d.into(bad); !errors.Is(err, people.ErrLink) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
	x.pass(people.InviteLife - time.Second)
	_, err := d.into(secret)
	must(t, err)
	x.pass(time.Second)
	if _, err := d.into(secret); !errors.Is(err, people.ErrLink) {
		t.Errorf("after seven days: %v", err)
	}
	for range 60 {
		_, err = d.into("syi_x")
	}
	if !errors.Is(err, people.ErrTooMany) {
		t.Errorf("guessing without end: %v", err)
	}
	if _, err := x.device("192.0.2.9").into("syi_x"); !errors.Is(err, people.ErrLink) {
		t.Errorf("from elsewhere: %v", err)
	}
}
