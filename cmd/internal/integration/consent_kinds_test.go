package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/consent"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// deed is one call that a person has to agree to.
type deed struct {
	tool string
	args map[string]any
	done func() bool // it was carried out
}

// but is the call with other arguments; pairs are names and values.
func (d deed) but(more ...string) map[string]any {
	args := map[string]any{}
	for k, v := range d.args {
		args[k] = v
	}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i]] = more[i+1]
	}
	return args
}

// kind is a reason to ask a person: what can be chosen about it, and calls.
type kind struct {
	name    string
	consent tenants.Consent // the action whose policy is chosen; empty: there is none to choose
	always  bool            // allow does not let it through
	person  bool            // an agent may not confirm it itself
	shown   []string        // what the person reads in a form
	page    []string        // and on the page of the call
	prepare func(t *testing.T, x *wiped)
	call    func(t *testing.T, x *wiped) deed
}

// kinds are all reasons there are; the table of docs/consent.md holds for each.
func kinds() []kind {
	remove := func(t *testing.T, x *wiped) deed {
		doc := x.doc(t)
		return deed{"document", map[string]any{"action": "remove", "id": doc}, func() bool { return x.gone(t, doc) }}
	}
	ring := func(t *testing.T, x *wiped) deed {
		x.docs++
		rung := x.at.kernel.Rings()
		return deed{"extension", map[string]any{"action": "plugin__desk_tools__ring", "arguments": map[string]any{"times": 1, "call": x.docs}}, func() bool { return x.at.kernel.Rings() > rung }}
	}
	write := func(t *testing.T, x *wiped) deed {
		x.docs++
		path := fmt.Sprintf("/Work/Much %d", x.docs)
		return deed{"fs", map[string]any{"action": "write", "path": path, "markdown": "one"}, func() bool {
			return call(t.Context(), x.plain, "fs", map[string]any{"action": "read", "path": path}).code == ""
		}}
	}
	removed := []string{"<dt>Documents</dt><dd>1</dd>", "<dt>Blocks</dt><dd>2</dd>", "<span class=\"badge\">Document</span>", "/Work/Old"}
	all := []kind{
		{"a dangerous action", tenants.Consent{Tool: "document", Action: "remove"}, false, false, []string{"1 document, 2 blocks", "“/Work/Old"}, removed, nil, remove},
		{"a plugin's tool by its own name", tenants.Consent{Tool: "extension", Action: "plugin_call"}, false, true, []string{"plugin__desk_tools__ring"}, []string{"<span class=\"badge\">Tool</span>", "plugin__desk_tools__ring", "Called with", "&#34;times&#34;:1"}, offerPlugin, ring},
		{"a write above the budget", tenants.Consent{}, true, true, []string{"fs.write"}, []string{"fs.write"}, spendBudget, write},
		{"a dangerous action above the budget", tenants.Consent{Tool: "document", Action: "remove"}, true, false, []string{"1 document, 2 blocks"}, removed, spendBudget, func(t *testing.T, x *wiped) deed {
			doc := x.old[0]
			x.old = x.old[1:]
			return deed{"document", map[string]any{"action": "remove", "id": doc}, func() bool { return x.gone(t, doc) }}
		}},
	}
	if a, ok := catalogue.New().Action("file", "export_resources"); ok {
		if _, ok := a.Param("outputPath"); ok {
			all = append(all, kind{"an export to a path at home", tenants.Consent{Tool: "file", Action: "export_resources"}, false, false,
				[]string{"1 asset", "assets/", "zip"}, []string{"<span class=\"badge\">File</span>", ".zip"}, allowFolder, export})
		}
	}
	return all
}

