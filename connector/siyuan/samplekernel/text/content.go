package text

import (
	"html"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/88250/lute/ast"
	"github.com/88250/lute/editor"
)

// Code is the short type name of the index column `type`.
func Code(n *ast.Node) string {
	if c, ok := codes()[n.Type]; ok {
		return c
	}
	return ""
}

func codes() map[ast.NodeType]string {
	return map[ast.NodeType]string{
		ast.NodeDocument: "d", ast.NodeHeading: "h", ast.NodeParagraph: "p", ast.NodeList: "l", ast.NodeListItem: "i",
		ast.NodeBlockquote: "b", ast.NodeCallout: "callout", ast.NodeSuperBlock: "s", ast.NodeCodeBlock: "c",
		ast.NodeMathBlock: "m", ast.NodeTable: "t", ast.NodeThematicBreak: "tb", ast.NodeHTMLBlock: "html",
		ast.NodeBlockQueryEmbed: "query_embed", ast.NodeAttributeView: "av", ast.NodeIFrame: "iframe",
		ast.NodeVideo: "video", ast.NodeAudio: "audio", ast.NodeWidget: "widget", ast.NodeCustomBlock: "custom",
	}
}

// TypeName is the long type name ("NodeParagraph") of a short one.
func TypeName(code string) string {
	for t, c := range codes() {
		if c == code {
			return t.String()
		}
	}
	return ""
}

// Subtype is h1…h6 of a heading and u, o or t of a list or its items.
func Subtype(n *ast.Node) string {
	switch n.Type {
	case ast.NodeHeading:
		return "h" + strconv.Itoa(n.HeadingLevel)
	case ast.NodeList, ast.NodeListItem:
		if n.ListData == nil {
			return "u"
		}
		switch n.ListData.Typ {
		case 1:
			return "o"
		case 3:
			return "t"
		}
		return "u"
	}
	return ""
}

// Rank is the index column `sort`: an order of types, not of the document.
func Rank(n *ast.Node) int {
	switch n.Type {
	case ast.NodeDocument:
		return 0
	case ast.NodeList, ast.NodeListItem, ast.NodeBlockquote, ast.NodeCallout:
		return 20
	case ast.NodeSuperBlock, ast.NodeAttributeView:
		return 30
	case ast.NodeHeading:
		return 5
	case ast.NodeParagraph, ast.NodeCodeBlock, ast.NodeMathBlock, ast.NodeTable, ast.NodeHTMLBlock:
		return 10
	}
	return 100
}

// Content is the plain text of a block as the index column of that name holds
// it: tags keep their marks, links and images their targets, and each container
// is set off by one space. A document's content is its title.
func Content(n *ast.Node) string {
	if n.Type == ast.NodeDocument {
		return html.UnescapeString(n.IALAttr("title"))
	}
	return strings.ReplaceAll(RawContent(n), Zwsp, "")
}

// RawContent is the text below a node with the zero width spaces that the
// editor puts after marks, as a rendered embed carries it into the index.
func RawContent(n *ast.Node) string {
	w := &contentWriter{}
	ast.Walk(n, w.visit)
	if n.Type == ast.NodeTable {
		return strings.TrimSpace(w.b.String())
	}
	return w.b.String()
}

// Length counts the characters of a block as the index column of that name
// does: zero width spaces inside included, of a container those of its first leaf.
func Length(n *ast.Node) int {
	if n.Type == ast.NodeDocument {
		return utf8.RuneCountInString(Content(n))
	}
	if n = firstLeaf(n); n == nil {
		return 0
	}
	return utf8.RuneCountInString(strings.Trim(RawContent(n), Zwsp))
}

// FirstContent is the content of the first leaf in a container, the title of a
// document, and empty for any other block.
func FirstContent(n *ast.Node) string {
	if n.Type == ast.NodeDocument {
		return Content(n)
	}
	if !n.IsContainerBlock() {
		return ""
	}
	if n = firstLeaf(n); n == nil {
		return ""
	}
	return Content(n)
}

// firstLeaf goes down the first children; it is n itself for a leaf and nil for
// an empty container.
func firstLeaf(n *ast.Node) *ast.Node {
	for n != nil && n.IsContainerBlock() {
		kids := ChildBlocks(n)
		if len(kids) == 0 {
			return nil
		}
		n = kids[0]
	}
	return n
}

type contentWriter struct{ b strings.Builder }

func (w *contentWriter) space() {
	if s := w.b.String(); !strings.HasSuffix(s, " ") {
		w.b.WriteByte(' ')
	}
}

