package tools

import "siyuan-broker/contract"

// LinkTarget is a document that an agent wants to link to, under a name of its own.
type LinkTarget struct {
	Key   string `json:"key" doc:"Your own name for it, unique in the call." minlen:"1" maxlen:"128"`
	ID    string `json:"id,omitempty" ref:"doc,r" doc:"Document right below parentId."`
	Title string `json:"title,omitempty" doc:"Title of the document to create, without / and \\." minlen:"1" maxlen:"256"`
}

// DocumentEnsureLinksIn is the input of document.ensure_link_targets.
type DocumentEnsureLinksIn struct {
	Notebook string       `json:"notebook" ref:"notebook,r" doc:"Notebook id."`
	ParentID string       `json:"parentId" ref:"doc,r" doc:"Document that the targets are right below."`
	Mode     string       `json:"mode" enum:"resolve|reuse|create" doc:"resolve tells which ids are there, reuse fails unless all are, create makes documents of the titles."`
	Targets  []LinkTarget `json:"targets" list:"ordered" minlen:"1" maxlen:"100" doc:"The documents."`
	Markdown string       `json:"markdown,omitempty" doc:"Body in Markdown, without the title."`
	DryRun   bool         `json:"dryRun,omitempty" doc:"Say what create would do; nothing is written."`
}

// What became of a link target.
const (
	LinkResolved     = "resolved"
	LinkMissing      = "missing" // there is no such document right below the parent
	LinkReused       = "reused"
	LinkPlanned      = "planned" // a dry run; there is no id yet
	LinkCreated      = "created"
	LinkFailed       = "failed"        // in the detail of an error: not made, or not as it should be
	LinkUnknown      = "unknown"       // likewise: SiYuan never answered
	LinkNotAttempted = "not_attempted" // likewise: an earlier one ended the call
)

// LinkTargetOut is one target with what became of it.
type LinkTargetOut struct {
	Key    string `json:"key"`
	ID     string `json:"id,omitempty"`
	Title  string `json:"title,omitempty"`
	Status string `json:"status"`
}

// DocumentEnsureLinksOut is the output of document.ensure_link_targets. Targets are
// in the order of the call. Titles are left out where the answer would be too long.
type DocumentEnsureLinksOut struct {
	Success bool            `json:"success"` // resolve: every target is there
	Targets []LinkTargetOut `json:"targets"`
	DryRun  bool            `json:"dryRun,omitempty"`
	Hint    string          `json:"hint,omitempty"`
}

// DocumentEnsureLinks makes sure that documents are there to be linked to. Agents
// that may write nowhere are not offered it; the others need rw in the notebook
// for create alone.
var DocumentEnsureLinks = define[DocumentEnsureLinksIn, DocumentEnsureLinksOut](Action{
	Name: "ensure_link_targets", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnStructure,
	Summary: "Check or create documents right below a document, to link to them.",
	Rules: []Rule{
		NotWith("mode", "resolve", "markdown", "dryRun"), NotWith("mode", "reuse", "markdown", "dryRun"),
		EachHas("mode", "create", "targets", "title", "id"), EachHas("mode", "resolve", "targets", "id", "title"), EachHas("mode", "reuse", "targets", "id", "title"),
	},
	Guidance: []string{
		"create needs the level rw, the others r. markdown is the body of each document.",
		"A title that a document there has already is refused, not taken for it: give its id with reuse. Before anything is written all titles are checked.",
		"Targets are created in their order, so after partly_done those named in detail.done are the first ones; other errors say in detail.targets what became of each.",
		`Link to one as ((id "text")).`,
	},
	Examples: []string{
		`{"notebook":"20240101090000-work001","parentId":"20240102100000-projdoc","mode":"resolve","targets":[{"key":"alpha","id":"20240102100100-alphadc"}]}`,
		`{"notebook":"20240101090000-work001","parentId":"20240102100000-projdoc","mode":"create","targets":[{"key":"who","title":"Who"},{"key":"why","title":"Why"}],"markdown":"To be written."}`,
	},
})
