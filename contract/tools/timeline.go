package tools

import "siyuan-broker/contract"

// TimelineListChangesIn is the input of timeline.list_changes.
type TimelineListChangesIn struct {
	Since      string `json:"since,omitempty" maxlen:"64" doc:"From then on; RFC 3339."`
	Sitting    *int   `json:"sitting,omitempty" min:"1" max:"1000000000" doc:"From list_changes."`
	DocumentID string `json:"documentId,omitempty" maxlen:"22" doc:"Only this document (may be gone) or database."`
	PageIn
}

// Sitting is what the agent wrote in one conversation or without a long pause.
type Sitting struct {
	ID          int             `json:"id"`
	Began       string          `json:"began"` // RFC 3339
	Last        string          `json:"last"`
	Writes      int             `json:"writes,omitempty"`      // 0: not counted
	Undo        bool            `json:"undo,omitempty"`        // it was an undo itself
	NotUndoable []LastingChange `json:"notUndoable,omitempty"` // by their nature
}

// LastingChange is a write that nothing takes back.
type LastingChange struct {
	Action string `json:"action"`
	At     string `json:"at"`
}

// ChangedDocument is what taking back would do, or did, to one document or database.
type ChangedDocument struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind,omitempty"` // database; none of a document
	Title   string    `json:"title"`
	Effect  string    `json:"effect"`          // restored, removed, returned, reordered or nothing
	Parts   []string  `json:"parts,omitempty"` // that come back: text, attributes, place, document, order; cells, rows
	Cells   int       `json:"cells,omitempty"` // that come back
	Rows    int       `json:"rows,omitempty"`  // that are removed, because the agent added them
	Since   string    `json:"since"`           // of the oldest write that is taken back
	Refused []Refused `json:"refused,omitempty"`
	Failed  string    `json:"failed,omitempty"` // why it was not done
}

// Refused is a part that stays as it is.
type Refused struct {
	Part string `json:"part"`
	Code string `json:"code"`
	Text string `json:"text"`

	Count int `json:"count,omitempty"` // of cells or rows
}

// TimelineListChangesOut is the output of timeline.list_changes.
type TimelineListChangesOut struct {
	Sittings  []Sitting         `json:"sittings"` // the newest first
	Documents []ChangedDocument `json:"documents"`
	Hint      string            `json:"hint,omitempty"` // why there are no documents
	PageOut
}

// TimelineUndoIn is the input of timeline.undo.
type TimelineUndoIn struct {
	Since      string `json:"since,omitempty" maxlen:"64" doc:"From then on; RFC 3339."`
	Sitting    *int   `json:"sitting,omitempty" min:"1" max:"1000000000" doc:"From list_changes."`
	DocumentID string `json:"documentId,omitempty" maxlen:"22" doc:"Only this document (may be gone) or database."`
}

// TimelineUndoOut is the output of timeline.undo.
type TimelineUndoOut struct {
	Success   bool              `json:"success"`
	Undone    int               `json:"undone"` // documents
	Left      int               `json:"left"`   // documents of which something stays as it is
	Documents []ChangedDocument `json:"documents"`
	CutOut
}

// The actions of the timeline tool.
var (
	TimelineListChanges = define[TimelineListChangesIn, TimelineListChangesOut](Action{
		Name: "list_changes", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary:  "List what you wrote, by document, and what of it can be taken back.",
		Guidance: []string{"A sitting is what you wrote in one conversation, or without a pause of half an hour. Other agents' and people's writes are not listed."},
		Examples: []string{`{}`, `{"since":"2026-11-30T14:05:00+01:00"}`},
	})
	TimelineUndo = define[TimelineUndoIn, TimelineUndoOut](Action{
		Name: "undo", Kind: Write, Level: contract.ReadWrite, Scope: ScopeCollection, Dangerous: true, Agreement: ByPerson,
		Summary: "Take back what you wrote: a sitting, since a time, or one document.",
		Rules:   []Rule{AtLeastOne("since", "sitting", "documentId")},
		Guidance: []string{
			"What somebody else changed since stays, and is named in refused. Removing a document that you made needs rwd.",
			"Tags, files, notebooks, removed rows and columns are not taken back.",
			"An undo is a sitting of its own and can be undone by its number.",
		},
		Examples: []string{`{"sitting":12}`, `{"since":"2026-11-30T14:05:00+01:00"}`},
	})
)

func timelineTool() *Tool {
	return &Tool{
		Name:    "timeline",
		Title:   "Timeline",
		Purpose: "Named states, your changes, the way back.",
		Fields:  map[string]string{"documentId": "Document.", "pageSize": "Entries."},
		Actions: []*Action{TimelineListNodes.Action, TimelineCreateNode.Action, TimelineCompareNode.Action, TimelineDeleteNode.Action,
			TimelineRollbackDocument.Action, TimelineRollbackBlock.Action, TimelineListChanges.Action, TimelineUndo.Action},
	}
}
