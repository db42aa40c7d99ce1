package people_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/broker/page"
	"siyuan-broker/broker/people"
	"siyuan-broker/broker/people/oidctest"
	"siyuan-broker/tenants"
)

func newTownWithProvider(t *testing.T, mode people.SignUpMode) (*town, *oidctest.Provider) {
	x := newTown(t, mode)
	op := oidctest.Start(t, x.clock)
	x.OIDC = &people.Provider{Issuer: op.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Name: "Test"}
	return x, op
}

// ask begins at the broker and goes to the provider; it gives the address that
// the provider sends the person back to.
func (d *device) ask(link string) *url.URL {
	d.x.t.Helper()
	var at string
	d.do(func(w http.ResponseWriter, r *http.Request) {
		var err error
		at, err = d.x.AskProvider(w, r, page.Path("/console/agents"), link)
		must(d.x.t, err)
	})
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(at)
	must(d.x.t, err)
	must(d.x.t, resp.Body.Close())
	back, err := resp.Location()
	must(d.x.t, err)
	return back
}

// answer brings the provider's answer to the broker in this browser.
func (d *device) answer(back *url.URL) (next page.Local, err error) {
	d.do(func(w http.ResponseWriter, old *http.Request) {
		r := httptest.NewRequest(http.MethodGet, "https://notes.example"+back.RequestURI(), nil)
		r.RemoteAddr, r.Header = old.RemoteAddr, old.Header
		next, err = d.x.ProviderAnswered(w, r)
	})
	return next, err
}

func TestAnIdentitySignsInToItsAccount(t *testing.T) {
	t.Parallel()
	x, op := newTownWithProvider(t, people.SignUpOpen)
	op.Be(jwt.MapClaims{"sub": "ann-7", "email": "Ann@example.org", "email_verified": true, "name": "Ann"})
	d := x.device("192.0.2.1")
	back := d.ask("")
	if !strings.HasPrefix(back.String(), "https://notes.example/console/oidc/callback?") {
		t.Fatalf("sent back to %s", back)
	}
	next, err := d.answer(back)
	must(t, err)
	s, ok := d.signed()
	if !ok || s.User.Email != "ann@example.org" || s.User.Name != "Ann" || s.HasPassword || len(s.Memberships) != 1 || next.String() != "/console/agents" {
		t.Errorf("signed up as %+v, then to %s", s, next)
	}
	// The same subject is the same person, whatever its address is now.
	op.Be(jwt.MapClaims{"sub": "ann-7", "email": "married@example.org", "email_verified": false})
	again := x.device("192.0.2.2")
	_, err = again.answer(again.ask(""))
	must(t, err)
	if s2, ok := again.signed(); !ok || s2.User.ID != s.User.ID {
		t.Errorf("another person: %+v", s2.User)
	}
	// What begins anew with a code that was used is refused.
	if _, err := again.answer(back); !errors.Is(err, people.ErrIdentity) {
		t.Errorf("an answer once more: %v", err)
	}
}

