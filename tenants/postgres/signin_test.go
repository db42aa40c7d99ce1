package postgres_test

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/tenants"
)

// secret is a hash as the tables want them.
func secret(s string) []byte { return bytes.Repeat([]byte{s[0], s[len(s)-1]}, 16) }

var midday = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestASessionEndsByAgeByIdlenessAndByItsPerson(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	ann, bo := f.person(t, "ann@example.org"), f.person(t, "bo@example.org")
	begin := func(id string, user tenants.ID) []byte {
		must(t, f.BeginConsoleSession(ctx, tenants.ConsoleSession{Hash: secret(id), UserID: user, Address: "192.0.2.1", Browser: "x", CreatedAt: midday, ExpiresAt: midday.Add(24 * time.Hour)}))
		return secret(id)
	}
	found := func(hash []byte, now, idle time.Time) bool {
		t.Helper()
		c, u, err := f.ConsoleSession(ctx, hash, now, idle)
		if err != nil {
			wantErr(t, err, tenants.ErrNotFound)
			return false
		}
		return c.UserID == u.ID && u.Email != ""
	}
	a1, a2, b1 := begin("a1", ann.ID), begin("a2", ann.ID), begin("b1", bo.ID)
	if !found(a1, midday.Add(time.Hour), midday.Add(-time.Hour)) || found(secret("zz"), midday, midday.Add(-time.Hour)) {
		t.Error("a session is not found, or one that never was is")
	}
	if found(a1, midday.Add(24*time.Hour), midday.Add(-time.Hour)) {
		t.Error("a session outlives its age")
	}
	idle := midday.Add(2 * time.Hour)
	if found(a1, midday.Add(3*time.Hour), idle) {
		t.Error("a session that nobody used is good")
	}
	must(t, f.TouchConsoleSession(ctx, a1, midday.Add(150*time.Minute)))
	if !found(a1, midday.Add(3*time.Hour), idle) {
		t.Error("a session that is used ends")
	}
	must(t, f.EndConsoleSessions(ctx, ann.ID, a1))
	if !found(a1, midday, midday.Add(-time.Hour)) || found(a2, midday, midday.Add(-time.Hour)) || !found(b1, midday, midday.Add(-time.Hour)) {
		t.Error("ending the other sessions ends others than those")
	}
	must(t, f.EndConsoleSession(ctx, a1))
	must(t, f.EndConsoleSession(ctx, a1))
	if found(a1, midday, midday.Add(-time.Hour)) {
		t.Error("an ended session is good")
	}
	must(t, f.Maintain(ctx, midday.Add(25*time.Hour), 30))
	if found(b1, midday, midday.Add(-time.Hour)) {
		t.Error("what expired is kept")
	}
}

func TestAPersonKeepsTheNewestSessionsAndDevices(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	ann, bo := f.person(t, "ann@example.org"), f.person(t, "bo@example.org")
	hash := func(i int) []byte { return []byte(fmt.Sprintf("%032d", i)) }
	for i := range 52 {
		at := midday.Add(time.Duration(i) * time.Minute)
		must(t, f.BeginConsoleSession(ctx, tenants.ConsoleSession{Hash: hash(i), UserID: ann.ID, CreatedAt: at, ExpiresAt: midday.Add(24 * time.Hour)}))
		must(t, f.RememberDevice(ctx, ann.ID, hash(i), at))
	}
	for i, want := range map[int]bool{1: false, 2: true, 51: true} {
		if _, _, err := f.ConsoleSession(ctx, hash(i), midday, time.Time{}); (err == nil) != want {
			t.Errorf("session %d: %v", i, err)
		}
	}
	for i, want := range map[int]bool{31: false, 32: true, 51: true} {
		if got, err := f.DeviceKnown(ctx, ann.ID, hash(i)); err != nil || got != want {
			t.Errorf("device %d: %v, %v", i, got, err)
		}
	}
	if known, err := f.DeviceKnown(ctx, bo.ID, hash(51)); err != nil || known {
		t.Errorf("another person's device is known: %v, %v", known, err)
	}
}

