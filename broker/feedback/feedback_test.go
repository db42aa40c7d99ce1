package feedback

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/here"
	"siyuan-broker/broker/page"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// desk is a tenant's box with its page, an agent and two people.
type desk struct {
	*Box
	page          *Page
	db            *postgres.Store
	snap          *admission.Snapshot
	owner, member tenants.ID
	who           tenants.Viewer
	now           time.Time
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	ctx, pg := t.Context(), pgtest.New(t)
	db, err := postgres.Open(ctx, postgres.Options{ServiceDSN: pg.ServiceDSN, RecorderDSN: pg.RecorderDSN, ListenDSN: pg.ListenDSN, MasterKey: make([]byte, 32), MaxConns: 8})
	must(t, err)
	t.Cleanup(db.Close)
	one, err := db.CreateUser(ctx, tenants.User{Email: "p@example.org", Name: "P"})
	must(t, err)
	two, err := db.CreateUser(ctx, tenants.User{Email: "q@example.org", Name: "Q"})
	must(t, err)
	tenant, err := db.CreateTenant(ctx, "Notes", one.ID)
	must(t, err)
	must(t, db.In(ctx, tenant.ID, func(tx tenants.Tx) error { return tx.AddMember(ctx, two.ID, tenants.Member) }))
	d := &desk{db: db, owner: one.ID, member: two.ID, now: time.Now()}
	d.snap = &admission.Snapshot{Principal: admission.Principal{Tenant: tenant.ID, Member: one.ID, Agent: tenants.NewID(), Instance: tenants.NewID(), AgentName: "Claude"}}
	d.Box = &Box{Store: db, Now: func() time.Time { return d.now }}
	pages, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}})
	must(t, err)
	d.page, err = NewPage(PageOptions{Pages: pages, Store: db, Log: slog.New(slog.DiscardHandler), Viewer: func(*http.Request) (tenants.Viewer, bool) { return d.who, d.who.ID != tenants.ID{} }})
	must(t, err)
	d.as(one.ID, tenants.Owner)
	return d
}

