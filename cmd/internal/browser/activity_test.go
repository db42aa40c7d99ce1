package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	pages "siyuan-broker/broker/page"
	"siyuan-broker/broker/token"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// bearer sends a token with every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// Agent makes an agent of a member and connects it.
func (w *World) Agent(t testing.TB, tenant, member, instance tenants.ID, name string) (tenants.ID, *mcp.ClientSession) {
	t.Helper()
	agent := tenants.Agent{
		ID: tenants.NewID(), MemberID: member, InstanceID: instance, Name: name, Origin: tenants.FromToken, Ceiling: contract.ReadWriteDelete,
		ExpiresAt: time.Now().Add(time.Hour),
	}
	must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) (err error) {
		must(t, tx.SetSwitch(t.Context(), instance, contract.SwitchWorkspace, true))
		agent, err = tx.CreateAgent(t.Context(), agent)
		return err
	}))
	raw, _, err := w.Broker.Issue(token.Request{Tenant: tenant, Member: member, Agent: agent.ID, Life: time.Hour})
	must(t, err)
	transport := &http.Transport{}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: w.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer{raw, transport}}, MaxRetries: -1,
	}, nil)
	must(t, err)
	t.Cleanup(func() {
		_ = s.Close()
		transport.CloseIdleConnections()
	})
	return agent.ID, s
}

// tool calls a tool and gives the id it answers with.
func tool(t testing.TB, s *mcp.ClientSession, name string, args map[string]any) string {
	t.Helper()
	var out struct {
		ID       string
		Notebook json.RawMessage
	}
	answer(t, s, name, args, &out)
	if out.ID == "" && len(out.Notebook) > 0 {
		must(t, json.Unmarshal(out.Notebook, &out))
	}
	return out.ID
}

// answer calls a tool and takes its answer.
func answer(t testing.TB, s *mcp.ClientSession, name string, args map[string]any, out any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	must(t, err)
	text := r.Content[0].(*mcp.TextContent).Text
	if r.IsError {
		t.Fatalf("%s %v: %s", name, args["action"], text)
	}
	must(t, json.Unmarshal([]byte(text), out))
}

// table makes a database with a row of one agent, in which another renames the row
// and adds one of its own.
func table(t testing.TB, owner, s *mcp.ClientSession, doc string) {
	t.Helper()
	var made struct {
		AvID    string
		Columns []struct{ ID, Type string }
	}
	answer(t, owner, "av", map[string]any{"action": "create", "blockID": doc, "name": "Tasks"}, &made)
	var added struct{ Rows []struct{ RowID string } }
	answer(t, owner, "av", map[string]any{"action": "add_rows", "avID": made.AvID, "primaryKeyTexts": []string{"Buy paint"}}, &added)
	answer(t, s, "av", map[string]any{
		"action": "set_cells", "avID": made.AvID, "rowID": added.Rows[0].RowID, "columnID": made.Columns[0].ID, "valueType": "text", "text": "Renamed",
	}, &struct{}{})
	answer(t, s, "av", map[string]any{"action": "add_rows", "avID": made.AvID, "primaryKeyTexts": []string{"Mine"}}, &struct{}{})
}

func TestAPersonUndoesWhatAnAgentWrote(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	u, tenant := w.Person("ann@example.org", "Ann")
	var instance tenants.ID
	must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
		in, err := tx.CreateInstance(t.Context(), tenants.Instance{Name: "Home server in the cellar", DefaultLevel: contract.ReadWriteDelete, Enabled: true})
		instance = in.ID
		return err
	}))
	stop := w.Connect(t, tenant, instance)
	_, other := w.Agent(t, tenant, u.ID, instance, "Other")
	box := tool(t, other, "notebook", map[string]any{"action": "create", "name": "Work"})
	write := func(s *mcp.ClientSession, title string) string {
		return tool(t, s, "document", map[string]any{"action": "create", "notebook": box, "path": "/" + title, "markdown": "as it was"})
	}
	add := func(s *mcp.ClientSession, doc string) {
		tool(t, s, "block", map[string]any{"action": "append", "parentID": doc, "dataType": "markdown", "data": "more"})
	}
	inEach(t, w, func(t *testing.T, b *Tab) {
		b.WithoutScripts()
		b.SignIn(u.Email)
		agent, s := w.Agent(t, tenant, u.ID, instance, "Claude")
		b.Go("/console/agents")
		b.Inspect("activity-agents")
		b.Follow(`a[href$="` + agent.String() + `/activity"]`)
		b.Await(".empty")
		b.Inspect("activity-empty")

		own := "New document of the agent " + string(b.lang)
		write(s, own)
		common := write(other, "旅行计划 "+string(b.lang))
		add(s, common)
		add(other, common)
		edited := write(other, `<script>document.title="taken"</script> and a very long title of a document that goes on and on `+string(b.lang))
		add(s, edited)
		table(t, other, s, write(other, "Rooms "+string(b.lang)))
		tool(t, s, "notebook", map[string]any{"action": "create", "name": "Lasting " + string(b.lang)})
		b.Go("/console/agents/" + agent.String() + "/activity")
		b.reads(t, own, "notebook.create", "旅行计划", "Rooms "+string(b.lang)+": Tasks")
		b.Inspect("activity")

		b.Follow(`main a.btn.small[href*="document="]`)
		b.Await("main form button.danger")
		b.Inspect("activity-undo-one")
		b.Follow(`main form a.btn`)
		b.Follow(`main a.btn.danger`)
		b.reads(t, own)
		b.Inspect("activity-undo")
		b.Follow("main form button.danger")
		b.reads(t, "旅行计划")
		b.Inspect("activity-undone")
		if n := w.audited(t, tenant, agent); n != 1 {
			t.Errorf("the audit log has %d undos of this agent", n)
		}
		b.Follow(`main a.btn`)
		b.reads(t, "旅行计划")
		b.Inspect("activity-after")

		// Its access is taken back; what it wrote stays in reach.
		b.Go("/console/agents")
		b.Press(`article:has(a[href*="` + agent.String() + `"]) summary`)
		b.Follow(`article:has(a[href*="` + agent.String() + `"]) button.danger`)
		b.Await(".alert.good")
		b.Inspect("activity-agents-ended")
		b.Follow(`ul a[href$="` + agent.String() + `/activity"]`)
		b.Await(".alert.info")
		b.reads(t, "旅行计划")
		b.Inspect("activity-ended")
		if b.lang == pages.Chinese { // the last
			stop()
			b.Go("/console/agents/" + agent.String() + "/activity")
			b.Await(".alert.bad")
			b.Inspect("activity-away")
		}
	})
}

// reads tells what the page lacks, without a script of its own that would wait.
func (b *Tab) reads(t testing.TB, words ...string) {
	t.Helper()
	text := b.Text()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not say %q:\n%s", b.Path(), w, text)
		}
	}
}

// audited counts the undos of an agent in the audit log.
func (w *World) audited(t testing.TB, tenant, agent tenants.ID) (n int) {
	t.Helper()
	must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
		all, err := tx.AuditLog(t.Context(), time.Now().Add(time.Hour), 100)
		for _, e := range all {
			if e.Verb == "agent.undo" && e.Object == "agent:"+agent.String() {
				n++
			}
		}
		return err
	}))
	return n
}
