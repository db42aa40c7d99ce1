// Package saying tells people in their language what tools and actions do. The
// contract's own words are English, for agents; pages show these. It must not know
// what may be done.
package saying

import (
	"embed"
	"encoding/json"
	"fmt"

	"siyuan-broker/broker/page"
	"siyuan-broker/contract/tools"
)

//go:embed zh.json
var files embed.FS

// Sayings are what tools ("fs") and actions ("fs.rm") do, by language. English is
// the contract's.
type Sayings struct{ chinese map[string]string }

// Load reads the sayings that are compiled in.
func Load() (Sayings, error) {
	var s Sayings
	b, err := files.ReadFile("zh.json")
	if err == nil {
		err = json.Unmarshal(b, &s.chinese)
	}
	if err != nil {
		return s, fmt.Errorf("what actions do, in Chinese: %w", err)
	}
	return s, nil
}

// Tool is the purpose of a tool.
func (s Sayings) Tool(t *tools.Tool, l page.Lang) string { return s.say(t.Name, t.Purpose, l) }

// Action is what an action does.
func (s Sayings) Action(a *tools.Action, l page.Lang) string { return s.say(a.ID(), a.Summary, l) }

func (s Sayings) say(id, english string, l page.Lang) string {
	if text, ok := s.chinese[id]; ok && l == page.Chinese {
		return text
	}
	return english
}
