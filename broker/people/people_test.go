package people_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/page"
	"siyuan-broker/broker/people"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const good = "four odd sheep walk"

// town is People on a database of its own, with a clock that tests move.
type town struct {
	*people.People
	t     *testing.T
	store *postgres.Store
	links *people.Links

	mu  sync.Mutex
	now time.Time
}

func newTown(t *testing.T, mode people.SignUpMode) *town {
	t.Helper()
	db := pgtest.New(t)
	store, err := postgres.Open(t.Context(), postgres.Options{ServiceDSN: db.ServiceDSN, RecorderDSN: db.RecorderDSN, MasterKey: make([]byte, 32)})
	must(t, err)
	t.Cleanup(store.Close)
	pages, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}, Paths: page.Paths{SignIn: page.Path("/console/signin")}})
	must(t, err)
	x := &town{t: t, store: store, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	limiter := cluster.NewLocalLimiter(x.clock)
	x.People, err = people.New(people.Options{
		Store: store, Pages: pages, SignUp: mode, Now: x.clock, Hasher: people.NewHasher(64, 1, 1, 4),
		ClientIP: func(r *http.Request) string { return r.RemoteAddr },
		Limit: func(ctx context.Context, counter string, limit int, window time.Duration) (bool, time.Duration) {
			return limiter.Allow(ctx, cluster.LimitKey{Agent: counter}, limit, window)
		},
	})
	must(t, err)
	x.links = people.NewLinks(store, "https://notes.example")
	x.links.Now = x.clock
	return x
}

func (x *town) clock() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now
}

func (x *town) pass(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// device is a browser: an address and the cookies it keeps.
type device struct {
	x       *town
	address string
	cookies map[string]*http.Cookie
}

func (x *town) device(address string) *device {
	return &device{x: x, address: address, cookies: map[string]*http.Cookie{}}
}

// do makes a request as this browser and keeps what it is given.
func (d *device) do(fn func(w http.ResponseWriter, r *http.Request)) {
	r := httptest.NewRequest(http.MethodPost, "https://notes.example/console/signin", nil)
	r.RemoteAddr = d.address
	for _, c := range d.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	fn(w, r)
	for _, c := range w.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(d.cookies, c.Name)
		} else {
			d.cookies[c.Name] = c
		}
	}
}

func (d *device) signIn(email, password string) (err error) {
	d.do(func(w http.ResponseWriter, r *http.Request) { err = d.x.SignIn(w, r, email, password) })
	return err
}

// signed is who this browser is.
func (d *device) signed() (s people.Session, ok bool) {
	d.do(func(w http.ResponseWriter, r *http.Request) {
		d.x.Load(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { s, ok = people.Signed(r) })).ServeHTTP(w, r)
	})
	return s, ok
}

// invited makes a person by an invitation, in this browser.
func (d *device) invited(email string) error {
	d.x.t.Helper()
	link, err := d.x.links.Invite(d.x.t.Context(), email)
	must(d.x.t, err)
	return d.join(people.NewPerson{Name: "Ann", Password: good, Link: secretOf(link)})
}

func (d *device) join(n people.NewPerson) (err error) {
	d.do(func(w http.ResponseWriter, r *http.Request) { _, err = d.x.Join(w, r, n) })
	return err
}

func secretOf(link string) string {
	_, secret, _ := strings.Cut(link, "?link=")
	return secret
}

func TestSigningInAlwaysMakesANewSession(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpInvite)
	d := x.device("192.0.2.1")
	must(t, d.invited("ann@example.org"))
	s, ok := d.signed()
	if !ok || s.User.Email != "ann@example.org" || s.User.PasswordHash != "" || !s.HasPassword || len(s.Memberships) != 1 || s.Memberships[0].Role != tenants.Owner {
		t.Fatalf("signed up as %+v, %v", s, ok)
	}
	before := d.cookies["__Host-siyuan"]

	// A secret that somebody planted in another browser is not what gets signed in.
	victim := x.device("192.0.2.2")
	victim.cookies["__Host-siyuan"] = &http.Cookie{Name: "__Host-siyuan", Value: "PLANTEDPLANTEDPLANTEDPLANTED"}
	must(t, victim.signIn("ann@example.org", good))
	if victim.cookies["__Host-siyuan"].Value == "PLANTEDPLANTEDPLANTEDPLANTED" {
		t.Error("the planted session was opened")
	}
	must(t, d.signIn("ann@example.org", good))
	if d.cookies["__Host-siyuan"].Value == before.Value {
		t.Error("the session stayed the same")
	}
	old := x.device("192.0.2.1")
	old.cookies["__Host-siyuan"] = before
	if _, ok := old.signed(); ok {
		t.Error("the session before is still good")
	}
	c := d.cookies["__Host-siyuan"]
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie: %v", c)
	}
}

