package samplekernel

import (
	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

// operation is one step of a transaction, with the field order of a real answer.
type operation struct {
	Action            string   `json:"action"`
	Data              any      `json:"data"`
	ID                string   `json:"id"`
	RootID            string   `json:"rootID"`
	ParentID          string   `json:"parentID"`
	PreviousID        string   `json:"previousID"`
	NextID            string   `json:"nextID"`
	RetData           any      `json:"retData"`
	BlockIDs          []string `json:"blockIDs"`
	BlockID           string   `json:"blockID"`
	DeckID            string   `json:"deckID"`
	AvID              string   `json:"avID"`
	SrcIDs            []string `json:"srcIDs"`
	Srcs              []any    `json:"srcs"`
	IsDetached        bool     `json:"isDetached"`
	Name              string   `json:"name"`
	Type              string   `json:"type"`
	Format            string   `json:"format"`
	KeyID             string   `json:"keyID"`
	RowID             string   `json:"rowID"`
	IsTwoWay          bool     `json:"isTwoWay"`
	BackRelationKeyID string   `json:"backRelationKeyID"`
	RemoveDest        bool     `json:"removeDest"`
	Layout            string   `json:"layout"`
	GroupID           string   `json:"groupID"`
	TargetGroupID     string   `json:"targetGroupID"`
	ViewID            string   `json:"viewID"`
	IgnoreDefaultFill bool     `json:"ignoreDefaultFill"`
	Context           any      `json:"context"`
}

// transaction is what the block endpoints answer with.
type transaction struct {
	Timestamp      int64        `json:"timestamp"`
	DoOperations   []*operation `json:"doOperations"`
	UndoOperations []*operation `json:"undoOperations"`
}

func oneTransaction(ops ...*operation) []*transaction {
	return []*transaction{{DoOperations: ops}}
}

func (op *operation) dom() string {
	s, _ := op.Data.(string)
	return s
}

// apply carries out an operation on the tree. An operation that cannot be
// carried out is passed over, as a real kernel does.
func (k *Kernel) apply(op *operation) error {
	switch op.Action {
	case "insert":
		return k.applyInsert(op)
	case "appendInsert", "prependInsert":
		return k.applyAppend(op)
	case "update":
		return k.applyUpdate(op)
	case "delete":
		if data, ok := op.Data.(map[string]any); ok && data["createEmptyParagraph"] == false {
			return k.deleteBare(op.ID)
		}
		return k.applyDelete(op.ID)
	case "move":
		return k.applyMove(op)
	}
	return k.applyDatabase(op)
}

// applyInsert puts blocks behind previousID, before nextID, or first in parentID.
func (k *Kernel) applyInsert(op *operation) error {
	blocks, err := text.DOMToBlocks(op.dom())
	if err != nil || len(blocks) == 0 {
		return nil //nolint:nilerr // nothing to insert is nothing done
	}
	for _, id := range []string{op.PreviousID, op.NextID} {
		if id == "" {
			continue
		}
		anchor, ok := k.block(id)
		if !ok || anchor.node == anchor.doc.root {
			return nil
		}
		blocks = fitBlocks(k, anchor.node.Parent, blocks)
		k.adoptBlocks(anchor.doc, blocks)
		if id == op.PreviousID {
			for i := len(blocks) - 1; i >= 0; i-- {
				anchor.node.InsertAfter(blocks[i])
			}
		} else {
			for _, b := range blocks {
				anchor.node.InsertBefore(b)
			}
		}
		return k.saveInserted(anchor.doc, blocks)
	}
	parent, ok := k.block(op.ParentID)
	if !ok {
		return nil
	}
	blocks = fitBlocks(k, parent.node, blocks)
	k.adoptBlocks(parent.doc, blocks)
	before := firstBlock(parent.node)
	for _, b := range blocks {
		if before != nil {
			before.InsertBefore(b)
		} else {
			parent.node.AppendChild(b)
		}
	}
	return k.saveInserted(parent.doc, blocks)
}

func firstBlock(n *ast.Node) *ast.Node {
	if kids := text.ChildBlocks(n); len(kids) > 0 {
		return kids[0]
	}
	return nil
}

func lastBlock(n *ast.Node) *ast.Node {
	kids := text.ChildBlocks(n)
	if len(kids) == 0 {
		return nil
	}
	return kids[len(kids)-1]
}

// fitBlocks makes blocks fit into a list: the items of lists are spliced in,
// anything else gets an item around it.
func fitBlocks(k *Kernel, parent *ast.Node, blocks []*ast.Node) (fitting []*ast.Node) {
	if parent == nil || parent.Type != ast.NodeList {
		return blocks
	}
	for _, b := range blocks {
		switch b.Type {
		case ast.NodeListItem:
			fitting = append(fitting, b)
		case ast.NodeList:
			for _, item := range text.ChildBlocks(b) {
				item.Unlink()
				fitting = append(fitting, item)
			}
		default:
			fitting = append(fitting, k.wrapItem(parent, b))
		}
	}
	return fitting
}

// wrapItem makes a list item of a block. It has no marker of its own, which
// shows in the indentation of kramdown, in a real kernel too.
func (k *Kernel) wrapItem(list, b *ast.Node) *ast.Node {
	item := &ast.Node{Type: ast.NodeListItem, ListData: &ast.ListData{}}
	if list.ListData != nil {
		item.ListData.Typ = list.ListData.Typ
	}
	text.SetID(item, k.newID())
	item.SetIALAttr("updated", item.ID[:14])
	item.AppendChild(b)
	return item
}

func (k *Kernel) saveInserted(d *document, blocks []*ast.Node) error {
	for _, b := range blocks {
		b.SetIALAttr("updated", b.IALAttr("updated"))
		passUpdated(d, b)
	}
	return k.save(d)
}

// passUpdated gives the time of a changed block to the headings and containers
// around it and to the document.
func passUpdated(d *document, n *ast.Node) {
	t := n.IALAttr("updated")
	if t == "" {
		t = n.ID[:min(14, len(n.ID))]
	}
	for p := n; p != nil && p != d.root; {
		if p = text.LogicalParent(p); p != nil {
			p.SetIALAttr("updated", t)
		}
	}
}

// applyAppend is what remains of an append or prepend of no blocks: nothing.
func (k *Kernel) applyAppend(*operation) error { return nil }

// applyUpdate replaces a block by the first one of the data, keeping the id.
func (k *Kernel) applyUpdate(op *operation) error {
	p, ok := k.block(op.ID)
	if !ok || p.node == p.doc.root {
		return nil
	}
	blocks, err := text.DOMToBlocks(op.dom())
	if err != nil || len(blocks) == 0 {
		return nil //nolint:nilerr // see applyInsert
	}
	fresh := asItem(p.node, blocks[0])
	text.SetID(fresh, op.ID)
	old := p.node
	old.InsertAfter(fresh)
	old.Unlink()
	for _, b := range text.Blocks(old) {
		if b.ID != op.ID {
			k.blocks[b.ID] = place{doc: p.doc}
		}
	}
	k.blocks[op.ID] = place{p.doc, fresh}
	k.adoptUpdated(p.doc, fresh)
	passUpdated(p.doc, fresh)
	return k.save(p.doc)
}

// asItem takes the first item out of a list that is to replace an item.
func asItem(old, fresh *ast.Node) *ast.Node {
	if old.Type == ast.NodeListItem && fresh.Type == ast.NodeList {
		if item := firstBlock(fresh); item != nil {
			item.Unlink()
			return item
		}
	}
	return fresh
}

// adoptUpdated is adoptBlocks for a block that replaces another: it may go
// without an `updated` of its own.
func (k *Kernel) adoptUpdated(d *document, b *ast.Node) {
	updated := b.IALAttr("updated")
	k.adoptBlocks(d, []*ast.Node{b})
	if updated == "" {
		b.RemoveIALAttr("updated")
	}
}

// applyDelete takes out a block; a container left empty goes with it and a
// document left empty gets a paragraph.
func (k *Kernel) applyDelete(id string) error {
	p, ok := k.block(id)
	if !ok || p.node == p.doc.root {
		return nil
	}
	if err := k.deleteBare(id); err != nil {
		return err
	}
	if firstBlock(p.doc.root) == nil {
		p.doc.root.AppendChild(k.emptyParagraph())
		return k.save(p.doc)
	}
	return nil
}

func (k *Kernel) deleteBare(id string) error {
	p, ok := k.block(id)
	if !ok || p.node == p.doc.root {
		return nil
	}
	parent := p.node.Parent
	k.cut(p)
	for parent != nil && parent != p.doc.root && firstBlock(parent) == nil {
		up := parent.Parent
		k.cut(place{p.doc, parent})
		parent = up
	}
	return k.save(p.doc)
}

// cut unlinks a block and forgets everything in it.
func (k *Kernel) cut(p place) {
	p.node.Unlink()
	for _, b := range text.Blocks(p.node) {
		if at := k.blocks[b.ID]; at.doc == p.doc {
			delete(k.blocks, b.ID)
		}
	}
}

// applyMove puts a block behind previousID or first in parentID. A heading
// moves without its section.
func (k *Kernel) applyMove(op *operation) error {
	p, ok := k.block(op.ID)
	target, found := k.block(op.PreviousID)
	behind := found
	if !found {
		target, found = k.block(op.ParentID)
	}
	if !ok || !found || within(target.node, p.node) {
		return nil
	}
	parent, from := p.node.Parent, p.doc
	p.node.Unlink()
	if behind {
		target.node.InsertAfter(p.node)
	} else if before := firstBlock(target.node); before != nil {
		before.InsertBefore(p.node)
	} else {
		target.node.AppendChild(p.node)
	}
	for parent != nil && parent != from.root && firstBlock(parent) == nil {
		up := parent.Parent
		k.cut(place{from, parent})
		parent = up
	}
	if firstBlock(from.root) == nil {
		from.root.AppendChild(k.emptyParagraph())
	}
	if target.doc != from {
		for _, b := range text.Blocks(p.node) {
			delete(k.blocks, b.ID)
		}
		if err := k.save(from); err != nil {
			return err
		}
	}
	return k.save(target.doc)
}

// within reports whether n is outer or stands in it.
func within(n, outer *ast.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == outer {
			return true
		}
	}
	return false
}
