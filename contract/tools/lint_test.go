package tools_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
)

// each runs f for every defined action, offered or planned.
func each(t *testing.T, f func(t *testing.T, a *tools.Action)) {
	t.Helper()
	for _, tool := range tools.Planned().Tools() {
		for _, a := range tool.Actions {
			t.Run(a.ID(), func(t *testing.T) { f(t, a) })
		}
	}
}

func TestEveryActionHasALevel(t *testing.T) {
	t.Parallel()
	least := map[tools.Kind]contract.Level{tools.Read: contract.Read, tools.Write: contract.ReadWrite, tools.Delete: contract.ReadWriteDelete, tools.UI: contract.Read}
	// A workspace switch stands in for the level of what does not edit notes; the
	// cat's coins are no notes.
	belowItsKind := []string{"mascot.buy", "notebook.set_permission", "system.notify"}
	each(t, func(t *testing.T, a *tools.Action) {
		if a.Level == contract.None {
			t.Error("has no level")
		}
		if !a.Level.Allows(least[a.Kind]) && !slices.Contains(belowItsKind, a.ID()) {
			t.Errorf("a %s action needs only %s", a.Kind, a.Level)
		}
		if (a.Scope == tools.ScopeWorkspace) != (a.Switch != "") {
			t.Errorf("scope %q with switch %q", a.Scope, a.Switch)
		}
		if a.Switch != "" && !slices.Contains(contract.Switches(), a.Switch) {
			t.Errorf("unknown switch %q", a.Switch)
		}
	})
}

func TestEveryActionIsCompleteAndItsExamplesValidate(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	each(t, func(t *testing.T, a *tools.Action) {
		if !name.MatchString(a.Name) || a.Name == "help" {
			t.Error("the name is not snake_case, or it is help")
		}
		if !strings.HasSuffix(a.Summary, ".") || strings.Contains(a.Summary, "\n") {
			t.Errorf("summary is not one sentence: %q", a.Summary)
		}
		if len(a.Examples) == 0 {
			t.Error("has no example")
		}
		for _, ex := range a.Examples {
			settled, err := a.Validate(json.RawMessage(ex))
			if err != nil {
				t.Errorf("example %s: %s", ex, err.Message)
				continue
			}
			if _, err := a.Decode(settled); err != nil {
				t.Errorf("example %s does not decode: %v", ex, err)
			}
		}
		if a.Dangerous && !a.Kind.Mutates() && a.Passage != tools.Downwards {
			t.Error("a read is dangerous only where it may write beside SiYuan")
		}
		if (a.Guarded != "") && !a.Kind.Mutates() {
			t.Error("a read has no precondition")
		}
	})
}

// idLike are the names under which parameters of this interface point at
// things in notebooks.
var idLike = regexp.MustCompile(`^(id|ids|notebook|path|paths)$|I[dD]s?$|(Notebook|Paths?)$`)

// unreferenced are id-like parameters that point at nothing the guard has to
// prove, with the reason.
var unreferenced = map[string]string{
	"document.create.path":                                  "readable path of a document that does not exist yet",
	"document.create.parentPath":                            "readable or storage path, resolved inside notebook",
	"av.set_new_item_templates.templates.saveLocation.path": "readable path of a document that does not exist yet",
	"av.set_new_item_templates.defaultTemplateID":           "one of the call's own templates",
	"search.fulltext.paths":                                 "narrows a collection that is filtered anyway",
	"search.semantic.paths":                                 "narrows a collection that is filtered anyway",
	"search.find_replace.paths":                             "narrows ids, which are proven",
	"search.fulltext_asset_content.assetId":                 "an entry of the asset index, found through what may be read",
	"search.search_refs.reqId":                              "an echo",
	"notebook.set_conf.conf.refCreateSavePath":              "a template",
	"notebook.set_conf.conf.dailyNoteSavePath":              "a template",
	"notebook.set_conf.conf.dailyNoteTemplatePath":          "a file of the workspace",
	"flashcard.list_cards.deckID":                           "a deck belongs to no notebook",
	"flashcard.list_cards.reviewedCards.cardID":             "leaves out of a list",
	"flashcard.get_cards.deckID":                            "a deck belongs to no notebook",
	"flashcard.review_card.deckID":                          "a deck belongs to no notebook",
	"flashcard.review_card.cardID":                          "a card is looked for among those of readable blocks, whose level counts",
	"flashcard.review_card.reviewedCards.cardID":            "not used",
	"flashcard.create_card.deckID":                          "a deck belongs to no notebook",
	"flashcard.remove_card.deckID":                          "a deck belongs to no notebook",
	"timeline.list_changes.documentId":                      "may name a document that is gone; what is told is judged by the level where it is or was",
	"timeline.undo.documentId":                              "may name a document that is gone; what is done is judged by the level where it is or was",
	"file.upload_asset.localFilePath":                       "on the machine of the connector",
	"file.upload_asset.assetsDirPath":                       "not used",
	"file.export_resources.outputPath":                      "on the machine of the connector",
	"system.conf.keyPath":                                   "a setting",
}

