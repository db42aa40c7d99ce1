package guard

import (
	"context"
	"maps"
	"path"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Undo brings back what an Undoing says, as a write of its own: guarded, with
// restore points of its own, and refused when the document is not as it was when
// it was judged.
func (s *Session) Undo(ctx context.Context, in Intent, u Undoing) error {
	p := u.Point
	if len(u.Do) == 0 {
		return nil
	}
	if p.Cells != nil {
		return s.undoCells(ctx, in, u)
	}
	targets, err := s.undoTargets(ctx, p)
	if err != nil {
		return err
	}
	in.Targets = targets
	return s.Write(ctx, in, func(ctx context.Context, tx *Tx) error {
		tx.more = true // one of many, so never the end of the call
		if p.Order == nil {
			now, _, err := s.g.docState(ctx, siyuan.ID(p.Doc))
			if err != nil {
				return err
			}
			if now != u.now {
				return contract.Fail(contract.StateChanged, "Document %s changed while its undo was under way.", p.Doc)
			}
		}
		switch {
		case p.Order != nil:
			return tx.undoOrder(ctx, p)
		case p.Created():
			return tx.undoCreated(ctx, p)
		case p.Removed():
			return tx.undoRemoved(ctx, p)
		}
		return tx.undoParts(ctx, u)
	})
}

// undoTargets are the notebooks where the document is and was, and the document
// where there is one.
func (s *Session) undoTargets(ctx context.Context, p Point) ([]Target, error) {
	if p.Order != nil {
		place, err := s.Place(ctx, p.Doc, contract.ReadWrite)
		return place.Targets(), err
	}
	var targets []Target
	if box, _, _ := strings.Cut(p.Before.Place, "/"); box != "" {
		n, err := s.Notebook(box, contract.ReadWrite)
		if err != nil {
			return nil, err
		}
		targets = append(targets, n)
	}
	if p.Removed() {
		return targets, nil
	}
	d, err := s.Doc(ctx, p.Doc, contract.ReadWrite)
	if err != nil {
		return nil, err
	}
	return append(targets, d.nb, d), nil
}

func (tx *Tx) undoOrder(ctx context.Context, p Point) error {
	place, err := tx.s.Place(ctx, p.Doc, contract.ReadWrite)
	if err != nil {
		return err
	}
	order := make([]Doc, len(p.Order.Before))
	for i, id := range p.Order.Before {
		if order[i], err = tx.s.Doc(ctx, id, contract.ReadWrite); err != nil {
			return err
		}
	}
	_, err = tx.Reorder(ctx, place, order)
	return err
}

func (tx *Tx) undoCreated(ctx context.Context, p Point) error {
	d, err := tx.s.Doc(ctx, p.Doc, contract.ReadWriteDelete)
	if err != nil {
		return err
	}
	_, err = tx.RemoveDocs(ctx, []Doc{d})
	return err
}

const rollAgain = "the same kept file is put back, so doing it again changes nothing"

// undoRemoved puts a removed document back where it was, or on top of its
// notebook where the document above it is gone.
func (tx *Tx) undoRemoved(ctx context.Context, p Point) error {
	file, err := tx.s.g.fileOf(ctx, p)
	if err != nil {
		return err
	}
	if file == "" {
		return contract.Fail(contract.StateChanged, "SiYuan has no kept version of document %s any more.", p.Doc)
	}
	if err := tx.creates(ctx, siyuan.ID(p.Doc)); err != nil {
		return err
	}
	err = tx.step(ctx, Step{Op: "document.return", ID: p.Doc, Repeatable: rollAgain}, func(w *siyuan.Writer) error {
		return w.RollbackDoc(ctx, file)
	})
	if err != nil && !answered(err) {
		return err
	}
	tx.s.forget()
	d, err := tx.s.Doc(ctx, p.Doc, contract.ReadWrite)
	if contract.CodeOf(err) == contract.NotFound {
		err = notPersisted("SiYuan reported document %s as put back, but it is not there.", p.Doc)
	}
	if err != nil {
		return err
	}
	_, place, _ := strings.Cut(strings.TrimPrefix(file, "/history/"), "/") // without the folder of its time
	if pathMark(d.nb.id, d.path) == place {
		return nil
	}
	// SiYuan puts it on top while it does not know the document above yet.
	tx.docs[d.id] = true
	err = tx.undoPlace(ctx, d, place)
	if contract.CodeOf(err) == contract.NotFound {
		return nil // that one is gone for good
	}
	return err
}

// undoParts brings text, attributes and place of a document back, as far as they
// are to be.
func (tx *Tx) undoParts(ctx context.Context, u Undoing) error {
	d, err := tx.s.Doc(ctx, u.Point.Doc, contract.ReadWrite)
	if err != nil {
		return err
	}
	if u.Does(PartPlace) {
		if err := tx.undoPlace(ctx, d, u.Point.Before.Place); err != nil {
			return err
		}
	}
	whole := false
	if u.Does(PartText) {
		if whole, err = tx.undoText(ctx, d, u); err != nil {
			return err
		}
	}
	if u.Does(PartAttrs) && !whole {
		if err := tx.undoAttrs(ctx, d, u.Point.Attrs); err != nil {
			return err
		}
	}
	tx.s.forget()
	return tx.wentBack(ctx, d, u.Then())
}

// wentBack demands that the document is as it was, and that SiYuan says so: after
// a rollback it tells the attributes from before it until they are written.
func (tx *Tx) wentBack(ctx context.Context, d Doc, want DocState) error {
	for i := range versionLooks {
		now, own, err := tx.s.g.docState(ctx, d.id)
		if err != nil {
			return err
		}
		told, err := tx.s.g.r.BlockAttrs(ctx, d.id)
		if err != nil {
			return err
		}
		if now == want && maps.Equal(own, ownAttrsOf(told)) {
			return nil
		}
		if i == 0 && now == want {
			if err := tx.tellAttrs(ctx, d, own); err != nil {
				return err
			}
			continue
		}
		if err := tx.s.g.opt.Sleep(ctx, versionLook); err != nil {
			return err
		}
	}
	return notPersisted("SiYuan reported document %s as brought back, but it is not as it was.", d.ID()).(*contract.Error).
		WithHint("Look at it in SiYuan; its history has both states.")
}

// tellAttrs writes the attributes that a document has.
func (tx *Tx) tellAttrs(ctx context.Context, d Doc, own siyuan.Attrs) error {
	own = maps.Clone(own)
	delete(own, "title")
	err := tx.step(ctx, Step{Op: "block.attrs", ID: d.ID(), Repeatable: rollAgain}, func(w *siyuan.Writer) error {
		return w.SetBlockAttrs(ctx, d.id, own)
	})
	if answered(err) {
		return nil
	}
	return err
}

func (tx *Tx) undoPlace(ctx context.Context, d Doc, place string) error {
	box, storage, _ := strings.Cut(place, "/")
	n, err := tx.s.Notebook(box, contract.ReadWrite)
	if err != nil {
		return err
	}
	to := Place{Notebook: n}
	if above := path.Base(path.Dir("/" + storage)); above != "/" {
		up, err := tx.s.Doc(ctx, above, contract.ReadWrite)
		if err != nil {
			return err
		}
		to.Doc = &up
	}
	_, err = tx.MoveDocs(ctx, []Doc{d}, to)
	return err
}

// undoAttrs sets what the attributes were and takes away what they were not.
func (tx *Tx) undoAttrs(ctx context.Context, d Doc, was siyuan.Attrs) error {
	_, now, err := tx.s.g.docState(ctx, d.id)
	if err != nil {
		return err
	}
	change := siyuan.Attrs{}
	for k := range now {
		if _, had := was[k]; !had {
			change[k] = ""
		}
	}
	for k, v := range was {
		if now[k] != v {
			change[k] = v
		}
	}
	title, renamed := change["title"]
	delete(change, "title")
	if len(change) > 0 {
		then := maps.Clone(now)
		maps.Copy(then, change)
		mark := Mark{LookAttrs, d.ID(), attrsMark(now), attrsMark(then)}
		err := tx.step(ctx, Step{Op: "block.attrs", ID: d.ID(), Marks: []Mark{mark}}, func(w *siyuan.Writer) error {
			return w.SetBlockAttrs(ctx, d.id, change)
		})
		if err != nil && !answered(err) {
			return err
		}
	}
	if !renamed || title == "" {
		return nil
	}
	// The title was there before, so the rules for new ones do not judge it.
	mark := Mark{LookTitle, d.ID(), digest(now["title"]), digest(title)}
	err = tx.step(ctx, Step{Op: "document.rename", ID: d.ID(), Marks: []Mark{mark}}, func(w *siyuan.Writer) error {
		return w.RenameDoc(ctx, d.id, title)
	})
	if answered(err) {
		return nil // the state is looked at afterwards
	}
	return err
}

// undoText brings the text back; whole says that title and attributes came with
// it.
func (tx *Tx) undoText(ctx context.Context, d Doc, u Undoing) (whole bool, err error) {
	kept, err := tx.s.g.r.HistoryDoc(ctx, u.Point.Version)
	if err != nil {
		return false, err
	}
	blockwise, err := tx.s.g.blockwise(ctx, u, kept)
	if err != nil {
		return false, err
	}
	if blockwise {
		return false, tx.undoBlocks(ctx, d, domPieces(thawed(kept.Content)))
	}
	err = tx.step(ctx, Step{Op: "document.rollback", ID: d.ID(), Repeatable: rollAgain}, func(w *siyuan.Writer) error {
		return w.RollbackDoc(ctx, u.Point.Version)
	})
	if answered(err) {
		err = nil
	}
	return true, err
}

const blockAgain = "the block is set to a given content or place, so doing it again changes nothing"

// undoBlocks makes the top-level blocks of a document what they were, with their
// ids. Blocks that show a database are put back or taken away and never written:
// the database is for the whole workspace.
func (tx *Tx) undoBlocks(ctx context.Context, d Doc, want []domPiece) error {
	if err := tx.dropBlocks(ctx, d, want); err != nil {
		return err
	}
	previous := siyuan.ID("")
	for _, w := range want {
		if err := tx.undoBlock(ctx, d, w, previous); err != nil {
			return err
		}
		previous = w.id
	}
	return nil
}

// dropBlocks takes away the blocks that were not there.
func (tx *Tx) dropBlocks(ctx context.Context, d Doc, want []domPiece) error {
	children, err := tx.s.g.r.ChildBlocks(ctx, d.id)
	if err != nil {
		return err
	}
	wanted := map[siyuan.ID]bool{}
	for _, w := range want {
		wanted[w.id] = true
	}
	for _, c := range children {
		if wanted[c.ID] {
			continue
		}
		err := tx.step(ctx, Step{Op: "block.delete", ID: string(c.ID), Marks: []Mark{thereMark(c.ID, true, false)}}, func(w *siyuan.Writer) error {
			return w.DeleteBlock(ctx, c.ID)
		})
		if err != nil && !answered(err) {
			return err
		}
	}
	return tx.s.g.r.Flush(ctx) // deletions wait in a queue
}

// undoBlock puts one block where and how it was: right behind the given one.
func (tx *Tx) undoBlock(ctx context.Context, d Doc, want domPiece, previous siyuan.ID) error {
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, []siyuan.ID{want.id})
	if err != nil {
		return err
	}
	info, there := infos[want.id]
	send := func(op string, do func(w *siyuan.Writer) error) error {
		err := tx.step(ctx, Step{Op: op, ID: string(want.id), Repeatable: blockAgain}, do)
		if answered(err) {
			return nil // the state is looked at afterwards
		}
		return err
	}
	at := siyuan.Anchor{Previous: previous}
	if previous == "" {
		at = siyuan.Anchor{Parent: d.id}
	}
	if !there || !tx.within(ctx, d, want.id) {
		return send("block.insert", func(w *siyuan.Writer) (err error) {
			if previous == "" {
				_, err = w.PrependBlock(ctx, d.id, siyuan.DOM, want.dom)
			} else {
				_, err = w.InsertBlock(ctx, siyuan.DOM, want.dom, at)
			}
			return err
		})
	}
	if info.PreviousID != previous || info.ParentID != d.id && info.ParentType == "NodeListItem" {
		if err := send("block.move", func(w *siyuan.Writer) error { return w.MoveBlock(ctx, want.id, at) }); err != nil {
			return err
		}
	}
	if want.kind == "NodeAttributeView" {
		return nil
	}
	now, err := tx.s.g.r.BlockDOM(ctx, want.id)
	if err != nil || plainDOM(now) == plainDOM(want.dom) {
		return err
	}
	return send("block.update", func(w *siyuan.Writer) error {
		_, err := w.UpdateBlock(ctx, want.id, siyuan.DOM, want.dom)
		return err
	})
}

// within reports whether a block is in a document.
func (tx *Tx) within(ctx context.Context, d Doc, id siyuan.ID) bool {
	at, err := tx.s.g.r.PathByID(ctx, id)
	return err == nil && docOfPath(at.Path) == d.ID()
}
