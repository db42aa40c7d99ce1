package tools

import "encoding/json"

// AvColumn is a column of a database. Of Options, Relation and Rollup only what
// fits the type is there.
type AvColumn struct {
	ID       string      `json:"id"`
	Name     string      `json:"name"`
	Type     string      `json:"type"` // block is the primary column
	Icon     string      `json:"icon,omitempty"`
	Desc     string      `json:"desc,omitempty"`
	Format   string      `json:"numberFormat,omitempty"`
	Template string      `json:"template,omitempty"`
	Options  []AvOption  `json:"options,omitempty"`
	Relation *AvRelation `json:"relation,omitempty"`
	Rollup   *AvRollup   `json:"rollup,omitempty"`
	Hidden   bool        `json:"hidden,omitempty"` // in the view shown
}

// AvRelation ties a column to another database.
type AvRelation struct {
	AvID      string `json:"avID"`
	IsTwoWay  bool   `json:"isTwoWay"`
	BackKeyID string `json:"backKeyID,omitempty"`
}

// AvRollup ties a column to a column behind a relation.
type AvRollup struct {
	RelationKeyID string          `json:"relationKeyID"`
	KeyID         string          `json:"keyID"`
	Calc          json.RawMessage `json:"calc,omitempty"` // SiYuan's own form
}

// AvOption is a choice of a select column.
type AvOption struct {
	Name  string `json:"name"`
	Color string `json:"color,omitempty"` // "1" to "14"
	Desc  string `json:"desc,omitempty"`
}

// AvView is one way to look at a database.
type AvView struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Type   string `json:"type"` // table, gallery or kanban
	Stored bool   `json:"current,omitempty"`
}

// AvRow is a row with its cells by column id. A cell is a text, a number, true
// or false, a list of option names, or an object for dates, blocks, assets and
// relations; an empty cell is left out, and 0 is not empty.
type AvRow struct {
	ID      string         `json:"id"`
	GroupID string         `json:"groupID,omitempty"`
	Cells   map[string]any `json:"cells"`
}

// AvResolvedRow tells the ids of a row apart.
type AvResolvedRow struct {
	RowID         string   `json:"rowID"`
	SourceBlockID string   `json:"sourceBlockID,omitempty"` // the bound block
	ValueIDs      []string `json:"valueIDs,omitempty"`      // of its cells
}

// AvGetIn is the input of av.get.
type AvGetIn struct {
	ID      string `json:"id" ref:"database" doc:"Database id."`
	BlockID string `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
}

// AvFile is a database as it is stored, as far as the caller may read it.
type AvFile struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Columns []AvColumn `json:"columns"`
	Views   []AvView   `json:"views"`
	Rows    []AvRow    `json:"rows"`

	Templates       []AvTemplate `json:"newItemTemplates,omitempty"`
	DefaultTemplate string       `json:"defaultTemplateID,omitempty"`
}

// AvGetOut is the output of av.get.
type AvGetOut struct {
	ID           string          `json:"id"`
	Av           AvFile          `json:"av"`
	ResolvedRows []AvResolvedRow `json:"resolvedRows"`
	CutOut
}

// AvRenderIn is the input of av.render.
type AvRenderIn struct {
	ID         string `json:"id" ref:"database" doc:"Database id."`
	BlockID    string `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	ViewID     string `json:"viewID,omitempty" ref:"part" doc:"View id."`
	Page       *int   `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize   *int   `json:"pageSize,omitempty" min:"-1" max:"1000" doc:"Rows; default 10, -1 all."`
	Query      string `json:"query,omitempty" maxlen:"512" doc:"Words rows must contain."`
	IgnoreRows *bool  `json:"ignoreRows,omitempty" doc:"Columns only."`
}

// AvGroup is a group of rows of a grouped view.
type AvGroup struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Rows int    `json:"rows"`
}

// AvTable is the compact form of a view.
type AvTable struct {
	Columns  []AvColumn `json:"columns"`
	Rows     []AvRow    `json:"rows"`
	RowCount int        `json:"rowCount"` // on this page
	Groups   []AvGroup  `json:"groups,omitempty"`
}

// AvRenderOut is the output of av.render.
type AvRenderOut struct {
	ID    string          `json:"id"`
	AvID  string          `json:"avID"`
	Name  string          `json:"name"`
	View  AvView          `json:"view"`
	Views []AvView        `json:"views"`
	Table AvTable         `json:"table"`
	Data  []AvResolvedRow `json:"data,omitempty" full:"true"` // bound blocks and cell ids
	PageOut
	Hint string `json:"hint,omitempty"`
}

// AvKeysIn is the input of av.get_attribute_view_keys.
type AvKeysIn struct {
	ID string `json:"id" ref:"database" doc:"Database id."`
}

// AvKeysOut is the output of av.get_attribute_view_keys.
type AvKeysOut struct {
	AvID string     `json:"avID"`
	Keys []AvColumn `json:"keys"`
}

// AvFilterSortIn is the input of av.get_attribute_view_filter_sort.
type AvFilterSortIn struct {
	ID      string `json:"id" ref:"database" doc:"Database id."`
	BlockID string `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
}

