package samplekernel

import (
	"path"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

// target is the folder a block becomes a document in.
func (k *Kernel) target(a args) (box, folder string, ok bool) {
	box, folder = a.str("targetNoteBook"), strings.TrimSuffix(a.strOr("targetPath", "/"), ".sy")
	if folder == "" {
		folder = "/"
	}
	_, ok = k.openBox(box)
	return box, folder, ok
}

// heading2Doc makes a document of a section; it keeps the heading's id.
func heading2Doc(k *Kernel, a args) (any, error) {
	p, ok := k.heading(a.str("srcHeadingID"))
	box, folder, open := k.target(a)
	if !ok || !open {
		return nil, failToast(msgNoBlock, 5000)
	}
	return nil, k.extract(p, text.Section(p.node), text.Content(p.node), box, folder)
}

// li2Doc makes a document of a list item; it keeps the item's id.
func li2Doc(k *Kernel, a args) (any, error) {
	p, ok := k.block(a.str("srcListItemID"))
	box, folder, open := k.target(a)
	if !ok || !open || p.node.Type != ast.NodeListItem {
		return nil, failToast(msgNoBlock, 5000)
	}
	kids := text.ChildBlocks(p.node)
	return nil, k.extract(p, kids, text.FirstContent(p.node), box, folder)
}

// extract moves blocks out of a document into a new one that takes over the id
// of the block they belong to.
func (k *Kernel) extract(p place, body []*ast.Node, title, box, folder string) error {
	id, from := p.node.ID, p.doc
	root := k.newDocNode(id, cleanName(title))
	root.SetIALAttr("updated", stamp(k.now()))
	for _, n := range body {
		for _, b := range text.Blocks(n) {
			delete(k.blocks, b.ID)
		}
		n.Unlink()
		root.AppendChild(n)
	}
	if err := k.applyDelete(id); err != nil {
		return err
	}
	if firstBlock(root) == nil {
		root.AppendChild(k.emptyParagraph())
	}
	d := &document{box: box, path: path.Join(folder, id+".sy"), root: root}
	k.docs[id] = d
	d.hpath = k.hpath(d)
	if err := k.save(d); err != nil {
		return err
	}
	if err := k.save(from); err != nil {
		return err
	}
	return k.sortLast(d)
}

// doc2Heading makes a section of a document behind or in the target block.
func doc2Heading(k *Kernel, a args) (any, error) {
	src, ok := k.docs[a.str("srcID")]
	target, found := k.block(a.str("targetID"))
	if !ok || !found {
		return nil, failToast(msgNoBlock, 5000)
	}
	answer := map[string]any{"srcTreeBox": src.box, "srcTreePath": src.path}
	h := &ast.Node{Type: ast.NodeHeading, HeadingLevel: 2}
	if target.node.Type == ast.NodeHeading {
		h.HeadingLevel = target.node.HeadingLevel
	}
	h.AppendChild(&ast.Node{Type: ast.NodeText, Tokens: []byte(src.title())})
	nodes := append([]*ast.Node{h}, text.ChildBlocks(src.root)...)
	if err := k.remove(src); err != nil {
		return nil, err
	}
	text.SetID(h, src.id())
	h.SetIALAttr("updated", stamp(k.now()))
	anchor, after := target.node, a.boolOr("after", false)
	if section := text.Section(anchor); after && anchor.Type == ast.NodeHeading && len(section) > 0 {
		anchor = section[len(section)-1]
	}
	for _, n := range nodes {
		n.Unlink()
		switch {
		case anchor == target.doc.root:
			anchor.AppendChild(n)
		case after:
			anchor.InsertAfter(n)
			anchor = n
		default:
			anchor.InsertBefore(n)
		}
	}
	return answer, k.save(target.doc)
}
