package disclosure

import (
	"strings"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
)

func all(*tools.Action) bool { return true }

func TestADescriptionSpellsOutBasicActionsAndNamesTheOthers(t *testing.T) {
	t.Parallel()
	id := tools.Param{Name: "id", Type: tools.String, Required: true}
	tool := &tools.Tool{
		Name: "box", Purpose: "Boxes.", Notes: []string{"An id is a number."},
		Actions: []*tools.Action{
			{Name: "open", Kind: tools.Read, Tier: tools.Basic, Params: []tools.Param{id, {Name: "wide", Type: tools.Boolean}, {Name: "old", Type: tools.String, Legacy: true}}},
			{Name: "burn", Kind: tools.Delete, Tier: tools.Basic, Dangerous: true, Params: []tools.Param{id}},
			{Name: "paint", Kind: tools.Write, Tier: tools.Advanced},
			{Name: "empty", Kind: tools.Delete, Tier: tools.Advanced, Dangerous: true},
		},
	}
	d, _ := Describe(tool, all, false)
	if want := "Boxes.\nopen(id, wide?)\nburn(id)*\nSee help for: paint, empty*\nAn id is a number."; d.Description != want {
		t.Errorf("%q, want %q", d.Description, want)
	}
	if !d.Destructive || d.ReadOnly {
		t.Errorf("destructive %v, read only %v", d.Destructive, d.ReadOnly)
	}
	want := `{"properties":{"action":{"enum":["open","burn","paint","empty","help"],"type":"string"},"id":{"type":"string"},` +
		`"requestId":{"description":"New UUIDv7.","type":"string"},` +
		`"topic":{"type":"string"},"wide":{"type":"boolean"}},"required":["action"],"type":"object"}`
	if string(d.InputSchema) != want {
		t.Errorf("%s, want %s", d.InputSchema, want)
	}
	safe, _ := Describe(tool, func(a *tools.Action) bool { return !a.Dangerous }, false)
	if safe.Destructive {
		t.Error("destructive although nothing dangerous is enabled")
	}
}

func TestASentenceOfTheToolStandsForTheActions(t *testing.T) {
	t.Parallel()
	tool := &tools.Tool{
		Name: "box", Fields: map[string]string{"id": "Any id."},
		Actions: []*tools.Action{{Name: "open", Tier: tools.Basic, Params: []tools.Param{{Name: "id", Type: tools.String, Doc: "Id of what to open."}}}},
	}
	got := string(inputSchema(tool, tool.Actions, false))
	want := `{"properties":{"action":{"enum":["open","help"],"type":"string"},"id":{"description":"Any id.","type":"string"},` +
		`"topic":{"type":"string"}},"required":["action"],"type":"object"}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestFieldsOfAdvancedActionsAreListedWithoutSentences(t *testing.T) {
	t.Parallel()
	member := tools.Param{Type: tools.Object, Fields: []tools.Param{{Name: "note", Type: tools.String, Doc: "Note."}}}
	actions := []*tools.Action{
		{Name: "paint", Tier: tools.Advanced, Params: []tools.Param{
			{Name: "id", Type: tools.String, Doc: "Id."}, {Name: "parts", Type: tools.Array, Doc: "Parts.", Items: &member, MaxLen: 9},
		}},
		{Name: "open", Tier: tools.Basic, Params: []tools.Param{{Name: "id", Type: tools.String, Doc: "Id."}}},
	}
	got := string(inputSchema(&tools.Tool{Name: "box"}, actions, false))
	want := `{"properties":{"action":{"enum":["paint","open","help"],"type":"string"},"id":{"description":"Id.","type":"string"},` +
		`"parts":{"items":{"properties":{"note":{"type":"string"}},"type":"object"},"type":"array"},` +
		`"topic":{"type":"string"}},"required":["action"],"type":"object"}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if member.Fields[0].Doc != "Note." {
		t.Error("listing changed the contract")
	}
}

