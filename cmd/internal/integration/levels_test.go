package integration

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// askers is a tenant whose agents may ask for levels.
type askers struct {
	*wiped
	person *person
}

func newAskers(t *testing.T) *askers {
	x := newWiped(t)
	x.on("notebook", "set_permission")
	a := &askers{x, x.person()}
	eventually(t, "the notebook is reported and the action on", func() bool {
		return call(t.Context(), x.plain, "notebook", set(x.notebook, "rw")).code == contract.ConfirmationRequired
	})
	return a
}

func set(notebook, level string, more ...string) map[string]any {
	args := map[string]any{"action": "set_permission", "notebook": notebook, "permission": level}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i]] = more[i+1]
	}
	return args
}

// level is what the tenant has set for its notebook, none being "".
func (x *askers) level(t *testing.T) string {
	t.Helper()
	at := ""
	x.change(func(tx tenants.Tx) error {
		all, err := tx.Levels(t.Context(), x.instance)
		if l, ok := all[x.notebook]; ok {
			at = l.String()
		}
		return err
	})
	return at
}

func (x *askers) ask(t *testing.T, level string) refusal {
	t.Helper()
	return refused(t, call(t.Context(), x.plain, "notebook", set(x.notebook, level)), contract.ConfirmationRequired)
}

// permission is what the agent itself may do.
func permission(t *testing.T, s *mcp.ClientSession, notebook string) string {
	t.Helper()
	a := call(t.Context(), s, "notebook", map[string]any{"action": "get_permissions", "notebook": notebook})
	var out struct{ Notebooks []struct{ Permission string } }
	if a.code != "" || json.Unmarshal([]byte(a.body), &out) != nil || len(out.Notebooks) != 1 {
		return string(a.code)
	}
	return out.Notebooks[0].Permission
}

func TestALevelIsSetOnceAPersonAgreedInTheConsole(t *testing.T) {
	t.Parallel()
	x := newAskers(t)
	rounds := 0
	for _, era := range eras {
		for _, kind := range []string{"form", "none", "waits"} {
			rounds++
			to := []string{"rwd", "r"}[rounds%2]
			name := era + ", " + kind + ", to " + to
			before := x.level(t)
			var form func(string) *mcp.ElicitResult
			if kind == "form" {
				form = func(string) *mcp.ElicitResult {
					t.Errorf("%s: asked in a form", name)
					return yes("")
				}
			}
			links := make(chan string, 64)
			s := x.w.client(x.token, era, form, func(message string) {
				if _, at, ok := strings.Cut(message, " at "); ok {
					links <- at
				}
			})
			params := &mcp.CallToolParams{Name: "notebook", Arguments: set(x.notebook, to)}
			var done answer
			if kind == "waits" {
				params.SetProgressToken("p")
				answered := make(chan answer, 1)
				go func() { answered <- read(s.CallTool(t.Context(), params)) }() // received below
				x.person.submit(<-links, url.Values{"do": {"approve"}})
				done = <-answered
			} else {
				r := refused(t, read(s.CallTool(t.Context(), params)), contract.ConfirmationRequired)
				id := r.Error.RequestID
				again := refused(t, call(t.Context(), s, "notebook", set(x.notebook, to, "requestId", id)), contract.ConfirmationRequired)
				if again.Error.Detail.Link != r.Error.Detail.Link || x.level(t) != before {
					t.Errorf("%s: before the answer: %+v, level %q", name, again, x.level(t))
				}
				_, page := x.person.do(http.MethodGet, r.Error.Detail.Link, nil)
				if !strings.Contains(page, "“<bdi>Work</bdi>”") || !strings.Contains(page, " → "+to+"<") {
					t.Errorf("%s: the person is not shown what changes:\n%s", name, page)
				}
				x.person.submit(r.Error.Detail.Link, url.Values{"do": {"approve"}})
				if x.level(t) != before {
					t.Errorf("%s: set before the agent asked again", name)
				}
				done = call(t.Context(), s, "notebook", set(x.notebook, to, "requestId", id))
				repeated := call(t.Context(), s, "notebook", set(x.notebook, to, "requestId", id))
				if repeated.code != "" || repeated.body != done.body {
					t.Errorf("%s: repeated: %+v, want %s", name, repeated, done.body)
				}
			}
			if done.err != nil || !strings.Contains(done.body, `"success":true,"notebook":"`+x.notebook+`","permission":"`+to+`"`) || x.level(t) != to {
				t.Errorf("%s: %+v, level %q", name, done, x.level(t))
			}
			eventually(t, "the agent feels it", func() bool { return permission(t, x.plain, x.notebook) == to })
			must(t, s.Close())
		}
	}
	changes := 0
	x.change(func(tx tenants.Tx) error {
		log, err := tx.AuditLog(t.Context(), time.Now().Add(time.Hour), 1000)
		for _, e := range log {
			if e.Verb != "level.set" {
				continue
			}
			changes++
			var d map[string]string
			must(t, json.Unmarshal(e.Detail, &d))
			if e.ActorKind != "agent" || e.ActorID != x.agent || e.Object != "notebook:"+x.notebook || d["from"] == d["to"] || d["approved_by"] != x.owner.String() || d["approval"] == "" {
				t.Errorf("audited %+v %v", e, d)
			}
		}
		return err
	})
	if changes != rounds {
		t.Errorf("%d changes are in the audit log, want %d", changes, rounds)
	}
}

