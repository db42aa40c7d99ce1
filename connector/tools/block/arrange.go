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

func previewDelete(ctx context.Context, r *tools.Request, in catalogue.BlockID) (contract.Preview, error) {
	b, err := r.Session.Block(ctx, in.ID, contract.ReadWriteDelete)
	if err != nil {
		return contract.Preview{}, err
	}
	return r.Session.PreviewBlocks(ctx, []guard.Block{b})
}

// movable proves the levels last: leaving a notebook needs more than staying in
// it.
func movable(ctx context.Context, s *guard.Session, in catalogue.BlockMoveIn) (blocks []guard.Block, to guard.Anchor, err error) {
	ids := in.IDs
	if ids == nil {
		ids = []string{in.ID}
	}
	for _, id := range ids {
		b, err := s.Block(ctx, id, contract.Read)
		if err != nil {
			return nil, to, err
		}
		blocks = append(blocks, b)
	}
	if to, err = (where{previous: in.PreviousID, parent: in.ParentID}).anchor(ctx, s); err != nil {
		return nil, to, err
	}
	for _, b := range blocks {
		if err := s.MayLeave(b.Doc().Notebook(), to.Block.Doc().Notebook()); err != nil {
			return nil, to, err
		}
	}
	return blocks, to, nil
}

func previewMove(ctx context.Context, r *tools.Request, in catalogue.BlockMoveIn) (p contract.Preview, err error) {
	blocks, to, err := movable(ctx, r.Session, in)
	if err != nil {
		return p, err
	}
	if p, err = r.Session.PreviewBlocks(ctx, blocks); err != nil {
		return p, err
	}
	p.Target, err = r.Session.PreviewBlock(ctx, to.Block)
	return p, err
}

func move(ctx context.Context, r *tools.Request, in catalogue.BlockMoveIn) (out catalogue.BlockMoveOut, err error) {
	blocks, to, err := movable(ctx, r.Session, in)
	if err != nil {
		return out, err
	}
	var targets []guard.Target
	for _, b := range blocks {
		targets = append(targets, b)
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
