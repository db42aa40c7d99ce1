package activity

import (
	"slices"
	"strconv"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// about is what every page says about the agent.
type about struct {
	Agent    string
	Instance string
	Member   string // e-mail of whom it works for; empty: of the person who looks
	Ended    bool   // it has no access any more
	List     string // path of the list
	Undo     string // path of the preview
}

func describe(of subject) about {
	base := "/console/agents/" + of.agent.ID.String()
	return about{
		Agent: contract.PlainText(of.agent.Name, contract.PreviewRunes), Instance: of.instance, Member: of.member, Ended: of.ended,
		List: base + "/activity", Undo: base + "/undo",
	}
}

type activityPage struct {
	about
	Problem        string // key of a message; empty: none
	Sittings       []sittingView
	Later, Earlier string // paths; empty: none
}

// sittingView is one sitting with its first documents.
type sittingView struct {
	ID          int
	Began, Last time.Time
	Undo        bool // it took others back
	Writes      int  // 0: not known
	Lasting     []lasting
	Problem     string
	Documents   []documentView
	Total       int
	More        int    // documents that are not shown here
	Path        string // of the preview; empty: nothing would come back
}

// lasting is a write that nothing takes back.
type lasting struct {
	Action string
	At     time.Time
}

// documentView is a document or a database.
type documentView struct {
	Database bool
	Title    string
	Effect   string     // key of a message
	Parts    []partView // none where the effect says it all
	Refused  []refusedView
	Failed   bool
	Changes  bool   // something comes back, or came
	Path     string // of its own preview; empty: none
}

// partView is a part by the key of its message; Count is how many cells or rows it
// is, 0 of what is not counted.
type partView struct {
	Part  string
	Count int
}

// refusedView is a part that stays, and the key of why.
type refusedView struct {
	partView
	Why string
}

type undoPage struct {
	about
	Choice
	Problem   string
	Request   tenants.ID
	Documents []documentView
	Total     int
	More      int
	Changes   bool // something would come back
}

type resultPage struct {
	about
	Choice
	Problem      string
	Again        bool // the same request may be sent again
	Request      tenants.ID
	Success      bool
	Undone, Left int
	Documents    []documentView
	More         bool
}

func showSitting(undo string, s tools.Sitting, out tools.TimelineListChangesOut, failed *contract.Error) sittingView {
	v := sittingView{ID: s.ID, Began: moment(s.Began), Last: moment(s.Last), Undo: s.Undo, Writes: s.Writes}
	for _, l := range s.NotUndoable {
		v.Lasting = append(v.Lasting, lasting{contract.PlainText(l.Action, contract.PreviewRunes), moment(l.At)})
	}
	if failed != nil {
		v.Problem = problemOf(failed)
		return v
	}
	preview := undo + "?sitting=" + strconv.Itoa(s.ID)
	v.Documents, v.Total = showDocuments(out.Documents, "effect.", preview), out.Total
	v.More = max(0, out.Total-len(out.Documents))
	if v.More > 0 || slices.ContainsFunc(v.Documents, changes) {
		v.Path = preview
	}
	return v
}

func changes(d documentView) bool { return d.Changes }

func (v *undoPage) take(out tools.TimelineListChangesOut) {
	own := ""
	if v.Document == "" {
		own = v.Undo + "?sitting=" + strconv.Itoa(v.Sitting)
	}
	v.Documents, v.Total = showDocuments(out.Documents, "effect.", own), out.Total
	v.More = max(0, out.Total-len(out.Documents))
	v.Changes = v.More > 0 || slices.ContainsFunc(v.Documents, changes)
}

func (v *resultPage) take(out tools.TimelineUndoOut) {
	v.Success, v.Undone, v.Left, v.More = out.Success, out.Undone, out.Left, out.Truncated
	v.Documents = showDocuments(out.Documents, "did.", "")
}

// showDocuments are documents in words of ours: everything but titles comes from
// lists that are known here, whatever a home says. tense begins the keys of effects;
// preview is what a document's own preview is reached by, empty for none.
func showDocuments(all []tools.ChangedDocument, tense, preview string) []documentView {
	list := make([]documentView, 0, len(all))
	for _, d := range all {
		v := documentView{
			Database: d.Kind == "database", Title: contract.PlainText(d.Title, contract.PreviewRunes), Effect: known(tense, d.Effect, "nothing", effects), Failed: d.Failed != "",
		}
		v.Changes = v.Effect != tense+"nothing" && !v.Failed
		for _, part := range d.Parts {
			if part == "document" || part == "order" {
				continue
			}
			v.Parts = append(v.Parts, partView{known("part.", part, "other", parts), max(0, map[string]int{"cells": d.Cells, "rows": d.Rows}[part])})
		}
		for _, x := range d.Refused {
			why := known("why.", x.Code, "other", reasons)
			if x.Part == "cells" || x.Part == "rows" {
				why = known("why.cells.", x.Code, "other", cellReasons)
			}
			v.Refused = append(v.Refused, refusedView{partView{known("part.", x.Part, "other", parts), max(0, x.Count)}, why})
		}
		if preview != "" && v.Changes && contract.IsID(d.ID) {
			v.Path = preview + "&document=" + d.ID
		}
		list = append(list, v)
	}
	return list
}

// What homes say, as far as there are words for it.
var (
	effects = []string{"restored", "removed", "returned", "reordered", "nothing"}
	parts   = []string{"text", "attributes", "place", "document", "order", "cells", "rows"}
	reasons = []string{"changed_since", "holds_others", "blocks_moved", "began_before", "not_kept", "not_known", "too_large", "not_allowed"}

	// cellReasons are those of cells and rows of databases.
	cellReasons = []string{
		"changed_since", "not_known", "too_large", "not_allowed", "database_gone", "row_gone", "column_gone", "column_changed", "option_gone", "target_gone",
	}
)

func known(prefix, word, other string, list []string) string {
	if !slices.Contains(list, word) {
		word = other
	}
	return prefix + word
}

// moment is a time as the home tells it; zero for none.
func moment(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t
}

// problemOf is the message that says why a home did not answer.
func problemOf(err *contract.Error) string {
	switch code := contract.CodeOf(err); {
	case code == contract.OutcomeUnknown:
		return "problem.unknown"
	case err.Type == contract.TypeOffline, err.Type == contract.TypeTimeout:
		return "problem.offline"
	case code == contract.PermissionDenied, code == contract.ActionDisabled:
		return "problem.policy"
	case code == contract.ConfirmationRequired:
		return "problem.owner"
	case code == contract.Unsupported, code == contract.UnknownTool, code == contract.UnknownAction:
		return "problem.unsupported"
	case code == contract.RateLimited:
		return "problem.often"
	case code == contract.TooLarge:
		return "problem.large"
	}
	return "problem.failed"
}