// allowFolder has the home's owner let agents put files into a folder there, and
// stores one.
func allowFolder(t *testing.T, x *wiped) {
	t.Helper()
	x.folder = t.TempDir()
	x.homeRule(x.at, x.agent, fmt.Sprintf("export_folders: ['%s']\n", x.folder))
	x.change(func(tx tenants.Tx) error {
		must(t, tx.SetSwitch(t.Context(), x.instance, contract.SwitchAssets, true))
		return tx.SetConsent(t.Context(), x.instance, tenants.Consent{Tool: "file", Action: "upload_asset", Mode: tenants.ConsentAllow})
	})
	doc := x.doc(t)
	eventually(t, "a file may be stored", func() bool {
		a := call(t.Context(), x.plain, "file", map[string]any{"action": "upload_asset", "id": doc, "fileName": "plan.txt", "content": "b25l"})
		return a.code == "" && json.Unmarshal([]byte(a.body), &x.asset) == nil
	})
	into[made](t, x.plain, "block", map[string]any{"action": "append", "parentID": doc, "dataType": "markdown", "data": "[plan](" + x.asset.Path + ")"})
}

func export(_ *testing.T, x *wiped) deed {
	x.docs++
	path := filepath.Join(x.folder, fmt.Sprintf("plan %d.zip", x.docs))
	return deed{"file", map[string]any{"action": "export_resources", "paths": []string{x.asset.Path}, "outputPath": path}, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}}
}

// offerPlugin waits until the agent can call the sample's plugin.
func offerPlugin(t *testing.T, x *wiped) {
	t.Helper()
	x.change(func(tx tenants.Tx) error {
		return tx.SetSwitch(t.Context(), x.instance, contract.SwitchExtension, true)
	})
	eventually(t, "the plugin's tools are known", func() bool {
		return call(t.Context(), x.plain, "extension", map[string]any{"action": "help", "topic": "plugin__desk_tools__ring"}).code == ""
	})
}

// spendBudget lets the tenant's agents write once in an hour unasked, and has this
// one done so; documents that are needed are made before.
func spendBudget(t *testing.T, x *wiped) {
	t.Helper()
	for range 64 {
		x.old = append(x.old, x.doc(t))
	}
	x.change(func(tx tenants.Tx) error {
		_, err := tx.UpdateTenant(t.Context(), tenants.TenantUpdate{Limits: &tenants.Limits{WriteBudget: 1, WriteWindow: 3600}})
		return err
	})
	x.policyOf(t, tenants.Consent{})
	create := func(title string) answer {
		return call(t.Context(), x.plain, "document", map[string]any{"action": "create", "notebook": x.notebook, "path": "/" + title, "markdown": ""})
	}
	create("One more") // the last, or the first that is asked about
	refused(t, create("Too much"), contract.ConfirmationRequired)
}

// modes are the policies that can be chosen, each with what comes of it.
func (k kind) modes() map[tenants.ConsentMode]tenants.ConsentMode {
	all := map[tenants.ConsentMode]tenants.ConsentMode{"": tenants.ConsentAsk}
	if k.consent.Tool == "" {
		return all
	}
	for _, m := range []tenants.ConsentMode{tenants.ConsentAllow, tenants.ConsentDeny, tenants.ConsentPreview, tenants.ConsentConsole, tenants.ConsentAsk} {
		all[m] = m
	}
	if k.always {
		all[tenants.ConsentAllow] = tenants.ConsentAsk
	}
	if k.person {
		all[tenants.ConsentPreview] = tenants.ConsentAsk
	}
	return all
}

// eachKind runs a test for every kind, in a world of its own.
func eachKind(t *testing.T, test func(t *testing.T, x *wiped, k kind)) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			x := newWiped(t)
			if k.prepare != nil {
				k.prepare(t, x)
			}
			test(t, x, k)
		})
	}
}

