package siyuan

import (
	"context"
	"encoding/json"
	"errors"
)

// Key is a column of a database.
type Key struct {
	ID           ID           `json:"id" shape:"nonempty"`
	Name         string       `json:"name"`
	Type         string       `json:"type" shape:"nonempty"`
	Icon         string       `json:"icon"`
	Desc         string       `json:"desc"`
	NumberFormat string       `json:"numberFormat"`
	Template     string       `json:"template"`
	Options      []KeyOption  `json:"options"`
	Relation     *KeyRelation `json:"relation"`
	Rollup       *KeyRollup   `json:"rollup"`
}

// KeyOption is a choice of a select column.
type KeyOption struct {
	Name  string `json:"name"`
	Color string `json:"color"` // "1" to "14"
	Desc  string `json:"desc"`
}

// KeyRelation ties a relation column to another database.
type KeyRelation struct {
	AvID      ID   `json:"avID"`
	IsTwoWay  bool `json:"isTwoWay"`
	BackKeyID ID   `json:"backKeyID"`
}

// KeyRollup ties a rollup column to a column behind a relation.
type KeyRollup struct {
	RelationKeyID ID              `json:"relationKeyID"`
	KeyID         ID              `json:"keyID"`
	Calc          json.RawMessage `json:"calc"`
}

// Value is a cell. Exactly one of the pointers or slices is set, by Type; in a
// request only that one is needed. BlockID is the row's item id, not the id of
// the block bound to it, which is Block.ID.
type Value struct {
	ID         ID             `json:"id,omitempty"`
	KeyID      ID             `json:"keyID,omitempty"`
	BlockID    ID             `json:"blockID,omitempty"`
	Type       string         `json:"type,omitempty"`
	IsDetached bool           `json:"isDetached,omitempty"`
	CreatedAt  int64          `json:"createdAt,omitempty"` // Unix milliseconds
	UpdatedAt  int64          `json:"updatedAt,omitempty"`
	Block      *ValueBlock    `json:"block,omitempty"`
	Text       *ValueText     `json:"text,omitempty"`
	Number     *ValueNumber   `json:"number,omitempty"`
	Date       *ValueDate     `json:"date,omitempty"`
	Select     []ValueOption  `json:"mSelect,omitzero"` // of select and mSelect columns
	URL        *ValueText     `json:"url,omitempty"`
	Email      *ValueText     `json:"email,omitempty"`
	Phone      *ValueText     `json:"phone,omitempty"`
	Assets     []ValueAsset   `json:"mAsset,omitzero"`
	Checkbox   *ValueCheckbox `json:"checkbox,omitempty"`
	Relation   *ValueRelation `json:"relation,omitempty"`
	Template   *ValueText     `json:"template,omitempty"` // computed, as the ones below
	Created    *ValueDate     `json:"created,omitempty"`
	Updated    *ValueDate     `json:"updated,omitempty"`
	Rollup     *ValueRollup   `json:"rollup,omitempty"`
}

// ValueBlock is the primary cell of a row.
type ValueBlock struct {
	ID      ID     `json:"id,omitempty"` // the bound block; "" of a detached row
	Content string `json:"content"`
	Icon    string `json:"icon,omitempty"`
	Created int64  `json:"created,omitempty"`
	Updated int64  `json:"updated,omitempty"`
}

// ValueText is a text, url, email, phone or template cell.
type ValueText struct {
	Content string `json:"content"`
}

// ValueNumber is a number cell.
type ValueNumber struct {
	Content          float64 `json:"content"`
	IsNotEmpty       bool    `json:"isNotEmpty"`
	Format           string  `json:"format"` // left out of a write, SiYuan keeps what is stored
	FormattedContent string  `json:"formattedContent,omitempty"`
}

