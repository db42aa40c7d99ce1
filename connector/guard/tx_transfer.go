package guard

import (
	"context"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// maxTransfers bounds the blocks whose references one call changes.
const maxTransfers = 512

// Citing lists the blocks that cite a block and that the caller may edit.
func (s *Session) Citing(ctx context.Context, b Block) ([]Block, error) {
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return nil, err
	}
	rows, err := s.refRows(ctx, "def_block_id = "+quoteSQL(string(b.id)))
	if err != nil {
		return nil, err
	}
	var citing []Block
	for _, r := range rows {
		id := siyuan.ID(r.Text("block_id"))
		if slices.ContainsFunc(citing, func(c Block) bool { return c.id == id }) {
			continue
		}
		c, err := s.block(ctx, id, "block", contract.ReadWrite)
		switch contract.CodeOf(err) {
		case "":
			citing = append(citing, c)
		case contract.NotFound, contract.PermissionDenied: // not theirs to change
		default:
			return nil, err
		}
	}
	if len(citing) > maxTransfers {
		return nil, contract.Fail(contract.TooLarge, "More than %d blocks refer to %s.", maxTransfers, b.ID()).
			WithHint("Name some of them in refIDs, and call again for the others.")
	}
	return s.stillCiting(ctx, citing, b.id)
}

// stillCiting drops blocks that the index has not caught up with.
func (s *Session) stillCiting(ctx context.Context, citing []Block, id siyuan.ID) ([]Block, error) {
	if len(citing) == 0 {
		return nil, nil
	}
	ids := make([]siyuan.ID, len(citing))
	for i, c := range citing {
		ids[i] = c.id
	}
	texts, err := s.g.r.BlockKramdowns(ctx, ids, siyuan.KramdownMarkdown)
	return slices.DeleteFunc(citing, func(c Block) bool { return !cites(texts[c.id], id) }), err
}

// TransferRefs makes blocks that cite one block cite another. The kernel is told
// every block by id: without, it would change those of all notebooks.
func (tx *Tx) TransferRefs(ctx context.Context, from, to Block, citing []Block) error {
	if err := firstErr(tx.s.use(from.doc.nb, contract.Read), tx.s.use(to.doc.nb, contract.Read)); err != nil {
		return err
	}
	if from.id == to.id {
		return contract.Fail(contract.InvalidTarget, "fromID and toID are the same block.")
	}
	ids := make([]siyuan.ID, len(citing))
	for i, c := range citing {
		if err := tx.covers(c); err != nil {
			return err
		}
		ids[i] = c.id
	}
	before, err := tx.s.g.r.BlockKramdowns(ctx, ids, siyuan.KramdownMarkdown)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !cites(before[id], from.id) {
			return contract.Fail(contract.InvalidTarget, "Block %s does not refer to %s.", string(id), from.ID())
		}
		if err := tx.s.checkKept(ctx, id, before[id]); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	st := Step{Op: "block.transfer", ID: from.ID()}
	for _, id := range ids {
		st.Marks = append(st.Marks, Mark{LookCites, citesMark(id, from.id), yes, no},
			Mark{Look: LookCites, ID: citesMark(id, to.id), After: yes})
	}
	err = tx.step(ctx, st, func(w *siyuan.Writer) error {
		return w.TransferBlockRef(ctx, from.id, to.id, ids)
	})
	if err != nil && !answered(err) {
		return err
	}
	after, err := tx.s.g.r.BlockKramdowns(ctx, ids, siyuan.KramdownMarkdown)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if cites(after[id], from.id) || !cites(after[id], to.id) {
			return notPersisted("SiYuan did not change the references in block %s.", string(id))
		}
	}
	return nil
}

func cites(kramdown string, id siyuan.ID) bool { return strings.Contains(kramdown, "(("+string(id)) }
