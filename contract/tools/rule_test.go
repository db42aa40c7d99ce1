package tools

import (
	"encoding/json"
	"slices"
	"testing"

	"siyuan-broker/contract"
)

// check runs a rule on an object of arguments.
func check(t *testing.T, r Rule, args string) []string {
	t.Helper()
	var values map[string]any
	if err := json.Unmarshal([]byte(args), &values); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Check(
		func(f string) bool { _, ok := values[f]; return ok },
		func(f string) any { return values[f] },
	) {
		got = append(got, f.Path+": "+f.Message)
	}
	return got
}

func TestRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule     Rule
		sentence string
		cases    map[string][]string // arguments → what is wrong
	}{
		"exactly one": {
			ExactlyOne([]string{"id"}, []string{"notebook", "path"}),
			"Exactly one of: id, or notebook + path.",
			map[string][]string{
				`{"id":1}`:                       nil,
				`{"notebook":1,"path":1}`:        nil,
				`{"notebook":1,"path":1,"x":1}`:  nil,
				`{}`:                             {": give exactly one of: id, or notebook + path"},
				`{"notebook":1}`:                 {": give exactly one of: id, or notebook + path"},
				`{"id":1,"path":1}`:              {": give exactly one of: id, or notebook + path"},
				`{"id":1,"notebook":1,"path":1}`: {": give exactly one of: id, or notebook + path"},
			},
		},
		"exactly one of groups that share a field": {
			ExactlyOne([]string{"a", "n"}, []string{"b", "n"}),
			"Exactly one of: a + n, or b + n.",
			map[string][]string{
				`{"a":1,"n":1}`:       nil,
				`{"b":1,"n":1}`:       nil,
				`{"a":1,"b":1,"n":1}`: {": give exactly one of: a + n, or b + n"},
				`{"a":1}`:             {": give exactly one of: a + n, or b + n"},
			},
		},
		"at least one": {
			AtLeastOne("a", "b"),
			"At least one of: a, b.",
			map[string][]string{
				`{"a":1}`: nil, `{"a":1,"b":1}`: nil,
				`{"c":1}`: {": give at least one of: a, b"},
			},
		},
		"at least one in each": {
			AtLeastOneEach("items", "a", "b"),
			"At least one of: a, b; with items in each entry, or once for all.",
			map[string][]string{
				`{"a":1}`:                     nil,
				`{"a":1,"items":[{}]}`:        nil,
				`{"items":[{"a":1},{"b":1}]}`: nil,
				`{}`:                          {": give at least one of: a, b"},
				`{"items":[{"a":1},{},{"c":1}]}`: {
					"items.1: give at least one of: a, b, here or beside items", "items.2: give at least one of: a, b, here or beside items",
				},
			},
		},
		"at least one in an object": {
			AtLeastOneIn("attrs", "icon", "cover"),
			"In attrs at least one of: icon, cover.",
			map[string][]string{
				`{}`:                             nil, // whether attrs is required is not the rule's matter
				`{"attrs":{"icon":1}}`:           nil,
				`{"attrs":{"icon":1,"cover":1}}`: nil,
				`{"attrs":{"x":1}}`:              {"attrs: give at least one of: icon, cover"},
				`{"attrs":{}}`:                   {"attrs: give at least one of: icon, cover"},
			},
		},
		"not with a field": {
			NotWith("a", "", "b", "c"),
			"With a leave out: b, c.",
			map[string][]string{
				`{"b":1,"c":1}`:       nil,
				`{"a":1}`:             nil,
				`{"a":1,"b":1,"c":1}`: {"b: is not allowed together with a", "c: is not allowed together with a"},
			},
		},
		"not with a value": {
			NotWith("mode", "html", "b"),
			"With mode=html leave out: b.",
			map[string][]string{
				`{"mode":"markdown","b":1}`: nil,
				`{"b":1}`:                   nil,
				`{"mode":"html","b":1}`:     {"b: is not allowed together with mode=html"},
			},
		},
		"needs": {
			Needs("path", "", "notebook"),
			"With path also give: notebook.",
			map[string][]string{
				`{}`:                      nil,
				`{"path":1,"notebook":1}`: nil,
				`{"path":1}`:              {"notebook: is required together with path"},
			},
		},
		"needs at a value": {
			Needs("mode", "html", "size"),
			"With mode=html also give: size.",
			map[string][]string{
				`{"mode":"markdown"}`:      nil,
				`{"mode":"html","size":1}`: nil,
				`{"mode":"html"}`:          {"size: is required together with mode=html"},
			},
		},
		"each has": {
			EachHas("mode", "make", "items", "title", "id"),
			"With mode=make each of items has title and no id.",
			map[string][]string{
				`{"items":[{"id":1}]}`:                              nil,
				`{"mode":"find","items":[{"id":1}]}`:                nil,
				`{"mode":"make"}`:                                   nil, // whether items is required is not the rule's matter
				`{"mode":"make","items":[{"title":1},{"title":2}]}`: nil,
				`{"mode":"make","items":[{"title":1},{"id":1}]}`: {
					"items.1.title: is required with mode=make", "items.1.id: is not allowed with mode=make",
				},
				`{"mode":"make","items":[{"title":1,"id":1}]}`: {"items.0.id: is not allowed with mode=make"},
			},
		},
		"replaced": {
			Replaced("page", "blockStart"),
			"",
			map[string][]string{
				`{}`:         nil,
				`{"page":1}`: {"page: is not a parameter here; use blockStart"},
			},
		},
	} {
		if got := c.rule.Sentence(); got != c.sentence {
			t.Errorf("%s: %q, want %q", name, got, c.sentence)
		}
		schema := c.rule.Schema()
		for args, want := range c.cases {
			if got := check(t, c.rule, args); !slices.Equal(got, want) {
				t.Errorf("%s %s: %q, want %q", name, args, got, want)
			}
			if schema == nil {
				continue
			}
			if err := validates(t, compile(t, schema), json.RawMessage(args)); (err == nil) != (want == nil) {
				t.Errorf("%s %s: the schema says %v", name, args, err)
			}
		}
	}
}

func TestRulesOfAnActionAreChecked(t *testing.T) {
	t.Parallel()
	a := sample(NotWith("mode", "dom", "text"), AtLeastOne("mode", "name"))
	_, err := a.Validate(json.RawMessage(`{` + box + `,"mode":"DOM","text":"x"}`))
	if err == nil || contract.CodeOf(err) != contract.InvalidArguments {
		t.Fatalf("a broken rule gives %v", err)
	}
	if got, want := fieldsOf(t, err), []string{"text: is not allowed together with mode=dom"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
