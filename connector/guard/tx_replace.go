package guard

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Edit replaces a piece of a block's own text. Old is the text as a reader sees
// it, New is Markdown. Of several places the first is meant, or with All each.
type Edit struct {
	Old, New string
	All      bool
	Pattern  *regexp.Regexp // instead of Old; New may then hold $1
}

// Replaced is a block after its edits.
type Replaced struct {
	ID        string
	Changed   bool
	Kramdown  string // as stored now, as far as the caller may read it
	Preserved int    // attributes that were kept
	Counts    []int  // replacements of each edit
}

// editable are the kinds of block that hold text of their own. Of a list item it
// is its first paragraph.
var editable = []string{"NodeParagraph", "NodeHeading", "NodeCodeBlock", "NodeMathBlock", "NodeHTMLBlock", "NodeTable"}

// Replace edits one block in place: the edits are made one after the other, all
// or none, and everything around them stays byte for byte.
func (tx *Tx) Replace(ctx context.Context, b Block, edits []Edit) (Replaced, error) {
	if err := tx.covers(b); err != nil {
		return Replaced{}, err
	}
	asked := b.ID()
	b, kind, err := tx.textBlock(ctx, b)
	if err != nil {
		return Replaced{}, err
	}
	stored, err := tx.s.Kramdown(ctx, b)
	if err != nil {
		return Replaced{}, err
	}
	dom, err := tx.s.g.r.BlockDOM(ctx, b.id)
	if err != nil {
		return Replaced{}, err
	}
	text, done, err := edited(b.id, kind, stored, dom, edits)
	if err != nil {
		return Replaced{}, err
	}
	done.ID = asked
	if !done.Changed {
		done.Kramdown, err = tx.s.Kramdown(ctx, b)
		return done, err
	}
	updated, err := tx.Update(ctx, []Update{{Block: b, Text: Text{Data: text}}})
	if err != nil {
		return Replaced{}, err
	}
	done.Kramdown, done.Preserved = updated[0].Kramdown, updated[0].Preserved
	return done, nil
}

// textBlock is the block whose own text is meant, and its kind.
func (tx *Tx) textBlock(ctx context.Context, b Block) (Block, string, error) {
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, []siyuan.ID{b.id})
	if err != nil {
		return b, "", err
	}
	kind := infos[b.id].Type
	if kind == "NodeListItem" {
		children, err := tx.s.g.r.ChildBlocks(ctx, b.id)
		if err != nil {
			return b, "", err
		}
		if len(children) > 0 && (children[0].Type == "p" || children[0].Type == "h") {
			return Block{doc: b.doc, id: children[0].ID}, map[string]string{"p": "NodeParagraph", "h": "NodeHeading"}[children[0].Type], nil
		}
	}
	if !slices.Contains(editable, kind) {
		return b, "", contract.Fail(contract.InvalidTarget, "Block %s holds other blocks or no text of its own, so there is nothing in it to replace.", b.ID()).
			WithHint("Edit the blocks in it by their ids: block.get_children lists them.")
	}
	return b, kind, nil
}

// edited is the Markdown of a block after edits, without its attribute list.
func edited(id siyuan.ID, kind, stored, dom string, edits []Edit) (text string, done Replaced, err error) {
	before, _ := cutOwnIAL(stored)
	text, shown := before, shownText(kind, before, dom)
	if tag := literalTag.FindString(shown); tag != "" && slices.Contains(marked, kind) {
		return "", done, contract.Fail(contract.InvalidValue, "Block %s has %s as plain text, which SiYuan would take for a mark when the block is written.", id, shorten(tag)).
			WithHint("Rewrite the block with block.update, with \\< for such a sign.")
	}
	for _, e := range edits {
		n := 0
		if text, shown, n, err = e.apply(id, kind, text, shown); err != nil {
			return "", Replaced{}, err
		}
		done.Counts = append(done.Counts, n)
	}
	done.Changed = text != before
	return text, done, nil
}

// hiddenMarkup is what stands in Markdown and is not shown as text: attribute
// lists, references but for a fixed anchor, destinations of links, pictures,
// tags of HTML.
var hiddenMarkup = regexp.MustCompile(`\{:[^}\n]*\}|\(\(` + idPattern + `\)\)|\(\(` + idPattern + ` "|"\)\)|\]\((?:[^()\n]|\([^()\n]*\))*\)|!\[[^\]\n]*\]\([^)\n]*\)|</?[a-zA-Z][^<>\n]*>|\{\{[^\n]*?\}\}`)

// literalTag is a tag of HTML that a reader sees, because it is text; marked are
// the kinds of block in which one would be a mark.
var (
	literalTag = regexp.MustCompile(`</?[a-zA-Z][^<>\n]*>`)
	marked     = []string{"NodeParagraph", "NodeHeading", "NodeTable"}
)

// fenceLines are the first and the last line of a code or math block.
var fenceLines = regexp.MustCompile("(?m)^[ \t]*(?:```|~~~|\\$\\$)[^\n]*$")

