package tools

import "siyuan-broker/contract"

// DocumentCreateIn is the input of document.create.
type DocumentCreateIn struct {
	Notebook   string   `json:"notebook" ref:"notebook" doc:"Notebook id."`
	Path       string   `json:"path,omitempty" doc:"Readable path of the new document, such as /Projects/Alpha; missing parents are created." minlen:"1" maxlen:"4096"`
	ParentPath string   `json:"parentPath,omitempty" doc:"Readable or storage path; / is the notebook." minlen:"1" maxlen:"4096"`
	Title      string   `json:"title,omitempty" doc:"Title under parentPath; it must not contain a slash." minlen:"1" maxlen:"512"`
	Markdown   string   `json:"markdown,omitempty" doc:"Body in Markdown, without the title."`
	Icon       string   `json:"icon,omitempty" doc:"Emoji as its hex code point, such as 1f4d4." maxlen:"256"`
	IfExists   string   `json:"ifExists,omitempty" enum:"fail|return|suffix" doc:"If it exists: fail (default), return it, or number the title."`
	Sorts      []string `json:"sorts,omitempty" legacy:"true" doc:"Accepted for compatibility and ignored."`
}

// DocumentCreateOut is the output of document.create.
type DocumentCreateOut struct {
	Success            bool   `json:"success"`
	ID                 string `json:"id"`
	Notebook           string `json:"notebook"`
	Path               string `json:"path"` // readable
	ParentPath         string `json:"parentPath,omitempty"`
	ResolvedParentPath string `json:"resolvedParentPath,omitempty"`
	Title              string `json:"title"`
	Created            bool   `json:"created"` // false: ifExists=return found one
}

// DocumentGetDocIn is the input of document.get_doc.
type DocumentGetDocIn struct {
	ID string `json:"id" ref:"doc" doc:"Document id; the id of any block in it works too."`
	Window
	Mode string `json:"mode,omitempty" enum:"markdown|html" doc:"markdown (default) or html, SiYuan's own block DOM."`
	Size int    `json:"size,omitempty" min:"1" max:"1024" doc:"Blocks to load, html only."`
}

// Window selects whole blocks of a document's text.
type Window struct {
	BlockStart      *int `json:"blockStart,omitempty" min:"0" max:"1000000" doc:"First block, from 0."`
	BlockLimit      *int `json:"blockLimit,omitempty" min:"1" max:"200" doc:"Most blocks; default 50."`
	TokenBudget     *int `json:"tokenBudget,omitempty" min:"1" max:"32000" doc:"Size in tokens of 4 characters; default 2000."`
	IncludeBlockIDs bool `json:"includeBlockIds,omitempty" doc:"Also return block ids."`
}

// WindowOut is the text window of a document and how to get the rest.
type WindowOut struct {
	Content         string         `json:"content"`
	Outline         []OutlineEntry `json:"outline"` // of the whole document
	BlockStart      int            `json:"blockStart"`
	BlockLimit      int            `json:"blockLimit,omitempty" full:"true"`
	ReturnedBlocks  int            `json:"returnedBlocks"`
	TotalBlocks     int            `json:"totalBlocks"`
	TokenBudget     int            `json:"tokenBudget,omitempty" full:"true"`
	EstimatedTokens int            `json:"estimatedTokens,omitempty" full:"true"`
	TokenMode       string         `json:"tokenMode,omitempty" full:"true"`
	Truncated       bool           `json:"truncated"`
	HasNextWindow   bool           `json:"hasNextWindow"`
	NextWindow      *NextWindow    `json:"nextWindow,omitempty"`
	BudgetExceeded  bool           `json:"budgetExceeded,omitempty"`
	BlockRefs       []BlockRef     `json:"blockRefs,omitempty"`
	// OutlineTruncated: the outline is only its beginning; document.get_outline
	// has it by page.
	OutlineTruncated bool   `json:"outlineTruncated,omitempty"`
	Hint             string `json:"hint,omitempty"`
}

// OutlineEntry is one heading of a document.
type OutlineEntry struct {
	BlockIndex int    `json:"blockIndex"`
	Level      int    `json:"level"` // 1..6
	Title      string `json:"title"`
	ID         string `json:"id,omitempty"` // with includeBlockIds
}

// NextWindow is the input that continues a window.
type NextWindow struct {
	BlockStart int `json:"blockStart"`
	BlockLimit int `json:"blockLimit"`
}

// BlockRef ties a block of the window to its id.
type BlockRef struct {
	BlockIndex int    `json:"blockIndex"`
	ID         string `json:"id"`
	Type       string `json:"type"` // short type, as in SQL: p, h, l, …
}

