package memory_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"siyuan-broker/broker/memory"
	"siyuan-broker/broker/page"
	"siyuan-broker/tenants"
)

// desk is the page before a store, seen by one of the two members.
type desk struct {
	*agents
	page *memory.Page
	who  tenants.Viewer
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{agents: newAgents(t)}
	pages, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}})
	must(t, err)
	d.page, err = memory.NewPage(memory.PageOptions{Pages: pages, Store: d.db, Log: slog.New(slog.DiscardHandler), Viewer: func(*http.Request) (tenants.Viewer, bool) {
		return d.who, d.who.ID != tenants.ID{}
	}})
	must(t, err)
	d.as(tenants.Owner, d.one.Principal.Member)
	return d
}

func (d *desk) as(role tenants.Role, member tenants.ID) {
	d.who = tenants.Viewer{ID: member, Belongs: true, Membership: tenants.Membership{TenantID: d.tenant, TenantName: "Notes", Role: role}}
}

func (d *desk) show(t *testing.T, lang string) string {
	t.Helper()
	r := httptest.NewRequest("GET", "https://notes.example"+memory.PagePath, nil)
	r.Header.Set("Accept-Language", lang)
	w := httptest.NewRecorder()
	d.page.Show(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func (d *desk) post(handle http.HandlerFunc, fields ...string) int {
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	r := httptest.NewRequest("POST", "https://notes.example/", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	handle(w, r)
	return w.Code
}

func TestPeopleSeeAndClearWhatTheirAgentsRemember(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok(t, d.one, "write", `{"path":"/AGENTS.md","markdown":"first <b>"}`)
	d.ok(t, d.one, "write", `{"path":"/AGENTS.md","markdown":"second 第二"}`)
	d.ok(t, d.two, "write", `{"path":"/AGENTS.md","markdown":"of somebody else"}`)
	for lang, words := range map[string][]string{"en": {"Clear memory", "second 第二", "first &lt;b&gt;", "Version 1"}, "zh": {"清除记忆", "second 第二", "版本 1"}} {
		html := d.show(t, lang)
		for _, w := range words {
			if !strings.Contains(html, w) {
				t.Errorf("%s: no %q in the page", lang, w)
			}
		}
		if strings.Contains(html, "somebody else") {
			t.Error("the page shows another member's memory")
		}
	}
	if code := d.post(d.page.Clear, "instance", d.instance.String()); code != http.StatusSeeOther {
		t.Errorf("clear: %d", code)
	}
	if got := d.text(t, d.one, "/AGENTS.md"); got != "" {
		t.Errorf("after clearing, agents read %q", got)
	}
	if got := d.text(t, d.two, "/AGENTS.md"); got != "of somebody else" {
		t.Errorf("clearing took another member's: %q", got)
	}
	if html := d.show(t, "en"); strings.Contains(html, "first") || !strings.Contains(html, "written nothing yet") {
		t.Error("the page still shows what was cleared")
	}
	must(t, d.db.In(t.Context(), d.tenant, func(tx tenants.Tx) error {
		log, err := tx.AuditLog(t.Context(), d.Now().Add(1<<40), 10)
		if len(log) != 1 || log[0].Verb != "memory.clear" {
			t.Errorf("audit %+v", log)
		}
		return err
	}))
}

func TestPeopleSetRules(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	save := func(whose, text string) int {
		return d.post(d.page.SaveRules, "instance", d.instance.String(), "for", whose, "text", text)
	}
	if code := save("own", " mine\r\nonly "); code != http.StatusSeeOther {
		t.Errorf("own rules: %d", code)
	}
	if code := save("all", "for all"); code != http.StatusSeeOther {
		t.Errorf("rules for all: %d", code)
	}
	if got := d.text(t, d.one, "/USER_RULES.md"); got != "for all\n\nmine\nonly" {
		t.Errorf("%q", got)
	}
	if html := d.show(t, "en"); !strings.Contains(html, "for all</textarea>") || !strings.Contains(html, "mine\nonly</textarea>") {
		t.Error("the forms do not show the rules")
	}
	if code := save("own", strings.Repeat("字", tenants.MaxRules+1)); code != http.StatusBadRequest {
		t.Errorf("too long: %d", code)
	}
	if code := d.post(d.page.SaveRules, "instance", tenants.NewID().String(), "for", "own", "text", "x"); code != http.StatusNotFound {
		t.Errorf("of a workspace that does not exist: %d", code)
	}
	must(t, d.db.In(t.Context(), d.tenant, func(tx tenants.Tx) error {
		return tx.SetRole(t.Context(), d.two.Principal.Member, tenants.Member)
	}))
	d.as(tenants.Member, d.two.Principal.Member)
	if code := save("all", "taken over"); code != http.StatusNotFound {
		t.Errorf("a plain member sets rules for all: %d", code)
	}
	if html := d.show(t, "zh"); !strings.Contains(html, "for all</pre>") || strings.Contains(html, "mine") {
		t.Error("a member does not see the rules for all, or sees another's own")
	}
}

func TestWhoIsNotSignedInOrBelongsNowhereSeesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.who.Belongs, d.who.Membership = false, tenants.Membership{}
	if html := d.show(t, "en"); strings.Contains(html, "Home</bdi>") {
		t.Error("somebody without a tenant sees a workspace")
	}
	if code := d.post(d.page.Clear, "instance", d.instance.String()); code != http.StatusNotFound {
		t.Errorf("clear: %d", code)
	}
	d.who = tenants.Viewer{}
	w := httptest.NewRecorder()
	d.page.Show(w, httptest.NewRequest("GET", "https://notes.example"+memory.PagePath, nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("without a session: %d", w.Code)
	}
}
