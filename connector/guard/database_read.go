package guard

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Column is a column of a database; CellValue a cell, or a part of one.
type (
	Column    = siyuan.Key
	CellValue = siyuan.Value
)

// DatabaseView is one of the ways to look at a database.
type DatabaseView struct {
	ID, Name, Type string
	Current        bool // the one that SiYuan shows without being told
}

// DatabaseRow is a row with its cells, in the order of the columns. Block is the
// block bound to it, "" of a row of its own.
type DatabaseRow struct {
	ID, Block, Group string
	Cells            []CellValue
}

// DatabaseGroup is a group of rows.
type DatabaseGroup struct {
	ID, Name string
	Rows     int
}

// Name is the database's name.
func (d Database) Name() string { return d.file.Name }

// Columns are the columns of the database as they are stored.
func (d Database) Columns() []Column {
	keys := make([]Column, len(d.file.KeyValues))
	for i, kv := range d.file.KeyValues {
		keys[i] = kv.Key
	}
	return keys
}

// Views are the views of the database in their order.
func (d Database) Views() []DatabaseView {
	var all []DatabaseView
	for _, v := range d.file.Views {
		all = append(all, DatabaseView{string(v.ID), v.Name, v.Type, v.ID == d.file.ViewID})
	}
	return all
}

// Zone is where the days of SiYuan's dates begin and end.
func (s *Session) Zone() *time.Location { return s.g.opt.Now().Location() }

func (d Database) key(id siyuan.ID) (siyuan.Key, bool) {
	for _, kv := range d.file.KeyValues {
		if kv.Key.ID == id {
			return kv.Key, true
		}
	}
	return siyuan.Key{}, false
}

// primary is the column of the rows' titles.
func primary(av siyuan.AttributeView) (kv siyuan.KeyValues) {
	for _, kv := range av.KeyValues {
		if kv.Key.Type == "block" {
			return kv
		}
	}
	return kv
}

// cellOf is a stored cell, nil if there is none.
func cellOf(av siyuan.AttributeView, key, item siyuan.ID) *siyuan.Value {
	for i := range av.KeyValues {
		if av.KeyValues[i].Key.ID != key {
			continue
		}
		for j := range av.KeyValues[i].Values {
			if av.KeyValues[i].Values[j].BlockID == item {
				return &av.KeyValues[i].Values[j]
			}
		}
	}
	return nil
}

// items are the rows of a database as its current view has them, then all others.
func items(av siyuan.AttributeView) []siyuan.ID {
	there := map[siyuan.ID]bool{}
	for _, v := range primary(av).Values {
		there[v.BlockID] = true
	}
	var ids []siyuan.ID
	add := func(id siyuan.ID) {
		if there[id] {
			ids = append(ids, id)
			delete(there, id)
		}
	}
	views := slices.Clone(av.Views)
	slices.SortStableFunc(views, func(a, b siyuan.AvView) int {
		return strings.Compare(current(b, av), current(a, av))
	})
	for _, v := range views {
		for _, id := range v.ItemIDs {
			add(id)
		}
	}
	for _, v := range primary(av).Values {
		add(v.BlockID)
	}
	return ids
}

func current(v siyuan.AvView, av siyuan.AttributeView) string {
	if v.ID == av.ViewID {
		return "1"
	}
	return ""
}

// AllRows are the stored rows of a database, with everything hidden taken out.
// Computed columns have no cells.
func (s *Session) AllRows(ctx context.Context, d Database) ([]DatabaseRow, error) {
	if err := s.own(d, contract.Read); err != nil {
		return nil, err
	}
	byRow := map[siyuan.ID][]siyuan.Value{}
	for _, kv := range d.file.KeyValues {
		for _, v := range kv.Values {
			byRow[v.BlockID] = append(byRow[v.BlockID], v)
		}
	}
	return s.shown(ctx, d, items(d.file), byRow)
}

// Titles are the rows with their primary cells only.
func (s *Session) Titles(ctx context.Context, d Database) ([]DatabaseRow, error) {
	if err := s.own(d, contract.Read); err != nil {
		return nil, err
	}
	byRow := map[siyuan.ID][]siyuan.Value{}
	for _, v := range primary(d.file).Values {
		byRow[v.BlockID] = append(byRow[v.BlockID], v)
	}
	return s.shown(ctx, d, items(d.file), byRow)
}

