package timeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/undo"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.TimelineListNodes, listNodes),
		tools.Bind(catalogue.TimelineCreateNode, createNode),
		tools.Bind(catalogue.TimelineCompareNode, compareNode),
		tools.BindDangerous(catalogue.TimelineDeleteNode, previewDelete, deleteNode),
		tools.BindDangerous(catalogue.TimelineRollbackDocument, previewRollback, rollbackDocument),
		tools.BindDangerous(catalogue.TimelineRollbackBlock, previewBlock, rollbackBlock),
		tools.Bind(catalogue.TimelineListChanges, listChanges),
		tools.BindDangerous(catalogue.TimelineUndo, previewUndo, takeBack),
	}
}

// maxDocuments bounds one plan: every document in it is looked at.
const maxDocuments = 200

const pageSize = 50

// choice is which writes of the caller are meant. What undos wrote is meant only
// where their sitting is named: a second undo since the same time takes nothing
// back and forth.
func choice(r *tools.Request, since string, sitting *int, doc string) (restore.Choice, error) {
	c := restore.Choice{Scope: r.Session.Author().Scope, Doc: doc, NoUndo: sitting == nil}
	if sitting != nil {
		c.Sitting = int64(*sitting)
	}
	if since == "" {
		return c, nil
	}
	t, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return c, contract.InvalidFields(contract.Field{Path: "since", Message: "must be a time as in RFC 3339, such as 2026-11-30T14:05:00+01:00"})
	}
	c.Since = t
	return c, nil
}

func books(r *tools.Request) (tools.Books, error) {
	if r.Books == nil {
		return nil, contract.Fail(contract.Unsupported, "This connector keeps no restore points.")
	}
	return r.Books, nil
}

func plan(ctx context.Context, r *tools.Request, c restore.Choice) (undo.Plan, error) {
	b, err := books(r)
	if err != nil {
		return undo.Plan{}, err
	}
	points, err := b.Points(c)
	if err != nil {
		return undo.Plan{}, err
	}
	docs := map[string]bool{}
	for _, p := range points {
		docs[p.Doc] = true
	}
	if len(docs) > maxDocuments {
		return undo.Plan{}, contract.Fail(contract.TooLarge, "These are the changes of more than %d documents.", maxDocuments).
			WithHint("Name a sitting, a later time in since, or one document.")
	}
	return undo.Make(ctx, r.Session, points, c.Since)
}

func listChanges(ctx context.Context, r *tools.Request, in catalogue.TimelineListChangesIn) (catalogue.TimelineListChangesOut, error) {
	out := catalogue.TimelineListChangesOut{Sittings: []catalogue.Sitting{}, Documents: []catalogue.ChangedDocument{}}
	c, err := choice(r, in.Since, in.Sitting, in.DocumentID)
	if err != nil {
		return out, err
	}
	p, err := plan(ctx, r, c)
	if contract.CodeOf(err) == contract.TooLarge && c.Sitting == 0 { // the sittings' numbers lead to the rest
		told, _ := errors.AsType[*contract.Error](err)
		out.Hint, err = told.Message+" "+told.Hint, nil
	}
	if err != nil {
		return out, err
	}
	if out.Sittings, err = sittings(r, c); err != nil {
		return out, err
	}
	from, to, page := catalogue.Page(len(p.Documents), or(in.Page, 1), or(in.PageSize, pageSize))
	for _, d := range p.Documents[from:to] {
		out.Documents = append(out.Documents, show(d))
	}
	left := r.Budget
	for _, s := range out.Sittings {
		left -= catalogue.Chars(s)
	}
	out.Documents, out.PageOut = catalogue.Shrink(out.Documents, page, max(1, left))
	return out, nil
}

// sittingsShown bounds the sittings of one answer, and lastingShown what each of
// them says that nothing takes back.
const (
	sittingsShown = 20
	lastingShown  = 10
)

