package pairing

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/tenants"
)

// console is the pages behind their guard, with somebody signed in.
type console struct {
	*fixture
	server *httptest.Server
	client *http.Client
	set    *page.Set

	mu  sync.Mutex
	who tenants.ID
}

func newConsole(t *testing.T) *console {
	t.Helper()
	c := &console{fixture: newFixture(t)}
	c.server = httptest.NewUnstartedServer(nil)
	base := "http://" + c.server.Listener.Addr().String()
	path := page.Path("/console")
	pages, err := page.New(page.Options{PublicURLs: []string{base}, Paths: page.Paths{Home: path, Account: path, SignIn: path, SignOut: path, SwitchTenant: path}})
	must(t, err)
	own, err := NewPages(c.Service, pages, func(*http.Request) tenants.ID {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.who
	})
	must(t, err)
	c.set = own.set
	c.server.Config.Handler = pages.Guard(own.Handler())
	c.server.Start()
	t.Cleanup(c.server.Close)
	jar, err := cookiejar.New(nil)
	must(t, err)
	c.client = &http.Client{Jar: jar}
	return c
}

func (c *console) as(who tenants.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.who = who
}

// seen is an answer after all redirects.
type seen struct {
	status int
	path   string
	html   string
}

func (c *console) do(r *http.Request) seen {
	c.t.Helper()
	resp, err := c.client.Do(r)
	must(c.t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	must(c.t, err)
	return seen{resp.StatusCode, resp.Request.URL.Path, string(b)}
}

func (c *console) get(path string) seen {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.server.URL+path, nil)
	must(c.t, err)
	return c.do(r)
}

var hidden = regexp.MustCompile(`name="_form" value="([^"]+)"`)

// send fills in the form of a page, as a browser does.
func (c *console) send(from seen, path string, fields ...string) seen {
	c.t.Helper()
	v := url.Values{"_form": {hidden.FindStringSubmatch(from.html)[1]}}
	for i := 0; i < len(fields); i += 2 {
		v.Set(fields[i], fields[i+1])
	}
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.server.URL+path, strings.NewReader(v.Encode()))
	must(c.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return c.do(r)
}

// machinePage types the code of a machine.
func (c *console) machinePage(code string) seen {
	c.t.Helper()
	s := c.send(c.get("/pair"), "/pair", "code", code)
	if s.status != 200 || !strings.HasPrefix(s.path, "/pair/") {
		c.t.Fatalf("after the code: %d %s\n%s", s.status, s.path, s.html)
	}
	return s
}

func (s seen) has(t testing.TB, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(s.html, p) {
			t.Errorf("%s does not show %q:\n%s", s.path, p, s.html)
		}
	}
}

func TestEveryPageOfPairingIsWholeInEveryLanguage(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	at := start
	p := tenants.Pairing{ID: tenants.NewID(), Name: "desk", Address: "203.0.113.7", OS: "linux/amd64", Version: "1", Fingerprint: strings.Repeat("f", 43)}
	live := tenants.Connector{ID: tenants.NewID(), Name: "desk", Fingerprint: p.Fingerprint, CreatedAt: at, LastSeenAt: at, LastAddress: "203.0.113.7"}
	fresh, revoked := live, live
	fresh.ID, fresh.LastSeenAt = tenants.NewID(), time.Time{}
	revoked.ID, revoked.RevokedAt = tenants.NewID(), at
	in := InstanceChoice{ID: tenants.NewID(), Name: "Notes", Connectors: []tenants.Connector{live}}
	choices := []Choice{{Tenant: tenants.NewID(), Name: "Home", Instances: []InstanceChoice{in}}, {Tenant: tenants.NewID(), Name: "Work"}}
	online := Row{Connector: live, Instance: "Notes", Connected: true}
	online.ID = tenants.NewID()
	samples := map[string][]any{
		"pair": {codeData{}, codeData{"pair.wrong"}, codeData{"pair.toomany"}},
		"machine": {machineData{Pairing: p, Choices: choices, Several: true, NewName: "desk"}, machineData{Pairing: p, Choices: choices[:1]}, machineData{Pairing: p, Error: "machine.limit"},
			machineData{Pairing: p, Error: "machine.choose"}, machineData{Pairing: p, Error: "machine.badname"}, machineData{Pairing: p, Error: "machine.notallowed"}},
		"occupied":   {machineData{Pairing: p, Choices: choices, Instance: in, Selected: "x"}},
		"connectors": {listData{}, listData{Tenants: []Listed{{Name: "Home"}}}, listData{[]Listed{{Name: "Home", Rows: []Row{online, {Connector: live}, {Connector: fresh}, {Connector: revoked}}}, {Name: "Work"}}, true}},
	}
	for _, problem := range c.set.Check(samples) {
		t.Error(problem)
	}
}

