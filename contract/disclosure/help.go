package disclosure

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
)

// Where help is as a resource: the index of everything, and below HelpURI the
// tools and, as tool/action, the actions.
const (
	HelpIndexURI = "siyuan://help/index"
	HelpURI      = "siyuan://help/action/"
)

// HelpIndex is the help on every tool that the caller may use.
func HelpIndex(c *tools.Catalogue, enabled Enabled) []Index {
	all := []Index{}
	for _, t := range c.Tools() {
		if actions := usable(t, enabled); len(actions) > 0 {
			all = append(all, index(t, actions))
		}
	}
	return all
}

// Index is help without a topic: the actions of a tool.
type Index struct {
	Tool    string       `json:"tool"`
	Purpose string       `json:"purpose"`
	Notes   []string     `json:"notes,omitempty"`
	Actions []IndexEntry `json:"actions"`
	More    string       `json:"more"`
}

// IndexEntry is one action in an Index.
type IndexEntry struct {
	Action  string `json:"action"` // its signature
	Summary string `json:"summary"`
	Consent bool   `json:"consent,omitempty"`
}

// Topic is help on one action.
type Topic struct {
	Tool      string            `json:"tool"`
	Action    string            `json:"action"`
	Signature string            `json:"signature"`
	Summary   string            `json:"summary"`
	Needs     string            `json:"needs"`                 // the level, and where
	Consent   bool              `json:"consent,omitempty"`     // a person has to agree first
	Guard     string            `json:"writeSafety,omitempty"` // how it can be validated first
	Rules     []string          `json:"rules,omitempty"`
	Guidance  []string          `json:"guidance,omitempty"`
	Examples  []json.RawMessage `json:"examples"`
	Lists     []ListContract    `json:"lists,omitempty"`
	Accepts   map[string]string `json:"acceptsInstead,omitempty"` // other names of parameters
	Full      []string          `json:"verboseFields,omitempty"`  // fields of the answer that come only with verbose
	Schema    map[string]any    `json:"schema"`                   // strict
}

// ListContract says how a list parameter is read.
type ListContract struct {
	Param    string `json:"param"`
	Items    string `json:"items"`              // what an element is
	Ordered  bool   `json:"ordered,omitempty"`  // the order matters
	Complete bool   `json:"complete,omitempty"` // it must name every element there is
	Commas   bool   `json:"commas,omitempty"`   // text is split at commas
}

// Help answers action=help: the Index of a tool, or the Topic of one enabled
// action. Topics are matched as action names are.
//
// strict says that the tenant lets writes be validated first.
func Help(tool *tools.Tool, topic string, enabled Enabled, strict bool) (any, *contract.Error) {
	actions := usable(tool, enabled)
	if topic = tools.ActionName(topic); topic == "" || topic == "overview" || topic == HelpAction {
		return index(tool, actions), nil
	}
	if a, ok := tool.Resolve(topic); ok && slices.Contains(actions, a) {
		return explain(a, enabled, strict), nil
	}
	valid := []string{}
	for _, a := range actions {
		valid = append(valid, a.Name)
	}
	return nil, contract.Fail(contract.UnknownHelpTopic, "The tool %s has no action %q to explain.", tool.Name, topic).
		WithDetail(map[string]any{"valid_topics": valid})
}

func index(tool *tools.Tool, actions []*tools.Action) Index {
	ix := Index{Tool: tool.Name, Purpose: tool.Purpose, Notes: tool.Notes, Actions: []IndexEntry{}, More: "action=help with topic set to an action explains it."}
	for _, a := range actions {
		ix.Actions = append(ix.Actions, IndexEntry{a.Signature(), a.Summary, a.Dangerous})
	}
	return ix
}

func explain(a *tools.Action, enabled Enabled, strict bool) Topic {
	t := Topic{
		Tool: a.Tool, Action: a.Name, Signature: a.Signature(), Summary: a.Summary, Needs: needs(a), Consent: a.Dangerous,
		Accepts: a.ParamAliases, Full: a.FullFields(), Schema: a.Schema(),
	}
	if field := a.Guarded.Field(); strict && field != "" {
		t.Guard = "Optional, unless the tenant requires it: send it with " + ValidateParam + "=true to get a hash, then again with " + field + " set to it; it is done only if nothing changed meanwhile."
	}
	for _, r := range a.Rules {
		if s := r.Sentence(); s != "" {
			t.Rules = append(t.Rules, s)
		}
	}
	for _, sentence := range a.Guidance {
		if Usable(tools.New(), enabled, sentence) {
			t.Guidance = append(t.Guidance, sentence)
		}
	}
	for _, ex := range a.Examples {
		t.Examples = append(t.Examples, withAction(a.Name, ex))
	}
	for _, p := range a.Params {
		if p.Type == tools.Array {
			t.Lists = append(t.Lists, ListContract{p.Name, element(*p.Items), p.Ordered, p.Complete, p.Words})
		}
	}
	return t
}

// needs is the right an action asks for, in words.
func needs(a *tools.Action) string {
	var parts []string
	if a.Scope == tools.ScopeWorkspace {
		parts = append(parts, fmt.Sprintf("an owner's or admin's agent with the workspace switch %q", a.Switch))
	}
	switch a.Scope {
	case tools.ScopeTargets:
		parts = append(parts, a.Level.String()+" in every notebook it touches")
	case tools.ScopeCollection:
		parts = append(parts, a.Level.String()+"; other notebooks are left out")
	case tools.ScopeNone:
		parts = append(parts, "nothing")
	}
	for _, p := range a.Params {
		if level := targetLevel(p); level != nil {
			parts = append(parts, fmt.Sprintf("%s at %s", level, p.Name))
		}
	}
	if len(a.Moves) > 0 {
		parts = append(parts, "rwd at "+strings.Join(a.Moves, ", ")+" when that leaves its notebook")
	}
	return strings.Join(parts, "; ")
}

func targetLevel(p tools.Param) *contract.Level {
	if p.Items != nil {
		return p.Items.Level
	}
	return p.Level
}

func element(p tools.Param) string {
	switch {
	case p.Ref.IsID():
		return string(p.Ref) + " id"
	case p.Ref == tools.RefPath:
		return "storage path"
	case p.Ref == tools.RefHuman:
		return "path"
	case len(p.Enum) > 0:
		return strings.Join(p.Enum, "|")
	case p.Type == tools.Object:
		var names []string
		for _, f := range p.Fields {
			name := f.Name
			if !f.Required {
				name += "?"
			}
			names = append(names, name)
		}
		return "{" + strings.Join(names, ", ") + "}"
	}
	return string(p.Type)
}

// withAction puts the action into an example, as the agent has to send it.
func withAction(name, example string) json.RawMessage {
	rest := strings.TrimPrefix(strings.TrimSpace(example), "{")
	head := `{"action":"` + name + `"`
	if strings.TrimSpace(rest) != "}" {
		head += ","
	}
	return json.RawMessage(head + rest)
}
