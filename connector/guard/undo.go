package guard

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Part is what of a document can be brought back by itself.
type Part string

// The parts.
const (
	PartText     Part = "text"
	PartAttrs    Part = "attributes" // title, icon and other attributes of the document
	PartPlace    Part = "place"
	PartDocument Part = "document" // made or removed as a whole
	PartOrder    Part = "order"    // of the documents below a place
	PartCells    Part = "cells"    // of a database
	PartRows     Part = "rows"     // added to a database
)

// Reason says why a part cannot be brought back.
type Reason string

// The reasons.
const (
	ChangedSince Reason = "changed_since" // by somebody else
	NotKept      Reason = "not_kept"      // SiYuan kept no version, or has it no more
	NotKnown     Reason = "not_known"     // how the last write ended
	NotAllowed   Reason = "not_allowed"   // the caller may not write there, or not delete
	HoldsOthers  Reason = "holds_others"  // documents below that somebody else put there
	BlocksMoved  Reason = "blocks_moved"  // blocks of it are in another document now
	TooLarge     Reason = "too_large"     // a database, and too much text for SiYuan to show with ids; a cell that was too large to keep

	DatabaseGone  Reason = "database_gone"
	RowGone       Reason = "row_gone"
	ColumnGone    Reason = "column_gone"
	ColumnChanged Reason = "column_changed" // its type, or what it leads to
	OptionGone    Reason = "option_gone"    // of a select column
	TargetGone    Reason = "target_gone"    // a row that a relation led to
)

// Refusal is a part that stays, and why. Of a database it is one cell, given as row
// and column, or one row.
type Refusal struct {
	Part   Part
	Reason Reason
	Of     string
}

// Undoing is what bringing a point back would do.
type Undoing struct {
	Point   Point
	Title   string // now, or then when the document is gone
	Do      []Part
	Refused []Refusal
	Cells   []CellChange // of a database, that come back
	Rows    []RowChange  // likewise, that are removed

	now DocState
}

func (u *Undoing) refuse(part Part, why Reason) {
	u.Refused = append(u.Refused, Refusal{part, why, ""})
}

// Does reports whether a part would be brought back.
func (u Undoing) Does(p Part) bool { return slices.Contains(u.Do, p) }

// Then is the state of the document after it.
func (u Undoing) Then() DocState {
	then := u.now
	if u.Does(PartDocument) {
		return u.Point.Before
	}
	for _, p := range []struct {
		part      Part
		into, was *string
	}{{PartText, &then.Text, &u.Point.Before.Text}, {PartAttrs, &then.Attrs, &u.Point.Before.Attrs}, {PartPlace, &then.Place, &u.Point.Before.Place}} {
		if u.Does(p.part) {
			*p.into = *p.was
		}
	}
	return then
}

// settled decides what of a point can be brought back when its document is now as
// given. A part is one's own to bring back while it is as one left it.
func settled(p Point, now DocState) Undoing {
	u := Undoing{Point: p, Title: p.Title, now: now}
	part := func(part Part, before, after, now string) {
		switch {
		case before == after || now == before:
		case now != after:
			u.refuse(part, ChangedSince)
		default:
			u.Do = append(u.Do, part)
		}
	}
	switch whole := p.Created() || p.Removed(); {
	case p.Open && now == p.Before, whole && now.There == p.Before.There:
	case p.Open:
		u.refuse(PartDocument, NotKnown)
	case whole && now != p.After:
		u.refuse(PartDocument, ChangedSince)
	case whole:
		u.Do = []Part{PartDocument}
	case !now.There:
		u.refuse(PartDocument, ChangedSince)
	default:
		part(PartText, p.Before.Text, p.After.Text, now.Text)
		part(PartAttrs, p.Before.Attrs, p.After.Attrs, now.Attrs)
		part(PartPlace, p.Before.Place, p.After.Place, now.Place)
	}
	return u
}

// State is how the document of a point is now.
func (s *Session) State(ctx context.Context, p Point) (DocState, error) {
	now, _, err := s.g.docState(ctx, siyuan.ID(p.Doc))
	return now, err
}

// Judge tells what bringing a point back would do when its document is as given;
// along are the documents whose points are brought back with it. ok is false for
// what the caller may not know of.
func (s *Session) Judge(ctx context.Context, p Point, now DocState, along map[string]bool) (u Undoing, ok bool, err error) {
	home := now
	if !now.There {
		home = p.Before
		if p.Created() {
			home = p.After
		}
	}
	box, _, _ := strings.Cut(home.Place, "/")
	if p.Order != nil {
		box, _, _ = strings.Cut(p.Before.Place, "/")
	}
	was, _, _ := strings.Cut(p.Before.Place, "/")
	if was == "" {
		was = box
	}
	if !s.level(siyuan.ID(box)).Allows(contract.Read) || !s.level(siyuan.ID(was)).Allows(contract.Read) {
		return u, false, nil
	}
	if p.Order != nil {
		u, err = s.judgeOrder(ctx, p, siyuan.ID(box))
	} else {
		u = settled(p, now)
	}
	if err != nil || len(u.Do) == 0 {
		return u, true, err
	}
	need := contract.ReadWrite
	if p.Created() || box != was {
		need = contract.ReadWriteDelete
	}
	refuse := func(parts []Part, why Reason) {
		for _, part := range parts {
			u.refuse(part, why)
		}
		u.Do = slices.DeleteFunc(u.Do, func(d Part) bool { return slices.Contains(parts, d) })
	}
	if !s.level(siyuan.ID(box)).Allows(need) || !s.level(siyuan.ID(was)).Allows(contract.ReadWrite) {
		refuse(slices.Clone(u.Do), NotAllowed)
		return u, true, nil
	}
	if u.Does(PartAttrs) && p.Attrs == nil { // they were too long to keep
		refuse([]Part{PartAttrs}, NotKept)
	}
	switch {
	case p.Created():
		holds, err := s.holdsOthers(ctx, p, along)
		if holds {
			refuse([]Part{PartDocument}, HoldsOthers)
		}
		return u, true, err
	case p.Removed():
		file, err := s.g.fileOf(ctx, p)
		if file == "" {
			refuse([]Part{PartDocument}, NotKept)
		}
		return u, true, err
	case u.Does(PartText):
		why, err := s.g.textKept(ctx, u, along)
		if why != "" {
			refuse([]Part{PartText}, why)
		}
		return u, true, err
	}
	return u, true, nil
}

