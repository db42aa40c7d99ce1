package disclosure_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
)

func nothing(*tools.Action) bool { return false }

func only(names ...string) disclosure.Enabled {
	return func(a *tools.Action) bool { return slices.Contains(names, a.ID()) }
}

func describe(t *testing.T, tool string, enabled disclosure.Enabled) disclosure.Descriptor {
	t.Helper()
	tl, ok := tools.New().Tool(tool)
	if !ok {
		t.Fatalf("no tool %s", tool)
	}
	d, ok := disclosure.Describe(tl, enabled, false)
	if !ok {
		t.Fatalf("%s is not listed", tool)
	}
	return d
}

// inputSchema is the part of a listed schema that the tests look at.
type inputSchema struct {
	Type       string `json:"type"`
	Properties map[string]struct {
		Type        any      `json:"type"`
		Enum        []string `json:"enum"`
		Description string   `json:"description"`
	} `json:"properties"`
	Required []string `json:"required"`
}

func schemaOf(t *testing.T, d disclosure.Descriptor) inputSchema {
	t.Helper()
	var s inputSchema
	if err := json.Unmarshal(d.InputSchema, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAToolWithNothingEnabledIsNotListed(t *testing.T) {
	t.Parallel()
	if list := disclosure.List(tools.New(), nothing, false); len(list) != 0 {
		t.Errorf("listed %v", list)
	}
	block, _ := tools.New().Tool("block")
	if _, ok := disclosure.Describe(block, nothing, false); ok {
		t.Error("block is listed")
	}
}

func TestOnlyEnabledActionsAreTold(t *testing.T) {
	t.Parallel()
	d := describe(t, "block", only("block.get_kramdown"))
	s := schemaOf(t, d)
	if want := []string{"get_kramdown", "help"}; !slices.Equal(s.Properties["action"].Enum, want) {
		t.Errorf("actions %v, want %v", s.Properties["action"].Enum, want)
	}
	if want := []string{"action", "blockStart", "id", "topic", "verbose"}; !slices.Equal(slices.Sorted(maps.Keys(s.Properties)), want) {
		t.Errorf("fields %v, want %v", slices.Sorted(maps.Keys(s.Properties)), want)
	}
	if strings.Contains(d.Description, "append") || strings.Contains(d.Description, "update") {
		t.Errorf("description tells of disabled actions: %s", d.Description)
	}
	if !d.ReadOnly || d.Destructive {
		t.Errorf("read only %v, destructive %v", d.ReadOnly, d.Destructive)
	}
}

func TestAWriteMakesTheToolWritableAndOffersARequestID(t *testing.T) {
	t.Parallel()
	d := describe(t, "block", only("block.get_kramdown", "block.append"))
	if d.ReadOnly {
		t.Error("the tool says it is read only")
	}
	if _, ok := schemaOf(t, d).Properties["requestId"]; !ok {
		t.Error("requestId is not offered")
	}
}

// basicFields are the fields of the basic actions of a tool; only they are
// explained in the list.
func basicFields(tool string) map[string]bool {
	fields := map[string]bool{"topic": true, "requestId": true}
	t, _ := tools.New().Tool(tool)
	for _, a := range t.Actions {
		for _, p := range a.Params {
			fields[p.Name] = fields[p.Name] || a.Tier == tools.Basic && !p.Legacy
		}
	}
	return fields
}

// TestM12WhatIsListedIsSmallAndPlain is the lint over everything an agent reads
// before its first call.
func TestM12WhatIsListedIsSmallAndPlain(t *testing.T) {
	t.Parallel()
	for _, d := range disclosure.List(tools.New(), everything, true) {
		if d.Title == "" || d.Title == d.Name {
			t.Errorf("%s has no title for people", d.Name)
		}
		s, basic := schemaOf(t, d), basicFields(d.Name)
		if s.Type != "object" || !slices.Equal(s.Required, []string{"action"}) {
			t.Errorf("%s: root type %q, required %v", d.Name, s.Type, s.Required)
		}
		var root map[string]json.RawMessage
		if err := json.Unmarshal(d.InputSchema, &root); err != nil {
			t.Fatal(err)
		}
		if want := []string{"properties", "required", "type"}; !slices.Equal(slices.Sorted(maps.Keys(root)), want) {
			t.Errorf("%s: root keywords %v", d.Name, slices.Sorted(maps.Keys(root)))
		}
		for name, p := range s.Properties {
			if basic[name] && p.Description == "" && name != "verbose" && name != "topic" { // the instructions describe them, once
				t.Errorf("%s.%s is not described", d.Name, name)
			}
			if p.Type == nil {
				t.Errorf("%s.%s means different types in different actions", d.Name, name)
			}
		}
		for _, odd := range []string{"<", ">", "&", "  ", "\t", "TODO", "catalogue"} {
			if strings.Contains(d.Description, odd) || strings.Contains(string(d.InputSchema), odd) {
				t.Errorf("%s: what is listed contains %q", d.Name, odd)
			}
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(d.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		if _, err := schema.Resolve(nil); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

func TestEveryExampleFitsTheListedSchema(t *testing.T) {
	t.Parallel()
	for _, tool := range tools.New().Tools() {
		d := describe(t, tool.Name, func(*tools.Action) bool { return true })
		var schema jsonschema.Schema
		if err := json.Unmarshal(d.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		listed, err := schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range tool.Actions {
			if a.ByName {
				continue // agents never send it
			}
			answer, _ := disclosure.Help(tool, a.Name, func(*tools.Action) bool { return true }, true)
			for _, ex := range answer.(disclosure.Topic).Examples {
				var args map[string]any
				if err := json.Unmarshal(ex, &args); err != nil {
					t.Fatalf("%s example %s: %v", a.ID(), ex, err)
				}
				if args["action"] != a.Name {
					t.Errorf("%s: example %s does not name the action", a.ID(), ex)
				}
				if err := listed.Validate(args); err != nil {
					t.Errorf("%s example %s: %v", a.ID(), ex, err)
				}
			}
		}
	}
}

func TestADescriptorIsSentAsTheLibraryWouldSendIt(t *testing.T) {
	t.Parallel()
	for _, d := range disclosure.List(tools.New(), everything, true) {
		ours, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		destructive := d.Destructive
		theirs, err := json.Marshal(&mcp.Tool{
			Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.InputSchema,
			Annotations: &mcp.ToolAnnotations{DestructiveHint: &destructive, ReadOnlyHint: d.ReadOnly},
		})
		if err != nil {
			t.Fatal(err)
		}
		if string(ours) != string(theirs) {
			t.Errorf("ours   %s\ntheirs %s", ours, theirs)
		}
	}
}

func TestHelpExplainsAnEnabledActionUnderAnySpelling(t *testing.T) {
	t.Parallel()
	block, _ := tools.New().Tool("block")
	for _, topic := range []string{"update", "Update", " update "} {
		answer, err := disclosure.Help(block, topic, everything, true)
		if err != nil {
			t.Fatalf("topic %q: %v", topic, err)
		}
		if got := answer.(disclosure.Topic); got.Action != "update" || len(got.Examples) == 0 || len(got.Rules) != 1 {
			t.Errorf("topic %q explains %+v", topic, got)
		}
	}
	notebook, _ := tools.New().Tool("notebook")
	answer, err := disclosure.Help(notebook, "ls", everything, true)
	if err != nil || answer.(disclosure.Topic).Action != "list" {
		t.Errorf("topic ls: %v %v", answer, err)
	}
	document, _ := tools.New().Tool("document")
	answer, err = disclosure.Help(document, "get-doc", everything, true)
	if err != nil || answer.(disclosure.Topic).Action != "get_doc" {
		t.Errorf("topic get-doc: %v %v", answer, err)
	}
}

func TestHelpKnowsNoDisabledTopic(t *testing.T) {
	t.Parallel()
	block, _ := tools.New().Tool("block")
	for _, topic := range []string{"update", "nonsense"} {
		_, err := disclosure.Help(block, topic, only("block.get_kramdown", "block.append"), true)
		if contract.CodeOf(err) != contract.UnknownHelpTopic {
			t.Fatalf("topic %s: %v", topic, err)
		}
		if got, want := string(err.Detail), `{"valid_topics":["get_kramdown","append"]}`; got != want {
			t.Errorf("detail %s, want %s", got, want)
		}
	}
	answer, err := disclosure.Help(block, "", only("block.append"), true)
	if err != nil || len(answer.(disclosure.Index).Actions) != 1 {
		t.Errorf("index %+v %v", answer, err)
	}
}

// The ceiling for the whole catalogue of 14 tools is 30,000 characters; what
// is offered so far must leave room for the rest.
func TestThePayloadStaysSmall(t *testing.T) {
	t.Parallel()
	p := disclosure.Measure(tools.New(), everything, true, disclosure.Preface{})
	t.Logf("payload %+v", p)
	const ceiling = 30_000
	if p.Total > ceiling {
		t.Errorf("total %d, want at most %d", p.Total, ceiling)
	}
	if p.Instructions > 2_350 {
		t.Errorf("instructions %d", p.Instructions)
	}
	for name, n := range p.Tools {
		if limit := disclosure.Plan[name]; n > limit {
			t.Errorf("%s %d, want at most %d", name, n, limit)
		}
	}
}

// TestThePlanFitsTheCeilings: 30,000 characters for all 14 tools by default, 32,000
// with every action on.
func TestThePlanFitsTheCeilings(t *testing.T) {
	t.Parallel()
	planned := 2_350 + len(`{"tools":[]}`)
	for _, n := range disclosure.Plan {
		planned += n + len(",")
	}
	if len(disclosure.Plan) != 14 || planned > 32_000 {
		t.Errorf("%d tools are planned with %d characters", len(disclosure.Plan), planned)
	}
	all := disclosure.Measure(tools.New(), func(*tools.Action) bool { return true }, true, disclosure.Preface{})
	for _, t := range tools.New().Tools() {
		planned += all.Tools[t.Name] - disclosure.Plan[t.Name]
	}
	if planned > 32_000 {
		t.Errorf("with every action on %d characters", planned)
	}
}

func TestThePayloadCountsRunesOfWhatIsSent(t *testing.T) {
	t.Parallel()
	preface := disclosure.Preface{Rules: "日记 first"}
	p := disclosure.Measure(tools.New(), only("notebook.list"), false, preface)
	d := describe(t, "notebook", only("notebook.list"))
	one, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if want := utf8.RuneCount(one); p.Tools["notebook"] != want || p.ToolsList != want+len(`{"tools":[]}`) {
		t.Errorf("%+v, want %d for the tool", p, want)
	}
	bare := disclosure.Measure(tools.New(), only("notebook.list"), false, disclosure.Preface{})
	if got, want := p.Instructions-bare.Instructions, utf8.RuneCountInString("Rules of the person you work for:\n日记 first\n\n"); got != want {
		t.Errorf("the preface counts %d, want %d", got, want)
	}
	if p.Total != p.Instructions+p.ToolsList {
		t.Errorf("total %d of %+v", p.Total, p)
	}
}

func TestHelpTellsOfValidatingOnlyWhereItMayBeDone(t *testing.T) {
	t.Parallel()
	block, _ := tools.New().Tool("block")
	for strict, want := range map[bool]bool{true: true, false: false} {
		answer, err := disclosure.Help(block, "update", everything, strict)
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.(disclosure.Topic).Guard != ""; got != want {
			t.Errorf("strict=%t: told=%t", strict, got)
		}
	}
}
