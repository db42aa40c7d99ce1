package tools

import "siyuan-broker/contract"

// BlockID names a block by its id.
type BlockID struct {
	ID string `json:"id" ref:"block" doc:"Block or document id."`
}

// BlockInsertIn is the input of block.insert.
type BlockInsertIn struct {
	DataType   string            `json:"dataType,omitempty" enum:"markdown|dom" doc:"markdown, or dom for SiYuan's block DOM."`
	Data       string            `json:"data,omitempty" doc:"The text."`
	NextID     string            `json:"nextID,omitempty" ref:"block" doc:"Block to stand before."`
	PreviousID string            `json:"previousID,omitempty" ref:"block" doc:"Block to stand after."`
	ParentID   string            `json:"parentID,omitempty" ref:"block" doc:"Document or container block (list, list item, quote, super block)."`
	Blocks     []BlockInsertItem `json:"blocks,omitempty" list:"ordered" minlen:"1" maxlen:"128" doc:"Several texts, each with its own place or that of the call."`
}

// BlockInsertItem is one text of a batch.
type BlockInsertItem struct {
	DataType   string `json:"dataType" enum:"markdown|dom"`
	Data       string `json:"data"`
	NextID     string `json:"nextID,omitempty" ref:"block"`
	PreviousID string `json:"previousID,omitempty" ref:"block"`
	ParentID   string `json:"parentID,omitempty" ref:"block"`
}

// BlockInsertOut is the output of block.insert.
type BlockInsertOut struct {
	Success         bool     `json:"success"`
	ID              string   `json:"id"` // the first new block
	ParentID        string   `json:"parentID,omitempty"`
	PreviousID      string   `json:"previousID,omitempty"`
	NextID          string   `json:"nextID,omitempty"`
	DataType        string   `json:"dataType,omitempty"`
	Count           int      `json:"count"`           // new top-level blocks
	CreatedBlockIDs []string `json:"createdBlockIDs"` // every new top-level block, in order
}

// BlockPrependIn is the input of block.prepend.
type BlockPrependIn struct {
	ParentID string `json:"parentID" ref:"block" doc:"Document or container block (list, list item, quote, super block)."`
	Data     string `json:"data" doc:"The text."`
	DataType string `json:"dataType" enum:"markdown|dom" doc:"markdown, or dom for SiYuan's block DOM."`
}

// BlockDeleteOut is the output of block.delete.
type BlockDeleteOut struct {
	Success bool   `json:"success"`
	ID      string `json:"id"`
}

// BlockMoveIn is the input of block.move.
type BlockMoveIn struct {
	ID         string   `json:"id,omitempty" ref:"block" doc:"Block to move."`
	IDs        []string `json:"ids,omitempty" ref:"block" list:"ordered" minlen:"1" maxlen:"128" doc:"Several blocks in their final order."`
	PreviousID string   `json:"previousID,omitempty" ref:"block" doc:"Block to stand after."`
	ParentID   string   `json:"parentID,omitempty" ref:"block" doc:"Document or container block (list, list item, quote, super block)."`
}

// BlockMoveOut is the output of block.move.
type BlockMoveOut struct {
	Success    bool     `json:"success"`
	ID         string   `json:"id,omitempty"`
	IDs        []string `json:"ids,omitempty"`
	FinalOrder []string `json:"finalOrder"` // the moved blocks as they stand now
	Count      int      `json:"count"`
	PreviousID string   `json:"previousID,omitempty"`
	ParentID   string   `json:"parentID,omitempty"`
}

// BlockSetAttrsIn is the input of block.set_attrs.
type BlockSetAttrsIn struct {
	BlockID
	Attrs map[string]string `json:"attrs" doc:"Name to value; an empty value removes the attribute. Own names begin with custom-."`
}

// BlockSetAttrsOut is the output of block.set_attrs.
type BlockSetAttrsOut struct {
	Success bool              `json:"success"`
	ID      string            `json:"id"`
	Attrs   map[string]string `json:"attrs"` // all attributes after the change
}

// BlockGetAttrsOut is the output of block.get_attrs.
type BlockGetAttrsOut struct {
	ID    string            `json:"id"`
	Attrs map[string]string `json:"attrs"`
}

