package tools

import (
	"slices"
	"strings"
	"sync"
)

// Catalogue is the set of tools a program offers.
type Catalogue struct{ tools []*Tool }

// New returns the whole catalogue: always the same, immutable one.
var New = sync.OnceValue(func() *Catalogue {
	return newCatalogue(avTool(), blockTool(), documentTool(), extensionTool(), feedbackTool(), fileTool(), flashcardTool(), fsTool(), mascotTool(), notebookTool(), searchTool(), systemTool(), tagTool(), timelineTool())
})

// AtHome is the part of the catalogue that a home carries out; the broker answers
// the rest itself.
var AtHome = sync.OnceValue(func() *Catalogue {
	var atHome []*Tool
	for _, t := range New().tools {
		some := *t
		some.Actions = slices.DeleteFunc(slices.Clone(t.Actions), func(a *Action) bool { return a.AtBroker })
		if len(some.Actions) > 0 {
			atHome = append(atHome, &some)
		}
	}
	return &Catalogue{atHome}
})

func newCatalogue(ts ...*Tool) *Catalogue {
	for _, t := range ts {
		for _, a := range t.Actions {
			a.Tool = t.Name
		}
	}
	slices.SortFunc(ts, func(a, b *Tool) int { return strings.Compare(a.Name, b.Name) })
	return &Catalogue{ts}
}

// Tools lists the tools by name.
func (c *Catalogue) Tools() []*Tool { return c.tools }

// Tool returns the tool of that settled name.
func (c *Catalogue) Tool(name string) (*Tool, bool) {
	for _, t := range c.tools {
		if t.Name == name {
			return t, true
		}
	}
	return nil, false
}

// Action returns the action of those settled names.
func (c *Catalogue) Action(tool, action string) (*Action, bool) {
	t, ok := c.Tool(tool)
	if !ok {
		return nil, false
	}
	return t.Action(action)
}

// Resolve finds the action an agent means: dashes and case do not matter, and
// the aliases of the actions count where no action has the name itself.
func (t *Tool) Resolve(name string) (*Action, bool) {
	if a, ok := t.Action(name); ok && !a.ByName {
		return a, true
	}
	name = ActionName(name)
	for _, a := range t.Actions {
		if !a.ByName && (a.Name == name || a.stand != nil && ActionName(a.Name) == name) {
			return a, true
		}
	}
	for _, a := range t.Actions {
		if a.ByName {
			continue
		}
		if slices.Contains(a.Aliases, name) || slices.Contains(commonAliases[name], a.Name) {
			return a, true
		}
	}
	return nil, false
}

// commonAliases are the words agents use for one another on any tool.
var commonAliases = map[string][]string{
	"ls": {"list"}, "list": {"ls"},
	"mv": {"move"}, "move": {"mv"},
	"rm":     {"remove", "delete"},
	"remove": {"rm", "delete"},
	"delete": {"remove", "rm"},
	"del":    {"delete", "remove", "rm"},
}
