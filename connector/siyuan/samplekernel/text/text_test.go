package text_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

// ids counts up, so that made-up ids can be told apart.
func ids() func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprintf("20260102030405-made%03d", n)
	}
}

func parse(t *testing.T, md string) *ast.Node {
	t.Helper()
	dom, err := text.MarkdownToDOM(md, ids())
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := text.DOMToBlocks(dom)
	if err != nil {
		t.Fatal(err)
	}
	root := &ast.Node{Type: ast.NodeDocument, ID: "20240101000000-document"[:22]}
	root.SetIALAttr("id", root.ID)
	root.SetIALAttr("title", "Title")
	for _, b := range blocks {
		root.AppendChild(b)
	}
	return root
}

// The expected values are rows of the recorded index of the document "Alpha".
func TestIndexColumnsAreThoseOfTheRecordedDocument(t *testing.T) {
	t.Parallel()
	for md, want := range map[string][4]string{
		"# Alpha goals": {"h", "Alpha goals", "# Alpha goals", "11"},
		"Alpha ships a **small** sync tool in spring. #project/alpha# #urgent#": {"p", "Alpha ships a small sync tool in spring. #project/alpha# #urgent#", "Alpha ships a **small** sync tool in spring. #project/alpha# #urgent#", "66"},
		"1. first\n2. second":                {"l", " first second", "1. first\n2. second", "5"},
		"- [ ] write draft\n- [X] book room": {"l", " write draft book room", "- [ ] write draft\n- [X] book room", "11"},
		"| Part | Owner | Days |\n| --- | --- | --- |\n| Index | Mei | 3 |\n| Editor | Jonas | 5 |": {"t", "Part Owner Days Index Mei 3 Editor Jonas 5", "|Part|Owner|Days|\n| --------| -------| ------|\n|Index|Mei|3|\n|Editor|Jonas|5|", "42"},
		"```python\ndef add(a, b):\n    return a + b  # plus\n```":                                  {"c", "def add(a, b):\n    return a + b  # plus\n", "```python\ndef add(a, b):\n    return a + b  # plus\n```", "40"},
		"$$\nE = \\frac{1}{2} m v^2\n$$":                                                            {"m", "E = \\frac{1}{2} m v^2", "$$\nE = \\frac{1}{2} m v^2\n$$", "21"},
		"> Measure first, then cut.":                                                                {"b", " Measure first, then cut.", "> Measure first, then cut.", "24"},
		"{{{row\nLeft column\n\nRight column\n\n}}}":                                                {"s", " Left columnRight column", "{{{row\nLeft column\n\nRight column\n\n}}}", "11"},
		`![dot](assets/dot-20240106090000-pngdot1.png "red dot")`:                                   {"p", "dot assets/dot-20240106090000-pngdot1.png red dot", `![dot](assets/dot-20240106090000-pngdot1.png "red dot")`, "49"},
		"Inline `code`, ==mark==, ~~old~~, $x^2$, [site](http://127.0.0.1/page) and a kbd.":         {"p", "Inline code, mark, old, x^2, site http://127.0.0.1/page and a kbd.", "Inline `code`, ==mark==, ~~old~~, $x^2$, [site](http://127.0.0.1/page) and a kbd.", "67"},
		"---":                   {"tb", "", "---", "0"},
		"<div>html block</div>": {"html", "<div>html block</div>", "<div>html block</div>", "21"},
	} {
		n := text.ChildBlocks(parse(t, md))[0]
		got := [4]string{text.Code(n), text.Content(n), text.Markdown(n), fmt.Sprint(text.Length(n))}
		if got != want {
			t.Errorf("%s\n got %q\nwant %q", md, got, want)
		}
	}
}

func TestAMalformedIDIsAnErrorNotAPanic(t *testing.T) {
	t.Parallel()
	if _, err := text.MarkdownToDOM("bad\n{: id=\"oops\"}", ids()); !errors.Is(err, text.ErrUnparsable) {
		t.Fatal(err)
	}
}

func TestEncodingAndDecodingKeepsADocument(t *testing.T) {
	t.Parallel()
	root := parse(t, "# H\n\npara #tag# `code` ((20240102110001-block01 \"ref\"))\n\n- a\n  - b\n\n| x |\n| --- |\n| y |\n\n```go\nf()\n```")
	again, err := text.Decode(text.Encode(root))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text.Kramdown(again, false), text.Kramdown(root, false); sortedLines(got) != sortedLines(want) {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if string(text.Encode(again)) != string(text.Encode(root)) {
		t.Fatal("a second encoding differs")
	}
}

// sortedLines sorts the words of each line: attributes have no order.
func sortedLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		words := strings.Fields(strings.NewReplacer("{:", "{: ", "}", " }").Replace(l))
		for a := range words {
			for b := range words[:a] {
				if words[a] < words[b] {
					words[a], words[b] = words[b], words[a]
				}
			}
		}
		lines[i] = strings.Join(words, " ")
	}
	return strings.Join(lines, "\n")
}

func TestRenderingLeavesTheTreeAlone(t *testing.T) {
	t.Parallel()
	root := parse(t, "# H\n\n- a\n  - b\n\npara")
	before := string(text.Encode(root))
	text.Kramdown(root, false)
	text.Kramdown(root, true)
	for _, b := range text.Blocks(root) {
		text.Markdown(b)
		text.ExportPlain(b)
		if b != root {
			text.DOM(b)
		}
	}
	if after := string(text.Encode(root)); after != before {
		t.Fatalf("before %s\nafter %s", before, after)
	}
}

func TestASectionEndsAtAHeadingOfTheSameRank(t *testing.T) {
	t.Parallel()
	kids := text.ChildBlocks(parse(t, "# A\n\np1\n\n## B\n\np2\n\n# C\n\np3"))
	var got []string
	for _, n := range text.Section(kids[0]) {
		got = append(got, text.Content(n))
	}
	if strings.Join(got, " ") != "p1 B p2" {
		t.Fatal(got)
	}
	for i, want := range []string{"Title", "A", "A", "B", "Title", "C"} {
		if p := text.LogicalParent(kids[i]); text.Content(p) != want {
			t.Errorf("parent of %s is %s, want %s", text.Content(kids[i]), text.Content(p), want)
		}
	}
}

func TestAttributeValuesSurviveNewlinesAndQuotes(t *testing.T) {
	t.Parallel()
	n := text.ChildBlocks(parse(t, "x"))[0]
	const value = "line1\nline2 \"q\" <b> & 'x'"
	text.SetAttr(n, "custom-a", value)
	if got := text.Attr(n, "custom-a"); got != value {
		t.Fatalf("%q", got)
	}
	if md := text.Kramdown(n, false); strings.Count(md, "\n") != 1 {
		t.Fatalf("the attribute list has a newline: %q", md)
	}
	text.SetAttr(n, "custom-a", "")
	if _, set := text.Attrs(n)["custom-a"]; set {
		t.Fatal("an empty value does not remove")
	}
}

func TestReplaceAssetFindsImagesAndLinks(t *testing.T) {
	t.Parallel()
	root := parse(t, "![i](assets/a.png) and [l](assets/a.png) and [o](assets/b.png)")
	if got := text.Assets(root); strings.Join(got, " ") != "assets/a.png assets/b.png" {
		t.Fatal(got)
	}
	if !text.ReplaceAsset(root, "assets/a.png", "assets/c.png") || strings.Join(text.Assets(root), " ") != "assets/c.png assets/b.png" {
		t.Fatal(text.Assets(root))
	}
}