func (s *Session) shown(ctx context.Context, d Database, order []siyuan.ID, byRow map[siyuan.ID][]siyuan.Value) ([]DatabaseRow, error) {
	rows := make([]DatabaseRow, len(order))
	var cells []*siyuan.Value
	for i, id := range order {
		rows[i] = DatabaseRow{ID: string(id), Cells: copies(byRow[id])}
		for j := range rows[i].Cells {
			cells = append(cells, &rows[i].Cells[j])
		}
	}
	m, err := s.cellMask(ctx, d, cells)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].settle(m)
	}
	return rows, nil
}

// copies are cells whose titles may be changed without changing the originals.
func copies(cells []siyuan.Value) []siyuan.Value {
	out := slices.Clone(cells)
	for i, v := range out {
		if v.Block != nil {
			b := *v.Block
			out[i].Block = &b
		}
	}
	return out
}

func (r *DatabaseRow) settle(m cellMask) {
	for i := range r.Cells {
		if b := r.Cells[i].Block; b != nil && b.ID != "" && !r.Cells[i].IsDetached {
			r.Block = string(b.ID)
		}
		m.hide(&r.Cells[i])
	}
}

// Sort orders a view by a column, ASC or DESC.
type Sort struct {
	Column string `json:"column"`
	Order  string `json:"order"`
}

// FilterSort are the filters and sorts of the view that a block shows, or of the
// current one with the zero Block.
func (s *Session) FilterSort(ctx context.Context, d Database, b Block) (view string, filters []Filter, sorts []Sort, err error) {
	if err := s.own(d, contract.Read); err != nil {
		return "", nil, nil, err
	}
	v, err := s.viewOf(ctx, d, b, "")
	if err != nil {
		return "", nil, nil, err
	}
	filters, err = storedFilters(v)
	if err == nil {
		sorts, err = storedSorts(v)
	}
	if err != nil {
		err = contract.Fail(contract.APIError, "SiYuan's filters and sorts of view %s have an unknown form.", string(v.ID)).WithCause(err)
	}
	return string(v.ID), filters, sorts, err
}

// viewOf is the view of that id, else the one that the block shows, else the
// current one.
func (s *Session) viewOf(ctx context.Context, d Database, b Block, id string) (siyuan.AvView, error) {
	want := siyuan.ID(id)
	if id == "" && b.id != "" {
		attrs, err := s.g.r.BlockAttrs(ctx, b.id)
		if err != nil {
			return siyuan.AvView{}, s.vanished(err, "block", b.id)
		}
		want = siyuan.ID(attrs["custom-sy-av-view"])
	}
	var fallback siyuan.AvView
	for i, v := range d.file.Views {
		if v.ID == want {
			return v, nil
		}
		if i == 0 || v.ID == d.file.ViewID {
			fallback = v
		}
	}
	if id != "" {
		return siyuan.AvView{}, d.misnamed("view", want)
	}
	return fallback, nil
}

// containsWords reports whether a text has every word of a query, in any case.
func containsWords(text, query string) bool {
	text = strings.ToLower(text)
	for _, word := range strings.Fields(strings.ToLower(query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// maxDatabases bounds the databases that a search looks at.
const maxDatabases = 200

var shownDatabase = regexp.MustCompile(`data-av-id="(` + idPattern + `)"`)

// Databases are the databases that readable blocks show and the caller may read,
// those changed last first; more says that there are others.
func (s *Session) Databases(ctx context.Context) (all []Database, more bool, err error) {
	rows, err := s.rows(ctx, "type = 'av'", "updated DESC, id", maxDatabases+1)
	if err != nil {
		return nil, false, err
	}
	if more = len(rows) > maxDatabases; more {
		rows = rows[:maxDatabases]
	}
	for _, id := range unique(firstGroup(shownDatabase, markdownOf(rows))) {
		d, err := s.quietly(ctx, id)
		if err != nil {
			return nil, false, err
		}
		if d != nil {
			all = append(all, *d)
		}
	}
	return all, more, nil
}

func markdownOf(rows []Row) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.Markdown + "\n")
	}
	return b.String()
}