func TestASessionEndsWhenItIsIdleTooOldOrSignedOut(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpInvite)
	d, other := x.device("192.0.2.1"), x.device("192.0.2.2")
	must(t, d.invited("ann@example.org"))
	for range 12 { // used every week, for twelve weeks
		x.pass(7 * 24 * time.Hour)
		if _, ok := d.signed(); !ok {
			t.Fatal("a session in use ended")
		}
	}
	x.pass(7 * 24 * time.Hour)
	if _, ok := d.signed(); ok {
		t.Error("a session is older than ninety days")
	}
	must(t, d.signIn("ann@example.org", good))
	x.pass(14*24*time.Hour + time.Second)
	if _, ok := d.signed(); ok {
		t.Error("a session was idle for more than two weeks")
	}
	must(t, d.signIn("ann@example.org", good))
	must(t, other.signIn("ann@example.org", good))
	s, _ := d.signed()
	must(t, x.SignOutEverywhere(t.Context(), s))
	if _, ok := other.signed(); ok {
		t.Error("signed out everywhere, and in elsewhere")
	}
	if _, ok := d.signed(); !ok {
		t.Error("signed out everywhere else, and out here")
	}
	d.do(func(w http.ResponseWriter, r *http.Request) { must(t, x.SignOut(w, r)) })
	if _, ok := d.signed(); ok {
		t.Error("signed out, and in")
	}
}

func TestNobodyCanKeepAnotherOut(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpInvite)
	home := x.device("192.0.2.1")
	must(t, home.invited("ann@example.org"))
	attack := func(address string, n int) (last error) {
		d := x.device(address)
		for range n {
			last = d.signIn("ann@example.org", "wrong password")
		}
		return last
	}
	if err := attack("198.51.100.7", 10); !errors.Is(err, people.ErrWrong) {
		t.Fatalf("the tenth try: %v", err)
	}
	var many *people.TooMany
	if err := attack("198.51.100.7", 1); !errors.As(err, &many) || many.Wait <= 0 {
		t.Errorf("the eleventh try: %v", err)
	}
	// An attacker in the person's own network, and as many as they like elsewhere.
	_ = attack("192.0.2.1", 70)
	must(t, x.device("203.0.113.5").signIn("ann@example.org", good))
	must(t, home.signIn("ann@example.org", good))
	if err := x.device("192.0.2.1").signIn("ann@example.org", good); !errors.Is(err, people.ErrTooMany) {
		t.Errorf("an unknown browser in the attacker's network: %v", err)
	}
	// The known browser is counted too.
	var err error
	for range 11 {
		err = home.signIn("ann@example.org", "wrong password")
	}
	if !errors.Is(err, people.ErrTooMany) {
		t.Errorf("a known browser may try for ever: %v", err)
	}
	x.pass(20 * time.Minute)
	must(t, home.signIn("ann@example.org", good))
	// Many IPv6 addresses of one household are one.
	for i := range 11 {
		err = x.device("2001:db8::"+string(rune('a'+i%6))).signIn("bo@example.org", "wrong password")
	}
	if !errors.Is(err, people.ErrTooMany) {
		t.Errorf("addresses of one network are counted apart: %v", err)
	}
}