// AvFilter is a condition on a column, or several joined by combination.
type AvFilter struct {
	Column      string     `json:"column,omitempty"`
	Operator    string     `json:"operator,omitempty"`
	Value       any        `json:"value,omitempty"` // as render shows a cell
	Combination string     `json:"combination,omitempty"`
	Filters     []AvFilter `json:"filters,omitempty"`
}

// AvSort orders a view by a column.
type AvSort struct {
	Column string `json:"column"`
	Order  string `json:"order"` // ASC or DESC
}

// AvFilterSortOut is the output of av.get_attribute_view_filter_sort.
type AvFilterSortOut struct {
	AvID    string     `json:"avID"`
	BlockID string     `json:"blockID,omitempty"`
	ViewID  string     `json:"viewID"`
	Filters []AvFilter `json:"filters"`
	Sorts   []AvSort   `json:"sorts"`
}

// AvSearchIn is the input of av.search.
type AvSearchIn struct {
	Keyword  string   `json:"keyword" maxlen:"512" doc:"Words in the database's name or its rows' titles."`
	Excludes []string `json:"excludes,omitempty" maxlen:"100" list:"words" doc:"Databases to leave out."`
}

// AvFound is a database that was found.
type AvFound struct {
	ID       string   `json:"id"`
	AvID     string   `json:"avID"`
	Name     string   `json:"name"`
	BlockIDs []string `json:"blockIDs"`       // that show it
	Rows     []string `json:"rows,omitempty"` // titles of rows that matched, at most three
}

// AvSearchOut is the output of av.search.
type AvSearchOut struct {
	Keyword string    `json:"keyword"`
	Results []AvFound `json:"results"`
	CutOut
}

// AvPrimaryIn is the input of av.get_primary_key_values.
type AvPrimaryIn struct {
	AvID     string `json:"avID" ref:"database" doc:"Database id."`
	Keyword  string `json:"keyword,omitempty" maxlen:"512" doc:"Words in the database's name or its rows' titles."`
	Page     *int   `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize *int   `json:"pageSize,omitempty" min:"1" max:"1000" doc:"Rows; default 16."`
}

// AvPrimaryRow is a row by its title.
type AvPrimaryRow struct {
	RowID   string `json:"rowID"`
	BlockID string `json:"blockID,omitempty"` // the bound block
	Content string `json:"content"`
}

// AvPrimaryOut is the output of av.get_primary_key_values.
type AvPrimaryOut struct {
	AvID     string         `json:"avID"`
	Name     string         `json:"name"`
	BlockIDs []string       `json:"blockIDs"` // that show the database
	Rows     []AvPrimaryRow `json:"rows"`
	PageOut
	Hint string `json:"hint,omitempty"`
}

// AvAddRowsIn is the input of av.add_rows.
type AvAddRowsIn struct {
	AvID              string   `json:"avID" ref:"database" doc:"Database id."`
	BlockIDs          []string `json:"blockIDs,omitempty" ref:"block" minlen:"1" maxlen:"200" list:"ordered" doc:"Blocks to bind as rows."`
	PrimaryKeyTexts   []string `json:"primaryKeyTexts,omitempty" minlen:"1" maxlen:"200" list:"ordered" doc:"Titles of rows bound to no block."`
	BlockID           string   `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	ViewID            string   `json:"viewID,omitempty" ref:"part" doc:"View id."`
	GroupID           string   `json:"groupID,omitempty" ref:"part" doc:"Group of that view, as render names it."`
	PreviousID        string   `json:"previousID,omitempty" ref:"part" doc:"Row to insert behind; at the top without it."`
	IgnoreDefaultFill *bool    `json:"ignoreDefaultFill,omitempty" doc:"Leave the view's default values out."`
}

// AvNewRow is a row that was asked for.
type AvNewRow struct {
	RowID          string `json:"rowID"`
	BlockID        string `json:"blockID,omitempty"`
	PrimaryKeyText string `json:"primaryKeyText,omitempty"`
	Existed        bool   `json:"existed,omitempty"` // the block was bound already
}

// AvAddRowsOut is the output of av.add_rows.
type AvAddRowsOut struct {
	Success         bool       `json:"success"`
	AvID            string     `json:"avID"`
	BlockIDs        []string   `json:"blockIDs,omitempty"`
	PrimaryKeyTexts []string   `json:"primaryKeyTexts,omitempty"`
	Rows            []AvNewRow `json:"rows"`
	Added           int        `json:"added"`
}

