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

// Plan is what an undo would do, by document, or has done.
type Plan struct {
	Documents []Document `json:"documents"`
	Refused   int        `json:"refused"` // documents of which something is not brought back
	// Stamp is another one when the plan, made again, would do something else or to
	// something else: who saw this plan did not see that one.
	Stamp string `json:"stamp"`

	steps []step // in the order they are done
}

// Document is one document, or a place whose order changed, in a plan.
type Document struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Effect  Effect    `json:"effect"`
	Parts   []string  `json:"parts,omitempty"` // that are brought back
	Refused []Refusal `json:"refused,omitempty"`
	Since   time.Time `json:"since"`            // of the oldest write that is taken back
	Failed  string    `json:"failed,omitempty"` // after an undo: why it was not done
}

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

// Refusal is a part of a document that is not brought back, and why.
type Refusal struct {
	Part   string `json:"part"`
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

// step is one undoing with the document of the plan it belongs to.
type step struct {
	u     guard.Undoing
	doc   int
	phase int
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
	phases := map[string]int{}
	places := map[string]int{} // index of a document in the plan
	for _, pt := range points {
		if pt.Unchanged() {
			continue
		}
		now, known := states[pt.Doc]
		if !known {
			var err error
			if now, err = s.State(ctx, pt); err != nil {
				return p, err
			}
		}
		u, visible, err := s.Judge(ctx, pt, now, along)
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
			p.Documents = append(p.Documents, Document{ID: pt.Doc, Title: u.Title, Effect: Nothing})
		}
		d := &p.Documents[at]
		d.Title, d.Since = cmp.Or(d.Title, u.Title), pt.Made
		if pt.Made.Before(since) {
			d.Refused = append(d.Refused, Refusal{string(guard.PartDocument), "began_before", beganBefore})
			continue
		}
		d.add(u)
		if len(u.Do) > 0 {
			phases[pt.Doc] = max(phases[pt.Doc], phase(u)) // later writes to a document are taken back first
			p.steps = append(p.steps, step{u, at, phases[pt.Doc]})
		}
		if pt.Order == nil {
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

// stamp is a digest of what is told and of the writes that would be taken back.
func (p *Plan) stamp() (string, error) {
	h := sha256.New()
	to := json.NewEncoder(h)
	err := to.Encode(p.Documents)
	for _, st := range p.steps {
		err = errors.Join(err, to.Encode(st.u.Point.ID), to.Encode(st.u.Point))
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
	for part, why := range u.Refused {
		d.Refused = append(d.Refused, Refusal{string(part), string(why), reasons[why]})
	}
	slices.SortFunc(d.Refused, func(a, b Refusal) int { return strings.Compare(a.Part, b.Part) })
}

// phase is when in an undo something is done: what was removed comes back first,
// upper documents before those below; then documents return to their places, so
// that what was made can be removed, lower ones first; then texts; orders last.
func phase(u guard.Undoing) int {
	switch {
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
			if len(st.u.Refused) == 0 {
				err = rec.Undone(st.u.Point.ID)
			}
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
