package tools

import "siyuan-broker/contract"

// TimelineNode is a named state of a document or of the workspace: a snapshot with
// a tag.
type TimelineNode struct {
	Name    string `json:"name"`              // letters and digits of the one given
	Created string `json:"created,omitempty"` // RFC 3339
	Tag     string `json:"tag"`               // what the other actions take
	Scope   string `json:"scope"`             // global or document
}

// TimelineListNodesIn is the input of timeline.list_nodes.
type TimelineListNodesIn struct {
	Scope      string `json:"scope" enum:"global|document|all" doc:"Whose states."`
	DocumentID string `json:"documentId,omitempty" ref:"doc" doc:"Document; not with scope global."`
	Page       *int   `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize   *int   `json:"pageSize,omitempty" min:"1" max:"100" doc:"Default 50."`
}

// TimelineListNodesOut is the output of timeline.list_nodes, the newest first.
type TimelineListNodesOut struct {
	Nodes []TimelineNode `json:"nodes"`
	PageOut
}

// TimelineCreateNodeIn is the input of timeline.create_node.
type TimelineCreateNodeIn struct {
	Name       string `json:"name" doc:"Of the state." minlen:"1" maxlen:"128"`
	Scope      string `json:"scope" enum:"global|document" doc:"Whose states."`
	DocumentID string `json:"documentId,omitempty" ref:"doc" doc:"Document; not with scope global."`
}

// TimelineCreateNodeOut is the output of timeline.create_node.
type TimelineCreateNodeOut struct {
	Success    bool         `json:"success"`
	Node       TimelineNode `json:"node"`
	DocumentID string       `json:"documentId,omitempty"`
}

// TimelineCompareNodeIn is the input of timeline.compare_node.
type TimelineCompareNodeIn struct {
	DocumentID       string `json:"documentId" ref:"doc" doc:"Document."`
	Tag              string `json:"tag" doc:"Tag of a node." minlen:"1" maxlen:"128"`
	Page             *int   `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize         *int   `json:"pageSize,omitempty" min:"1" max:"100" doc:"Default 20."`
	IncludeUnchanged bool   `json:"includeUnchanged,omitempty" doc:"Unchanged too."`
}

// TimelineChange is a top-level block of a document, then and now.
type TimelineChange struct {
	ChangeKey    string `json:"changeKey"`
	Status       string `json:"status"`            // added, removed, modified or unchanged
	Old          string `json:"old,omitempty"`     // text then
	Current      string `json:"current,omitempty"` // text now
	Rollbackable bool   `json:"rollbackable"`      // by itself; a block with a database is not
}

// TimelineStats counts what differs.
type TimelineStats struct {
	AddedLines         int `json:"addedLines"`
	RemovedLines       int `json:"removedLines"`
	ChangedBlocks      int `json:"changedBlocks"`
	RollbackableBlocks int `json:"rollbackableBlocks"`
}

// TimelineCompareNodeOut is the output of timeline.compare_node.
type TimelineCompareNodeOut struct {
	Node       TimelineNode     `json:"node"`
	DocumentID string           `json:"documentId"`
	NoChanges  bool             `json:"noChanges"`
	Reordered  bool             `json:"reordered"` // blocks stand in another order than then
	Stats      TimelineStats    `json:"stats"`
	Changes    []TimelineChange `json:"changes"`
	PageOut
}

// TimelineDeleteNodeIn is the input of timeline.delete_node.
type TimelineDeleteNodeIn struct {
	Tag        string `json:"tag" doc:"Tag of a node." minlen:"1" maxlen:"128"`
	DocumentID string `json:"documentId,omitempty" ref:"doc" doc:"Document; not with scope global."`
}

// TimelineDeleteNodeOut is the output of timeline.delete_node.
type TimelineDeleteNodeOut struct {
	Success          bool   `json:"success"`
	Tag              string `json:"tag"`
	Scope            string `json:"scope"`
	SnapshotRetained bool   `json:"snapshotRetained"` // always
}

// TimelineRollbackDocumentIn is the input of timeline.rollback_document.
type TimelineRollbackDocumentIn struct {
	DocumentID string `json:"documentId" ref:"doc" doc:"Document."`
	Tag        string `json:"tag" doc:"Tag of a node." minlen:"1" maxlen:"128"`
}

