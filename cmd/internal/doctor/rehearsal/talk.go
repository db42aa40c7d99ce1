package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"siyuan-broker/cmd/internal/doctor"
)

// modern is the protocol version without sessions. All others have them.
const modern = "2026-07-28"

// talk is one client's conversation with /mcp.
type talk struct {
	network doctor.Network
	url     string
	token   string
	era     string
	session string
	id      int
}

func (d *Doctor) talk(g grant, era string) *talk {
	return &talk{network: d.Network, url: d.URL + "/mcp", token: g.Access, era: era}
}

// use lists the tools and calls one for its help, which does not need a home.
func (d *Doctor) use(ctx context.Context, c client, g grant) (tools int, err error) {
	t := d.talk(g, c.era)
	if err := t.hello(ctx); err != nil {
		return 0, in("first message with the token", err)
	}
	list, err := t.list(ctx)
	if err != nil {
		return 0, in("tools/list", err)
	}
	if err := in("tools/call", t.help(ctx, list[0])); err != nil {
		return 0, err
	}
	return len(list), in("end of the session", t.goodbye(ctx))
}

// hello begins a session where the era has them.
func (t *talk) hello(ctx context.Context) error {
	if t.era == modern {
		_, err := t.list(ctx)
		return err
	}
	a, err := t.post(ctx, "initialize", "", map[string]any{"protocolVersion": t.era, "capabilities": map[string]any{}, "clientInfo": info()})
	if err != nil {
		return err
	}
	var result struct {
		Version string `json:"protocolVersion"`
	}
	if err := t.result(a, &result); err != nil {
		return err
	}
	if result.Version != t.era {
		return bad("is the broker up to date?", "the broker chose protocol %q for a client of %s", short(result.Version), t.era)
	}
	if t.session = a.header.Get("Mcp-Session-Id"); t.session == "" {
		return bad("the proxy in front must pass Mcp-Session-Id of answers", "the answer to initialize has no Mcp-Session-Id: something in front strips it")
	}
	if a, err = t.post(ctx, "notifications/initialized", "", nil); err != nil {
		return err
	}
	if a.status != http.StatusAccepted {
		return t.refused(a)
	}
	return nil
}

// list is the names of the tools.
func (t *talk) list(ctx context.Context) ([]string, error) {
	a, err := t.post(ctx, "tools/list", "", map[string]any{})
	if err != nil {
		return nil, err
	}
	var result struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := t.result(a, &result); err != nil {
		return nil, err
	}
	if len(result.Tools) == 0 {
		return nil, bad("are all tools switched off for this instance?", "no tools are listed")
	}
	names := make([]string, len(result.Tools))
	for i, tool := range result.Tools {
		names[i] = tool.Name
	}
	return names, nil
}

func (t *talk) help(ctx context.Context, tool string) error {
	a, err := t.post(ctx, "tools/call", tool, map[string]any{"name": tool, "arguments": map[string]any{"action": "help"}})
	if err != nil {
		return err
	}
	var result struct {
		Content []json.RawMessage `json:"content"`
		IsError bool              `json:"isError"`
	}
	if err := t.result(a, &result); err != nil {
		return err
	}
	if result.IsError || len(result.Content) == 0 {
		return bad("the broker's log says more", "the help of %s ends in an error: %s", tool, short(string(a.body)))
	}
	return nil
}

// goodbye ends the session.
func (t *talk) goodbye(ctx context.Context) error {
	if t.session == "" {
		return nil
	}
	a, err := say(ctx, t.network.Client(), http.MethodDelete, t.url, nil, t.header("", ""))
	if err != nil {
		return err
	}
	if a.status != http.StatusNoContent {
		return bad("the proxy in front must pass DELETE", "DELETE of the session answers %s", a)
	}
	return nil
}

// post sends one message. A method of notifications has no id.
func (t *talk) post(ctx context.Context, method, name string, params map[string]any) (answer, error) {
	return say(ctx, t.network.Client(), http.MethodPost, t.url, t.message(method, params), t.header(method, name))
}

func (t *talk) message(method string, params map[string]any) []byte {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if !strings.HasPrefix(method, "notifications/") {
		t.id++
		m["id"] = t.id
	}
	if t.era == modern {
		all := map[string]any{"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": modern, "io.modelcontextprotocol/clientInfo": info(),
			"io.modelcontextprotocol/clientCapabilities": map[string]any{}}}
		for k, v := range params {
			all[k] = v
		}
		params = all
	}
	if params != nil {
		m["params"] = params
	}
	body, _ := json.Marshal(m) // maps of strings always marshal
	return body
}

func (t *talk) header(method, name string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + t.token}}
	if method != "initialize" {
		h.Set("Mcp-Protocol-Version", t.era)
	}
	if t.session != "" {
		h.Set("Mcp-Session-Id", t.session)
	}
	if t.era == modern {
		h.Set("Mcp-Method", method)
		if name != "" {
			h.Set("Mcp-Name", name)
		}
	}
	return h
}

func info() map[string]any { return map[string]any{"name": "siyuan-broker doctor", "version": "1"} }

// result is the result of the message of a 200, which may be an event.
func (t *talk) result(a answer, v any) error {
	if a.status != http.StatusOK {
		return t.refused(a)
	}
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	body := a.body
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		body = lastEvent(a.body)
	}
	switch err := json.Unmarshal(body, &m); {
	case err != nil:
		return bad(a.next(), "/mcp answers something that is no message: %s", a)
	case m.Error != nil:
		return bad("the broker's log says more", "/mcp answers the error %q", short(m.Error.Message))
	case json.Unmarshal(m.Result, v) != nil:
		return bad("is the answer from the broker?", "/mcp answers a result of another kind: %s", short(string(m.Result)))
	}
	return nil
}

// lastEvent is the data of the last event of a stream.
func lastEvent(body []byte) (data []byte) {
	for line := range bytes.Lines(body) {
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = bytes.TrimSpace(rest)
		}
	}
	return data
}

// refused says what a refusal of /mcp usually means.
func (t *talk) refused(a answer) error {
	said := a.said()
	switch {
	case a.status == http.StatusUnauthorized && strings.Contains(said, "is required"):
		return bad("the proxy in front must pass the Authorization header; nginx drops it where a location sets it, Apache without CGIPassAuth, some filters always",
			"the Authorization header does not reach the broker: /mcp answers %s", a)
	case a.status == http.StatusUnauthorized:
		return bad("do the clocks of the broker's nodes agree, and do all have the same master_key? does something in front put its own Authorization in place?",
			"/mcp does not take a token that is seconds old: %s", a)
	case strings.Contains(said, "Mcp-Session-Id"):
		return bad("the proxy in front must pass Mcp-Session-Id", "the header Mcp-Session-Id does not reach the broker: /mcp answers %s", a)
	}
	return bad(a.next(), "/mcp answers %s", fmt.Sprint(a))
}
