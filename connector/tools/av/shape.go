package av

import (
	"context"
	"slices"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// shaped says what became of a column.
func shaped(d guard.Database, column string, changed bool) catalogue.AvShapeOut {
	return catalogue.AvShapeOut{Success: true, AvID: d.ID(), KeyID: column, Status: status(changed), Changed: changed}
}

func status(changed bool) string {
	if changed {
		return "applied"
	}
	return "already_applied"
}

// aColumn is a column as a preview names it.
func aColumn(d guard.Database, id string) contract.PreviewItem {
	p := contract.PreviewItem{Kind: "database column", Title: id, Path: d.Name()}
	for _, c := range d.Columns() {
		if string(c.ID) == id {
			p.Title = c.Name
		}
	}
	return p
}

func setOptions(ctx context.Context, r *tools.Request, in catalogue.AvSetOptionsIn) (out catalogue.AvSetOptionsOut, err error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	var options []guard.Option
	for _, o := range in.Choices {
		options = append(options, guard.Option{Name: o.Name, Color: o.Color, Desc: o.Desc})
	}
	err = r.Session.Write(ctx, r.Intent(d), func(ctx context.Context, tx *guard.Tx) error {
		changed, stored, err := tx.SetOptions(ctx, d, in.KeyID, options)
		out.AvShapeOut, out.OptionCount = shaped(d, in.KeyID, changed), len(stored)
		out.ObservedOptions = []catalogue.AvOption{}
		for i, o := range stored {
			out.ObservedOptions = append(out.ObservedOptions, catalogue.AvOption{Name: o.Name, Color: o.Color, Desc: o.Desc})
			if i < len(options) && o.Name != options[i].Name {
				out.Status = "intermediate_option_order"
			}
		}
		return err
	})
	return out, err
}

func previewSetOptions(ctx context.Context, r *tools.Request, in catalogue.AvSetOptionsIn) (p contract.Preview, err error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return p, err
	}
	p.Named = []contract.PreviewItem{aColumn(d, in.KeyID)}
	for _, c := range d.Columns() {
		if string(c.ID) != in.KeyID {
			continue
		}
		for _, o := range c.Options {
			if !slices.ContainsFunc(in.Choices, func(n catalogue.AvOptionIn) bool { return n.Name == o.Name }) {
				p.Named = append(p.Named, contract.PreviewItem{Kind: "dropped option", Title: o.Name})
			}
		}
	}
	return p, nil
}

// copying is a database with those that a copy of its rows changes as well.
func copying(ctx context.Context, r *tools.Request, in catalogue.AvDuplicateRowsIn) (d guard.Database, targets []guard.Target, err error) {
	if d, _, err = database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite); err != nil {
		return d, nil, err
	}
	targets, err = withRelated(ctx, r, d, columnIDs(d))
	return d, targets, err
}

func columnIDs(d guard.Database) (ids []string) {
	for _, c := range d.Columns() {
		ids = append(ids, string(c.ID))
	}
	return ids
}

func duplicateRows(ctx context.Context, r *tools.Request, in catalogue.AvDuplicateRowsIn) (out catalogue.AvDuplicateRowsOut, err error) {
	d, targets, err := copying(ctx, r, in)
	if err != nil {
		return out, err
	}
	out = catalogue.AvDuplicateRowsOut{Success: true, AvID: d.ID(), SourceRows: in.SourceRows}
	for _, t := range targets[1:] {
		out.RelatedAvID = append(out.RelatedAvID, t.(guard.Database).ID())
	}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) (err error) {
		out.Rows, err = tx.DuplicateRows(ctx, d, in.SourceRows, in.PreviousID)
		out.Copied = len(out.Rows)
		return err
	})
	return out, err
}

func previewDuplicateRows(ctx context.Context, r *tools.Request, in catalogue.AvDuplicateRowsIn) (p contract.Preview, err error) {
	d, _, err := copying(ctx, r, in)
	if err != nil {
		return p, err
	}
	return rowsOf(ctx, r, d, in.SourceRows)
}

// rowsOf are rows as a preview names them.
func rowsOf(ctx context.Context, r *tools.Request, d guard.Database, ids []string) (p contract.Preview, err error) {
	titles, err := r.Session.Titles(ctx, d)
	if err != nil {
		return p, err
	}
	for _, t := range titles {
		if slices.Contains(ids, t.ID) || t.Block != "" && slices.Contains(ids, t.Block) {
			p.Counts.Rows++
			p.Named = append(p.Named, contract.PreviewItem{Kind: "database row", Title: title(t), Path: d.Name()})
		}
	}
	return p, nil
}

