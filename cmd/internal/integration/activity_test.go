package integration

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/connector/approvals"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// shared is a tenant with a home, its owner's agent, and an agent of a plain member.
type shared struct {
	*tenant
	at            *home
	bo            *tenant // the same tenant, seen by the member
	agent         tenants.ID
	own, theirs   *mcp.ClientSession // of the owner and of the member
	work, private string             // notebooks that the member has
}

// join makes one more member.
func (x *tenant) join(name string) *tenant {
	t := x.w.t
	t.Helper()
	u, err := x.w.db.CreateUser(t.Context(), tenants.User{Email: name + "@example.org", Name: name})
	must(t, err)
	x.change(func(tx tenants.Tx) error { return tx.AddMember(t.Context(), u.ID, tenants.Member) })
	joined := *x
	joined.owner = u.ID
	return &joined
}

func newShared(t *testing.T) *shared {
	t.Helper()
	x := &shared{tenant: newWorld(t).tenant("Ada", tenants.NewID())}
	x.allow()
	x.at = x.home(nil)
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	x.own = x.w.client(token, eras[0], nil, nil)
	x.bo = x.join("bo")
	for _, n := range []struct {
		name string
		id   *string
	}{{"Work", &x.work}, {"Private", &x.private}} {
		*n.id = into[madeNotebook](t, x.own, "notebook", map[string]any{"action": "create", "name": n.name}).Notebook.ID
		x.share(t, *n.id)
	}
	x.agent, token = x.bo.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	x.theirs = x.w.client(token, eras[1], nil, nil)
	return x
}

func (x *shared) share(t *testing.T, notebook string) {
	t.Helper()
	x.change(func(tx tenants.Tx) error {
		_, err := tx.Share(t.Context(), tenants.Share{InstanceID: x.instance, NotebookID: notebook, MemberID: x.bo.owner, Level: contract.ReadWriteDelete, CreatedBy: x.owner})
		return err
	})
}

func (x *shared) unshare(t *testing.T, notebook string) {
	t.Helper()
	x.change(func(tx tenants.Tx) error {
		all, err := tx.Shares(t.Context(), tenants.ShareFilter{InstanceID: x.instance})
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.NotebookID == notebook {
				must(t, tx.Unshare(t.Context(), s.ID))
			}
		}
		return nil
	})
}

// doc makes a document as an agent.
func (x *shared) doc(t *testing.T, s *mcp.ClientSession, notebook, title string) string {
	t.Helper()
	return into[made](t, s, "document", map[string]any{"action": "create", "notebook": notebook, "path": "/" + title, "markdown": "as it was"}).ID
}

func (x *shared) add(t *testing.T, s *mcp.ClientSession, doc, text string) {
	t.Helper()
	into[struct{}](t, s, "block", map[string]any{"action": "append", "parentID": doc, "dataType": "markdown", "data": text})
}

// ials are attributes, which are in no order.
var ials = regexp.MustCompile(`\{:[^}]*\}`)

func (x *shared) text(t *testing.T, doc string) string {
	t.Helper()
	kramdown := into[struct{ Kramdown string }](t, x.own, "block", map[string]any{"action": "get_kramdown", "id": doc}).Kramdown
	return ials.ReplaceAllString(kramdown, "")
}

func (x *shared) path(page string) string {
	return x.w.url + "/console/agents/" + x.agent.String() + page
}

// see opens a page that has to say all of the words.
func (p *person) see(at string, words ...string) string {
	p.w.t.Helper()
	resp, body := p.do(http.MethodGet, at, nil)
	if resp.StatusCode != http.StatusOK {
		p.w.t.Fatalf("GET %s: %d", at, resp.StatusCode)
	}
	for _, w := range words {
		if !strings.Contains(body, w) {
			p.w.t.Errorf("GET %s does not say %q:\n%s", at, w, body)
		}
	}
	return body
}

// form are the hidden fields of a page's only form.
func form(body string) url.Values {
	v := url.Values{}
	for _, field := range hidden.FindAllStringSubmatch(body, -1) {
		v.Set(field[1], field[2])
	}
	return v
}

