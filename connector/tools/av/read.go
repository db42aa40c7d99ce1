package av

import (
	"context"
	"fmt"
	"strings"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func get(ctx context.Context, r *tools.Request, in catalogue.AvGetIn) (out catalogue.AvGetOut, err error) {
	d, _, err := database(ctx, r, in.ID, in.BlockID, contract.Read)
	if err != nil {
		return out, err
	}
	rows, err := r.Session.AllRows(ctx, d)
	if err != nil {
		return out, err
	}
	zone := r.Session.Zone()
	out = catalogue.AvGetOut{ID: d.ID(), ResolvedRows: []catalogue.AvResolvedRow{}}
	out.Av = catalogue.AvFile{ID: d.ID(), Name: d.Name(), Columns: columns(d.Columns(), nil), Views: views(d.Views()), Rows: []catalogue.AvRow{}}
	templates, standard, err := presets(ctx, r, d)
	if err != nil {
		return out, err
	}
	out.Av.Templates, out.Av.DefaultTemplate = catalogue.Fit(templates, len(templates), r.Budget/4, catalogue.Chars), standard
	size := func(one guard.DatabaseRow) int {
		return catalogue.Chars(row(one, zone)) + catalogue.Chars(resolved(one))
	}
	for _, one := range catalogue.Fit(rows, len(rows), r.Budget, size) {
		out.Av.Rows = append(out.Av.Rows, row(one, zone))
		out.ResolvedRows = append(out.ResolvedRows, resolved(one))
	}
	if out.Truncated = len(out.Av.Rows) < len(rows) || len(out.Av.Templates) < len(templates); out.Truncated {
		out.Hint = fmt.Sprintf("%d of %d rows, %d of %d templates. Read pages of rows with av.render.", len(out.Av.Rows), len(rows), len(out.Av.Templates), len(templates))
	}
	return out, nil
}

// defaultRows and defaultTitles are the sizes of pages.
const (
	defaultRows   = 10
	defaultTitles = 16
)

func or(p *int, standard int) int {
	if p == nil {
		return standard
	}
	return *p
}

func render(ctx context.Context, r *tools.Request, in catalogue.AvRenderIn) (out catalogue.AvRenderOut, err error) {
	q := guard.DatabaseQuery{View: in.ViewID, Page: or(in.Page, 1), Size: or(in.PageSize, defaultRows), Query: in.Query, IgnoreRows: in.IgnoreRows != nil && *in.IgnoreRows}
	if q.Size == 0 {
		return out, contract.InvalidFields(contract.Field{Path: "pageSize", Message: "must be at least 1, or -1 for all rows"})
	}
	d, b, err := database(ctx, r, in.ID, in.BlockID, contract.Read)
	if err != nil {
		return out, err
	}
	q.Block = b
	zone := r.Session.Zone()
	p, err := r.Session.Render(ctx, d, q, searched(zone))
	if err != nil {
		return out, err
	}
	out = catalogue.AvRenderOut{ID: d.ID(), AvID: d.ID(), Name: d.Name(), View: view(p.View), Views: views(d.Views())}
	out.Table = catalogue.AvTable{Columns: columns(p.Columns, p.Hidden), Rows: []catalogue.AvRow{}}
	if q.IgnoreRows {
		out.PageOut = catalogue.PageOut{Page: 1, PageSize: q.Size, PageCount: 1}
		return out, nil
	}
	for _, one := range p.Rows {
		out.Table.Rows = append(out.Table.Rows, row(one, zone))
	}
	if q.Size < 0 {
		q.Size = max(1, p.Total)
	}
	_, _, out.PageOut = catalogue.Page(p.Total, p.Page, q.Size)
	out.Table.Rows, out.PageOut = catalogue.Shrink(out.Table.Rows, out.PageOut, r.Budget)
	out.Table.RowCount, out.Hint = len(out.Table.Rows), catalogue.NextPage(out.PageOut)
	for _, g := range p.Groups {
		out.Table.Groups = append(out.Table.Groups, catalogue.AvGroup{ID: g.ID, Name: g.Name, Rows: g.Rows})
	}
	for _, one := range p.Rows[:len(out.Table.Rows)] {
		out.Data = append(out.Data, resolved(one))
	}
	return out, nil
}

func keys(ctx context.Context, r *tools.Request, in catalogue.AvKeysIn) (out catalogue.AvKeysOut, err error) {
	d, err := r.Session.Database(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	return catalogue.AvKeysOut{AvID: d.ID(), Keys: columns(d.Columns(), nil)}, nil
}

func filterSort(ctx context.Context, r *tools.Request, in catalogue.AvFilterSortIn) (out catalogue.AvFilterSortOut, err error) {
	d, b, err := database(ctx, r, in.ID, in.BlockID, contract.Read)
	if err != nil {
		return out, err
	}
	v, filters, sorts, err := r.Session.FilterSort(ctx, d, b)
	out = catalogue.AvFilterSortOut{AvID: d.ID(), BlockID: in.BlockID, ViewID: v, Filters: conditions(filters, r.Session.Zone()), Sorts: []catalogue.AvSort{}}
	for _, s := range sorts {
		out.Sorts = append(out.Sorts, catalogue.AvSort{Column: s.Column, Order: s.Order})
	}
	return out, err
}

// conditions are filters as an agent reads them, without the empty ones that
// SiYuan keeps.
func conditions(filters []guard.Filter, zone *time.Location) []catalogue.AvFilter {
	list := []catalogue.AvFilter{}
	for _, f := range filters {
		if f.Column == "" && len(f.Filters) == 0 {
			continue
		}
		c := catalogue.AvFilter{Column: f.Column, Operator: f.Operator}
		if f.Value != nil {
			c.Value = compact(*f.Value, zone)
		}
		if len(f.Filters) > 0 {
			c.Combination, c.Filters = f.Combination, conditions(f.Filters, zone)
		}
		list = append(list, c)
	}
	return list
}

// maxMatches bounds the rows that are told of a database that was found.
const maxMatches = 3

func search(ctx context.Context, r *tools.Request, in catalogue.AvSearchIn) (out catalogue.AvSearchOut, err error) {
	out = catalogue.AvSearchOut{Keyword: in.Keyword, Results: []catalogue.AvFound{}}
	left := map[string]bool{}
	for _, id := range in.Excludes {
		left[id] = true
	}
	all, more, err := r.Session.Databases(ctx)
	if err != nil {
		return out, err
	}
	for _, d := range all {
		if left[d.ID()] {
			continue
		}
		titles, err := r.Session.Titles(ctx, d)
		if err != nil {
			return out, err
		}
		found := catalogue.AvFound{ID: d.ID(), AvID: d.ID(), Name: d.Name(), BlockIDs: d.Blocks()}
		for _, t := range titles {
			if len(found.Rows) < maxMatches && has(title(t), in.Keyword) {
				found.Rows = append(found.Rows, title(t))
			}
		}
		if has(d.Name(), in.Keyword) || len(found.Rows) > 0 {
			out.Results = append(out.Results, found)
		}
	}
	fit := catalogue.Fit(out.Results, len(out.Results), r.Budget, catalogue.Chars)
	if out.Truncated = more || len(fit) < len(out.Results); out.Truncated {
		out.Hint = "There are more databases than were looked at or fit in here; search for more of the name."
	}
	out.Results = fit
	return out, nil
}

func has(text, keyword string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(strings.TrimSpace(keyword)))
}

func primary(ctx context.Context, r *tools.Request, in catalogue.AvPrimaryIn) (out catalogue.AvPrimaryOut, err error) {
	d, err := r.Session.Database(ctx, in.AvID, contract.Read)
	if err != nil {
		return out, err
	}
	titles, err := r.Session.Titles(ctx, d)
	if err != nil {
		return out, err
	}
	out = catalogue.AvPrimaryOut{AvID: d.ID(), Name: d.Name(), BlockIDs: d.Blocks(), Rows: []catalogue.AvPrimaryRow{}}
	for _, t := range titles {
		if has(title(t), in.Keyword) {
			out.Rows = append(out.Rows, catalogue.AvPrimaryRow{RowID: t.ID, BlockID: t.Block, Content: title(t)})
		}
	}
	from, to, page := catalogue.Page(len(out.Rows), or(in.Page, 1), or(in.PageSize, defaultTitles))
	out.Rows, out.PageOut = catalogue.Shrink(out.Rows[from:to], page, r.Budget)
	out.Hint = catalogue.NextPage(out.PageOut)
	return out, nil
}