// BlockBatchKramdownIn is the input of block.batch_kramdown.
type BlockBatchKramdownIn struct {
	IDs  []string `json:"ids" ref:"block" list:"ordered" minlen:"1" maxlen:"20" doc:"Block ids; repeats are kept."`
	Mode string   `json:"mode,omitempty" enum:"md|textmark" doc:"How marks are written: md (default) or textmark."`
}

// KramdownItem is the Kramdown of one block of a batch, or why there is none.
type KramdownItem struct {
	ID       string     `json:"id"`
	OK       bool       `json:"ok"`
	Kramdown string     `json:"kramdown,omitempty"`
	Error    *ItemError `json:"error,omitempty"`
}

// ItemError is the failure of one entry of a batch.
type ItemError struct {
	Type    contract.ErrorType `json:"type"`
	Message string             `json:"message"`
}

// BlockBatchKramdownOut is the output of block.batch_kramdown.
type BlockBatchKramdownOut struct {
	Items     []KramdownItem `json:"items"` // one for each id, in its order, as far as there is room
	Requested int            `json:"requested"`
	Succeeded int            `json:"succeeded"`
	Failed    int            `json:"failed"`
	CutOut
}

// BlockGetChildrenIn is the input of block.get_children.
type BlockGetChildrenIn struct {
	BlockID
	PageIn
}

// BlockGetChildrenOut is the output of block.get_children.
type BlockGetChildrenOut struct {
	ID   string       `json:"id"`
	Data []ChildBlock `json:"data"`
	PageOut
	Hint string `json:"hint,omitempty"`
}

// BlockInfoOut is the output of block.info.
type BlockInfoOut struct {
	ID             string `json:"id"`
	Box            string `json:"box"`  // notebook id
	Path           string `json:"path"` // storage path of the document
	RootID         string `json:"rootID"`
	RootTitle      string `json:"rootTitle"`
	RootTitleEmpty bool   `json:"rootTitleEmpty,omitempty" full:"true"`
	RootIcon       string `json:"rootIcon,omitempty" full:"true"`
	RootChildID    string `json:"rootChildID"` // the top block of the document that holds the block
}

// BlockBreadcrumbIn is the input of block.breadcrumb.
type BlockBreadcrumbIn struct {
	BlockID
	ExcludeTypes []string `json:"excludeTypes,omitempty" list:"words" maxlen:"32" doc:"Node types to leave out, such as NodeListItem."`
}

// Crumb is one block on the way from the document to a block.
type Crumb struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	SubType string `json:"subType,omitempty"`
}

// BlockBreadcrumbOut is the output of block.breadcrumb.
type BlockBreadcrumbOut struct {
	ID         string  `json:"id"`
	Breadcrumb []Crumb `json:"breadcrumb"` // from the document down to the block
}

// BlockDOMIn is the input of block.dom.
type BlockDOMIn struct {
	BlockID
	Piece
}

// BlockDOMOut is the output of block.dom.
type BlockDOMOut struct {
	ID  string `json:"id"`
	DOM string `json:"dom"`
	PieceOut
}

// BlockRecentUpdatedIn is the input of block.recent_updated.
type BlockRecentUpdatedIn struct {
	Count *int `json:"count,omitempty" min:"1" max:"128" doc:"Most blocks; default 16."`
}

// RecentDocument is a document with blocks that changed lately.
type RecentDocument struct {
	DocumentID        string        `json:"documentId"`
	Notebook          string        `json:"notebook,omitempty" full:"true"`
	Path              string        `json:"path,omitempty" full:"true"` // storage path
	HPath             string        `json:"hPath"`
	Name              string        `json:"name"`
	UpdatedBlockCount int           `json:"updatedBlockCount"`
	SampleBlocks      []RecentBlock `json:"sampleBlocks"` // at most three
}

// RecentBlock is a block that changed lately.
type RecentBlock struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	RootID    string `json:"rootID,omitempty" full:"true"`
	Content   string `json:"content"`             // plain text, its beginning
	Updated   string `json:"updated"`             // yyyyMMddHHmmss, home time
	Truncated bool   `json:"truncated,omitempty"` // content is not the whole block
}

// BlockRecentUpdatedOut is the output of block.recent_updated.
type BlockRecentUpdatedOut struct {
	Documents     []RecentDocument `json:"documents"`
	DocumentCount int              `json:"documentCount"`
	Items         []RecentBlock    `json:"items,omitempty" full:"true"`
	Count         int              `json:"count"`
	CutOut
}

