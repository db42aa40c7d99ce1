package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

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
	old      []string // documents made in advance
	folder   string   // at home, where agents may put files
	asset    struct{ Path string }
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

// policy sets how document.remove is agreed to.
func (x *wiped) policy(t *testing.T, mode tenants.ConsentMode) {
	t.Helper()
	x.policyOf(t, tenants.Consent{Tool: "document", Action: "remove", Mode: mode})
}

// policyOf sets how an action is agreed to, if one is named, and waits until the
// broker knows: another action is switched in the same transaction, which help
// tells. The rules are new in any case.
func (x *wiped) policyOf(t *testing.T, c tenants.Consent) {
	t.Helper()
	x.flips++
	on := x.flips%2 == 0
	x.change(func(tx tenants.Tx) error {
		must(t, tx.SetToggle(t.Context(), x.instance, tenants.Toggle{Tool: "document", Action: "duplicate", Enabled: on}))
		if c.Tool == "" {
			return nil
		}
		return tx.SetConsent(t.Context(), x.instance, c)
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
