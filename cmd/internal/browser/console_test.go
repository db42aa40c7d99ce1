package browser

import (
	"os"
	"strings"
	"testing"

	"siyuan-broker/broker"
	pages "siyuan-broker/broker/page"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// inEach runs a test in every language, each with a browser of its own.
func inEach(t *testing.T, w *World, fn func(t *testing.T, b *Tab)) {
	for _, lang := range pages.Langs() {
		t.Run(string(lang), func(t *testing.T) { fn(t, w.Open(t, lang)) })
	}
}

func TestAPersonSignsInAndOut(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	w.Person("ann@example.org", "Ann")
	inEach(t, w, func(t *testing.T, b *Tab) {
		b.Go("/")
		b.Inspect("welcome")
		b.Go("/console/account?x=1")
		if b.Path() != "/console/signin" {
			t.Fatalf("a stranger is at %s", b.Path())
		}
		b.Inspect("signin")
		b.Fill("#email", "ann@example.org")
		b.Fill("#password", "not the password")
		b.Follow("main form button.btn:not([type])")
		b.Await(".alert.bad")
		b.Inspect("signin-wrong")
		b.Fill("#password", Password)
		b.Follow("main form button.btn:not([type])")
		if b.Path() != "/console/account" {
			t.Fatalf("after signing in: %s, not where they wanted to go\n%s", b.Path(), b.Text())
		}
		b.Inspect("account")
		c := b.Cookies()["siyuan_session"]
		if c == nil || !c.HTTPOnly || c.SameSite != "Lax" {
			t.Errorf("session cookie: %+v", c)
		}
		b.Go("/console")
		b.Inspect("home-empty")
		b.Press("details.menu > summary")
		b.Inspect("menu")
		b.Follow(`form[action="/console/signout"] button`)
		b.Await(".alert.good")
		b.Go("/console")
		if b.Path() != "/console/signin" {
			t.Errorf("signed out, and at %s", b.Path())
		}
	})
}

func TestAStrangerSignsUp(t *testing.T) {
	t.Parallel()
	w := Start(t, func(c *broker.Config) { c.SignUp = "open" })
	inEach(t, w, func(t *testing.T, b *Tab) {
		email := strings.ToLower(string(b.lang)) + "@example.org"
		b.Go("/console/signup")
		b.Inspect("signup")
		b.Fill("#email", email)
		b.Fill("#name", "Bo")
		b.Fill("#password", "password123")
		b.Follow("main form button.btn:not([type])")
		b.Await("#password-error")
		b.Inspect("signup-refused")
		b.Fill("#password", Password)
		b.Follow("main form button.btn:not([type])")
		b.Await(".alert.good")
		b.SignIn(email)
		b.Go("/console/reset")
		b.Inspect("forgot")
		b.Go("/console/nothing-here")
		b.Inspect("missing")
	})
}

func TestLinksLeadIn(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	operator, err := w.Links().Operator(t.Context())
	must(t, err)
	b := w.Open(t, pages.English)
	b.Go(operator)
	b.Inspect("signup-operator")
	b.Fill("#email", "op@example.org")
	b.Fill("#password", Password)
	b.Follow("main form button.btn:not([type])")
	if b.Path() != "/console" {
		t.Fatalf("the operator is at %s", b.Path())
	}
	b.Go(operator)
	b.Inspect("badlink")

	invitation, err := w.Links().Invite(t.Context(), "eve@example.org")
	must(t, err)
	inEach(t, w, func(t *testing.T, b *Tab) {
		b.Go(invitation)
		b.Inspect("signup-invited")
		b.See("eve@example.org")
		b.Go("/console/signup")
		b.Inspect("closed")
		u, err := w.DB.UserByEmail(t.Context(), "op@example.org")
		must(t, err)
		enter, err := w.Links().SignIn(t.Context(), u.ID)
		must(t, err)
		b.Go(enter)
		b.See(u.Email) // a script pressed the button
		reset, err := w.Links().Reset(t.Context(), u.ID)
		must(t, err)
		b.Go(reset)
		b.Inspect("reset")
		b.Fill("#password", "another long walk home")
		b.Follow("main form button.btn:not([type])")
		if b.Path() != "/console" {
			t.Errorf("after the reset: %s", b.Path())
		}
	})
}