func sittings(r *tools.Request, c restore.Choice) ([]catalogue.Sitting, error) {
	all, err := r.Books.Sittings(c.Scope)
	if err != nil {
		return nil, err
	}
	out := []catalogue.Sitting{}
	for _, s := range all {
		if c.Sitting != 0 && s.ID != c.Sitting || s.Last.Before(c.Since) || len(out) == sittingsShown {
			continue
		}
		shown := catalogue.Sitting{ID: int(s.ID), Began: stamp(s.Began), Last: stamp(s.Last), Undo: s.Undo, Writes: s.Writes}
		for _, n := range s.Others[:min(len(s.Others), lastingShown)] {
			shown.NotUndoable = append(shown.NotUndoable, catalogue.LastingChange{Action: n.Action, At: stamp(n.At)})
		}
		out = append(out, shown)
	}
	return out, nil
}

func stamp(t time.Time) string { return t.Format(time.RFC3339) }

func or(v *int, standard int) int {
	if v == nil {
		return standard
	}
	return *v
}

func show(d undo.Document) catalogue.ChangedDocument {
	out := catalogue.ChangedDocument{
		ID: d.ID, Kind: d.Kind, Title: d.Title, Effect: string(d.Effect), Parts: d.Parts, Cells: d.Cells, Rows: d.Rows, Since: stamp(d.Since), Failed: d.Failed,
	}
	for _, x := range d.Refused {
		out.Refused = append(out.Refused, catalogue.Refused{Part: x.Part, Code: x.Reason, Text: x.Text, Count: x.Count})
	}
	return out
}

// changes reports whether something of a document would come back.
func changes(d undo.Document) bool { return d.Effect != undo.Nothing }

func previewUndo(ctx context.Context, r *tools.Request, in catalogue.TimelineUndoIn) (p contract.Preview, err error) {
	c, err := choice(r, in.Since, in.Sitting, in.DocumentID)
	if err != nil {
		return p, err
	}
	pl, err := plan(ctx, r, c)
	if err != nil {
		return p, err
	}
	p.Kept = pl.Refused
	for _, d := range pl.Documents {
		if !changes(d) {
			continue
		}
		if p.Counts.Rows += d.Rows; d.Kind == "" {
			p.Counts.Documents++
		}
		if len(p.Named) == contract.PreviewNamed {
			p.More++
			continue
		}
		if d.Kind != "" {
			p.Named = append(p.Named, contract.PreviewItem{Kind: d.Kind, Title: d.Title, Places: d.Cells})
			continue
		}
		item := &contract.PreviewItem{Kind: "document", Title: d.Title}
		at, err := r.Session.Doc(ctx, d.ID, contract.Read)
		if err == nil {
			if item, err = r.Session.PreviewBlock(ctx, at.Block()); err != nil {
				return p, err
			}
		} else if contract.CodeOf(guard.Public(err)) != contract.NotFound {
			return p, err
		}
		if item != nil {
			p.Named = append(p.Named, *item)
		}
	}
	return p, nil
}

func takeBack(ctx context.Context, r *tools.Request, in catalogue.TimelineUndoIn) (out catalogue.TimelineUndoOut, err error) {
	out.Documents = []catalogue.ChangedDocument{}
	c, err := choice(r, in.Since, in.Sitting, in.DocumentID)
	if err != nil {
		return out, err
	}
	p, err := plan(ctx, r, c)
	if err != nil {
		return out, err
	}
	if !p.Empty() {
		r.Session.InConversation(restore.UndoConversation(r.RequestID))
		told := func(done, of int) { r.Progress(contract.Progress{Done: float64(done), Total: float64(of)}) }
		if err := p.Apply(ctx, r.Session, r.Intent(), r.Books, told); err != nil {
			return out, err
		}
	}
	out.Success, out.Left = true, p.Refused
	for _, d := range p.Documents {
		if d.Failed == "" && changes(d) {
			out.Undone++
		}
		if d.Failed != "" {
			out.Success = false
		}
		out.Documents = append(out.Documents, show(d))
	}
	all := len(out.Documents)
	out.Documents = catalogue.Fit(out.Documents, maxDocuments, r.Budget, catalogue.Chars[catalogue.ChangedDocument])
	if out.Truncated = len(out.Documents) < all; out.Truncated {
		out.Hint = fmt.Sprintf("These are the first %d of %d documents; timeline.list_changes shows what is left.", len(out.Documents), all)
	}
	return out, nil
}
