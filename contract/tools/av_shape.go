package tools

import (
	"encoding/json"

	"siyuan-broker/contract"
)

// AvShapeOut says of a column what became of it. Status is applied, or
// already_applied where nothing was written.
type AvShapeOut struct {
	Success bool   `json:"success"`
	AvID    string `json:"avID"`
	KeyID   string `json:"keyID"`
	Status  string `json:"status"`
	Changed bool   `json:"changed"`
}

// AvOptionIn is a choice of a select column.
type AvOptionIn struct {
	Name  string `json:"name" minlen:"1" maxlen:"512" doc:"Name."`
	Color string `json:"color,omitempty" enum:"1|2|3|4|5|6|7|8|9|10|11|12|13|14" doc:"Number of a colour."`
	Desc  string `json:"desc,omitempty" maxlen:"512" doc:"Description."`
}

// AvSetOptionsIn is the input of av.set_column_options.
type AvSetOptionsIn struct {
	AvID    string       `json:"avID" ref:"database" doc:"Database id."`
	BlockID string       `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	KeyID   string       `json:"keyID" ref:"part" doc:"Column id."`
	Choices []AvOptionIn `json:"options" maxlen:"200" list:"ordered" doc:"All options of the column; [] removes them."`
}

// AvSetOptionsOut is the output of av.set_column_options. SiYuan leaves the options
// it has in their places and puts new ones behind them; the status
// intermediate_option_order says that this is not the order that was asked for.
type AvSetOptionsOut struct {
	AvShapeOut
	OptionCount     int        `json:"optionCount"`
	ObservedOptions []AvOption `json:"observedOptions"`
}

// AvDuplicateRowsIn is the input of av.duplicate_rows.
type AvDuplicateRowsIn struct {
	AvID       string   `json:"avID" ref:"database" doc:"Database id."`
	BlockID    string   `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	SourceRows []string `json:"sourceRowIDs" ref:"part" minlen:"1" maxlen:"50" list:"ordered,words" doc:"Rows to copy, in order."`
	PreviousID string   `json:"previousID,omitempty" ref:"part" doc:"Row to insert behind; the copies are last without it."`
}

// AvDuplicateRowsOut is the output of av.duplicate_rows.
type AvDuplicateRowsOut struct {
	Success     bool     `json:"success"`
	AvID        string   `json:"avID"`
	SourceRows  []string `json:"sourceRowIDs"`
	Rows        []string `json:"rowIDs"` // the copies, in the order of their sources
	Copied      int      `json:"copied"`
	RelatedAvID []string `json:"relationDestinationAVIDs,omitempty"` // databases that a two-way relation changed as well
}

// AvTwoWayIn is the input of av.configure_two_way_relation.
type AvTwoWayIn struct {
	AvID        string `json:"avID" ref:"database" doc:"Database id."`
	BlockID     string `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	KeyID       string `json:"keyID" ref:"part" doc:"Column id."`
	DestAvID    string `json:"destinationAvID" ref:"database" doc:"Database that it leads to."`
	DestBlockID string `json:"destinationBlockID,omitempty" ref:"block" doc:"Block that shows that database."`
	BackKeyID   string `json:"backRelationKeyID" ref:"part" doc:"New id of the column that leads back, such as 20260131120000-abc1234."`
	SourceName  string `json:"sourceName" minlen:"1" maxlen:"512" doc:"Name of the relation column."`
	DestName    string `json:"destinationName" minlen:"1" maxlen:"512" doc:"Name of the column that leads back."`
}

// AvTwoWayOut is the output of av.configure_two_way_relation.
type AvTwoWayOut struct {
	AvShapeOut
	DestAvID   string `json:"destinationAvID"`
	BackKeyID  string `json:"backRelationKeyID"`
	SourceName string `json:"sourceName"`
	DestName   string `json:"destinationName"`
}

// AvCalc is what a rollup works out of the cells behind a relation.
type AvCalc struct {
	Operator string `json:"operator" maxlen:"64" doc:"Such as Sum, Average, Count values; an empty one shows the cells."`
}

// AvRollupIn is the input of av.configure_rollup.
type AvRollupIn struct {
	AvID          string `json:"avID" ref:"database" doc:"Database id."`
	BlockID       string `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	KeyID         string `json:"keyID" ref:"part" doc:"Column id."`
	RelationKeyID string `json:"relationKeyID" ref:"part" doc:"Relation column to follow."`
	DestKeyID     string `json:"destinationKeyID" ref:"part" doc:"Column of the database behind it."`
	Calc          AvCalc `json:"calc" doc:"What to work out."`
}