func TestNoLevelIsSetWithoutAnApprovalThatFits(t *testing.T) {
	t.Parallel()
	x := newAskers(t)
	unchanged := func(what string) {
		t.Helper()
		if got := x.level(t); got != "" {
			t.Errorf("%s: the level is %q", what, got)
		}
	}
	approve := func(r refusal) { t.Helper(); x.person.submit(r.Error.Detail.Link, url.Values{"do": {"approve"}}) }
	send := func(s *mcp.ClientSession, level string, r refusal) answer {
		return call(t.Context(), s, "notebook", set(x.notebook, level, "requestId", r.Error.RequestID))
	}
	_, second := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)

	r := x.ask(t, "r")
	x.person.submit(r.Error.Detail.Link, url.Values{"do": {"deny"}})
	refused(t, send(x.plain, "r", r), contract.ConfirmationDeclined)
	unchanged("declined")

	r = x.ask(t, "r")
	approve(r)
	refused(t, send(x.plain, "rw", r), contract.ConfirmationInvalid)
	unchanged("other arguments")
	other := refused(t, send(x.w.client(second, eras[0], nil, nil), "r", r), contract.ConfirmationRequired)
	if other.Error.Detail.Link == r.Error.Detail.Link {
		t.Error("an agent uses what was asked for another one")
	}
	unchanged("another agent")

	y := x.w.tenant("Ben", tenants.NewID())
	y.allow()
	y.on("notebook", "set_permission")
	y.home(nil)
	_, foreign := y.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	refused(t, send(x.w.client(foreign, eras[0], nil, nil), "r", r), contract.NotFound)
	unchanged("another tenant")

	refused(t, call(t.Context(), x.plain, "notebook", set(x.notebook, "r", "confirmationToken", "e30")), contract.ConfirmationInvalid)
	unchanged("a token of the agent's")

	x.change(func(tx tenants.Tx) error { // the rules change
		return tx.SetToggle(t.Context(), x.instance, tenants.Toggle{Tool: "document", Action: "duplicate", Enabled: false})
	})
	eventually(t, "the rules are known", func() bool {
		return call(t.Context(), x.plain, "document", map[string]any{"action": "help", "topic": "duplicate"}).code != ""
	})
	stale := refused(t, send(x.plain, "r", r), contract.ConfirmationRequired)
	if !strings.Contains(stale.Error.Message, "rules") {
		t.Errorf("other rules: %+v", stale)
	}
	unchanged("approved under other rules")

	// The same question, put an hour ago and approved too late.
	id, err := uuid.Parse(path.Base(stale.Error.Detail.Link))
	must(t, err)
	x.change(func(tx tenants.Tx) error {
		old, err := tx.Approval(t.Context(), id)
		must(t, err)
		old.ID, old.RequestID = tenants.NewID(), tenants.NewID()
		old.CreatedAt, old.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
		must(t, tx.OpenApproval(t.Context(), old, tenants.ApprovalBounds{PerAgent: 16, InAll: 16}))
		r.Error.RequestID = old.RequestID.String()
		return tx.DecideApproval(t.Context(), old.ID, x.owner, true, old.CreatedAt)
	})
	if late := refused(t, send(x.plain, "r", r), contract.ConfirmationRequired); !strings.Contains(late.Error.Message, "expired") {
		t.Errorf("approved and expired: %+v", late)
	}
	unchanged("expired")

	// What was approved once is not done again, whoever set what meanwhile.
	r = x.ask(t, "r")
	approve(r)
	if a := send(x.plain, "r", r); a.code != "" || x.level(t) != "r" {
		t.Errorf("approved: %+v", a)
	}
	x.change(func(tx tenants.Tx) error { return tx.ClearLevel(t.Context(), x.instance, x.notebook) })
	if a := send(x.plain, "r", r); a.code != "" {
		t.Errorf("reused: %+v", a)
	}
	unchanged("reused")

	r = x.ask(t, "r")
	approve(r)
	x.change(func(tx tenants.Tx) error { return tx.RevokeAgent(t.Context(), x.agent) })
	eventually(t, "the agent has no access", func() bool {
		return call(t.Context(), x.plain, "notebook", map[string]any{"action": "list"}).err != nil
	})
	if a := send(x.plain, "r", r); a.err == nil {
		t.Errorf("revoked: %+v", a)
	}
	unchanged("revoked")
}

