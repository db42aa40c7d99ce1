package tools_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// spans is a paragraph with every kind of mark SiYuan has; each word in it occurs
// once. %s is a block to refer to.
const spans = "alpha **bravo** *charlie* ~~delta~~ ==echo== `foxtrot` <kbd>golf</kbd> <u>hotel</u> ^india^ ~juliett~ #kilo# $lima$ " +
	"[mike](https://november.example/oscar \"papa\") ![quebec](assets/romeo.png) ((%[1]s \"sierra\")) ((%[1]s 'Target')) ***tango*** " +
	"**uniform**{: style=\"color: red;\"} victor"

// spanWords are the words of spans that a reader sees and may replace, and those
// that belong to what is not text.
var (
	spanWords = strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike sierra tango victor")
	spanParts = strings.Fields("november oscar papa quebec romeo Target color")
)

func (d *desk) dom(t *testing.T, id string) string {
	t.Helper()
	dom, err := d.Client.Reader().BlockDOM(context.Background(), siyuan.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(` updated="\d+"`).ReplaceAllString(dom, "")
}

func replaceIn(id, edits string) string { return fmt.Sprintf(`{"id":%q,%s}`, id, edits) }

// TestReplacingAWordKeepsEveryMark is the law of block.replace: the block's DOM
// afterwards is the one before with nothing but the word replaced.
func TestReplacingAWordKeepsEveryMark(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		target := liveDoc(t, d, g, nb, "/Target", "x")
		for i, form := range []string{"%s", "## %s", "- %s", "> %s"} {
			doc := liveDoc(t, d, g, nb, fmt.Sprintf("/Spans %d", i), "x")
			made := ok[catalogue.BlockAppendOut](t, d, g, "block.append", fmt.Sprintf(`{"parentID":%q,"dataType":"markdown","data":%q}`, doc, fmt.Sprintf(form, fmt.Sprintf(spans, target))))
			id := leaf(t, d, made.ID)
			ok[catalogue.BlockSetAttrsOut](t, d, g, "block.set_attrs", `{"id":"`+id+`","attrs":{"memo":"kept"}}`)
			for _, word := range spanWords {
				before := d.dom(t, id)
				r := d.call(g, "block.replace", replaceIn(id, fmt.Sprintf(`"old":%q,"new":"zz%s"`, word, word)))
				if r.Err != nil {
					t.Errorf("%s in %q: %v", word, form, r.Err)
					continue
				}
				if got, want := d.dom(t, id), strings.ReplaceAll(before, word, "zz"+word); got != want {
					t.Errorf("%s in %q:\n got %s\nwant %s", word, form, got, want)
				}
			}
			for _, part := range spanParts {
				fails(t, d.call(g, "block.replace", replaceIn(id, fmt.Sprintf(`"old":%q,"new":"x"`, part))), contract.InvalidValue)
			}
			if k := d.kramdown(t, id); !strings.Contains(k, `memo="kept"`) || !strings.Contains(k, `style="color: red;"`) {
				t.Errorf("attributes are lost: %s", k)
			}
		}
	})
}

// leaf is the block with the text in a list or quote.
func leaf(t *testing.T, d *desk, id string) string {
	t.Helper()
	for {
		kids := d.children(t, id)
		if len(kids) == 0 || kids[0].Type == "p" && len(kids) > 0 && string(kids[0].ID) == id {
			return id
		}
		if kids[0].Type != "p" && kids[0].Type != "i" {
			return id
		}
		id = string(kids[0].ID)
	}
}

// TestATagStoredAsTextIsNotMadeAMark: SiYuan can hold <kbd> as text, shows it in
// Kramdown as it shows the mark, and would make it the mark.
func TestATagStoredAsTextIsNotMadeAMark(t *testing.T) {
	t.Parallel()
	d, g := newDesk(t, policy.Fixed(contract.ReadWriteDelete)), full()
	const id = "20240107000005-literal"
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240107000004-literad.sy", Title: "Literal", Text: "press now\n{: id=\"" + id + "\"}"})
	dom := strings.Replace(d.dom(t, id), "press", "press &lt;kbd&gt;K&lt;/kbd&gt;", 1)
	d.Answer("/api/block/getBlockDOM", fmt.Sprintf(`{"id":%q,"dom":%q}`, id, dom))
	r := d.call(g, "block.replace", replaceIn(id, `"old":"now","new":"later"`))
	fails(t, r, contract.InvalidValue)
	if r.Err != nil && !strings.Contains(r.Err.Message, "<kbd>") {
		t.Errorf("%s does not name the part", r.Err.Message)
	}
}

