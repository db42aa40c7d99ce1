package tools

import "siyuan-broker/contract"

// DocumentID names a document by its id.
type DocumentID struct {
	ID string `json:"id" ref:"doc" doc:"Document id."`
}

// DocumentLookupIn is the input of document.lookup.
type DocumentLookupIn struct {
	ID       string   `json:"id,omitempty" ref:"block" doc:"Document or block id."`
	Notebook string   `json:"notebook,omitempty" ref:"notebook" doc:"Notebook id."`
	Path     string   `json:"path,omitempty" ref:"path" doc:"Storage path; one that is not is taken as hpath." minlen:"1" maxlen:"4096"`
	HPath    string   `json:"hpath,omitempty" doc:"Readable path in the notebook." minlen:"1" maxlen:"4096"`
	Include  []string `json:"include,omitempty" enum:"id|ids|path|hpath|docInfo" maxlen:"8" doc:"What to return; default path and hpath."`
}

// HumanPath is where a person finds a document.
type HumanPath struct {
	NotebookName string `json:"notebookName"`
	HPath        string `json:"hPath"`
}

// IDPath is where SiYuan finds a document.
type IDPath struct {
	ID       string   `json:"id"`
	IDs      []string `json:"ids,omitempty"` // every document of that readable path
	Notebook string   `json:"notebook"`
	Path     string   `json:"path"` // storage path
}

// DocInfo is what SiYuan keeps about a document besides its text.
type DocInfo struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Icon      string   `json:"icon,omitempty"`
	RefCount  *int     `json:"refCount,omitempty"`  // references from notebooks the caller may read
	AttrViews []AVInfo `json:"attrViews,omitempty"` // databases it is a row of
}

// AVInfo names a database.
type AVInfo struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// DocumentLookupOut is the output of document.lookup.
type DocumentLookupOut struct {
	HumanPath HumanPath `json:"humanPath"`
	IDPath    IDPath    `json:"idPath"`
	DocInfo   *DocInfo  `json:"docInfo,omitempty"`
}

// DocumentRenameIn is the input of document.rename.
type DocumentRenameIn struct {
	Title    string `json:"title" doc:"New title." minlen:"1" maxlen:"512"`
	ID       string `json:"id,omitempty" ref:"doc" doc:"Document id."`
	Notebook string `json:"notebook,omitempty" ref:"notebook" doc:"Notebook id."`
	Path     string `json:"path,omitempty" ref:"path" doc:"Storage path." minlen:"1" maxlen:"4096"`
}

// DocumentRenameOut is the output of document.rename.
type DocumentRenameOut struct {
	Success  bool   `json:"success"`
	ID       string `json:"id"`
	Notebook string `json:"notebook"`
	Path     string `json:"path"` // storage path
	Title    string `json:"title"`
}

// DocumentRemoveIn is the input of document.remove.
type DocumentRemoveIn struct {
	ID       string   `json:"id,omitempty" ref:"doc" doc:"Document id."`
	IDs      []string `json:"ids,omitempty" ref:"doc" doc:"Several document ids." minlen:"1" maxlen:"128"`
	Paths    []string `json:"paths,omitempty" ref:"path" doc:"Several storage paths." minlen:"1" maxlen:"128"`
	Notebook string   `json:"notebook,omitempty" ref:"notebook" doc:"Notebook id."`
	Path     string   `json:"path,omitempty" ref:"path" doc:"Storage path." minlen:"1" maxlen:"4096"`
}

// DocumentRemoveOut is the output of document.remove.
type DocumentRemoveOut struct {
	Success bool     `json:"success"`
	IDs     []string `json:"ids"`   // of the documents asked for
	Count   int      `json:"count"` // documents removed, those below included
}

// DocumentMoveIn is the input of document.move.
type DocumentMoveIn struct {
	FromIDs    []string `json:"fromIDs,omitempty" ref:"doc" list:"ordered" doc:"Documents to move, with all below them." minlen:"1" maxlen:"128"`
	ToID       string   `json:"toID,omitempty" ref:"place" doc:"New parent, a document or notebook id."`
	FromPaths  []string `json:"fromPaths,omitempty" ref:"path" list:"ordered" doc:"The same by storage path." minlen:"1" maxlen:"128"`
	ToNotebook string   `json:"toNotebook,omitempty" ref:"notebook" doc:"Notebook id of toPath."`
	ToPath     string   `json:"toPath,omitempty" ref:"path" doc:"Storage path of the new parent, or / for the top." minlen:"1" maxlen:"4096"`
}

