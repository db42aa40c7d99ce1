package disclosure

import (
	"strings"
	"testing"

	"siyuan-broker/contract/tools"
)

func bounds(lo, hi float64) tools.Param {
	return tools.Param{Name: "n", Type: tools.Integer, Min: &lo, Max: &hi, Doc: "First."}
}

func TestMergedFieldsAdmitWhatEitherAdmits(t *testing.T) {
	t.Parallel()
	text := tools.Param{Name: "n", Type: tools.String, Required: true, Doc: "Second."}
	word := func(words ...string) tools.Param { return tools.Param{Name: "n", Type: tools.String, Enum: words} }
	list := func(n int, items tools.Param) tools.Param {
		return tools.Param{Name: "n", Type: tools.Array, MaxLen: n, Items: &items}
	}
	record := func(fields ...tools.Param) tools.Param {
		return tools.Param{Name: "n", Type: tools.Object, Fields: fields}
	}
	a, b := tools.Param{Name: "a", Type: tools.String, Required: true}, tools.Param{Name: "b", Type: tools.String, Required: true}
	for name, c := range map[string]struct {
		a, b tools.Param
		want string
	}{
		"the outer bounds":                     {bounds(1, 5), bounds(0, 9), `{"description":"First.","maximum":9,"minimum":0,"type":"integer"}`},
		"no bound where one has none":          {bounds(1, 5), tools.Param{Name: "n", Type: tools.Integer}, `{"description":"First.","type":"integer"}`},
		"a number for both kinds":              {bounds(1, 5), tools.Param{Name: "n", Type: tools.Number}, `{"description":"First.","type":"number"}`},
		"the union of closed words":            {word("a", "b"), word("b", "c"), `{"enum":["a","b","c"],"type":"string"}`},
		"any word where one is open":           {word("a"), text, `{"type":"string"}`},
		"anything for other types":             {bounds(1, 5), text, `{"description":"First."}`},
		"the longer list":                      {list(3, text), list(8, text), `{"items":{"description":"Second.","type":"string"},"maxItems":8,"type":"array"}`},
		"fields of both, common ones required": {record(a, b), record(a), `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"],"type":"object"}`},
	} {
		if got := string(mustEncode(listed(merge(c.a, c.b)))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestALongNestedSchemaIsLeftToHelp(t *testing.T) {
	t.Parallel()
	item := tools.Param{Type: tools.Object, Fields: []tools.Param{{Name: "text", Type: tools.String, Doc: strings.Repeat("x", 600)}}}
	p := tools.Param{Name: "items", Type: tools.Array, Doc: "Many.", Items: &item}
	if got, want := string(mustEncode(folded(p, foldAbove))), `{"description":"Many. See help.","type":"array"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	item.Fields[0].Doc = "Short."
	if got := string(mustEncode(folded(p, foldAbove))); !strings.Contains(got, `"properties":{"text"`) {
		t.Errorf("a short schema was folded: %s", got)
	}
}