func TestEditsAreMadeInOrderAllOrNone(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		doc := liveDoc(t, d, g, nb, "/Edits", "one two two\n\n```go\nfunc a() {}\n```\n\n- item one\n- item two\n\n| a | b |\n| --- | --- |\n| cell | end |\n")
		ids := d.ids(t, doc)
		out := ok[catalogue.BlockReplaceOut](t, d, g, "block.replace", replaceIn(ids[0], `"edit":[{"old":"one","new":"two"},{"old":"two","new":"**2**","replace_all":true}]`))
		if !out.Changed || out.EditsApplied != 2 || out.Replacements[0].Count != 1 || out.Replacements[1].Count != 3 || !strings.HasPrefix(out.Kramdown, "**2** **2** **2**") {
			t.Errorf("%+v", out)
		}
		fails(t, d.call(g, "block.replace", replaceIn(ids[0], `"edit":[{"old":"2","new":"3"},{"old":"nowhere","new":"x"}]`)), contract.InvalidValue)
		if k := d.kramdown(t, ids[0]); !strings.HasPrefix(k, "**2** **2** **2**") {
			t.Errorf("half was written: %s", k)
		}
		same := ok[catalogue.BlockReplaceOut](t, d, g, "block.replace", replaceIn(ids[0], `"old":"2","new":"2","replace_all":true`))
		if same.Changed {
			t.Errorf("%+v", same)
		}
		for name, c := range map[string][3]string{
			"code":       {ids[1], `"old":"func a","new":"func b"`, "func b() {}"},
			"first item": {string(d.children(t, ids[2])[0].ID), `"old":"item one","new":"first"`, "first"},
			"table":      {ids[3], `"old":"cell","new":"zelle"`, "zelle"},
		} {
			if r := d.call(g, "block.replace", replaceIn(c[0], c[1])); r.Err != nil || !strings.Contains(d.kramdown(t, c[0]), c[2]) {
				t.Errorf("%s: %v\n%s", name, r.Err, d.kramdown(t, c[0]))
			}
		}
		for name, c := range map[string][2]string{
			"list": {ids[2], `"old":"item","new":"x"`}, "document": {doc, `"old":"two","new":"x"`},
		} {
			fails(t, d.call(g, "block.replace", replaceIn(c[0], c[1])), contract.InvalidTarget)
			_ = name
		}
		for name, edit := range map[string]string{
			"with marks": `"old":"**2**","new":"x"`, "two blocks": `"old":"2","new":"x\n\ny"`, "a cell": `"old":"end","new":"a|b"`,
		} {
			id := ids[0]
			if name == "a cell" {
				id = ids[3]
			}
			if r := d.call(g, "block.replace", replaceIn(id, edit)); r.Err == nil {
				t.Errorf("%s: %s", name, r.Body)
			}
		}
	})
}

func TestFindAndReplaceChangesTextAndNothingElse(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		target := liveDoc(t, d, g, nb, "/Colour guide", "x")
		a := liveDoc(t, d, g, nb, "/Colour A", fmt.Sprintf("The colour of [colour](https://colour.example). ((%s \"colour\"))\n\n- colour one\n- two\n\n```\ncolour\n```", target))
		b := liveDoc(t, d, g, nb, "/B", "Colour, colour.\n\nno match")
		replaced := func(args string) []string {
			t.Helper()
			return ok[catalogue.SearchFindReplaceOut](t, d, g, "search.find_replace", args).IDs
		}
		if ids := replaced(fmt.Sprintf(`{"k":"colour","r":"color","ids":[%q,%q]}`, a, b)); len(ids) != 3 {
			t.Errorf("changed %v", ids)
		}
		text := strings.Join(append(d.texts(t, a), d.texts(t, b)...), "\n")
		for _, want := range []string{"The color of [color](https://colour.example)", `"color"))`, "color one", "Colour, color.", "```\ncolour\n```"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %s", want, text)
			}
		}
		if ids := replaced(fmt.Sprintf(`{"k":"colour","r":"color","ids":[%q],"replaceTypes":{"codeBlock":true}}`, a)); len(ids) != 1 {
			t.Errorf("code: %v", ids)
		}
		if ids := replaced(fmt.Sprintf(`{"k":"C(olo)ur A","r":"K${1}r","methodName":"regex","ids":[%q],"replaceTypes":{"docTitle":true}}`, a)); len(ids) != 1 || ids[0] != a {
			t.Errorf("title: %v", ids)
		}
		if got := ok[catalogue.DocumentLookupOut](t, d, g, "document.lookup", fmt.Sprintf(`{"id":%q}`, a)).HumanPath.HPath; got != "/Kolor" {
			t.Errorf("title %q", got)
		}
		fails(t, d.call(g, "search.find_replace", fmt.Sprintf(`{"k":"x","r":"y","methodName":"sql","ids":[%q]}`, a)), contract.InvalidArguments)
	})
}