func TestAnAnswerThatIsNotWhatWasAskedForIsRefused(t *testing.T) {
	t.Parallel()
	x, op := newTownWithProvider(t, people.SignUpOpen)
	op.Be(jwt.MapClaims{"sub": "ann-7", "email": "ann@example.org", "email_verified": true})
	query := func(u *url.URL, key, value string) *url.URL {
		c := *u
		q := c.Query()
		q.Set(key, value)
		c.RawQuery = q.Encode()
		return &c
	}
	spoil := func(key string, value any) func() {
		return func() { op.Spoil(func(c jwt.MapClaims) { c[key] = value }) }
	}
	for name, c := range map[string]struct {
		before func()
		change func(d *device, back *url.URL) *url.URL
	}{
		"another state":           {nil, func(_ *device, u *url.URL) *url.URL { return query(u, "state", "AAAA") }},
		"no state":                {nil, func(_ *device, u *url.URL) *url.URL { return query(u, "state", "") }},
		"another code":            {nil, func(_ *device, u *url.URL) *url.URL { return query(u, "code", "AAAA") }},
		"another provider's":      {nil, func(_ *device, u *url.URL) *url.URL { return query(u, "iss", "https://evil.example") }},
		"an error":                {nil, func(_ *device, u *url.URL) *url.URL { return query(u, "error", "access_denied") }},
		"in another browser":      {nil, func(d *device, u *url.URL) *url.URL { clear(d.cookies); return u }},
		"of another browser":      {nil, func(_ *device, _ *url.URL) *url.URL { return x.device("192.0.2.9").ask("") }},
		"too late":                {nil, func(_ *device, u *url.URL) *url.URL { x.pass(10 * time.Minute); return u }},
		"another nonce":           {spoil("nonce", "AAAA"), nil},
		"for another client":      {spoil("aud", "somebody"), nil},
		"by another issuer":       {spoil("iss", "https://evil.example"), nil},
		"expired":                 {spoil("exp", 1), nil},
		"without a subject":       {spoil("sub", ""), nil},
		"with an endless subject": {spoil("sub", strings.Repeat("x", 300)), nil},
		"signed by somebody else": {func() { op.Forge(true) }, nil},
	} {
		op.Spoil(nil)
		op.Forge(false)
		if c.before != nil {
			c.before()
		}
		d := x.device("198.51.100." + name)
		back := d.ask("")
		if c.change != nil {
			back = c.change(d, back)
		}
		if _, err := d.answer(back); !errors.Is(err, people.ErrIdentity) {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok := d.signed(); ok {
			t.Errorf("%s: signed in", name)
		}
		x.pass(time.Hour) // so that tries do not run out
	}
	if _, err := x.store.UserByEmail(t.Context(), "ann@example.org"); !errors.Is(err, tenants.ErrNotFound) {
		t.Error("an account was made")
	}
}

func TestAnAddressOpensAnAccountOnlyIfVerifiedAndConfigured(t *testing.T) {
	t.Parallel()
	x, op := newTownWithProvider(t, people.SignUpOpen)
	must(t, x.device("192.0.2.1").invited("ann@example.org"))
	in := func(claims jwt.MapClaims) error {
		op.Be(claims)
		d := x.device("192.0.2.2")
		_, err := d.answer(d.ask(""))
		return err
	}
	for _, verified := range []any{false, nil, "false", "yes", 1, true} { // the last: not configured
		if err := in(jwt.MapClaims{"sub": "eve", "email": "ann@example.org", "email_verified": verified}); !errors.Is(err, people.ErrNoAccount) {
			t.Errorf("verified %v: %v", verified, err)
		}
	}
	x.OIDC.LinkByEmail = true
	if err := in(jwt.MapClaims{"sub": "eve", "email": "ann@example.org", "email_verified": false}); !errors.Is(err, people.ErrNoAccount) {
		t.Errorf("configured, not verified: %v", err)
	}
	must(t, in(jwt.MapClaims{"sub": "ann-7", "email": "ann@example.org", "email_verified": true}))
	must(t, in(jwt.MapClaims{"sub": "ann-7"}))
	// Once linked, an account is not taken over by another subject of the address.
	if err := in(jwt.MapClaims{"sub": "eve", "email": "ann@example.org", "email_verified": true}); !errors.Is(err, people.ErrNoAccount) {
		t.Errorf("a second subject: %v", err)
	}
	if err := in(jwt.MapClaims{"sub": "nobody"}); !errors.Is(err, people.ErrNoAccount) {
		t.Errorf("no address at all: %v", err)
	}
}

func TestAnIdentitySignsUpOnlyWhereSigningUpIsAllowed(t *testing.T) {
	t.Parallel()
	x, op := newTownWithProvider(t, people.SignUpInvite)
	link, err := x.links.Invite(t.Context(), "ann@example.org")
	must(t, err)
	in := func(email, link string) error {
		op.Be(jwt.MapClaims{"sub": email, "email": email, "email_verified": true})
		d := x.device("192.0.2.2")
		_, err := d.answer(d.ask(link))
		return err
	}
	if err := in("ann@example.org", ""); !errors.Is(err, people.ErrNoAccount) {
		t.Errorf("without an invitation: %v", err)
	}
	if err := in("eve@example.org", secretOf(link)); !errors.Is(err, people.ErrNoAccount) {
		t.Errorf("with another's invitation: %v", err)
	}
	must(t, in("ann@example.org", secretOf(link)))
	if err := in("bo@example.org", secretOf(link)); !errors.Is(err, people.ErrLink) {
		t.Errorf("with a used invitation: %v", err)
	}
	x.OIDC = nil
	x.device("192.0.2.1").do(func(w http.ResponseWriter, r *http.Request) {
		if _, err := x.AskProvider(w, r, page.Local{}, ""); !errors.Is(err, people.ErrClosed) {
			t.Errorf("no provider: %v", err)
		}
	})
}

func TestAnIdentityComesInByAnInvitationIntoATenant(t *testing.T) {
	t.Parallel()
	x, op := newTownWithProvider(t, people.SignUpInvite)
	_, tenant := x.space("ann@example.org")
	secret := x.invite(tenant, "bo@example.org", tenants.Member)
	for name, claims := range map[string]jwt.MapClaims{
		"another address": {"sub": "eve-1", "email": "eve@example.org", "email_verified": true},
		"not verified":    {"sub": "eve-2", "email": "bo@example.org", "email_verified": false},
	} {
		op.Be(claims)
		d := x.device("192.0.2.1")
		if _, err := d.answer(d.ask(secret)); !errors.Is(err, people.ErrNoAccount) {
			t.Errorf("%s: %v", name, err)
		}
	}
	op.Be(jwt.MapClaims{"sub": "bo-7", "email": "bo@example.org", "email_verified": true})
	d := x.device("192.0.2.1")
	_, err := d.answer(d.ask(secret))
	must(t, err)
	must(t, d.accept(secret))
	if s, _ := d.signed(); len(s.Memberships) != 2 {
		t.Errorf("belongs to %+v", s.Memberships)
	}
	x.SignUp = people.SignUpClosed
	op.Be(jwt.MapClaims{"sub": "cy-7", "email": "cy@example.org", "email_verified": true})
	if _, err := d.answer(d.ask(x.invite(tenant, "cy@example.org", tenants.Member))); !errors.Is(err, people.ErrLink) {
		t.Errorf("where sign-up is closed: %v", err)
	}
}
