package av

import "encoding/json"

// Spec is the version of the file format.
const Spec = 5

// Database is one file. Columns hold their values; the view holds their order
// and that of the rows ("items").
type Database struct {
	Spec    int       `json:"spec"`
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Columns []*Column `json:"keyValues"`
	KeyIDs  []string  `json:"keyIDs"`
	ViewID  string    `json:"viewID"`
	Views   []*View   `json:"views"`

	NewItemTemplates  []*ItemTemplate `json:"newItemTemplates,omitempty"`
	DefaultTemplateID string          `json:"defaultTemplateID,omitempty"`
}

// Column is a key with the values of all rows that have one.
type Column struct {
	Key    *Key     `json:"key"`
	Values []*Value `json:"values,omitempty"`
}

// Key describes a column.
type Key struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Type         string    `json:"type"`
	Icon         string    `json:"icon"`
	Desc         string    `json:"desc"`
	Options      []*Option `json:"options,omitempty"`
	NumberFormat string    `json:"numberFormat"`
	Template     string    `json:"template"`
	Relation     *Relation `json:"relation,omitempty"`
	Rollup       *Rollup   `json:"rollup,omitempty"`
}

// Rollup says which column of related rows a rollup column collects.
type Rollup struct {
	RelationKeyID string `json:"relationKeyID"`
	KeyID         string `json:"keyID"`
	Calc          *Calc  `json:"calc"`
}

// Calc is a calculation over collected values; it is kept, not carried out.
type Calc struct {
	Operator string          `json:"operator"`
	Result   json.RawMessage `json:"result"`
}

// Option is a choice of a select column; colours are "1" to "14".
type Option struct {
	Name  string `json:"name"`
	Color string `json:"color"`
	Desc  string `json:"desc"`
}

// Relation says which database a relation column points to.
type Relation struct {
	AvID      string `json:"avID"`
	IsTwoWay  bool   `json:"isTwoWay"`
	BackKeyID string `json:"backKeyID"`
}

// View is one way to look at a database. Of Table, Gallery and Kanban the one
// named by Type is there.
type View struct {
	ID               string            `json:"id"`
	Icon             string            `json:"icon"`
	Name             string            `json:"name"`
	HideAttrViewName bool              `json:"hideAttrViewName"`
	Desc             string            `json:"desc"`
	Filters          []json.RawMessage `json:"filters"`
	Sorts            []json.RawMessage `json:"sorts,omitempty"`
	PageSize         int               `json:"pageSize"`
	Type             string            `json:"type"`
	Table            *Table            `json:"table,omitempty"`
	Gallery          *Cards            `json:"gallery,omitempty"`
	Kanban           *Cards            `json:"kanban,omitempty"`
	ItemIDs          []string          `json:"itemIds,omitempty"`
	Group            *Group            `json:"group,omitempty"`
	GroupCreated     int64             `json:"groupCreated"`
	Groups           []*View           `json:"groups,omitempty"`
	GroupItemIDs     []string          `json:"groupItemIds"`
	GroupFolded      bool              `json:"groupFolded"`
	GroupHidden      int               `json:"groupHidden"`
	GroupSort        int               `json:"groupSort"`
}

// Table is the layout of a table view.
type Table struct {
	Spec      int            `json:"spec"`
	ID        string         `json:"id"`
	ShowIcon  bool           `json:"showIcon"`
	WrapField bool           `json:"wrapField"`
	Columns   []*TableColumn `json:"columns"`
	RowIDs    []string       `json:"rowIds"`
}

// Cards is the layout of a gallery or kanban view.
type Cards struct {
	Spec      int            `json:"spec"`
	ID        string         `json:"id"`
	ShowIcon  bool           `json:"showIcon"`
	WrapField bool           `json:"wrapField"`
	CoverFrom int            `json:"coverFrom"`
	CardSize  int            `json:"cardSize"`
	Fields    []*TableColumn `json:"fields"`
	CardIDs   []string       `json:"cardIds"`
}

// Group says by which column a view is grouped, and how.
type Group struct {
	Field     string     `json:"field"`
	Method    int        `json:"method"`
	Range     *GroupSpan `json:"range,omitempty"`
	Order     int        `json:"order"`
	HideEmpty bool       `json:"hideEmpty"`
}

// GroupSpan are the steps that numbers are grouped by.
type GroupSpan struct {
	Start float64 `json:"numStart"`
	End   float64 `json:"numEnd"`
	Step  float64 `json:"numStep"`
}

