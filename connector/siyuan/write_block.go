package siyuan

import (
	"context"
	"net/http"
)

// DataType is the form of block content in a write.
type DataType string

// The kernel takes any other data type for DOM.
const (
	Markdown DataType = "markdown"
	DOM      DataType = "dom"
)

// Anchor says where a block goes. The kernel looks at Previous, then Next, then
// Parent; exactly one should be set, and must name an existing block.
type Anchor struct {
	Previous ID // right after this block
	Next     ID // right before this block
	Parent   ID // as the first child of this container
}

func (a Anchor) into(body args) args {
	return body.with("previousID", a.Previous).with("nextID", a.Next).with("parentID", a.Parent)
}

// NewBlock is one entry of a batch: content and where it goes.
type NewBlock struct {
	DataType DataType `json:"dataType"`
	Data     string   `json:"data"`
	Previous ID       `json:"previousID,omitempty"`
	Next     ID       `json:"nextID,omitempty"`
	Parent   ID       `json:"parentID,omitempty"`
}

// BlockUpdate is one entry of a batch: the new content of a block.
type BlockUpdate struct {
	ID       ID       `json:"id"`
	DataType DataType `json:"dataType"`
	Data     string   `json:"data"`
}

// insert runs one of the inserting endpoints. The kernel answers code 0 when it
// found no place; then the operation has no id and nothing was written.
func (w *Writer) insert(ctx context.Context, path string, body any) ([]Tx, error) {
	txs, err := write[[]Tx](ctx, w, path, body, 0)
	if err != nil {
		return nil, err
	}
	ops := Ops(txs)
	for _, op := range ops {
		if op.ID == "" {
			return txs, &Error{Kind: Rejected, Endpoint: path, Err: errNoPlace}
		}
	}
	if len(ops) == 0 {
		return txs, &Error{Kind: OutcomeUnknown, Endpoint: path, Status: http.StatusOK, Err: errNoOps}
	}
	return txs, nil
}

// InsertBlock puts content at the anchor. Markdown may hold several blocks; the
// answer names the first only. Ids given in {: id="..."} are kept.
func (w *Writer) InsertBlock(ctx context.Context, t DataType, data string, at Anchor) ([]Tx, error) {
	const path = "block/insertBlock"
	if at == (Anchor{}) {
		return nil, badArgument(path, "no anchor")
	}
	return w.insert(ctx, path, at.into(args{"dataType": t, "data": data}))
}

// AppendBlock adds content as the last children of a container.
func (w *Writer) AppendBlock(ctx context.Context, parent ID, t DataType, data string) ([]Tx, error) {
	return w.insert(ctx, "block/appendBlock", args{"dataType": t, "data": data, "parentID": parent})
}

// PrependBlock adds content as the first children of a container.
func (w *Writer) PrependBlock(ctx context.Context, parent ID, t DataType, data string) ([]Tx, error) {
	return w.insert(ctx, "block/prependBlock", args{"dataType": t, "data": data, "parentID": parent})
}

// InsertBlocks is InsertBlock of many.
func (w *Writer) InsertBlocks(ctx context.Context, blocks []NewBlock) ([]Tx, error) {
	return w.insert(ctx, "block/batchInsertBlock", args{"blocks": list(blocks)})
}

// AppendBlocks is AppendBlock of many; one bad parent and nothing is written.
func (w *Writer) AppendBlocks(ctx context.Context, blocks []NewBlock) ([]Tx, error) {
	return w.insert(ctx, "block/batchAppendBlock", args{"blocks": list(blocks)})
}

// PrependBlocks is PrependBlock of many.
func (w *Writer) PrependBlocks(ctx context.Context, blocks []NewBlock) ([]Tx, error) {
	return w.insert(ctx, "block/batchPrependBlock", args{"blocks": list(blocks)})
}

// AppendDailyNoteBlock adds content to the end of today's note, which is
// created when there is none.
func (w *Writer) AppendDailyNoteBlock(ctx context.Context, notebook ID, t DataType, data string) ([]Tx, error) {
	return w.insert(ctx, "block/appendDailyNoteBlock", args{"dataType": t, "data": data, "notebook": notebook})
}

// PrependDailyNoteBlock adds content to the start of today's note.
func (w *Writer) PrependDailyNoteBlock(ctx context.Context, notebook ID, t DataType, data string) ([]Tx, error) {
	return w.insert(ctx, "block/prependDailyNoteBlock", args{"dataType": t, "data": data, "notebook": notebook})
}

// UpdateBlock replaces a block together with its attributes: those not given in
// a {: } of the new content are lost, name, alias, memo and bookmark included.
// Only the first block of the content is kept.
func (w *Writer) UpdateBlock(ctx context.Context, id ID, t DataType, data string) ([]Tx, error) {
	return write[[]Tx](ctx, w, "block/updateBlock", args{"dataType": t, "data": data, "id": id}, 0)
}

