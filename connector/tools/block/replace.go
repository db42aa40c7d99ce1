package block

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func replace(ctx context.Context, r *tools.Request, in catalogue.BlockReplaceIn) (out catalogue.BlockReplaceOut, err error) {
	asked := in.Edit
	if asked == nil {
		asked = []catalogue.BlockEdit{{Old: in.Old, New: in.New, ReplaceAll: in.ReplaceAll}}
	}
	b, err := r.Session.Block(ctx, in.ID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	edits := make([]guard.Edit, len(asked))
	for i, e := range asked {
		edits[i] = guard.Edit{Old: e.Old, New: e.New, All: e.ReplaceAll}
	}
	err = r.Session.Write(ctx, r.Intent(b), func(ctx context.Context, tx *guard.Tx) error {
		done, err := tx.Replace(ctx, b, edits)
		if err != nil {
			return err
		}
		out = catalogue.BlockReplaceOut{
			Success: true, ID: done.ID, Changed: done.Changed, Kramdown: done.Kramdown, AttributesPreserved: true, EditsApplied: len(edits),
		}
		for i, e := range asked {
			out.Replacements = append(out.Replacements, catalogue.BlockReplacement{Old: e.Old, New: e.New, Count: done.Counts[i]})
		}
		return nil
	})
	return out, err
}

func setFoldState(ctx context.Context, r *tools.Request, in catalogue.BlockSetFoldStateIn) (out catalogue.BlockSetFoldStateOut, err error) {
	b, err := r.Session.Block(ctx, in.ID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(b), func(ctx context.Context, tx *guard.Tx) error { return tx.SetFold(ctx, b, in.Folded) })
	return catalogue.BlockSetFoldStateOut{Success: true, ID: b.ID(), Folded: in.Folded}, err
}

// transferReferences changes the blocks that hold the references: those named,
// or all the caller may edit.
func transferReferences(ctx context.Context, r *tools.Request, in catalogue.BlockTransferReferencesIn) (out catalogue.BlockTransferReferencesOut, err error) {
	from, err := r.Session.Block(ctx, in.FromID, contract.Read)
	if err != nil {
		return out, err
	}
	to, err := r.Session.Block(ctx, in.ToID, contract.Read)
	if err != nil {
		return out, err
	}
	var citing []guard.Block
	if len(in.RefIDs) > 0 {
		citing, err = r.Session.Blocks(ctx, in.RefIDs, contract.ReadWrite)
	} else {
		citing, err = r.Session.Citing(ctx, from)
	}
	if err != nil {
		return out, err
	}
	out = catalogue.BlockTransferReferencesOut{Success: true, FromID: from.ID(), ToID: to.ID(), IDs: []string{}}
	targets := make([]guard.Target, len(citing))
	for i, c := range citing {
		targets[i] = c
		out.IDs = append(out.IDs, c.ID())
	}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		return tx.TransferRefs(ctx, from, to, citing)
	})
	return out, err
}

func addToDailyNote(ctx context.Context, r *tools.Request, in catalogue.BlockAddToDailyNoteIn) (out catalogue.BlockAddToDailyNoteOut, err error) {
	nb, err := r.Session.Notebook(in.Notebook, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	known, err := r.Session.DailyNotes(ctx, nb)
	if err != nil {
		return out, err
	}
	targets := []guard.Target{nb}
	for _, d := range known {
		targets = append(targets, d)
	}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		var note guard.Doc
		var ids []string
		err := tx.All(func() (err error) {
			note, _, err = tx.DailyNote(ctx, nb, known)
			return err
		}, func() (err error) {
			ids, err = addTo(ctx, tx, note.Block(), text(in.DataType, in.Data), in.Position)
			return err
		})
		if err != nil {
			return err
		}
		out = catalogue.BlockAddToDailyNoteOut{
			Success: true, Notebook: nb.ID(), ID: ids[0], IDs: ids, ParentID: note.ID(), DataType: in.DataType, Position: in.Position,
		}
		return nil
	})
	return out, err
}

func addTo(ctx context.Context, tx *guard.Tx, note guard.Block, t guard.Text, position string) ([]string, error) {
	if position == "prepend" {
		return tx.Insert(ctx, []guard.Insertion{{At: guard.Anchor{Block: note, Side: guard.Into}, Text: t}})
	}
	return tx.Append(ctx, note, t)
}
