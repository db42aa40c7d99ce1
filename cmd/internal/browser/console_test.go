package browser

import (
	"os"
	"strings"
	"testing"

	"siyuan-broker/broker"
	pages "siyuan-broker/broker/page"
	"siyuan-broker/tenants"
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

func TestAHomeShowsHowItFaresByItself(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	u, tenant := w.Person("ann@example.org", "Ann")
	instance := w.Instance(tenant, "Desktop at home")
	w.Instance(tenant, "Laptop with a rather long name that has to wrap somewhere on a phone")
	b := w.Open(t, pages.English)
	b.SignIn(u.Email)
	b.See("No connector yet")
	stop := w.Connect(t, tenant, instance)
	b.See("Connected") // the open page asks again by itself
	b.See("SiYuan")
	b.Inspect("home")
	stop()
	b.See("Not connected")
	b.See("Last seen")

	// A second tenant, which the person may look at.
	other, space := w.Person("bo@example.org", "Bo's family notes")
	w.Instance(space, "Family")
	must(t, w.DB.In(t.Context(), space, func(tx tenants.Tx) error { return tx.AddMember(t.Context(), u.ID, tenants.Member) }))
	b.Go("/console")
	b.Press("details.menu > summary")
	b.Inspect("menu-tenants")
	b.Follow(`details.menu button[name="tenant"]:not([aria-current])`)
	b.See("Nothing is shared with you yet") // a member sees only what is shared with them
	b.Inspect("home-member")
	must(t, w.DB.In(t.Context(), space, func(tx tenants.Tx) error { return tx.RemoveMember(t.Context(), u.ID) }))
	b.Go("/console")
	b.See("Desktop at home")

	zh := w.Open(t, pages.Chinese)
	zh.SignIn(other.Email)
	zh.See("Family")
	zh.Inspect("home")
}

// The page is usable without scripts: everything is links and forms.
func TestSigningInWorksWithoutScripts(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	u, _ := w.Person("ann@example.org", "Ann")
	b := w.Open(t, pages.English)
	b.WithoutScripts()
	b.SignIn(u.Email)
	b.Press("details.menu > summary")
	b.Follow(`form[action="/console/signout"] button`)
	b.Await(".alert.good")
	enter, err := w.Links().SignIn(t.Context(), u.ID)
	must(t, err)
	b.Go(enter)
	b.Follow("main form button")
	if b.Path() != "/console" {
		t.Errorf("after the link: %s", b.Path())
	}
}

// A page that is wrong in every way has to be noticed, or the other tests prove
// nothing.
func TestInspectingNoticesWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	b := w.Open(t, pages.English)
	b.Go("/console/signin")
	b.Width(Phone)
	if problems := Eval[[]string](b, lookScript); len(problems) != 0 {
		t.Fatalf("a good page has problems: %q", problems)
	}
	Eval[bool](b, `(() => {
		const add = html => document.querySelector("main").insertAdjacentHTML("beforeend", html);
		add('<h1>another</h1><img src="data:,"><input name="x"><p id="wide">wide</p><p id="pale">pale</p><button id="tiny">tiny</button>');
		document.querySelector("#wide").style.width = "900px";
		document.querySelector("#pale").style.color = "#ccc";
		Object.assign(document.querySelector("#tiny").style, {height: "10px", minHeight: "0", padding: "0", fontSize: "8px"});
		return true;
	})()`)
	problems := strings.Join(Eval[[]string](b, lookScript), "\n")
	for _, want := range []string{"px wide", "p#wide", "p#pale", "button#tiny", "has no label", "has no name", "2 main headings"} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q is not noticed in\n%s", want, problems)
		}
	}
	Eval[bool](b, `(() => { const s = document.createElement("script"); s.textContent = "window.ran = 1"; document.body.append(s); console.error("boom"); return true; })()`)
	if Eval[bool](b, `window.ran === 1`) {
		t.Error("the policy lets an inline script run")
	}
	woes := strings.Join(b.TakeWoes(), "\n")
	if !strings.Contains(woes, "boom") || !strings.Contains(woes, "Content Security Policy") {
		t.Errorf("the browser's complaints are not noticed: %s", woes)
	}
}