// DocumentMoveOut is the output of document.move.
type DocumentMoveOut struct {
	Success    bool     `json:"success"`
	FromIDs    []string `json:"fromIDs"`
	FromPaths  []string `json:"fromPaths,omitempty"` // as given
	ToID       string   `json:"toID,omitempty"`      // as given
	ToNotebook string   `json:"toNotebook"`
	ToPath     string   `json:"toPath"`
	Paths      []string `json:"paths"` // new storage paths, in the order of fromIDs
}

// DocumentGetChildDocsIn is the input of document.get_child_docs.
type DocumentGetChildDocsIn struct {
	DocumentID
	DocPageIn
}

// DocumentGetChildDocsOut is the output of document.get_child_docs.
type DocumentGetChildDocsOut struct {
	ID   string     `json:"id"`
	Data []ChildDoc `json:"data"`
	PageOut
	CutOut
}

// DocumentGetChildBlocksOut is the output of document.get_child_blocks.
type DocumentGetChildBlocksOut struct {
	ID   string       `json:"id"` // the document
	Data []ChildBlock `json:"data"`
	CutOut
}

// DocumentGetOutlineIn is the input of document.get_outline.
type DocumentGetOutlineIn struct {
	DocumentID
	Preview bool `json:"preview,omitempty" doc:"Use the preview's rules."`
	DocPageIn
}

// OutlineHeading is a heading with the headings below it.
type OutlineHeading struct {
	ID       string           `json:"id"`
	Level    int              `json:"level"` // 1..6
	Title    string           `json:"title"` // plain text
	Children []OutlineHeading `json:"children,omitempty"`
}

// DocumentGetOutlineOut is the output of document.get_outline.
type DocumentGetOutlineOut struct {
	ID           string           `json:"id"`
	Notebook     string           `json:"notebook,omitempty" full:"true"`
	Preview      bool             `json:"preview,omitempty" full:"true"`
	HeadingCount int              `json:"headingCount"`
	Outline      []OutlineHeading `json:"outline"` // a page of headings, those below each in it
	PageOut
	CutOut
}

// DocumentSearchDocsIn is the input of document.search_docs.
type DocumentSearchDocsIn struct {
	Notebook string `json:"notebook" ref:"notebook" doc:"Notebook id."`
	Query    string `json:"query" doc:"Part of the title." minlen:"1" maxlen:"512"`
	Path     string `json:"path,omitempty" ref:"path" doc:"Storage path; only documents below it." minlen:"1" maxlen:"4096"`
	DocPageIn
}

// FoundDoc is a document found by its title.
type FoundDoc struct {
	ID       string `json:"id"`
	Notebook string `json:"notebook,omitempty" full:"true"`
	Path     string `json:"path"` // storage path
	HPath    string `json:"hPath"`
	Title    string `json:"title"`
}

// DocumentSearchDocsOut is the output of document.search_docs.
type DocumentSearchDocsOut struct {
	Docs        []FoundDoc `json:"docs"`
	Path        string     `json:"path,omitempty"` // as given
	PathApplied bool       `json:"pathApplied,omitempty"`
	PageOut
	CutOut
}

// DocumentReorderIn is the input of document.reorder.
type DocumentReorderIn struct {
	ParentID   string   `json:"parentID" ref:"place" doc:"Notebook or document id."`
	OrderedIDs []string `json:"orderedIDs" ref:"doc" list:"ordered,complete" minlen:"1" maxlen:"4096" doc:"All documents directly below it in the order wanted."`
}

// DocumentReorderOut is the output of document.reorder.
type DocumentReorderOut struct {
	Success         bool     `json:"success"`
	ParentID        string   `json:"parentID"`
	Notebook        string   `json:"notebook"`
	Changed         bool     `json:"changed"`
	OrderChanged    bool     `json:"orderChanged"`
	SortModeChanged bool     `json:"sortModeChanged"` // the order by hand had to be switched on
	SortModeScope   string   `json:"sortModeScope"`   // document or notebook
	PreviousOrder   []string `json:"previousOrder"`
	Order           []string `json:"order"`
}

// DocumentLook is what a document shows besides its text.
type DocumentLook struct {
	Icon  *string `json:"icon,omitempty" maxlen:"256" doc:"Emoji as its hex code point."`
	Cover *string `json:"cover,omitempty" maxlen:"2048" doc:"http(s) address or /assets/ path of a picture; empty removes it."`
}

// DocumentSetAttrIn is the input of document.set_attr.
type DocumentSetAttrIn struct {
	DocumentID
	Attrs DocumentLook `json:"attrs" doc:"icon, cover or both."`
}