// AvRemoveRowsIn is the input of av.remove_rows.
type AvRemoveRowsIn struct {
	AvID    string   `json:"avID" ref:"database" doc:"Database id."`
	BlockID string   `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	SrcIDs  []string `json:"srcIDs" ref:"part" minlen:"1" maxlen:"200" list:"words" doc:"Row ids, or the blocks bound to them."`
}

// AvRemoveRowsOut is the output of av.remove_rows.
type AvRemoveRowsOut struct {
	Success      bool       `json:"success"`
	AvID         string     `json:"avID"`
	SrcIDs       []string   `json:"srcIDs"`
	Removed      int        `json:"removed"`
	Verification AvVerified `json:"verification"`
}

// AvVerified says what was read back after a write.
type AvVerified struct {
	Status string           `json:"status"` // verified
	Method string           `json:"method"` // read_back
	RowIDs []string         `json:"rowIDs,omitempty"`
	Cells  []AvVerifiedCell `json:"cells,omitempty"`
}

// AvVerifiedCell is a cell as it is stored now.
type AvVerifiedCell struct {
	RowID    string `json:"rowID"`
	ColumnID string `json:"columnID"`
	Observed any    `json:"observed"` // in render's form; null when empty
	Verified bool   `json:"verified"`
}

// AvAddColumnIn is the input of av.add_column.
type AvAddColumnIn struct {
	AvID          string `json:"avID" ref:"database" doc:"Database id."`
	BlockID       string `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	KeyID         string `json:"keyID,omitempty" ref:"part" doc:"Column id."`
	KeyName       string `json:"keyName" minlen:"1" maxlen:"512" doc:"Name of the column."`
	KeyType       string `json:"keyType" enum:"text|number|date|select|mSelect|url|email|phone|mAsset|template|created|updated|checkbox|relation|rollup|lineNumber" doc:"Type of the column."`
	KeyIcon       string `json:"keyIcon,omitempty" maxlen:"512" doc:"Icon of the column."`
	PreviousKeyID string `json:"previousKeyID,omitempty" ref:"part" doc:"Column to insert behind; first without it."`
}

// AvAddColumnOut is the output of av.add_column.
type AvAddColumnOut struct {
	Success bool   `json:"success"`
	AvID    string `json:"avID"`
	KeyID   string `json:"keyID"`
	KeyName string `json:"keyName"`
	KeyType string `json:"keyType"`
}