// BlockWordCountIn is the input of block.word_count.
type BlockWordCountIn struct {
	IDs []string `json:"ids" ref:"block" minlen:"1" maxlen:"128" doc:"Blocks to count together."`
}

// WordCount is the size of some text.
type WordCount struct {
	RuneCount  int `json:"runeCount"`
	WordCount  int `json:"wordCount"`
	LinkCount  int `json:"linkCount"`
	ImageCount int `json:"imageCount"`
	RefCount   int `json:"refCount"`
	BlockCount int `json:"blockCount"`
}

// BlockWordCountOut is the output of block.word_count.
type BlockWordCountOut struct {
	Stat WordCount `json:"stat"`
}

// BlockDocsInfoIn is the input of block.docs_info.
type BlockDocsInfoIn struct {
	ID       string   `json:"id,omitempty" ref:"block" doc:"Block or document id."`
	IDs      []string `json:"ids,omitempty" ref:"block" minlen:"1" maxlen:"128" doc:"Several document ids."`
	RefCount bool     `json:"refCount,omitempty" doc:"Also count references."`
	AV       bool     `json:"av,omitempty" doc:"Also name the databases each document is a row of."`
}

// BlockDocsInfoOut is the output of block.docs_info.
type BlockDocsInfoOut struct {
	Data []DocInfo `json:"data"`
}

// BlockReplaceIn is the input of block.replace. Old, New and ReplaceAll are one
// edit written flat, as agents that edit files do.
type BlockReplaceIn struct {
	ID         string      `json:"id" ref:"block" doc:"Block to edit."`
	Edit       []BlockEdit `json:"edit,omitempty" list:"ordered" minlen:"1" maxlen:"64" doc:"Edits, made one after the other, all or none."`
	Old        string      `json:"old,omitempty" legacy:"true" minlen:"1" doc:"The old text of a single edit."`
	New        string      `json:"new,omitempty" legacy:"true" doc:"The new text of a single edit."`
	ReplaceAll bool        `json:"replace_all,omitempty" legacy:"true" doc:"replace_all of a single edit."`
}

// BlockEdit is one replacement in a block's text.
type BlockEdit struct {
	Old        string `json:"old" minlen:"1" doc:"Text as shown, without marks."`
	New        string `json:"new" doc:"Replacement."`
	ReplaceAll bool   `json:"replace_all,omitempty" doc:"Replace every match, not only the first."`
}

// BlockReplacement tells what an edit did.
type BlockReplacement struct {
	Old   string `json:"old"`
	New   string `json:"new"`
	Count int    `json:"count"`
}

// BlockReplaceOut is the output of block.replace.
type BlockReplaceOut struct {
	Success             bool               `json:"success"`
	ID                  string             `json:"id"`
	Changed             bool               `json:"changed"`  // false: nothing was written
	Kramdown            string             `json:"kramdown"` // as stored now
	AttributesPreserved bool               `json:"attributesPreserved"`
	EditsApplied        int                `json:"editsApplied"`
	Replacements        []BlockReplacement `json:"replacements"`
}

// BlockSetFoldStateIn is the input of block.set_fold_state.
type BlockSetFoldStateIn struct {
	BlockID
	Folded bool `json:"folded" doc:"true folds, false unfolds."`
}

// BlockSetFoldStateOut is the output of block.set_fold_state.
type BlockSetFoldStateOut struct {
	Success bool   `json:"success"`
	ID      string `json:"id"`
	Folded  bool   `json:"folded"`
}

// BlockTransferReferencesIn is the input of block.transfer_references.
type BlockTransferReferencesIn struct {
	FromID string   `json:"fromID" ref:"block,r" doc:"Block that is referred to."`
	ToID   string   `json:"toID" ref:"block,r" doc:"Block to refer to instead."`
	RefIDs []string `json:"refIDs,omitempty" ref:"block" maxlen:"128" doc:"Only the references in these blocks; all you may edit without it."`
}

// BlockTransferReferencesOut is the output of block.transfer_references.
type BlockTransferReferencesOut struct {
	Success bool     `json:"success"`
	FromID  string   `json:"fromID"`
	ToID    string   `json:"toID"`
	IDs     []string `json:"ids"` // blocks that were changed
}

