package text

import (
	"errors"
	"fmt"
	"strings"

	"github.com/88250/lute"
	"github.com/88250/lute/ast"
	"github.com/88250/lute/editor"
	"github.com/88250/lute/parse"
	"github.com/88250/lute/render"
)

// ErrUnparsable is returned when the engine cannot make blocks of the input,
// which happens for a malformed id in an attribute list.
var ErrUnparsable = errors.New("text: the engine cannot parse this block text")

// Zwsp is the zero width space the engine puts around marks such as tags and
// inline code, so that a cursor can stand beside them.
const Zwsp = editor.Zwsp

func engine() *lute.Lute {
	e := lute.New()
	for _, on := range []func(bool){
		e.SetTextMark, e.SetProtyleWYSIWYG, e.SetBlockRef, e.SetFileAnnotationRef, e.SetKramdownIAL, e.SetTag,
		e.SetSuperBlock, e.SetImgPathAllowSpace, e.SetGitConflict, e.SetInlineAsterisk, e.SetInlineUnderscore,
		e.SetSup, e.SetSub, e.SetInlineMath, e.SetInlineMathAllowDigitAfterOpenMarker, e.SetGFMStrikethrough,
		e.SetMark, e.SetParagraphBeginningSpace, e.SetSanitize, e.SetCallout, e.SetDataTask,
		e.SetArbitraryTaskListItemMarker, e.SetEnsureListItemParagraph, e.SetHTMLTag2TextMark,
	} {
		on(true)
	}
	for _, off := range []func(bool){
		e.SetGFMStrikethrough1, e.SetFootnotes, e.SetToC, e.SetIndentCodeBlock, e.SetAutoSpace, e.SetHeadingID,
		e.SetSetext, e.SetYamlFrontMatter, e.SetLinkRef, e.SetCodeSyntaxHighlight, e.SetExportNormalizeTaskListMarker,
	} {
		off(false)
	}
	e.SetUnorderedListMarker("-")
	return e
}

// recovered makes an engine panic an ErrUnparsable of the caller.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", ErrUnparsable, r)
	}
}

// MarkdownToDOM renders kramdown as block DOM. Ids missing in the text are
// made up with newID, and `updated` of such a block is the time in its id.
// Blank text gives an empty string.
func MarkdownToDOM(markdown string, newID func() string) (dom string, err error) {
	defer recovered(&err)
	if err := checkIDs(markdown); err != nil {
		return "", err
	}
	dom, tree := engine().Md2BlockDOMTree(markdown, true)
	return renumber(dom, markdown, tree.Root, newID), nil
}

// renumber exchanges the ids the engine made up for ids of ours, so that clock
// and randomness stay with the caller.
func renumber(dom, markdown string, root *ast.Node, newID func() string) string {
	var pairs []string
	ast.Walk(root, func(n *ast.Node, entering bool) ast.WalkStatus {
		if !entering || n.ID == "" || n.Type == ast.NodeDocument || strings.Contains(markdown, n.ID) {
			return ast.WalkContinue
		}
		id := newID()
		pairs = append(pairs, n.ID, id, `updated="`+n.ID[:14]+`"`, `updated="`+id[:14]+`"`)
		return ast.WalkContinue
	})
	if len(pairs) == 0 {
		return dom
	}
	return strings.NewReplacer(pairs...).Replace(dom)
}

// DOMToBlocks parses block DOM into detached top level blocks, in order.
func DOMToBlocks(dom string) (blocks []*ast.Node, err error) {
	defer recovered(&err)
	if dom == "" {
		return nil, nil
	}
	tree := engine().BlockDOM2Tree(dom)
	if tree == nil {
		return nil, ErrUnparsable
	}
	for n := tree.Root.FirstChild; n != nil; {
		next := n.Next
		n.Unlink()
		if n.IsBlock() && n.Type != ast.NodeKramdownBlockIAL {
			dropIALs(n)
			blocks = append(blocks, n)
		}
		n = next
	}
	return blocks, nil
}

func dropIALs(root *ast.Node) {
	var ials []*ast.Node
	ast.Walk(root, func(n *ast.Node, entering bool) ast.WalkStatus {
		if entering && n.Type == ast.NodeKramdownBlockIAL {
			ials = append(ials, n)
		}
		return ast.WalkContinue
	})
	for _, n := range ials {
		n.Unlink()
	}
}

// DOM renders one block, with the index attribute of a block that stands at
// the top of a document.
func DOM(n *ast.Node) string {
	c := Clone(n)
	if n.Parent != nil && n.Parent.Type == ast.NodeDocument {
		(&ast.Node{Type: ast.NodeDocument}).AppendChild(c)
	}
	return engine().RenderNodeBlockDOM(c)
}

// Kramdown renders a block with the attribute lists of itself and of all
// blocks in it. For a document these are its children and, last, its own list.
// With textmark set, inline marks stay `<span data-type=…>` instead of Markdown.
func Kramdown(n *ast.Node, textmark bool) string {
	root := withIALs(n)
	e := engine()
	e.SetPreventEncodeLinkSpace(true)
	if textmark {
		tree := &parse.Tree{Root: root, Context: &parse.Context{ParseOption: e.ParseOptions}}
		return finish(n, string(render.NewFormatRenderer(tree, e.RenderOptions, e.ParseOptions).Render())) + "\n"
	}
	md, err := lute.ProtyleExportMdNodeSync(root, e.ParseOptions, e.RenderOptions)
	if err != nil {
		return ""
	}
	return finish(n, md)
}

