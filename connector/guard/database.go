package guard

import (
	"context"
	"errors"
	"regexp"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Database is an attribute view whose level is proven in every notebook that
// shows it or has a block in it.
type Database struct {
	s      *Session
	id     siyuan.ID
	level  contract.Level
	blocks []siyuan.ID // the blocks that show it
}

// ID is the database's id.
func (d Database) ID() string { return string(d.id) }

// Level is the least of the caller's levels in the notebooks concerned.
func (d Database) Level() contract.Level { return d.level }

// DatabaseView is a database as one of its views shows it.
type DatabaseView = siyuan.Rendered

// Database proves a level for a database. One that nothing shows, or that a
// hidden notebook shows or has a block in, does not exist. Finding that out takes
// as many kernel calls as there are such notebooks, so they are not counted.
func (s *Session) Database(ctx context.Context, id string, need contract.Level) (Database, error) {
	ctx = siyuan.Uncounted(ctx)
	d := Database{s: s, id: siyuan.ID(id), level: contract.ReadWriteDelete}
	missing := notFound("database", d.id)
	if !d.id.Valid() {
		return Database{}, missing
	}
	defs, err := s.g.r.MirrorBlocks(ctx, d.id)
	if err != nil {
		return Database{}, orNotFound(err, missing)
	}
	for _, def := range defs {
		d.blocks = append(d.blocks, def.RefID)
	}
	bound, err := s.boundBlocks(ctx, d.id)
	if err != nil {
		return Database{}, orNotFound(err, missing)
	}
	if _, err := s.readable(ctx, append(bound, d.blocks...)); err != nil {
		return Database{}, err
	}
	boxes := s.boxesOf(append(bound, d.blocks...))
	if len(s.boxesOf(d.blocks)) == 0 {
		return Database{}, missing
	}
	for _, box := range boxes {
		d.level = min(d.level, s.level(box))
	}
	if d.level == contract.None {
		return Database{}, missing
	}
	for _, box := range boxes {
		s.touch(box)
		if err := s.prove(box, need); err != nil {
			return Database{}, err
		}
	}
	return d, nil
}

func orNotFound(err, missing error) error {
	if errors.Is(err, siyuan.Missing) {
		return missing
	}
	return err
}

// boundBlocks are the blocks that are rows of a database.
func (s *Session) boundBlocks(ctx context.Context, id siyuan.ID) ([]siyuan.ID, error) {
	av, err := s.g.r.AttributeView(ctx, id)
	if err != nil {
		return nil, err
	}
	var ids []siyuan.ID
	for _, kv := range av.KeyValues {
		for _, v := range kv.Values {
			if v.Block != nil && v.Block.ID != "" && !v.IsDetached {
				ids = append(ids, v.Block.ID)
			}
		}
	}
	return ids, nil
}

// boxesOf are the notebooks of located blocks; missing ones are in none.
func (s *Session) boxesOf(ids []siyuan.ID) []siyuan.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var boxes []siyuan.ID
	for _, id := range ids {
		if p, known := s.places[id]; known && p.err == nil {
			boxes = append(boxes, p.box)
		}
	}
	return unique(boxes)
}

// DatabaseQuery chooses what Render shows.
type DatabaseQuery struct {
	View  string // "" the default view
	Page  int    // from 1
	Size  int    // rows; 0 the view's own page size
	Query string // keyword rows must contain
}

// Render shows a database. Cells that lead to something the caller may not read
// are the placeholder: rows of missing or closed blocks, relations and rollups
// of other databases, and template columns that query the workspace.
func (s *Session) Render(ctx context.Context, d Database, q DatabaseQuery) (DatabaseView, error) {
	if d.s != s {
		return DatabaseView{}, contract.Internalf(errors.New("guard: reference of another session"), "use database")
	}
	out, err := s.g.r.RenderAttributeView(ctx, siyuan.Render{ID: d.id, View: siyuan.ID(q.View), Page: q.Page, Size: q.Size, Query: q.Query})
	if err != nil {
		return out, orNotFound(err, notFound("database", d.id))
	}
	m, err := s.cellMask(ctx, d, out.View)
	if err != nil {
		return DatabaseView{}, err
	}
	m.view(&out.View)
	return out, nil
}

// cellMask knows which cells must not be shown.
type cellMask struct {
	columns map[siyuan.ID]bool   // columns that are hidden as a whole
	titles  map[siyuan.ID]string // of bound blocks that can be read
	altered map[siyuan.ID]bool   // bound blocks whose text had something hidden in it
}

// queryFunction finds templates that look elsewhere than in their own row.
var queryFunction = regexp.MustCompile(`(?i)query|getblock|sql`)

func (s *Session) cellMask(ctx context.Context, d Database, v siyuan.View) (cellMask, error) {
	m := cellMask{columns: map[siyuan.ID]bool{}, titles: map[siyuan.ID]string{}, altered: map[siyuan.ID]bool{}}
	keys, err := s.g.r.Keys(ctx, d.id)
	if err != nil {
		return m, err
	}
	hiddenRelation := map[siyuan.ID]bool{}
	for _, k := range keys {
		if k.Relation == nil || k.Relation.AvID == "" || k.Relation.AvID == d.id {
			continue
		}
		_, err := s.Database(ctx, string(k.Relation.AvID), contract.Read)
		if err != nil && contract.CodeOf(err) != contract.NotFound {
			return m, err
		}
		hiddenRelation[k.ID] = err != nil
	}
	for _, k := range keys {
		m.columns[k.ID] = hiddenRelation[k.ID] || k.Rollup != nil && hiddenRelation[k.Rollup.RelationKeyID] ||
			!s.whole() && queryFunction.MatchString(k.Template)
	}
	var ids []string
	eachCell(&v, func(c *siyuan.Cell) {
		if c.Value != nil && c.Value.Block != nil && c.Value.Block.ID != "" {
			ids = append(ids, string(c.Value.Block.ID))
		}
	})
	rows, err := s.RowsOf(ctx, ids)
	for _, r := range rows {
		m.titles[siyuan.ID(r.ID)] = shorten(r.Content)
		m.altered[siyuan.ID(r.ID)] = r.masked
		if r.Name != "" {
			m.titles[siyuan.ID(r.ID)], m.altered[siyuan.ID(r.ID)] = r.Name, false
		}
	}
	return m, err
}

func eachCell(v *siyuan.View, f func(*siyuan.Cell)) {
	for _, list := range [][]siyuan.AvRow{v.Rows, v.Cards} {
		for i := range list {
			for j := range list[i].Cells {
				f(&list[i].Cells[j])
			}
			for j := range list[i].Values {
				f(&list[i].Values[j])
			}
		}
	}
	for i := range v.Groups {
		eachCell(&v.Groups[i], f)
	}
}

func (m cellMask) view(v *siyuan.View) { eachCell(v, m.cell) }

func (m cellMask) cell(c *siyuan.Cell) {
	v := c.Value
	if v == nil {
		return
	}
	hidden := func() *siyuan.ValueText { return &siyuan.ValueText{Content: Placeholder} }
	if m.columns[v.KeyID] {
		*v = siyuan.Value{ID: v.ID, KeyID: v.KeyID, BlockID: v.BlockID, Type: "text", Text: hidden()}
		return
	}
	if v.Block == nil || v.Block.ID == "" || v.IsDetached {
		return
	}
	title, readable := m.titles[v.Block.ID]
	switch {
	case !readable:
		v.Block.Content, v.Block.Icon = Placeholder, ""
	case m.altered[v.Block.ID]:
		v.Block.Content = title
	}
}