func (w *contentWriter) visit(n *ast.Node, entering bool) ast.WalkStatus {
	if !entering {
		if n.Type == ast.NodeTableCell {
			w.space()
		}
		return ast.WalkContinue
	}
	switch n.Type {
	case ast.NodeList, ast.NodeListItem, ast.NodeBlockquote, ast.NodeSuperBlock, ast.NodeCallout:
		w.space()
	case ast.NodeImage:
		w.image(n)
		return ast.WalkSkipChildren
	case ast.NodeTextMark:
		w.mark(n)
	case ast.NodeHTMLBlock, ast.NodeText, ast.NodeLinkText, ast.NodeLinkDest, ast.NodeCodeSpanContent, ast.NodeCodeBlockCode,
		ast.NodeInlineMathContent, ast.NodeMathBlockContent, ast.NodeHTMLEntity, ast.NodeEmojiAlias,
		ast.NodeEmojiUnicode, ast.NodeBackslashContent, ast.NodeGitConflictContent, ast.NodeInlineHTML:
		w.b.Write(n.Tokens)
	case ast.NodeSoftBreak, ast.NodeHardBreak, ast.NodeBr:
		w.b.WriteByte('\n')
	}
	return ast.WalkContinue
}

func (w *contentWriter) image(n *ast.Node) {
	for _, t := range []ast.NodeType{ast.NodeLinkText, ast.NodeLinkDest, ast.NodeLinkTitle} {
		if c := n.ChildByType(t); c != nil && len(c.Tokens) > 0 {
			if t != ast.NodeLinkText {
				w.space()
			}
			w.b.Write(c.Tokens)
		}
	}
}

func (w *contentWriter) mark(n *ast.Node) {
	w.b.WriteString(MarkText(n))
	if n.IsTextMarkType("a") && n.TextMarkAHref != "" {
		w.space()
		w.b.WriteString(html.UnescapeString(n.TextMarkAHref))
	}
	if memo := n.TextMarkInlineMemoContent; memo != "" {
		w.space()
		w.b.WriteString(html.UnescapeString(strings.ReplaceAll(memo, editor.IALValEscNewLine, " ")))
	}
}

// MarkText is the visible text of an inline mark, tags with their `#`.
func MarkText(n *ast.Node) string {
	s := html.UnescapeString(n.TextMarkTextContent)
	switch {
	case n.IsTextMarkType("tag"):
		return "#" + s + "#"
	case s == "" && n.TextMarkInlineMathContent != "":
		return html.UnescapeString(strings.ReplaceAll(n.TextMarkInlineMathContent, editor.IALValEscNewLine, " "))
	}
	return s
}

// Tags lists the tags in a leaf block as `#a# #b#`, and of a document those in
// its `tags` attribute.
func Tags(n *ast.Node) string {
	var tags []string
	if n.Type == ast.NodeDocument {
		for _, t := range strings.Split(html.UnescapeString(n.IALAttr("tags")), ",") {
			if t = strings.TrimSpace(t); t != "" {
				tags = append(tags, "#"+t+"#")
			}
		}
		return strings.Join(tags, " ")
	}
	if n.IsContainerBlock() {
		return ""
	}
	ast.Walk(n, func(c *ast.Node, entering bool) ast.WalkStatus {
		if entering && c.Type == ast.NodeTextMark && c.IsTextMarkType("tag") {
			tags = append(tags, MarkText(c))
		}
		return ast.WalkContinue
	})
	return strings.Join(tags, " ")
}

// Attr reads an attribute in its plain, unescaped form.
func Attr(n *ast.Node, name string) string { return UnescapeAttr(n.IALAttr(name)) }

// SetAttr writes an attribute from its plain form; an empty value removes it.
func SetAttr(n *ast.Node, name, value string) {
	if value == "" {
		n.RemoveIALAttr(name)
		return
	}
	n.SetIALAttr(name, EscapeAttr(value))
}

// Attrs lists all attributes of a block, unescaped.
func Attrs(n *ast.Node) map[string]string {
	m := make(map[string]string, len(n.KramdownIAL))
	for _, kv := range n.KramdownIAL {
		m[kv[0]] = UnescapeAttr(kv[1])
	}
	return m
}

// EscapeAttr gives a newline the word it has inside an attribute list. The rest
// of the escaping is done where the attribute is set.
func EscapeAttr(v string) string {
	return strings.ReplaceAll(v, "\n", editor.IALValEscNewLine)
}

// UnescapeAttr reads a value as it stands inside an attribute list.
func UnescapeAttr(v string) string {
	return html.UnescapeString(strings.ReplaceAll(v, editor.IALValEscNewLine, "\n"))
}