// AvRemoveColumnIn is the input of av.remove_column.
type AvRemoveColumnIn struct {
	AvID               string `json:"avID" ref:"database" doc:"Database id."`
	BlockID            string `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	KeyID              string `json:"keyID" ref:"part" doc:"Column id."`
	RemoveRelationDest *bool  `json:"removeRelationDest,omitempty" doc:"Also remove the other column of a two-way relation."`
}

// AvRemoveColumnOut is the output of av.remove_column.
type AvRemoveColumnOut struct {
	Success            bool   `json:"success"`
	AvID               string `json:"avID"`
	KeyID              string `json:"keyID"`
	RemoveRelationDest bool   `json:"removeRelationDest"`
}

// AvCell is a value for a cell, in the field that fits valueType. A value field
// left out, or an empty text or list, empties the cell.
type AvCell struct {
	RowID            string          `json:"rowID" ref:"part" doc:"Row id."`
	ColumnID         string          `json:"columnID" ref:"part" doc:"Column id."`
	ValueType        string          `json:"valueType" enum:"text|number|date|checkbox|select|multi_select|relation|url|email|phone|mAsset" doc:"Kind of value; it must fit the column."`
	Text             string          `json:"text,omitempty" doc:"Of text, or the title of a row bound to no block."`
	Number           *float64        `json:"number,omitempty" doc:"Of number."`
	NumberFormat     string          `json:"numberFormat,omitempty" maxlen:"64" doc:"How the number is shown: commas, percent, USD, …"`
	Date             json.RawMessage `json:"date,omitempty" doc:"Start: 2026-11-30, 2026-11-30T09:00, with or without a zone, or milliseconds."`
	EndDate          json.RawMessage `json:"endDate,omitempty" doc:"End of a range."`
	IncludeTime      *bool           `json:"includeTime,omitempty" doc:"false stores the day only."`
	Checked          *bool           `json:"checked,omitempty" doc:"Of checkbox."`
	Option           string          `json:"option,omitempty" maxlen:"512" doc:"Of select."`
	Options          []string        `json:"options,omitempty" maxlen:"100" doc:"Of multi_select."`
	RelationBlockIDs []string        `json:"relationBlockIDs,omitempty" ref:"part" maxlen:"200" list:"words" doc:"Of relation: row ids of the other database."`
	URL              string          `json:"url,omitempty" doc:"Of url."`
	Email            string          `json:"email,omitempty" doc:"Of email."`
	Phone            string          `json:"phone,omitempty" doc:"Of phone."`
	Assets           []AvAsset       `json:"assets,omitempty" maxlen:"50" doc:"Of mAsset."`
}

// AvAsset is a file or picture in a cell.
type AvAsset struct {
	Type    string `json:"type" enum:"image|file" doc:"image or file."`
	Content string `json:"content" minlen:"1" doc:"Path below assets/, or a web address."`
	Name    string `json:"name,omitempty" doc:"Shown name."`
}

// AvOneCell are the fields of one cell beside avID.
type AvOneCell struct {
	RowID            string          `json:"rowID,omitempty" ref:"part" doc:"Row id."`
	ColumnID         string          `json:"columnID,omitempty" ref:"part" doc:"Column id."`
	ValueType        string          `json:"valueType,omitempty" enum:"text|number|date|checkbox|select|multi_select|relation|url|email|phone|mAsset" legacy:"true" doc:"Kind of value; it must fit the column."`
	Text             string          `json:"text,omitempty" legacy:"true" doc:"Of text, or the title of a row bound to no block."`
	Number           *float64        `json:"number,omitempty" legacy:"true" doc:"Of number."`
	NumberFormat     string          `json:"numberFormat,omitempty" maxlen:"64" legacy:"true" doc:"How the number is shown: commas, percent, USD, …"`
	Date             json.RawMessage `json:"date,omitempty" legacy:"true" doc:"Start: 2026-11-30, 2026-11-30T09:00, with or without a zone, or milliseconds."`
	EndDate          json.RawMessage `json:"endDate,omitempty" legacy:"true" doc:"End of a range."`
	IncludeTime      *bool           `json:"includeTime,omitempty" legacy:"true" doc:"false stores the day only."`
	Checked          *bool           `json:"checked,omitempty" legacy:"true" doc:"Of checkbox."`
	Option           string          `json:"option,omitempty" maxlen:"512" legacy:"true" doc:"Of select."`
	Options          []string        `json:"options,omitempty" maxlen:"100" legacy:"true" doc:"Of multi_select."`
	RelationBlockIDs []string        `json:"relationBlockIDs,omitempty" ref:"part" maxlen:"200" list:"words" legacy:"true" doc:"Of relation: row ids of the other database."`
	URL              string          `json:"url,omitempty" legacy:"true" doc:"Of url."`
	Email            string          `json:"email,omitempty" legacy:"true" doc:"Of email."`
	Phone            string          `json:"phone,omitempty" legacy:"true" doc:"Of phone."`
	Assets           []AvAsset       `json:"assets,omitempty" maxlen:"50" legacy:"true" doc:"Of mAsset."`
}

// AvSetCellsIn is the input of av.set_cells.
type AvSetCellsIn struct {
	AvID    string   `json:"avID" ref:"database" doc:"Database id."`
	BlockID string   `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	Cells   []AvCell `json:"cells,omitempty" minlen:"1" maxlen:"200" doc:"Cells to set."`
	AvOneCell
}

// AvSetCellsOut is the output of av.set_cells.
type AvSetCellsOut struct {
	Success        bool       `json:"success"`
	AvID           string     `json:"avID"`
	Updated        int        `json:"updated"`
	CreatedOptions []string   `json:"createdOptions,omitempty"` // choices the columns did not have
	Verification   AvVerified `json:"verification"`
}

// AvDuplicateIn is the input of av.duplicate.
type AvDuplicateIn struct {
	AvID       string `json:"avID" ref:"database" doc:"Database id."`
	BlockID    string `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	PreviousID string `json:"previousID,omitempty" ref:"block" doc:"Block to insert the copy behind; the database's own without it."`
}

// AvDuplicateOut is the output of av.duplicate.
type AvDuplicateOut struct {
	Success       bool   `json:"success"`
	SourceAvID    string `json:"sourceAvID"`
	AvID          string `json:"avID"`
	BlockID       string `json:"blockID"` // shows the copy
	InsertedAfter string `json:"insertedAfter"`
}

// AvCreateIn is the input of av.create.
type AvCreateIn struct {
	BlockID string `json:"blockID" ref:"block" doc:"Document, container to write into, or block to write behind."`
	Name    string `json:"name,omitempty" maxlen:"512" doc:"Name of the database."`
}

// AvCreateOut is the output of av.create.
type AvCreateOut struct {
	Success bool       `json:"success"`
	AvID    string     `json:"avID"`
	BlockID string     `json:"blockID"` // shows it
	ViewID  string     `json:"viewID"`
	Name    string     `json:"name"`
	Columns []AvColumn `json:"columns"`
}