// relating is what a change of a relation's cell touches.
func relating(ctx context.Context, r *tools.Request, in catalogue.AvSetRelationIn) (d guard.Database, targets []guard.Target, err error) {
	if d, _, err = database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite); err != nil {
		return d, nil, err
	}
	targets, err = withRelated(ctx, r, d, []string{in.KeyID})
	return d, targets, err
}

func setRelation(ctx context.Context, r *tools.Request, in catalogue.AvSetRelationIn) (out catalogue.AvSetRelationOut, err error) {
	d, targets, err := relating(ctx, r, in)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		changed, back, err := tx.SetRelation(ctx, d, in.KeyID, in.ItemID, in.Related)
		out = catalogue.AvSetRelationOut{AvShapeOut: shaped(d, in.KeyID, changed), ItemID: in.ItemID, Related: in.Related, Cleared: len(in.Related) == 0, Reverse: back}
		return err
	})
	return out, err
}

func previewSetRelation(ctx context.Context, r *tools.Request, in catalogue.AvSetRelationIn) (p contract.Preview, err error) {
	d, _, err := relating(ctx, r, in)
	if err != nil {
		return p, err
	}
	p, err = rowsOf(ctx, r, d, []string{in.ItemID})
	p.Named = append(p.Named, aColumn(d, in.KeyID))
	return p, err
}

// bothEnds are the databases of a two-way relation to make.
func bothEnds(ctx context.Context, r *tools.Request, in catalogue.AvTwoWayIn) (d, other guard.Database, err error) {
	if d, _, err = database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite); err != nil {
		return d, other, err
	}
	other, _, err = database(ctx, r, in.DestAvID, in.DestBlockID, contract.ReadWrite)
	return d, other, err
}

func configureTwoWay(ctx context.Context, r *tools.Request, in catalogue.AvTwoWayIn) (out catalogue.AvTwoWayOut, err error) {
	d, other, err := bothEnds(ctx, r, in)
	if err != nil {
		return out, err
	}
	ways := guard.Ways{Column: in.KeyID, Name: in.SourceName, Back: in.BackKeyID, BackName: in.DestName, Other: other}
	out = catalogue.AvTwoWayOut{DestAvID: other.ID(), BackKeyID: in.BackKeyID, SourceName: in.SourceName, DestName: in.DestName}
	err = r.Session.Write(ctx, r.Intent(d, other), func(ctx context.Context, tx *guard.Tx) error {
		changed, err := tx.RelateTwoWay(ctx, d, ways)
		out.AvShapeOut = shaped(d, in.KeyID, changed)
		return err
	})
	return out, err
}

func previewTwoWay(ctx context.Context, r *tools.Request, in catalogue.AvTwoWayIn) (p contract.Preview, err error) {
	d, other, err := bothEnds(ctx, r, in)
	if err != nil {
		return p, err
	}
	p.Named = []contract.PreviewItem{aColumn(d, in.KeyID), {Kind: "new database column", Title: in.DestName, Path: other.Name()}}
	return p, nil
}

func configureRollup(ctx context.Context, r *tools.Request, in catalogue.AvRollupIn) (out catalogue.AvRollupOut, err error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	rolling := guard.Rolling{Column: in.KeyID, Relation: in.RelationKeyID, Key: in.DestKeyID, Operator: in.Calc.Operator}
	err = r.Session.Write(ctx, r.Intent(d), func(ctx context.Context, tx *guard.Tx) error {
		changed, filteredBy, err := tx.ConfigureRollup(ctx, d, rolling)
		out = catalogue.AvRollupOut{AvShapeOut: shaped(d, in.KeyID, changed), RelationKeyID: in.RelationKeyID, DestKeyID: in.DestKeyID, Calc: in.Calc, FilteredBy: filteredBy}
		return err
	})
	return out, err
}

func previewRollup(ctx context.Context, r *tools.Request, in catalogue.AvRollupIn) (p contract.Preview, err error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err == nil {
		p.Named = []contract.PreviewItem{aColumn(d, in.KeyID)}
	}
	return p, err
}
