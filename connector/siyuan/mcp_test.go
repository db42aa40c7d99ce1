package siyuan

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// endpoint is an MCP endpoint that answers as SiYuan 3.7.3 was seen to.
type endpoint struct {
	mu      sync.Mutex
	session string   // in force
	methods []string // that were asked, in order
	bodies  []string
	answer  func(method string, w http.ResponseWriter) bool // reports that it answered
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	var in struct{ Method string }
	_ = json.Unmarshal(body, &in)
	e.methods, e.bodies = append(e.methods, in.Method), append(e.bodies, string(body))
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	say := func(status int, text string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
	switch {
	case r.URL.Path != "/mcp" || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Token "+testToken:
		say(http.StatusUnauthorized, `{"code":-1,"msg":"Auth failed [session]"}`)
	case e.answer != nil && e.answer(in.Method, w):
	case in.Method == "initialize":
		e.session += "s"
		w.Header().Set("Mcp-Session-Id", e.session)
		say(http.StatusOK, `{"jsonrpc":"2.0","result":{"capabilities":{"tools":{"listChanged":false}},"protocolVersion":"2025-06-18","serverInfo":{"name":"SiYuan","version":"3.7.3"}},"id":1}`)
	case r.Header.Get("Mcp-Session-Id") != e.session:
		say(http.StatusNotFound, `{"error":"session not found"}`)
	case in.Method == "tools/list":
		say(http.StatusOK, `{"jsonrpc":"2.0","result":{"tools":[{"name":"outline","description":"d","inputSchema":{"type":"object"},"source":"native"},`+
			`{"name":"plugin__a__b","title":"B","description":"d","inputSchema":{"type":"object"},"source":"plugin","readOnlyHint":true,"effectScope":"unknown"}]},"id":1}`)
	default:
		say(http.StatusOK, `{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"{\"n\":1}"}],"isError":true},"id":1}`)
	}
}

// asked are the methods so far, in order.
func (e *endpoint) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.methods)
}

// sent are their bodies.
func (e *endpoint) sent() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.bodies)
}

func newEndpoint(t *testing.T) (*endpoint, *Writer) {
	t.Helper()
	e := &endpoint{}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return e, newClient(t, server.URL).Writer()
}

func TestToolsAreListedAndCalledInOneSession(t *testing.T) {
	t.Parallel()
	e, w := newEndpoint(t)
	all, err := w.MCPTools(t.Context())
	if err != nil || len(all) != 2 || all[0].Source != "native" || all[0].ReadOnly || !all[1].ReadOnly || all[1].Title != "B" || string(all[1].InputSchema) != `{"type":"object"}` {
		t.Fatalf("%+v %v", all, err)
	}
	r, err := w.MCPCall(t.Context(), "plugin__a__b", json.RawMessage(`{"z":1,"a":[ 2 ]}`))
	if err != nil || !r.IsError || len(r.Content) != 1 || r.Content[0].Text != `{"n":1}` {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := w.MCPRead(t.Context(), "outline", nil); err != nil {
		t.Error(err)
	}
	if want := []string{"initialize", "tools/list", "tools/call", "tools/call"}; !slices.Equal(e.asked(), want) {
		t.Errorf("asked %v", e.asked())
	}
	if want := `"params":{"arguments":{"z":1,"a":[2]},"name":"plugin__a__b"}`; !strings.Contains(e.sent()[2], want) {
		t.Errorf("sent %s", e.sent()[2])
	}
	if !strings.Contains(e.sent()[3], `"arguments":{}`) {
		t.Errorf("sent %s", e.sent()[3])
	}
}

// TestOnlyARefusedSessionIsAskedInAgain: a call that may have been carried out is
// never sent a second time.
func TestOnlyARefusedSessionIsAskedInAgain(t *testing.T) {
	t.Parallel()
	e, w := newEndpoint(t)
	if _, err := w.MCPTools(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	e.session, e.methods = "other", nil
	e.mu.Unlock()
	if _, err := w.MCPCall(t.Context(), "x", nil); err != nil {
		t.Errorf("after a restart of SiYuan: %v", err)
	}
	if want := []string{"tools/call", "initialize", "tools/call"}; !slices.Equal(e.asked(), want) {
		t.Errorf("asked %v", e.asked())
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   Kind
	}{
		"no answer":    {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, OutcomeUnknown},
		"no JSON":      {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, OutcomeUnknown},
		"no result":    {func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1}`) }, OutcomeUnknown},
		"server error": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, OutcomeUnknown},
		"protocol error": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params"},"id":1}`)
		}, Rejected},
	} {
		e, w := newEndpoint(t)
		e.answer = func(method string, w http.ResponseWriter) bool {
			if method == "tools/call" {
				c.answer(w)
			}
			return method == "tools/call"
		}
		_, err := w.MCPCall(t.Context(), "x", nil)
		if !errors.Is(err, c.want) || len(e.asked()) != 2 {
			t.Errorf("%s: %v, asked %v", name, err, e.asked())
		}
	}
}

func TestASiYuanWithoutTheEndpointSaysSo(t *testing.T) {
	t.Parallel()
	e, w := newEndpoint(t)
	e.answer = func(_ string, w http.ResponseWriter) bool { w.WriteHeader(http.StatusNotFound); return true }
	_, err := w.MCPTools(t.Context())
	var k *Error
	if !errors.As(err, &k) || k.Kind != Status || k.Status != http.StatusNotFound || len(e.asked()) != 1 {
		t.Errorf("%v, asked %v", err, e.asked())
	}
	e.answer = func(_ string, w http.ResponseWriter) bool {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","result":{},"id":1}`)
		return true
	}
	if _, err := w.MCPTools(t.Context()); !errors.Is(err, Malformed) {
		t.Errorf("without a session: %v", err)
	}
}

// TestLiveTools asks the SiYuan of the environment. With the plugin desk-tools, as
// the sample kernel has it, its tools answer alike.
func TestLiveTools(t *testing.T) {
	w := liveClient(t).Writer()
	all, err := w.MCPTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]MCPTool{}
	for _, x := range all {
		named[x.Name] = x
	}
	for _, name := range []string{"search", "ref", "outline", "history", "repo", "image", "inbox", "web_fetch", "web_search", "http_request"} {
		if x := named[name]; x.Source != "native" || !strings.HasPrefix(string(x.InputSchema), `{`) {
			t.Errorf("%s: %+v", name, x)
		}
	}
	if r, err := w.MCPRead(t.Context(), "search", json.RawMessage(`{"action":"fulltext","query":"nothing has this"}`)); err != nil || len(r.Content) == 0 {
		t.Errorf("search: %+v %v", r, err)
	}
	if r, err := w.MCPRead(t.Context(), "no_such_tool", nil); err != nil || !r.IsError || r.Content[0].Text != "tool not found: no_such_tool" {
		t.Errorf("a missing tool: %+v %v", r, err)
	}
	const weather = "plugin__desk_tools__read_weather"
	if x, ok := named[weather]; !ok {
		t.Log("the plugin desk-tools is not there")
	} else if r, err := w.MCPRead(t.Context(), weather, json.RawMessage(`{"city":"Ulm"}`)); err != nil || r.IsError || r.Content[0].Text != `"It rains in Ulm"` || !x.ReadOnly || x.Source != "plugin" {
		t.Errorf("%+v: %+v %v", x, r, err)
	}
}