// TestEveryPolicyInBothErasForEveryClient is the table of docs/consent.md, for
// everything that a person is asked about.
func TestEveryPolicyInBothErasForEveryClient(t *testing.T) {
	eachKind(t, func(t *testing.T, x *wiped, k kind) {
		person, approved := x.person(), 0
		for mode, effect := range k.modes() {
			if mode != "" {
				c := k.consent
				c.Mode = mode
				x.policyOf(t, c)
			}
			for _, era := range eras {
				for _, client := range []string{"form", "none", "waits"} {
					if e := (&encounter{x: x, k: k, person: person, mode: effect, era: era, client: client}); e.run(t, fmt.Sprintf("%q, %s, %s", mode, era, client)) {
						approved++
					}
				}
			}
		}
		noted := 0
		x.change(func(tx tenants.Tx) error {
			log, err := tx.AuditLog(t.Context(), time.Now().Add(time.Hour), 1000)
			for _, e := range log {
				if e.Verb == "approval.approve" && e.ActorID == x.owner {
					noted++
				}
			}
			return err
		})
		if noted != approved || approved == 0 {
			t.Errorf("%d approvals are in the audit log, want %d", noted, approved)
		}
	})
}

// encounter is one call of one client under one policy.
type encounter struct {
	x           *wiped
	k           kind
	person      *person
	mode        tenants.ConsentMode // in effect
	era, client string

	name  string
	forms atomic.Int32 // shown
	link  atomic.Value // string: where the waiting call was approved
}

// approve answers on the page of the call, which shows what the home says of it.
func (e *encounter) approve(t *testing.T, link string) {
	t.Helper()
	resp, body := e.person.do(http.MethodGet, link, nil)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: the page of the call: %d", e.name, resp.StatusCode)
	}
	for _, want := range e.k.page {
		if !strings.Contains(body, want) {
			t.Errorf("%s: the page does not show %q:\n%s", e.name, want, body)
		}
	}
	if to := e.person.submit(link, url.Values{"do": {"approve"}}); to.Path != "/console/approvals" {
		t.Errorf("%s: the answer led to %s", e.name, to)
	}
}

// connect is a client that shows forms, one that does not, or one that follows the
// progress of its calls.
func (e *encounter) connect(t *testing.T) *mcp.ClientSession {
	t.Helper()
	switch e.client {
	case "form":
		return e.x.w.client(e.x.token, e.era, func(message string) *mcp.ElicitResult {
			e.forms.Add(1)
			for _, want := range e.k.shown {
				if !strings.Contains(message, want) {
					t.Errorf("%s: the person is shown %q, want %q in it", e.name, message, want)
				}
			}
			return yes("")
		}, nil)
	case "waits":
		return e.x.w.client(e.x.token, e.era, nil, func(message string) {
			if _, at, ok := strings.Cut(message, " at "); ok && e.link.Swap(at) == nil {
				go e.approve(t, at) // ends before the call does
			}
		})
	}
	return e.x.w.client(e.x.token, e.era, nil, nil)
}

// run makes the call and reports whether it was approved in the console.
func (e *encounter) run(t *testing.T, name string) bool {
	t.Helper()
	e.name = name
	d := e.k.call(t, e.x)
	s := e.connect(t)
	params := &mcp.CallToolParams{Name: d.tool, Arguments: d.args}
	if e.client == "waits" {
		params.SetProgressToken("p")
	}
	a := read(s.CallTool(t.Context(), params))
	inForm := e.mode == tenants.ConsentAsk && e.client == "form"
	inConsole := e.mode == tenants.ConsentConsole || e.mode == tenants.ConsentAsk && e.client != "form"
	switch {
	case e.mode == tenants.ConsentDeny:
		refused(t, a, contract.ActionDisabled)
		if d.done() {
			t.Errorf("%s: done all the same", name)
		}
		if call(t.Context(), e.x.plain, d.tool, map[string]any{"action": "help", "topic": d.args["action"]}).code == "" {
			t.Errorf("%s: listed all the same", name)
		}
		must(t, s.Close())
		return false
	case e.mode == tenants.ConsentPreview:
		r := refused(t, a, contract.ConfirmationRequired)
		if d.done() || !strings.Contains(strings.Join(r.Error.Detail.Preview, "\n"), e.k.shown[0]) {
			t.Errorf("%s: %+v", name, r)
		}
		a = call(t.Context(), s, d.tool, d.but("confirmationToken", r.Error.Detail.ConfirmationToken))
	case inConsole && e.client != "waits":
		r := refused(t, a, contract.ConfirmationRequired)
		again := call(t.Context(), s, d.tool, d.but("requestId", r.Error.RequestID))
		if refused(t, again, contract.ConfirmationRequired).Error.Detail.Link != r.Error.Detail.Link || d.done() {
			t.Errorf("%s: before the answer: %s", name, again.body)
		}
		e.x.change(func(tx tenants.Tx) error { // a notebook at home is no rule of the tenant
			return tx.ReplaceNotebooks(t.Context(), e.x.instance, []tenants.Notebook{{ID: e.x.notebook, Name: name}})
		})
		e.approve(t, r.Error.Detail.Link)
		a = call(t.Context(), s, d.tool, d.but("requestId", r.Error.RequestID))
	}
	if a.err != nil || a.code != "" || !d.done() {
		t.Errorf("%s: %v %s", name, a.err, a.body)
	}
	if (e.forms.Load() == 1) != inForm {
		t.Errorf("%s: %d forms", name, e.forms.Load())
	}
	if (e.link.Load() != nil) != (inConsole && e.client == "waits") {
		t.Errorf("%s: waited for %v", name, e.link.Load())
	}
	must(t, s.Close())
	return inConsole
}

