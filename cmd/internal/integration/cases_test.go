package integration

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/connector"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

var eras = []string{"2026-07-28", "2025-11-25"}

// writer is a tenant with a home and one agent session in each era.
func writer(t *testing.T) (x *tenant, sessions []*mcp.ClientSession) {
	t.Helper()
	x = newWorld(t).tenant("Ada", tenants.NewID())
	x.allow()
	x.home(nil)
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	for _, era := range eras {
		sessions = append(sessions, x.w.agent(token, era))
	}
	return x, sessions
}

type (
	madeNotebook struct{ Notebook struct{ ID string } }
	made         struct{ ID string }
)

// TestK22BothErasReadTheSame: a plain notebook is not encrypted in one protocol
// and readable in the other. It holds K33 and K37 on the wire too: one text with
// one object, and no structured copy that could disagree.
func TestK22BothErasReadTheSame(t *testing.T) {
	t.Parallel()
	_, sessions := writer(t)
	nb := into[madeNotebook](t, sessions[0], "notebook", map[string]any{"action": "create", "name": "plain"}).Notebook.ID
	doc := into[made](t, sessions[0], "document", map[string]any{"action": "create", "notebook": nb, "path": "/Day", "markdown": "# One\n\ntext"}).ID
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"notebook", map[string]any{"action": "list"}},
		{"document", map[string]any{"action": "get_doc", "id": doc}},
		{"document", map[string]any{"action": "list_tree", "notebook": nb, "path": "/"}},
		{"block", map[string]any{"action": "get_children", "id": doc}},
		{"search", map[string]any{"action": "query_sql", "stmt": "SELECT content FROM blocks WHERE root_id = '" + doc + "' ORDER BY id"}},
		{"document", map[string]any{"action": "get_doc", "id": "20240199000000-missing"}},
		{"document", map[string]any{"action": "nosuch"}},
		{"block", map[string]any{"action": "append", "parentID": doc}},
	} {
		var answers []string
		for i, s := range sessions {
			r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
			must(t, err)
			text, isText := r.Content[0].(*mcp.TextContent)
			if len(r.Content) != 1 || !isText || r.StructuredContent != nil || !json.Valid([]byte(text.Text)) || text.Text[0] != '{' {
				t.Fatalf("%s %v in %s: %+v", c.tool, c.args, eras[i], r)
			}
			answers = append(answers, withoutRequestID(text.Text))
		}
		if answers[0] != answers[1] || strings.Contains(answers[0], "notebook_locked") {
			t.Errorf("%s %v:\n%s %s\n%s %s", c.tool, c.args, eras[0], answers[0], eras[1], answers[1])
		}
	}
	for i, s := range sessions {
		list, err := s.ListTools(t.Context(), nil)
		must(t, err)
		for _, tool := range list.Tools {
			if tool.OutputSchema != nil {
				t.Errorf("%s promises an output schema in %s", tool.Name, eras[i])
			}
		}
	}
}

func withoutRequestID(text string) string {
	var v map[string]map[string]any
	if json.Unmarshal([]byte(text), &v) != nil || v["error"] == nil {
		return text
	}
	delete(v["error"], "request_id")
	b, _ := json.Marshal(v) // it was JSON a moment ago
	return string(b)
}

// TestK26AConnectorOutlivesSiYuan: it starts first, stays up, lists its tools,
// says what is wrong, and works once SiYuan is there, and again after it left.
func TestK26AConnectorOutlivesSiYuan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	c := connector.Config{Broker: w.url, URL: "http://" + addr, Token: "kernel-token", Data: t.TempDir()}
	c.Complete()
	must(t, os.WriteFile(c.Policy, []byte("max_level: rwd\n"), 0o600))
	key, err := connector.LoadKey(c.Data)
	must(t, err)
	x.change(func(tx tenants.Tx) error {
		_, err := tx.RegisterConnector(t.Context(), tenants.Connector{InstanceID: x.instance, Name: "test", PublicKey: key.Public().(ed25519.PublicKey)})
		return err
	})
	conn, err := connector.New(c, "test", slog.New(slog.NewTextHandler(w.log, nil)))
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- conn.Run(ctx) }()
	t.Cleanup(func() { cancel(); must(t, <-ended) })

	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	s := w.agent(token, "")
	list := func() contract.Code { return call(t.Context(), s, "notebook", map[string]any{"action": "list"}).code }
	eventually(t, "SiYuan is said to be offline", func() bool { return list() == contract.SiYuanOffline })
	if tools, err := s.ListTools(t.Context(), nil); err != nil || len(tools.Tools) == 0 {
		t.Errorf("tools %v, %v", tools, err)
	}
	k, err := samplekernel.New(samplekernel.Options{Token: "kernel-token"})
	must(t, err)
	t.Cleanup(func() { _ = k.Close() })
	server, err := samplekernel.Listen(k, addr)
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	eventually(t, "SiYuan is found", func() bool { return list() == "" })
	must(t, server.Stop())
	eventually(t, "SiYuan is missed", func() bool { return list() == contract.SiYuanOffline })
	must(t, server.Start())
	eventually(t, "SiYuan is found again", func() bool { return list() == "" })
	select {
	case err := <-ended:
		t.Fatalf("the connector ended: %v", err)
	default:
	}
}

// TestK30TextCrossesTheTunnelByteForByte: small and large bodies, in both
// protocols, there and back. 64 KB and more do not fit one frame of the tunnel.
func TestK30TextCrossesTheTunnelByteForByte(t *testing.T) {
	t.Parallel()
	_, sessions := writer(t)
	nb := into[madeNotebook](t, sessions[0], "notebook", map[string]any{"action": "create", "name": "世界 𠮷 👨‍👩‍👧"}).Notebook.ID
	if names := into[notebooks](t, sessions[1], "notebook", map[string]any{"action": "list"}).names(); !slices.Equal(names, []string{"世界 𠮷 👨‍👩‍👧"}) {
		t.Errorf("the notebook is called %q", names)
	}
	for i, text := range []string{
		"Hello — 世界 𠮷 👨‍👩‍👧", "مرحبا e\u0301 \U0010fffd", "x" + strings.Repeat("海洋𠮷", 64<<10/10), strings.Repeat("👨‍👩‍👧", 64<<10/18), strings.Repeat("a", 3) + strings.Repeat("𠮷", 30_000),
	} {
		for j, s := range sessions {
			other := sessions[1-j]
			doc := into[made](t, s, "document", map[string]any{"action": "create", "notebook": nb, "path": "/t" + eras[j] + string(rune('a'+i)), "markdown": text}).ID
			added := into[made](t, s, "block", map[string]any{"action": "append", "parentID": doc, "dataType": "markdown", "data": text}).ID
			got := into[struct{ Kramdown string }](t, other, "block", map[string]any{"action": "get_kramdown", "id": added}).Kramdown
			if own, _, _ := strings.Cut(got, "\n{:"); own != text {
				t.Errorf("text %d from %s: %d bytes came back as %d", i, eras[j], len(text), len(own))
			}
			whole := into[struct{ Content string }](t, other, "document", map[string]any{"action": "get_doc", "id": doc, "blockLimit": 1}).Content
			if strings.TrimSpace(whole) != text {
				t.Errorf("text %d from %s: the document has %d bytes, want %d", i, eras[j], len(whole), len(text))
			}
		}
	}
}
