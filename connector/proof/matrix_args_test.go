package proof

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
)

// side is one of the two notebooks of the matrix.
type side int

// The contract's examples point at own; other has the same notes under the ids
// that id gives.
const (
	own side = iota
	other
)

var anyID = regexp.MustCompile(`2024(\d{10}-[0-9a-z]{7})`) // also within the tag of a node

// id is the id of a side's twin of something in the examples.
func (s side) id(example string) string { return s.text(example) }

// text replaces every id in a text with that of the side.
func (s side) text(text string) string {
	if s == own {
		return text
	}
	return ownName.ReplaceAllString(anyID.ReplaceAllString(text, "2034$1"), "${1}/Other$2")
}

// ownName is the name of the own notebook at the beginning of a path.
var ownName = regexp.MustCompile(`(^|")/Work(/|"|$)`)

// name is the name of a side's notebook.
func (s side) name() string { return map[side]string{own: "Work", other: "Other"}[s] }

// Ids of the contract's examples.
const (
	exampleNotebook = "20240101090000-work001"
	exampleProjects = "20240102100000-projdoc"
	exampleAlpha    = "20240102100100-alphadc"
	exampleBeta     = "20240102100200-betadoc"
	exampleHeading  = "20240102110001-block01"
	exampleBlock    = "20240102110002-block02"
	exampleBlock3   = "20240102110003-block03"
	exampleDatabase = "20240106120000-taskavs"
	exampleAsset    = "assets/dot-20240106090000-pngdot1.png"
)

// exampleDocs are the notes that the examples are about, and a paragraph for
// every other id in them.
func exampleDocs() []doc {
	item := func(id string) string { return "\n{: id=\"" + id + "\"}\n\n" }
	alpha := "# Alpha goals" + item(exampleHeading) + "![](" + exampleAsset + ")\n\n" + "Monday has a colour." + item(exampleBlock) + "A third block." + item(exampleBlock3)
	known := []string{guardtest.DatabaseBlock, guardtest.PeopleBlock, exampleNotebook, exampleProjects, exampleAlpha, exampleBeta, exampleHeading, exampleBlock, exampleBlock3}
	docs := []doc{}
	for id, ref := range idsInExamples() {
		switch {
		case slices.Contains(known, id), ref == tools.RefDatabase:
		case ref == tools.RefDoc || ref == tools.RefPlace:
			docs = append(docs, doc{id, "/" + exampleProjects, "Document " + id, "A document of the examples."})
		default:
			alpha += "Block " + id + " of the examples." + item(id)
		}
	}
	slices.SortFunc(docs, func(x, y doc) int { return strings.Compare(x.name, y.name) })
	return append([]doc{
		{exampleProjects, "", "Projects", "All projects. #urgent#"},
		{exampleAlpha, "/" + exampleProjects, "Alpha", alpha},
		{exampleBeta, "/" + exampleProjects, "Beta", "See ((" + exampleBlock + " \"Monday\"))."},
	}, docs...)
}

func exampleIDs(s side) []string {
	var pairs []string
	for _, d := range exampleDocs() {
		pairs = append(pairs, d.name, s.id(d.name))
	}
	return pairs
}

// idsInExamples are the ids that the examples of all actions point at.
func idsInExamples() map[string]tools.Ref {
	ids := map[string]tools.Ref{}
	for _, t := range tools.AtHome().Tools() {
		for _, a := range t.Actions {
			for _, example := range a.Examples {
				for _, tg := range targetsOf(a, json.RawMessage(example)) {
					if tg.param.Ref.IsID() {
						ids[tg.id] = tg.param.Ref
					}
				}
			}
		}
	}
	return ids
}

// target is one id in the arguments of a call.
type target struct {
	field string // of the arguments, not of what is inside
	param tools.Param
	id    string
	side  side

	need, have contract.Level
}

