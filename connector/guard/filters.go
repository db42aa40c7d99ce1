package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Filter is a condition on a column, or several joined by "and" or "or".
type Filter struct {
	Column      string     `json:"column"`
	Operator    string     `json:"operator"`
	Value       *CellValue `json:"value"`
	Combination string     `json:"combination,omitempty"`
	Filters     []Filter   `json:"filters,omitempty"`
}

// operators are those that SiYuan carries out; it stores any other word too, and
// then hides every row.
var operators = []string{
	"=", "!=", ">", ">=", "<", "<=", "Contains", "Does not contains", "Is empty", "Is not empty", "Starts with", "Ends with", "Is between",
	"Is true", "Is false", "Is relative to today",
}

// filterDepth bounds how deep filters may hold filters.
const filterDepth = 3

// SetFilters replaces the filters of a view and returns them as stored.
func (tx *Tx) SetFilters(ctx context.Context, v ShownView, filters []Filter) (changed bool, stored []Filter, err error) {
	d, view, err := tx.shownView(ctx, v)
	if err != nil {
		return false, nil, err
	}
	columns, err := checkFilters(filters, "filters", filterDepth)
	if err != nil {
		return false, nil, err
	}
	if err := tx.usable(ctx, d, unique(columns)); err != nil {
		return false, nil, err
	}
	raw := []json.RawMessage{}
	for _, f := range d.typed(filters) {
		one, err := json.Marshal(f)
		if err != nil {
			return false, nil, fmt.Errorf("encode filter: %w", err)
		}
		raw = append(raw, one)
	}
	changed, now, err := tx.changeView(ctx, d, view.ID, "database.set_filters", viewFilters, filtersMark(filters),
		func(w *siyuan.Writer) error { return w.SetFilters(ctx, d.id, v.Block.id, raw) })
	if err == nil {
		stored, err = storedFilters(now)
	}
	return changed, stored, err
}

// typed are filters with a value each, if an empty one: SiYuan passes over those
// without.
func (d Database) typed(filters []Filter) []Filter {
	filters = slices.Clone(filters)
	for i, f := range filters {
		filters[i].Filters = d.typed(f.Filters)
		if k, there := d.key(siyuan.ID(f.Column)); there && f.Value == nil {
			filters[i].Value = &CellValue{Type: k.Type}
		}
	}
	return filters
}

// checkFilters checks the form of filters and names the columns they look at.
func checkFilters(filters []Filter, path string, depth int) (columns []siyuan.ID, err error) {
	for i, f := range filters {
		at := fmt.Sprintf("%s.%d", path, i)
		bad := func(field, message string) error {
			return contract.InvalidFields(contract.Field{Path: at + field, Message: message})
		}
		switch {
		case f.Column != "" && (f.Combination != "" || len(f.Filters) > 0):
			return nil, bad("", "is either a condition on a column or a combination of filters")
		case f.Column != "":
			if !slices.Contains(operators, f.Operator) {
				return nil, bad(".operator", "must be one of: "+strings.Join(operators, ", "))
			}
			columns = append(columns, siyuan.ID(f.Column))
			continue
		case f.Combination != "and" && f.Combination != "or":
			return nil, bad("", `needs a column, or a combination "and" or "or" of filters`)
		case len(f.Filters) == 0:
			return nil, bad(".filters", "must hold a filter")
		case depth == 1:
			return nil, bad(".filters", "are nested too deep")
		}
		inner, err := checkFilters(f.Filters, at+".filters", depth-1)
		if err != nil {
			return nil, err
		}
		columns = append(columns, inner...)
	}
	return columns, nil
}

// storedFilters are the filters of a view without what SiYuan keeps around them:
// one outermost combination, and empty conditions.
func storedFilters(v siyuan.AvView) (all []Filter, err error) {
	if len(v.Filters) > 0 {
		if err := json.Unmarshal(v.Filters, &all); err != nil {
			return nil, err
		}
	}
	if len(all) == 1 && all[0].Column == "" && all[0].Combination != "or" {
		all = all[0].Filters
	}
	return slices.DeleteFunc(all, func(f Filter) bool { return f.Column == "" && len(f.Filters) == 0 }), nil
}

// filtersMark is what filters say, in whatever form.
func filtersMark(filters []Filter) string {
	if len(filters) == 1 && filters[0].Column == "" && filters[0].Combination == "and" {
		filters = filters[0].Filters
	}
	var b strings.Builder
	for _, f := range filters {
		if f.Column == "" {
			fmt.Fprintln(&b, f.Combination, filtersMark(f.Filters))
			continue
		}
		fmt.Fprintln(&b, f.Column, f.Operator, cellMark(f.Value))
	}
	return digest(b.String())
}