func link(t *testing.T, body, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(body, after)
	_, rest, found := strings.Cut(rest, `href="/console/agents/`)
	at, _, end := strings.Cut(rest, `"`)
	if !ok || !found || !end {
		t.Fatalf("no link after %q in\n%s", after, body)
	}
	return "/console/agents/" + strings.ReplaceAll(at, "&amp;", "&")
}

func TestAPersonTakesBackWhatAnAgentWrote(t *testing.T) {
	t.Parallel()
	x := newShared(t)
	theirs := x.doc(t, x.own, x.work, "Report of the owner")
	before := x.text(t, theirs)
	x.add(t, x.theirs, theirs, "a mistake")
	touched := x.doc(t, x.own, x.work, "Common list")
	x.add(t, x.theirs, touched, "by the agent")
	x.add(t, x.own, touched, "by somebody else")
	made := x.doc(t, x.theirs, x.work, "New by the agent")
	secret := x.doc(t, x.own, x.private, "Secret plan")
	x.add(t, x.theirs, secret, "more")
	bo := x.bo.person()
	bo.see(x.path("/activity"), "Secret plan", "Report of the owner", "Common list", "New by the agent", "somebody else changed it since", "Sitting 2")
	bo.see(x.w.url+"/console/agents", x.agent.String()+"/activity")

	// What the person may not read any more is not shown, to nobody through this agent.
	x.unshare(t, x.private)
	eventually(t, "the share has ended", func() bool {
		_, body := bo.do(http.MethodGet, x.path("/activity"), nil)
		return !strings.Contains(body, "Secret plan")
	})
	ada := x.person()
	if body := ada.see(x.path("/activity"), "It works for bo@example.org.", "Report of the owner"); strings.Contains(body, "Secret") {
		t.Error("the owner is shown more than the agent reaches")
	}

	// One document, by the member.
	list := bo.see(x.path("/activity"))
	single := x.w.url + link(t, list, "Report of the owner")
	preview := bo.see(single, "Nothing has been changed yet", "Report of the owner", "Undo now")
	if strings.Contains(preview, "New by the agent") || x.text(t, theirs) == before {
		t.Error("the preview is of more than the document, or did it")
	}
	fields := form(preview)
	for range 2 { // the second time is the answer, loaded again
		resp, body := bo.do(http.MethodPost, x.path("/undo"), fields)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, "<h1>Undone</h1>") || !strings.Contains(body, "Report of the owner") {
			t.Fatalf("undo: %d\n%s", resp.StatusCode, body)
		}
	}
	if got := x.text(t, theirs); got != before {
		t.Errorf("the document says %q, said %q", got, before)
	}
	if got := x.log(t, "agent.undo"); len(got) != 1 || got[0].ActorID != x.bo.owner || got[0].Object != "agent:"+x.agent.String() || !strings.Contains(string(got[0].Detail), theirs) {
		t.Errorf("the audit log has %+v", got)
	}
	if got := x.log(t, "approval.approve"); len(got) != 1 || got[0].ActorID != x.bo.owner {
		t.Errorf("agreements %+v", got)
	}

	// Something else under the same request is refused.
	other := url.Values{"document": {made}}
	for k, v := range fields {
		if k != "document" {
			other[k] = v
		}
	}
	if _, body := bo.do(http.MethodPost, x.path("/undo"), other); !strings.Contains(body, "<h1>Not undone</h1>") {
		t.Errorf("a request id was good twice:\n%s", body)
	}

	// The rest of the sitting, by the owner of the tenant.
	sitting := ada.see(x.path("/undo?sitting="+fields.Get("sitting")), "New by the agent", "Common list", "somebody else changed it since")
	resp, body := ada.do(http.MethodPost, x.path("/undo"), form(sitting))
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, "Not all of it was undone") || !strings.Contains(body, "Documents and databases brought back: 1") {
		t.Fatalf("undo: %d\n%s", resp.StatusCode, body)
	}
	if a := call(t.Context(), x.own, "document", map[string]any{"action": "get_doc", "id": made}); a.code != contract.NotFound {
		t.Errorf("what the agent made: %+v", a)
	}
	if got := x.text(t, touched); !strings.Contains(got, "by somebody else") {
		t.Errorf("what somebody else wrote is gone: %q", got)
	}
	bo.see(x.path("/activity"), "An undo")

	must(t, x.at.stop())
	eventually(t, "the page says that the home is away", func() bool {
		_, body := bo.do(http.MethodGet, x.path("/activity"), nil)
		return strings.Contains(body, "The home cannot be reached right now") && !strings.Contains(body, "Common list")
	})
}