// ValueDate is a date, created or updated cell; times are Unix milliseconds.
type ValueDate struct {
	Content          int64  `json:"content"`
	IsNotEmpty       bool   `json:"isNotEmpty"`
	HasEndDate       bool   `json:"hasEndDate"`
	IsNotTime        bool   `json:"isNotTime"`
	Content2         int64  `json:"content2"`
	IsNotEmpty2      bool   `json:"isNotEmpty2"`
	FormattedContent string `json:"formattedContent,omitempty"`
}

// ValueOption is a chosen option.
type ValueOption struct {
	Content string `json:"content"`
	Color   string `json:"color"`
}

// ValueAsset is a file of an asset cell.
type ValueAsset struct {
	Type    string `json:"type"` // image or file
	Name    string `json:"name"`
	Content string `json:"content"` // assets/...
}

// ValueCheckbox is a checkbox cell.
type ValueCheckbox struct {
	Checked bool `json:"checked"`
}

// ValueRelation points at rows of another database by item id; Contents are
// their primary cells, filled in by the kernel.
type ValueRelation struct {
	BlockIDs []ID    `json:"blockIDs"`
	Contents []Value `json:"contents"`
}

// ValueRollup are cells behind a relation.
type ValueRollup struct {
	Contents []Value `json:"contents"`
}

// Column is a column as a view shows it.
type Column struct {
	Key
	Wrap   bool            `json:"wrap"`
	Hidden bool            `json:"hidden"`
	Pin    bool            `json:"pin"`
	Width  string          `json:"width"`
	Align  string          `json:"align"`
	Calc   json.RawMessage `json:"calc"`
}

// Cell is a rendered cell; a column without values (lineNumber) has none.
type Cell struct {
	ID        ID     `json:"id"`
	Value     *Value `json:"value"`
	ValueType string `json:"valueType"`
}

// AvRow is a row of a table, or a card of a gallery or kanban board. ID is the
// item id.
type AvRow struct {
	ID     ID     `json:"id" shape:"nonempty"`
	Cells  []Cell `json:"cells"`  // of a table
	Values []Cell `json:"values"` // of a card
}

// View is a rendered view. A table has Columns and Rows, the other layouts have
// Fields and Cards; a grouped view has Groups of the same kind.
type View struct {
	ID          ID              `json:"id" shape:"nonempty"`
	Icon        string          `json:"icon"`
	Name        string          `json:"name"`
	Desc        string          `json:"desc"`
	Filters     json.RawMessage `json:"filters"`
	Sorts       json.RawMessage `json:"sorts"`
	Group       json.RawMessage `json:"group"`
	PageSize    int             `json:"pageSize"`
	GroupValue  *Value          `json:"groupValue"`
	GroupHidden int             `json:"groupHidden"`
	GroupFolded bool            `json:"groupFolded"`
	Columns     []Column        `json:"columns"`
	Rows        []AvRow         `json:"rows"`
	RowCount    int             `json:"rowCount"` // before paging
	Fields      []Column        `json:"fields"`
	Cards       []AvRow         `json:"cards"`
	CardCount   int             `json:"cardCount"`
	Groups      []View          `json:"groups"`
}

// Rendered is a database as one of its views shows it.
type Rendered struct {
	ID       ID     `json:"id" shape:"nonempty"`
	Name     string `json:"name"`
	IsMirror bool   `json:"isMirror"`
	ViewID   ID     `json:"viewID" shape:"nonempty"`
	ViewType string `json:"viewType"`
	View     View   `json:"view"`
	Views    []struct {
		ID       ID     `json:"id" shape:"nonempty"`
		Icon     string `json:"icon"`
		Name     string `json:"name"`
		Desc     string `json:"desc"`
		Type     string `json:"type"`
		PageSize int    `json:"pageSize"`
	} `json:"views" shape:"nonnull"`
}

// Render is a request to render a database.
type Render struct {
	ID    ID     // of the database
	Block ID     // a block showing it, for that block's view; may be ""
	View  ID     // "" or unknown: the default view
	Page  int    // from 1
	Size  int    // rows per page; 0: the view's own page size, less: all
	Query string // keyword that rows must contain

	IgnoreRows bool // columns only
}

