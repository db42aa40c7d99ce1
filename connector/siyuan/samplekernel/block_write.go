package samplekernel

import (
	"errors"
	"fmt"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

// errSwallowed marks the failures a real kernel answers with code 0 and no data.
var errSwallowed = errors.New("swallowed")

func blockWriteRoutes() map[string]route {
	return map[string]route{
		"/api/block/insertBlock":                   {serve: insertBlock, write: true},
		"/api/block/appendBlock":                   {serve: appendBlock, write: true},
		"/api/block/prependBlock":                  {serve: prependBlock, write: true},
		"/api/block/updateBlock":                   {serve: updateBlock, write: true},
		"/api/block/deleteBlock":                   {serve: deleteBlock, write: true},
		"/api/block/moveBlock":                     {serve: moveBlock, write: true},
		"/api/block/foldBlock":                     {serve: foldBlock, write: true},
		"/api/block/unfoldBlock":                   {serve: unfoldBlock, write: true},
		"/api/block/batchInsertBlock":              {serve: batch(insertOp), write: true},
		"/api/block/batchAppendBlock":              {serve: batch(appendOp), write: true},
		"/api/block/batchPrependBlock":             {serve: batch(prependOp), write: true},
		"/api/block/batchUpdateBlock":              {serve: batchUpdateBlock, write: true},
		"/api/block/appendDailyNoteBlock":          {serve: dailyNoteBlock(appendOp), write: true},
		"/api/block/prependDailyNoteBlock":         {serve: dailyNoteBlock(prependOp), write: true},
		"/api/block/updateTaskListItemMarker":      {serve: updateTaskListItemMarker, write: true},
		"/api/block/batchUpdateTaskListItemMarker": {serve: batchUpdateTaskListItemMarker, write: true},
	}
}

// blockData is the dom of a request's data. Markdown is parsed, blank markdown
// is an empty paragraph, and every other data type is taken for dom.
func (k *Kernel) blockData(a args) (string, error) {
	data, kind := a.str("data"), a.str("dataType")
	if kind != "markdown" {
		return data, nil
	}
	dom, err := text.MarkdownToDOM(data, k.newID)
	if err != nil {
		return "", errSwallowed
	}
	if dom == "" || strings.TrimSpace(data) == "" {
		dom = text.DOM(k.emptyParagraph())
	}
	return dom, nil
}

// firstID is the id of the first block in dom; one is made for a block without.
func (k *Kernel) firstID(dom string) string {
	blocks, err := text.DOMToBlocks(dom)
	if err != nil || len(blocks) == 0 {
		return ""
	}
	first := blocks[0]
	if item := firstBlock(first); first.Type == ast.NodeList && item != nil && (first.ID == "" || !strings.Contains(dom, first.ID)) {
		first = item // parsing put a list around bare items
	}
	if id := first.ID; id != "" && strings.Contains(dom, id) {
		return id
	}
	return k.newID()
}

// dressed gives plain text, which unknown data types may hold, the id that was
// promised for it.
func dressed(dom, id string) string {
	if id == "" || strings.Contains(dom, id) {
		return dom
	}
	return fmt.Sprintf(`<div data-node-id=%q data-type="NodeParagraph" class="p"><div contenteditable="true">%s</div><div class="protyle-attr"></div></div>`, id, dom)
}

// opMaker builds the operation of a request without carrying it out.
type opMaker func(k *Kernel, a args) (*operation, error)

func checkedID(a args, field string) (string, error) {
	id := a.strOr(field, "")
	if id != "" && !text.ValidID(id) {
		return "", fail(msgBadID)
	}
	return id, nil
}

func insertOp(k *Kernel, a args) (*operation, error) {
	op := &operation{Action: "insert"}
	var err error
	for field, to := range map[string]*string{"previousID": &op.PreviousID, "nextID": &op.NextID, "parentID": &op.ParentID} {
		if *to, err = checkedID(a, field); err != nil {
			return nil, err
		}
	}
	dom, err := k.blockData(a)
	if err != nil {
		return nil, err
	}
	op.Data = dom
	k.anchor(op)
	if op.PreviousID == "" && op.NextID == "" && op.ParentID == "" {
		return op, nil
	}
	if p, ok := k.block(op.PreviousID + op.NextID); ok || op.PreviousID+op.NextID == "" {
		op.ID = k.firstID(dom)
		if ok && p.node == p.doc.root {
			op.ParentID = ""
		}
	}
	return op, nil
}

// anchor settles on one of the three places an insert may name.
func (k *Kernel) anchor(op *operation) {
	if op.PreviousID != "" {
		op.NextID, op.ParentID = "", ""
		if p, ok := k.block(op.PreviousID); ok && p.node.Parent != nil {
			op.ParentID = p.node.Parent.ID
		}
	} else if op.NextID != "" {
		op.ParentID = ""
		if p, ok := k.block(op.NextID); ok && p.node.Parent != nil {
			op.ParentID = p.node.Parent.ID
		}
	}
}

// container checks the parent of an append or prepend.
func (k *Kernel) container(a args) (place, error) {
	id := a.str("parentID")
	if !text.ValidID(id) {
		return place{}, fail(msgBadID)
	}
	p, ok := k.block(id)
	switch {
	case !ok:
		return place{}, fail("parent block not found: " + id)
	case p.node.Type == ast.NodeHeading:
		return place{}, fail("heading [" + id + "] is a leaf block and cannot have children; to place a block below this heading, pass previousID=<heading id> or previousID=<last block below the heading> instead of parentID")
	case !p.node.IsContainerBlock() && p.node != p.doc.root:
		return place{}, fail(fmt.Sprintf("block [%s] type %q is a leaf block and cannot have children; use previousID to place the block as its sibling instead", id, text.Code(p.node)))
	}
	return p, nil
}

func appendOp(k *Kernel, a args) (*operation, error) {
	p, err := k.container(a)
	if err != nil {
		return nil, err
	}
	dom, err := k.blockData(a)
	if err != nil {
		return nil, err
	}
	if dom == "" {
		return &operation{Action: "appendInsert", Data: "", ParentID: p.node.ID}, nil
	}
	op := &operation{Action: "insert", Data: dom, ID: k.firstID(dom), ParentID: p.node.ID}
	if last := lastBlock(p.node); last != nil {
		op.PreviousID = last.ID
	}
	return op, nil
}

func prependOp(k *Kernel, a args) (*operation, error) {
	p, err := k.container(a)
	if err != nil {
		return nil, err
	}
	dom, err := k.blockData(a)
	if err != nil {
		return nil, err
	}
	if dom == "" {
		return &operation{Action: "prependInsert", Data: "", ParentID: p.node.ID}, nil
	}
	return &operation{Action: "insert", Data: dom, ID: k.firstID(dom), ParentID: p.node.ID}, nil
}

// perform carries out an insert and makes its echo what a real kernel says
// about insertions into lists.
func (k *Kernel) perform(op *operation) error {
	inner := *op
	inner.Data = dressed(op.dom(), op.ID)
	anchor, behind := k.block(op.PreviousID)
	list, _ := k.block(op.ParentID)
	if behind && anchor.node.Parent != nil {
		list = place{anchor.doc, anchor.node.Parent}
	}
	if err := k.apply(&inner); err != nil {
		return err
	}
	if list.node != nil && list.node.Type == ast.NodeList && op.Action == "insert" {
		op.ParentID, op.PreviousID = "", ""
		if p, ok := k.block(op.ID); ok && p.node.Type != ast.NodeListItem && p.node.Parent != nil {
			op.ParentID = p.node.Parent.ID
		}
	}
	return nil
}

func single(k *Kernel, a args, make opMaker) (any, error) {
	op, err := make(k, a)
	if err != nil {
		return nil, err
	}
	if err := k.perform(op); err != nil {
		return nil, err
	}
	return oneTransaction(op), nil
}

func insertBlock(k *Kernel, a args) (any, error)  { return single(k, a, insertOp) }
func appendBlock(k *Kernel, a args) (any, error)  { return single(k, a, appendOp) }
func prependBlock(k *Kernel, a args) (any, error) { return single(k, a, prependOp) }

// batch checks all blocks before it writes the first.
func batch(make opMaker) handler {
	return func(k *Kernel, a args) (any, error) {
		blocks := a.objects("blocks")
		for _, b := range blocks {
			if _, err := make(k, b); err != nil {
				return nil, err
			}
		}
		txs := []*transaction{}
		for _, b := range blocks {
			op, err := make(k, b)
			if err != nil {
				return nil, err
			}
			if err := k.perform(op); err != nil {
				return nil, err
			}
			txs = append(txs, oneTransaction(op)...)
		}
		return txs, nil
	}
}

func dailyNoteBlock(make opMaker) handler {
	return func(k *Kernel, a args) (any, error) {
		box, err := boxArg(a, "notebook")
		if err != nil {
			return nil, err
		}
		d, err := k.dailyNote(box)
		if err != nil {
			var e *apiError
			if errors.As(err, &e) {
				return nil, fail("create daily note failed: " + e.msg)
			}
			return nil, err
		}
		return single(k, args{"data": a["data"], "dataType": a["dataType"], "parentID": d.id()}, make)
	}
}

func updateBlock(k *Kernel, a args) (any, error) {
	ops, err := k.updateOps(a)
	if err != nil {
		return nil, err
	}
	for _, op := range ops {
		if err := k.apply(op); err != nil {
			return nil, err
		}
	}
	return oneTransaction(ops...), nil
}

// updateOps builds the operations of an update: one for a block, and for a
// document the removal of its children and the insertion of new ones.
func (k *Kernel) updateOps(a args) ([]*operation, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	dom, err := k.blockData(a)
	if err != nil {
		return nil, err
	}
	p, ok := k.block(id)
	if !ok {
		return nil, fail("get block failed: " + k.notFoundText())
	}
	if p.node == p.doc.root {
		return k.replaceChildren(p, dom), nil
	}
	blocks, err := text.DOMToBlocks(dom)
	if err != nil || len(blocks) == 0 {
		return nil, errSwallowed
	}
	blocks[0] = asItem(p.node, blocks[0])
	text.SetID(blocks[0], id)
	var data strings.Builder
	top := &ast.Node{Type: ast.NodeDocument}
	for _, b := range blocks { // all are echoed, only the first will be kept
		top.AppendChild(b)
		data.WriteString(text.DOM(b))
	}
	return []*operation{{Action: "update", Data: data.String(), ID: id}}, nil
}

func (k *Kernel) replaceChildren(p place, dom string) (ops []*operation) {
	for _, c := range text.ChildBlocks(p.node) {
		ops = append(ops, &operation{Action: "delete", Data: map[string]any{"createEmptyParagraph": false}, ID: c.ID})
	}
	return append(ops, &operation{Action: "insert", Data: dom, ID: k.firstID(dom), ParentID: p.node.ID})
}

func batchUpdateBlock(k *Kernel, a args) (any, error) {
	blocks := a.objects("blocks")
	if len(blocks) == 0 {
		return nil, fail("Field [blocks] must not be empty")
	}
	var ops []*operation
	for _, b := range blocks {
		o, err := k.updateOps(b)
		if err != nil {
			return nil, err
		}
		ops = append(ops, o...)
	}
	for _, op := range ops {
		if err := k.apply(op); err != nil {
			return nil, err
		}
	}
	return oneTransaction(ops...), nil
}

// deleteBlock answers before the block is gone.
func deleteBlock(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	k.deletes = append(k.deletes, task{due: k.now().Add(max(0, k.opt.DeleteLag)), run: func() { _ = k.applyDelete(id) }})
	k.settle()
	return oneTransaction(&operation{Action: "delete", ID: id}), nil
}

func moveBlock(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	op := &operation{Action: "move", ID: id}
	var err error
	if op.PreviousID, err = checkedID(a, "previousID"); err != nil {
		return nil, err
	}
	if op.ParentID, err = checkedID(a, "parentID"); err != nil {
		return nil, err
	}
	if _, ok := k.block(id); !ok {
		return nil, fail("block not found [id=" + id + "]")
	}
	target := op.PreviousID
	if target == "" {
		target = op.ParentID
	}
	p, ok := k.block(target)
	if !ok {
		return nil, fail("target block not found [id=" + target + "]")
	}
	if op.PreviousID != "" && p.node == p.doc.root {
		return nil, fail("`previousID` can not be the ID of a document")
	}
	return nil, k.apply(op)
}

func setFold(k *Kernel, a args, value string) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	p, ok := k.block(id)
	if !ok {
		return nil, fail("block tree not found [id=" + id + "]")
	}
	if p.node == p.doc.root {
		return nil, fail("document can not be folded")
	}
	text.SetAttr(p.node, "fold", value)
	if p.node.Type == ast.NodeHeading {
		for _, n := range text.Section(p.node) {
			text.SetAttr(n, "heading-fold", value)
		}
	}
	return nil, k.save(p.doc)
}