// DocumentGetDocOut is the output of document.get_doc. In html mode Content is
// block DOM and the window fields describe what was loaded.
type DocumentGetDocOut struct {
	ID           string `json:"id"`
	Mode         string `json:"mode,omitempty" full:"true"`
	Notebook     string `json:"notebook"`
	NotebookName string `json:"notebookName"`
	HPath        string `json:"hPath"`
	WindowOut
}

// DocumentListTreeIn is the input of document.list_tree.
type DocumentListTreeIn struct {
	Notebook string `json:"notebook" ref:"notebook" doc:"Notebook id."`
	Path     string `json:"path" ref:"path" doc:"Storage path of the document, or / for the whole notebook." minlen:"1" maxlen:"4096"`
	MaxDepth *int   `json:"maxDepth,omitempty" min:"1" max:"20" doc:"Levels to return; default 3."`
}

// TreeNode is a document and the documents below it.
type TreeNode struct {
	ID                string     `json:"id"`
	Name              string     `json:"name"`
	Icon              string     `json:"icon,omitempty" full:"true"`
	Path              string     `json:"path"` // storage path
	Children          []TreeNode `json:"children,omitempty"`
	ChildCount        int        `json:"childCount,omitempty"` // where the depth limit cut
	ChildrenTruncated bool       `json:"childrenTruncated,omitempty"`
}

// DocumentListTreeOut is the output of document.list_tree.
type DocumentListTreeOut struct {
	Notebook  string     `json:"notebook,omitempty" full:"true"`
	Path      string     `json:"path,omitempty" full:"true"`
	Tree      []TreeNode `json:"tree"`
	MaxDepth  int        `json:"maxDepth,omitempty" full:"true"`
	Truncated bool       `json:"truncated"`
	Hint      string     `json:"hint,omitempty"`
}

// The actions of the document tool.
var (
	DocumentCreate = define[DocumentCreateIn, DocumentCreateOut](Action{
		Name: "create", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets,
		Summary:      "Create a document from Markdown, at a path or as a child of a parent.",
		Rules:        []Rule{ExactlyOne([]string{"path"}, []string{"parentPath", "title"})},
		ParamAliases: map[string]string{"if_exists": "ifExists", "content": "markdown"},
		Guidance: []string{
			"In a readable path a slash always separates levels, so a title given by path cannot contain one.",
			"A first heading equal to the title is dropped.",
		},
		Examples: []string{`{"notebook":"20240101090000-work001","path":"/Projects/Alpha","markdown":"First line."}`},
	})
	DocumentGetDoc = define[DocumentGetDocIn, DocumentGetDocOut](Action{
		Name: "get_doc", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary: "Read a document as Markdown, a window of whole blocks at a time.",
		Rules: []Rule{
			NotWith("mode", "html", "blockStart", "blockLimit", "tokenBudget", "includeBlockIds"),
			Replaced("page", "blockStart and blockLimit"), Replaced("pageSize", "blockLimit"),
		},
		Guidance: []string{"A block larger than tokenBudget still comes whole, alone, with budgetExceeded.", "While hasNextWindow is true, repeat the call with the fields of nextWindow."},
		Examples: []string{`{"id":"20240102100100-alphadc"}`, `{"id":"20240102100100-alphadc","blockStart":50,"includeBlockIds":true}`},
	})
	DocumentListTree = define[DocumentListTreeIn, DocumentListTreeOut](Action{
		Name: "list_tree", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced,
		Summary:  "List the documents of a notebook or below a document as a tree.",
		Guidance: []string{"It is sorted by title; get_child_docs has SiYuan's own order.", "Where childrenTruncated is set, call again with that node's path."},
		Examples: []string{`{"notebook":"20240101090000-work001","path":"/"}`},
	})
)

func documentTool() *Tool {
	return &Tool{
		Name:    "document",
		Title:   "Documents",
		Purpose: "Documents: find, read, create and arrange whole notes.",
		Fields: map[string]string{
			"id":    "Document id.",
			"mode":  "get_doc: markdown (default) or html, SiYuan's block DOM.",
			"path":  "Storage path; for create the readable path.",
			"title": "Title.",
		},
		Actions: []*Action{DocumentCreate.Action, DocumentGetDoc.Action, DocumentListTree.Action,
			DocumentLookup.Action, DocumentGetChildDocs.Action, DocumentGetChildBlocks.Action, DocumentGetOutline.Action, DocumentSearchDocs.Action,
			DocumentRename.Action, DocumentMove.Action, DocumentRemove.Action, DocumentReorder.Action, DocumentSetAttr.Action,
			DocumentCreateDailyNote.Action, DocumentDuplicate.Action, DocumentHeadingToDoc.Action, DocumentToHeading.Action, DocumentEnsureLinks.Action,
		},
	}
}