// raw calls in the era without sessions, as a client with forms.
func (x *wiped) raw(t *testing.T, token, tool string, args map[string]any, more string) (state string, body string) {
	t.Helper()
	a, err := json.Marshal(args)
	must(t, err)
	_, body = x.w.post(token, map[string]string{"MCP-Protocol-Version": eras[0], "Mcp-Method": "tools/call", "Mcp-Name": tool},
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+string(a)+more+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
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

// flipped is a sealed state with one character changed.
func flipped(state string, i int) string {
	b := []byte(state)
	if b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

// past is a state for a call, sealed by the service itself longer ago than it is
// good for.
func (x *wiped) past(t *testing.T, d deed) string {
	t.Helper()
	facts, err := x.w.db.LoadSnapshot(t.Context(), x.id, x.agent)
	must(t, err)
	var offered []contract.HomeTool
	if facts.Connector != nil {
		offered = facts.Connector.Effect.Tools
	}
	name := d.args["action"].(string)
	action, ok := catalogue.New().With(offered).Action(d.tool, name)
	if !ok {
		t.Fatalf("no action %s.%s", d.tool, name)
	}
	args := d.but()
	delete(args, "action")
	raw, err := json.Marshal(args)
	must(t, err)
	settled, failed := action.Validate(raw)
	if failed != nil {
		t.Fatal(failed)
	}
	action, settled = action.Stand(settled)
	q := consent.Question{Tenant: x.id, Member: x.owner, Agent: x.agent, Instance: x.instance, Tool: action.Tool, Action: action.Name,
		RulesVersion: facts.RulesVersion, RequestID: tenants.NewID()}
	q.Arguments, err = consent.Digest(settled)
	must(t, err)
	then := time.Now().Add(-consent.StateLife - time.Second)
	state, err := consent.New(consent.Config{Store: x.w.db, Box: x.w.db, Bus: cluster.NewMemory(nil).Node("past", ""), Now: func() time.Time { return then }}).Seal(consent.Form, q)
	must(t, err)
	return state
}

// TestNothingIsDoneWithAConfirmationThatDoesNotFit: each case says what is wrong.
func TestNothingIsDoneWithAConfirmationThatDoesNotFit(t *testing.T) {
	eachKind(t, func(t *testing.T, x *wiped, k kind) {
		d, other := k.call(t, x), k.call(t, x)
		_, second := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
		foreign := x.neighbour(t)
		if k.consent.Tool != "" {
			k.consent.Mode = tenants.ConsentAsk
		}
		x.policyOf(t, k.consent) // after the last agent was made: that raises the version of the policy

		state, body := x.raw(t, x.token, d.tool, d.args, "")
		if state == "" {
			t.Fatalf("no question: %s", body)
		}
		for name, c := range map[string]struct {
			token      string
			d          deed
			more, want string
		}{
			"forged":             {x.token, d, confirms("e30", "accept"), "not made here"},
			"a bit changed":      {x.token, d, confirms(flipped(state, len(state)/2), "accept"), "not made here"},
			"the nonce changed":  {x.token, d, confirms(flipped(state, 2), "accept"), "not made here"},
			"other arguments":    {x.token, other, confirms(state, "accept"), "arguments are not those"},
			"another agent":      {second, d, confirms(state, "accept"), "another caller"},
			"another tenant":     {foreign, d, confirms(state, "accept"), "another caller"},
			"expired":            {x.token, d, confirms(x.past(t, d), "accept"), "expired"},
			"declined":           {x.token, d, confirms(state, "decline"), "declined"},
			"closed":             {x.token, d, confirms(state, "cancel"), "without an answer"},
			"accepted, not said": {x.token, d, strings.Replace(confirms(state, "accept"), "true", "false", 1), "declined"},
			"said, not as such":  {x.token, d, strings.Replace(confirms(state, "accept"), "true", `"true"`, 1), "declined"},
			"as an argument":     {x.token, d, "", "elicitation/create"},
		} {
			if _, body := x.raw(t, c.token, c.d.tool, c.d.args, c.more); !strings.Contains(body, c.want) {
				t.Errorf("%s: %s, want %q", name, body, c.want)
			}
		}
		if _, body := x.raw(t, x.token, d.tool, d.but("confirmationToken", state), ""); !strings.Contains(body, "confirmation_invalid") {
			t.Errorf("a form's state as a token: %s", body)
		}
		if d.done() || other.done() {
			t.Fatal("something was done")
		}

		// The right answer, and once more.
		if _, body := x.raw(t, x.token, d.tool, d.args, confirms(state, "accept")); strings.Contains(body, `isError":true`) || !d.done() {
			t.Fatalf("%s", body)
		}
		if _, body := x.raw(t, x.token, d.tool, d.args, confirms(state, "accept")); !strings.Contains(body, "used already") {
			t.Errorf("used again: %s", body)
		}

		// Rules that changed meanwhile, and access that was taken back.
		other = k.call(t, x)
		state, _ = x.raw(t, x.token, other.tool, other.args, "")
		x.policyOf(t, k.consent)
		if _, body := x.raw(t, x.token, other.tool, other.args, confirms(state, "accept")); !strings.Contains(body, "rules of the tenant have changed") {
			t.Errorf("other rules: %s", body)
		}
		state, _ = x.raw(t, x.token, other.tool, other.args, "")
		if state == "" {
			t.Fatal("no question")
		}
		x.change(func(tx tenants.Tx) error { return tx.RevokeAgent(t.Context(), x.agent) })
		eventually(t, "the agent has no access", func() bool {
			_, body := x.raw(t, x.token, other.tool, other.args, confirms(state, "accept"))
			return strings.Contains(body, "access") || strings.Contains(body, "sign in again")
		})
		x.plain = x.w.client(second, eras[0], nil, nil)
		if other.done() {
			t.Error("done after the revocation")
		}
	})
}

// neighbour is the token of another tenant's agent that may do as much.
func (x *wiped) neighbour(t *testing.T) string {
	t.Helper()
	y := x.w.tenant("Ben", tenants.NewID())
	y.on("document", "remove")
	y.change(func(tx tenants.Tx) error {
		must(t, tx.SetSwitch(t.Context(), y.instance, contract.SwitchAssets, true))
		return tx.SetSwitch(t.Context(), y.instance, contract.SwitchExtension, true)
	})
	y.home(nil)
	_, token := y.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	s := x.w.client(token, eras[0], nil, nil)
	eventually(t, "the neighbour's plugins are known", func() bool {
		return call(t.Context(), s, "extension", map[string]any{"action": "help", "topic": "plugin__desk_tools__ring"}).code == ""
	})
	return token
}
