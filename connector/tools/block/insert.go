package block

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// where are the three ways to name a place. The first that is given counts:
// before nextID, behind previousID, first in parentID.
type where struct{ next, previous, parent string }

func (w where) given() bool { return w != where{} }

func (w where) anchor(ctx context.Context, s *guard.Session) (guard.Anchor, error) {
	id, side := w.parent, guard.Into
	switch {
	case w.next != "":
		id, side = w.next, guard.Before
	case w.previous != "":
		id, side = w.previous, guard.After
	}
	b, err := s.Block(ctx, id, contract.ReadWrite)
	return guard.Anchor{Block: b, Side: side}, err
}

func insert(ctx context.Context, r *tools.Request, in catalogue.BlockInsertIn) (out catalogue.BlockInsertOut, err error) {
	items := in.Blocks
	if items == nil {
		items = []catalogue.BlockInsertItem{{DataType: in.DataType, Data: in.Data}}
	}
	var all []guard.Insertion
	var targets []guard.Target
	for _, item := range items {
		at := where{item.NextID, item.PreviousID, item.ParentID}
		if !at.given() {
			at = where{in.NextID, in.PreviousID, in.ParentID}
		}
		anchor, err := at.anchor(ctx, r.Session)
		if err != nil {
			return out, err
		}
		all = append(all, guard.Insertion{At: anchor, Text: text(item.DataType, item.Data)})
		targets = append(targets, anchor.Block)
	}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		ids, err := tx.Insert(ctx, all)
		if err == nil {
			out = catalogue.BlockInsertOut{
				Success: true, ID: ids[0], Count: len(ids), CreatedBlockIDs: ids,
				ParentID: in.ParentID, PreviousID: in.PreviousID, NextID: in.NextID, DataType: in.DataType,
			}
		}
		return err
	})
	return out, err
}

func prepend(ctx context.Context, r *tools.Request, in catalogue.BlockPrependIn) (out catalogue.BlockAppendOut, err error) {
	anchor, err := where{parent: in.ParentID}.anchor(ctx, r.Session)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(anchor.Block), func(ctx context.Context, tx *guard.Tx) error {
		ids, err := tx.Insert(ctx, []guard.Insertion{{At: anchor, Text: text(in.DataType, in.Data)}})
		if err == nil {
			out = catalogue.BlockAppendOut{Success: true, ID: ids[0], IDs: ids, ParentID: in.ParentID, DataType: in.DataType}
		}
		return err
	})
	return out, err
}
