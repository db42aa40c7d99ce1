package samplekernel

import (
	"html"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

func outlineRoutes() map[string]route {
	return map[string]route{
		"/api/outline/getDocOutline": {serve: getDocOutline},
	}
}

// spaced is text as the front end shows it: HTML with fixed spaces.
func spaced(s string) string {
	return strings.ReplaceAll(html.EscapeString(s), " ", "&nbsp;")
}

// getDocOutline nests headings: the first level are paths, the levels below
// blocks. A document without headings has null, a missing one an empty list.
func getDocOutline(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	p, ok := k.block(id)
	if !ok {
		return []any{}, nil
	}
	var paths []*pathView
	if a.boolOr("preview", false) {
		paths = append(paths, &pathView{ID: p.doc.id(), Box: p.doc.box, Name: spaced(p.doc.title()), Type: "outline", NodeType: "NodeHeading", SubType: "h1"})
	}
	for _, t := range headingTree(p.doc.root) {
		n := &pathView{ID: t.node.ID, Box: p.doc.box, Name: spaced(text.Content(t.node)), Type: "outline", NodeType: "NodeHeading",
			SubType: text.Subtype(t.node), Count: len(t.below), Folded: folded(t.node)}
		for _, b := range t.below {
			n.Blocks = append(n.Blocks, outlineBlock(p.doc, b, 1))
		}
		paths = append(paths, n)
	}
	return paths, nil
}

// headingNode is a heading with the headings in its section.
type headingNode struct {
	node  *ast.Node
	below []*headingNode
}

func headingTree(root *ast.Node) (top []*headingNode) {
	var open []*headingNode
	for _, n := range text.Blocks(root) {
		if n.Type != ast.NodeHeading || n.ParentIs(ast.NodeBlockquote) {
			continue
		}
		h := &headingNode{node: n}
		for len(open) > 0 && open[len(open)-1].node.HeadingLevel >= n.HeadingLevel {
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			top = append(top, h)
		} else {
			up := open[len(open)-1]
			up.below = append(up.below, h)
		}
		open = append(open, h)
	}
	return top
}

func outlineBlock(d *document, h *headingNode, depth int) *blockView {
	v := &blockView{
		Box: d.box, Path: d.path, ID: h.node.ID, RootID: d.id(), Content: spaced(text.Content(h.node)), Folded: folded(h.node),
		Type: "NodeHeading", SubType: text.Subtype(h.node), Depth: depth, Count: len(h.below),
	}
	for _, b := range h.below {
		v.Children = append(v.Children, outlineBlock(d, b, depth+1))
	}
	return v
}
