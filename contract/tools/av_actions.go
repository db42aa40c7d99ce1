package tools

import "siyuan-broker/contract"

// byAvID and byID let an action that names its database one way be called the
// other.
var (
	byAvID = map[string]string{"id": "avID"}
	byID   = map[string]string{"avID": "id"}
)

// The actions of the av tool.
var (
	AvGet = define[AvGetIn, AvGetOut](Action{
		Name: "get", Kind: Read, Level: contract.Read, Scope: ScopeTargets, ParamAliases: byID,
		Summary:  "Read a whole database as stored: columns, views and all cells, with the ids of each row told apart.",
		Guidance: []string{"For a look at the rows use render."},
		Examples: []string{`{"id":"20240106120000-taskavs"}`},
	})
	AvRender = define[AvRenderIn, AvRenderOut](Action{
		Name: "render", Kind: Read, Level: contract.Read, Scope: ScopeTargets, ParamAliases: byID,
		Summary: "Show a page of a database as one of its views filters and sorts it.",
		Rules:   []Rule{Replaced("createIfNotExist", "av.create"), Replaced("groupPaging", "page and pageSize, which count the rows of all groups")},
		Guidance: []string{
			"First ignoreRows for the columns, then a query that finds the row.",
			"Cells that are empty are left out; 0 is not empty. Dates carry the zone of the machine SiYuan runs on.",
			"Without viewID it is the view of blockID, else the one the person looked at last, which reading does not change.",
		},
		Examples: []string{`{"id":"20240106120000-taskavs","query":"paint"}`},
	})
	AvKeys = define[AvKeysIn, AvKeysOut](Action{
		Name: "get_attribute_view_keys", Kind: Read, Level: contract.Read, Scope: ScopeTargets, ParamAliases: byID,
		Summary:  "List the columns of a database.",
		Examples: []string{`{"id":"20240106120000-taskavs"}`},
	})
	AvFilterSort = define[AvFilterSortIn, AvFilterSortOut](Action{
		Name: "get_attribute_view_filter_sort", Kind: Read, Level: contract.Read, Scope: ScopeTargets, ParamAliases: byID,
		Summary:  "Read the filters and sorts of the view that a block shows, or of the current one.",
		Examples: []string{`{"id":"20240106120000-taskavs"}`},
	})
	AvSearch = define[AvSearchIn, AvSearchOut](Action{
		Name: "search", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary:  "Find databases by their names and by the titles of their rows.",
		Examples: []string{`{"keyword":"tasks"}`},
	})
	AvPrimary = define[AvPrimaryIn, AvPrimaryOut](Action{
		Name: "get_primary_key_values", Kind: Read, Level: contract.Read, Scope: ScopeTargets, ParamAliases: byAvID,
		Summary:  "List rows by their titles.",
		Examples: []string{`{"avID":"20240106120000-taskavs"}`},
	})
	AvCreate = define[AvCreateIn, AvCreateOut](Action{
		Name: "create", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, ParamAliases: map[string]string{"parentID": "blockID"},
		Summary:  "Make an empty database in a new block: at the end of a document or container, else behind the block.",
		Guidance: []string{"It begins with a primary column and a select column."},
		Examples: []string{`{"blockID":"20240102100200-betadoc","name":"Reading list"}`},
	})
	AvAddRows = define[AvAddRowsIn, AvAddRowsOut](Action{
		Name: "add_rows", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, ParamAliases: byAvID,
		Summary: "Add rows: blocks to bind, titles of new rows, or both.",
		Rules:   []Rule{AtLeastOne("blockIDs", "primaryKeyTexts"), Needs("groupID", "", "viewID")},
		Guidance: []string{
			"A block that is bound already keeps its row; it is reported with existed.",
			"Binding notes the database in the block, so its notebook needs level rw.",
		},
		Examples: []string{`{"avID":"20240106120000-taskavs","primaryKeyTexts":["Buy paint"]}`, `{"avID":"20240106120000-taskavs","blockIDs":["20240102110003-block03"]}`},
	})
	AvRemoveRows = define[AvRemoveRowsIn, AvRemoveRowsOut](Action{
		Name: "remove_rows", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Lasting: true, Guarded: OnManifest, ParamAliases: byAvID,
		Summary:  "Remove rows with their cells; blocks that were bound stay.",
		Examples: []string{`{"avID":"20240106120000-taskavs","srcIDs":["20240106120001-rowloos"]}`},
	})
	AvAddColumn = define[AvAddColumnIn, AvAddColumnOut](Action{
		Name: "add_column", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Add a column to all views.",
		Guidance: []string{"A relation or rollup column is empty until it is configured."},
		Examples: []string{`{"avID":"20240106120000-taskavs","keyName":"Due","keyType":"date"}`},
	})
	AvRemoveColumn = define[AvRemoveColumnIn, AvRemoveColumnOut](Action{
		Name: "remove_column", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Lasting: true, Guarded: OnState,
		ParamAliases: map[string]string{"id": "avID", "columnID": "keyID"},
		Summary:      "Remove a column with all its cells.",
		Guidance:     []string{"The column of a two-way relation changes the other database too, which needs level rw."},
		Examples:     []string{`{"avID":"20240106120000-taskavs","keyID":"20240106120000-keynote"}`},
	})
	AvSetCells = define[AvSetCellsIn, AvSetCellsOut](Action{
		Name: "set_cells", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnManifest,
		ParamAliases: map[string]string{"id": "avID", "items": "cells"},
		Rules:        []Rule{ExactlyOne([]string{"cells"}, []string{"rowID", "columnID", "valueType"})},
		Summary:      "Set cells; each is read back.",
		Guidance: []string{
			"rowID is the id of the row, as render shows it, not of the block bound to it.",
			"Without its value field, or with an empty one, a cell is emptied. 0 is a value.",
			"An option that a column does not have is made, but not where one differs from it only in case.",
			"Columns that SiYuan computes cannot be set, nor the title of a row that is bound to a block.",
			"A two-way relation changes the other database too, which needs level rw.",
		},
		Examples: []string{
			`{"avID":"20240106120000-taskavs","cells":[{"rowID":"20240106120001-rowloos","columnID":"20240106120000-keynote","valueType":"text","text":"Done"}]}`,
			`{"avID":"20240106120000-taskavs","rowID":"20240106120001-rowloos","columnID":"20240106120000-keynumb","valueType":"number","number":0}`,
		},
	})
	AvDuplicate = define[AvDuplicateIn, AvDuplicateOut](Action{
		Name: "duplicate", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, ParamAliases: byAvID,
		Summary:  "Copy a database with its rows into a new block.",
		Guidance: []string{"Bound blocks become rows of both."},
		Examples: []string{`{"avID":"20240106120000-taskavs"}`},
	})
)

