package guard

import (
	"context"
	"errors"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Delete removes a block with everything in it; of a heading only the heading
// itself. Documents are removed with RemoveDocs.
func (tx *Tx) Delete(ctx context.Context, b Block) error {
	if err := firstErr(tx.covers(b), tx.s.use(b.doc.nb, contract.ReadWriteDelete)); err != nil {
		return err
	}
	if b.IsDoc() {
		return contract.Fail(contract.InvalidTarget, "Block %s is a whole document.", b.ID()).
			WithHint("Remove it with document.remove.")
	}
	err := tx.step(ctx, Step{Op: "block.delete", ID: b.ID(), Marks: []Mark{thereMark(b.id, true, false)}}, func(w *siyuan.Writer) error {
		return w.DeleteBlock(ctx, b.id)
	})
	if err != nil && !answered(err) {
		return err
	}
	there, err := tx.s.g.r.BlockExists(ctx, b.id)
	if err == nil && there {
		err = notPersisted("SiYuan reported block %s as deleted, but it is still there.", b.ID())
	}
	return err
}

// Move puts blocks at a place, in their order, and returns them as they stand
// there. After and Into are possible. Blocks keep their ids; a heading moves
// without its section.
func (tx *Tx) Move(ctx context.Context, blocks []Block, to Anchor) ([]string, error) {
	for _, b := range blocks {
		if err := firstErr(tx.covers(b), tx.s.MayLeave(b.doc.nb, to.Block.doc.nb)); err != nil {
			return nil, err
		}
		if b.IsDoc() {
			return nil, contract.Fail(contract.InvalidTarget, "Block %s is a whole document.", b.ID()).WithHint("Move it with document.move.")
		}
	}
	places, err := tx.containers(ctx, []Anchor{to})
	if err != nil {
		return nil, err
	}
	from, err := tx.checkMoved(ctx, blocks, to, places[0])
	if err != nil {
		return nil, err
	}
	at := siyuan.Anchor{Previous: to.Block.id}
	if to.Side == Into {
		at = siyuan.Anchor{Parent: to.Block.id}
	}
	for i := len(blocks) - 1; i >= 0; i-- { // each goes right to the place, so the last is first
		b := blocks[i]
		st := Step{Op: "block.move", ID: b.ID(), More: i > 0, Marks: []Mark{{
			Look: LookPlace, ID: b.ID(), Before: placeMark(from[b.id].ParentID, from[b.id].PreviousID), After: placeMark(places[0].id, at.Previous),
		}}}
		err := tx.step(ctx, st, func(w *siyuan.Writer) error {
			return w.MoveBlock(ctx, b.id, at)
		})
		if err != nil && !answered(err) {
			var done []string
			for _, m := range blocks[i+1:] {
				done = append(done, m.ID())
			}
			return nil, afterSome(err, done)
		}
	}
	return tx.moved(ctx, blocks, to, places[0].id)
}

// checkMoved refuses moves that the kernel would pass over in silence, and those
// that would take a list apart. It returns where the blocks stand.
func (tx *Tx) checkMoved(ctx context.Context, blocks []Block, to Anchor, c *container) (map[siyuan.ID]siyuan.TreeInfo, error) {
	var ids []siyuan.ID
	for _, b := range blocks {
		if slices.Contains(ids, b.id) {
			return nil, contract.Fail(contract.InvalidTarget, "Block %s is named twice.", b.ID())
		}
		ids = append(ids, b.id)
	}
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, ids)
	if err != nil {
		return nil, err
	}
	above := []siyuan.ID{to.Block.id}
	if slices.ContainsFunc(ids, func(id siyuan.ID) bool { return slices.Contains(holders, infos[id].Type) }) {
		if above, err = tx.above(ctx, to.Block); err != nil {
			return nil, err
		}
	}
	kinds := map[siyuan.ID]string{c.id: c.itemKind()} // list → kind of its items
	for _, id := range ids {
		if slices.Contains(above, id) {
			return nil, contract.Fail(contract.InvalidTarget, "Block %s cannot be moved beside or into itself.", string(id))
		}
		if err := tx.checkMovedItem(ctx, infos[id], c, kinds); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

// above lists a block and the blocks that hold it, up to its document. The
// kernel's breadcrumb would not do: it leaves lists out.
func (tx *Tx) above(ctx context.Context, b Block) ([]siyuan.ID, error) {
	var ids []siyuan.ID
	for id := b.id; id != "" && !slices.Contains(ids, id); {
		ids = append(ids, id)
		infos, err := tx.s.g.r.BlockTreeInfos(ctx, []siyuan.ID{id})
		if err != nil {
			return nil, err
		}
		id = infos[id].ParentID
	}
	return ids, nil
}

func (tx *Tx) checkMovedItem(ctx context.Context, b siyuan.TreeInfo, c *container, kinds map[siyuan.ID]string) error {
	isItem := b.Type == "NodeListItem"
	switch {
	case !isItem && !c.list:
		return nil
	case !isItem:
		return contract.Fail(contract.InvalidTarget, "Block %s is no list item, and list %s holds only items.", string(b.ID), string(c.id)).
			WithHint("Move it into an item of the list, or beside the list.")
	case !c.list:
		return contract.Fail(contract.InvalidTarget, "Block %s is a list item and can stand only in a list.", string(b.ID)).
			WithHint("Move it beside another item, or move the whole list.")
	}
	if _, known := kinds[b.ParentID]; !known {
		siblings, err := tx.s.g.r.ChildBlocks(ctx, b.ParentID)
		if err != nil {
			return err
		}
		kinds[b.ParentID] = (&container{list: true, before: siblings}).itemKind()
	}
	if kinds[b.ParentID] != kinds[c.id] {
		return contract.Fail(contract.InvalidTarget, "Item %s is of another kind than those of list %s.", string(b.ID), string(c.id)).
			WithHint("The items of that list are %s.", itemNames[kinds[c.id]])
	}
	return nil
}

// moved demands that the blocks stand at the place, in their order.
func (tx *Tx) moved(ctx context.Context, blocks []Block, to Anchor, parent siyuan.ID) ([]string, error) {
	children, err := tx.s.g.r.ChildBlocks(ctx, parent)
	if err != nil {
		return nil, err
	}
	start := 0
	if to.Side == After {
		start = 1 + slices.IndexFunc(children, func(c siyuan.ChildBlock) bool { return c.ID == to.Block.id })
	}
	var order []string
	for i, b := range blocks {
		if start+i >= len(children) || children[start+i].ID != b.id {
			return nil, notPersisted("SiYuan reported block %s as moved, but it is not in its new place.", b.ID())
		}
		order = append(order, b.ID())
	}
	return order, nil
}

// SetAttrs changes attributes of a block and returns all it has then. An empty
// value removes one; others stay.
func (tx *Tx) SetAttrs(ctx context.Context, b Block, changes map[string]string) (map[string]string, error) {
	if err := tx.covers(b); err != nil {
		return nil, err
	}
	want, err := checkAttrs(changes)
	if err != nil {
		return nil, err
	}
	if err := tx.settleAttrs(ctx, b.id, want); err != nil {
		if errors.Is(err, siyuan.Missing) {
			return nil, notFound("block", b.id)
		}
		return nil, err
	}
	return tx.s.Attrs(ctx, b)
}
