package oauth

import (
	"encoding/json"
	"testing"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestEveryPageRendersInEveryLanguage(t *testing.T) {
	t.Parallel()
	pages, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := loadPages(pages)
	if err != nil {
		t.Fatal(err)
	}
	form := choices{
		Places: []placeChoice{{place{tenants.NewID(), tenants.NewID(), "Home", "Notes", contract.Read}, true}, {place{tenants.NewID(), tenants.NewID(), "Work", "Wiki", contract.Read}, false}},
		Many:   true, Levels: []levelChoice{{contract.Read, true}, {contract.ReadWrite, false}, {contract.ReadWriteDelete, false}},
		Tools: []toolChoice{{"block", true}, {"search", false}}, Days: []dayChoice{{30, true}, {0, false}}, Name: "Claude",
	}
	var consents []any
	for _, k := range []target{{"", toSite, "claude.ai", ""}, {"", toMachine, "localhost:1", ""}, {"", toApp, "cursor:", ""}} {
		consents = append(consents, consentPage{Name: "Claude", To: k, Described: "claude.ai", Email: "a@example.org", Imitates: true, Problem: "problem.level", Form: form})
	}
	consents = append(consents, consentPage{Device: "BCDF-GHJK", Form: form}, consentPage{To: target{"", toSite, "claude.ai", ""}})
	var forms []any
	for _, key := range []string{"place", "level", "above", "days", "long", "full", "name", "tools"} {
		forms = append(forms, tokenPage{Problem: "problem." + key, Form: form})
	}
	now := time.Now()
	problems := set.Check(map[string][]any{
		"consent": consents,
		"refused": {refusedPage{"invalid_client", "x"}, refusedPage{"invalid_redirect", "x"}, refusedPage{"invalid_request", "x"}},
		"device":  {devicePage{}, devicePage{"x", "device.wrong"}, devicePage{"", "device.late"}},
		"done":    {donePage{"device.allowed"}, donePage{"device.denied"}},
		"agents": {agentsPage{}, agentsPage{Tenant: "Home"}, agentsPage{Tenant: "Home", All: true, Agents: []agentRow{
			{Name: "Claude", Client: "claude.ai", Instance: "Notes", Member: "b@example.org", Level: contract.ReadWrite, Tools: "block", Made: now, Used: now, Expires: now},
			{Name: "script", Token: true, Instance: "Notes", Level: contract.ReadWriteDelete, Made: now, Expired: true}, {Level: contract.Read},
		}, Ended: []agentRow{{Name: "Cursor", Instance: "Notes", Member: "b@example.org", Made: now, Revoked: now}, {Name: "old", Instance: "Notes", Revoked: now}}}},
		"token":   append(forms, tokenPage{}, tokenPage{Token: "abc", Name: "script", Expires: now, MCP: "https://notes.example/mcp"}),
		"connect": {connectPage{"https://notes.example/mcp", "siyuan", false}, connectPage{"http://127.0.0.1:8080/mcp", "siyuan", true}},
	})
	for _, p := range problems {
		t.Error(p)
	}
}

func TestTheTextToCopyIsWhatClientsRead(t *testing.T) {
	t.Parallel()
	p := connectPage{MCP: "https://notes.example/mcp", Name: "siyuan"}
	var cursor struct {
		Servers map[string]struct{ URL string } `json:"mcpServers"`
	}
	var code struct {
		Servers map[string]struct{ Type, URL string }
	}
	for into, text := range map[any]func() (string, error){&cursor: p.CursorJSON, &code: p.VSCodeJSON} {
		s, err := text()
		if err == nil {
			err = json.Unmarshal([]byte(s), into)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if cursor.Servers["siyuan"].URL != p.MCP || code.Servers["siyuan"].URL != p.MCP || code.Servers["siyuan"].Type != "http" {
		t.Errorf("Cursor %v, VS Code %v", cursor, code)
	}
	if got := p.ClaudeCode(); got != "claude mcp add --transport http --scope user siyuan https://notes.example/mcp" {
		t.Error(got)
	}
}
