package fs

import (
	"context"
	"errors"
	"slices"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	"siyuan-broker/contract/fspath"
	catalogue "siyuan-broker/contract/tools"
)

func read(ctx context.Context, r *tools.Request, in catalogue.FSReadIn) (out catalogue.FSReadOut, err error) {
	at, err := resolveDoc(ctx, r.Session, "path", in.Path, contract.Read)
	if err != nil {
		return out, err
	}
	blocks, err := r.Session.Children(ctx, at.doc().Block())
	if err != nil {
		return out, err
	}
	return catalogue.FSReadOut{Path: at.path.String(), WindowOut: in.Window.Cut(tools.TextBlocks(blocks), r.Budget)}, nil
}

func write(ctx context.Context, r *tools.Request, in catalogue.FSWriteIn) (out catalogue.FSWriteOut, err error) {
	path, err := parse("path", in.Path)
	if err != nil {
		return out, err
	}
	if len(path) == 0 {
		return out, contract.InvalidFields(contract.Field{Path: "path", Message: "must name a document: /Notebook/Title"})
	}
	at, err := find(ctx, r.Session, path, contract.ReadWrite)
	switch {
	case contract.CodeOf(err) == contract.NotFound && len(path) > 1:
		return create(ctx, r, path, in.Markdown)
	case err != nil:
		return out, err
	case at.doc() == nil:
		return out, contract.Fail(contract.InvalidTarget, "path names a notebook, not a document.").WithHint("Add a title: /Notebook/Title.")
	}
	d := *at.doc()
	if !in.Overwrite {
		return out, contract.Fail(contract.AlreadyExists, "A document of that path exists: %s.", d.ID()).
			WithHint("Set overwrite to replace its text, use fs.replace for a part of it, or choose another title.").
			WithDetail(map[string]any{"id": d.ID()})
	}
	err = r.Session.Write(ctx, r.Intent(d), func(ctx context.Context, tx *guard.Tx) error {
		return tx.Overwrite(ctx, d, in.Markdown)
	})
	return catalogue.FSWriteOut{Success: true, Path: at.path.String(), ID: d.ID(), Overwritten: true}, err
}

// create makes a document below something that exists.
func create(ctx context.Context, r *tools.Request, path fspath.Path, markdown string) (out catalogue.FSWriteOut, err error) {
	parent, title := path.Split()
	above, err := find(ctx, r.Session, parent, contract.ReadWrite)
	if err != nil {
		return out, missingAbove(err)
	}
	if err := firstErr(guard.CheckTitle("path", title), above.place.Notebook.Reachable()); err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(above.place.Targets()...), func(ctx context.Context, tx *guard.Tx) error {
		made, err := tx.CreateDoc(ctx, guard.NewDoc{Notebook: above.place.Notebook, Parent: above.doc(), Title: title, Markdown: markdown, IfExists: guard.Fail})
		out = catalogue.FSWriteOut{Success: true, Path: above.path.Child(title).String(), ID: made.ID, Created: made.Created}
		return err
	})
	return out, err
}

func firstErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// missingAbove says of a path that leads nowhere that something else was to go
// below it.
func missingAbove(err error) error {
	if told, ok := errors.AsType[*contract.Error](err); ok && contract.CodeOf(err) == contract.NotFound {
		return told.WithHint("What is above the document has to exist; write that first, or check its path with fs.ls.")
	}
	return err
}

func previewRm(ctx context.Context, r *tools.Request, in catalogue.FSRmIn) (contract.Preview, error) {
	at, err := resolveDoc(ctx, r.Session, "path", in.Path, contract.ReadWriteDelete)
	if err != nil {
		return contract.Preview{}, err
	}
	return r.Session.PreviewDocs(ctx, []guard.Doc{*at.doc()})
}

func rm(ctx context.Context, r *tools.Request, in catalogue.FSRmIn) (out catalogue.FSRmOut, err error) {
	at, err := resolveDoc(ctx, r.Session, "path", in.Path, contract.ReadWriteDelete)
	if err != nil {
		return out, err
	}
	d := *at.doc()
	err = r.Session.Write(ctx, r.Intent(d, d.Notebook()), func(ctx context.Context, tx *guard.Tx) error {
		done, err := tx.RemoveDocs(ctx, []guard.Doc{d})
		out = catalogue.FSRmOut{Success: true, Path: at.path.String(), Count: done.Count}
		return err
	})
	return out, err
}

// movable proves the levels last: leaving a notebook needs more than staying in
// it. above is where the document goes, title what it is called there.
func movable(ctx context.Context, s *guard.Session, in catalogue.FSMvIn) (at, above spot, title string, err error) {
	if at, err = resolveDoc(ctx, s, "from", in.From, contract.Read); err != nil {
		return at, above, "", err
	}
	to, err := parse("to", in.To)
	if err != nil {
		return at, above, "", err
	}
	if len(to) < 2 {
		return at, above, "", contract.InvalidFields(contract.Field{Path: "to", Message: "must be the new path with the title: /Notebook/Title"})
	}
	parent, title := to.Split()
	if above, err = find(ctx, s, parent, contract.Read); err != nil {
		return at, above, "", missingAbove(err)
	}
	return at, above, title, s.MayLeave(at.doc().Notebook(), above.place.Notebook)
}

func previewMv(ctx context.Context, r *tools.Request, in catalogue.FSMvIn) (p contract.Preview, err error) {
	at, above, title, err := movable(ctx, r.Session, in)
	if err != nil {
		return p, err
	}
	if p, err = r.Session.PreviewDocs(ctx, []guard.Doc{*at.doc()}); err != nil {
		return p, err
	}
	p.Target = &contract.PreviewItem{Kind: "document", Title: title, Path: above.path.Child(title).String()}
	return p.Clean(), nil
}

func mv(ctx context.Context, r *tools.Request, in catalogue.FSMvIn) (out catalogue.FSMvOut, err error) {
	at, above, title, err := movable(ctx, r.Session, in)
	if err != nil {
		return out, err
	}
	d := *at.doc()
	err = r.Session.Write(ctx, r.Intent(append(above.place.Targets(), d, d.Notebook())...), func(ctx context.Context, tx *guard.Tx) error {
		there, err := r.Session.DocsNamed(ctx, *above.place, []string{title}, contract.Read)
		if err != nil {
			return err
		}
		others := slices.DeleteFunc(slices.Clone(there), func(o guard.Doc) bool { return o.ID() == d.ID() })
		if len(others) > 0 {
			return contract.Fail(contract.AlreadyExists, "A document of the new path exists: %s.", others[0].ID()).
				WithHint("Choose another title, or move that document away first.").
				WithDetail(map[string]any{"id": others[0].ID()})
		}
		if len(there) > 0 { // it is there already
			return nil
		}
		return tx.MoveAndRename(ctx, d, *above.place, title)
	})
	return catalogue.FSMvOut{Success: true, Path: at.path.String(), MovedTo: above.path.Child(title).String()}, err
}
