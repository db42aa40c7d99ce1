package undo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/restore"
)

// Plan is what an undo would do, by document and database, or has done.
type Plan struct {
	Documents []Document `json:"documents"`
	Refused   int        `json:"refused"` // of them, those of which something is not brought back
	// Stamp is another one when the plan, made again, would do something else or to
	// something else: who saw this plan did not see that one.
	Stamp string `json:"stamp"`

	steps []step // in the order they are done
}

// Document is one document, a place whose order changed, or a database in a plan.
type Document struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind,omitempty"` // "database", or "" of a document
	Title   string    `json:"title"`          // of a database, where it is shown and its name
	Effect  Effect    `json:"effect"`
	Parts   []string  `json:"parts,omitempty"` // that are brought back
	Cells   int       `json:"cells,omitempty"` // of a database, that are brought back
	Rows    int       `json:"rows,omitempty"`  // likewise, that are removed
	Refused []Refusal `json:"refused,omitempty"`
	Since   time.Time `json:"since"`            // of the oldest write that is taken back
	Failed  string    `json:"failed,omitempty"` // after an undo: why it was not done

	told map[string]bool // cells and rows that are counted
}

// Database is the kind of a database in a plan.
const Database = "database"

// Effect says in one word what would happen to a document.
type Effect string

// The effects.
const (
	Restored  Effect = "restored"  // to its earlier text, attributes or place
	Removed   Effect = "removed"   // because the agent made it
	Returned  Effect = "returned"  // because the agent removed it
	Reordered Effect = "reordered" // the documents below it
	Nothing   Effect = "nothing"   // it is as it was, or nothing of it can be brought back
)

// Refusal is a part of a document that is not brought back, and why. Count is how
// many cells or rows of a database these are.
type Refusal struct {
	Part   string `json:"part"`
	Reason string `json:"reason"`
	Text   string `json:"text"`
	Count  int    `json:"count,omitempty"`
}

// step is one undoing with the document of the plan it belongs to, and the points
// that it brings back as a whole.
type step struct {
	u      guard.Undoing
	doc    int
	phase  int
	points []guard.Point // the newest first; one, but for cells that are set together
	whole  []int64       // ids of those of which nothing is refused
}

var reasons = map[guard.Reason]string{
	guard.ChangedSince: "somebody else changed it since",
	guard.NotKept:      "SiYuan's history has no version of it from before",
	guard.NotKnown:     "the connector ended during the write, so nobody knows who changed it last; SiYuan's history has the version from before",
	guard.NotAllowed:   "that needs a higher level in its notebook",
	guard.HoldsOthers:  "documents of others stand below it",
	guard.BlocksMoved:  "blocks of it are in another document now; undo that one together with it",
	guard.TooLarge:     "it shows a database and is too long to be put back block by block",
}

// ofCells are the reasons that read otherwise of cells and rows.
var ofCells = map[guard.Reason]string{
	guard.NotKnown:      "the connector ended during the write, so nobody knows who changed it last",
	guard.NotAllowed:    "that needs a higher level where the database, or what the cell leads to, is shown",
	guard.TooLarge:      "what was there before was too large to keep",
	guard.DatabaseGone:  "there is no such database any more",
	guard.RowGone:       "the row is gone",
	guard.ColumnGone:    "the column is gone",
	guard.ColumnChanged: "the column is of another type now, or leads elsewhere",
	guard.OptionGone:    "the column has not that option any more",
	guard.TargetGone:    "a row that it led to is gone",
}

func reasonText(r guard.Refusal) string {
	if r.Of == "" {
		return reasons[r.Reason]
	}
	return cmp.Or(ofCells[r.Reason], reasons[r.Reason])
}

const beganBefore = "the agent wrote to it before that time too; undo the whole sitting instead"

// Make judges points, the newest first, against the present. Points of a document
// that began before since are refused: a part of what a point holds cannot be
// brought back.
func Make(ctx context.Context, s *guard.Session, points []guard.Point, since time.Time) (Plan, error) {
	p := Plan{Documents: []Document{}}
	along := map[string]bool{}
	for _, pt := range points {
		along[pt.Doc] = true
	}
	states := map[string]guard.DocState{}
	tables := s.Tables()
	phases := map[string]int{}
	places := map[string]int{} // index of a document in the plan
	judge := func(pt guard.Point) (guard.Undoing, bool, error) {
		if pt.Cells != nil {
			return tables.Judge(ctx, pt)
		}
		now, known := states[pt.Doc]
		if !known {
			var err error
			if now, err = s.State(ctx, pt); err != nil {
				return guard.Undoing{}, false, err
			}
		}
		return s.Judge(ctx, pt, now, along)
	}
	for _, pt := range points {
		if pt.Unchanged() {
			continue
		}
		u, visible, err := judge(pt)
		if err != nil {
			return p, err
		}
		if !visible {
			continue
		}
		key := pt.Doc
		if pt.Order != nil {
			key = "order of " + pt.Doc
		}
		at, listed := places[key]
		if !listed {
			at = len(p.Documents)
			places[key] = at
			p.Documents = append(p.Documents, Document{ID: pt.Doc, Title: u.Title, Effect: Nothing, told: map[string]bool{}})
		}
		d := &p.Documents[at]
		d.Title, d.Since = cmp.Or(d.Title, u.Title), pt.Made
		if pt.Cells != nil {
			d.Kind = Database
		} else if pt.Made.Before(since) {
			d.Refused = append(d.Refused, Refusal{Part: string(guard.PartDocument), Reason: "began_before", Text: beganBefore})
			continue
		}
		d.add(u)
		if len(u.Do) > 0 {
			phases[pt.Doc] = max(phases[pt.Doc], phase(u)) // later writes to a document are taken back first
			p.take(step{u: u, doc: at, phase: phases[pt.Doc], points: []guard.Point{pt}})
		}
		if pt.Order == nil && pt.Cells == nil {
			states[pt.Doc] = u.Then()
		}
	}
	for _, d := range p.Documents {
		if len(d.Refused) > 0 {
			p.Refused++
		}
	}
	slices.SortStableFunc(p.steps, func(a, b step) int {
		if a.phase == 0 && b.phase == 0 { // upper documents were noted first
			return cmp.Compare(a.u.Point.ID, b.u.Point.ID)
		}
		return cmp.Compare(a.phase, b.phase)
	})
	var err error
	p.Stamp, err = p.stamp()
	return p, err
}

