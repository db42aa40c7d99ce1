package guard

import (
	"context"
	"regexp"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// cellMask knows which cells must not be shown.
type cellMask struct {
	columns map[siyuan.ID]bool   // columns that are hidden as a whole
	titles  map[siyuan.ID]string // of bound blocks that can be read
	altered map[siyuan.ID]bool   // bound blocks whose text had something hidden in it
}

// queryFunction finds templates that look elsewhere than in their own row.
var queryFunction = regexp.MustCompile(`(?i)query|getblock|sql`)

// cellMask judges the columns of a database, and the blocks bound to the given
// cells.
func (s *Session) cellMask(ctx context.Context, d Database, cells []*siyuan.Value) (cellMask, error) {
	m := cellMask{columns: map[siyuan.ID]bool{}, titles: map[siyuan.ID]string{}, altered: map[siyuan.ID]bool{}}
	related := map[siyuan.ID]*Database{} // nil for those that cannot be read
	for _, kv := range d.file.KeyValues {
		k := kv.Key
		if k.Relation == nil || k.Relation.AvID == "" {
			continue
		}
		if k.Relation.AvID == d.id {
			related[k.ID] = &d
			continue
		}
		other, err := s.quietly(ctx, k.Relation.AvID)
		if err != nil {
			return m, err
		}
		related[k.ID] = other
		m.columns[k.ID] = other == nil
	}
	for _, kv := range d.file.KeyValues {
		k := kv.Key
		if k.Rollup != nil && k.Rollup.RelationKeyID != "" {
			other, known := related[k.Rollup.RelationKeyID]
			m.columns[k.ID] = known && (other == nil || !s.whole() && other.reachesFurther(k.Rollup.KeyID))
		}
		if !s.whole() && queryFunction.MatchString(k.Template) {
			m.columns[k.ID] = true
		}
	}
	var ids []string
	for _, v := range cells {
		m.each(v, func(v *siyuan.Value) {
			if v.Block != nil && v.Block.ID != "" {
				ids = append(ids, string(v.Block.ID))
			}
		})
	}
	slices.Sort(ids)
	rows, err := s.RowsOf(ctx, slices.Compact(ids))
	for _, r := range rows {
		m.titles[siyuan.ID(r.ID)] = shorten(r.Content)
		m.altered[siyuan.ID(r.ID)] = r.masked
		if r.Name != "" {
			m.titles[siyuan.ID(r.ID)], m.altered[siyuan.ID(r.ID)] = r.Name, false
		}
	}
	return m, err
}

// quietly is a database that the caller may read, nil if there is none. It was
// not named by the call, so the call is not recorded with its notebook.
func (s *Session) quietly(ctx context.Context, id siyuan.ID) (*Database, error) {
	s.mu.Lock()
	touched := s.touched
	s.mu.Unlock()
	defer s.touch(touched)
	d, err := s.Database(ctx, string(id), contract.Read)
	switch contract.CodeOf(err) {
	case "":
		return &d, nil
	case contract.NotFound:
		return nil, nil
	}
	return nil, err
}

// reachesFurther reports whether a column's cells may be made of other rows or
// blocks than its own.
func (d Database) reachesFurther(key siyuan.ID) bool {
	k, ok := d.key(key)
	return !ok || k.Type == "relation" || k.Type == "rollup" || k.Type == "template"
}

// each visits a cell and the cells of other rows that it shows.
func (m cellMask) each(v *siyuan.Value, f func(*siyuan.Value)) {
	if v == nil {
		return
	}
	f(v)
	if v.Relation != nil {
		for i := range v.Relation.Contents {
			m.each(&v.Relation.Contents[i], f)
		}
	}
	if v.Rollup != nil {
		for i := range v.Rollup.Contents {
			m.each(&v.Rollup.Contents[i], f)
		}
	}
}

// hide takes out of a cell what must not be shown.
func (m cellMask) hide(v *siyuan.Value) {
	if v == nil {
		return
	}
	if m.columns[v.KeyID] {
		*v = siyuan.Value{ID: v.ID, KeyID: v.KeyID, BlockID: v.BlockID, Type: "text", Text: &siyuan.ValueText{Content: Placeholder}}
		return
	}
	m.each(v, func(v *siyuan.Value) {
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
	})
}

// telling reports whether the rows of a view, or their order, may depend on what
// is hidden: then the view cannot be shown at all.
func (m cellMask) telling(d Database, v siyuan.AvView) bool {
	used := siyuan.IDsIn(v.Filters, v.Sorts)
	if v.Group != nil {
		used = append(used, v.Group.Field)
	}
	return slices.ContainsFunc(used, func(id siyuan.ID) bool {
		k, ok := d.key(id)
		return ok && (m.columns[id] || k.Type == "block" && m.alters())
	})
}

func (m cellMask) alters() bool {
	for _, a := range m.altered {
		if a {
			return true
		}
	}
	return false
}