// log are the lines of the audit log with a verb.
func (x *tenant) log(t *testing.T, verb string) (all []tenants.AuditEntry) {
	t.Helper()
	x.change(func(tx tenants.Tx) (err error) {
		all, err = tx.AuditLog(t.Context(), time.Now().Add(time.Hour), 100)
		return err
	})
	return slices.DeleteFunc(all, func(e tenants.AuditEntry) bool { return e.Verb != verb })
}

func TestWhatAnAgentWroteIsForItsMemberAndTheManagersOnly(t *testing.T) {
	t.Parallel()
	x := newShared(t)
	x.doc(t, x.theirs, x.work, "Plan")
	cy, eve := x.join("cy").person(), x.w.tenant("Eve", tenants.NewID()).person()
	bo := x.bo.person()
	bo.see(x.path("/activity"), "Plan")
	fields := form(bo.see(x.path("/undo?sitting=" + sittingOf(t, bo.see(x.path("/activity"))))))
	for name, p := range map[string]*person{"another member": cy, "the owner of another tenant": eve} {
		_, page := p.do(http.MethodGet, x.w.url+"/console/account", nil)
		theirs := form(page)
		theirs.Set("sitting", fields.Get("sitting"))
		theirs.Set("request", tenants.NewID().String())
		for _, try := range []struct {
			method, at string
			form       url.Values
		}{{http.MethodGet, "/activity", nil}, {http.MethodGet, "/undo?sitting=" + fields.Get("sitting"), nil}, {http.MethodPost, "/undo", theirs}} {
			if resp, body := p.do(try.method, x.path(try.at), try.form); resp.StatusCode != http.StatusNotFound || strings.Contains(body, "Plan") {
				t.Errorf("%s: %s %s: %d", name, try.method, try.at, resp.StatusCode)
			}
		}
	}
	fields.Del("_form")
	if resp, _ := bo.do(http.MethodPost, x.path("/undo"), fields); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a form of nobody's: %d", resp.StatusCode)
	}
	for _, bad := range []string{"/undo", "/undo?sitting=0", "/undo?sitting=x", "/undo?sitting=1&document=nonsense"} {
		if resp, _ := bo.do(http.MethodGet, x.path(bad), nil); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", bad, resp.StatusCode)
		}
	}
	if got := x.log(t, "agent.undo"); len(got) != 0 {
		t.Errorf("something was undone: %+v", got)
	}
}

