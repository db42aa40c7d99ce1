package cases_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// update rewrites a block with Markdown.
func (d *desk) update(id, markdown string) contract.Result {
	return d.call("block.update", sprintf(`{"id":%q,"dataType":"markdown","data":%q}`, []any{id, markdown}))
}

// marked is the same mark with attributes in blocks of every kind.
var marked = map[string]string{
	"paragraph":     `a **b**{: custom-js="x"} c`,
	"heading":       `## a **b**{: custom-js="x"} c`,
	"list item":     "- a **b**{: custom-js=\"x\"} c\n- other",
	"task":          "- [ ] a **b**{: custom-js=\"x\"} c",
	"nested item":   "- top\n  - a **b**{: custom-js=\"x\"} c",
	"quote":         `> a **b**{: custom-js="x"} c`,
	"table cell":    "|h|\n|-|\n|a **b**{: custom-js=\"x\"} c|",
	"highlight":     `a ==b=={: style="color:red;"} c`,
	"struck":        `a ~~b~~{: style="color:red;"} c`,
	"code":          "a `b`{: style=\"color:red;\"} c",
	"emphasis":      `a *b*{: style="color:red;"} c`,
	"link":          `a [b](https://example.org/){: style="color:red;"} c`,
	"two of a text": `a **b**{: custom-js="x"} and **b** c`,
	"two of two":    `a **b**{: custom-js="x"} and ==d=={: style="color:red;"} c`,
	"bold in bold":  `a ***b***{: style="color:red;"} c`,
}

// TestK01InlineAttributesSurviveOrTheUpdateIsRefused: a block is written with
// its own kramdown, and then without the attributes.
func TestK01InlineAttributesSurviveOrTheUpdateIsRefused(t *testing.T) {
	t.Parallel()
	for name, text := range marked {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			id := d.append(t, guardtest.Projects, text)[0]
			stored := inlineLists(d.kramdown(t, id))
			if len(stored) == 0 {
				t.Fatalf("the kernel stored no attributes of %s: %s", text, d.kramdown(t, id))
			}
			own := ok[catalogue.BlockGetKramdownOut](t, d, "block.get_kramdown", `{"id":%q}`, id).Kramdown
			switch r := d.update(id, own); {
			case r.Err != nil && contract.CodeOf(r.Err) != contract.WouldLoseAttrs:
				t.Errorf("its own text: %v", r.Err)
			case r.Err == nil && !slices.Equal(inlineLists(d.kramdown(t, id)), stored):
				t.Errorf("its own text: attributes %q became %q", stored, inlineLists(d.kramdown(t, id)))
			}
			bare := own
			for _, list := range stored {
				bare = strings.Replace(bare, list, "", 1)
			}
			d.untouched(t, id, func() {
				r := d.update(id, bare)
				if r.Err == nil || contract.CodeOf(r.Err) != contract.WouldLoseAttrs {
					t.Errorf("without the attributes: %v %s, want would_lose_attrs", r.Err, r.Body)
				} else if !strings.Contains(string(r.Err.Detail), "style") && !strings.Contains(string(r.Err.Detail), "custom-js") {
					t.Errorf("detail %s does not name the attribute", r.Err.Detail)
				}
			})
		})
	}
}

// inlineLists are the attribute lists of a text that belong to no block.
func inlineLists(kramdown string) []string {
	var lists []string
	for part := range strings.SplitSeq(kramdown, "{: ") {
		list, _, closed := strings.Cut(part, "}")
		if closed && !strings.Contains(list, `id="`) && (strings.Contains(list, "style=") || strings.Contains(list, "custom-js=")) {
			lists = append(lists, "{: "+list+"}")
		}
	}
	return lists
}

// everyAttr are attributes of every kind that a block can have. The last two are
// how databases and decks know their rows and cards.
var everyAttr = siyuan.Attrs{
	"name": "own-name", "alias": "one,two", "memo": `say "hi" & <go> {x}`, "bookmark": "Later", "custom-x": "1", "custom-long-name": "线 & \"q\"",
	"custom-avs": "20240102100710-avtasks", "custom-riff-decks": "20230218211946-2kw8jgx", "custom-sy-av-s-text-20240102100710-avtasks": "shown",
}