// AvRollupOut is the output of av.configure_rollup.
type AvRollupOut struct {
	AvShapeOut
	RelationKeyID string `json:"relationKeyID"`
	DestKeyID     string `json:"destinationKeyID"`
	Calc          AvCalc `json:"calc"`
	FilteredBy    int    `json:"filteredBy,omitempty"` // views that filter by the column: SiYuan drops such filters
}

// AvSetRelationIn is the input of av.set_relation.
type AvSetRelationIn struct {
	AvID    string   `json:"avID" ref:"database" doc:"Database id."`
	BlockID string   `json:"blockID,omitempty" ref:"block" doc:"Block that shows the database."`
	KeyID   string   `json:"keyID" ref:"part" doc:"Column id."`
	ItemID  string   `json:"itemID" ref:"part" doc:"Row id."`
	Related []string `json:"relatedItemIDs" ref:"part" maxlen:"200" list:"ordered,words" doc:"All rows of the other database; [] clears the cell."`
}

// AvSetRelationOut is the output of av.set_relation.
type AvSetRelationOut struct {
	AvShapeOut
	ItemID  string   `json:"itemID"`
	Related []string `json:"relatedItemIDs"`
	Cleared bool     `json:"cleared"`
	Reverse bool     `json:"reverseReadback"` // the column that leads back was read and shows it
}

// AvPlace is where the documents of a template go.
type AvPlace struct {
	BoxID string `json:"boxID" ref:"notebook" doc:"Notebook id."`
	Path  string `json:"path" minlen:"1" maxlen:"512" doc:"Readable path of the document, such as /Tasks/New; one that ends with / is the place of untitled documents."`
}

// AvPreset is what a template puts into a cell.
type AvPreset struct {
	Mode  string          `json:"mode" enum:"static|currentTime" doc:"currentTime for the day of a date column."`
	Value json.RawMessage `json:"value,omitempty" doc:"With static: as render shows a cell, or a cell in SiYuan's own form."`
}

// AvTemplateIn is a template for new rows.
type AvTemplateIn struct {
	ID     string              `json:"id" ref:"part" doc:"Template id."`
	Name   string              `json:"name" minlen:"1" maxlen:"512" doc:"Name."`
	Target string              `json:"targetType" enum:"detached|document" doc:"What the row is bound to."`
	Place  *AvPlace            `json:"saveLocation,omitempty" doc:"Of document: where it goes."`
	Fields map[string]AvPreset `json:"fieldValues,omitempty" doc:"Cells by column id."`
}

// AvSetTemplatesIn is the input of av.set_new_item_templates.
type AvSetTemplatesIn struct {
	AvID      string         `json:"avID" ref:"database" doc:"Database id."`
	BlockID   string         `json:"blockID" ref:"block" doc:"Block that shows the database."`
	Templates []AvTemplateIn `json:"templates" maxlen:"50" list:"ordered" doc:"All templates; [] removes them."`
	Default   string         `json:"defaultTemplateID" doc:"Template that is used without asking; an empty one for none."`
}

// AvSetTemplatesOut is the output of av.set_new_item_templates.
type AvSetTemplatesOut struct {
	Success       bool   `json:"success"`
	AvID          string `json:"avID"`
	TemplateCount int    `json:"templateCount"`
	Default       string `json:"defaultTemplateID"`
	Status        string `json:"status"`
	Changed       bool   `json:"changed"`
}

// AvFromTemplateIn is the input of av.create_from_template.
type AvFromTemplateIn struct {
	AvID       string `json:"avID" ref:"database" doc:"Database id."`
	BlockID    string `json:"blockID" ref:"block" doc:"Block that shows the database."`
	ViewID     string `json:"viewID,omitempty" ref:"part" doc:"View id."`
	TemplateID string `json:"templateID" ref:"part" doc:"Template id."`
	PreviousID string `json:"previousID,omitempty" ref:"part" doc:"Row to insert behind; first without it."`
	GroupID    string `json:"groupID,omitempty" ref:"part" doc:"Group of that view, as render names it."`
}

// AvFromTemplateOut is the output of av.create_from_template.
type AvFromTemplateOut struct {
	Success    bool             `json:"success"`
	AvID       string           `json:"avID"`
	ItemID     string           `json:"itemID"`
	BlockID    string           `json:"blockID"` // the document, or itemID of a row of its own
	IsDetached bool             `json:"isDetached"`
	Content    string           `json:"content"`
	Readback   []AvVerifiedCell `json:"fieldReadback"`
}