// UpdateBlocks is UpdateBlock of many, all or nothing.
func (w *Writer) UpdateBlocks(ctx context.Context, updates []BlockUpdate) ([]Tx, error) {
	return write[[]Tx](ctx, w, "block/batchUpdateBlock", args{"blocks": list(updates)}, 0)
}

// DeleteBlock removes a block. It does nothing, successfully, for a document
// and for a missing block; of a heading only the heading goes. Reads that
// follow wait for the deletion.
func (w *Writer) DeleteBlock(ctx context.Context, id ID) error {
	_, err := write[[]Tx](ctx, w, "block/deleteBlock", args{"id": id}, queued)
	return err
}

// MoveBlock moves a block behind another one or into a container. At.Next is
// not supported by the kernel.
func (w *Writer) MoveBlock(ctx context.Context, id ID, at Anchor) error {
	const path = "block/moveBlock"
	if at.Next != "" || at == (Anchor{}) {
		return badArgument(path, "want a previous or a parent block")
	}
	return exec(ctx, w, path, at.into(args{"id": id}), 0)
}

// MoveOutlineHeading moves a heading with its section behind another heading.
func (w *Writer) MoveOutlineHeading(ctx context.Context, id, previous ID) ([]Tx, error) {
	return write[[]Tx](ctx, w, "block/moveOutlineHeading", args{"id": id, "previousID": previous}, queued)
}

// FoldBlock folds a heading or container.
func (w *Writer) FoldBlock(ctx context.Context, id ID) error {
	return exec(ctx, w, "block/foldBlock", args{"id": id}, 0)
}

// UnfoldBlock unfolds a heading or container.
func (w *Writer) UnfoldBlock(ctx context.Context, id ID) error {
	return exec(ctx, w, "block/unfoldBlock", args{"id": id}, 0)
}

// TransferBlockRef makes every citation of one block cite another. Citing
// blocks of all notebooks are rewritten unless refs names the ones to change.
func (w *Writer) TransferBlockRef(ctx context.Context, from, to ID, refs []ID) error {
	body := args{"fromID": from, "toID": to, "reloadUI": true}
	if len(refs) > 0 {
		body["refIDs"] = refs
	}
	return exec(ctx, w, "block/transferBlockRef", body, 0)
}

// SwapBlockRef exchanges a reference with the text of the block it cites.
func (w *Writer) SwapBlockRef(ctx context.Context, ref, def ID, includeChildren bool) error {
	return exec(ctx, w, "block/swapBlockRef",
		args{"refID": ref, "defID": def, "includeChildren": includeChildren}, 0)
}

// UpdateTaskMarker sets the mark of a task list item: ' ', 'X' or another byte.
// The id is the item's, not its paragraph's.
func (w *Writer) UpdateTaskMarker(ctx context.Context, item ID, marker byte) ([]Tx, error) {
	return write[[]Tx](ctx, w, "block/updateTaskListItemMarker",
		args{"id": item, "marker": string(rune(marker))}, 0)
}

// SetBlockAttrs merges attributes into a block's; "" removes one. Names are
// lower case; the block's id and updated are not touched.
func (w *Writer) SetBlockAttrs(ctx context.Context, id ID, attrs Attrs) error {
	return exec(ctx, w, "attr/setBlockAttrs", args{"id": id, "attrs": nonnil(attrs)}, 0)
}

// BlockAttrs is one entry of a batch of attribute changes.
type BlockAttrs struct {
	ID    ID    `json:"id"`
	Attrs Attrs `json:"attrs"`
}

// SetBlocksAttrs is SetBlockAttrs of many. It is not atomic: a Rejected batch
// may have written the entries before the missing block.
func (w *Writer) SetBlocksAttrs(ctx context.Context, all []BlockAttrs) error {
	return exec(ctx, w, "attr/batchSetBlockAttrs", args{"blockAttrs": list(all)}, 0)
}

func nonnil(a Attrs) Attrs {
	if a == nil {
		return Attrs{}
	}
	return a
}

// Transactions runs editor transactions. They are queued, and a failing
// operation is answered like a successful one: read back.
func (w *Writer) Transactions(ctx context.Context, txs []Tx) ([]Tx, error) {
	sent := make([]Tx, len(txs))
	for i, tx := range txs {
		sent[i] = Tx{Timestamp: tx.Timestamp, Do: list(tx.Do), Undo: list(tx.Undo)}
	}
	return write[[]Tx](ctx, w, "transactions", args{
		"reqId": w.c.cfg.Clock.Now().UnixMilli(), "app": appName, "session": appName, "transactions": sent,
	}, queued)
}

// appName is how the kernel tells our transactions from an editor's.
const appName = "siyuan-connector"