// DocumentSetAttrOut is the output of document.set_attr.
type DocumentSetAttrOut struct {
	Success      bool   `json:"success"`
	ID           string `json:"id"`
	Icon         string `json:"icon,omitempty"`
	Cover        string `json:"cover,omitempty"`
	TitleImg     string `json:"titleImg,omitempty"` // the attribute SiYuan keeps a cover in
	ClearedCover bool   `json:"clearedCover,omitempty"`
}

// DocumentCreateDailyNoteIn is the input of document.create_daily_note.
type DocumentCreateDailyNoteIn struct {
	Notebook string `json:"notebook" ref:"notebook" doc:"Notebook id."`
	App      string `json:"app,omitempty" legacy:"true" maxlen:"128" doc:"Accepted for compatibility and ignored."`
}

// DocumentCreateDailyNoteOut is the output of document.create_daily_note.
type DocumentCreateDailyNoteOut struct {
	Success  bool   `json:"success"`
	Notebook string `json:"notebook"`
	ID       string `json:"id"`
	HPath    string `json:"hPath"`
	Created  bool   `json:"created"` // false: today's note was there
}

// DocumentDuplicateOut is the output of document.duplicate.
type DocumentDuplicateOut struct {
	Success  bool   `json:"success"`
	SourceID string `json:"sourceID"`
	ID       string `json:"id"` // of the copy
	Notebook string `json:"notebook"`
	Path     string `json:"path"` // storage path
	HPath    string `json:"hPath"`
}

// DocumentHeadingToDocIn is the input of document.heading_to_doc.
type DocumentHeadingToDocIn struct {
	HeadingID      string `json:"headingID" ref:"block" doc:"Heading to turn into a document, with the text below it."`
	TargetNotebook string `json:"targetNotebook" ref:"notebook" doc:"Notebook id for the new document."`
	TargetPath     string `json:"targetPath,omitempty" ref:"path" minlen:"1" maxlen:"4096" doc:"Storage path of its parent; the top of the notebook without it."`
	PreviousPath   string `json:"previousPath,omitempty" ref:"path" minlen:"1" maxlen:"4096" doc:"Storage path of the document it follows."`
}

// DocumentHeadingToDocOut is the output of document.heading_to_doc.
type DocumentHeadingToDocOut struct {
	Success        bool   `json:"success"`
	HeadingID      string `json:"headingID"`
	ID             string `json:"id"` // of the new document
	TargetNotebook string `json:"targetNotebook"`
	TargetPath     string `json:"targetPath"`
	PreviousPath   string `json:"previousPath,omitempty"`
}

// DocumentToHeadingIn is the input of document.doc_to_heading.
type DocumentToHeadingIn struct {
	SrcID    string `json:"srcID" ref:"doc" doc:"Document to turn into a heading; it must have none below it."`
	TargetID string `json:"targetID" ref:"block" doc:"Document or heading that takes it."`
	After    bool   `json:"after,omitempty" doc:"Put it after the target instead of before."`
}

// DocumentToHeadingOut is the output of document.doc_to_heading.
type DocumentToHeadingOut struct {
	Success     bool   `json:"success"`
	SrcID       string `json:"srcID"`
	TargetID    string `json:"targetID"`
	After       bool   `json:"after"`
	SrcTreeBox  string `json:"srcTreeBox"`  // notebook the document was in
	SrcTreePath string `json:"srcTreePath"` // storage path it had
}

