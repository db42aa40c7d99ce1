package tools

import "siyuan-broker/contract"

// BlockGetKramdownIn is the input of block.get_kramdown.
type BlockGetKramdownIn struct {
	ID string `json:"id" ref:"block" doc:"Block or document id."`
	Piece
}

// BlockGetKramdownOut is the output of block.get_kramdown.
type BlockGetKramdownOut struct {
	ID       string `json:"id"`
	Kramdown string `json:"kramdown"` // without zero-width characters
	PieceOut
}

// BlockAppendIn is the input of block.append.
type BlockAppendIn struct {
	ParentID string `json:"parentID" ref:"block" doc:"Document or container block (list, list item, quote, super block)."`
	Data     string `json:"data" doc:"The text."`
	DataType string `json:"dataType" enum:"markdown|dom" doc:"markdown, or dom for SiYuan's block DOM."`
}

// BlockAppendOut is the output of block.append.
type BlockAppendOut struct {
	Success  bool     `json:"success"`
	ID       string   `json:"id"`  // the first new block
	IDs      []string `json:"ids"` // every new top-level block, in order
	ParentID string   `json:"parentID"`
	DataType string   `json:"dataType"`
}

// BlockUpdateIn is the input of block.update.
type BlockUpdateIn struct {
	ID       string            `json:"id,omitempty" ref:"block" doc:"Block to rewrite."`
	Data     string            `json:"data,omitempty" doc:"The text."`
	DataType string            `json:"dataType,omitempty" enum:"markdown|dom" doc:"markdown, or dom for SiYuan's block DOM."`
	Items    []BlockUpdateItem `json:"items,omitempty" minlen:"1" maxlen:"128" doc:"Several updates at once: all are written or none."`
}

// BlockUpdateItem is one update of a batch.
type BlockUpdateItem struct {
	ID       string `json:"id" ref:"block" doc:"Block to rewrite."`
	Data     string `json:"data" doc:"The text."`
	DataType string `json:"dataType" enum:"markdown|dom" doc:"markdown or dom."`
}

// BlockUpdated tells what became of one block.
type BlockUpdated struct {
	ID                      string `json:"id"`
	DataType                string `json:"dataType"`
	Kramdown                string `json:"kramdown"` // as stored now
	AttributesPreserved     bool   `json:"attributesPreserved"`
	PreservedAttributeCount int    `json:"preservedAttributeCount"`
}

// BlockUpdateOut is the output of block.update: one block, or Updated for a
// batch.
type BlockUpdateOut struct {
	Success bool `json:"success"`
	*BlockUpdated
	Count   int            `json:"count,omitempty"`
	Updated []BlockUpdated `json:"updated,omitempty"`
	Warning string         `json:"warning,omitempty"`
}

// The actions of the block tool.
var (
	BlockGetKramdown = define[BlockGetKramdownIn, BlockGetKramdownOut](Action{
		Name: "get_kramdown", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "Read one block, or a document with everything in it, as Kramdown with ids and attributes.",
		Guidance: []string{"A long document comes in pieces: while nextWindow is there, repeat the call with its blockStart. A single block is always whole."},
		Examples: []string{`{"id":"20240102110002-block02"}`},
	})
	BlockAppend = define[BlockAppendIn, BlockAppendOut](Action{
		Name: "append", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets,
		Summary:      "Add text at the end of a document or container block.",
		ParamAliases: map[string]string{"id": "parentID", "markdown": "data"},
		Guidance: []string{
			"A heading holds no blocks: to add below a heading, insert after the last block of its section.",
			"A reference is ((id \"text\")); a bare ((id)) gets the target's text as its anchor.",
		},
		Examples: []string{`{"parentID":"20240102100100-alphadc","dataType":"markdown","data":"One more line."}`},
	})
	BlockUpdate = define[BlockUpdateIn, BlockUpdateOut](Action{
		Name: "update", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Guarded: OnState,
		Summary:      "Replace the text of one block, or of several, keeping their ids and attributes.",
		Rules:        []Rule{ExactlyOne([]string{"items"}, []string{"id", "dataType", "data"})},
		ParamAliases: map[string]string{"markdown": "data"},
		Guidance: []string{
			"The text must be one block; to add blocks use append or insert.",
			"A list item is sent as \"- text\".",
		},
		Examples: []string{`{"id":"20240102110002-block02","dataType":"markdown","data":"New text."}`},
	})
)

func blockTool() *Tool {
	return &Tool{
		Name:    "block",
		Title:   "Blocks",
		Purpose: "Blocks: the paragraphs, headings, lists and other parts of a document, each with its own id.",
		Fields: map[string]string{
			"id":  "Block or document id.",
			"ids": "Block ids.",
		},
		Actions: []*Action{BlockGetKramdown.Action, BlockAppend.Action, BlockUpdate.Action,
			BlockBatchKramdown.Action, BlockGetChildren.Action, BlockGetAttrs.Action, BlockInfo.Action, BlockBreadcrumb.Action,
			BlockDOM.Action, BlockRecentUpdated.Action, BlockWordCount.Action, BlockDocsInfo.Action,
			BlockInsert.Action, BlockPrepend.Action, BlockReplace.Action, BlockDelete.Action, BlockMove.Action, BlockSetAttrs.Action,
			BlockSetFoldState.Action, BlockTransferReferences.Action, BlockAddToDailyNote.Action,
		},
	}
}
