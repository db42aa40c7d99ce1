package samplekernel

import (
	"strconv"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

// getDoc renders a page of a document for the editor: modes 0 and 3 start at
// the block or around it, size is a number of blocks and counts nested ones.
func getDoc(k *Kernel, a args) (any, error) {
	id := a.str("id")
	p, ok := k.block(id)
	if !ok {
		return nil, failCode(1, k.notFoundText())
	}
	size, mode := a.intOr("size", 102400), a.intOr("mode", 0)
	nodes := text.ChildBlocks(p.doc.root)
	if mode == 0 && p.node != p.doc.root {
		nodes = []*ast.Node{p.node}
	}
	parent, parent2 := p.doc.id(), p.doc.id()
	if p.node != p.doc.root {
		parent, parent2 = p.node.Parent.ID, text.LogicalParent(p.node).ID
	}
	return map[string]any{
		"blockCount": len(text.ChildBlocks(p.doc.root)), "box": p.doc.box, "content": k.page(nodes, size), "eof": false, "id": id,
		"isBacklinkExpand": false, "isSyncing": k.faults.syncing(p.doc.id()), "keywords": nil, "mode": mode, "parent2ID": parent2, "parentID": parent,
		"path": p.doc.path, "reqId": a["reqId"], "rootID": p.doc.id(), "scroll": false, "type": p.node.Type.String(),
	}, nil
}

// page renders blocks until more than size, nested ones included, have been
// shown, and one more.
func (k *Kernel) page(nodes []*ast.Node, size int) string {
	var b strings.Builder
	shown := 0
	for _, n := range nodes {
		if shown > size+1 {
			break
		}
		b.WriteString(k.editorDOM(n))
		shown += len(text.Blocks(n))
	}
	return b.String()
}

// editorDOM is the DOM of a block with the badges the editor shows: reference
// counts and the databases it is bound to.
func (k *Kernel) editorDOM(n *ast.Node) string {
	k.shuffle(n)
	c := text.Clone(n)
	for _, b := range text.Blocks(c) {
		if names := k.databaseNames(b.IALAttr("custom-avs")); names != "" {
			b.SetIALAttr("av-names", names)
		}
		if count := k.refCount(b.ID); count > 0 {
			b.SetIALAttr("refcount", strconv.Itoa(count))
		}
	}
	(&ast.Node{Type: ast.NodeDocument}).AppendChild(c)
	return text.DOM(c)
}
