package guard

import (
	"context"

	"siyuan-broker/contract"
)

// maxInventory is how many documents an inventory may have.
const maxInventory = 5000

// Inventory lists the documents at some places of one notebook and below them, by
// readable path and id.
func (s *Session) Inventory(ctx context.Context, places []Place) ([]Row, error) {
	where, err := s.below(places)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if p.Doc != nil {
			where += " OR id = " + quoteSQL(p.Doc.ID())
		}
	}
	rows, err := s.rows(ctx, "type = 'd' AND id <> box AND ("+where+")", "hpath, id", maxInventory+1)
	if err == nil && len(rows) > maxInventory {
		err = contract.Fail(contract.TooLarge, "There are more than %d documents.", maxInventory).WithHint("Name roots deeper in the notebook, one call for each.")
	}
	return rows, err
}

// DocsOf lists documents by their ids, each once. One that is not there is an error.
func (s *Session) DocsOf(ctx context.Context, ids []string) ([]Row, error) {
	rows, err := s.RowsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	var docs []Row
	for _, r := range rows {
		if r.Type == "d" && r.ID != r.Notebook.ID() {
			found[r.ID] = true
			docs = append(docs, r)
		}
	}
	for _, id := range ids {
		if !found[id] {
			return nil, contract.Fail(contract.NotFound, "There is no document %s.", id)
		}
	}
	return docs, nil
}
