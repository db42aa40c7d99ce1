package fs

import (
	"context"
	"slices"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	"siyuan-broker/contract/fspath"
	catalogue "siyuan-broker/contract/tools"
)

func replace(ctx context.Context, r *tools.Request, in catalogue.FSReplaceIn) (out catalogue.FSReplaceOut, err error) {
	at, err := resolveDoc(ctx, r.Session, "path", in.Path, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	given := in.Edit
	if given == nil {
		given = []catalogue.FSEdit{{Old: in.Old, New: in.New, ReplaceAll: in.ReplaceAll}}
	}
	edits := make([]guard.Edit, len(given))
	for i, e := range given {
		edits[i] = guard.Edit{Old: e.Old, New: e.New, All: e.ReplaceAll}
	}
	out = catalogue.FSReplaceOut{Success: true, Path: at.path.String(), EditsApplied: len(edits), Replacements: []catalogue.FSReplacement{}}
	d := *at.doc()
	err = r.Session.Write(ctx, r.Intent(d), func(ctx context.Context, tx *guard.Tx) error {
		done, err := tx.ReplaceIn(ctx, d, edits)
		if err != nil {
			return err
		}
		out.Changed = len(done.Changed) > 0
		for i, n := range done.Counts {
			out.Replacements = append(out.Replacements, catalogue.FSReplacement{Index: i, Replaced: n, ReplaceAll: edits[i].All})
		}
		for _, b := range done.Skipped {
			out.SkippedComplexBlocks = append(out.SkippedComplexBlocks, catalogue.FSSkipped{ID: b.ID, Type: b.Type})
		}
		return nil
	})
	return out, err
}

func reorder(ctx context.Context, r *tools.Request, in catalogue.FSReorderIn) (out catalogue.FSReorderOut, err error) {
	at, err := resolve(ctx, r.Session, "path", in.Path, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	if at.isRoot() {
		return out, contract.Fail(contract.InvalidTarget, "The notebooks themselves cannot be reordered here.").
			WithHint("Give the path of a notebook or document.")
	}
	out = catalogue.FSReorderOut{Success: true, Path: at.path.String(), Notebook: at.place.Notebook.ID(), ParentID: at.place.Notebook.ID()}
	targets := at.place.Targets()
	if d := at.doc(); d != nil {
		out.ParentID = d.ID()
	}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		there, err := r.Session.DocsAt(ctx, *at.place, contract.ReadWrite)
		if err != nil {
			return err
		}
		order, err := ordered(ctx, r.Session, at.path, in, there)
		if err != nil {
			return err
		}
		done, err := tx.Reorder(ctx, *at.place, order)
		if err != nil {
			return err
		}
		shared := repeated(there, func(d guard.NamedDoc) string { return d.Title })
		paths := map[string]string{}
		for _, d := range there {
			paths[d.ID()] = child(at.path, d.Title, d.ID(), shared).String()
		}
		out.PreviousOrder, out.Order = inPaths(done.Before, paths), inPaths(done.After, paths)
		out.SortModeChanged = done.SortMode
		out.OrderChanged = !slices.Equal(done.Before, done.After)
		out.Changed = out.OrderChanged || out.SortModeChanged
		return nil
	})
	return out, err
}

// ordered are the documents that the paths name. Those right below the place are
// known already; what is not among them is looked for, so that the error says
// what is wrong with it.
func ordered(ctx context.Context, s *guard.Session, above fspath.Path, in catalogue.FSReorderIn, there []guard.NamedDoc) ([]guard.Doc, error) {
	given, err := fspath.Parse(in.Path)
	if err != nil {
		return nil, err
	}
	shared := repeated(there, func(d guard.NamedDoc) string { return d.Title })
	known := map[string]guard.Doc{}
	for _, d := range there {
		known[fspath.Path{d.ID()}.String()] = d.Doc
		if !shared[d.Title] {
			known[above.Child(d.Title).String()], known[given.Child(d.Title).String()] = d.Doc, d.Doc
		}
	}
	var order []guard.Doc
	for _, text := range in.OrderedPaths {
		path, err := parse("orderedPaths", text)
		if err != nil {
			return nil, err
		}
		d, ok := known[path.String()]
		if !ok {
			found, err := resolveDoc(ctx, s, "orderedPaths", text, contract.ReadWrite)
			if err != nil {
				return nil, err
			}
			d = *found.doc()
		}
		order = append(order, d)
	}
	return order, nil
}

func inPaths(ids []string, paths map[string]string) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = paths[id]
	}
	return list
}