// TimelineRollbackDocumentOut is the output of timeline.rollback_document.
type TimelineRollbackDocumentOut struct {
	Success    bool   `json:"success"`
	DocumentID string `json:"documentId"`
	Tag        string `json:"tag"`
	Changed    int    `json:"changed"` // top-level blocks
}

// TimelineRollbackBlockIn is the input of timeline.rollback_block.
type TimelineRollbackBlockIn struct {
	DocumentID string `json:"documentId" ref:"doc" doc:"Document."`
	Tag        string `json:"tag" doc:"Tag of a node." minlen:"1" maxlen:"128"`
	ChangeKey  string `json:"changeKey" doc:"From compare_node." minlen:"1" maxlen:"128"`
}

// TimelineRollbackBlockOut is the output of timeline.rollback_block.
type TimelineRollbackBlockOut struct {
	Success    bool   `json:"success"`
	DocumentID string `json:"documentId"`
	Tag        string `json:"tag"`
	ChangeKey  string `json:"changeKey"`
	Status     string `json:"status"`
}

// ofScope ties documentId to the scope.
var ofScope = []Rule{Needs("scope", "document", "documentId"), NotWith("scope", "global", "documentId")}

const nodeExample = `"documentId":"20240102100100-alphadc","tag":"sisyphustimeline_20240102100100-alphadc_draft"`

// The actions of the timeline tool about nodes.
var (
	TimelineListNodes = define[TimelineListNodesIn, TimelineListNodesOut](Action{
		Name: "list_nodes", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "List named states of a document or of the workspace.",
		Rules:    append([]Rule{Needs("scope", "all", "documentId")}, ofScope...),
		Guidance: []string{"Those of the workspace need its own permission."},
		Examples: []string{`{"scope":"document","documentId":"20240102100100-alphadc"}`},
	})
	TimelineCreateNode = define[TimelineCreateNodeIn, TimelineCreateNodeOut](Action{
		Name: "create_node", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets,
		Summary:  "Keep the present state of a document or of the workspace under a name.",
		Rules:    ofScope,
		Guidance: []string{"It is a snapshot of the whole workspace, and needs the data repository key that only the home owner can make."},
		Examples: []string{`{"name":"draft","scope":"document","documentId":"20240102100100-alphadc"}`},
	})
	TimelineCompareNode = define[TimelineCompareNodeIn, TimelineCompareNodeOut](Action{
		Name: "compare_node", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "Compare a document with a named state, block by block.",
		Guidance: []string{"Blocks are the top-level ones, such as a whole list. Nothing is written: no snapshot is taken."},
		Examples: []string{`{` + nodeExample + `}`},
	})
	TimelineDeleteNode = define[TimelineDeleteNodeIn, TimelineDeleteNodeOut](Action{
		Name: "delete_node", Kind: Delete, Level: contract.ReadWriteDelete, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Lasting: true, Off: true,
		Summary:  "Remove the name of a state; the snapshot stays.",
		Examples: []string{`{` + nodeExample + `}`},
	})
	TimelineRollbackDocument = define[TimelineRollbackDocumentIn, TimelineRollbackDocumentOut](Action{
		Name: "rollback_document", Kind: Write, Level: contract.ReadWriteDelete, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, Dangerous: true, Agreement: ByPerson, Off: true,
		Summary:  "Make the text of a document what it was at a node.",
		Guidance: []string{"Blocks get their ids back. Title, attributes and place stay, and so do the cells of databases."},
		Examples: []string{`{` + nodeExample + `}`},
	})
	TimelineRollbackBlock = define[TimelineRollbackBlockIn, TimelineRollbackBlockOut](Action{
		Name: "rollback_block", Kind: Write, Level: contract.ReadWriteDelete, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, Dangerous: true, Agreement: ByPerson, Off: true,
		Summary:  "Make one top-level block of a document what it was at a node.",
		Examples: []string{`{` + nodeExample + `,"changeKey":"modified:20240102110002-block02:20240102110002-block02"}`},
	})
)
