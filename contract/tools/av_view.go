package tools

import (
	"encoding/json"

	"siyuan-broker/contract"
)

// AvViewIn names the view that an action changes.
type AvViewIn struct {
	AvID    string `json:"avID" ref:"database" doc:"Database id."`
	BlockID string `json:"blockID" ref:"block" doc:"Block that shows the database."`
	ViewID  string `json:"viewID" ref:"part" doc:"View id."`
}

// AvViewOut names the view that was changed. Changed is false where it was like
// that already and nothing was written.
type AvViewOut struct {
	Success bool   `json:"success"`
	AvID    string `json:"avID"`
	BlockID string `json:"blockID"`
	ViewID  string `json:"viewID"`
	Changed bool   `json:"changed"`
}

// AvAddViewIn is the input of av.add_view.
type AvAddViewIn struct {
	AvID    string `json:"avID" ref:"database" doc:"Database id."`
	BlockID string `json:"blockID" ref:"block" doc:"Block that shows the database."`
	ViewID  string `json:"viewID" ref:"part" doc:"View id."`
	Layout  string `json:"layout" enum:"table|gallery|kanban" doc:"Layout of the view."`
	Name    string `json:"name" minlen:"1" maxlen:"512" doc:"Name of the view."`
}

// AvAddViewOut is the output of av.add_view.
type AvAddViewOut struct {
	AvViewOut
	Layout string `json:"layout"`
	Name   string `json:"name"`
}

// AvSetFiltersIn is the input of av.set_filters.
type AvSetFiltersIn struct {
	AvViewIn
	Filters []json.RawMessage `json:"filters" maxlen:"50" list:"ordered" doc:"All filters; [] clears them."`
}

// AvSetFiltersOut is the output of av.set_filters.
type AvSetFiltersOut struct {
	AvViewOut
	Filters             []AvFilter `json:"filters"`
	CompleteReplacement bool       `json:"completeReplacement"`
}

// AvSortIn orders a view by a column.
type AvSortIn struct {
	Column string `json:"column" ref:"part" doc:"Column id."`
	Order  string `json:"order" enum:"ASC|DESC" doc:"Direction."`
}

// AvSetSortsIn is the input of av.set_sorts.
type AvSetSortsIn struct {
	AvViewIn
	Sorts []AvSortIn `json:"sorts" maxlen:"50" list:"ordered" doc:"All sorts, the first one first; [] clears them."`
}

// AvSetSortsOut is the output of av.set_sorts.
type AvSetSortsOut struct {
	AvViewOut
	Sorts               []AvSort `json:"sorts"`
	CompleteReplacement bool     `json:"completeReplacement"`
}

// AvGroupRange are the steps that numbers are grouped by.
type AvGroupRange struct {
	Start float64 `json:"numStart" doc:"First number."`
	End   float64 `json:"numEnd" doc:"Last number."`
	Step  float64 `json:"numStep" doc:"Size of a step."`
}

// AvGroupRule says by which column a view is grouped, and how; a field of "" is
// no grouping.
type AvGroupRule struct {
	Field     string        `json:"field" ref:"part" doc:"Column id; an empty one ends the grouping."`
	Method    int           `json:"method,omitempty" min:"0" max:"6" doc:"0 by value, 1 by range, 2 relative date, 3 day, 4 week, 5 month, 6 year."`
	Range     *AvGroupRange `json:"range,omitempty" doc:"With method 1."`
	Order     int           `json:"order,omitempty" min:"0" max:"3" doc:"0 ascending, 1 descending, 2 by hand, 3 as the options."`
	HideEmpty bool          `json:"hideEmpty,omitempty" doc:"Leave out empty groups."`
}

// AvSetGroupIn is the input of av.set_group.
type AvSetGroupIn struct {
	AvViewIn
	Group AvGroupRule `json:"group" doc:"How to group."`
}

// AvSetGroupOut is the output of av.set_group: the rule as it is stored. SiYuan
// chooses the order of options and of ticked boxes itself.
type AvSetGroupOut struct {
	AvViewOut
	Group AvGroupRule `json:"group"`
}