func TestTheCodeIsNeverFilledIn(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	h := c.household("Home")
	c.as(h.owner)
	code := c.machine().open()
	for _, q := range []string{"", "?code=" + code, "?user_code=" + code, "?code=" + code + "&lang=en"} {
		s := c.get("/pair" + q)
		if s.status != 200 || !strings.Contains(s.html, `name="code"`) {
			t.Fatalf("%s: %d", q, s.status)
		}
		if shown := regexp.MustCompile(`<input id="code"[^>]*>`).FindString(s.html); strings.Contains(shown, "value=") || strings.Contains(shown, code) {
			t.Errorf("%s fills in %s", q, shown)
		}
	}
	// Nor after a mistake.
	s := c.send(c.get("/pair"), "/pair", "code", "BBBB-BBBB")
	if s.status != 404 || strings.Contains(s.html, "BBBB-BBBB") {
		t.Errorf("%d\n%s", s.status, s.html)
	}
	s.has(t, "No machine waits with this code")
}

func TestAPersonSeesTheMachineAndLetsItIn(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	h := c.household("Home")
	c.as(h.owner)
	m := c.machine()
	s := c.machinePage(m.open())
	place := h.id.String() + "/" + h.instance.String()
	s.has(t, "desk", "203.0.113.7", "linux/amd64", "siyuan-connector 1.0.0", m.fingerprint(), "Notes of Home", `value="`+place+`" checked`)
	if again := c.get(s.path); again.html == "" || again.status != 200 {
		t.Errorf("reloading: %d", again.status)
	}
	s = c.send(s, s.path, "do", "approve", "place", place)
	if s.path != "/console/connectors" {
		t.Fatalf("ended at %s:\n%s", s.path, s.html)
	}
	s.has(t, "Approved.", "desk", m.fingerprint(), "Never connected")
	if status, a := m.poll(); status != 200 || a["instance_name"] != "Notes of Home" {
		t.Errorf("the machine is told %d %v", status, a)
	}

	second := c.machine()
	s = c.machinePage(second.open())
	if strings.Contains(s.html, "checked") {
		t.Error("an occupied instance is suggested")
	}
	decide := s.path
	s = c.send(s, decide, "do", "approve", "place", place)
	s.has(t, "has a connector already", m.fingerprint(), second.fingerprint())
	if _, a := second.poll(); a["error"] != "authorization_pending" {
		t.Errorf("let in without being asked once more: %v", a)
	}
	s = c.send(s, decide, "do", "approve", "place", place, "again", "yes")
	s.has(t, "Approved.", second.fingerprint())

	ids := regexp.MustCompile(`action="(/console/connectors/[^"]+/revoke)"`).FindAllStringSubmatch(s.html, -1)
	if len(ids) != 2 {
		t.Fatalf("%d connectors can be revoked", len(ids))
	}
	for _, id := range ids {
		s = c.send(s, id[1])
		s.has(t, "Revoked. The tunnel is cut.")
	}
	c.later(5 * time.Second)
	for _, m := range []*machine{m, second} {
		if _, a := m.poll(); a["error"] != "access_denied" {
			t.Errorf("after revoking: %v", a)
		}
	}
}

