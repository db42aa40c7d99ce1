package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// client connects an agent; form answers what its person is asked, nil for a
// client without forms, and waits tells whether it follows the progress of calls.
func (w *world) client(token, era string, form func(message string) *mcp.ElicitResult, waits func(string)) *mcp.ClientSession {
	w.t.Helper()
	o := &mcp.ClientOptions{}
	if form != nil {
		o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return form(r.Params.Message), nil
		}
	}
	if waits != nil {
		o.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { waits(r.Params.Message) }
	}
	transport := &http.Transport{}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(w.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: w.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{token, transport}}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	must(w.t, err)
	w.t.Cleanup(func() {
		_ = s.Close()
		transport.CloseIdleConnections()
	})
	return s
}

func yes(string) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}
}

// wiped is a tenant with a home whose agent may remove documents, once somebody
// agrees.
type wiped struct {
	*tenant
	at       *home
	notebook string
	plain    *mcp.ClientSession // a client without forms
	token    string
	agent    tenants.ID
	docs     int
	flips    int
}

func newWiped(t *testing.T) *wiped { return newWorld(t).wiped(t) }

func (w *world) wiped(t *testing.T) *wiped {
	t.Helper()
	x := &wiped{tenant: w.tenant("Ada", tenants.NewID())}
	x.allow()
	x.on("document", "remove")
	x.at = x.home(nil)
	x.agent, x.token = x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	x.plain = x.w.client(x.token, eras[0], nil, nil)
	x.notebook = into[madeNotebook](t, x.plain, "notebook", map[string]any{"action": "create", "name": "Work"}).Notebook.ID
	return x
}

func (x *tenant) on(tool, action string) {
	x.change(func(tx tenants.Tx) error {
		return tx.SetToggle(x.w.t.Context(), x.instance, tenants.Toggle{Tool: tool, Action: action, Enabled: true})
	})
}

// policy sets how document.remove is agreed to, and waits until the broker knows:
// another action is switched in the same transaction, which help tells.
func (x *wiped) policy(t *testing.T, mode tenants.ConsentMode) {
	t.Helper()
	x.flips++
	on := x.flips%2 == 0
	x.change(func(tx tenants.Tx) error {
		must(t, tx.SetToggle(t.Context(), x.instance, tenants.Toggle{Tool: "document", Action: "duplicate", Enabled: on}))
		return tx.SetConsent(t.Context(), x.instance, tenants.Consent{Tool: "document", Action: "remove", Mode: mode})
	})
	eventually(t, "the policy is known", func() bool {
		a := call(t.Context(), x.plain, "document", map[string]any{"action": "help", "topic": "duplicate"})
		return (a.code == "") == on
	})
}

// doc makes a document to be removed.
func (x *wiped) doc(t *testing.T) string {
	t.Helper()
	x.docs++
	return into[made](t, x.plain, "document", map[string]any{"action": "create", "notebook": x.notebook, "path": fmt.Sprintf("/Old %d", x.docs), "markdown": "one\n\ntwo"}).ID
}

func (x *wiped) gone(t *testing.T, doc string) bool {
	t.Helper()
	a := call(t.Context(), x.plain, "document", map[string]any{"action": "get_doc", "id": doc})
	return a.code == contract.NotFound
}

// refusal is an error as an agent reads it.
type refusal struct {
	Error struct {
		Message, Hint string
		RequestID     string `json:"request_id"`
		Detail        struct {
			Link, ConfirmationToken string
			Preview                 []string
		}
	}
}

func refused(t *testing.T, a answer, want contract.Code) (r refusal) {
	t.Helper()
	if a.err != nil || a.code != want {
		t.Fatalf("%v %s, want %s", a.err, a.body, want)
	}
	must(t, json.Unmarshal([]byte(a.body), &r))
	return r
}

func remove(doc string, more ...string) map[string]any {
	args := map[string]any{"action": "remove", "id": doc}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i]] = more[i+1]
	}
	return args
}

