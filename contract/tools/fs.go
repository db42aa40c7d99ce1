package tools

import "siyuan-broker/contract"

// FSLsIn is the input of fs.ls.
type FSLsIn struct {
	FSPath
	Page     *int `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize *int `json:"pageSize,omitempty" min:"1" max:"200" doc:"Entries on a page; default 200."`
}

// FSPath names a notebook or document by its path.
type FSPath struct {
	Path string `json:"path" ref:"human" doc:"Path of a notebook or document; / is the root." minlen:"1" maxlen:"16384"`
}

// FSItem is a notebook, document or virtual file in a listing. Path leads to it
// and to nothing else.
type FSItem struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Children int    `json:"children"`          // documents right below
	Closed   bool   `json:"closed,omitempty"`  // a notebook whose notes cannot be reached
	Virtual  bool   `json:"virtual,omitempty"` // kept with the agent, not in SiYuan
}

// FSLsOut is the output of fs.ls.
type FSLsOut struct {
	Path  string   `json:"path"`
	Items []FSItem `json:"items"`
	PageOut
	Hint string `json:"hint,omitempty"`
}

// FSTreeIn is the input of fs.tree.
type FSTreeIn struct {
	FSPath
	MaxDepth *int `json:"maxDepth,omitempty" min:"0" max:"20" doc:"Levels to open below the first; default 3."`
}

// FSTreeNode is a notebook or document with what is below it.
type FSTreeNode struct {
	Name     string       `json:"name"`
	Path     string       `json:"path"`
	Children []FSTreeNode `json:"children,omitempty"`
	Count    int          `json:"count,omitempty"` // documents right below that are not in children
}

// FSTreeOut is the output of fs.tree.
type FSTreeOut struct {
	Path     string       `json:"path"`
	Tree     []FSTreeNode `json:"tree"`
	MaxDepth int          `json:"maxDepth,omitempty" full:"true"`
	CutOut
}

// FSReadIn is the input of fs.read.
type FSReadIn struct {
	FSPath
	Window
}

// FSReadOut is the output of fs.read.
type FSReadOut struct {
	Path string `json:"path"`
	WindowOut
}

// FSWriteIn is the input of fs.write.
type FSWriteIn struct {
	FSPath
	Markdown  string `json:"markdown" doc:"Body, without the title."`
	Overwrite bool   `json:"overwrite,omitempty" doc:"Replace the body of a document that exists."`
}

// FSWriteOut is the output of fs.write. A virtual file has no id.
type FSWriteOut struct {
	Success     bool   `json:"success"`
	Path        string `json:"path"`
	ID          string `json:"id,omitempty"`
	Created     bool   `json:"created"`
	Overwritten bool   `json:"overwritten"`
}

// FSReplaceIn is the input of fs.replace. Old, New and ReplaceAll are one edit
// written flat, as agents that edit files do.
type FSReplaceIn struct {
	FSPath
	Edit       []FSEdit `json:"edit,omitempty" list:"ordered" minlen:"1" maxlen:"64" doc:"Edits, made one after the other, all or none."`
	Old        string   `json:"old,omitempty" legacy:"true" minlen:"1" doc:"The old text of a single edit."`
	New        string   `json:"new,omitempty" legacy:"true" doc:"The new text of a single edit."`
	ReplaceAll bool     `json:"replace_all,omitempty" legacy:"true" doc:"replace_all of a single edit."`
}

// FSEdit is one replacement in a document.
type FSEdit struct {
	Old        string `json:"old" minlen:"1" doc:"Text inside one block, as read shows it."`
	New        string `json:"new" doc:"Replacement."`
	ReplaceAll bool   `json:"replace_all,omitempty" doc:"Every match, not only the first."`
}

// FSReplacement tells what an edit did.
type FSReplacement struct {
	Index      int  `json:"index"`    // of the edit
	Replaced   int  `json:"replaced"` // matches
	ReplaceAll bool `json:"replace_all"`
}

// FSSkipped is a block that has the text of an edit and is not text to edit,
// such as an embed.
type FSSkipped struct {
	ID   string `json:"id"`
	Type string `json:"type"` // short code
}

// FSReplaceOut is the output of fs.replace.
type FSReplaceOut struct {
	Success              bool            `json:"success"`
	Path                 string          `json:"path"`
	Changed              bool            `json:"changed"` // false: nothing was written
	EditsApplied         int             `json:"editsApplied"`
	Replacements         []FSReplacement `json:"replacements"`
	SkippedComplexBlocks []FSSkipped     `json:"skippedComplexBlocks,omitempty"`
}

// FSRmIn is the input of fs.rm.
type FSRmIn struct{ FSPath }

// FSRmOut is the output of fs.rm.
type FSRmOut struct {
	Success bool   `json:"success"`
	Path    string `json:"path"`
	Count   int    `json:"count"` // documents removed, those below included
}

// FSMvIn is the input of fs.mv.
type FSMvIn struct {
	From string `json:"from" ref:"human" doc:"Document to move or rename." minlen:"1" maxlen:"16384"`
	To   string `json:"to" ref:"human" doc:"Its new path, with the title." minlen:"1" maxlen:"16384"`
}

// FSMvOut is the output of fs.mv.
type FSMvOut struct {
	Success bool   `json:"success"`
	Path    string `json:"path"`
	MovedTo string `json:"movedTo"`
}

// FSReorderIn is the input of fs.reorder.
type FSReorderIn struct {
	FSPath
	OrderedPaths []string `json:"orderedPaths" ref:"human" list:"ordered,complete" minlen:"1" maxlen:"4096" doc:"Every document right below path, in the order wanted."`
}

// FSReorderOut is the output of fs.reorder.
type FSReorderOut struct {
	Success         bool     `json:"success"`
	Path            string   `json:"path"`
	ParentID        string   `json:"parentID"`
	Notebook        string   `json:"notebook"`
	Changed         bool     `json:"changed"`
	OrderChanged    bool     `json:"orderChanged"`
	SortModeChanged bool     `json:"sortModeChanged"` // the notebook's order by hand had to be switched on
	PreviousOrder   []string `json:"previousOrder"`
	Order           []string `json:"order"`
}

// FSSearchIn is the input of fs.search.
type FSSearchIn struct {
	FSPath
	Query         string `json:"query" doc:"Text to find in a line." minlen:"1" maxlen:"4096"`
	Regex         bool   `json:"regex,omitempty" doc:"query is a regular expression (RE2)."`
	CaseSensitive bool   `json:"caseSensitive,omitempty" doc:"Upper and lower case differ."`
	PageIn
}

// FSLine is a line found.
type FSLine struct {
	Path               string `json:"path"`
	Line               int    `json:"line"`       // of the whole text that read shows, from 1
	BlockIndex         int    `json:"blockIndex"` // for read's blockStart
	Text               string `json:"text"`
	TextTruncated      bool   `json:"textTruncated,omitempty"`
	OriginalTextLength int    `json:"originalTextLength,omitempty"` // characters, where text is cut
}

// FSSearchOut is the output of fs.search.
type FSSearchOut struct {
	Data []FSLine `json:"data"`
	PageOut
	Path          string `json:"path"`
	Query         string `json:"query,omitempty" full:"true"`
	Regex         bool   `json:"regex,omitempty" full:"true"`
	CaseSensitive bool   `json:"caseSensitive,omitempty" full:"true"`
	CutOut
}

// The actions of the fs tool.
var (
	FSLs = define[FSLsIn, FSLsOut](Action{
		Name: "ls", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "List the notebooks, or the documents right below a path, in SiYuan's order.",
		Guidance: []string{"Where two things share a name, path has an id in place of the name, so that it leads to one of them."},
		Examples: []string{`{"path":"/"}`, `{"path":"/Work/Projects"}`},
	})
	FSTree = define[FSTreeIn, FSTreeOut](Action{
		Name: "tree", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary: "Show what is below a path as a tree, by title.",
		Guidance: []string{
			"count is the number of documents right below that are not shown; call again with that path.",
			"Documents that share a title have an id in their path.",
		},
		Examples: []string{`{"path":"/Work"}`, `{"path":"/","maxDepth":1}`},
	})
	FSRead = define[FSReadIn, FSReadOut](Action{
		Name: "read", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary: "Read a document as Markdown, a window of whole blocks at a time.",
		Rules:   []Rule{Replaced("page", "blockStart and blockLimit"), Replaced("pageSize", "blockLimit")},
		Guidance: []string{
			"A block larger than tokenBudget still comes whole, alone, with budgetExceeded.",
			"While hasNextWindow is true, repeat the call with the fields of nextWindow.",
			"A virtual file is one block.",
		},
		Examples: []string{`{"path":"/Work/Projects/Alpha"}`, `{"path":"/Work/Projects/Alpha","blockStart":50,"includeBlockIds":true}`},
	})
	FSWrite = define[FSWriteIn, FSWriteOut](Action{
		Name: "write", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Guarded: OnState,
		Summary:      "Create a document from Markdown, or replace the body of one with overwrite.",
		ParamAliases: map[string]string{"content": "markdown"},
		Guidance: []string{
			"What is above the new document must exist.",
			"A title holds no slash: SiYuan would drop it.",
			"A first heading equal to the title is dropped.",
			"Overwriting is refused, and nothing written, where blocks with a name, attributes or references to them would be lost, or blocks that Markdown cannot hold; the error names them. Use replace, or the block tool, there.",
		},
		Examples: []string{`{"path":"/Work/Projects/Gamma","markdown":"First line."}`, `{"path":"/Work/Projects/Beta","markdown":"All new.","overwrite":true}`},
	})
	FSReplace = define[FSReplaceIn, FSReplaceOut](Action{
		Name: "replace", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Guarded: OnManifest,
		Summary: "Replace pieces of a document's text, keeping everything around them.",
		Rules:   []Rule{ExactlyOne([]string{"edit"}, []string{"old", "new"}), NotWith("edit", "", "replace_all")},
		Guidance: []string{
			"old is text as read shows it, inside one paragraph, heading, list item, table cell or code block.",
			"new is Markdown. Embeds, databases and media are skipped and named in skippedComplexBlocks.",
		},
		Examples: []string{`{"path":"/Work/Projects/Alpha","edit":[{"old":"third","new":"last"}]}`, `{"path":"/Work/Projects/Alpha","old":"third","new":"last"}`},
	})
	FSRm = define[FSRmIn, FSRmOut](Action{
		Name: "rm", Kind: Delete, Level: contract.ReadWriteDelete, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Guarded: OnState,
		Summary:  "Remove a document with all below it; SiYuan's history keeps it.",
		Aliases:  []string{"remove", "delete", "del"},
		Guidance: []string{"/AGENTS.md is emptied and stays."},
		Examples: []string{`{"path":"/Work/Projects/Beta"}`},
	})
	FSMv = define[FSMvIn, FSMvOut](Action{
		Name: "mv", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Guarded: OnStructure,
		Moves:   []string{"from"},
		Summary: "Move a document, with all below it, or rename it.",
		Aliases: []string{"move"},
		Guidance: []string{
			"The new path must be free, and what is above it must exist.",
			"Leaving a notebook needs level rwd there.",
		},
		Examples: []string{`{"from":"/Work/Projects/Beta","to":"/Work/Beta plan"}`},
	})
	FSReorder = define[FSReorderIn, FSReorderOut](Action{
		Name: "reorder", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Guarded: OnStructure,
		Summary:  "Put the documents right below a path in a given order.",
		Guidance: []string{"A notebook that is not ordered by hand is switched to that."},
		Examples: []string{`{"path":"/Work/Projects","orderedPaths":["/Work/Projects/Beta","/Work/Projects/Alpha"]}`},
	})
	FSSearch = define[FSSearchIn, FSSearchOut](Action{
		Name: "search", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary: "Find lines of text below a path.",
		Guidance: []string{
			"Lines are those of the text that read shows; titles are not searched, and the virtual files neither.",
			"search.fulltext finds blocks, and knows types, tags and relevance.",
		},
		Examples: []string{`{"path":"/Work","query":"Monday"}`, `{"path":"/","query":"^#+ .*goals","regex":true}`},
	})
)

func fsTool() *Tool {
	return &Tool{
		Name:    "fs",
		Title:   "Notes as files",
		Purpose: "Notes like Markdown files, by names instead of ids: the first choice for reading and writing whole notes.",
		Notes: []string{
			`Paths: /Notebook/Title/Title. A slash inside a name is \/. An id may stand in for the first name: /20240131120000-abc1234/Title; use that after ambiguous_path.`,
			"At / are also /AGENTS.md, your memory across conversations, which you may write, and /USER_RULES.md, the person's rules for you.",
		},
		Fields: map[string]string{"pageSize": "Entries on a page."},
		Actions: []*Action{
			FSLs.Action, FSTree.Action, FSRead.Action, FSWrite.Action, FSReplace.Action, FSReorder.Action, FSSearch.Action, FSMv.Action, FSRm.Action,
		},
	}
}
