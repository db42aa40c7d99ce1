package siyuan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
)

// SiYuan 3.7.0 and later have an MCP endpoint of their own. It answers in plain
// JSON, with results as text, to the sessions of protocol 2025-06-18. It knows no
// notebooks: whoever may call it may do anything.

// mcpVersion is what the endpoint is asked for.
const mcpVersion = "2025-06-18"

// mcpPath is where the endpoint is.
const mcpPath = "/mcp"

// mcpSession is the client's session with the endpoint, "" while it has none.
type mcpSession struct {
	mu sync.Mutex
	id string
}

// MCPTool is a tool as SiYuan's MCP endpoint lists it. Everything in it may be a
// plugin's own word.
type MCPTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Source      string          `json:"source"` // native, plugin or mcp; "": native
	ReadOnly    bool            `json:"readOnlyHint"`
	Annotations struct {
		ReadOnly bool `json:"readOnlyHint"`
	} `json:"annotations"`
}

// MCPResult is what a tool answered.
type MCPResult struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	IsError bool `json:"isError"`
}

// MCPTools lists the tools. A SiYuan before 3.7.0 has none of this: Status with 404.
func (r *Reader) MCPTools(ctx context.Context) ([]MCPTool, error) {
	var out struct {
		Tools []MCPTool `json:"tools"`
	}
	err := r.c.mcp(ctx, "tools/list", args{}, false, &out)
	return out.Tools, err
}

// MCPRead calls a tool that says of itself that it only reads. Like a write it is
// sent once: what the tool says of itself need not be true.
func (r *Reader) MCPRead(ctx context.Context, tool string, arguments json.RawMessage) (MCPResult, error) {
	return r.c.mcpCall(ctx, tool, arguments)
}

// MCPCall calls a tool, once.
func (w *Writer) MCPCall(ctx context.Context, tool string, arguments json.RawMessage) (MCPResult, error) {
	return w.c.mcpCall(ctx, tool, arguments)
}

func (c *Client) mcpCall(ctx context.Context, tool string, arguments json.RawMessage) (out MCPResult, err error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	err = c.mcp(ctx, "tools/call", args{"name": tool, "arguments": arguments}, true, &out)
	return out, err
}

// mcp makes one request in the session. A session that SiYuan does not know any
// more is refused before anything is done, so the request is sent again in a new
// one; nothing else is.
func (c *Client) mcp(ctx context.Context, method string, params args, once bool, into any) error {
	session, err := c.mcpOpen(ctx, "")
	if err != nil {
		return err
	}
	err = c.mcpSend(ctx, session, method, params, once, into)
	if e, ok := errors.AsType[*Error](err); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest) {
		if session, err = c.mcpOpen(ctx, session); err == nil {
			err = c.mcpSend(ctx, session, method, params, once, into)
		}
	}
	return err
}

// mcpOpen gives the session, or a new one in place of the one that ended.
func (c *Client) mcpOpen(ctx context.Context, ended string) (string, error) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if c.session.id != "" && c.session.id != ended {
		return c.session.id, nil
	}
	c.session.id = ""
	k := call{path: mcpPath, flags: outside | direct, body: mcpBody("initialize", args{
		"protocolVersion": mcpVersion, "capabilities": args{}, "clientInfo": args{"name": "siyuan-connector", "version": "1"},
	})}
	a, err := c.do(ctx, k)
	if err != nil {
		return "", err
	}
	if a.session == "" || len(a.session) > 256 {
		return "", malformed(mcpPath, "no session")
	}
	c.session.id = a.session
	return a.session, nil
}

func (c *Client) mcpSend(ctx context.Context, session, method string, params args, once bool, into any) error {
	k := call{path: mcpPath, flags: outside | direct | slow, body: mcpBody(method, params), write: once, session: session}
	a, err := c.do(ctx, k)
	if err != nil {
		return err
	}
	if err = mcpDecode(a, into); once && errors.Is(err, Malformed) {
		err = unknown(err)
	}
	return err
}

func mcpBody(method string, params args) args {
	return args{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
}

func mcpDecode(a answer, into any) error {
	var env struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if !strings.HasPrefix(a.contentType, "application/json") {
		return malformed(mcpPath, "content type %q", a.contentType)
	}
	if err := json.Unmarshal(a.body, &env); err != nil {
		return malformed(mcpPath, "message: %w", err)
	}
	if env.Error != nil {
		return &Error{Kind: Rejected, Endpoint: mcpPath, Code: env.Error.Code, Status: a.status, Msg: env.Error.Message}
	}
	if len(bytes.TrimSpace(env.Result)) == 0 {
		return malformed(mcpPath, "message without a result")
	}
	if err := json.Unmarshal(env.Result, into); err != nil {
		return malformed(mcpPath, "result: %w", err)
	}
	return nil
}