// TestEveryPolicyInBothErasForEveryClient is the table of docs/consent.md.
func TestEveryPolicyInBothErasForEveryClient(t *testing.T) {
	t.Parallel()
	x := newWiped(t)
	person := x.person()
	answer := func(link, do string) {
		if to := person.submit(link, url.Values{"do": {do}}); to.Path != "/console/approvals" {
			t.Errorf("the answer led to %s", to)
		}
	}
	for _, mode := range []tenants.ConsentMode{tenants.ConsentAllow, tenants.ConsentDeny, tenants.ConsentPreview, tenants.ConsentConsole, tenants.ConsentAsk} {
		x.policy(t, mode)
		listed := call(t.Context(), x.plain, "document", map[string]any{"action": "help", "topic": "remove"}).code == ""
		if listed != (mode != tenants.ConsentDeny) {
			t.Errorf("%s: listed %v", mode, listed)
		}
		for _, era := range eras {
			for _, kind := range []string{"form", "none", "waits"} {
				name := fmt.Sprintf("%s, %s, %s", mode, era, kind)
				doc := x.doc(t)
				var asked atomic.Int32
				var link atomic.Value
				var form func(string) *mcp.ElicitResult
				var waits func(string)
				switch kind {
				case "form":
					form = func(message string) *mcp.ElicitResult {
						asked.Add(1)
						if !strings.Contains(message, "1 document, 2 blocks") || !strings.Contains(message, "“/Work/Old") {
							t.Errorf("%s: the person is shown %q", name, message)
						}
						return yes("")
					}
				case "waits":
					waits = func(message string) {
						if _, at, ok := strings.Cut(message, " at "); ok && link.Swap(at) == nil {
							go answer(at, "approve") // ends before the call does
						}
					}
				}
				s := x.w.client(x.token, era, form, waits)
				params := &mcp.CallToolParams{Name: "document", Arguments: remove(doc)}
				if kind == "waits" {
					params.SetProgressToken("p")
				}
				a := read(s.CallTool(t.Context(), params))
				inForm := mode == tenants.ConsentAsk && kind == "form"
				inConsole := mode == tenants.ConsentConsole || mode == tenants.ConsentAsk && kind != "form"
				switch {
				case mode == tenants.ConsentDeny:
					refused(t, a, contract.ActionDisabled)
					if x.gone(t, doc) {
						t.Errorf("%s: removed", name)
					}
					continue
				case mode == tenants.ConsentPreview:
					r := refused(t, a, contract.ConfirmationRequired)
					if x.gone(t, doc) || !slices.Contains(r.Error.Detail.Preview, "1 document, 2 blocks") {
						t.Errorf("%s: %+v", name, r)
					}
					a = call(t.Context(), s, "document", remove(doc, "confirmationToken", r.Error.Detail.ConfirmationToken))
				case inConsole && kind != "waits":
					r := refused(t, a, contract.ConfirmationRequired)
					again := call(t.Context(), s, "document", remove(doc, "requestId", r.Error.RequestID))
					if refused(t, again, contract.ConfirmationRequired).Error.Detail.Link != r.Error.Detail.Link || x.gone(t, doc) {
						t.Errorf("%s: before the answer: %s", name, again.body)
					}
					x.change(func(tx tenants.Tx) error { // a notebook at home is no rule of the tenant
						return tx.ReplaceNotebooks(t.Context(), x.instance, []tenants.Notebook{{ID: x.notebook, Name: name}})
					})
					answer(r.Error.Detail.Link, "approve")
					a = call(t.Context(), s, "document", remove(doc, "requestId", r.Error.RequestID))
				}
				if a.err != nil || a.code != "" || !x.gone(t, doc) {
					t.Errorf("%s: %v %s", name, a.err, a.body)
				}
				if (asked.Load() == 1) != inForm {
					t.Errorf("%s: asked %d times in a form", name, asked.Load())
				}
				if (link.Load() != nil) != (inConsole && kind == "waits") {
					t.Errorf("%s: waited for %v", name, link.Load())
				}
				must(t, s.Close())
			}
		}
	}
	// In the console answered: console for three kinds of client, ask for two, in two eras.
	approved := 0
	x.change(func(tx tenants.Tx) error {
		log, err := tx.AuditLog(t.Context(), time.Now().Add(time.Hour), 1000)
		for _, e := range log {
			if e.Verb == "approval.approve" && e.ActorID == x.owner {
				approved++
			}
		}
		return err
	})
	if approved != 10 {
		t.Errorf("%d approvals are in the audit log, want 10", approved)
	}
}

func read(r *mcp.CallToolResult, err error) answer {
	if err != nil {
		return answer{err: err}
	}
	text := r.Content[0].(*mcp.TextContent).Text
	if !r.IsError {
		return answer{body: text}
	}
	var e struct{ Error *contract.Error }
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return answer{err: err}
	}
	return answer{body: text, code: contract.CodeOf(e.Error)}
}