func foldBlock(k *Kernel, a args) (any, error)   { return setFold(k, a, "1") }
func unfoldBlock(k *Kernel, a args) (any, error) { return setFold(k, a, "") }

func (k *Kernel) markerOp(a args) (*operation, error) {
	id, marker := a.str("id"), a.str("marker")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	p, ok := k.block(id)
	switch {
	case !ok:
		return nil, fail("get block failed: " + k.notFoundText())
	case len(marker) != 1:
		return nil, fail("task list item marker length should be 1")
	case p.node.Type != ast.NodeListItem:
		return nil, fail("block is not a list item")
	case text.Subtype(p.node) != "t":
		return nil, fail("block is not a task list item")
	}
	fresh, err := text.WithTaskMarker(p.node, marker[0])
	if err != nil {
		return nil, errSwallowed
	}
	fresh.SetIALAttr("updated", stamp(k.now()))
	return &operation{Action: "update", Data: text.DOM(fresh), ID: id}, nil
}

func updateTaskListItemMarker(k *Kernel, a args) (any, error) {
	op, err := k.markerOp(a)
	if err != nil {
		return nil, err
	}
	return oneTransaction(op), k.apply(op)
}

func batchUpdateTaskListItemMarker(k *Kernel, a args) (any, error) {
	var ops []*operation
	for _, item := range a.objects("items") {
		op, err := k.markerOp(item)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	for _, op := range ops {
		if err := k.apply(op); err != nil {
			return nil, err
		}
	}
	return oneTransaction(ops...), nil
}