func TestHelpSaysWhichRightsAnActionNeeds(t *testing.T) {
	t.Parallel()
	rwd := contract.ReadWriteDelete
	target := func(name string, level *contract.Level) tools.Param {
		return tools.Param{Name: name, Type: tools.String, Ref: tools.RefBlock, Level: level}
	}
	ids := target("", &rwd)
	for want, a := range map[string]*tools.Action{
		"rw in every notebook it touches":                                               {Scope: tools.ScopeTargets, Level: contract.ReadWrite, Params: []tools.Param{target("id", nil)}},
		"rw in every notebook it touches; rwd at from":                                  {Scope: tools.ScopeTargets, Level: contract.ReadWrite, Params: []tools.Param{target("from", &rwd)}},
		"rw in every notebook it touches; rwd at ids":                                   {Scope: tools.ScopeTargets, Level: contract.ReadWrite, Params: []tools.Param{{Name: "ids", Type: tools.Array, Items: &ids}}},
		"rw in every notebook it touches; rwd at id, ids when that leaves its notebook": {Scope: tools.ScopeTargets, Level: contract.ReadWrite, Moves: []string{"id", "ids"}},
		"r; other notebooks are left out":                                               {Scope: tools.ScopeCollection, Level: contract.Read},
		`an owner's or admin's agent with the workspace switch "tags"`:                  {Scope: tools.ScopeWorkspace, Switch: contract.SwitchTags, Level: contract.ReadWrite},
		"nothing": {Scope: tools.ScopeNone, Level: contract.Read},
	} {
		if got := needs(a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHelpSaysHowListsAreRead(t *testing.T) {
	t.Parallel()
	list := func(name string, item tools.Param) tools.Param {
		return tools.Param{Name: name, Type: tools.Array, Items: &item}
	}
	order := list("order", tools.Param{Type: tools.String, Ref: tools.RefDoc})
	order.Ordered, order.Complete, order.Words = true, true, true
	got := explain(&tools.Action{Params: []tools.Param{
		order,
		list("paths", tools.Param{Type: tools.String, Ref: tools.RefPath}),
		list("words", tools.Param{Type: tools.String, Enum: []string{"a", "b"}}),
		list("free", tools.Param{Type: tools.String}),
		list("items", tools.Param{Type: tools.Object, Fields: []tools.Param{{Name: "id", Required: true}, {Name: "note"}}}),
		{Name: "one", Type: tools.String},
	}}, func(*tools.Action) bool { return true }, true).Lists
	want := []ListContract{
		{Param: "order", Items: "doc id", Ordered: true, Complete: true, Commas: true},
		{Param: "paths", Items: "storage path"},
		{Param: "words", Items: "a|b"},
		{Param: "free", Items: "string"},
		{Param: "items", Items: "{id, note?}"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d lists, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

func TestTheHashParametersAreShownOnlyWhereWritesCanBeValidated(t *testing.T) {
	t.Parallel()
	actions := []*tools.Action{
		{Name: "update", Kind: tools.Write, Guarded: tools.OnState},
		{Name: "append", Kind: tools.Write},
		{Name: "list", Kind: tools.Read},
	}
	tool := &tools.Tool{Name: "box"}
	for strict, want := range map[bool][]string{
		false: nil, true: {`"validateOnly":{"type":"boolean"}`, `"expectedStateHash":{"type":"string"}`},
	} {
		got := string(inputSchema(tool, actions, strict))
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("strict=%t: %s lacks %s", strict, got, w)
			}
		}
		if !strict && strings.Contains(got, "expected") || strings.Contains(got, "expectedStructureHash") {
			t.Errorf("strict=%t: %s", strict, got)
		}
		if got := string(inputSchema(tool, actions[1:], strict)); strings.Contains(got, "validateOnly") {
			t.Errorf("without a guarded action: %s", got)
		}
	}
}
