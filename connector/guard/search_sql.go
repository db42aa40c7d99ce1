package guard

import (
	"context"
	"html"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// searchStatement is Search by a SELECT: the statement runs scoped, as any
// statement of an agent does, and names blocks by their id column.
func (s *Session) searchStatement(ctx context.Context, q Query, paths []string, inside func(siyuan.Block) bool) (hits []Hit, more bool, err error) {
	found, more, err := s.scoped(ctx, q.Text, searchRows)
	if err != nil {
		return nil, false, err
	}
	ids := make([]string, 0, len(found))
	for _, r := range found {
		id := r.Text("id")
		if !contract.IsID(id) {
			return nil, false, contract.InvalidFields(contract.Field{Path: "query", Message: "must select the id column of blocks"}).
				WithHint("Such as: SELECT id FROM blocks WHERE type = 'h'. For other columns use search.query_sql.")
		}
		ids = append(ids, id)
	}
	rows, err := s.rowsInOrder(ctx, ids)
	if err != nil {
		return nil, false, err
	}
	for _, r := range rows {
		b := siyuan.Block{ID: siyuan.ID(r.ID), RootID: siyuan.ID(r.RootID), Box: siyuan.ID(r.Notebook.ID()), Path: r.Path}
		if q.Types != nil && !q.Types[r.Type] || q.HasTags != nil && *q.HasTags != (len(r.Tags) > 0) ||
			!within(paths, b) || inside != nil && !inside(b) {
			continue
		}
		content, cut := excerpt(html.EscapeString(r.Content))
		hits = append(hits, Hit{
			ID: r.ID, Type: r.Type, SubType: r.SubType, Notebook: r.Notebook, RootID: r.RootID, HPath: r.HPath,
			Content: content, Cut: cut, Updated: r.Updated,
		})
	}
	return hits, more, nil
}

// within reports whether a block is in one of the places, each a notebook with
// or without the path of a document in it.
func within(paths []string, b siyuan.Block) bool {
	at := string(b.Box) + strings.TrimSuffix(b.Path, ".sy")
	for _, p := range paths {
		if at == p || strings.HasPrefix(at, p+"/") {
			return true
		}
	}
	return false
}
