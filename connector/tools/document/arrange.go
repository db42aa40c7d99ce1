package document

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// docIn proves a level for a document given by id, or by notebook and storage
// path.
func docIn(ctx context.Context, s *guard.Session, id, notebook, path string, need contract.Level) (guard.Doc, error) {
	if id != "" {
		return s.ExactDoc(ctx, id, need)
	}
	n, err := s.Notebook(notebook, need)
	if err != nil {
		return guard.Doc{}, err
	}
	if err := n.Reachable(); err != nil {
		return guard.Doc{}, err
	}
	d, err := s.DocOnPath(ctx, path, need)
	if err == nil && d.Notebook().ID() != n.ID() {
		err = contract.Fail(contract.NotFound, "There is no document of that storage path in notebook %s.", n.ID())
	}
	return d, err
}

// docsIn proves a level for documents given by ids, or by storage paths.
func docsIn(ctx context.Context, s *guard.Session, ids, paths []string, need contract.Level) (docs []guard.Doc, err error) {
	for _, id := range ids {
		d, err := s.ExactDoc(ctx, id, need)
		if err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	for _, p := range paths {
		d, err := s.DocOnPath(ctx, p, need)
		if err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	return docs, nil
}

// trees are the targets of a write that changes where documents are: they and
// their notebooks.
func trees(docs []guard.Doc) []guard.Target {
	var all []guard.Target
	for _, d := range docs {
		all = append(all, d, d.Notebook())
	}
	return all
}

func rename(ctx context.Context, r *tools.Request, in catalogue.DocumentRenameIn) (out catalogue.DocumentRenameOut, err error) {
	d, err := docIn(ctx, r.Session, in.ID, in.Notebook, in.Path, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(trees([]guard.Doc{d})...), func(ctx context.Context, tx *guard.Tx) error {
		return tx.RenameDoc(ctx, d, in.Title)
	})
	return catalogue.DocumentRenameOut{Success: true, ID: d.ID(), Notebook: d.Notebook().ID(), Path: d.Path(), Title: in.Title}, err
}

// removable proves the level for what is to be removed.
func removable(ctx context.Context, s *guard.Session, in catalogue.DocumentRemoveIn) ([]guard.Doc, error) {
	docs, err := docsIn(ctx, s, in.IDs, in.Paths, contract.ReadWriteDelete)
	if err == nil && len(docs) == 0 {
		docs = make([]guard.Doc, 1)
		docs[0], err = docIn(ctx, s, in.ID, in.Notebook, in.Path, contract.ReadWriteDelete)
	}
	return docs, err
}

func previewRemove(ctx context.Context, r *tools.Request, in catalogue.DocumentRemoveIn) (contract.Preview, error) {
	docs, err := removable(ctx, r.Session, in)
	if err != nil {
		return contract.Preview{}, err
	}
	return r.Session.PreviewDocs(ctx, docs)
}

func remove(ctx context.Context, r *tools.Request, in catalogue.DocumentRemoveIn) (out catalogue.DocumentRemoveOut, err error) {
	docs, err := removable(ctx, r.Session, in)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(trees(docs)...), func(ctx context.Context, tx *guard.Tx) error {
		done, err := tx.RemoveDocs(ctx, docs)
		out = catalogue.DocumentRemoveOut{Success: true, IDs: done.IDs, Count: done.Count}
		return err
	})
	return out, err
}

// movable proves the levels last: leaving a notebook needs more than staying in
// it.
func movable(ctx context.Context, s *guard.Session, in catalogue.DocumentMoveIn) (docs []guard.Doc, to guard.Place, err error) {
	if docs, err = docsIn(ctx, s, in.FromIDs, in.FromPaths, contract.Read); err != nil {
		return nil, to, err
	}
	if to, err = destination(ctx, s, in); err != nil {
		return nil, to, err
	}
	for _, d := range docs {
		if err := s.MayLeave(d.Notebook(), to.Notebook); err != nil {
			return nil, to, err
		}
	}
	return docs, to, nil
}

func previewMove(ctx context.Context, r *tools.Request, in catalogue.DocumentMoveIn) (p contract.Preview, err error) {
	docs, to, err := movable(ctx, r.Session, in)
	if err != nil {
		return p, err
	}
	if p, err = r.Session.PreviewDocs(ctx, docs); err != nil {
		return p, err
	}
	p.Target, err = r.Session.PreviewPlace(ctx, to)
	return p, err
}

func move(ctx context.Context, r *tools.Request, in catalogue.DocumentMoveIn) (out catalogue.DocumentMoveOut, err error) {
	docs, to, err := movable(ctx, r.Session, in)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(append(trees(docs), to.Targets()...)...), func(ctx context.Context, tx *guard.Tx) error {
		paths, err := tx.MoveDocs(ctx, docs, to)
		out = catalogue.DocumentMoveOut{
			Success: true, FromPaths: in.FromPaths, ToID: in.ToID, ToNotebook: to.Notebook.ID(), ToPath: to.Storage(), Paths: paths,
		}
		for _, d := range docs {
			out.FromIDs = append(out.FromIDs, d.ID())
		}
		return err
	})
	return out, err
}

func destination(ctx context.Context, s *guard.Session, in catalogue.DocumentMoveIn) (guard.Place, error) {
	if in.ToID != "" {
		return s.Place(ctx, in.ToID, contract.Read)
	}
	n, err := s.Notebook(in.ToNotebook, contract.Read)
	if err != nil {
		return guard.Place{}, err
	}
	return s.PlaceAt(ctx, n, in.ToPath, contract.Read)
}