// BlockAddToDailyNoteIn is the input of block.add_to_daily_note.
type BlockAddToDailyNoteIn struct {
	Notebook string `json:"notebook" ref:"notebook" doc:"Notebook id."`
	DataType string `json:"dataType" enum:"markdown|dom" doc:"markdown, or dom for SiYuan's block DOM."`
	Data     string `json:"data" doc:"The text."`
	Position string `json:"position" enum:"append|prepend" doc:"At the end or at the start of today's note."`
}

// BlockAddToDailyNoteOut is the output of block.add_to_daily_note.
type BlockAddToDailyNoteOut struct {
	Success  bool     `json:"success"`
	Notebook string   `json:"notebook"`
	ID       string   `json:"id"`       // the first new block
	IDs      []string `json:"ids"`      // every new top-level block, in order
	ParentID string   `json:"parentID"` // today's note
	DataType string   `json:"dataType"`
	Position string   `json:"position"`
}

// The other actions of the block tool.
var (
	BlockInsert = define[BlockInsertIn, BlockInsertOut](Action{
		Name: "insert", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets,
		Summary:      "Insert text before or after a block, or as the first child of one.",
		Rules:        []Rule{ExactlyOne([]string{"blocks"}, []string{"dataType", "data"}), AtLeastOneEach("blocks", "nextID", "previousID", "parentID")},
		ParamAliases: map[string]string{"markdown": "data"},
		Guidance:     []string{"With parentID the text becomes the first child.", "Into a list go only items of its kind; beside an item one for each entry of blocks.", "Of several places nextID wins over previousID, and that over parentID. An entry's own place wins over that of the call."},
		Examples: []string{
			`{"dataType":"markdown","data":"In between.","previousID":"20240102110002-block02"}`,
			`{"previousID":"20240102110002-block02","blocks":[{"dataType":"markdown","data":"One."},{"dataType":"markdown","data":"Two."}]}`,
		},
	})
	BlockPrepend = define[BlockPrependIn, BlockAppendOut](Action{
		Name: "prepend", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets,
		Summary:      "Add text at the start of a document or container block.",
		ParamAliases: map[string]string{"id": "parentID", "markdown": "data"},
		Examples:     []string{`{"parentID":"20240102100100-alphadc","dataType":"markdown","data":"First line."}`},
	})
	BlockDelete = define[BlockID, BlockDeleteOut](Action{
		Name: "delete", Kind: Delete, Level: contract.ReadWriteDelete, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, Dangerous: true, Off: true,
		Summary:  "Delete a block with everything in it.",
		Guidance: []string{"Deleting a heading leaves the text below it. Whole documents are removed with document.remove."},
		Aliases:  []string{"rm", "remove", "del"},
		Examples: []string{`{"id":"20240102110002-block02"}`},
	})
	BlockMove = define[BlockMoveIn, BlockMoveOut](Action{
		Name: "move", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnStructure, Dangerous: true,
		Summary:  "Move blocks behind another block or into a container, keeping their ids.",
		Rules:    []Rule{ExactlyOne([]string{"id"}, []string{"ids"}), AtLeastOne("previousID", "parentID")},
		Moves:    []string{"id", "ids"},
		Guidance: []string{"With parentID the blocks become its first children; previousID wins over it.", "List items move only into lists of their kind, and nothing else does; a heading moves without the text below it."},
		Aliases:  []string{"mv"},
		Examples: []string{`{"id":"20240102110002-block02","parentID":"20240102100100-alphadc"}`},
	})
	BlockSetAttrs = define[BlockSetAttrsIn, BlockSetAttrsOut](Action{
		Name: "set_attrs", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState,
		Summary:  "Set or remove attributes of a block: name, alias, memo, bookmark, custom-….",
		Guidance: []string{"Title, icon, cover, fold state, databases and flashcards have actions of their own."},
		Examples: []string{`{"id":"20240102110002-block02","attrs":{"custom-status":"done","memo":""}}`},
	})
	BlockGetAttrs = define[BlockID, BlockGetAttrsOut](Action{
		Name: "get_attrs", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "Read all attributes of a block.",
		Examples: []string{`{"id":"20240102110002-block02"}`},
	})
	BlockBatchKramdown = define[BlockBatchKramdownIn, BlockBatchKramdownOut](Action{
		Name: "batch_kramdown", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "Read several blocks as Kramdown; each succeeds or fails alone.",
		Guidance: []string{"Where the answer would be too large, the last ids have no item yet: call again with those."},
		Examples: []string{`{"ids":["20240102110002-block02","20240102110003-block03"]}`},
	})
	BlockGetChildren = define[BlockGetChildrenIn, BlockGetChildrenOut](Action{
		Name: "get_children", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "List the blocks directly in a document or container, by page.",
		Examples: []string{`{"id":"20240102100100-alphadc"}`},
	})
	BlockInfo = define[BlockID, BlockInfoOut](Action{
		Name: "info", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "Say where a block is: notebook, document, storage path.",
		Examples: []string{`{"id":"20240102110002-block02"}`},
	})
	BlockBreadcrumb = define[BlockBreadcrumbIn, BlockBreadcrumbOut](Action{
		Name: "breadcrumb", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced,
		Summary:  "List the blocks that hold a block, from the document down.",
		Examples: []string{`{"id":"20240102110002-block02"}`},
	})
	BlockDOM = define[BlockDOMIn, BlockDOMOut](Action{
		Name: "dom", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced,
		Summary:  "Read a block as SiYuan's own block DOM.",
		Guidance: []string{"A long document comes in pieces: while nextWindow is there, repeat the call with its blockStart."},
		Examples: []string{`{"id":"20240102110002-block02"}`},
	})
	BlockRecentUpdated = define[BlockRecentUpdatedIn, BlockRecentUpdatedOut](Action{
		Name: "recent_updated", Kind: Read, Level: contract.Read, Scope: ScopeCollection, Tier: Advanced,
		Summary:  "List what changed lately, by document.",
		Examples: []string{`{"count":10}`},
	})
	BlockWordCount = define[BlockWordCountIn, BlockWordCountOut](Action{
		Name: "word_count", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced,
		Summary:      "Count characters, words, links, images and references of blocks together.",
		ParamAliases: map[string]string{"id": "ids"},
		Examples:     []string{`{"ids":["20240102100100-alphadc"]}`},
	})
	BlockDocsInfo = define[BlockDocsInfoIn, BlockDocsInfoOut](Action{
		Name: "docs_info", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced,
		Summary:  "Read title and icon of documents, with reference counts or databases if wanted.",
		Rules:    []Rule{ExactlyOne([]string{"id"}, []string{"ids"})},
		Examples: []string{`{"ids":["20240102100100-alphadc"],"refCount":true}`},
	})
	BlockReplace = define[BlockReplaceIn, BlockReplaceOut](Action{
		Name: "replace", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Guarded: OnState,
		Summary: "Replace pieces of one block's own text, keeping everything around them.",
		Rules:   []Rule{ExactlyOne([]string{"edit"}, []string{"old", "new"}), NotWith("edit", "", "replace_all")},
		Guidance: []string{
			"old is the text as shown: hello, not **hello**. Blocks inside the block are not searched.",
			"Attribute lines {: …} cannot be edited; use set_attrs.",
		},
		Examples: []string{`{"id":"20240102110002-block02","edit":[{"old":"Monday","new":"Tuesday"}]}`, `{"id":"20240102110002-block02","old":"Monday","new":""}`},
	})
	BlockSetFoldState = define[BlockSetFoldStateIn, BlockSetFoldStateOut](Action{
		Name: "set_fold_state", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState,
		Summary:  "Fold or unfold a heading, list item or other container.",
		Examples: []string{`{"id":"20240102110001-block01","folded":true}`},
	})
	BlockTransferReferences = define[BlockTransferReferencesIn, BlockTransferReferencesOut](Action{
		Name: "transfer_references", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnManifest,
		Summary:  "Make blocks that refer to one block refer to another.",
		Guidance: []string{"The blocks that hold the references are what is edited: rw is needed there, r at fromID and toID."},
		Examples: []string{`{"fromID":"20240102110002-block02","toID":"20240102110003-block03"}`},
	})
	BlockAddToDailyNote = define[BlockAddToDailyNoteIn, BlockAddToDailyNoteOut](Action{
		Name: "add_to_daily_note", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced,
		Summary:      "Add text to today's daily note of a notebook; the note is created where it is missing.",
		ParamAliases: map[string]string{"markdown": "data"},
		Examples:     []string{`{"notebook":"20240101090000-work001","dataType":"markdown","data":"Called Ann.","position":"append"}`},
	})
)
