package av

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// changeView proves what a change of a view needs and runs it as a write.
func changeView(ctx context.Context, r *tools.Request, in catalogue.AvViewIn, change func(ctx context.Context, tx *guard.Tx, v guard.ShownView) (bool, error)) (out catalogue.AvViewOut, err error) {
	d, b, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	out = catalogue.AvViewOut{Success: true, AvID: d.ID(), BlockID: b.ID(), ViewID: in.ViewID}
	err = r.Session.Write(ctx, r.Intent(d), func(ctx context.Context, tx *guard.Tx) (err error) {
		out.Changed, err = change(ctx, tx, guard.ShownView{Database: d, Block: b, View: in.ViewID})
		return err
	})
	return out, err
}

func addView(ctx context.Context, r *tools.Request, in catalogue.AvAddViewIn) (out catalogue.AvAddViewOut, err error) {
	d, b, err := database(ctx, r, in.AvID, in.BlockID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	out = catalogue.AvAddViewOut{AvViewOut: catalogue.AvViewOut{Success: true, AvID: d.ID(), BlockID: b.ID(), ViewID: in.ViewID, Changed: true}, Layout: in.Layout, Name: in.Name}
	err = r.Session.Write(ctx, r.Intent(d, b), func(ctx context.Context, tx *guard.Tx) error {
		return tx.AddView(ctx, d, b, in.ViewID, in.Layout, in.Name)
	})
	return out, err
}

func setFilters(ctx context.Context, r *tools.Request, in catalogue.AvSetFiltersIn) (out catalogue.AvSetFiltersOut, err error) {
	out.CompleteReplacement = true
	zone := r.Session.Zone()
	out.AvViewOut, err = changeView(ctx, r, in.AvViewIn, func(ctx context.Context, tx *guard.Tx, v guard.ShownView) (bool, error) {
		filters, err := filtersOf(v.Database, in.Filters, "filters", zone)
		if err != nil {
			return false, err
		}
		changed, stored, err := tx.SetFilters(ctx, v, filters)
		out.Filters = conditions(stored, zone)
		return changed, err
	})
	return out, err
}

// filtersOf reads filters as an agent writes them.
func filtersOf(d guard.Database, list []json.RawMessage, path string, zone *time.Location) ([]guard.Filter, error) {
	out := []guard.Filter{}
	for i, raw := range list {
		at := fmt.Sprintf("%s.%d", path, i)
		var f struct {
			Column      string            `json:"column"`
			Operator    string            `json:"operator"`
			Value       json.RawMessage   `json:"value"`
			Combination string            `json:"combination"`
			Filters     []json.RawMessage `json:"filters"`
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&f); err != nil {
			return nil, contract.InvalidFields(contract.Field{Path: at, Message: "must be a filter as help of set_filters shows it: column, operator and value, or combination and filters"})
		}
		one := guard.Filter{Column: f.Column, Operator: f.Operator, Combination: f.Combination}
		var err error
		for _, k := range d.Columns() {
			if string(k.ID) == f.Column {
				if one.Value, err = given(k, f.Value, at+".value", zone); err != nil {
					return nil, err
				}
			}
		}
		if len(f.Filters) > 0 {
			if one.Filters, err = filtersOf(d, f.Filters, at+".filters", zone); err != nil {
				return nil, err
			}
		}
		out = append(out, one)
	}
	return out, nil
}

func setSorts(ctx context.Context, r *tools.Request, in catalogue.AvSetSortsIn) (out catalogue.AvSetSortsOut, err error) {
	out.CompleteReplacement, out.Sorts = true, []catalogue.AvSort{}
	sorts := []guard.Sort{}
	for _, s := range in.Sorts {
		sorts, out.Sorts = append(sorts, guard.Sort{Column: s.Column, Order: s.Order}), append(out.Sorts, catalogue.AvSort(s))
	}
	out.AvViewOut, err = changeView(ctx, r, in.AvViewIn, func(ctx context.Context, tx *guard.Tx, v guard.ShownView) (bool, error) {
		return tx.SetSorts(ctx, v, sorts)
	})
	return out, err
}

func setGroup(ctx context.Context, r *tools.Request, in catalogue.AvSetGroupIn) (out catalogue.AvSetGroupOut, err error) {
	g := guard.GroupBy(in.Group.Field, in.Group.Method, in.Group.Order, in.Group.HideEmpty)
	if s := in.Group.Range; s != nil {
		if s.Step <= 0 || s.End <= s.Start {
			return out, contract.InvalidFields(contract.Field{Path: "group.range", Message: "needs a numEnd above numStart and a numStep above 0"})
		}
		g.Range = &guard.GroupRange{Start: s.Start, End: s.End, Step: s.Step}
	}
	out.AvViewOut, err = changeView(ctx, r, in.AvViewIn, func(ctx context.Context, tx *guard.Tx, v guard.ShownView) (bool, error) {
		changed, stored, err := tx.SetGroup(ctx, v, g)
		out.Group = catalogue.AvGroupRule{Field: string(stored.Field), Method: stored.Method, Order: stored.Order, HideEmpty: stored.HideEmpty}
		if stored.Range != nil {
			out.Group.Range = &catalogue.AvGroupRange{Start: stored.Range.Start, End: stored.Range.End, Step: stored.Range.Step}
		}
		return changed, err
	})
	return out, err
}

func setVisibility(ctx context.Context, r *tools.Request, in catalogue.AvSetVisibilityIn) (out catalogue.AvSetVisibilityOut, err error) {
	out.KeyID, out.Hidden = in.KeyID, in.Hidden
	out.AvViewOut, err = changeView(ctx, r, in.AvViewIn, func(ctx context.Context, tx *guard.Tx, v guard.ShownView) (bool, error) {
		return tx.HideColumn(ctx, v, in.KeyID, in.Hidden)
	})
	return out, err
}

func setOrder(ctx context.Context, r *tools.Request, in catalogue.AvSetOrderIn) (out catalogue.AvSetOrderOut, err error) {
	out.CompleteReplacement, out.KeyIDs = true, in.KeyIDs
	out.AvViewOut, err = changeView(ctx, r, in.AvViewIn, func(ctx context.Context, tx *guard.Tx, v guard.ShownView) (bool, error) {
		return tx.OrderColumns(ctx, v, in.KeyIDs)
	})
	return out, err
}
