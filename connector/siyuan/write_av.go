package siyuan

import (
	"context"
	"encoding/json"
)

// AvSource is a row to add to a database.
type AvSource struct {
	// ID is the block to bind, or, of a detached row, any new id.
	ID         ID     `json:"id"`
	ItemID     ID     `json:"itemID,omitempty"` // of the row; the kernel chooses when ""
	IsDetached bool   `json:"isDetached"`
	Content    string `json:"content,omitempty"` // the primary cell of a detached row
}

// RowsAt says where rows go; every part may be left out.
type RowsAt struct {
	Block, View ID // a block that shows the database, one of its views
	Group       ID // of the view; its value is filled in
	Previous    ID // row to go behind; "" for the top
	NoDefaults  bool
}

// AddRows adds rows in the given order; a later call goes to the top. A block
// that is bound already is not added again.
func (w *Writer) AddRows(ctx context.Context, av ID, at RowsAt, rows []AvSource) error {
	return exec(ctx, w, "av/addAttributeViewBlocks", args{
		"avID": av, "blockID": optional(at.Block), "srcs": list(rows), "viewID": optional(at.View), "groupID": optional(at.Group),
		"previousID": optional(at.Previous), "ignoreDefaultFill": at.NoDefaults,
	}, 0)
}

// AddDetachedRows adds rows that are bound to no block, one list of cells each;
// a cell names its column in KeyID.
func (w *Writer) AddDetachedRows(ctx context.Context, av ID, rows [][]Value) error {
	return exec(ctx, w, "av/appendAttributeViewDetachedBlocksWithValues",
		args{"avID": av, "blocksValues": list(rows)}, 0)
}

// RemoveRows removes rows by item id; missing ones are not an error.
func (w *Writer) RemoveRows(ctx context.Context, av ID, items []ID) error {
	return exec(ctx, w, "av/removeAttributeViewBlocks", args{"avID": av, "srcIDs": list(items)}, 0)
}

// ReplaceRows binds rows to other blocks: each map is from item id to block id.
// An unknown item is not an error.
func (w *Writer) ReplaceRows(ctx context.Context, av ID, detached bool, rows []map[ID]ID) error {
	return exec(ctx, w, "av/batchReplaceAttributeViewBlocks",
		args{"avID": av, "isDetached": detached, "oldNew": list(rows)}, 0)
}

// AddKey adds a column behind previous, or first when that is "". The kernel
// checks neither type nor id: an id in use doubles the column.
func (w *Writer) AddKey(ctx context.Context, av, key ID, name, kind, icon string, previous ID) error {
	return exec(ctx, w, "av/addAttributeViewKey", args{
		"avID": av, "keyID": key, "keyName": name, "keyType": kind, "keyIcon": icon,
		"previousKeyID": optional(previous),
	}, 0)
}

// RemoveKey removes a column with its cells.
func (w *Writer) RemoveKey(ctx context.Context, av, key ID) error {
	return exec(ctx, w, "av/removeAttributeViewKey", args{"avID": av, "keyID": key}, 0)
}

// SortKey moves a column behind previous, or first when that is "", where blocks
// list their cells. The order of columns in views is their own.
func (w *Writer) SortKey(ctx context.Context, av, key, previous ID) error {
	return exec(ctx, w, "av/sortAttributeViewKey",
		args{"avID": av, "keyID": key, "previousKeyID": optional(previous)}, 0)
}

// SetCell sets one cell and returns it as stored. A value of the wrong kind or
// for an unknown item is stored all the same; an unknown column is answered
// null, which is OutcomeUnknown here.
func (w *Writer) SetCell(ctx context.Context, av, key, item ID, value Value) (Value, error) {
	data, err := write[struct {
		Value Value `json:"value"`
	}](ctx, w, "av/setAttributeViewBlockAttr", args{
		"avID": av, "keyID": key, "itemID": item, "value": value,
	}, 0)
	return data.Value, err
}

// CellUpdate is one entry of a batch of cells.
type CellUpdate struct {
	KeyID  ID    `json:"keyID"`
	ItemID ID    `json:"itemID"`
	Value  Value `json:"value"`
}

// SetCells is SetCell of many; unknown items are not an error.
func (w *Writer) SetCells(ctx context.Context, av ID, cells []CellUpdate) error {
	return exec(ctx, w, "av/batchSetAttributeViewBlockAttrs", args{"avID": av, "values": list(cells)}, 0)
}

// AvCopy is a duplicated database.
type AvCopy struct {
	AvID    ID `json:"avID" shape:"nonempty"`
	BlockID ID `json:"blockID" shape:"nonempty"` // for the block that will show it; not made yet
}