// raw calls document.remove in the era without sessions, as a client with forms.
func (x *wiped) raw(t *testing.T, token string, args map[string]any, more string) (state string, body string) {
	t.Helper()
	a, err := json.Marshal(args)
	must(t, err)
	_, body = x.w.post(token, map[string]string{"MCP-Protocol-Version": eras[0], "Mcp-Method": "tools/call", "Mcp-Name": "document"},
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"document","arguments":`+string(a)+more+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`)
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			body = data
		}
	}
	var m struct {
		Result struct{ RequestState string }
	}
	_ = json.Unmarshal([]byte(body), &m) // an error has none
	return m.Result.RequestState, body
}

func confirms(state, action string) string {
	return `,"requestState":"` + state + `","inputResponses":{"confirm":{"action":"` + action + `","content":{"confirm":true}}}`
}

// TestNothingIsDoneWithAConfirmationThatDoesNotFit: each case says what is wrong.
func TestNothingIsDoneWithAConfirmationThatDoesNotFit(t *testing.T) {
	t.Parallel()
	x := newWiped(t)
	doc, other := x.doc(t), x.doc(t)
	_, second := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	y := x.w.tenant("Ben", tenants.NewID())
	y.on("document", "remove")
	y.home(nil)
	_, foreign := y.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	x.policy(t, tenants.ConsentAsk) // after the last agent was made: that raises the version of the policy

	state, body := x.raw(t, x.token, remove(doc), "")
	if state == "" {
		t.Fatalf("no question: %s", body)
	}
	flip := func(i int) string {
		b := []byte(state)
		if b[i] == 'A' {
			b[i] = 'B'
		} else {
			b[i] = 'A'
		}
		return string(b)
	}
	for name, c := range map[string]struct{ token, doc, more, want string }{
		"forged":             {x.token, doc, confirms("e30", "accept"), "not made here"},
		"a bit changed":      {x.token, doc, confirms(flip(len(state)/2), "accept"), "not made here"},
		"the nonce changed":  {x.token, doc, confirms(flip(2), "accept"), "not made here"},
		"other arguments":    {x.token, other, confirms(state, "accept"), "arguments are not those"},
		"another agent":      {second, doc, confirms(state, "accept"), "another caller"},
		"another tenant":     {foreign, doc, confirms(state, "accept"), "another caller"},
		"declined":           {x.token, doc, confirms(state, "decline"), "declined"},
		"closed":             {x.token, doc, confirms(state, "cancel"), "without an answer"},
		"accepted, not said": {x.token, doc, strings.Replace(confirms(state, "accept"), "true", "false", 1), "declined"},
		"said, not as such":  {x.token, doc, strings.Replace(confirms(state, "accept"), "true", `"true"`, 1), "declined"},
		"as an argument":     {x.token, doc, "", "elicitation/create"},
	} {
		if _, body := x.raw(t, c.token, remove(c.doc), c.more); !strings.Contains(body, c.want) {
			t.Errorf("%s: %s, want %q", name, body, c.want)
		}
	}
	args := remove(doc, "confirmationToken", state)
	if _, body := x.raw(t, x.token, args, ""); !strings.Contains(body, "confirmation_invalid") {
		t.Errorf("a form's state as a token: %s", body)
	}
	if x.gone(t, doc) || x.gone(t, other) {
		t.Fatal("a document was removed")
	}

	// The right answer, and once more.
	if _, body := x.raw(t, x.token, remove(doc), confirms(state, "accept")); !strings.Contains(body, `\"success\":true`) || !x.gone(t, doc) {
		t.Fatalf("%s", body)
	}
	if _, body := x.raw(t, x.token, remove(doc), confirms(state, "accept")); !strings.Contains(body, "used already") {
		t.Errorf("used again: %s", body)
	}

	// Rules that changed meanwhile, and access that was taken back.
	state, _ = x.raw(t, x.token, remove(other), "")
	x.policy(t, tenants.ConsentAsk)
	if _, body := x.raw(t, x.token, remove(other), confirms(state, "accept")); !strings.Contains(body, "rules of the tenant have changed") {
		t.Errorf("other rules: %s", body)
	}
	state, _ = x.raw(t, x.token, remove(other), "")
	x.change(func(tx tenants.Tx) error { return tx.RevokeAgent(t.Context(), x.agent) })
	eventually(t, "the agent has no access", func() bool {
		_, body := x.raw(t, x.token, remove(other), confirms(state, "accept"))
		return strings.Contains(body, "access") || strings.Contains(body, "sign in again")
	})
	x.plain = x.w.client(second, eras[0], nil, nil)
	if x.gone(t, other) {
		t.Error("removed after the revocation")
	}
}