// RenderAttributeView renders a database; it never creates one. A missing
// database is Missing. The kernel stores a View that is given as the database's
// current one, though this is a read. Template columns may hold results of queries over all
// notebooks.
func (r *Reader) RenderAttributeView(ctx context.Context, q Render) (Rendered, error) {
	const path = "av/renderAttributeView"
	body := args{
		"id": q.ID, "blockID": optional(q.Block), "viewID": optional(q.View), "page": max(q.Page, 1),
		"query": q.Query, "createIfNotExist": false, "ignoreRows": q.IgnoreRows,
	}
	if q.Size != 0 {
		body["pageSize"] = q.Size
	}
	out, err := read[Rendered](ctx, r, path, body, 0)
	return out, r.noDatabase(ctx, path, q.ID, err)
}

// AttributeView is the whole file of a database: its columns with all cells, and
// its views.
type AttributeView struct {
	Spec      int         `json:"spec"`
	ID        ID          `json:"id" shape:"nonempty"`
	Name      string      `json:"name"`
	KeyValues []KeyValues `json:"keyValues" shape:"nonnull"`
	KeyIDs    []ID        `json:"keyIDs"`
	ViewID    ID          `json:"viewID"`
	Views     []AvView    `json:"views"`

	NewItemTemplates  []ItemTemplate `json:"newItemTemplates"`
	DefaultTemplateID ID             `json:"defaultTemplateID"`
}

// ItemTemplate is a template for new rows. The kernel refuses a whole list in
// silence for one without a name, of another TargetType, or with a field that is
// not there or that it computes itself; options it does not know it drops.
type ItemTemplate struct {
	ID           ID                `json:"id"`
	Name         string            `json:"name"`
	Icon         string            `json:"icon,omitempty"`
	TargetType   string            `json:"targetType"`            // detached or document
	FieldValues  map[ID]ItemPreset `json:"fieldValues,omitempty"` // by column
	SaveLocation *ItemPlace        `json:"saveLocation,omitempty"`
	Content      string            `json:"contentTemplatePath,omitempty"` // of a template file, rendered into the document
}

// ItemPlace is where the documents of a template go. PathTemplate is a readable
// path that may hold template functions; it ends with / where documents have no
// title of their own.
type ItemPlace struct {
	BoxID        ID     `json:"boxID"`
	PathTemplate string `json:"pathTemplate"`
}

// ItemPreset is what a template puts into a cell.
type ItemPreset struct {
	Mode  string `json:"mode"` // static, or currentTime for the day of a date
	Value *Value `json:"value,omitempty"`
}

// AvView is a view as it is stored. Of Table, Gallery and Kanban the one named by
// Type is there.
type AvView struct {
	ID       ID              `json:"id" shape:"nonempty"`
	Name     string          `json:"name"`
	Type     string          `json:"type"`
	Filters  json.RawMessage `json:"filters"`
	Sorts    json.RawMessage `json:"sorts"`
	Group    *AvGroup        `json:"group"`
	PageSize int             `json:"pageSize"`
	ItemIDs  []ID            `json:"itemIds"` // rows in the order they were put
	Groups   []AvView        `json:"groups"`
	Table    *struct {
		Columns []AvPlace `json:"columns"`
	} `json:"table"`
	Gallery *AvCards `json:"gallery"`
	Kanban  *AvCards `json:"kanban"`
}

// GroupIDs are the groups of a view.
func (v AvView) GroupIDs() []ID {
	ids := make([]ID, len(v.Groups))
	for i, g := range v.Groups {
		ids[i] = g.ID
	}
	return ids
}

// AvCards is the layout of a gallery or kanban board.
type AvCards struct {
	Fields []AvPlace `json:"fields"`
}

// AvPlace is a column's place in a view.
type AvPlace struct {
	ID     ID   `json:"id"`
	Hidden bool `json:"hidden"`
}