// DuplicateAttributeView copies a database file.
func (w *Writer) DuplicateAttributeView(ctx context.Context, av ID) (AvCopy, error) {
	return write[AvCopy](ctx, w, "av/duplicateAttributeViewBlock", args{"avID": av}, 0)
}

// CreateAttributeView makes the file of a database that a block already names:
// the kernel does so when it first renders one.
func (w *Writer) CreateAttributeView(ctx context.Context, av, block ID) (Rendered, error) {
	return write[Rendered](ctx, w, "av/renderAttributeView", args{
		"id": av, "blockID": block, "viewID": "", "page": 1, "query": "",
		"createIfNotExist": true, "ignoreRows": false,
	}, 0)
}

// AvItem is a row made by CreateItem.
type AvItem struct {
	ItemID     ID     `json:"itemID" shape:"nonempty"`
	BlockID    ID     `json:"blockID"`
	Content    string `json:"content"`
	IsDetached bool   `json:"isDetached"`
}

// ItemAt says which row CreateItem makes, and where; all but Block may be left
// out.
type ItemAt struct {
	Block, View ID // a block that shows the database, one of its views
	Group       ID // of the view
	Previous    ID // row to go behind; "" for the top
	Template    ID // of the database; its cells are filled in, its document is made
}

// CreateItem adds a row: as a template says, or an empty one. The kernel chooses
// the ids. A template that does not exist, or whose notebook is closed, is
// Rejected.
func (w *Writer) CreateItem(ctx context.Context, av ID, at ItemAt) (AvItem, error) {
	body := args{"avID": av, "blockID": at.Block, "viewID": optional(at.View)}
	for name, id := range map[string]ID{"groupID": at.Group, "previousID": at.Previous, "templateID": at.Template} {
		if id != "" {
			body[name] = id
		}
	}
	return write[AvItem](ctx, w, "av/createAttributeViewItem", body, 0)
}

// SetFilters replaces the filters of the view that a block shows, in the
// kernel's JSON form; an empty list clears them.
func (w *Writer) SetFilters(ctx context.Context, av, block ID, filters []json.RawMessage) error {
	return exec(ctx, w, "av/setAttrViewFilters", args{"avID": av, "blockID": block, "data": list(filters)}, 0)
}

// AvSort orders a view by a column.
type AvSort struct {
	Column ID     `json:"column"`
	Order  string `json:"order"` // ASC or DESC
}

// SetSorts replaces the sorts of the view that a block shows.
func (w *Writer) SetSorts(ctx context.Context, av, block ID, sorts []AvSort) error {
	return exec(ctx, w, "av/setAttrViewSorts", args{"avID": av, "blockID": block, "data": list(sorts)}, 0)
}

// AvGroup groups a view by a column; the zero value removes the grouping.
type AvGroup struct {
	Field     ID           `json:"field" shape:"optional"`
	Method    int          `json:"method"`          // 0 by value, 1 by range, 2 to 6 by parts of a date
	Range     *AvGroupSpan `json:"range,omitempty"` // of method 1
	Order     int          `json:"order"`           // 0 ascending, 1 descending, 2 by hand, 3 as the options
	HideEmpty bool         `json:"hideEmpty"`
}

// AvGroupSpan are the steps that numbers are grouped by.
type AvGroupSpan struct {
	Start float64 `json:"numStart"`
	End   float64 `json:"numEnd"`
	Step  float64 `json:"numStep"`
}

// SetGroup replaces the grouping of the view that a block shows.
func (w *Writer) SetGroup(ctx context.Context, av, block ID, group AvGroup) (Rendered, error) {
	return write[Rendered](ctx, w, "av/setAttrViewGroup", args{"avID": av, "blockID": block, "group": group}, 0)
}

// SetLayout makes the view that a block shows a table, gallery or kanban.
func (w *Writer) SetLayout(ctx context.Context, av, block ID, layout string) (Rendered, error) {
	return write[Rendered](ctx, w, "av/changeAttrViewLayout",
		args{"avID": av, "blockID": block, "layoutType": layout}, 0)
}

// SetBlockView chooses the view that a block shows.
func (w *Writer) SetBlockView(ctx context.Context, block, av, view ID) error {
	return exec(ctx, w, "av/setDatabaseBlockView", args{"id": block, "avID": av, "viewID": view}, 0)
}

// RemoveUnusedAttributeView moves the file of a database that no block shows to
// the history.
func (w *Writer) RemoveUnusedAttributeView(ctx context.Context, av ID) error {
	return exec(ctx, w, "av/removeUnusedAttributeView", args{"id": av}, 0)
}