// finish adds the attribute list of a document.
func finish(n *ast.Node, kramdown string) string {
	kramdown = strings.TrimSpace(kramdown)
	if n.Type != ast.NodeDocument {
		return kramdown
	}
	return strings.TrimSpace(kramdown + "\n\n" + string(ialNode(n).Tokens))
}

// withIALs copies a block under a new document, an attribute list after each.
func withIALs(n *ast.Node) *ast.Node {
	root := &ast.Node{Type: ast.NodeDocument}
	if n.Type == ast.NodeDocument {
		for c := n.FirstChild; c != nil; c = c.Next {
			root.AppendChild(Clone(c))
		}
	} else {
		root.AppendChild(Clone(n))
	}
	var blocks []*ast.Node
	ast.Walk(root, func(b *ast.Node, entering bool) ast.WalkStatus {
		if entering && b != root && b.ID != "" && b.IsBlock() {
			blocks = append(blocks, b)
		}
		return ast.WalkContinue
	})
	for _, b := range blocks {
		b.InsertAfter(ialNode(b))
	}
	return root
}

func ialNode(n *ast.Node) *ast.Node {
	return &ast.Node{Type: ast.NodeKramdownBlockIAL, Tokens: parse.IAL2Tokens(n.KramdownIAL)}
}

// Markdown renders a block without attribute lists and zero width spaces, as
// the index column of that name holds it. A document has none.
func Markdown(n *ast.Node) string {
	if n.Type == ast.NodeDocument {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(export(n), Zwsp, ""))
}

// ExportMarkdown is Markdown with the zero width spaces left in.
func ExportMarkdown(n *ast.Node) string { return strings.TrimSpace(export(n)) }

func export(n *ast.Node) string {
	e := engine()
	e.SetPreventEncodeLinkSpace(true)
	c := Clone(n)
	if n.Type == ast.NodeListItem && n.Parent != nil && n.Parent.Type == ast.NodeList {
		list := &ast.Node{Type: ast.NodeList, ListData: n.Parent.ListData}
		list.AppendChild(c)
		c = list
	}
	md, err := lute.ProtyleExportMdNodeSync(c, e.ParseOptions, e.RenderOptions)
	if err != nil {
		return ""
	}
	return md
}

// ExportPlain is the Markdown of a block with references as their bare anchor
// text, zero width spaces left in, one at the end included.
func ExportPlain(n *ast.Node) string {
	c := Clone(n)
	end := ""
	if last := c.LastChild; last != nil && last.Type == ast.NodeText && string(last.Tokens) == Zwsp {
		end = Zwsp
	}
	ast.Walk(c, func(m *ast.Node, entering bool) ast.WalkStatus {
		if entering && m.Type == ast.NodeTextMark && m.IsTextMarkType("block-ref") {
			m.Type, m.Tokens, m.TextMarkType = ast.NodeText, []byte(m.TextMarkTextContent), ""
		}
		return ast.WalkContinue
	})
	return strings.TrimSpace(export(c)) + end
}

// InlineDOM is the inside of a leaf block as HTML, with fixed spaces.
func InlineDOM(n *ast.Node) string {
	out := DOM(n)
	if _, rest, ok := strings.Cut(out, `spellcheck="false">`); ok {
		out, _, _ = strings.Cut(rest, `</div><div class="protyle-attr"`)
	}
	return fixSpaces(out)
}

// fixSpaces exchanges the spaces between tags, not those in them or in marks.
func fixSpaces(dom string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(dom); i++ {
		switch {
		case dom[i] == '<':
			end := strings.IndexByte(dom[i:], '>')
			if end < 0 {
				return b.String() + dom[i:]
			}
			tag := dom[i : i+end+1]
			if strings.HasPrefix(tag, "</") {
				depth--
			} else if !strings.HasSuffix(tag, "/>") {
				depth++
			}
			b.WriteString(tag)
			i += end
		case dom[i] == ' ' && depth == 0:
			b.WriteString("&nbsp;")
		default:
			b.WriteByte(dom[i])
		}
	}
	return b.String()
}

// ReplaceText changes the plain text in a leaf block and reports whether it did.
func ReplaceText(n *ast.Node, change func(string) string) (changed bool) {
	ast.Walk(n, func(m *ast.Node, entering bool) ast.WalkStatus {
		if entering && m.Type == ast.NodeText {
			if s := change(string(m.Tokens)); s != string(m.Tokens) {
				m.Tokens, changed = []byte(s), true
			}
		}
		return ast.WalkContinue
	})
	return changed
}

// Spin parses and renders block DOM again, as the editor does while one types.
func Spin(dom string) (out string, err error) {
	defer recovered(&err)
	return engine().SpinBlockDOM(dom), nil
}

// HTMLToDOM makes block DOM of foreign HTML.
func HTMLToDOM(foreign string, newID func() string) (dom string, err error) {
	defer recovered(&err)
	md, err := engine().HTML2Markdown(foreign)
	if err != nil {
		return "", err
	}
	return MarkdownToDOM(md, newID)
}