// Places are the columns of a view in their order.
func (v AvView) Places() []AvPlace {
	switch {
	case v.Table != nil:
		return v.Table.Columns
	case v.Gallery != nil:
		return v.Gallery.Fields
	case v.Kanban != nil:
		return v.Kanban.Fields
	}
	return nil
}

// KeyValues is a column with its cells.
type KeyValues struct {
	Key    Key     `json:"key"`
	Values []Value `json:"values"`
}

// AttributeView reads a database; a missing one is Missing.
func (r *Reader) AttributeView(ctx context.Context, av ID) (AttributeView, error) {
	const path = "av/getAttributeView"
	data, err := read[struct {
		AV *AttributeView `json:"av"`
	}](ctx, r, path, args{"id": av}, 0)
	switch {
	case err != nil:
		return AttributeView{}, err
	case data.AV == nil:
		return AttributeView{}, missing(path)
	}
	return *data.AV, nil
}

// noDatabase turns the refusal of a call about a database into Missing when the
// database has no file.
func (r *Reader) noDatabase(ctx context.Context, path string, av ID, err error) error {
	if !errors.Is(err, Rejected) {
		return err
	}
	if _, probeErr := r.AttributeView(ctx, av); errors.Is(probeErr, Missing) {
		return missing(path)
	}
	return err
}

// Membership is a database that a block or item is a row of, with its cells.
type Membership struct {
	AvID      ID          `json:"avID" shape:"nonempty"`
	AvName    string      `json:"avName"`
	BlockIDs  []ID        `json:"blockIDs"` // the blocks that show the database
	KeyValues []KeyValues `json:"keyValues"`
}

// Memberships lists the databases a block is bound to.
func (r *Reader) Memberships(ctx context.Context, block ID) ([]Membership, error) {
	return read[[]Membership](ctx, r, "av/getAttributeViewKeys", args{"id": block}, 0)
}

// Item is one row of a database, also a detached one.
func (r *Reader) Item(ctx context.Context, av, item ID) ([]Membership, error) {
	return read[[]Membership](ctx, r, "av/getAttributeViewKeys", args{"avID": av, "itemID": item}, 0)
}

// Keys lists the columns of a database; a missing one has none.
func (r *Reader) Keys(ctx context.Context, av ID) ([]Key, error) {
	return read[[]Key](ctx, r, "av/getAttributeViewKeysByAvID", args{"avID": av}, 0)
}

// PrimaryValues is a page of rows by their primary cells, newest first.
type PrimaryValues struct {
	Name     string    `json:"name"`
	BlockIDs []ID      `json:"blockIDs"` // the blocks that show the database
	Rows     KeyValues `json:"rows"`
}

// PrimaryValues pages through the rows of a database that contain a keyword.
func (r *Reader) PrimaryValues(ctx context.Context, av ID, page, size int, keyword string) (PrimaryValues, error) {
	const path = "av/getAttributeViewPrimaryKeyValues"
	out, err := read[PrimaryValues](ctx, r, path,
		args{"id": av, "page": page, "pageSize": size, "keyword": keyword}, 0)
	return out, r.noDatabase(ctx, path, av, err)
}

// MirrorBlocks lists the blocks that show a database, in RefID.
func (r *Reader) MirrorBlocks(ctx context.Context, av ID) ([]RefDef, error) {
	data, err := read[struct {
		RefDefs []RefDef `json:"refDefs" shape:"nonnull"`
	}](ctx, r, "av/getMirrorDatabaseBlocks", args{"avID": av}, indexed)
	return data.RefDefs, err
}