// targetsOf lists what the arguments point at.
func targetsOf(a *tools.Action, raw json.RawMessage) []target {
	var args map[string]any
	if json.Unmarshal(raw, &args) != nil {
		return nil
	}
	var list []target
	var walk func(field string, p tools.Param, v any)
	walk = func(field string, p tools.Param, v any) {
		switch v := v.(type) {
		case string:
			if p.Ref.IsID() || p.Ref == tools.RefAsset || p.Ref == tools.RefHuman && strings.Trim(v, "/") != "" {
				s := own
				if strings.Contains(v, "2034") || strings.HasPrefix(v, "/"+other.name()) {
					s = other
				}
				list = append(list, target{field: field, param: p, id: v, side: s})
			}
		case []any:
			for _, item := range v {
				walk(field, itemOf(p), item)
			}
		case map[string]any:
			for _, f := range p.Fields {
				if m, ok := v[f.Name]; ok {
					walk(field, f, m)
				}
			}
		}
	}
	for _, p := range a.Params {
		if v, ok := args[p.Name]; ok {
			walk(p.Name, p, v)
		}
	}
	return list
}

// form is a way to call an action.
type form struct {
	name    string
	args    json.RawMessage
	targets []target
	sure    bool // points at one notebook, so that with rwd there it must succeed
}

func (f form) sides() map[side]bool {
	sides := map[side]bool{}
	for _, t := range f.targets {
		sides[t.side] = true
	}
	return sides
}

// special are arguments that cannot be made from examples and parameters.
type special struct{ args, reason string }

var specialArguments = map[string][]special{
	"file.extract_doc": {{`{"id":"` + exampleAlpha + `","download":true}`, "into a folder it needs what no notebook gives"}},
	"file.render":      {{`{"engine":"sprig","template":"{{now | date \"2006\"}}"}`, "a template belongs to notebooks by their settings"}},
	"document.reorder": {{`{"parentID":"` + exampleProjects + `","orderedIDs":["` + exampleBeta + `","` + exampleAlpha + `"]}`, "the list must be exactly the documents there are"}},
	"document.create":  {{`{"notebook":"` + exampleNotebook + `","path":"/Projects/Gamma","markdown":"x"}`, "the path of the example is taken"}},
}

// ownLevels are actions whose levels are tried in the tests of their tool, with
// the reason.
var ownLevels = map[string]string{
	"file.read_template":           "a template belongs to notebooks by their settings, which keep others from making daily notes here",
	"document.ensure_link_targets": "its level depends on the mode, and resolve tells of a hidden target as of a missing one",
	"file.rename_asset":            "it is refused while anything is hidden",
	"file.delete_asset":            "it is refused while anything is hidden",
}

// perItem are actions whose entries succeed or fail alone, as the contract's
// summary says; their outcome is judged entry by entry.
var perItem = map[string]string{"block.batch_kramdown": "each entry succeeds or fails alone"}

// formsOf are the ways to call an action that the matrix tries: the examples,
// and a list of two for every parameter that takes a list; each as it is, at
// its twins, and with every target in turn at the other notebook.
func formsOf(a *tools.Action) ([]form, error) {
	var bases []json.RawMessage
	for _, s := range specialArguments[a.ID()] {
		bases = append(bases, json.RawMessage(s.args))
	}
	if bases == nil {
		for _, example := range a.Examples {
			bases = append(bases, json.RawMessage(example))
		}
	}
	for _, base := range bases {
		if _, invalid := a.Validate(base); invalid != nil {
			return nil, fmt.Errorf("example %s: %w", base, invalid)
		}
	}
	if len(bases) == 0 {
		return nil, fmt.Errorf("no example to make arguments from")
	}
	var forms []form
	for _, base := range bases {
		targets := targetsOf(a, base)
		forms = append(forms, form{"as in the example", base, targets, true})
		if len(targets) == 0 {
			continue
		}
		twin := json.RawMessage(other.text(string(base)))
		forms = append(forms, form{"at the twins", twin, targetsOf(a, twin), true})
		forms = append(forms, mixed(a, base, targets)...)
	}
	for _, batch := range batches(a, bases[0]) {
		forms = append(forms, mixed(a, batch, targetsOf(a, batch))...)
	}
	return forms, nil
}

// mixed points one target after the other at the other notebook.
func mixed(a *tools.Action, base json.RawMessage, targets []target) []form {
	var forms []form
	if len(targets) < 2 {
		return nil
	}
	for i := range targets {
		args := replaceNth(string(base), i, targets)
		forms = append(forms, form{fmt.Sprintf("target %d at the other notebook", i), json.RawMessage(args), targetsOf(a, json.RawMessage(args)), false})
	}
	return forms
}

