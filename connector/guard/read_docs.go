package guard

import (
	"context"

	"siyuan-broker/contract"
)

// DocsIn lists the documents right below a place, all of them, in the order of
// the notebook. Their children are not in the nodes, only counted.
func (s *Session) DocsIn(ctx context.Context, p Place) ([]Node, error) {
	if err := s.use(p.Notebook, contract.Read); err != nil {
		return nil, err
	}
	if err := p.Notebook.Reachable(); err != nil {
		return nil, err
	}
	files, err := s.g.r.Docs(ctx, p.Notebook.id, p.Storage())
	if err != nil {
		return nil, s.vanished(err, "notebook", p.Notebook.id)
	}
	nodes := make([]Node, 0, len(files))
	for _, f := range files {
		if f.ID != p.Notebook.id { // a notebook's root document is the notebook
			nodes = append(nodes, Node{ID: string(f.ID), Name: f.Name, Icon: f.Icon, Path: f.Path, ChildCount: f.SubFileCount, Cut: f.SubFileCount > 0})
		}
	}
	return nodes, nil
}