func TestApprovalsInTheConsoleAreForOneCallAndTheRightPerson(t *testing.T) {
	t.Parallel()
	x := newWiped(t)
	doc, other := x.doc(t), x.doc(t)
	x.policy(t, tenants.ConsentConsole)
	owner := x.person()
	ask := func() refusal {
		return refused(t, call(t.Context(), x.plain, "document", remove(doc)), contract.ConfirmationRequired)
	}

	// A stranger finds nothing; nor does the agent's own token open the page.
	r := ask()
	stranger := x.w.tenant("Ben", tenants.NewID()).person()
	if resp, _ := stranger.do(http.MethodGet, r.Error.Detail.Link, nil); resp.StatusCode == http.StatusOK {
		t.Error("a stranger sees what waits")
	}
	resp, body := stranger.do(http.MethodGet, x.w.url+"/console/approvals", nil)
	if resp.StatusCode != http.StatusOK || strings.Contains(body, "document.remove") {
		t.Errorf("a stranger's list: %d\n%s", resp.StatusCode, body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.Error.Detail.Link, strings.NewReader("do=approve"))
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+x.token)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	raw, err := owner.c.Transport.RoundTrip(req) // without the cookies
	must(t, err)
	must(t, raw.Body.Close())
	if raw.StatusCode == http.StatusOK || raw.Header.Get("Location") == "/console/approvals" {
		t.Errorf("the agent's token answers: %d", raw.StatusCode)
	}

	// Other arguments under the same request id, then no.
	refused(t, call(t.Context(), x.plain, "document", remove(other, "requestId", r.Error.RequestID)), contract.ConfirmationInvalid)
	owner.submit(r.Error.Detail.Link, url.Values{"do": {"deny"}})
	refused(t, call(t.Context(), x.plain, "document", remove(doc, "requestId", r.Error.RequestID)), contract.ConfirmationDeclined)

	// Approved, but the rules changed: the question is put again.
	r = ask()
	owner.submit(r.Error.Detail.Link, url.Values{"do": {"approve"}})
	x.policy(t, tenants.ConsentConsole)
	again := refused(t, call(t.Context(), x.plain, "document", remove(doc, "requestId", r.Error.RequestID)), contract.ConfirmationRequired)
	if !strings.Contains(again.Error.Message, "rules") || again.Error.Detail.Link == r.Error.Detail.Link || x.gone(t, doc) {
		t.Errorf("%+v", again)
	}

	// Approved and used, then once more: nothing happens again.
	owner.submit(again.Error.Detail.Link, url.Values{"do": {"approve"}})
	if a := call(t.Context(), x.plain, "document", remove(doc, "requestId", r.Error.RequestID)); a.code != "" || !x.gone(t, doc) {
		t.Errorf("%+v", a)
	}
	if a := call(t.Context(), x.plain, "document", remove(doc, "requestId", r.Error.RequestID)); a.code != contract.ConfirmationUsed && a.code != "" {
		t.Errorf("again: %+v", a)
	}
	if x.gone(t, other) {
		t.Error("the wrong document was removed")
	}
}

// TestManyWritesAreAskedAbout: above its budget an agent's writes wait for a
// person, in both lanes.
func TestManyWritesAreAskedAbout(t *testing.T) {
	t.Parallel()
	x := newWiped(t)
	x.change(func(tx tenants.Tx) error {
		_, err := tx.UpdateTenant(t.Context(), tenants.TenantUpdate{Limits: &tenants.Limits{WriteBudget: 3, WriteWindow: 3600}})
		return err
	})
	x.policy(t, tenants.ConsentAsk)
	var last answer
	writes := 0
	for range 6 {
		x.docs++
		last = call(t.Context(), x.plain, "document", map[string]any{"action": "create", "notebook": x.notebook, "path": fmt.Sprintf("/Much %d", x.docs), "markdown": ""})
		if last.code != "" {
			break
		}
		writes++
	}
	refused(t, last, contract.ConfirmationRequired)
	if writes > 3 {
		t.Errorf("%d writes were done without asking", writes)
	}
	if a := call(t.Context(), x.plain, "document", map[string]any{"action": "list_tree", "notebook": x.notebook, "path": "/"}); a.code != "" {
		t.Errorf("reads are refused too: %s", a.body)
	}
	asked := 0
	s := x.w.client(x.token, eras[1], func(string) *mcp.ElicitResult { asked++; return yes("") }, nil)
	if a := call(t.Context(), s, "document", map[string]any{"action": "create", "notebook": x.notebook, "path": "/Agreed", "markdown": ""}); a.code != "" || asked != 1 {
		t.Errorf("asked %d times: %s", asked, a.body)
	}
}