// AvBacklink is a row of another database that a relation leads here from.
type AvBacklink struct {
	AvID            ID     `json:"avID" shape:"nonempty"`
	AvName          string `json:"avName"`
	BlockIDs        []ID   `json:"blockIDs"`
	DatabaseBlockID ID     `json:"databaseBlockID"`
	BoxID           ID     `json:"boxID"`
	DatabasePath    string `json:"databasePath"`
	ItemID          ID     `json:"itemID"`
	ValueID         ID     `json:"valueID"`
	Title           string `json:"title"`
	Icon            string `json:"icon"`
	BoundBlockID    ID     `json:"boundBlockID"`
	IsDetached      bool   `json:"isDetached"`
	Relations       []struct {
		KeyID        ID     `json:"keyID"`
		KeyName      string `json:"keyName"`
		TargetAvID   ID     `json:"targetAvID"`
		TargetItemID ID     `json:"targetItemID"`
	} `json:"relations"`
}

// AvBacklinks lists the rows that relate to an item.
func (r *Reader) AvBacklinks(ctx context.Context, av, item ID) ([]AvBacklink, error) {
	data, err := read[struct {
		Items []AvBacklink `json:"items"`
	}](ctx, r, "av/getAttributeViewBacklinks", args{"avID": av, "itemID": item}, indexed)
	return data.Items, err
}

// AvHit is a database found by name, with the block that shows it.
type AvHit struct {
	AvID       ID      `json:"avID" shape:"nonempty"`
	AvName     string  `json:"avName"`
	ViewName   string  `json:"viewName"`
	ViewID     ID      `json:"viewID"`
	ViewLayout string  `json:"viewLayout"`
	BlockID    ID      `json:"blockID"`
	HPath      string  `json:"hPath"`
	Children   []AvHit `json:"children"` // its views
}

// SearchAttributeViews finds databases of all notebooks by name, only those
// that some block shows.
func (r *Reader) SearchAttributeViews(ctx context.Context, keyword string) ([]AvHit, error) {
	data, err := read[struct {
		Results []AvHit `json:"results" shape:"nonnull"`
	}](ctx, r, "av/searchAttributeView", args{"keyword": keyword}, indexed)
	return data.Results, err
}

// UnusedAttributeViews lists databases that no block of an open notebook shows
// or is a row of. Item is the database's id.
func (r *Reader) UnusedAttributeViews(ctx context.Context) ([]UnusedItem, error) {
	return read[[]UnusedItem](ctx, r, "av/getUnusedAttributeViews", nil, indexed)
}

// FilterSort are the filters and sorts of the view that a block shows.
type FilterSort struct {
	Filters json.RawMessage `json:"filters" shape:"nonnull"`
	Sorts   json.RawMessage `json:"sorts" shape:"nonnull"`
}

// FilterSort reads the filters and sorts of the view that a block shows.
func (r *Reader) FilterSort(ctx context.Context, av, block ID) (FilterSort, error) {
	return read[FilterSort](ctx, r, "av/getAttributeViewFilterSort", args{"id": av, "blockID": optional(block)}, 0)
}

// ItemsByBlocks maps bound blocks to their item ids.
func (r *Reader) ItemsByBlocks(ctx context.Context, av ID, blocks []ID) (map[ID]ID, error) {
	return read[map[ID]ID](ctx, r, "av/getAttributeViewItemIDsByBoundIDs",
		args{"avID": av, "blockIDs": list(blocks)}, 0)
}

// BlocksByItems maps item ids to the blocks bound to them.
func (r *Reader) BlocksByItems(ctx context.Context, av ID, items []ID) (map[ID]ID, error) {
	return read[map[ID]ID](ctx, r, "av/getAttributeViewBoundBlockIDsByItemIDs",
		args{"avID": av, "itemIDs": list(items)}, 0)
}

// IDsIn are the ids anywhere in JSON of the kernel, such as the columns that
// filters name.
func IDsIn(parts ...json.RawMessage) (ids []ID) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if id := ID(v); id.Valid() {
				ids = append(ids, id)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	for _, p := range parts {
		var v any
		if json.Unmarshal(p, &v) == nil {
			walk(v)
		}
	}
	return ids
}
