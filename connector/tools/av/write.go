package av

import (
	"context"
	"fmt"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// readBack says that a write was found in what SiYuan stores.
func readBack() catalogue.AvVerified {
	return catalogue.AvVerified{Status: "verified", Method: "read_back"}
}

func create(ctx context.Context, r *tools.Request, in catalogue.AvCreateIn) (out catalogue.AvCreateOut, err error) {
	at, err := r.Session.Block(ctx, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(at), func(ctx context.Context, tx *guard.Tx) error {
		made, err := tx.CreateDatabase(ctx, at, in.Name)
		if err == nil {
			out = catalogue.AvCreateOut{Success: true, AvID: made.ID, BlockID: made.Block, ViewID: made.View, Name: made.Name, Columns: columns(made.Columns, nil)}
		}
		return err
	})
	return out, err
}

func addRows(ctx context.Context, r *tools.Request, in catalogue.AvAddRowsIn) (out catalogue.AvAddRowsOut, err error) {
	d, b, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	targets := []guard.Target{d}
	var rows []guard.NewRow
	for _, id := range in.BlockIDs {
		bound, err := r.Session.Block(ctx, id, contract.ReadWrite)
		if err != nil {
			return out, err
		}
		targets, rows = append(targets, bound), append(rows, guard.NewRow{Block: &bound})
	}
	for _, text := range in.PrimaryKeyTexts {
		rows = append(rows, guard.NewRow{Title: text})
	}
	place := guard.RowPlace{Block: b, View: in.ViewID, Group: in.GroupID, Previous: in.PreviousID, NoDefaults: in.IgnoreDefaultFill != nil && *in.IgnoreDefaultFill}
	out = catalogue.AvAddRowsOut{Success: true, AvID: d.ID(), BlockIDs: in.BlockIDs, PrimaryKeyTexts: in.PrimaryKeyTexts}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		added, err := tx.AddRows(ctx, d, rows, place)
		for _, a := range added {
			out.Rows = append(out.Rows, catalogue.AvNewRow{RowID: a.ID, BlockID: a.Block, PrimaryKeyText: a.Title, Existed: a.Existed})
			if !a.Existed {
				out.Added++
			}
		}
		return err
	})
	return out, err
}

// removable is what a removal of rows touches.
func removable(ctx context.Context, r *tools.Request, in catalogue.AvRemoveRowsIn) (guard.Database, []guard.Target, error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return d, nil, err
	}
	bound, err := r.Session.BoundTo(ctx, d, in.SrcIDs)
	return d, append([]guard.Target{d}, bound...), err
}

func removeRows(ctx context.Context, r *tools.Request, in catalogue.AvRemoveRowsIn) (out catalogue.AvRemoveRowsOut, err error) {
	d, targets, err := removable(ctx, r, in)
	if err != nil {
		return out, err
	}
	out = catalogue.AvRemoveRowsOut{Success: true, AvID: d.ID(), SrcIDs: in.SrcIDs, Verification: readBack()}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) (err error) {
		out.Verification.RowIDs, err = tx.RemoveRows(ctx, d, in.SrcIDs)
		out.Removed = len(out.Verification.RowIDs)
		return err
	})
	return out, err
}

func previewRemoveRows(ctx context.Context, r *tools.Request, in catalogue.AvRemoveRowsIn) (p contract.Preview, err error) {
	d, _, err := removable(ctx, r, in)
	if err != nil {
		return p, err
	}
	return rowsOf(ctx, r, d, in.SrcIDs)
}

func addColumn(ctx context.Context, r *tools.Request, in catalogue.AvAddColumnIn) (out catalogue.AvAddColumnOut, err error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	c := guard.NewColumn{ID: in.KeyID, Name: in.KeyName, Type: in.KeyType, Icon: in.KeyIcon, Previous: in.PreviousKeyID}
	out = catalogue.AvAddColumnOut{Success: true, AvID: d.ID(), KeyName: in.KeyName, KeyType: in.KeyType}
	err = r.Session.Write(ctx, r.Intent(d), func(ctx context.Context, tx *guard.Tx) (err error) {
		out.KeyID, err = tx.AddColumn(ctx, d, c)
		return err
	})
	return out, err
}