// The other actions of the document tool.
var (
	DocumentLookup = define[DocumentLookupIn, DocumentLookupOut](Action{
		Name: "lookup", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:      "Turn an id, a storage path or a readable path into the others.",
		Rules:        []Rule{ExactlyOne([]string{"id"}, []string{"path"}, []string{"hpath"}), Needs("path", "", "notebook"), Needs("hpath", "", "notebook")},
		ParamAliases: map[string]string{"hPath": "hpath"},
		Guidance:     []string{"Titles may repeat: idPath.ids has every document of a readable path."},
		Examples:     []string{`{"notebook":"20240101090000-work001","hpath":"/Projects/Alpha"}`, `{"id":"20240102110002-block02","include":["path","docInfo"]}`},
	})
	DocumentRename = define[DocumentRenameIn, DocumentRenameOut](Action{
		Name: "rename", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Guarded: OnState,
		Summary:  "Change a document's title.",
		Rules:    []Rule{ExactlyOne([]string{"id"}, []string{"notebook", "path"})},
		Examples: []string{`{"id":"20240102100100-alphadc","title":"Alpha 2"}`},
	})
	DocumentRemove = define[DocumentRemoveIn, DocumentRemoveOut](Action{
		Name: "remove", Kind: Delete, Level: contract.ReadWriteDelete, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, Dangerous: true, Off: true,
		Summary:  "Delete documents and all documents below them.",
		Rules:    []Rule{ExactlyOne([]string{"id"}, []string{"ids"}, []string{"paths"}, []string{"notebook", "path"})},
		Guidance: []string{"A person can restore them from SiYuan's file history as long as that is kept."},
		Aliases:  []string{"rm", "delete", "del"},
		Examples: []string{`{"id":"20240102100100-alphadc"}`},
	})
	DocumentMove = define[DocumentMoveIn, DocumentMoveOut](Action{
		Name: "move", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnStructure, Dangerous: true,
		Summary:  "Move documents, with all below them, under another document or notebook.",
		Rules:    []Rule{ExactlyOne([]string{"fromIDs", "toID"}, []string{"fromPaths", "toNotebook", "toPath"})},
		Moves:    []string{"fromIDs", "fromPaths"},
		Aliases:  []string{"mv"},
		Examples: []string{`{"fromIDs":["20240102100100-alphadc"],"toID":"20240101090000-work001"}`},
	})
	DocumentGetChildDocs = define[DocumentGetChildDocsIn, DocumentGetChildDocsOut](Action{
		Name: "get_child_docs", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "List the documents directly below a document.",
		Examples: []string{`{"id":"20240102100100-alphadc"}`},
	})
	DocumentGetChildBlocks = define[DocumentID, DocumentGetChildBlocksOut](Action{
		Name: "get_child_blocks", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "List the top blocks of a document with their ids.",
		Guidance: []string{"The id of a block inside the document stands for the document; block.get_children lists the blocks of a container, by page."},
		Examples: []string{`{"id":"20240102100100-alphadc"}`},
	})
	DocumentGetOutline = define[DocumentGetOutlineIn, DocumentGetOutlineOut](Action{
		Name: "get_outline", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "Read the headings of a document as a tree with ids.",
		Examples: []string{`{"id":"20240102100100-alphadc"}`},
	})
	DocumentSearchDocs = define[DocumentSearchDocsIn, DocumentSearchDocsOut](Action{
		Name: "search_docs", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "Find documents of a notebook by title.",
		Examples: []string{`{"notebook":"20240101090000-work001","query":"alpha"}`},
	})
	DocumentReorder = define[DocumentReorderIn, DocumentReorderOut](Action{
		Name: "reorder", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnStructure,
		Summary:  "Put the documents directly below a notebook or document in a given order.",
		Guidance: []string{"The place is switched to the order by hand where it had another."},
		Examples: []string{`{"parentID":"20240101090000-work001","orderedIDs":["20240102100100-alphadc","20240102100200-betadoc"]}`},
	})
	DocumentSetAttr = define[DocumentSetAttrIn, DocumentSetAttrOut](Action{
		Name: "set_attr", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState,
		Summary:  "Set a document's icon or cover.",
		Rules:    []Rule{AtLeastOneIn("attrs", "icon", "cover")},
		Examples: []string{`{"id":"20240102100100-alphadc","attrs":{"icon":"1f4d4"}}`},
	})
	DocumentCreateDailyNote = define[DocumentCreateDailyNoteIn, DocumentCreateDailyNoteOut](Action{
		Name: "create_daily_note", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced,
		Summary:  "Create today's daily note of a notebook, or find it.",
		Examples: []string{`{"notebook":"20240101090000-work001"}`},
	})
	DocumentDuplicate = define[DocumentID, DocumentDuplicateOut](Action{
		Name: "duplicate", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState,
		Summary:  "Copy a document beside itself, with new ids.",
		Examples: []string{`{"id":"20240102100100-alphadc"}`},
	})
	DocumentHeadingToDoc = define[DocumentHeadingToDocIn, DocumentHeadingToDocOut](Action{
		Name: "heading_to_doc", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnStructure,
		Summary:  "Move a heading and the text below it into a document of its own.",
		Moves:    []string{"headingID"},
		Examples: []string{`{"headingID":"20240102110001-block01","targetNotebook":"20240101090000-work001"}`},
	})
	DocumentToHeading = define[DocumentToHeadingIn, DocumentToHeadingOut](Action{
		Name: "doc_to_heading", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnStructure, Dangerous: true,
		Summary:  "Move a document's text under a heading of another document; the document goes.",
		Moves:    []string{"srcID"},
		Examples: []string{`{"srcID":"20240102100200-betadoc","targetID":"20240102100100-alphadc"}`},
	})
)
