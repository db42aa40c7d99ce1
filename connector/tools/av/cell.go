package av

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// dayForm is a date without a time.
const dayForm = "2006-01-02"

// compact is a cell as an agent reads it, nil for an empty one. Dates are of the
// given zone.
func compact(v guard.CellValue, zone *time.Location) any {
	switch {
	case v.Block != nil:
		if v.Block.ID == "" || v.IsDetached {
			return v.Block.Content
		}
		return map[string]any{"id": v.Block.ID, "content": v.Block.Content}
	case v.Number != nil:
		if v.Number.IsNotEmpty {
			return v.Number.Content
		}
	case v.Date != nil:
		return span(v.Date.Content, v.Date.IsNotEmpty, v.Date.Content2, v.Date.HasEndDate && v.Date.IsNotEmpty2, !v.Date.IsNotTime, zone)
	case v.Created != nil:
		return span(v.Created.Content, v.Created.IsNotEmpty, 0, false, true, zone)
	case v.Updated != nil:
		return span(v.Updated.Content, v.Updated.IsNotEmpty, 0, false, true, zone)
	case v.Checkbox != nil:
		return v.Checkbox.Checked
	case len(v.Select) > 0:
		names := make([]string, len(v.Select))
		for i, o := range v.Select {
			names[i] = o.Content
		}
		if v.Type == "select" && len(names) == 1 {
			return names[0]
		}
		return names
	case len(v.Assets) > 0:
		var list []map[string]string
		for _, a := range v.Assets {
			list = append(list, map[string]string{"type": a.Type, "content": a.Content, "name": a.Name})
		}
		return list
	case v.Relation != nil:
		if len(v.Relation.BlockIDs) > 0 {
			return related(v, zone)
		}
	case v.Rollup != nil:
		if list := parts(v.Rollup.Contents, zone); len(list) > 0 {
			return list
		}
	default:
		return words(v)
	}
	return nil
}

// words are the text of a cell that is nothing but text.
func words(v guard.CellValue) any {
	for _, t := range texts(v) {
		if t != "" {
			return t
		}
	}
	return nil
}

func texts(v guard.CellValue) (all []string) {
	if v.Text != nil {
		all = append(all, v.Text.Content)
	}
	if v.URL != nil {
		all = append(all, v.URL.Content)
	}
	if v.Email != nil {
		all = append(all, v.Email.Content)
	}
	if v.Phone != nil {
		all = append(all, v.Phone.Content)
	}
	if v.Template != nil {
		all = append(all, v.Template.Content)
	}
	return all
}

func related(v guard.CellValue, zone *time.Location) map[string]any {
	out := map[string]any{"blockIDs": v.Relation.BlockIDs}
	if titles := parts(v.Relation.Contents, zone); len(titles) > 0 {
		out["contents"] = titles
	}
	return out
}

func parts(values []guard.CellValue, zone *time.Location) []any {
	var list []any
	for _, v := range values {
		if c := compact(v, zone); c != nil {
			list = append(list, c)
		}
	}
	return list
}

// span is a date, or a range with the moment it ends.
func span(start int64, some bool, end int64, isRange, withTime bool, zone *time.Location) any {
	if !some {
		return nil
	}
	form := dayForm
	if withTime {
		form = time.RFC3339
	}
	at := func(ms int64) string { return time.UnixMilli(ms).In(zone).Format(form) }
	out := map[string]any{"start": at(start), "hasTime": withTime}
	if isRange {
		out["end"] = at(end)
	}
	return out
}

// row is a row as an agent reads it.
func row(r guard.DatabaseRow, zone *time.Location) catalogue.AvRow {
	out := catalogue.AvRow{ID: r.ID, GroupID: r.Group, Cells: map[string]any{}}
	for _, v := range r.Cells {
		if c := compact(v, zone); c != nil {
			out.Cells[string(v.KeyID)] = c
		}
	}
	return out
}

// searched is what of a row a query looks at.
func searched(zone *time.Location) func(guard.DatabaseRow) string {
	return func(r guard.DatabaseRow) string {
		var b strings.Builder
		for _, v := range r.Cells {
			fmt.Fprintln(&b, compact(v, zone))
		}
		return b.String()
	}
}