func avTool() *Tool {
	return &Tool{
		Name:    "av",
		Title:   "Databases",
		Purpose: "Databases (attribute views): tables whose rows may be bound to blocks.",
		Notes:   []string{"A row id is neither the id of the block bound to the row nor that of a cell."},
		Fields: map[string]string{
			"previousID": "Row, or block for a copy, to insert behind.",
			"pageSize":   "Rows on a page.",
			"name":       "Name of the database, or of the view.",
			"blockID":    "Block that shows the database, or place for a new one.",
		},
		Actions: []*Action{
			AvGet.Action, AvRender.Action, AvKeys.Action, AvFilterSort.Action, AvSearch.Action, AvPrimary.Action, AvCreate.Action,
			AvAddRows.Action, AvRemoveRows.Action, AvAddColumn.Action, AvRemoveColumn.Action, AvSetCells.Action, AvDuplicate.Action,
			AvAddView.Action, AvSetFilters.Action, AvSetSorts.Action, AvSetGroup.Action, AvSetVisibility.Action, AvSetOrder.Action,
			AvSetOptions.Action, AvDuplicateRows.Action, AvSetRelation.Action, AvTwoWay.Action, AvConfigureRollup.Action,
			AvSetTemplates.Action, AvFromTemplate.Action,
		},
	}
}
