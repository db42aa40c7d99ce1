package guard

import (
	"context"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// DatabaseQuery chooses what Render shows.
type DatabaseQuery struct {
	Block      Block  // shows the database; the zero Block for none
	View       string // "" the view of Block, else the current one
	Page, Size int    // Page from 1; Size -1 for all rows
	Query      string // words that rows must contain
	IgnoreRows bool
}

// DatabasePage is a page of a database as one of its views shows it.
type DatabasePage struct {
	View       DatabaseView
	Columns    []Column
	Hidden     map[string]bool // columns that the view does not show
	Rows       []DatabaseRow
	Groups     []DatabaseGroup
	Total      int
	Page, Size int
}

// Render shows a database. Cells that lead to something the caller may not read
// are the placeholder: rows of missing or closed blocks, relations and rollups
// of other databases, and template columns that query the workspace. text is
// what of a row is searched. A view that filters, sorts or groups by such a column
// is unsupported, because its rows would tell what the column holds.
func (s *Session) Render(ctx context.Context, d Database, q DatabaseQuery, text func(DatabaseRow) string) (DatabasePage, error) {
	if err := s.own(d, contract.Read); err != nil {
		return DatabasePage{}, err
	}
	v, err := s.viewOf(ctx, d, q.Block, q.View)
	if err != nil {
		return DatabasePage{}, err
	}
	// The kernel searches all it renders, so with anything hidden the guard does,
	// after hiding. It does as well where the kernel would page every group apart.
	here := !s.whole() || v.Group != nil && v.Group.Field != ""
	ask := siyuan.Render{ID: d.id, Page: q.Page, Size: q.Size, Query: q.Query, IgnoreRows: q.IgnoreRows}
	if here {
		ask.Page, ask.Size = 1, -1
	}
	if !s.whole() {
		ask.Query = ""
	}
	out, err := s.renderView(ctx, d, v.ID, ask)
	if err != nil {
		return DatabasePage{}, orNotFound(err, notFound("database", d.id))
	}
	p := newPage(v, out, d)
	if err := s.mask(ctx, d, v, &p); err != nil {
		return DatabasePage{}, err
	}
	p.Page, p.Size = q.Page, q.Size
	if here {
		p.cut(q, ask.Query == "", text)
	}
	return p, nil
}

// renderView asks the kernel for a view and puts the current one back: the
// kernel keeps the view it rendered last as the one to show.
func (s *Session) renderView(ctx context.Context, d Database, view siyuan.ID, ask siyuan.Render) (siyuan.Rendered, error) {
	if view == d.file.ViewID {
		return s.g.r.RenderAttributeView(ctx, ask)
	}
	release, err := s.g.opt.Locks.acquire(ctx, []string{d.lockName()})
	if err != nil {
		return siyuan.Rendered{}, err
	}
	defer release()
	now, err := s.g.r.AttributeView(ctx, d.id)
	if err != nil {
		return siyuan.Rendered{}, err
	}
	ask.View = view
	out, err := s.g.r.RenderAttributeView(ctx, ask)
	if now.ViewID == view {
		return out, err
	}
	back := siyuan.Render{ID: d.id, View: now.ViewID, Page: 1, Size: 1, IgnoreRows: true}
	if _, backErr := s.g.r.RenderAttributeView(context.WithoutCancel(ctx), back); err == nil {
		err = backErr
	}
	return out, err
}

// newPage takes a view out of the kernel's answer, the rows of all groups in one
// list.
func newPage(v siyuan.AvView, out siyuan.Rendered, d Database) DatabasePage {
	p := DatabasePage{View: DatabaseView{string(v.ID), v.Name, v.Type, v.ID == d.file.ViewID}, Hidden: map[string]bool{}}
	for _, place := range v.Places() {
		if k, ok := d.key(place.ID); ok {
			p.Columns = append(p.Columns, k)
			p.Hidden[string(k.ID)] = place.Hidden
		}
	}
	seen := map[siyuan.ID]bool{}
	var take func(view siyuan.View, group string)
	take = func(view siyuan.View, group string) {
		for _, r := range append(view.Rows, view.Cards...) {
			if seen[r.ID] {
				continue // a row with two options stands in two groups
			}
			seen[r.ID] = true
			row := DatabaseRow{ID: string(r.ID), Group: group}
			for _, c := range append(r.Cells, r.Values...) {
				if c.Value != nil {
					row.Cells = append(row.Cells, *c.Value)
				}
			}
			p.Rows = append(p.Rows, row)
		}
		for _, g := range view.Groups {
			p.Groups = append(p.Groups, DatabaseGroup{string(g.ID), g.Name, max(g.RowCount, g.CardCount)})
			take(g, string(g.ID))
		}
	}
	take(out.View, "")
	p.Total = max(out.View.RowCount, out.View.CardCount, len(p.Rows))
	return p
}

func (s *Session) mask(ctx context.Context, d Database, v siyuan.AvView, p *DatabasePage) error {
	var cells []*siyuan.Value
	for i := range p.Rows {
		for j := range p.Rows[i].Cells {
			cells = append(cells, &p.Rows[i].Cells[j])
		}
	}
	m, err := s.cellMask(ctx, d, cells)
	if err != nil {
		return err
	}
	if m.telling(d, v) {
		return contract.Fail(contract.Unsupported, "View %s filters, sorts or groups by a column that shows more than you may read.", string(v.ID)).
			WithHint("Use another view, or av.get for the stored cells.")
	}
	for i := range p.Rows {
		p.Rows[i].settle(m)
	}
	return nil
}

// cut makes the page that was asked for out of all rows.
func (p *DatabasePage) cut(q DatabaseQuery, search bool, text func(DatabaseRow) string) {
	if search && q.Query != "" {
		var found []DatabaseRow
		for _, r := range p.Rows {
			if containsWords(text(r), q.Query) {
				found = append(found, r)
			}
		}
		p.Rows, p.Groups = found, nil
	}
	p.Total = len(p.Rows)
	if q.Size > 0 {
		pages := max(1, (p.Total+q.Size-1)/q.Size)
		p.Page = min(q.Page, pages)
		p.Rows = p.Rows[min((p.Page-1)*q.Size, p.Total):min(p.Page*q.Size, p.Total)]
	}
}
