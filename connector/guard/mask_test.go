package guard

import (
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan"
)

const (
	idA siyuan.ID = "20240102110001-aaaaaaa"
	idB siyuan.ID = "20240102110002-bbbbbbb"
)

func TestMaskDynamic(t *testing.T) {
	t.Parallel()
	can := map[siyuan.ID]bool{idB: true}
	for _, c := range []struct{ name, in, want string }{
		{"readable", "x ((" + string(idB) + " 'title')) y", "x ((" + string(idB) + " 'title')) y"},
		{"hidden", "x ((" + string(idA) + " 'title')) y", "x ((" + string(idA) + " '[not available]')) y"},
		{"static", `x ((` + string(idA) + ` "title")) y`, `x ((` + string(idA) + ` "title")) y`},
		{"forgotten id", "x (( 'title')) y", "x (( '[not available]')) y"},
		{"two on a line", "((" + string(idA) + " 'a')) and ((" + string(idB) + " 'b'))", "((" + string(idA) + " '[not available]')) and ((" + string(idB) + " 'b'))"},
		{"escaped apostrophe", "((" + string(idA) + " 'it&apos;s &apos;))')) end", "((" + string(idA) + " '[not available]')) end"},
		{"raw apostrophe hides the line", "((" + string(idA) + " 'it's b')) end\nnext", "((" + string(idA) + " '[not available]'))\nnext"},
		{"unclosed hides the line", "((" + string(idA) + " 'title\nnext", "((" + string(idA) + " '[not available]'))\nnext"},
		{"unclosed though readable", "((" + string(idB) + " 'title\nnext", "((" + string(idB) + " '[not available]'))\nnext"},
	} {
		if got := maskDynamic(c.in, can); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestUnmaskRestoresInOrder(t *testing.T) {
	t.Parallel()
	ref := func(id siyuan.ID, anchor string) string { return "((" + string(id) + " '" + anchor + "'))" }
	stored := ref(idA, "one") + ref(idB, "b") + ref(idA, "two")
	masked := maskDynamic(stored, map[siyuan.ID]bool{idB: true})
	if got := unmask(masked, stored); got != stored {
		t.Errorf("%q, want %q", got, stored)
	}
	third := masked + ref(idA, Placeholder)
	if got := unmask(third, stored); got != stored+ref(idA, Placeholder) {
		t.Errorf("a reference too many: %q", got)
	}
}

const para = `<div data-node-id="20240102110042-block2a" data-type="NodeParagraph" class="p" refcount="3"><div contenteditable="true">a <span data-type="strong block-ref" data-subtype="d" data-id="20240102110001-aaaaaaa">hidden &lt;b&gt;</span> <span data-type="block-ref" data-subtype="s" data-id="20240102110001-aaaaaaa">mine</span><br>b &amp; c</div><div class="protyle-attr" contenteditable="false"><div class="protyle-attr--refcount popover__block">3</div>` + "\u200b" + `</div></div>`

func TestMaskedDOMKeepsAllButWhatItHides(t *testing.T) {
	t.Parallel()
	got := rewriteDOM(para, false, func(e domElement) (string, bool) { return Placeholder, e.dynamic() })
	want := strings.NewReplacer("hidden &lt;b&gt;", Placeholder, ` refcount="3"`, "", `<div class="protyle-attr--refcount popover__block">3</div>`, "").Replace(para)
	if got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	if back := unmaskDOM(got, para); !strings.Contains(back, "hidden &lt;b&gt;</span>") {
		t.Errorf("not put back: %s", back)
	}
}

func TestRenderedEmbedsAreLeftOut(t *testing.T) {
	t.Parallel()
	dom := `<div data-content="select 1" data-node-id="20240102110043-block2b" data-type="NodeBlockQueryEmbed"><div data-node-id="20240102110062-block3e" data-type="NodeParagraph"><div>secret</div></div><div class="protyle-attr"></div></div><div data-node-id="20240102110044-block2c" data-type="NodeParagraph"><div>after</div></div>`
	got := rewriteDOM(dom, false, func(domElement) (string, bool) { return "", false })
	if strings.Contains(got, "secret") || strings.Contains(got, "block3e") || !strings.Contains(got, "after") || !strings.Contains(got, `<div class="protyle-attr"></div></div>`) || strings.Contains(got, "<div></div>") {
		t.Errorf("DOM %s", got)
	}
}

func TestTopBlocksCountsWhatTheKernelWouldMake(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "a": 1, "a\nb": 1, "a\n\nb": 2, "# a": 1, "# a\nb": 2, "a\n# b": 2, "- a\n- b": 1, "- a\n\n- b": 1, "- a\n  - b\n\n    c": 1,
		"- a\n\nb": 2, "> a\n> b": 1, "> a\n\nb": 2, "```\na\n\nb\n```": 1, "```\na\n```\nb": 2, "a\n```\nb\n```": 2,
		"$$\na\n\nb\n$$": 1, "$$x$$": 1, "$$x$$\n\nb": 2, "|a|\n|-|\n|b|": 1, "|a|\n|-|\n|b|\n\nc": 2, "<div>\na\n</div>": 1,
		"{{{row\na\n\nb\n}}}": 1, "{{{row\na\n}}}\nb": 2, "a\n{: id=\"20240102110001-aaaaaaa\"}": 1,
		"a\n{: custom-x=\"1\"}\n\nb": 2, "1. a\n2. b": 1, "---": 1, "a\n\n---\n\nb": 3, "* * *": 1, "- [ ] a\n- [x] b": 1,
		"- a\n  ```\n  x\n\n  y\n  ```\n- b": 1, "{{select * from blocks}}": 1, "{{select 1}}\na": 2,
	} {
		if got := topBlocks(text); got != want {
			t.Errorf("%q: %d blocks, want %d", text, got, want)
		}
	}
}

func TestAttributeListsRoundTrip(t *testing.T) {
	t.Parallel()
	attrs := siyuan.Attrs{"name": "a", "memo": "say \"hi\" & <b>\nnext {x} it's", "custom-x": "中文"}
	text := formatIAL(attrs)
	if strings.Contains(text, "\n") {
		t.Fatalf("list %q has a line break", text)
	}
	body, own := cutOwnIAL("text\n" + text)
	if body != "text" || len(own) != len(attrs) || !includes(own, attrs) {
		t.Errorf("body %q, attributes %q, want %q", body, own, attrs)
	}
}

func TestFencesAreLeftAlone(t *testing.T) {
	t.Parallel()
	text := "a {: id=\"" + string(idA) + "\"}\n```\nb {: id=\"" + string(idA) + "\"}\n```\nc {: id=\"" + string(idA) + "\"}\n"
	want := "a \n```\nb {: id=\"" + string(idA) + "\"}\n```\nc \n"
	if got := dropForeignIDs(text, nil); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for text, open := range map[string]bool{"```\na": true, "```\na\n```": false, "a": false, "~~~\n```": true, "$$\nx": true, "$$x$$": false, "a\n```": true} {
		if fenced(text) != open {
			t.Errorf("%q: open fence %v, want %v", text, !open, open)
		}
	}
}

func TestPlainShowsTextWithoutMarks(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"## A **b** ==c== ~~d~~ `e`":                                        "A b c d e",
		"see ((" + string(idA) + " \"x\")) and ((" + string(idA) + " 'y'))": "see x and y",
		"[site](http://127.0.0.1/) ![img](a.png)":                           "site img",
		"a &lt;b&gt; it&apos;s":                                             "a <b> it's",
		"**b**{: style=\"color:red\"} c":                                    "b c",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzMaskShowsNoAnchor(f *testing.F) {
	f.Add("it's", "a", "b")
	f.Add("')) x", "((", "))")
	f.Fuzz(func(t *testing.T, title, before, after string) {
		if strings.ContainsAny(title, "\n") || title == "" {
			t.Skip()
		}
		const canary = "CANARY"
		escaped := strings.ReplaceAll(canary+title, "'", "&apos;")
		got := maskDynamic(before+"(("+string(idA)+" '"+escaped+"'))"+after, map[siyuan.ID]bool{idB: true})
		if strings.Contains(got, canary) && !strings.Contains(before+after, canary) {
			t.Errorf("%q shows the anchor", got)
		}
	})
}