func (s *Session) judgeOrder(ctx context.Context, p Point, box siyuan.ID) (Undoing, error) {
	u := Undoing{Point: p}
	place, err := s.Place(ctx, p.Doc, contract.Read)
	if err != nil {
		u.refuse(PartOrder, ChangedSince)
		if contract.CodeOf(err) == contract.NotFound {
			err = nil
		}
		return u, err
	}
	nodes, err := s.DocsIn(ctx, place)
	if err != nil {
		return u, err
	}
	now := make([]string, len(nodes))
	for i, n := range nodes {
		now[i] = n.ID
	}
	switch {
	case p.Unchanged() || slices.Equal(now, p.Order.Before):
	case p.Open || !slices.Equal(now, p.Order.After):
		u.refuse(PartOrder, ChangedSince)
	default:
		u.Do = []Part{PartOrder}
	}
	return u, nil
}

// holdsOthers reports whether documents stand below a created one that do not go
// with it.
func (s *Session) holdsOthers(ctx context.Context, p Point, along map[string]bool) (bool, error) {
	d, err := s.Doc(ctx, p.Doc, contract.Read)
	if err != nil {
		return false, err
	}
	tree, err := (&Tx{s: s}).subtree(ctx, d)
	return slices.ContainsFunc(tree, func(id siyuan.ID) bool { return id != d.id && !along[string(id)] }), err
}

// indexedIn is how long SiYuan's index of the history may lag behind.
const indexedIn = 30 * time.Second

// fileOf is the kept file of a removed document.
func (g *Guard) fileOf(ctx context.Context, p Point) (string, error) {
	if p.Version != "" {
		seal, err := g.sealOf(ctx, p.Version)
		if err == nil && seal == p.Seal {
			return p.Version, nil
		}
		if err != nil && !errors.Is(err, siyuan.Missing) {
			return "", err
		}
	}
	box, _, _ := strings.Cut(p.Before.Place, "/")
	looks := 1
	if g.opt.Now().Sub(p.Last) < indexedIn {
		looks = versionLooks
	}
	for range looks {
		file, err := g.keptFile(ctx, Doc{nb: Notebook{id: siyuan.ID(box)}, id: siyuan.ID(p.Doc)}, "delete")
		if err != nil || file != "" {
			return file, err
		}
		if err := g.opt.Sleep(ctx, versionLook); err != nil {
			return "", err
		}
	}
	return "", nil
}

// showsDatabase finds database blocks in DOM and kramdown.
var showsDatabase = regexp.MustCompile(`data-type="NodeAttributeView"`)

// textKept tells why the text of a point cannot be brought back, "" when it can.
func (g *Guard) textKept(ctx context.Context, u Undoing, along map[string]bool) (Reason, error) {
	if u.Point.Version == "" {
		return NotKept, nil
	}
	kept, err := g.r.HistoryDoc(ctx, u.Point.Version)
	if errors.Is(err, siyuan.Missing) {
		return NotKept, nil
	}
	if err != nil {
		return "", err
	}
	seal := digest(plainDOM(kept.Content))
	if kept.IsLargeDoc {
		seal = storedText(kept.Content)
	}
	if seal != u.Point.Seal {
		return NotKept, nil
	}
	blockwise, err := g.blockwise(ctx, u, kept)
	if err != nil {
		return "", err
	}
	if blockwise && kept.IsLargeDoc {
		return TooLarge, nil
	}
	text, err := g.r.BlockKramdown(ctx, siyuan.ID(u.Point.Doc), siyuan.KramdownMarkdown)
	if err != nil {
		return "", err
	}
	there := ialsByID(text)
	for _, id := range slices.Sorted(maps.Keys(domAttrs(kept.Content))) {
		if there[id] != nil {
			continue
		}
		at, err := g.r.PathByID(ctx, id)
		if absent(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if doc := docOfPath(at.Path); doc != u.Point.Doc && !along[doc] {
			return BlocksMoved, nil
		}
	}
	return "", nil
}

func docOfPath(path string) string {
	return strings.TrimSuffix(path[strings.LastIndex(path, "/")+1:], ".sy")
}

// blockwise: SiYuan's own rollback takes the title along, and puts the files of
// databases back for all notebooks. Where that would undo what others did, the
// text is brought back block by block.
func (g *Guard) blockwise(ctx context.Context, u Undoing, kept siyuan.HistoryDoc) (bool, error) {
	if !u.Does(PartAttrs) && u.now.Attrs != u.Point.Before.Attrs || showsDatabase.MatchString(kept.Content) {
		return true, nil
	}
	text, err := g.r.BlockKramdown(ctx, siyuan.ID(u.Point.Doc), siyuan.KramdownMarkdown)
	return showsDatabase.MatchString(text), err
}
