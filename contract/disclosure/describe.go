package disclosure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"siyuan-broker/contract/tools"
)

// HelpAction is the action every tool has besides its own. It never reaches
// the home.
const HelpAction = "help"

// The parameters of the call itself. They stand beside an action's own
// parameters in what an agent sends and never among them in the catalogue.
const (
	ActionParam  = "action"
	TopicParam   = "topic"     // with HelpAction
	RequestParam = "requestId" // of a write
	// Of the strict write protocol, beside the fields of tools.Precondition.
	ValidateParam = "validateOnly"
	HashParam     = "expectedHash" // another name of the state's
	// Of a dangerous action, where the tenant lets the agent confirm what it was shown.
	ConfirmParam = "confirmationToken"
)

// HashParams are all names under which a hash may be given.
func HashParams() [5]string {
	return [...]string{tools.OnState.Field(), tools.OnStructure.Field(), tools.OnManifest.Field(), tools.OnSource.Field(), HashParam}
}

// Enabled says whether the caller may use an action. It must be the same
// function that admits calls.
type Enabled func(*tools.Action) bool

// Descriptor is a tool as tools/list shows it. Its JSON is the form of MCP.
type Descriptor struct {
	Name        string
	Title       string // for people
	Description string
	InputSchema json.RawMessage // compact, root type object without combinators
	ReadOnly    bool            // no enabled action changes notes
	Destructive bool            // an enabled action needs a person's agreement
}

// MarshalJSON writes the descriptor as an MCP tool.
func (d Descriptor) MarshalJSON() ([]byte, error) {
	type annotations struct {
		Destructive bool `json:"destructiveHint"`
		Idempotent  bool `json:"idempotentHint"`
		ReadOnly    bool `json:"readOnlyHint"`
	}
	return encode(struct {
		Annotations annotations     `json:"annotations"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
	}{annotations{Destructive: d.Destructive, ReadOnly: d.ReadOnly}, d.Description, d.InputSchema, d.Name, d.Title})
}

// Describe writes the descriptor of a tool for a caller. It reports false where
// the caller may use none of its actions: such a tool is not listed. strict says
// that writes can be validated first, so the parameters for it are shown.
func Describe(tool *tools.Tool, enabled Enabled, strict bool) (Descriptor, bool) {
	actions := usable(tool, enabled)
	if len(actions) == 0 {
		return Descriptor{}, false
	}
	d := Descriptor{
		Name:        tool.Name,
		Title:       tool.Title,
		Description: description(tool, actions),
		InputSchema: inputSchema(tool, actions, strict),
		ReadOnly:    true,
	}
	for _, a := range actions {
		d.ReadOnly = d.ReadOnly && !a.Kind.Mutates()
		d.Destructive = d.Destructive || a.Dangerous
	}
	return d, true
}

func usable(tool *tools.Tool, enabled Enabled) []*tools.Action {
	var actions []*tools.Action
	for _, a := range tool.Actions {
		if !a.ByName && enabled(a) {
			actions = append(actions, a)
		}
	}
	return actions
}

// description is the purpose, a line for every basic action, one line with the
// names of the others, and what the tool's ids and paths mean.
func description(tool *tools.Tool, actions []*tools.Action) string {
	lines := []string{tool.Purpose}
	var advanced []string
	for _, a := range actions {
		switch {
		case a.Stands():
			lines = append(lines, a.Signature()+star(a)+" “"+unquoted(a.Summary)+"”")
		case a.Tier == tools.Basic:
			lines = append(lines, a.Signature()+star(a))
		default:
			advanced = append(advanced, a.Name+star(a))
		}
	}
	if len(advanced) > 0 {
		lines = append(lines, "See help for: "+strings.Join(advanced, ", "))
	}
	return strings.Join(append(lines, tool.Notes...), "\n")
}

// unquoted is somebody else's sentence, fit to stand between quotes.
func unquoted(s string) string { return strings.NewReplacer("“", "'", "”", "'").Replace(s) }

func star(a *tools.Action) string {
	if a.Dangerous {
		return "*"
	}
	return ""
}

// encode is json.Marshal without the escaping that only matters inside HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode descriptor: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