// replaceNth gives the n-th target its twin's id. Targets are looked for one
// after the other, because an id may occur twice.
func replaceNth(args string, n int, targets []target) string {
	seen := 0
	for _, t := range targets[:n] {
		if t.id == targets[n].id {
			seen++
		}
	}
	at := -1
	for range seen + 1 {
		at += 1 + strings.Index(args[at+1:], targets[n].id)
	}
	return args[:at] + other.id(targets[n].id) + args[at+len(targets[n].id):]
}

// batches are calls with a list of two for each parameter that takes a list of
// targets, in place of whatever in the base excludes it.
func batches(a *tools.Action, base json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	for _, p := range a.Params {
		if p.Type != tools.Array || p.Complete {
			continue
		}
		two := pair(itemOf(p))
		var args map[string]any
		if two == nil || json.Unmarshal(base, &args) != nil {
			continue
		}
		if fitting := fit(a, args, p.Name, two); fitting != nil {
			list = append(list, fitting)
		}
	}
	return list
}

// pair is a list of two targets, nil if the elements are none.
func pair(item tools.Param) []any {
	switch {
	case item.Ref == tools.RefDoc:
		return []any{exampleAlpha, exampleBeta}
	case item.Ref.IsID():
		return []any{exampleBlock, exampleBlock3}
	case item.Type != tools.Object:
		return nil
	}
	two := []any{}
	for _, id := range []string{exampleBlock, exampleBlock3} {
		entry, points := map[string]any{}, false
		for _, f := range item.Fields {
			switch {
			case f.Ref.IsID() && (f.Required || !points):
				entry[f.Name], points = id, true
			case !f.Required:
			case len(f.Enum) > 0:
				entry[f.Name] = f.Enum[0]
			case f.Type == tools.String:
				entry[f.Name] = "text"
			}
		}
		if !points {
			return nil
		}
		two = append(two, entry)
	}
	return two
}

// fit sets a parameter and leaves out all others that validation does not
// demand: what a list makes needless may be ignored, and proves nothing.
func fit(a *tools.Action, args map[string]any, name string, value any) json.RawMessage {
	names := slices.Sorted(maps.Keys(args))
	names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	for _, without := range slices.Backward(subsets(names)) {
		trial := maps.Clone(args)
		for _, n := range without {
			delete(trial, n)
		}
		trial[name] = value
		raw := encode(trial)
		if _, invalid := a.Validate(raw); invalid == nil {
			return raw
		}
	}
	return nil
}

// subsets lists the subsets of up to eight names, smallest first.
func subsets(names []string) [][]string {
	names = names[:min(len(names), 8)]
	var all [][]string
	for mask := range 1 << len(names) {
		var set []string
		for i, n := range names {
			if mask>>i&1 == 1 {
				set = append(set, n)
			}
		}
		all = append(all, set)
	}
	slices.SortStableFunc(all, func(x, y []string) int { return len(x) - len(y) })
	return all
}

// exampleParts makes the file of the examples, and the databases: shown in
// Projects, with rows of
// their own and one that is bound.
func exampleParts(s side, k *kernelAPI) error {
	for f, text := range map[string]string{s.id(exampleAsset): "\x89PNG\r\n\x1a\na dot", "templates/daily.md": "a dot"} {
		if err := k.putFile("/data/"+f, []byte(text)); err != nil {
			return err
		}
	}
	files := guardtest.DatabaseFiles()
	for _, av := range slices.Sorted(maps.Keys(files)) {
		block := s.id(guardtest.ShownBy(av))
		dom := `<div class="av" data-node-id="` + block + `" data-type="NodeAttributeView" data-av-id="` + s.id(av) + `" data-av-type="table"></div>`
		if _, err := k.post("block/appendBlock", map[string]any{"dataType": "dom", "parentID": s.id(exampleProjects), "data": dom}); err != nil {
			return fmt.Errorf("show %s: %w", av, err)
		}
		if err := k.putFile("/data/storage/av/"+s.id(av)+".json", []byte(exampleID.ReplaceAllStringFunc(files[av], s.id))); err != nil {
			return fmt.Errorf("write %s: %w", av, err)
		}
	}
	_, err := k.post("av/addAttributeViewBlocks", map[string]any{"avID": s.id(guardtest.Database), "blockID": s.id(guardtest.DatabaseBlock), "srcs": []map[string]any{
		{"id": s.id(exampleBlock), "itemID": s.id("20240106120001-rowbond"), "isDetached": false},
	}})
	return err
}

var exampleID = regexp.MustCompile(`\d{14}-[0-9a-z]{7}`)