// AvTemplate is a template for new rows as it is stored.
type AvTemplate struct {
	ID     string         `json:"id"`
	Name   string         `json:"name"`
	Target string         `json:"targetType"`
	Place  *AvPlace       `json:"saveLocation,omitempty"`
	Fields map[string]any `json:"fieldValues,omitempty"` // as render shows cells; currentTime for that mode
}

// The actions of the av tool that change what columns are, and rows by them.
var (
	AvSetOptions = define[AvSetOptionsIn, AvSetOptionsOut](Action{
		Name: "set_column_options", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Lasting: true, Off: true, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Replace all options of a select or mSelect column; cells lose those that are dropped.",
		Guidance: []string{"Options that are there keep their places, new ones come behind them, and no second write is made for the order."},
		Examples: []string{`{"avID":"20240106120000-taskavs","keyID":"20240106120000-keypick","options":[{"name":"Open","color":"1"}]}`},
	})
	AvDuplicateRows = define[AvDuplicateRowsIn, AvDuplicateRowsOut](Action{
		Name: "duplicate_rows", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Off: true, Guarded: OnManifest, ParamAliases: byAvID,
		Summary:  "Copy rows with their cells; a copy is bound to no block.",
		Guidance: []string{"Two-way relations change the other database too, which needs level rw."},
		Examples: []string{`{"avID":"20240106120000-taskavs","sourceRowIDs":["20240106120001-rowloos"]}`},
	})
	AvSetTemplates = define[AvSetTemplatesIn, AvSetTemplatesOut](Action{
		Name: "set_new_item_templates", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Lasting: true, Off: true, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Replace all templates for new rows.",
		Guidance: []string{"get shows those there are. A template of documents needs level rw in the notebook they go to, and a path without template functions."},
		Examples: []string{`{"avID":"20240106120000-taskavs","blockID":"20240106120000-avblock","templates":[{"id":"20240106120000-tmplate","name":"Errand","targetType":"detached","fieldValues":{"20240106120000-keynote":{"mode":"static","value":"by bike"}}}],"defaultTemplateID":""}`},
	})
	AvFromTemplate = define[AvFromTemplateIn, AvFromTemplateOut](Action{
		Name: "create_from_template", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Off: true, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Add a row as a template for new rows says, with its document where it makes one.",
		Rules:    []Rule{Needs("groupID", "", "viewID")},
		Guidance: []string{"A template of documents must name the place they go to. One that may query is refused while anything is hidden from you."},
		Examples: []string{`{"avID":"20240106120000-taskavs","blockID":"20240106120000-avblock","templateID":"20240106120000-tmplone"}`},
	})
	AvTwoWay = define[AvTwoWayIn, AvTwoWayOut](Action{
		Name: "configure_two_way_relation", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Lasting: true, Off: true, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Tie a relation column to another database, with a new column there that leads back.",
		Guidance: []string{"Both databases need level rw. A column that leads to another database already is left alone."},
		Examples: []string{`{"avID":"20240106120000-taskavs","keyID":"20240106120000-keyfree","destinationAvID":"20240106120000-peopavs","backRelationKeyID":"20260131120000-backkey","sourceName":"Owner","destinationName":"Tasks"}`},
	})
	AvConfigureRollup = define[AvRollupIn, AvRollupOut](Action{
		Name: "configure_rollup", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Lasting: true, Off: true, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Say what a rollup column collects behind a relation.",
		Guidance: []string{"The database behind the relation needs level r. SiYuan drops filters that use the column."},
		Examples: []string{`{"avID":"20240106120000-taskavs","keyID":"20240106120000-keyroll","relationKeyID":"20240106120000-keyrela","destinationKeyID":"20240106120000-keyages","calc":{"operator":"Sum"}}`},
	})
	AvSetRelation = define[AvSetRelationIn, AvSetRelationOut](Action{
		Name: "set_relation", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Off: true, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Replace the rows that a relation cell leads to; the way back is read as well.",
		Guidance: []string{"The ids are those of rows, not of the blocks bound to them. A two-way relation changes the other database too, which needs level rw."},
		Examples: []string{`{"avID":"20240106120000-taskavs","keyID":"20240106120000-keyrela","itemID":"20240106120001-rowloos","relatedItemIDs":["20240106120001-rowanna"]}`},
	})
)