// TestK03UpdateKeepsTheBlocksOwnAttributes of every kind, in blocks of every
// kind, by Markdown and by DOM, alone and in a batch.
func TestK03UpdateKeepsTheBlocksOwnAttributes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ first, then string }{
		"paragraph": {"text", "new"}, "heading": {"## text", "### new"}, "paragraph to heading": {"text", "# new"}, "to code": {"text", "```go\nnew\n```"},
		"to table": {"text", "|a|\n|-|\n|b|"}, "to list": {"text", "- new"}, "code": {"```\nx\n```", "```\ny\n```"}, "quote": {"> text", "> new"},
		"math": {"$$\nx\n$$", "$$\ny\n$$"}, "table": {"|a|\n|-|\n|b|", "|c|\n|-|\n|d|"}, "html": {"<div>a</div>", "<div>b</div>"}, "empty": {"text", ""},
		"rule": {"---", "text"}, "own ids": {"text", "new\n{: id=\"20240102110002-block02\" updated=\"20000101000000\"}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			ids := d.append(t, guardtest.Projects, c.first+"\n\nsecond")
			keep := func(what string, do func() contract.Result) {
				t.Helper()
				check(t, d.client.Writer().SetBlockAttrs(context.Background(), siyuan.ID(ids[0]), everyAttr))
				before := d.attrs(t, ids[0])
				if r := do(); r.Err != nil {
					t.Errorf("%s: %v", what, r.Err)
					return
				}
				after := d.attrs(t, ids[0])
				for k, v := range everyAttr {
					if after[k] != v || before[k] != v {
						t.Errorf("%s: %s is %q, was %q", what, k, after[k], v)
					}
				}
				if after["id"] != ids[0] || after["updated"] == "20000101000000" {
					t.Errorf("%s: id %q, updated %q", what, after["id"], after["updated"])
				}
			}
			keep("markdown", func() contract.Result { return d.update(ids[0], c.then) })
			keep("batch", func() contract.Result {
				return d.call("block.update", sprintf(`{"items":[{"id":%q,"dataType":"markdown","data":%q},{"id":%q,"dataType":"markdown","data":"other"}]}`, []any{ids[0], c.then, ids[1]}))
			})
			keep("dom", func() contract.Result {
				return d.call("block.update", sprintf(`{"id":%q,"dataType":"dom","data":%q}`, []any{ids[0],
					`<div data-node-id="` + ids[0] + `" data-type="NodeParagraph" class="p"><div contenteditable="true">by dom</div><div class="protyle-attr"></div></div>`}))
			})
		})
	}
}

// TestK03ABlockInsideKeepsItsAttributes: what stands inside a container that is
// rewritten has attributes too.
func TestK03ABlockInsideKeepsItsAttributes(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"list": "- one\n- two", "quote": "> one\n>\n> two", "super block": "{{{row\none\n\ntwo\n\n}}}"} {
		d := newDesk(t)
		id := d.append(t, guardtest.Projects, text)[0]
		inner := string(d.children(t, id)[0].ID)
		ok[struct{}](t, d, "block.set_attrs", `{"id":%q,"attrs":{"alias":"x","custom-y":"1"}}`, inner)
		d.untouched(t, id, func() {
			r := d.update(id, strings.ReplaceAll(text, "one", "new"))
			if r.Err == nil || contract.CodeOf(r.Err) != contract.WouldLoseAttrs || !strings.Contains(string(r.Err.Detail), inner) || !strings.Contains(string(r.Err.Detail), "alias") {
				t.Errorf("%s: %v %s, want would_lose_attrs that names %s and alias", name, r.Err, r.Body, inner)
			}
		})
		own := ok[catalogue.BlockGetKramdownOut](t, d, "block.get_kramdown", `{"id":%q}`, id).Kramdown
		if r := d.update(id, strings.ReplaceAll(own, "two", "second")); r.Err != nil || d.attrs(t, inner)["alias"] != "x" || !strings.Contains(d.kramdown(t, id), "second") {
			t.Errorf("%s with the ids: %v, attributes %v", name, r.Err, d.attrs(t, inner))
		}
	}
}