func TestALinkWorksOnceForWhatItIs(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	ann := f.person(t, "ann@example.org")
	put := func(id string, kind tenants.LinkKind) []byte {
		must(t, f.PutLink(ctx, tenants.Link{Hash: secret(id), Kind: kind, UserID: ann.ID, ExpiresAt: midday.Add(time.Hour)}))
		return secret(id)
	}
	old, link := put("l1", tenants.LinkSignIn), put("l2", tenants.LinkSignIn)
	_, err := f.Link(ctx, old, midday)
	wantErr(t, err, tenants.ErrNotFound) // the newer one took its place
	_, err = f.TakeLink(ctx, link, tenants.LinkReset, midday)
	wantErr(t, err, tenants.ErrNotFound)
	_, err = f.TakeLink(ctx, link, tenants.LinkSignIn, midday.Add(time.Hour))
	wantErr(t, err, tenants.ErrNotFound)
	if l, err := f.Link(ctx, link, midday); err != nil || l.UserID != ann.ID {
		t.Errorf("looking uses a link up: %v", err)
	}
	var taken atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := f.TakeLink(ctx, link, tenants.LinkSignIn, midday); err == nil {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 {
		t.Errorf("a link was used %d times", taken.Load())
	}

	must(t, f.BeginConsoleSession(ctx, tenants.ConsoleSession{Hash: secret("s1"), UserID: ann.ID, CreatedAt: midday, ExpiresAt: midday.Add(time.Hour)}))
	reset := put("r1", tenants.LinkReset)
	u, err := f.ResetPassword(ctx, reset, "$argon2id$new", midday)
	must(t, err)
	if u.PasswordHash != "$argon2id$new" {
		t.Error("the password is not set")
	}
	_, _, err = f.ConsoleSession(ctx, secret("s1"), midday, time.Time{})
	wantErr(t, err, tenants.ErrNotFound)
	_, err = f.ResetPassword(ctx, reset, "$argon2id$again", midday)
	wantErr(t, err, tenants.ErrNotFound)
}

func TestSigningUpMakesAPersonAndATenantOrNothing(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	invite := func(id string, email string) []byte {
		must(t, f.PutLink(ctx, tenants.Link{Hash: secret(id), Kind: tenants.LinkInvite, Email: email, ExpiresAt: midday.Add(time.Hour)}))
		return secret(id)
	}
	up := func(email string, link []byte) (tenants.User, error) {
		return f.SignUp(ctx, tenants.SignUp{User: tenants.User{Email: email}, Tenant: "Home", Link: link, Now: midday})
	}
	must(t, f.PutLink(ctx, tenants.Link{Hash: secret("op"), Kind: tenants.LinkOperator, ExpiresAt: midday.Add(time.Hour)}))
	operator, err := up("Op@example.org", secret("op"))
	must(t, err)
	all, err := f.MembershipsOf(ctx, operator.ID)
	must(t, err)
	if len(all) != 1 || all[0].Role != tenants.Owner || all[0].TenantName != "Home" || operator.Email != "op@example.org" {
		t.Errorf("made %+v with %+v", operator, all)
	}
	must(t, f.PutLink(ctx, tenants.Link{Hash: secret("oq"), Kind: tenants.LinkOperator, ExpiresAt: midday.Add(time.Hour)}))
	_, err = up("second@example.org", secret("oq"))
	wantErr(t, err, tenants.ErrConflict) // there are people already

	link := invite("i1", "ann@example.org")
	_, err = up("eve@example.org", link)
	wantErr(t, err, tenants.ErrNotFound)
	_, err = up("op@example.org", nil)
	wantErr(t, err, tenants.ErrConflict)
	_, err = up("ann@example.org", link) // none of the failures used it up
	must(t, err)
	_, err = up("ann@example.org", link)
	wantErr(t, err, tenants.ErrNotFound)
	_, err = f.SignUp(ctx, tenants.SignUp{User: tenants.User{Email: "x@example.org"}, Tenant: "", Now: midday})
	wantErr(t, err, tenants.ErrInvalid)
	if _, err := f.UserByEmail(ctx, "x@example.org"); err == nil {
		t.Error("a person stayed without the tenant")
	}
	users, err := f.Users(ctx, "ann@example.org", 10)
	must(t, err)
	if len(users) != 1 || users[0].ID != operator.ID {
		t.Errorf("after ann: %+v", users)
	}
}

func TestATenantThatIsNotThereCannotBeShown(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	ann := f.person(t, "ann@example.org")
	must(t, f.BeginConsoleSession(ctx, tenants.ConsoleSession{Hash: secret("s1"), UserID: ann.ID, CreatedAt: midday, ExpiresAt: midday.Add(time.Hour)}))
	wantErr(t, f.ShowTenant(ctx, secret("s1"), uuid.New()), tenants.ErrNotFound) // no such tenant
}
