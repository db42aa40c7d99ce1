package integration

import (
	"bytes"
	"encoding/json"
	"testing"

	"siyuan-broker/broker/mcpserver/mcptest"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// The Inspector is what people debug MCP servers with. With --strict it ends
// with a failure when a tool's schema would not work in some client.
func TestTheInspectorListsAndCallsToolsWithABearerToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	x.allow()
	x.home(nil)
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	inspect := func(into any, args ...string) {
		t.Helper()
		cmd := mcptest.Command(t, mcptest.Inspector, append([]string{"--cli", w.url + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + token}, args...)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("inspector %v: %v\n%s%s", args, err, out, &said)
		}
		if err := json.Unmarshal(out, into); err != nil {
			t.Fatalf("inspector %v: %v in %s", args, err, out)
		}
	}

	var listed struct{ Tools []struct{ Name string } }
	inspect(&listed, "--method", "tools/list", "--strict")
	names := map[string]bool{}
	for _, tool := range listed.Tools {
		names[tool.Name] = true
	}
	if !names["notebook"] || !names["document"] || !names["block"] || !names["search"] {
		t.Errorf("listed: %v", listed.Tools)
	}

	var called struct {
		IsError bool
		Content []struct{ Type, Text string }
	}
	inspect(&called, "--method", "tools/call", "--tool-name", "notebook", "--tool-arg", "action=create", "--tool-arg", "name=inspected")
	var made struct {
		Notebook struct{ ID, Name string }
	}
	if called.IsError || len(called.Content) != 1 {
		t.Fatalf("called: %+v", called)
	}
	if err := json.Unmarshal([]byte(called.Content[0].Text), &made); err != nil || !contract.IsID(made.Notebook.ID) || made.Notebook.Name != "inspected" {
		t.Errorf("made %q: %v", called.Content[0].Text, err)
	}
}
