package tools

import "siyuan-broker/contract"

// TagListIn is the input of tag.list. The last three have no use any more: they
// spoke to SiYuan's window.
type TagListIn struct {
	Keyword           string `json:"keyword,omitempty" doc:"Part of the label." maxlen:"512"`
	Sort              *int   `json:"sort,omitempty" legacy:"true" min:"0" max:"256" doc:"Not used; sorted by label."`
	IgnoreMaxListHint bool   `json:"ignoreMaxListHint,omitempty" legacy:"true" doc:"Not used."`
	App               string `json:"app,omitempty" legacy:"true" maxlen:"128" doc:"Not used."`
}

// Tag is a label with the number of blocks that carry it, as far as the caller
// may read.
type Tag struct {
	Label string `json:"label"` // levels are joined by /
	Count int    `json:"count"`
}

// TagListOut is the output of tag.list.
type TagListOut struct {
	Tags []Tag `json:"tags"`
	CutOut
}

// TagRenameIn is the input of tag.rename.
type TagRenameIn struct {
	OldLabel string `json:"oldLabel" doc:"Tag as it is, without #." minlen:"1" maxlen:"512"`
	NewLabel string `json:"newLabel" doc:"Its new label." minlen:"1" maxlen:"512"`
}

// TagRenameOut is the output of tag.rename.
type TagRenameOut struct {
	Success   bool   `json:"success"`
	OldLabel  string `json:"oldLabel"`
	NewLabel  string `json:"newLabel"`
	Documents int    `json:"documents"` // that were changed
}

// TagRemoveIn is the input of tag.remove.
type TagRemoveIn struct {
	Label string `json:"label" doc:"Tag without #." minlen:"1" maxlen:"512"`
}

// TagRemoveOut is the output of tag.remove.
type TagRemoveOut struct {
	Success   bool   `json:"success"`
	Label     string `json:"label"`
	Documents int    `json:"documents"` // that were changed
}

// The actions of the tag tool.
var (
	TagList = define[TagListIn, TagListOut](Action{
		Name: "list", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary:      "List the tags in use, with the number of blocks of each.",
		ParamAliases: map[string]string{"query": "keyword"},
		Guidance:     []string{"To find the blocks of a tag search for it with search.fulltext, or query the column tag with search.query_sql."},
		Examples:     []string{`{"keyword":"project"}`},
	})
	TagRename = define[TagRenameIn, TagRenameOut](Action{
		Name: "rename", Kind: Write, Level: contract.ReadWrite, Scope: ScopeWorkspace, Switch: contract.SwitchTags, Dangerous: true, Lasting: true, Guarded: OnManifest,
		Summary: "Rename a tag, and the tags below it, in every notebook.",
		Guidance: []string{
			"It needs the level rw in every notebook that has the tag, and is refused while any notebook is hidden from you.",
			"A new label that is in use merges the two.",
		},
		Examples: []string{`{"oldLabel":"urgent","newLabel":"soon"}`},
	})
	TagRemove = define[TagRemoveIn, TagRemoveOut](Action{
		Name: "remove", Kind: Delete, Level: contract.ReadWriteDelete, Scope: ScopeWorkspace, Switch: contract.SwitchTags, Dangerous: true, Lasting: true, Tier: Advanced, Guarded: OnManifest,
		Summary: "Remove a tag with its text from every notebook; tags below it stay.",
		Guidance: []string{
			"It needs the level rwd in every notebook that has the tag, and is refused while any notebook is hidden from you.",
		},
		Examples: []string{`{"label":"urgent"}`},
	})
)

func tagTool() *Tool {
	return &Tool{
		Name:    "tag",
		Title:   "Tags",
		Purpose: "Tags (#label#) over all notes.",
		Actions: []*Action{TagList.Action, TagRename.Action, TagRemove.Action},
	}
}