func TestAnAddressNobodyHasIsAnsweredLikeAWrongPassword(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpOpen)
	d := x.device("192.0.2.1")
	must(t, d.invited("ann@example.org"))
	_, err := x.store.CreateUser(t.Context(), tenants.User{Email: "nopassword@example.org"})
	must(t, err)
	known := x.device("198.51.100.1").signIn("ann@example.org", "wrong password")
	for _, email := range []string{"nobody@example.org", "nopassword@example.org", "no address", ""} {
		err := x.device("198.51.100.1").signIn(email, "wrong password")
		if err == nil || err.Error() != known.Error() || !errors.Is(err, people.ErrWrong) {
			t.Errorf("%q: %v, want %v", email, err, known)
		}
	}
	if err := x.device("198.51.100.1").signIn("ann@example.org", strings.Repeat("x", 1<<16)); !errors.Is(err, people.ErrWrong) {
		t.Errorf("an endless password: %v", err)
	}
	// Tries are counted alike, too.
	for name, email := range map[string]string{"known": "ann@example.org", "unknown": "nobody@example.org"} {
		n := 0
		for ; n < 50; n++ {
			if errors.Is(x.device("203.0.113."+name).signIn(email, "wrong password"), people.ErrTooMany) {
				break
			}
		}
		if n != 10 {
			t.Errorf("%s: %d tries", name, n)
		}
		x.pass(time.Hour)
	}
	// Signing up with a taken address and with a free one ends alike.
	for _, email := range []string{"ann@example.org", "free@example.org"} {
		if err := x.device("192.0.2.9").join(people.NewPerson{Email: email, Password: "another good one"}); err != nil {
			t.Errorf("signing up as %s: %v", email, err)
		}
	}
	must(t, x.device("192.0.2.3").signIn("ann@example.org", good)) // as before
	must(t, x.device("192.0.2.3").signIn("free@example.org", "another good one"))
}

func TestWhoMaySignUp(t *testing.T) {
	t.Parallel()
	for mode, want := range map[people.SignUpMode]struct{ plain, invited error }{
		people.SignUpClosed: {people.ErrClosed, people.ErrLink},
		people.SignUpInvite: {people.ErrClosed, nil},
		people.SignUpOpen:   {nil, nil},
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			x := newTown(t, mode)
			operator, err := x.links.Operator(t.Context())
			must(t, err)
			must(t, x.device("192.0.2.1").join(people.NewPerson{Email: "op@example.org", Password: good, Link: secretOf(operator)})) // in every mode
			if _, err := x.links.Operator(t.Context()); !errors.Is(err, people.ErrInhabited) {
				t.Errorf("a second operator's link: %v", err)
			}
			if err := x.device("192.0.2.1").join(people.NewPerson{Email: "operator2@example.org", Password: good, Link: secretOf(operator)}); !errors.Is(err, people.ErrLink) {
				t.Errorf("the operator's link again: %v", err)
			}
			if err := x.device("192.0.2.1").join(people.NewPerson{Email: "plain@example.org", Password: good}); !errors.Is(err, want.plain) {
				t.Errorf("without a link: %v", err)
			}
			link, err := x.links.Invite(t.Context(), "Ann@Example.org")
			must(t, err)
			// Another address in the form does not matter: the link has its own.
			err = x.device("192.0.2.1").join(people.NewPerson{Email: "eve@example.org", Password: good, Link: secretOf(link)})
			if !errors.Is(err, want.invited) {
				t.Errorf("with an invitation: %v", err)
			}
			if _, err := x.store.UserByEmail(t.Context(), "eve@example.org"); !errors.Is(err, tenants.ErrNotFound) {
				t.Error("an invitation was used for another address")
			}
			x.pass(8 * 24 * time.Hour)
			if err := x.device("192.0.2.1").join(people.NewPerson{Password: good, Link: secretOf(link)}); !errors.Is(err, people.ErrLink) {
				t.Errorf("a used or old invitation: %v", err)
			}
		})
	}
}

func TestAResetSetsThePasswordOnceAndEndsWhatWasOpen(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpInvite)
	d := x.device("192.0.2.1")
	must(t, d.invited("ann@example.org"))
	s, _ := d.signed()
	link, err := x.links.Reset(t.Context(), s.User.ID)
	must(t, err)
	reset := func(password string) (err error) {
		x.device("192.0.2.8").do(func(w http.ResponseWriter, r *http.Request) { err = x.Reset(w, r, secretOf(link), password) })
		return err
	}
	if err := reset("password12"); !errors.Is(err, people.ErrCommon) {
		t.Errorf("a common password: %v", err)
	}
	must(t, reset("a wholly new one")) // the refused one did not use the link up
	if _, ok := d.signed(); ok {
		t.Error("a session from before the reset is good")
	}
	if err := reset("and one more still"); !errors.Is(err, people.ErrLink) {
		t.Errorf("the link again: %v", err)
	}
	if err := d.signIn("ann@example.org", good); !errors.Is(err, people.ErrWrong) {
		t.Errorf("the old password: %v", err)
	}
	must(t, d.signIn("ann@example.org", "a wholly new one"))
	link, err = x.links.Reset(t.Context(), s.User.ID)
	must(t, err)
	x.pass(time.Hour)
	if err := reset("too late for this one"); !errors.Is(err, people.ErrLink) {
		t.Errorf("an hour later: %v", err)
	}
}

