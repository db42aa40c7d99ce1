package samplekernel

import (
	"fmt"
	"regexp"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/av"
	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

func exportRoutes() map[string]route {
	return map[string]route{
		"/api/export/exportMdContent": {serve: exportMdContent},
		"/api/export/exportMd":        {serve: exportMd},
		"/api/export/exportResources": {serve: exportResources},
		"/api/lute/spinBlockDOM":      {serve: spinBlockDOM},
		"/api/lute/html2BlockDOM":     {serve: html2BlockDOM},
	}
}

// How references leave a document.
const (
	refLink     = 2 // a siyuan:// link
	refText     = 3 // the anchor text
	refFootnote = 4 // the anchor text and the cited block below the document
)

// exportMdContent renders a document, or the section or block asked about under
// the document's title. Embeds are expanded from all open notebooks.
func exportMdContent(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	p, ok := k.block(id)
	if !ok {
		return map[string]any{"content": "", "hPath": ""}, nil
	}
	e := &exporter{k: k, mode: a.intOr("refMode", refFootnote)}
	var b strings.Builder
	if a.boolOr("yfm", true) {
		const layout = "2006-01-02T15:04:05Z07:00"
		root := p.doc.root
		fmt.Fprintf(&b, "---\ntitle: %s\ndate: %s\nlastmod: %s\n---\n\n", p.doc.title(),
			docTime(root.ID, k.now()).Format(layout), docTime(root.IALAttr("updated"), k.now()).Format(layout))
	}
	if a.boolOr("addTitle", true) {
		fmt.Fprintf(&b, "# %s\n\n", p.doc.title())
	}
	b.WriteString(e.blocks(exported(p)) + "\n")
	b.WriteString(e.footnotes())
	return map[string]any{"content": b.String(), "hPath": k.hpath(p.doc)}, nil
}

// exported are the blocks that stand for one: a document's children, a
// heading with its section.
func exported(p place) []*ast.Node {
	switch {
	case p.node == p.doc.root:
		return text.ChildBlocks(p.node)
	case p.node.Type == ast.NodeHeading:
		return append([]*ast.Node{p.node}, text.Section(p.node)...)
	}
	return []*ast.Node{p.node}
}

// exporter renders blocks as Markdown for others to read.
type exporter struct {
	k     *Kernel
	mode  int
	cited []string // footnotes, in order
}

func (e *exporter) blocks(nodes []*ast.Node) string {
	root := &ast.Node{Type: ast.NodeDocument}
	for _, n := range nodes {
		for _, x := range e.expand(n) {
			root.AppendChild(x)
		}
	}
	e.references(root, e.mode)
	return quoteEnd.ReplaceAllString(text.ExportMarkdown(root), "$1")
}

// quoteEnd is the empty quoted line the engine leaves behind a quote.
var quoteEnd = regexp.MustCompile(`\n>(\n\n|$)`)

// expand turns what Markdown does not have into what it has: super blocks into
// their content, embeds into quotes and databases into tables.
func (e *exporter) expand(n *ast.Node) (out []*ast.Node) {
	switch n.Type {
	case ast.NodeSuperBlock:
		for _, c := range text.ChildBlocks(n) {
			out = append(out, e.expand(c)...)
		}
		return out
	case ast.NodeBlockQueryEmbed:
		for _, hit := range e.k.embedHits(embedQuery(n)) {
			quote := &ast.Node{Type: ast.NodeBlockquote}
			quote.AppendChild(&ast.Node{Type: ast.NodeBlockquoteMarker, Tokens: []byte(">")})
			for _, b := range exported(hit) {
				c := text.Clone(b)
				if e.mode != refFootnote { // a footnote inside an embed keeps its reference
					e.references(c, e.mode)
				}
				markQuoted(c)
				quote.AppendChild(c)
			}
			out = append(out, quote)
		}
		return out
	case ast.NodeAttributeView:
		return e.k.databaseTable(n.AttributeViewID)
	}
	return []*ast.Node{text.Clone(n)}
}

const quoted = "exported-quote" // attribute of blocks whose references are settled

func markQuoted(n *ast.Node) { n.SetIALAttr(quoted, "1") }

// references rewrites the references in a tree.
func (e *exporter) references(root *ast.Node, mode int) {
	ast.Walk(root, func(n *ast.Node, entering bool) ast.WalkStatus {
		if !entering {
			return ast.WalkContinue
		}
		if n.IALAttr(quoted) != "" && root.Type == ast.NodeDocument {
			return ast.WalkSkipChildren
		}
		if n.Type != ast.NodeTextMark || !n.IsTextMarkType("block-ref") || n.TextMarkBlockRefID == "" {
			return ast.WalkContinue
		}
		anchor, id := n.TextMarkTextContent, n.TextMarkBlockRefID
		switch mode {
		case refLink:
			n.TextMarkType, n.TextMarkAHref, n.TextMarkBlockRefID = "a", "siyuan://blocks/"+id, ""
		case refText:
			n.Type, n.Tokens = ast.NodeText, []byte(anchor)
		case refFootnote:
			n.Type, n.Tokens = ast.NodeText, fmt.Appendf(nil, "%s[^%d]", anchor, e.number(id))
		}
		return ast.WalkContinue
	})
}

func (e *exporter) number(id string) int {
	for i, c := range e.cited {
		if c == id {
			return i + 1
		}
	}
	e.cited = append(e.cited, id)
	return len(e.cited)
}

// footnotes renders the cited blocks; references inside them become text.
func (e *exporter) footnotes() string {
	var b strings.Builder
	for i, id := range e.cited {
		p, ok := e.k.block(id)
		if !ok {
			continue
		}
		inner := &exporter{k: e.k, mode: refText}
		body := strings.ReplaceAll(inner.blocks(exported(p)), "\n", "\n    ")
		body = strings.ReplaceAll(body, "\n    \n", "\n\n")
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[^%d]: %s\n", i+1, body)
	}
	return b.String()
}

// databaseTable renders the current view of a database as a table block.
func (k *Kernel) databaseTable(avID string) []*ast.Node {
	db, ok := k.database(avID)
	if !ok {
		return nil
	}
	v := db.View("")
	var head, line, body strings.Builder
	for _, c := range db.RenderColumns(v) {
		head.WriteString("|" + c.Name)
		line.WriteString("|---")
	}
	for _, r := range db.RenderRows(v, "", k.lookup()) {
		for _, c := range r.Cells {
			body.WriteString("|" + cellMarkdown(c.Value))
		}
		body.WriteString("|\n")
	}
	blocks, err := k.parse(head.String() + "|\n" + line.String() + "|\n" + body.String())
	if err != nil {
		return nil
	}
	return blocks
}

func cellMarkdown(v *av.Value) string {
	switch {
	case v.Checkbox != nil && v.Checkbox.Checked:
		return "√"
	case v.Date != nil && v.Date.IsNotEmpty:
		return dateText(v.Date)
	case v.URL != nil && v.URL.Content != "":
		return "[" + v.URL.Content + "](" + v.URL.Content + ")"
	case v.Relation != nil:
		var names []string
		for _, c := range v.Relation.Contents {
			names = append(names, c.String())
		}
		return strings.Join(names, ", ")
	}
	return strings.ReplaceAll(v.String(), "|", `\|`)
}

func dateText(d *av.ValueDate) string {
	layout := "2006-01-02 15:04"
	if d.IsNotTime {
		layout = "2006-01-02"
	}
	s := unixTime(d.Content / 1000).UTC().Format(layout)
	if d.HasEndDate && d.IsNotEmpty2 {
		s += " → " + unixTime(d.Content2/1000).UTC().Format(layout)
	}
	return s
}

func spinBlockDOM(_ *Kernel, a args) (any, error) {
	out, err := text.Spin(a.str("dom"))
	if err != nil {
		return nil, errSwallowed
	}
	return map[string]any{"dom": out}, nil
}

func html2BlockDOM(k *Kernel, a args) (any, error) {
	out, err := text.HTMLToDOM(a.str("dom"), k.newID)
	if err != nil {
		return nil, errSwallowed
	}
	return out, nil
}