// withRelated are a database and those that a change of the columns writes to as
// well.
func withRelated(ctx context.Context, r *tools.Request, d guard.Database, columns []string) ([]guard.Target, error) {
	targets := []guard.Target{d}
	for _, id := range columns {
		other, twoWay, err := r.Session.TwoWay(ctx, d, id)
		if err != nil {
			return nil, err
		}
		if twoWay {
			targets = append(targets, other)
		}
	}
	return targets, nil
}

func removeColumn(ctx context.Context, r *tools.Request, in catalogue.AvRemoveColumnIn) (out catalogue.AvRemoveColumnOut, err error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	targets, err := withRelated(ctx, r, d, []string{in.KeyID})
	if err != nil {
		return out, err
	}
	both := in.RemoveRelationDest != nil && *in.RemoveRelationDest
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error { return tx.RemoveColumn(ctx, d, in.KeyID, both) })
	return catalogue.AvRemoveColumnOut{Success: true, AvID: d.ID(), KeyID: in.KeyID, RemoveRelationDest: both}, err
}

func previewRemoveColumn(ctx context.Context, r *tools.Request, in catalogue.AvRemoveColumnIn) (p contract.Preview, err error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return p, err
	}
	if _, err := withRelated(ctx, r, d, []string{in.KeyID}); err != nil {
		return p, err
	}
	p.Named = []contract.PreviewItem{aColumn(d, in.KeyID)}
	return p, nil
}

func setCells(ctx context.Context, r *tools.Request, in catalogue.AvSetCellsIn) (out catalogue.AvSetCellsOut, err error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	zone := r.Session.Zone()
	var cells []guard.CellInput
	var relations []string
	for i, c := range asked(in) {
		path := ""
		if in.Cells != nil {
			path = fmt.Sprintf("cells.%d.", i)
		}
		cell, err := input(c, path, zone)
		if err != nil {
			return out, err
		}
		if cells = append(cells, cell); cell.Type == "relation" {
			relations = append(relations, cell.Column)
		}
	}
	targets, err := withRelated(ctx, r, d, relations)
	if err != nil {
		return out, err
	}
	out = catalogue.AvSetCellsOut{Success: true, AvID: d.ID(), Verification: readBack()}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		done, created, err := tx.SetCells(ctx, d, cells)
		for _, c := range done {
			out.Verification.Cells = append(out.Verification.Cells, catalogue.AvVerifiedCell{RowID: c.Row, ColumnID: c.Column, Observed: compact(c.Value, zone), Verified: true})
		}
		out.Updated, out.CreatedOptions = len(done), created
		return err
	})
	return out, err
}

func asked(in catalogue.AvSetCellsIn) []catalogue.AvCell {
	if in.Cells != nil {
		return in.Cells
	}
	return []catalogue.AvCell{catalogue.AvCell(in.AvOneCell)}
}

func duplicate(ctx context.Context, r *tools.Request, in catalogue.AvDuplicateIn) (out catalogue.AvDuplicateOut, err error) {
	d, after, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	place := in.PreviousID
	if place == "" && in.BlockID == "" {
		place = d.Blocks()[0]
	}
	if place != "" {
		if after, err = r.Session.Block(ctx, place, contract.ReadWrite); err != nil {
			return out, err
		}
	}
	bound, err := r.Session.AllBound(ctx, d)
	if err != nil {
		return out, err
	}
	targets, err := withRelated(ctx, r, d, columnIDs(d))
	if err != nil {
		return out, err
	}
	targets = append(append(targets, bound...), after)
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		made, err := tx.DuplicateDatabase(ctx, d, after)
		if err == nil {
			out = catalogue.AvDuplicateOut{Success: true, SourceAvID: d.ID(), AvID: made.ID, BlockID: made.Block, InsertedAfter: after.ID()}
		}
		return err
	})
	return out, err
}