// An owner takes the access of an agent away that did damage, and then the damage.
func TestWhatAnAgentWithoutAccessWroteIsTakenBackByWhoMay(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(x *shared, tx tenants.Tx) error{
		"revoked": func(x *shared, tx tenants.Tx) error { return tx.RevokeAgent(x.w.t.Context(), x.agent) },
		"expired": func(x *shared, tx tenants.Tx) error {
			ended := time.Now().Add(-time.Minute)
			_, err := tx.UpdateAgent(x.w.t.Context(), x.agent, tenants.AgentUpdate{ExpiresAt: &ended})
			return err
		},
		"its member has left": func(x *shared, tx tenants.Tx) error { return tx.RemoveMember(x.w.t.Context(), x.bo.owner) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newShared(t)
			report, secret := x.doc(t, x.own, x.work, "Report"), x.doc(t, x.own, x.private, "Secret plan")
			before := x.text(t, report)
			x.add(t, x.theirs, report, "a mistake")
			x.add(t, x.theirs, secret, "another")
			x.unshare(t, x.private)
			bo, cy, ada := x.bo.person(), x.join("cy").person(), x.person()
			x.change(func(tx tenants.Tx) error { return end(x, tx) })
			eventually(t, "the agent has no access", func() bool {
				_, body := ada.do(http.MethodGet, x.path("/activity"), nil)
				return strings.Contains(body, "has no access any more")
			})
			if name == "revoked" {
				ada.see(x.w.url+"/console/agents", "Access taken back", x.agent.String()+"/activity")
			}

			// The member sees what they may read themselves, others nothing.
			if resp, body := bo.do(http.MethodGet, x.path("/activity"), nil); name == "its member has left" {
				if resp.StatusCode == http.StatusOK && strings.Contains(body, "Report") {
					t.Errorf("who has left is shown %s", body)
				}
			} else if !strings.Contains(body, "Report") || strings.Contains(body, "Secret") {
				t.Errorf("the member is shown %d\n%s", resp.StatusCode, body)
			}
			if resp, _ := cy.do(http.MethodGet, x.path("/activity"), nil); resp.StatusCode != http.StatusNotFound {
				t.Errorf("another member: %d", resp.StatusCode)
			}

			// What the tenant does not let be written, nobody writes here either.
			list := ada.see(x.path("/activity"), "Report", "Secret plan")
			sitting := x.path("/undo?sitting=" + sittingOf(t, list))
			x.change(func(tx tenants.Tx) error { return tx.SetLevel(t.Context(), x.instance, x.private, contract.Read) })
			fields := form(ada.see(sitting, "the level in its notebook is too low for it"))
			resp, body := ada.do(http.MethodPost, x.path("/undo"), fields)
			if resp.StatusCode != http.StatusOK || !strings.Contains(body, "Documents and databases brought back: 1") {
				t.Fatalf("undo: %d\n%s", resp.StatusCode, body)
			}
			if got := x.text(t, report); got != before {
				t.Errorf("the document says %q, said %q", got, before)
			}
			if got := x.text(t, secret); !strings.Contains(got, "another") {
				t.Errorf("written where nobody may: %q", got)
			}
			if got := x.log(t, "agent.undo"); len(got) != 1 || got[0].ActorID != x.owner || got[0].Object != "agent:"+x.agent.String() {
				t.Errorf("the audit log has %+v", got)
			}
			eventually(t, "the undo is in the record of calls", func() bool {
				var calls []tenants.Call
				x.change(func(tx tenants.Tx) (err error) {
					calls, err = tx.Calls(t.Context(), tenants.CallFilter{AgentID: x.agent, Tool: "timeline", MemberID: x.owner})
					return err
				})
				return slices.ContainsFunc(calls, func(c tenants.Call) bool {
					return c.Action == "undo" && c.Outcome == tenants.OutcomeOK && c.RequestID == fields.Get("request")
				})
			})
		})
	}
}

func TestTheHomesOwnerIsAskedAboutAPersonsUndoToo(t *testing.T) {
	t.Parallel()
	x := newShared(t)
	doc := x.doc(t, x.own, x.work, "Plan")
	before := x.text(t, doc)
	x.add(t, x.theirs, doc, "a mistake")
	x.homeRule(x.at, x.agent, "confirm: [dangerous]\n")
	bo := x.bo.person()
	fields := form(bo.see(x.path("/undo?sitting=" + sittingOf(t, bo.see(x.path("/activity"))))))
	_, body := bo.do(http.MethodPost, x.path("/undo"), fields)
	if !strings.Contains(body, "The home asks its owner too") || x.text(t, doc) == before {
		t.Fatalf("not asked:\n%s", body)
	}
	owner := approvals.In(x.at.config.Data, time.Now)
	all, err := owner.List()
	if err != nil || len(all) != 1 {
		t.Fatalf("%d questions wait, %v; want 1", len(all), err)
	}
	_, err = owner.Decide(all[0].ID, approvals.Approved)
	must(t, err)
	if _, body = bo.do(http.MethodPost, x.path("/undo"), form(body)); !strings.Contains(body, "<h1>Undone</h1>") || x.text(t, doc) != before {
		t.Errorf("after the owner's yes:\n%s", body)
	}
	if got := x.log(t, "agent.undo"); len(got) != 1 {
		t.Errorf("the audit log has %+v", got)
	}
}

func sittingOf(t *testing.T, body string) string {
	t.Helper()
	_, rest, ok := strings.Cut(body, "/undo?sitting=")
	if !ok {
		t.Fatalf("nothing to undo in\n%s", body)
	}
	return rest[:strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })]
}