// openText are the parts of a block's Markdown that an edit may touch, as pairs
// of offsets.
func openText(kind, text string) [][2]int {
	var closed [][]int
	switch kind {
	case "NodeHTMLBlock":
	case "NodeCodeBlock", "NodeMathBlock":
		closed = fenceLines.FindAllStringIndex(text, -1)
		if len(closed) > 2 {
			closed = [][]int{closed[0], closed[len(closed)-1]}
		}
	default:
		closed = append(dynamicRef.FindAllStringIndex(text, -1), hiddenMarkup.FindAllStringIndex(text, -1)...)
		slices.SortFunc(closed, func(a, b []int) int { return a[0] - b[0] })
	}
	var open [][2]int
	at := 0
	for _, c := range closed {
		if c[0] > at {
			open = append(open, [2]int{at, c[0]})
		}
		at = max(at, c[1])
	}
	return append(open, [2]int{at, len(text)})
}

// notText stands in the shown text for what is no text to edit: dynamic anchors
// and pictures.
const notText = "\uFFFC"

// shownText is a block as a reader sees it, from the kernel's own reading of it:
// the witness of what an edit may take for text. Tags and formulas have their
// signs. Math and HTML blocks are shown as they are written.
func shownText(kind, markdown, dom string) string {
	if kind == "NodeMathBlock" || kind == "NodeHTMLBlock" {
		var parts []string
		for _, at := range openText(kind, markdown) {
			parts = append(parts, markdown[at[0]:at[1]])
		}
		return strings.Join(parts, notText)
	}
	var out strings.Builder
	walkDOM(dom, func(t html.Token, _ string, in []domElement) {
		e := domElement{}
		if t.Type == html.StartTagToken || t.Type == html.SelfClosingTagToken {
			e = element(t)
		}
		inside := func(f func(domElement) bool) bool { return slices.ContainsFunc(in, f) }
		isImage := func(e domElement) bool { return e.is("img") }
		switch {
		case inside(decoration) || inside(isImage) || inside(domElement.dynamic):
		case t.Type == html.TextToken && inside(func(e domElement) bool { return e.is("tag") }):
			out.WriteString("#" + withoutZWSP(t.Data) + "#")
		case t.Type == html.TextToken:
			out.WriteString(withoutZWSP(t.Data))
		case e.is("img"), e.dynamic():
			out.WriteString(notText)
		case e.is("inline-math"):
			out.WriteString("$" + e.attrs["data-content"] + "$")
		case t.Data == "br" && t.Type != html.EndTagToken:
			out.WriteString(notText)
		case (t.Data == "td" || t.Data == "th") && e.tag != "":
			out.WriteString(notText)
		}
	})
	return out.String()
}

// apply makes one edit in the Markdown and in the shown text. Both must have the
// same number of matches: then what is replaced is what the reader sees, and no
// part of an id, an address or a mark.
func (e Edit) apply(id siyuan.ID, kind, text, shown string) (newText, newShown string, n int, err error) {
	var found [][2]int
	for _, at := range openText(kind, text) {
		for _, m := range e.find(text[at[0]:at[1]]) {
			found = append(found, [2]int{at[0] + m[0], at[0] + m[1]})
		}
	}
	visible := e.find(shown)
	switch {
	case len(visible) == 0 && len(found) == 0 && !strings.Contains(text, e.Old), e.Pattern != nil && len(visible)+len(found) == 0:
		return "", "", 0, contract.Fail(contract.InvalidValue, "Block %s does not have the text to replace.", id).
			WithHint("Read it with block.get_kramdown; capital letters and spaces count.")
	case len(visible) != len(found):
		return "", "", 0, contract.Fail(contract.InvalidValue, "The text to replace is in block %s together with a mark, a reference, a link or an escaped sign, so the edit could damage it.", id).
			WithHint("Name a piece without **, ~~, ==, ` and links, as it is shown; or rewrite the block with block.update.")
	case len(visible) == 0:
		return "", "", 0, contract.Fail(contract.InvalidValue, "In block %s the text to replace is no text but part of a reference, an address, an attribute or a mark.", id).
			WithHint("Use block.update for references and links, and block.set_attrs for attributes.")
	case kind == "NodeTable" && strings.ContainsAny(e.New, "|\n"):
		return "", "", 0, contract.Fail(contract.InvalidValue, "The new text would change the cells of table %s.", id).
			WithHint("Rewrite the table with block.update.")
	}
	if !e.All {
		found, visible = found[:1], visible[:1]
	}
	return e.put(text, found), e.put(shown, visible), len(found), nil
}

// find lists the matches in a text that do not overlap; empty ones are none.
func (e Edit) find(text string) (found [][2]int) {
	if e.Pattern != nil {
		for _, m := range e.Pattern.FindAllStringIndex(text, -1) {
			if m[1] > m[0] {
				found = append(found, [2]int{m[0], m[1]})
			}
		}
		return found
	}
	for at := 0; e.Old != ""; {
		i := strings.Index(text[at:], e.Old)
		if i < 0 {
			break
		}
		found = append(found, [2]int{at + i, at + i + len(e.Old)})
		at += i + len(e.Old)
	}
	return found
}

func (e Edit) put(text string, found [][2]int) string {
	var out strings.Builder
	at := 0
	for _, m := range found {
		out.WriteString(text[at:m[0]])
		if e.Pattern != nil {
			old := text[m[0]:m[1]]
			out.Write(e.Pattern.ExpandString(nil, e.New, old, e.Pattern.FindStringSubmatchIndex(old)))
		} else {
			out.WriteString(e.New)
		}
		at = m[1]
	}
	return out.String() + text[at:]
}
