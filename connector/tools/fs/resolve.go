package fs

import (
	"context"
	"slices"

	"siyuan-broker/connector/guard"
	"siyuan-broker/contract"
	"siyuan-broker/contract/fspath"
)

// spot is what a path leads to: the root, a notebook or a document.
type spot struct {
	path  fspath.Path  // as it is printed: with the notebook first, or an id where names do not do
	place *guard.Place // nil for the root
}

func (t spot) isRoot() bool { return t.place == nil }

// doc is the document at the spot, nil for the root and for notebooks.
func (t spot) doc() *guard.Doc {
	if t.place == nil {
		return nil
	}
	return t.place.Doc
}

// parse reads the path in an argument.
func parse(field, text string) (fspath.Path, error) {
	path, err := fspath.Parse(text)
	if err != nil {
		return nil, contract.InvalidFields(contract.Field{Path: field, Message: err.Error()})
	}
	if path.Virtual() != "" {
		return nil, contract.Fail(contract.Unsupported, "This file is not kept in SiYuan, and what keeps it has no such action for it.").
			WithHint("fs.read reads it; /AGENTS.md also takes write, replace and rm.")
	}
	return path, nil
}

// resolve finds what a path leads to and proves a level there. The first name is
// a notebook's, or an id; a path that begins with neither is tried in every
// notebook.
func resolve(ctx context.Context, s *guard.Session, field, text string, need contract.Level) (spot, error) {
	path, err := parse(field, text)
	if err != nil || len(path) == 0 {
		return spot{}, err
	}
	return find(ctx, s, path, need)
}

// resolveDoc is resolve for what must be a document.
func resolveDoc(ctx context.Context, s *guard.Session, field, text string, need contract.Level) (spot, error) {
	t, err := resolve(ctx, s, field, text, need)
	if err == nil && t.doc() == nil {
		err = contract.Fail(contract.InvalidTarget, "%s names a notebook or the root, not a document.", field).
			WithHint("A document's path has at least a notebook and a title: /Notebook/Title.")
	}
	return t, err
}

// Document finds the document of a path and proves a level there; field is the
// parameter that has the path.
func Document(ctx context.Context, s *guard.Session, field, path string, need contract.Level) (guard.Doc, error) {
	t, err := resolveDoc(ctx, s, field, path, need)
	if err != nil {
		return guard.Doc{}, err
	}
	return *t.doc(), nil
}

func find(ctx context.Context, s *guard.Session, path fspath.Path, need contract.Level) (spot, error) {
	base, err := first(ctx, s, path[0], need)
	switch {
	case err != nil:
		return spot{}, err
	case base.isRoot():
		return anywhere(ctx, s, path, need)
	case len(path) == 1:
		return base, nil
	}
	docs, err := s.DocsNamed(ctx, *base.place, path[1:], need)
	if err != nil {
		return spot{}, err
	}
	switch len(docs) {
	case 0:
		return spot{}, contract.Fail(contract.NotFound, "There is no document of that path in notebook %s.", base.place.Notebook.ID()).
			WithHint("Upper and lower case count. fs.ls and fs.tree show paths; document.search_docs finds a part of a title.")
	case 1:
		place := docs[0].Place()
		return spot{append(base.path, path[1:]...), &place}, nil
	}
	return spot{}, ambiguous(docs)
}

// first is the notebook or document that the first name of a path leads to; the
// root when there is none.
func first(ctx context.Context, s *guard.Session, name string, need contract.Level) (spot, error) {
	named := slices.DeleteFunc(s.Notebooks(), func(n guard.Notebook) bool { return n.Name() != name })
	switch {
	case len(named) > 1:
		return spot{}, ambiguousNotebook(named)
	case len(named) == 1:
		n, err := s.Notebook(named[0].ID(), need)
		return spot{fspath.Path{name}, &guard.Place{Notebook: n}}, err
	case contract.IsID(name):
		place, err := s.Place(ctx, name, need)
		return spot{fspath.Path{name}, &place}, err
	}
	return spot{}, nil
}

// anywhere tries a path that names no notebook in all of them.
func anywhere(ctx context.Context, s *guard.Session, path fspath.Path, need contract.Level) (spot, error) {
	var docs []guard.Doc
	for _, n := range s.Notebooks() {
		if n.Reachable() != nil {
			continue
		}
		found, err := s.DocsNamed(ctx, guard.Place{Notebook: n}, path, contract.Read)
		if err != nil {
			return spot{}, err
		}
		docs = append(docs, found...)
	}
	switch len(docs) {
	case 0:
		return spot{}, contract.Fail(contract.NotFound, "There is no notebook or document of that path.").
			WithHint("Upper and lower case count. fs.ls with / lists the notebooks, fs.tree what is in them.")
	case 1:
		d, err := s.ExactDoc(ctx, docs[0].ID(), need)
		place := d.Place()
		return spot{append(notebookPath(s, d.Notebook()), path...), &place}, err
	}
	return spot{}, ambiguous(docs)
}

// candidate is one of several things that share a path.
type candidate struct {
	ID   string `json:"id"`
	Path string `json:"path"` // leads to it alone
}

func ambiguous(docs []guard.Doc) error {
	ids := make([]string, len(docs))
	for i, d := range docs {
		ids[i] = d.ID()
	}
	return sharedPath("documents", ids)
}

func ambiguousNotebook(notebooks []guard.Notebook) error {
	ids := make([]string, len(notebooks))
	for i, n := range notebooks {
		ids[i] = n.ID()
	}
	return sharedPath("notebooks", ids)
}

func sharedPath(what string, ids []string) error {
	list := make([]candidate, len(ids))
	for i, id := range ids {
		list[i] = candidate{id, fspath.Path{id}.String()}
	}
	return contract.Fail(contract.AmbiguousPath, "%d %s share that path.", len(ids), what).
		WithHint("Use the path of one candidate in its place.").
		WithDetail(map[string]any{"candidates": list, "ids": ids})
}

// notebookPath is the path of a notebook: its name, or its id where that leads
// elsewhere.
func notebookPath(s *guard.Session, n guard.Notebook) fspath.Path {
	same := 0
	for _, other := range s.Notebooks() {
		if other.Name() == n.Name() {
			same++
		}
	}
	path := fspath.Path{n.Name()}
	if same != 1 || n.Name() == "" || contract.IsID(n.Name()) || path.Virtual() != "" {
		return fspath.Path{n.ID()}
	}
	return path
}
