package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract/disclosure"
)

// TestA18HelpHasOnlyWhatTheAgentMayUse, in both eras and without the home: the test's home answers no call.
func TestA18HelpHasOnlyWhatTheAgentMayUse(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			c, _ := r.client(t, era, tenantA, agent, nil)
			listed, err := c.ListResources(t.Context(), nil)
			if err != nil || len(listed.Resources) != 1 || listed.Resources[0].URI != disclosure.HelpIndexURI {
				t.Fatalf("%+v, %v", listed, err)
			}
			templates, err := c.ListResourceTemplates(t.Context(), nil)
			if err != nil || len(templates.ResourceTemplates) != 2 {
				t.Fatalf("%+v, %v", templates, err)
			}
			read := func(uri string) (string, error) {
				got, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				if err != nil {
					return "", err
				}
				return got.Contents[0].Text, nil
			}
			snap, err := r.cache.Get(t.Context(), tenantA, agent)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range catalogue.Tools() {
				for _, a := range tool.Actions {
					text, err := read(disclosure.HelpURI + tool.Name + "/" + a.Name)
					if (err == nil) != snap.Enabled(a) {
						t.Errorf("%s: enabled %v, read %v", a.ID(), snap.Enabled(a), err)
					}
					if err != nil {
						continue
					}
					want, _ := disclosure.Help(tool, a.Name, snap.Enabled, snap.Strict())
					if b, _ := json.Marshal(want); string(b) != text {
						t.Errorf("%s: %s", a.ID(), text)
					}
				}
			}
			if text, err := read(disclosure.HelpURI + "block"); err != nil || !strings.Contains(text, "get_kramdown(id, blockStart?)") {
				t.Errorf("tool: %s, %v", text, err)
			}
			if text, err := read(disclosure.HelpIndexURI); err != nil || strings.Contains(text, "set_permission") || !strings.Contains(text, "fulltext(query") {
				t.Errorf("index: %s, %v", text, err)
			}
			for _, uri := range []string{"siyuan://help/nonsense", disclosure.HelpURI + "nonsense", disclosure.HelpURI + "block/nonsense", disclosure.HelpURI + "block/update/x", "file:///etc/passwd"} {
				if text, err := read(uri); err == nil {
					t.Errorf("%s: %s", uri, text)
				}
			}
			if n := len(r.home.received()); n != 0 {
				t.Errorf("%d calls went home", n)
			}
		})
	}
}
