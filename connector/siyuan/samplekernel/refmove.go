package samplekernel

import (
	"slices"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

func refMoveRoutes() map[string]route {
	return map[string]route{
		"/api/block/transferBlockRef":            {serve: transferBlockRef, write: true},
		"/api/block/swapBlockRef":                {serve: swapBlockRef, write: true},
		"/api/block/moveOutlineHeading":          {serve: moveOutlineHeading, write: true},
		"/api/block/appendHeadingChildren":       {serve: appendHeadingChildren, write: true},
		"/api/block/getHeadingDeleteTransaction": {serve: getHeadingDeleteTransaction},
	}
}

// transferBlockRef makes all references to one block point to another.
func transferBlockRef(k *Kernel, a args) (any, error) {
	from, to := a.str("fromID"), a.str("toID")
	target, ok := k.block(to)
	if !ok {
		return nil, nil
	}
	only := a.strsOr("refIDs")
	for _, id := range sortedKeys(k.docs) {
		d, changed := k.docs[id], false
		ast.Walk(d.root, func(n *ast.Node, entering bool) ast.WalkStatus {
			if entering && n.Type == ast.NodeTextMark && n.TextMarkBlockRefID == from && (len(only) == 0 || slices.Contains(only, holder(n))) {
				n.TextMarkBlockRefID, changed = to, true
				if n.TextMarkBlockRefSubtype == "d" {
					n.TextMarkTextContent = k.refText(target)
				}
			}
			return ast.WalkContinue
		})
		if changed {
			if err := k.save(d); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// holder is the id of the block that a span is in.
func holder(n *ast.Node) string {
	for n.Parent != nil && n.ID == "" {
		n = n.Parent
	}
	return n.ID
}

// swapBlockRef exchanges a block with a block it cites: each takes the place of
// the other.
func swapBlockRef(k *Kernel, a args) (any, error) {
	ref, ok := k.block(a.str("refID"))
	def, found := k.block(a.str("defID"))
	if !ok || !found {
		return nil, failToast(k.notFoundText(), 7000)
	}
	if within(ref.node, def.node) || within(def.node, ref.node) {
		return nil, nil
	}
	mark := &ast.Node{Type: ast.NodeParagraph}
	ref.node.InsertBefore(mark)
	def.node.InsertBefore(ref.node)
	mark.InsertBefore(def.node)
	mark.Unlink()
	if err := k.save(def.doc); err != nil {
		return nil, err
	}
	return nil, k.save(ref.doc)
}

// moveOutlineHeading moves a heading with its section behind the section of
// another one.
func moveOutlineHeading(k *Kernel, a args) (any, error) {
	op := &operation{Action: "moveOutlineHeading", ID: a.str("id"), PreviousID: a.strOr("previousID", ""), ParentID: a.strOr("parentID", "")}
	p, ok := k.heading(op.ID)
	after, found := k.heading(op.PreviousID)
	if ok && found && !within(after.node, p.node) {
		section := append([]*ast.Node{p.node}, text.Section(p.node)...)
		anchor := after.node
		for _, n := range text.Section(after.node) {
			if !containsNode(section, n) {
				anchor = n
			}
		}
		for _, n := range section {
			n.Unlink()
			anchor.InsertAfter(n)
			anchor = n
		}
		if err := k.save(after.doc); err != nil {
			return nil, err
		}
		op.RetData = p.doc.id()
	}
	return oneTransaction(op), nil
}

func containsNode(list []*ast.Node, n *ast.Node) bool {
	for _, o := range list {
		if o == n {
			return true
		}
	}
	return false
}

// appendHeadingChildren puts blocks at the start of a section.
func appendHeadingChildren(k *Kernel, a args) (any, error) {
	id, dom := a.str("id"), a.str("childrenDOM")
	p, ok := k.heading(id)
	if !ok {
		return nil, nil
	}
	return nil, k.apply(&operation{Action: "insert", Data: dom, PreviousID: p.node.ID})
}

// getHeadingDeleteTransaction describes how a heading and its section would be
// deleted and brought back.
func getHeadingDeleteTransaction(k *Kernel, a args) (any, error) {
	p, ok := k.heading(a.str("id"))
	if !ok {
		return nil, nil
	}
	tx := &transaction{}
	for _, n := range append([]*ast.Node{p.node}, text.Section(p.node)...) {
		tx.DoOperations = append(tx.DoOperations, &operation{Action: "delete", ID: n.ID})
		back := &operation{Action: "insert", Data: text.DOM(n), ID: n.ID, ParentID: n.Parent.ID}
		if prev := text.PreviousBlock(n); prev != nil {
			back.PreviousID = prev.ID
		}
		tx.UndoOperations = append(tx.UndoOperations, back)
	}
	return tx, nil
}