func TestAPasswordChangesOnlyForWhoKnowsTheOldOne(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpInvite)
	d, other := x.device("192.0.2.1"), x.device("192.0.2.2")
	must(t, d.invited("ann@example.org"))
	must(t, other.signIn("ann@example.org", good))
	change := func(old, fresh string) (err error) {
		s, _ := d.signed()
		d.do(func(_ http.ResponseWriter, r *http.Request) { err = x.ChangePassword(r, s, old, fresh) })
		return err
	}
	if err := change("wrong password", "a wholly new one"); !errors.Is(err, people.ErrWrong) {
		t.Errorf("without the old one: %v", err)
	}
	if err := change(good, "short"); !errors.Is(err, people.ErrShort) {
		t.Errorf("a short one: %v", err)
	}
	must(t, change(good, "a wholly new one"))
	if _, ok := other.signed(); ok {
		t.Error("another session stayed")
	}
	if _, ok := d.signed(); !ok {
		t.Error("this session went")
	}
	var err error
	for range 11 {
		err = change("guess", "something else again")
	}
	if !errors.Is(err, people.ErrTooMany) {
		t.Errorf("an open browser may be used to guess for ever: %v", err)
	}
}

func TestAPersonSeesOnlyTheirOwnTenants(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpInvite)
	ann, bo := x.device("192.0.2.1"), x.device("192.0.2.2")
	must(t, ann.invited("ann@example.org"))
	must(t, bo.invited("bo@example.org"))
	a, _ := ann.signed()
	b, _ := bo.signed()
	theirs, _ := b.Tenant()
	if err := x.ShowTenant(t.Context(), a, theirs.TenantID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("a foreign tenant is shown: %v", err)
	}
	must(t, x.store.In(t.Context(), theirs.TenantID, func(tx tenants.Tx) error { return tx.AddMember(t.Context(), a.User.ID, tenants.Member) }))
	a, _ = ann.signed()
	must(t, x.ShowTenant(t.Context(), a, theirs.TenantID))
	a, _ = ann.signed()
	if m, _ := a.Tenant(); m.TenantID != theirs.TenantID || m.Role != tenants.Member {
		t.Errorf("shown: %+v", m)
	}
	// The membership ends, and with it what is shown, at once.
	must(t, x.store.In(t.Context(), theirs.TenantID, func(tx tenants.Tx) error { return tx.RemoveMember(t.Context(), a.User.ID) }))
	a, _ = ann.signed()
	if m, ok := a.Tenant(); !ok || m.TenantID == theirs.TenantID {
		t.Errorf("after the end of the membership: %+v", m)
	}
}

func TestStrangersAreSentToSignInAndBackToOurPagesOnly(t *testing.T) {
	t.Parallel()
	x := newTown(t, people.SignUpInvite)
	behind := x.Load(x.RequireSignedIn(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a stranger got through") })))
	for target, want := range map[string]string{
		"/console/agents?x=1":   "/console/signin?next=%2Fconsole%2Fagents%3Fx%3D1",
		"//evil.example/":       "/console/signin",
		"/\\evil.example":       "/console/signin",
		"/%2F/evil.example":     "/console/signin",
		"/console/../../..//ev": "/console/signin",
	} {
		r := httptest.NewRequest(http.MethodGet, "https://notes.example/", nil)
		r.RequestURI = target
		r.URL.Opaque = target
		w := httptest.NewRecorder()
		behind.ServeHTTP(w, r)
		if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != want {
			t.Errorf("%s: %d to %s, want %s", target, w.Code, got, want)
		}
	}
	for next, want := range map[string]string{"/console/agents": "/console/agents", "https://evil.example": "/console", "//evil.example": "/console", "javascript:alert(1)": "/console", "": "/console"} {
		r := httptest.NewRequest(http.MethodGet, "https://notes.example/?", nil)
		r.URL.RawQuery = "next=" + next
		if got := people.Back(r, page.Path("/console")).String(); got != want {
			t.Errorf("%q leads back to %s", next, got)
		}
	}
}