func TestAPersonTurnsAMachineDown(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	h := c.household("Home")
	c.as(h.owner)
	m := c.machine()
	s := c.machinePage(m.open())
	path := s.path
	s = c.send(s, path, "do", "deny")
	s.has(t, "Turned down.")
	if _, a := m.poll(); a["error"] != "access_denied" {
		t.Errorf("%v", a)
	}
	c.get(path).has(t, "That request is no longer open")
	verbs, _ := c.audits(h)
	if slices.Contains(verbs, "connector.pair") {
		t.Errorf("%v", verbs)
	}
}

// An attacker starts a connector on their own machine and sends the code to a
// victim. Nothing keeps the victim from typing it; what they see then is whose
// machine it is.
func TestAVictimWhoTypesAnothersCodeSeesWhoseMachineItIs(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	h := c.household("Home")
	c.as(h.owner)
	c.from("198.51.100.66")
	m := c.machine()
	_, a := m.begin(object{"name": `<script>alert(1)</script>` + "\u202e" + strings.Repeat("A", 3000), "os": `"><img src=x onerror=alert(1)>`})
	s := c.machinePage(a["user_code"].(string))
	s.has(t, "198.51.100.66", m.fingerprint(), "&lt;script&gt;", "If somebody sent you this code")
	for _, bad := range []string{"<script>alert", "<img src=x", "\u202e", strings.Repeat("A", 100)} {
		if strings.Contains(s.html, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if strings.Contains(s.html, `name="do" value="approve" autofocus`) || strings.Count(s.html, "data-submit") > 0 {
		t.Error("the page approves by itself")
	}
}

func TestPagesAreClosedToThoseTheyDoNotBelongTo(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	h, other := c.household("Home"), c.household("Work")
	member := c.member(h, "member@example.org", tenants.Member)
	c.as(h.owner)
	m := c.machine()
	code := m.open()
	s := c.machinePage(code)
	form := s
	c.as(other.owner)
	c.get(s.path).has(t, "That request is no longer open")
	s = c.send(form, s.path, "do", "approve", "place", other.id.String()+"/"+other.instance.String())
	s.has(t, "That request is no longer open")

	// Without the form's field nothing happens, whoever asks.
	c.as(h.owner)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.server.URL+form.path, strings.NewReader("do=approve&place="+h.id.String()+"/"+h.instance.String()))
	must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if s := c.do(r); s.status != http.StatusForbidden {
		t.Errorf("a form of another site: %d", s.status)
	}

	c.as(member)
	s = c.machinePage(code)
	s.has(t, "neither owner nor admin")
	if strings.Contains(s.html, `value="approve"`) {
		t.Error("a member is offered to approve")
	}
	s = c.send(s, s.path, "do", "approve", "place", h.id.String()+"/"+h.instance.String())
	if s.status != http.StatusForbidden {
		t.Errorf("a member approves: %d", s.status)
	}
	if _, a := m.poll(); a["error"] != "authorization_pending" {
		t.Errorf("the machine is told %v", a)
	}

	c.as(h.owner)
	s = c.machinePage(code)
	for place, want := range map[string]int{"": 400, "x": 400, h.id.String() + "/": 400, h.id.String() + "/x": 400, other.id.String() + "/new": 403, h.id.String() + "/new": 409} {
		if got := c.send(s, s.path, "do", "approve", "place", place); got.status != want {
			t.Errorf("place %q: %d, want %d", place, got.status, want)
		}
	}
	for _, path := range []string{"/pair/x", "/pair/" + tenants.NewID().String() + "/more"} {
		if got := c.get(path); got.status != 404 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	_, conn := c.pair(h)
	c.as(other.owner)
	s = c.send(c.get("/pair"), "/console/connectors/"+h.id.String()+"/"+conn.ID.String()+"/revoke")
	s.has(t, "Nothing was revoked")
}