func (d *desk) as(person tenants.ID, role tenants.Role) {
	d.who = tenants.Viewer{ID: person, Belongs: true, Membership: tenants.Membership{TenantID: d.snap.Principal.Tenant, TenantName: "Notes", Role: role}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) send(args, request string) (json.RawMessage, *contract.Error) {
	settled, err := tools.FeedbackSubmit.Validate(json.RawMessage(args))
	if err != nil {
		return nil, err
	}
	body, err, mine := d.Answer(context.Background(), here.Call{Snapshot: d.snap, Action: tools.FeedbackSubmit.Action, Args: settled, RequestID: request})
	if !mine {
		return nil, contract.Fail(contract.Internal, "the call is left to the home")
	}
	return body, err
}

func (d *desk) kept(t *testing.T) (all []tenants.Feedback) {
	t.Helper()
	must(t, d.db.In(t.Context(), d.snap.Principal.Tenant, func(tx tenants.Tx) (err error) {
		all, err = tx.Feedback(t.Context(), 100)
		return err
	}))
	return all
}

func TestWhatAnAgentSaysIsKeptOnceWithTheTenant(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	request := tenants.NewID().String()
	var out tools.FeedbackSubmitOut
	for range 2 {
		body, err := d.send(`{"description":"## 问题\nno <b>results</b>","impact":"slow"}`, request)
		if err != nil {
			t.Fatal(err)
		}
		must(t, json.Unmarshal(body, &out))
	}
	all := d.kept(t)
	if len(all) != 1 || all[0].ID.String() != out.ID || all[0].WrittenAt.UnixMilli() != out.CreatedTS || !out.Success {
		t.Fatalf("%+v for %+v", all, out)
	}
	if f := all[0]; f.Description != "## 问题\nno <b>results</b>" || f.Agent != "Claude" || f.Source != "mcp" || f.MemberID != d.owner || f.AgentID != d.snap.Principal.Agent {
		t.Errorf("%+v", f)
	}
	if _, err := d.send(`{"description":"x","agent":"Codex gpt","source":"cli","suggestion":"y"}`, tenants.NewID().String()); err != nil {
		t.Fatal(err)
	}
	if f := d.kept(t)[0]; f.Agent != "Codex gpt" || f.Source != "cli" || f.Suggestion != "y" {
		t.Errorf("%+v", f)
	}
}

func TestFeedbackIsBoundedInSizeAndNumber(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for args, want := range map[string]contract.Code{
		`{}`: contract.InvalidArguments, `{"description":""}`: contract.InvalidArguments, `{"description":"nul \u0000"}`: contract.InvalidValue,
		`{"description":"` + strings.Repeat("字", 4001) + `"}`: contract.InvalidArguments, `{"description":"x","impact":"` + strings.Repeat("a", 1001) + `"}`: contract.InvalidArguments,
	} {
		if body, err := d.send(args, tenants.NewID().String()); contract.CodeOf(err) != want {
			t.Errorf("%.40s: %s %v", args, body, err)
		}
	}
	for range tenants.FeedbackPerHour {
		if _, err := d.send(`{"description":"x"}`, tenants.NewID().String()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.send(`{"description":"x"}`, tenants.NewID().String())
	if contract.CodeOf(err) != contract.RateLimited || err.RetryAfterS != 3600 {
		t.Errorf("%v", err)
	}
	d.now = d.now.Add(time.Hour + time.Second)
	if _, err := d.send(`{"description":"x"}`, tenants.NewID().String()); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

func TestFeedbackRefusesToBeValidated(t *testing.T) {
	t.Parallel()
	if tools.FeedbackSubmit.Kind.Mutates() || tools.FeedbackSubmit.Guarded != tools.NoPrecondition {
		t.Error("feedback would take validateOnly, which it does not look at")
	}
}

func (d *desk) show(t *testing.T, lang string) string {
	t.Helper()
	r := httptest.NewRequest("GET", "https://notes.example"+PagePath, nil)
	r.Header.Set("Accept-Language", lang)
	w := httptest.NewRecorder()
	d.page.Show(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func (d *desk) remove(id string) int {
	r := httptest.NewRequest("POST", "https://notes.example"+DeletePath, strings.NewReader(url.Values{"id": {id}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	d.page.Delete(w, r)
	return w.Code
}

func TestManagersReadAndDeleteItAndNobodyElseDoes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if html := d.show(t, "zh"); !strings.Contains(html, "还没有反馈") {
		t.Error("an empty page says nothing")
	}
	if _, err := d.send(`{"description":"no <b>results</b>","suggestion":"say so"}`, tenants.NewID().String()); err != nil {
		t.Fatal(err)
	}
	for lang, words := range map[string][]string{"en": {"no &lt;b&gt;results&lt;/b&gt;", "say so", "Claude", "Suggestion"}, "zh": {"建议", "删除"}} {
		html := d.show(t, lang)
		for _, w := range words {
			if !strings.Contains(html, w) {
				t.Errorf("%s: no %q in the page", lang, w)
			}
		}
	}
	id := d.kept(t)[0].ID.String()
	d.as(d.member, tenants.Member)
	if html := d.show(t, "en"); strings.Contains(html, "results") {
		t.Error("a plain member reads it")
	}
	d.as(d.member, tenants.Owner) // as an old session may still say
	if code := d.remove(id); code != http.StatusNotFound {
		t.Errorf("a plain member deletes it: %d", code)
	}
	d.as(d.owner, tenants.Owner)
	for _, wrong := range []string{"", "x", tenants.NewID().String()} {
		if code := d.remove(wrong); code != http.StatusNotFound {
			t.Errorf("delete %q: %d", wrong, code)
		}
	}
	if code := d.remove(id); code != http.StatusSeeOther || len(d.kept(t)) != 0 {
		t.Errorf("delete: %d, %d left", code, len(d.kept(t)))
	}
	d.who = tenants.Viewer{}
	w := httptest.NewRecorder()
	d.page.Show(w, httptest.NewRequest("GET", "https://notes.example"+PagePath, nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("without a session: %d", w.Code)
	}
}

func TestThePageRendersInEveryLanguage(t *testing.T) {
	t.Parallel()
	pages, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}})
	must(t, err)
	set, err := load(pages)
	must(t, err)
	all := []tenants.Feedback{{ID: tenants.NewID(), Description: "d", Impact: "i", Suggestion: "s", Agent: "a", Source: "mcp", WrittenAt: time.Now()}, {Description: "d"}}
	for _, p := range set.Check(map[string][]any{"feedback": {feedbackPage{}, feedbackPage{Manages: true, Tenant: "T"}, feedbackPage{Manages: true, Tenant: "T", All: all}}}) {
		t.Error(p)
	}
}