// take adds a step; one that only sets cells goes together with that of the same
// database before it.
func (p *Plan) take(st step) {
	if len(st.u.Refused) == 0 {
		st.whole = []int64{st.u.Point.ID}
	}
	for i := len(p.steps) - 1; i >= 0 && st.u.Point.Cells != nil; i-- {
		last := &p.steps[i]
		if last.u.Point.Cells == nil {
			continue
		}
		joined, ok := last.u.Joined(st.u)
		if !ok {
			break
		}
		last.u, last.points, last.whole = joined, append(last.points, st.points...), append(last.whole, st.whole...)
		return
	}
	p.steps = append(p.steps, st)
}

// stamp is a digest of what is told and of the writes that would be taken back.
func (p *Plan) stamp() (string, error) {
	h := sha256.New()
	to := json.NewEncoder(h)
	err := to.Encode(p.Documents)
	for _, st := range p.steps {
		for _, pt := range st.points {
			err = errors.Join(err, to.Encode(pt.ID), to.Encode(pt))
		}
	}
	if err != nil {
		return "", fmt.Errorf("stamp the plan of an undo: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// add takes one undoing into what is told about its document.
func (d *Document) add(u guard.Undoing) {
	for _, part := range u.Do {
		if !slices.Contains(d.Parts, string(part)) {
			d.Parts = append(d.Parts, string(part))
		}
		switch {
		case part == guard.PartOrder:
			d.Effect = Reordered
		case part == guard.PartDocument && u.Point.Created():
			d.Effect = Removed
		case part == guard.PartDocument:
			d.Effect = Returned
		case d.Effect == Nothing:
			d.Effect = Restored
		}
	}
	for _, c := range u.Cells {
		d.Cells += d.once("cell " + c.Row + " " + c.Column)
	}
	d.Rows += len(u.Rows)
	for _, r := range u.Refused {
		d.refuse(r)
	}
	slices.SortStableFunc(d.Refused, func(a, b Refusal) int { return strings.Compare(a.Part, b.Part) })
}

func (d *Document) refuse(r guard.Refusal) {
	count := 0
	if r.Of != "" {
		if count = d.once(string(r.Part) + string(r.Reason) + r.Of); count == 0 {
			return
		}
		at := slices.IndexFunc(d.Refused, func(o Refusal) bool { return o.Part == string(r.Part) && o.Reason == string(r.Reason) })
		if at >= 0 {
			d.Refused[at].Count++
			return
		}
	}
	d.Refused = append(d.Refused, Refusal{string(r.Part), string(r.Reason), reasonText(r), count})
}

// once is 1 for what is counted the first time, 0 later.
func (d *Document) once(what string) int {
	if d.told[what] {
		return 0
	}
	d.told[what] = true
	return 1
}

// phase is when in an undo something is done: what was removed comes back first,
// upper documents before those below; then documents return to their places, so
// that what was made can be removed, lower ones first; then texts; then orders.
// Databases come last: what is done to a document changes the rows bound to it.
func phase(u guard.Undoing) int {
	switch {
	case u.Point.Cells != nil:
		return 5
	case u.Point.Removed():
		return 0
	case u.Does(guard.PartPlace):
		return 1
	case u.Point.Created():
		return 2
	case u.Point.Order != nil:
		return 4
	}
	return 3
}

// Recorder is where undone points are marked.
type Recorder interface{ Undone(ids ...int64) error }

var _ Recorder = (*restore.Store)(nil)

// Apply does what a plan says, one document after the other. What fails is told at
// its document, and the rest is done; the error is that of the last failure when
// nothing at all was done.
func (p *Plan) Apply(ctx context.Context, s *guard.Session, in guard.Intent, rec Recorder, progress func(done, of int)) error {
	if progress == nil {
		progress = func(int, int) {}
	}
	done := 0
	var failure error
	for i, st := range p.steps {
		d := &p.Documents[st.doc]
		if d.Failed != "" {
			continue // what is below it in time was judged by what it would leave
		}
		err := s.Undo(ctx, in, st.u)
		if err == nil {
			done++
			err = rec.Undone(st.whole...)
		}
		if err != nil {
			failure = err
			d.Failed = guard.Public(err).Message
		}
		progress(i+1, len(p.steps))
	}
	if done == 0 {
		return failure
	}
	return nil
}

// Empty reports whether the plan would do nothing.
func (p *Plan) Empty() bool {
	return !slices.ContainsFunc(p.Documents, func(d Document) bool { return d.Effect != Nothing })
}