// TestK04AnItemStaysOneItem with the marker of its list or another one.
func TestK04AnItemStaysOneItem(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"* test3", "- test3", "+ test3", "* test3\n", "- **test3**"} {
		d := newDesk(t)
		before := d.children(t, guardtest.Item)
		if r := d.update(guardtest.Item, text); r.Err != nil {
			t.Errorf("%q: %v", text, r.Err)
			continue
		}
		after := d.children(t, guardtest.Item)
		if len(after) != len(before) || after[0].Type != "p" || after[1].ID != before[1].ID || !strings.Contains(after[0].Markdown, "test3") || strings.ContainsAny(after[0].Markdown[:1], "*+-") && after[0].Markdown[:2] != "**" {
			t.Errorf("%q: the item holds %+v, want one paragraph and its nested list", text, after)
		}
		if items := d.children(t, guardtest.List); len(items) != 2 || items[0].Type != "i" || items[1].Type != "i" {
			t.Errorf("%q: the list holds %+v", text, items)
		}
	}
	d := newDesk(t)
	for _, text := range []string{"test3", "# test3", "* a\n* b", "> test3", ""} {
		d.untouched(t, guardtest.List, func() {
			if e := d.fails(t, contract.InvalidTarget, "block.update", `{"id":%q,"dataType":"markdown","data":%q}`, guardtest.Item, text); e.Hint == "" {
				t.Errorf("%q: no hint", text)
			}
		})
	}
}

// TestK29RewritingADocumentLosesNothingThatHasAName: the attribute was set a
// moment ago, so only the tree knows it. Blocks that are cited have a name too.
func TestK29RewritingADocumentLosesNothingThatHasAName(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	made := ok[catalogue.DocumentCreateOut](t, d, "document.create", `{"notebook":%q,"path":"/Fresh","markdown":%q}`, guardtest.Work, "- top\n  - nested\n\ncited\n\nfree")
	list := string(d.children(t, made.ID)[0].ID)
	item := string(d.children(t, list)[0].ID)
	nested := string(d.children(t, string(d.children(t, item)[1].ID))[0].ID)
	cited := string(d.children(t, made.ID)[1].ID)
	d.append(t, guardtest.Projects, "see (("+cited+" \"it\"))")
	ok[struct{}](t, d, "block.set_attrs", `{"id":%q,"attrs":{"alias":"deep"}}`, nested)
	d.untouched(t, made.ID, func() {
		e := d.fails(t, contract.WouldLoseAttrs, "block.update", `{"id":%q,"dataType":"markdown","data":"overwritten"}`, made.ID)
		for _, want := range []string{nested, "alias", cited} {
			if !strings.Contains(string(e.Detail), want) {
				t.Errorf("detail %s does not name %s", e.Detail, want)
			}
		}
	})
	d.untouched(t, made.ID, func() {
		whole := ok[catalogue.BlockGetKramdownOut](t, d, "block.get_kramdown", `{"id":%q}`, made.ID).Kramdown
		without := strings.Replace(whole, `id="`+cited+`"`, `custom-z="1"`, 1)
		if e := d.fails(t, contract.WouldLoseAttrs, "block.update", `{"id":%q,"dataType":"markdown","data":%q}`, made.ID, without); !strings.Contains(string(e.Detail), cited) {
			t.Errorf("detail %s does not name the cited block", e.Detail)
		}
	})
	whole := ok[catalogue.BlockGetKramdownOut](t, d, "block.get_kramdown", `{"id":%q}`, made.ID).Kramdown
	if r := d.update(made.ID, strings.Replace(whole, "free", "changed", 1)); r.Err != nil || d.attrs(t, nested)["alias"] != "deep" {
		t.Errorf("with every id: %v, attributes %v", r.Err, d.attrs(t, nested))
	}
	if links := ok[catalogue.SearchGetBacklinksOut](t, d, "search.get_backlinks", `{"id":%q}`, cited).Backlinks; len(links) != 1 {
		t.Errorf("the citation is gone: %+v", links)
	}
}