// AvSetVisibilityIn is the input of av.set_column_visibility.
type AvSetVisibilityIn struct {
	AvViewIn
	KeyID  string `json:"keyID" ref:"part" doc:"Column id."`
	Hidden bool   `json:"hidden" doc:"Hide the column, or show it."`
}

// AvSetVisibilityOut is the output of av.set_column_visibility.
type AvSetVisibilityOut struct {
	AvViewOut
	KeyID  string `json:"keyID"`
	Hidden bool   `json:"hidden"`
}

// AvSetOrderIn is the input of av.set_column_order.
type AvSetOrderIn struct {
	AvViewIn
	KeyIDs []string `json:"keyIDs" ref:"part" minlen:"1" maxlen:"200" list:"ordered,complete,words" doc:"All columns of the view in their new order."`
}

// AvSetOrderOut is the output of av.set_column_order.
type AvSetOrderOut struct {
	AvViewOut
	KeyIDs              []string `json:"keyIDs"`
	CompleteReplacement bool     `json:"completeReplacement"`
}

const exampleView = `"avID":"20240106120000-taskavs","blockID":"20240106120000-avblock","viewID":"20240106120000-avview1"`

// The actions of the av tool that change views.
var (
	AvAddView = define[AvAddViewIn, AvAddViewOut](Action{
		Name: "add_view", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Add a view, which the block then shows.",
		Guidance: []string{"viewID is a new id, such as 20260131120000-abc1234. A kanban board needs a select column."},
		Examples: []string{`{"avID":"20240106120000-taskavs","blockID":"20240106120000-avblock","viewID":"20260131120000-newview","layout":"gallery","name":"Cards"}`},
	})
	AvSetFilters = define[AvSetFiltersIn, AvSetFiltersOut](Action{
		Name: "set_filters", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, ParamAliases: byAvID,
		Summary: "Replace all filters of the view that a block shows.",
		Guidance: []string{
			`A filter is {"column":id,"operator":"=","value":"x"}, or {"combination":"and"|"or","filters":[…]}. The value is as render shows a cell, or a cell in SiYuan's own form.`,
			"Operators: =, !=, >, >=, <, <=, Contains, Does not contains, Is empty, Is not empty, Starts with, Ends with, Is between, Is true, Is false.",
		},
		Examples: []string{`{` + exampleView + `,"filters":[{"column":"20240106120000-keynote","operator":"Contains","value":"paint"}]}`},
	})
	AvSetSorts = define[AvSetSortsIn, AvSetSortsOut](Action{
		Name: "set_sorts", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Replace all sorts of the view that a block shows.",
		Examples: []string{`{` + exampleView + `,"sorts":[{"column":"20240106120000-keynote","order":"ASC"}]}`},
	})
	AvSetGroup = define[AvSetGroupIn, AvSetGroupOut](Action{
		Name: "set_group", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Group the view that a block shows by a column, or no longer.",
		Examples: []string{`{` + exampleView + `,"group":{"field":"20240106120000-keynote"}}`},
	})
	AvSetVisibility = define[AvSetVisibilityIn, AvSetVisibilityOut](Action{
		Name: "set_column_visibility", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Hide or show a column in the view that a block shows.",
		Examples: []string{`{` + exampleView + `,"keyID":"20240106120000-keynote","hidden":true}`},
	})
	AvSetOrder = define[AvSetOrderIn, AvSetOrderOut](Action{
		Name: "set_column_order", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Put the columns of the view that a block shows in order.",
		Guidance: []string{"The list names every column of the view, hidden ones too."},
		Examples: []string{`{` + exampleView + `,"keyIDs":["20240106120000-keytitl","20240106120000-keynumb","20240106120000-keynote","20240106120000-keypick","20240106120000-keydate","20240106120000-keyrela","20240106120000-keyfree","20240106120000-keyroll"]}`},
	})
)
