package samplekernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// Tool is a tool of the kernel's MCP endpoint: of a plugin, or the kernel's own.
type Tool struct {
	Name, Title, Description string
	Schema                   json.RawMessage
	Source                   string // plugin or native
	ReadOnly                 bool
	// Call answers a call; an error is what the tool says went wrong. It runs
	// without the kernel's lock.
	Call func(arguments json.RawMessage) (text string, err error)
}

// toolbox is the MCP endpoint's tools and sessions.
type toolbox struct {
	mu       sync.Mutex
	tools    map[string]Tool
	sessions map[string]bool
	rings    int
}

func newToolbox() *toolbox {
	b := &toolbox{tools: map[string]Tool{}, sessions: map[string]bool{}}
	object := json.RawMessage(`{"type":"object"}`)
	for _, t := range []Tool{
		{
			Name: "plugin__desk_tools__read_weather", Title: "Weather", Description: "Tell the weather.", Source: "plugin", ReadOnly: true,
			Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","description":"City"}},"required":["city"]}`),
			Call: func(raw json.RawMessage) (string, error) {
				var in struct{ City string }
				_ = json.Unmarshal(raw, &in) // whatever else it is, there is no city
				return fmt.Sprintf("%q", "It rains in "+in.City), nil
			},
		},
		{
			Name: "plugin__desk_tools__ring", Description: "Ring the bell.", Source: "plugin",
			Schema: json.RawMessage(`{"type":"object","properties":{"times":{"type":"integer"}}}`),
			Call: func(json.RawMessage) (string, error) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.rings++
				return fmt.Sprintf(`{"rings":%d}`, b.rings), nil
			},
		},
		{
			Name: "plugin__desk_tools__fails", Description: "Always fails.", Source: "plugin", Schema: object,
			Call: func(json.RawMessage) (string, error) {
				return "", errors.New("error invoking MCP tool handler: Error: no bell at desk-tools/kernel.js:4:117(3)")
			},
		},
	} {
		b.tools[t.Name] = t
	}
	for _, name := range []string{"block", "http_request", "outline", "search", "sql", "web_fetch", "web_search"} {
		b.tools[name] = Tool{Name: name, Description: "SiYuan's own.", Source: "native", Schema: object,
			Call: func(raw json.RawMessage) (string, error) { return name + " " + string(raw), nil }}
	}
	return b
}

// OfferTool adds a tool to the MCP endpoint, or replaces it, as a plugin does that
// is loaded.
func (k *Kernel) OfferTool(t Tool) {
	k.toolbox.mu.Lock()
	defer k.toolbox.mu.Unlock()
	k.toolbox.tools[t.Name] = t
}

// WithdrawTool takes a tool away, as a plugin does that is unloaded.
func (k *Kernel) WithdrawTool(name string) {
	k.toolbox.mu.Lock()
	defer k.toolbox.mu.Unlock()
	delete(k.toolbox.tools, name)
}

// Rings is how often the bell of the sample plugin was rung.
func (k *Kernel) Rings() int {
	k.toolbox.mu.Lock()
	defer k.toolbox.mu.Unlock()
	return k.toolbox.rings
}

// EndToolSessions makes the MCP endpoint forget its sessions, as a restart does.
func (k *Kernel) EndToolSessions() {
	k.toolbox.mu.Lock()
	defer k.toolbox.mu.Unlock()
	clear(k.toolbox.sessions)
}

// mcpMessage is a JSON-RPC message in either direction.
type mcpMessage struct {
	Version string          `json:"jsonrpc"`
	Result  any             `json:"result,omitempty"`
	Error   *mcpError       `json:"error,omitempty"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
}

type mcpError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func serveMCP(k *Kernel, w http.ResponseWriter, r *http.Request) {
	var in mcpMessage
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil || json.Unmarshal(body, &in) != nil {
		writeJSON(w, http.StatusOK, mcpMessage{Version: "2.0", Error: &mcpError{-32700, "Parse error"}, ID: json.RawMessage("null")})
		return
	}
	b := k.toolbox
	if in.Method == "initialize" {
		k.mu.Lock()
		session := randomHex(k.opt.Rand, 8)
		k.mu.Unlock()
		b.mu.Lock()
		b.sessions[session] = true
		b.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", session)
		writeJSON(w, http.StatusOK, mcpMessage{Version: "2.0", ID: in.ID, Result: map[string]any{
			"capabilities": map[string]any{"tools": map[string]any{"listChanged": false}}, "protocolVersion": "2025-06-18",
			"serverInfo": map[string]any{"name": "SiYuan", "version": Version},
		}})
		return
	}
	session := r.Header.Get("Mcp-Session-Id")
	b.mu.Lock()
	known := b.sessions[session]
	b.mu.Unlock()
	switch {
	case session == "":
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "Mcp-Session-Id required"})
	case !known:
		writeJSON(w, http.StatusNotFound, map[string]any{"error": "session not found"})
	default:
		out := mcpMessage{Version: "2.0", ID: in.ID}
		if out.Result, out.Error = b.answer(in); out.Error != nil {
			out.Result = nil
		}
		writeJSON(w, http.StatusOK, out)
	}
}

func (b *toolbox) answer(in mcpMessage) (any, *mcpError) {
	switch in.Method {
	case "ping":
		return map[string]any{}, nil
	case "tools/list":
		return map[string]any{"tools": b.list()}, nil
	case "tools/call":
		return b.call(in.Params)
	}
	return nil, &mcpError{-32601, "Method not found"}
}

func (b *toolbox) list() []map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(b.tools)) {
		t := b.tools[name]
		entry := map[string]any{"name": t.Name, "description": t.Description, "inputSchema": t.Schema, "source": t.Source}
		if t.Title != "" {
			entry["title"] = t.Title
		}
		if t.ReadOnly {
			entry["readOnlyHint"] = true
		}
		if t.Source == "plugin" {
			entry["effectScope"] = "unknown"
		}
		list = append(list, entry)
	}
	return list
}

func (b *toolbox) call(raw json.RawMessage) (any, *mcpError) {
	var in struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(raw, &in) != nil || in.Name == "" {
		return nil, &mcpError{-32602, "Invalid params: name is required"}
	}
	b.mu.Lock()
	t, known := b.tools[in.Name]
	b.mu.Unlock()
	text, failed := "tool not found: "+in.Name, true
	if known {
		said, err := t.Call(in.Arguments)
		if text, failed = said, err != nil; failed {
			text = err.Error()
		}
	}
	result := map[string]any{"content": []map[string]any{{"type": "text", "text": text}}}
	if failed {
		result["isError"] = true
	}
	return result, nil
}
