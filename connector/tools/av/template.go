package av

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// presets are the templates of a database as an agent reads them.
func presets(ctx context.Context, r *tools.Request, d guard.Database) (list []catalogue.AvTemplate, standard string, err error) {
	all, standard, err := r.Session.RowTemplates(ctx, d)
	for _, t := range all {
		one := catalogue.AvTemplate{ID: t.ID, Name: t.Name, Target: t.Target}
		if t.Box != "" {
			one.Place = &catalogue.AvPlace{BoxID: t.Box, Path: t.Path}
		}
		for _, c := range t.Cells {
			var shown any = "currentTime"
			if !c.Today {
				shown = compact(c.Value, r.Session.Zone())
			}
			if one.Fields == nil {
				one.Fields = map[string]any{}
			}
			one.Fields[c.Column] = shown
		}
		list = append(list, one)
	}
	return list, standard, err
}

func setTemplates(ctx context.Context, r *tools.Request, in catalogue.AvSetTemplatesIn) (out catalogue.AvSetTemplatesOut, err error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	var list []guard.RowTemplate
	for i, t := range in.Templates {
		one, err := rowTemplate(d, t, fmt.Sprintf("templates.%d", i), r.Session.Zone())
		if err != nil {
			return out, err
		}
		list = append(list, one)
	}
	// Templates with relations are checked against the other database, and written
	// to this one alone.
	targets, err := withRelated(ctx, r, d, templateColumns(list))
	if err != nil {
		return out, err
	}
	out = catalogue.AvSetTemplatesOut{Success: true, AvID: d.ID(), TemplateCount: len(list), Default: in.Default}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) (err error) {
		out.Changed, err = tx.SetRowTemplates(ctx, d, list, in.Default)
		out.Status = status(out.Changed)
		return err
	})
	return out, err
}

func templateColumns(list []guard.RowTemplate) (columns []string) {
	for _, t := range list {
		for _, c := range t.Cells {
			if !slices.Contains(columns, c.Column) {
				columns = append(columns, c.Column)
			}
		}
	}
	return columns
}

func rowTemplate(d guard.Database, t catalogue.AvTemplateIn, path string, zone *time.Location) (guard.RowTemplate, error) {
	one := guard.RowTemplate{ID: t.ID, Name: t.Name, Target: t.Target}
	if t.Place != nil {
		one.Box, one.Path = t.Place.BoxID, t.Place.Path
	}
	for _, id := range slices.Sorted(maps.Keys(t.Fields)) {
		f := t.Fields[id]
		c := guard.PresetCell{Column: id, Today: f.Mode == "currentTime"}
		for _, k := range d.Columns() {
			if string(k.ID) != id || c.Today {
				continue
			}
			at := path + ".fieldValues." + id + ".value"
			v, err := given(k, f.Value, at, zone)
			if err != nil {
				return one, err
			}
			if v == nil {
				return one, contract.InvalidFields(contract.Field{Path: at, Message: "is needed with mode static"})
			}
			c.Value = *v
		}
		one.Cells = append(one.Cells, c)
	}
	return one, nil
}

func previewSetTemplates(ctx context.Context, r *tools.Request, in catalogue.AvSetTemplatesIn) (p contract.Preview, err error) {
	d, _, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return p, err
	}
	all, _, err := r.Session.RowTemplates(ctx, d)
	for _, t := range all {
		if !slices.ContainsFunc(in.Templates, func(n catalogue.AvTemplateIn) bool { return n.ID == t.ID }) {
			p.Named = append(p.Named, contract.PreviewItem{Kind: "dropped template", Title: t.Name, Path: d.Name()})
		}
	}
	for _, t := range in.Templates {
		p.Named = append(p.Named, contract.PreviewItem{Kind: "template for new rows", Title: t.Name, Path: d.Name()})
	}
	return p, err
}

// making is what a new row of a template touches.
func making(ctx context.Context, r *tools.Request, in catalogue.AvFromTemplateIn) (d guard.Database, b guard.Block, targets []guard.Target, err error) {
	if d, b, err = database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite); err != nil {
		return d, b, nil, err
	}
	columns, err := d.TemplateColumns(in.TemplateID)
	if err != nil {
		return d, b, nil, err
	}
	if targets, err = withRelated(ctx, r, d, columns); err != nil {
		return d, b, nil, err
	}
	nb, makes, err := r.Session.TemplatePlace(ctx, d, in.TemplateID)
	if makes {
		targets = append(targets, nb)
	}
	return d, b, targets, err
}

func createFromTemplate(ctx context.Context, r *tools.Request, in catalogue.AvFromTemplateIn) (out catalogue.AvFromTemplateOut, err error) {
	d, b, targets, err := making(ctx, r, in)
	if err != nil {
		return out, err
	}
	place := guard.RowPlace{Block: b, View: in.ViewID, Group: in.GroupID, Previous: in.PreviousID}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		row, err := tx.CreateFromTemplate(ctx, d, in.TemplateID, place)
		out = catalogue.AvFromTemplateOut{Success: true, AvID: d.ID(), ItemID: row.ID, BlockID: row.Block, IsDetached: row.Block == "", Content: row.Title}
		if out.IsDetached {
			out.BlockID = row.ID
		}
		out.Readback = []catalogue.AvVerifiedCell{}
		for _, c := range row.Cells {
			out.Readback = append(out.Readback, catalogue.AvVerifiedCell{RowID: row.ID, ColumnID: string(c.KeyID), Observed: compact(c, r.Session.Zone()), Verified: true})
		}
		return err
	})
	return out, err
}

func previewFromTemplate(ctx context.Context, r *tools.Request, in catalogue.AvFromTemplateIn) (p contract.Preview, err error) {
	d, _, targets, err := making(ctx, r, in)
	if err != nil {
		return p, err
	}
	all, _, err := r.Session.RowTemplates(ctx, d)
	for _, t := range all {
		if t.ID != in.TemplateID {
			continue
		}
		p.Counts.Rows = 1
		p.Named = []contract.PreviewItem{{Kind: "template for new rows", Title: t.Name, Path: d.Name()}}
		if nb, ok := targets[len(targets)-1].(guard.Notebook); ok {
			p.Counts.Documents = 1
			p.Named = append(p.Named, contract.PreviewItem{Kind: "place of the new document", Title: t.Path, Path: nb.Name()})
		}
	}
	return p, err
}
