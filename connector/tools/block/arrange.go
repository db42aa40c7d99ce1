package block

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// deleteBlock needs rwd, but a document is first told apart: the way to remove
// one is another action.
func deleteBlock(ctx context.Context, r *tools.Request, in catalogue.BlockID) (out catalogue.BlockDeleteOut, err error) {
	b, err := r.Session.Block(ctx, in.ID, contract.ReadWriteDelete)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(b), func(ctx context.Context, tx *guard.Tx) error { return tx.Delete(ctx, b) })
	return catalogue.BlockDeleteOut{Success: true, ID: b.ID()}, err
}

// move proves the levels last: leaving a notebook needs more than staying in it.
func move(ctx context.Context, r *tools.Request, in catalogue.BlockMoveIn) (out catalogue.BlockMoveOut, err error) {
	ids := in.IDs
	if ids == nil {
		ids = []string{in.ID}
	}
	var blocks []guard.Block
	var targets []guard.Target
	for _, id := range ids {
		b, err := r.Session.Block(ctx, id, contract.Read)
		if err != nil {
			return out, err
		}
		blocks, targets = append(blocks, b), append(targets, b)
	}
	to, err := where{previous: in.PreviousID, parent: in.ParentID}.anchor(ctx, r.Session)
	if err != nil {
		return out, err
	}
	for _, b := range blocks {
		if err := r.Session.MayLeave(b.Doc().Notebook(), to.Block.Doc().Notebook()); err != nil {
			return out, err
		}
	}
	err = r.Session.Write(ctx, r.Intent(append(targets, to.Block)...), func(ctx context.Context, tx *guard.Tx) error {
		order, err := tx.Move(ctx, blocks, to)
		out = catalogue.BlockMoveOut{
			Success: true, ID: in.ID, IDs: in.IDs, FinalOrder: order, Count: len(order), PreviousID: in.PreviousID, ParentID: in.ParentID,
		}
		return err
	})
	return out, err
}

func setAttrs(ctx context.Context, r *tools.Request, in catalogue.BlockSetAttrsIn) (out catalogue.BlockSetAttrsOut, err error) {
	b, err := r.Session.Block(ctx, in.ID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(b), func(ctx context.Context, tx *guard.Tx) error {
		attrs, err := tx.SetAttrs(ctx, b, in.Attrs)
		out = catalogue.BlockSetAttrsOut{Success: true, ID: b.ID(), Attrs: attrs}
		return err
	})
	return out, err
}