func TestEveryIDLikeParameterSaysWhatItPointsAt(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	each(t, func(t *testing.T, a *tools.Action) {
		walk(a.ID(), a.Params, func(path string, p tools.Param) {
			_, excused := unreferenced[path]
			used[path] = true
			leaf := p
			if p.Items != nil {
				leaf = *p.Items
			}
			if leaf.Type == tools.String && idLike.MatchString(p.Name) && leaf.Ref == tools.NoRef && !excused {
				t.Errorf("%s has no ref tag", path)
			}
		})
	})
	for path := range unreferenced {
		if !used[path] {
			t.Errorf("excused parameter %s does not exist", path)
		}
	}
}

func walk(prefix string, ps []tools.Param, f func(path string, p tools.Param)) {
	for _, p := range ps {
		path := prefix + "." + p.Name
		f(path, p)
		walk(path, p.Fields, f)
		if p.Items != nil {
			walk(path, p.Items.Fields, f)
		}
	}
}

func TestParametersAreBoundedAndExplained(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *tools.Action) {
		seen := map[string]bool{}
		for _, p := range a.Params {
			if seen[p.Name] {
				t.Errorf("%s is defined twice", p.Name)
			}
			seen[p.Name] = true
			if p.Doc == "" {
				t.Errorf("%s is not explained", p.Name)
			}
			if slices.Contains([]string{"action", "topic", "requestId"}, p.Name) {
				t.Errorf("%s is a parameter of the call itself", p.Name)
			}
		}
		walk(a.ID(), a.Params, func(path string, p tools.Param) {
			if p.Type == tools.Integer && (p.Min == nil || p.Max == nil) {
				t.Errorf("%s has no bounds", path)
			}
			if p.Type == tools.Array && p.MaxLen == 0 && p.Name != "sorts" {
				t.Errorf("%s has no limit", path)
			}
		})
		for alias, name := range a.ParamAliases {
			if _, ok := a.Param(name); !ok {
				t.Errorf("alias %s leads to %s, which is not a parameter", alias, name)
			}
		}
		for _, name := range a.Moves {
			if p, ok := a.Param(name); !ok || p.Ref == "" && (p.Items == nil || p.Items.Ref == "") {
				t.Errorf("moved parameter %s points at nothing", name)
			}
		}
	})
}

func TestActionNamesAndAliasesAreUniqueWithinATool(t *testing.T) {
	t.Parallel()
	for _, tool := range tools.Planned().Tools() {
		owner := map[string]string{}
		for _, a := range tool.Actions {
			for _, name := range append([]string{a.Name}, a.Aliases...) {
				if other, taken := owner[name]; taken {
					t.Errorf("%s: %s means both %s and %s", tool.Name, name, other, a.Name)
				}
				owner[name] = a.Name
			}
		}
	}
}

// TestOutputsAreClosedRecords keeps results free of shapes that tell about
// what is hidden, and of unnamed fields.
func TestOutputsAreClosedRecords(t *testing.T) {
	t.Parallel()
	banned := []string{"partial", "filteredOutCount", "permissionSummary", "reason", "pathFilteredOutCount"}
	each(t, func(t *testing.T, a *tools.Action) {
		if a.Output.Kind() != reflect.Struct {
			t.Errorf("output is %s, not a record", a.Output)
		}
		for name := range jsonNames(a.Output) {
			if slices.Contains(banned, name) {
				t.Errorf("output has %s, which tells that something is hidden", name)
			}
		}
	})
}

// jsonNames are the field names of a type at any depth.
func jsonNames(typ reflect.Type) map[string]bool {
	names := map[string]bool{}
	collect(typ, names, map[reflect.Type]bool{})
	return names
}

func collect(typ reflect.Type, names map[string]bool, seen map[reflect.Type]bool) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(typ.Elem(), names, seen)
	case reflect.Struct:
		if seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				names[name] = true
			}
			collect(f.Type, names, seen)
		}
	}
}

func TestAHomeCarriesOutAllButWhatTheBrokerAnswers(t *testing.T) {
	t.Parallel()
	for _, tool := range tools.New().Tools() {
		for _, a := range tool.Actions {
			if got, ok := tools.AtHome().Action(tool.Name, a.Name); ok == a.AtBroker || ok && got != a {
				t.Errorf("%s: at home %v, at the broker %v", a.ID(), ok, a.AtBroker)
			}
		}
	}
	if _, ok := tools.AtHome().Tool("mascot"); ok {
		t.Error("a tool without actions is there")
	}
}