func TestWhoMayAskForALevelAndWhatItCannotLift(t *testing.T) {
	t.Parallel()
	x := newAskers(t)

	// The agent's own ceiling stays.
	_, token := x.agentToken(tenants.NewID(), contract.Read)
	s := x.w.client(token, eras[0], nil, nil)
	r := refused(t, call(t.Context(), s, "notebook", set(x.notebook, "rw")), contract.ConfirmationRequired)
	x.person.submit(r.Error.Detail.Link, url.Values{"do": {"approve"}})
	if a := call(t.Context(), s, "notebook", set(x.notebook, "rw", "requestId", r.Error.RequestID)); a.code != "" || x.level(t) != "rw" {
		t.Errorf("%+v", a)
	}
	eventually(t, "another agent feels it", func() bool { return permission(t, x.plain, x.notebook) == "rw" })
	if got := permission(t, s, x.notebook); got != "r" {
		t.Errorf("an agent that may read at most has %q", got)
	}

	// What is hidden is like what is not there.
	x.change(func(tx tenants.Tx) error { return tx.SetLevel(t.Context(), x.instance, x.notebook, contract.None) })
	eventually(t, "the notebook is hidden", func() bool { return permission(t, s, x.notebook) == string(contract.NotFound) })
	same := tenants.NewID().String()
	hidden := call(t.Context(), s, "notebook", set(x.notebook, "r", "requestId", same))
	missing := call(t.Context(), s, "notebook", set("20200101120000-missing", "r", "requestId", same))
	if hidden.code != contract.NotFound || hidden.body != missing.body {
		t.Errorf("hidden: %s\nmissing: %s", hidden.body, missing.body)
	}
	x.change(func(tx tenants.Tx) error { return tx.ClearLevel(t.Context(), x.instance, x.notebook) })

	// Not validated, and only for who manages the tenant, with the switch on.
	eventually(t, "the notebook is back", func() bool { return permission(t, x.plain, x.notebook) == "rwd" })
	args := set(x.notebook, "r")
	args["validateOnly"] = true
	if a := call(t.Context(), x.plain, "notebook", args); a.code != contract.Unsupported && a.code != contract.StrictModeDisabled {
		t.Errorf("validated: %+v", a)
	}
	x.change(func(tx tenants.Tx) error {
		return tx.SetSwitch(t.Context(), x.instance, contract.SwitchWorkspace, false)
	})
	eventually(t, "the switch is off", func() bool {
		return call(t.Context(), x.plain, "notebook", map[string]any{"action": "help", "topic": "set_permission"}).code != ""
	})
	refused(t, call(t.Context(), x.plain, "notebook", set(x.notebook, "r")), contract.ActionDisabled)
	x.allow()
	u, err := x.w.db.CreateUser(t.Context(), tenants.User{Email: "eve@example.org", Name: "Eve"})
	must(t, err)
	x.change(func(tx tenants.Tx) error { return tx.AddMember(t.Context(), u.ID, tenants.Member) })
	eve := *x.tenant
	eve.owner = u.ID
	_, plain := eve.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	if a := call(t.Context(), x.w.client(plain, eras[0], nil, nil), "notebook", set(x.notebook, "rwd")); a.code != contract.PermissionDenied {
		t.Errorf("the agent of a plain member: %+v", a)
	}
}