// title is the text of a row's primary cell.
func title(r guard.DatabaseRow) string {
	for _, v := range r.Cells {
		if v.Block != nil {
			return v.Block.Content
		}
	}
	return ""
}

func resolved(r guard.DatabaseRow) catalogue.AvResolvedRow {
	out := catalogue.AvResolvedRow{RowID: r.ID, SourceBlockID: r.Block}
	for _, v := range r.Cells {
		out.ValueIDs = append(out.ValueIDs, string(v.ID))
	}
	return out
}

// columnType is the type of column that takes a kind of value.
var columnType = map[string]string{"multi_select": "mSelect"}

// input makes a guard's cell out of an agent's. path is where in the arguments
// it stands.
func input(c catalogue.AvCell, path string, zone *time.Location) (in guard.CellInput, err error) {
	in = guard.CellInput{Row: c.RowID, Column: c.ColumnID, Type: c.ValueType, Number: c.Number, Format: c.NumberFormat, Related: c.RelationBlockIDs}
	if t := columnType[c.ValueType]; t != "" {
		in.Type = t
	}
	if extra := stray(c); extra != "" {
		return in, contract.InvalidFields(contract.Field{Path: path + extra, Message: "is no value of " + c.ValueType})
	}
	in.Text = c.Text + c.URL + c.Email + c.Phone // at most one is there
	in.Checked = c.Checked != nil && *c.Checked
	if c.Option != "" {
		in.Options = []string{c.Option}
	}
	in.Options = append(in.Options, c.Options...)
	for _, a := range c.Assets {
		in.Assets = append(in.Assets, guard.CellAsset{Type: a.Type, Content: a.Content, Name: a.Name})
	}
	if in.Start, in.WithTime, err = moment(c.Date, path+"date", zone); err != nil {
		return in, err
	}
	end, endTime, err := moment(c.EndDate, path+"endDate", zone)
	if err != nil {
		return in, err
	}
	if end != nil && (in.Start == nil || end.Before(*in.Start)) {
		return in, contract.InvalidFields(contract.Field{Path: path + "endDate", Message: "must not be before date"})
	}
	in.End, in.WithTime = end, in.WithTime || endTime
	if c.IncludeTime != nil {
		in.WithTime = *c.IncludeTime
	}
	return in, nil
}

// stray is a value field that does not belong to the kind of value.
func stray(c catalogue.AvCell) string {
	for _, f := range []struct {
		name  string
		given bool
		kinds []string
	}{
		{"text", c.Text != "", []string{"text"}}, {"url", c.URL != "", []string{"url"}}, {"email", c.Email != "", []string{"email"}},
		{"phone", c.Phone != "", []string{"phone"}}, {"number", c.Number != nil, []string{"number"}}, {"numberFormat", c.NumberFormat != "", []string{"number"}},
		{"date", len(c.Date) > 0, []string{"date"}}, {"endDate", len(c.EndDate) > 0, []string{"date"}}, {"includeTime", c.IncludeTime != nil, []string{"date"}},
		{"checked", c.Checked != nil, []string{"checkbox"}}, {"option", c.Option != "", []string{"select"}},
		{"options", len(c.Options) > 0, []string{"multi_select"}}, {"relationBlockIDs", len(c.RelationBlockIDs) > 0, []string{"relation"}},
		{"assets", len(c.Assets) > 0, []string{"mAsset"}},
	} {
		if f.given && !slices.Contains(f.kinds, c.ValueType) {
			return f.name
		}
	}
	return ""
}

// forms of dates with a time; those without a zone are of the home's.
var forms = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// moment reads a date: text, or milliseconds. nil for none.
func moment(raw json.RawMessage, path string, zone *time.Location) (at *time.Time, withTime bool, err error) {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == `""` {
		return nil, false, nil
	}
	var ms float64
	if json.Unmarshal(raw, &ms) == nil {
		t := time.UnixMilli(int64(ms))
		return &t, true, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if t, err := time.ParseInLocation(dayForm, text, zone); err == nil {
			return &t, false, nil
		}
		for _, form := range forms {
			if t, err := time.ParseInLocation(form, text, zone); err == nil {
				return &t, true, nil
			}
		}
	}
	return nil, false, contract.InvalidFields(contract.Field{Path: path, Message: "must be a date such as 2026-11-30 or 2026-11-30T09:00+01:00, or milliseconds"})
}