// ItemTemplate is a template for new rows.
type ItemTemplate struct {
	ID           string                `json:"id"`
	Name         string                `json:"name"`
	Icon         string                `json:"icon,omitempty"`
	TargetType   string                `json:"targetType"` // detached or document
	FieldValues  map[string]*Preset    `json:"fieldValues,omitempty"`
	SaveLocation *ItemTemplateLocation `json:"saveLocation,omitempty"`
	ContentPath  string                `json:"contentTemplatePath,omitempty"`
}

// ItemTemplateLocation is where the documents of a template go.
type ItemTemplateLocation struct {
	BoxID        string `json:"boxID"`
	PathTemplate string `json:"pathTemplate"`
}

// Preset is what a template puts into a cell.
type Preset struct {
	Mode  string `json:"mode"` // static or currentTime
	Value *Value `json:"value,omitempty"`
}

// TableColumn is the place and look of a column.
type TableColumn struct {
	ID     string `json:"id"`
	Wrap   bool   `json:"wrap"`
	Hidden bool   `json:"hidden"`
	Pin    bool   `json:"pin"`
	Width  string `json:"width"`
}

// Value is a cell. BlockID is the row it belongs to, not the bound block, which
// is Block.ID. Times are milliseconds.
type Value struct {
	ID         string         `json:"id,omitempty"`
	KeyID      string         `json:"keyID,omitempty"`
	BlockID    string         `json:"blockID,omitempty"`
	Type       string         `json:"type,omitempty"`
	IsDetached bool           `json:"isDetached,omitempty"`
	CreatedAt  int64          `json:"createdAt,omitempty"`
	UpdatedAt  int64          `json:"updatedAt,omitempty"`
	Block      *ValueBlock    `json:"block,omitempty"`
	Text       *ValueText     `json:"text,omitempty"`
	Number     *ValueNumber   `json:"number,omitempty"`
	Date       *ValueDate     `json:"date,omitempty"`
	MSelect    []*ValueSelect `json:"mSelect,omitempty"`
	URL        *ValueText     `json:"url,omitempty"`
	Email      *ValueText     `json:"email,omitempty"`
	Phone      *ValueText     `json:"phone,omitempty"`
	MAsset     []*ValueAsset  `json:"mAsset,omitempty"`
	Template   *ValueText     `json:"template,omitempty"`
	Created    *ValueTime     `json:"created,omitempty"`
	Updated    *ValueTime     `json:"updated,omitempty"`
	Checkbox   *ValueCheckbox `json:"checkbox,omitempty"`
	Relation   *ValueRelation `json:"relation,omitempty"`
	Rollup     *ValueRollup   `json:"rollup,omitempty"`
}

// ValueBlock is a primary value; ID is the bound block and empty for a row of
// its own.
type ValueBlock struct {
	ID      string `json:"id,omitempty"`
	Icon    string `json:"icon,omitempty"`
	Content string `json:"content"`
	Created int64  `json:"created"`
	Updated int64  `json:"updated"`
}

// ValueText is the value of a text, url, email, phone or template column.
type ValueText struct {
	Content string `json:"content"`
}

// ValueNumber is the value of a number column.
type ValueNumber struct {
	Content          float64 `json:"content"`
	IsNotEmpty       bool    `json:"isNotEmpty"`
	Format           string  `json:"format"`
	FormattedContent string  `json:"formattedContent"`
}

// ValueDate is the value of a date column, in milliseconds.
type ValueDate struct {
	Content          int64  `json:"content"`
	IsNotEmpty       bool   `json:"isNotEmpty"`
	HasEndDate       bool   `json:"hasEndDate"`
	IsNotTime        bool   `json:"isNotTime"`
	Content2         int64  `json:"content2"`
	IsNotEmpty2      bool   `json:"isNotEmpty2"`
	FormattedContent string `json:"formattedContent"`
}

// ValueSelect is one choice of a select or multi-select column.
type ValueSelect struct {
	Content string `json:"content"`
	Color   string `json:"color"`
}

// ValueAsset is one file of an asset column.
type ValueAsset struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Content string `json:"content"`
}

// ValueTime is the value of a created or updated column.
type ValueTime struct {
	Content          int64  `json:"content"`
	IsNotEmpty       bool   `json:"isNotEmpty"`
	Content2         int64  `json:"content2"`
	IsNotEmpty2      bool   `json:"isNotEmpty2"`
	FormattedContent string `json:"formattedContent"`
}

// ValueCheckbox is the value of a checkbox column.
type ValueCheckbox struct {
	Checked bool `json:"checked"`
}

// ValueRelation names rows of another database; Contents are their primary
// values, filled when rendered.
type ValueRelation struct {
	BlockIDs []string `json:"blockIDs"`
	Contents []*Value `json:"contents"`
}

// ValueRollup collects values of related rows.
type ValueRollup struct {
	Contents []*Value `json:"contents"`
}
