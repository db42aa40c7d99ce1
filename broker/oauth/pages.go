package oauth

import (
	"embed"
	"encoding/json"
	"fmt"

	"siyuan-broker/broker/page"
)

//go:embed pages
var pageFiles embed.FS

func loadPages(p *page.Pages) (*page.Set, error) {
	return p.Load(pageFiles, "pages")
}

// server is how clients' configuration files name us.
type server struct {
	Type string `json:"type,omitempty"`
	URL  string `json:"url"`
}

func indented(v any) (string, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	return string(b), err
}

// CursorJSON is what goes into Cursor's mcp.json.
func (c connectPage) CursorJSON() (string, error) {
	return indented(map[string]any{"mcpServers": map[string]server{c.Name: {URL: c.MCP}}})
}

// VSCodeJSON is what goes into VS Code's mcp.json.
func (c connectPage) VSCodeJSON() (string, error) {
	return indented(map[string]any{"servers": map[string]server{c.Name: {Type: "http", URL: c.MCP}}})
}

// ClaudeCode is the command that adds us to Claude Code.
func (c connectPage) ClaudeCode() string {
	return fmt.Sprintf("claude mcp add --transport http --scope user %s %s", c.Name, c.MCP)
}

// Curl is a first request with a personal token.
func (c connectPage) Curl() string {
	return "curl " + c.MCP + ` \
  -H "Authorization: Bearer $TOKEN" \
  -H "Content-Type: application/json" \
  -H "Accept: application/json, text/event-stream" \
  -H "MCP-Protocol-Version: 2025-06-18" \
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'`
}
