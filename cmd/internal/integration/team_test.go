package integration

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// stranger is a browser in which nobody is signed in.
func (w *world) stranger() *person {
	jar, _ := cookiejar.New(nil)
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &person{w, &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// send sends a form of a page to its path and gives what came of it.
func (p *person) send(page, path string, fields ...string) (*http.Response, string) {
	p.w.t.Helper()
	resp, body := p.do(http.MethodGet, page, nil)
	m := hidden.FindStringSubmatch(body)
	if resp.StatusCode != http.StatusOK || m == nil || m[1] != "_form" {
		p.w.t.Fatalf("GET %s: %d to %q\n%s", page, resp.StatusCode, resp.Header.Get("Location"), body)
	}
	form := url.Values{m[1]: {m[2]}}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return p.do(http.MethodPost, p.w.url+path, form)
}

// sends is send of a form that leads on.
func (p *person) sends(page, path string, fields ...string) string {
	p.w.t.Helper()
	resp, body := p.send(page, path, fields...)
	if said := strings.Join(resp.Header["Set-Cookie"], " "); resp.StatusCode != http.StatusSeeOther || strings.Contains(said, "flash=bad") {
		p.w.t.Fatalf("POST %s: %d %s\n%s", path, resp.StatusCode, said, body)
	}
	return resp.Header.Get("Location")
}

var shown = regexp.MustCompile(`(?s)<pre id="(?:link|token)"[^>]*>(.*?)</pre>`)

// secret is what a page shows once.
func secret(t *testing.T, body string) string {
	t.Helper()
	m := shown.FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("nothing is shown once:\n%s", body)
	}
	return html.UnescapeString(m[1])
}

// TestASecondPersonComesInAndWorksInOneNotebook is the whole way: an owner invites,
// the person signs up, gets a notebook to read, connects an agent, and loses the
// notebook again.
func TestASecondPersonComesInAndWorksInOneNotebook(t *testing.T) {
	t.Parallel()
	x := newWiped(t)
	garden := into[madeNotebook](t, x.plain, "notebook", map[string]any{"action": "create", "name": "Garden"}).Notebook.ID
	read := into[made](t, x.plain, "document", map[string]any{"action": "create", "notebook": garden, "path": "/Beans", "markdown": "sown in May"}).ID
	hiddenDoc := x.doc(t)
	owner, ben, eve := x.person(), x.w.stranger(), x.w.tenant("Eve", tenants.NewID()).person()
	const password = "seven quiet herons wade"
	people := x.w.url + "/console/people"

	_, body := owner.send(people, "/console/people/invite", "email", "ben@example.org", "role", "member")
	link := secret(t, body)
	at, err := url.Parse(link)
	must(t, err)
	linkSecret := at.Query().Get("link")
	if resp, body := ben.do(http.MethodGet, link, nil); resp.StatusCode != http.StatusOK || !strings.Contains(body, "ben@example.org") || strings.Contains(body, "Ada") {
		t.Errorf("a stranger with the link: %d\n%s", resp.StatusCode, body)
	}
	if _, body := eve.do(http.MethodGet, link, nil); strings.Contains(body, "Ada") || strings.Contains(body, `action="/console/join"`) {
		t.Error("another address sees what the link leads to")
	}
	if resp, _ := eve.send(people, "/console/join", "link", linkSecret); resp.StatusCode != http.StatusGone {
		t.Errorf("another address accepts: %d", resp.StatusCode)
	}

	signIn := ben.sends(x.w.url+"/console/signup?link="+linkSecret, "/console/signup", "link", linkSecret, "email", "x@example.org", "name", "Ben", "password", password)
	next := ben.sends(x.w.url+signIn, "/console/signin", "email", "ben@example.org", "password", password, "next", "/console/join?link="+linkSecret)
	if _, body := ben.do(http.MethodGet, x.w.url+next, nil); !strings.Contains(body, "Ada") || !strings.Contains(body, "Member") {
		t.Errorf("Ben is not told who invites him as what:\n%s", body)
	}
	if to := ben.sends(x.w.url+next, "/console/join", "link", linkSecret); to != "/console" {
		t.Errorf("accepting leads to %s", to)
	}
	if resp, _ := ben.do(http.MethodGet, link, nil); resp.StatusCode != http.StatusGone {
		t.Errorf("a used link: %d", resp.StatusCode)
	}
	if _, body := ben.do(http.MethodGet, people, nil); strings.Contains(body, "Garden") || strings.Contains(body, "Work") {
		t.Error("Ben sees notebooks before one is shared with him")
	}

	u, err := x.w.db.UserByEmail(t.Context(), "ben@example.org")
	must(t, err)
	eventually(t, "the home has reported the garden", func() (reported bool) {
		x.change(func(tx tenants.Tx) error {
			all, err := tx.Notebooks(t.Context(), x.instance)
			reported = slices.ContainsFunc(all, func(n tenants.Notebook) bool { return n.ID == garden })
			return err
		})
		return reported
	})
	owner.sends(people, "/console/people/share", "instance", x.instance.String(), "notebook", garden, "with", "member:"+u.ID.String(), "level", "r")
	if _, body := ben.do(http.MethodGet, people, nil); !strings.Contains(body, "Garden") || strings.Contains(body, "Work") {
		t.Error("Ben's page does not show the garden alone")
	}
	personal := func(level string) (*http.Response, string) {
		return ben.send(x.w.url+"/console/agents/token", "/console/agents/token",
			"place", x.id.String()+"/"+x.instance.String(), "level", level, "days", "30", "name", "Ben's agent", "which", "all")
	}
	if resp, _ := personal("rw"); resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("Ben gives an agent more than he has: %d", resp.StatusCode)
	}
	_, body = personal("r")
	agent := x.w.client(secret(t, body), eras[0], nil, nil)

	list := call(t.Context(), agent, "notebook", map[string]any{"action": "list"})
	if list.code != "" || !strings.Contains(list.body, "Garden") || strings.Contains(list.body, "Work") {
		t.Errorf("the agent's notebooks: %+v", list)
	}
	get := func(id string) answer {
		return call(t.Context(), agent, "document", map[string]any{"action": "get_doc", "id": id})
	}
	if a := get(read); a.code != "" || !strings.Contains(a.body, "sown in May") {
		t.Errorf("a document of the garden: %+v", a)
	}
	if a := get(hiddenDoc); a.code != contract.NotFound {
		t.Errorf("a document of another notebook: %+v", a)
	}
	write := map[string]any{"action": "create", "notebook": garden, "path": "/Peas", "markdown": "x"}
	if a := call(t.Context(), agent, "document", write); a.code != contract.PermissionDenied {
		t.Errorf("writing with a share to read: %+v", a)
	}

	var share tenants.ID
	x.change(func(tx tenants.Tx) error {
		all, err := tx.Shares(t.Context(), tenants.ShareFilter{MemberID: u.ID})
		if len(all) != 1 {
			t.Fatalf("shares %+v", all)
		}
		share = all[0].ID
		return err
	})
	owner.sends(people, "/console/people/unshare", "instance", x.instance.String(), "share", share.String())
	// Who has nothing may do nothing: the answer is the same for every id.
	within(t, pushed, "the notebook is gone for the agent", func() bool { return get(read).code == contract.PermissionDenied })
	if a, b := get(read), get(hiddenDoc); a.code != b.code || strings.Contains(a.body, "Garden") {
		t.Errorf("what was shared and what never was are told apart: %+v, %+v", a, b)
	}
	list = call(t.Context(), agent, "notebook", map[string]any{"action": "list"})
	if strings.Contains(list.body, "Garden") || strings.Contains(list.body, "Work") {
		t.Errorf("the notebook is still listed: %+v", list)
	}

	// Removed, Ben is out: his agent at once, his page with the next request.
	owner.sends(people, "/console/people/remove", "member", u.ID.String())
	within(t, pushed, "the agent has ended", func() bool { return get(read).err != nil })
	x.auditHas(t, "invitation.create", "invitation.accept", "share.set", "share.remove", "member.remove")
}

// auditHas looks for verbs in the tenant's audit log.
func (x *tenant) auditHas(t *testing.T, verbs ...string) {
	t.Helper()
	x.change(func(tx tenants.Tx) error {
		log, err := tx.AuditLog(t.Context(), time.Now().Add(time.Hour), 100)
		b, _ := json.Marshal(log)
		for _, verb := range verbs {
			if !strings.Contains(string(b), verb) {
				t.Errorf("no audit entry %s", verb)
			}
		}
		return err
	})
}
