package tools

import (
	"encoding/json"
	"reflect"

	"siyuan-broker/contract"
)

// Kind says what an action does to notes.
type Kind string

// The kinds of action. UI actions change only what SiYuan's window shows; Meta
// actions (help) never reach the home.
const (
	Read   Kind = "read"
	Write  Kind = "write"
	Delete Kind = "delete"
	UI     Kind = "ui"
	Meta   Kind = "meta"
)

// Mutates reports whether the kind changes stored notes and therefore goes
// through the write seam, at most once.
func (k Kind) Mutates() bool { return k == Write || k == Delete }

// Tier says how much of an action the tool description spells out.
type Tier string

// Basic actions stand in the description with their parameters, Advanced ones
// by name; help has everything about both.
const (
	Basic    Tier = "basic"
	Advanced Tier = "advanced"
)

// Scope says how the notebooks an action touches are found.
type Scope string

// The scopes. Every scope but ScopeWorkspace and ScopeNone is bounded by
// notebook levels.
const (
	ScopeTargets    Scope = "targets"    // the parameters marked with a ref tag
	ScopeCollection Scope = "collection" // results are filtered to what the caller may read
	ScopeWorkspace  Scope = "workspace"  // needs the action's Switch and an owner or admin
	ScopeNone       Scope = "none"       // touches no notebook
)

// Precondition names the state a strict-mode write is guarded by.
type Precondition string

// The preconditions of the strict write protocol.
const (
	NoPrecondition Precondition = ""          // one call with a request id is enough
	OnState        Precondition = "state"     // expectedStateHash
	OnStructure    Precondition = "structure" // expectedStructureHash
	OnManifest     Precondition = "manifest"  // expectedManifestHash
	OnSource       Precondition = "source"    // expectedSourceHash
)

// Passage says that the content of a call may travel beside it, over a one-time
// URL of the broker: a call has a few megabytes at most, and agents often reach a
// file more easily from a command line than from their own text.
type Passage string

// The passages. An answer of a Downwards action names the file in the field name.
const (
	NoPassage Passage = ""
	Upwards   Passage = "up"   // a file on its way home
	Downwards Passage = "down" // a file from home
)

// Agreement is the least that a dangerous action needs, whatever a tenant
// chooses.
type Agreement string

// The agreements. A person is asked by the tenant's policy; for some actions the
// weakest policies are not among the choices.
const (
	AnyAgreement Agreement = ""        // every policy may be chosen
	ByPerson     Agreement = "person"  // not the preview that an agent confirms itself
	InConsole    Agreement = "console" // an owner or admin, in the console, always
)

// Field is the parameter that carries the hash of the guarded state, "" where
// none does.
func (p Precondition) Field() string {
	switch p {
	case OnState:
		return "expectedStateHash"
	case OnStructure:
		return "expectedStructureHash"
	case OnManifest:
		return "expectedManifestHash"
	case OnSource:
		return "expectedSourceHash"
	}
	return ""
}

// Action is one entry of the catalogue. Values are immutable once defined.
type Action struct {
	Tool    string // filled in by the catalogue
	Name    string
	Kind    Kind
	Level   contract.Level // needed on every target that names no level of its own
	Scope   Scope
	Switch  contract.Switch // for ScopeWorkspace
	Summary string          // one line, for help, the CLI and the console

	Dangerous bool // a person has to agree first; to which calls, Asks says
	Agreement Agreement
	Lasting   bool // no undo takes it back; the person who agrees is told
	Off       bool // disabled until a tenant switches it on
	AtBroker  bool // answered by the broker, whether the home is there or not
	// ByName actions are never called by their own name but by those of the tools
	// they stand for; see Catalogue.With.
	ByName    bool
	Tier      Tier
	Guarded   Precondition
	Passage   Passage
	PassageBy string // the parameter that asks for the Passage; "": every call does
	StaysBy   string // the parameter with which the content stays at home instead
	// Image says that the answer's field data is an image in base64, which the agent
	// is shown as one.
	Image bool

	Aliases      []string          // other accepted names of the action
	ParamAliases map[string]string // other accepted parameter names → settled name
	Rules        []Rule            // what the fields must satisfy together
	Moves        []string          // parameters that name what is moved: rwd is needed there when it leaves its notebook
	Guidance     []string          // what help adds: sentences, no parameters repeated
	Examples     []string          // argument objects as JSON, without action

	Params []Param      // from the input type
	Output reflect.Type // struct or slice of structs

	stand  *Action // what carries out an action of Catalogue.With
	decode func(raw []byte) (any, error)
}

// ID is "tool.action", as people and switches name it.
func (a *Action) ID() string { return a.Tool + "." + a.Name }

// Param returns the parameter of that settled name.
func (a *Action) Param(name string) (Param, bool) {
	for _, p := range a.Params {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

// PassageOf says how the content of a call with settled arguments travels.
func (a *Action) PassageOf(settled json.RawMessage) Passage {
	if a.Passage == NoPassage || a.PassageBy == "" && a.StaysBy == "" {
		return a.Passage
	}
	args := object{}
	if json.Unmarshal(settled, &args) != nil {
		return NoPassage
	}
	given := func(name string) bool { v, ok := args[name]; return ok && string(v) != "false" }
	if a.PassageBy != "" && !given(a.PassageBy) || a.StaysBy != "" && given(a.StaysBy) {
		return NoPassage
	}
	return a.Passage
}

// Asks reports whether a person has to agree to a call with settled arguments. A
// dangerous action that sends its content to the agent, instead of writing it
// somewhere, only reads.
func (a *Action) Asks(settled json.RawMessage) bool {
	return a.Dangerous && a.PassageOf(settled) != Downwards
}

// Def is an action together with its Go types: what a handler binds to.
type Def[In, Out any] struct{ *Action }

// define completes an entry with the parameters of its input type. It panics
// on a malformed tag, which the first test run meets.
func define[In, Out any](a Action) Def[In, Out] {
	a.Params = paramsOf(reflect.TypeFor[In]())
	a.Output = reflect.TypeFor[Out]()
	if a.Kind == Read {
		a.Params = append(a.Params, verboseParam())
	}
	if a.Tier == "" {
		a.Tier = Basic
	}
	a.decode = func(raw []byte) (any, error) {
		var in In
		if a.Kind == Read {
			raw, _ = Verbose(raw)
		}
		err := decodeStrict(raw, &in)
		return in, err
	}
	return Def[In, Out]{&a}
}

// Tool is a group of actions that an agent sees as one MCP tool.
type Tool struct {
	Name    string
	Title   string // for people
	Purpose string // one or two sentences: when to choose this tool
	Notes   []string
	Fields  map[string]string // what a field means where the actions' own sentences differ
	Actions []*Action
}

// Action returns the action of that settled name.
func (t *Tool) Action(name string) (*Action, bool) {
	for _, a := range t.Actions {
		if a.Name == name {
			return a, true
		}
	}
	return nil, false
}
