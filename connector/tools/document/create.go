package document

import (
	"context"
	"path"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func create(ctx context.Context, r *tools.Request, in catalogue.DocumentCreateIn) (out catalogue.DocumentCreateOut, err error) {
	nb, err := r.Session.Notebook(in.Notebook, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	if err := nb.Reachable(); err != nil {
		return out, err
	}
	d := guard.NewDoc{Notebook: nb, Markdown: in.Markdown, Icon: in.Icon, IfExists: guard.IfExists(in.IfExists)}
	if err := place(&d, in); err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(nb), func(ctx context.Context, tx *guard.Tx) error {
		if in.ParentPath != "" {
			if d.Parent, err = parent(ctx, r.Session, nb, in.ParentPath); err != nil {
				return err
			}
		}
		made, err := tx.CreateDoc(ctx, d)
		if err != nil {
			return err
		}
		out = catalogue.DocumentCreateOut{
			Success: true, ID: made.ID, Notebook: nb.ID(), Path: made.HPath, Title: made.Title, Created: made.Created,
			ParentPath: in.ParentPath,
		}
		if in.ParentPath != "" {
			out.ResolvedParentPath = path.Dir(made.HPath)
		}
		return nil
	})
	return out, err
}

// place works out title and levels from the two ways to say where.
func place(d *guard.NewDoc, in catalogue.DocumentCreateIn) error {
	if in.ParentPath != "" {
		d.Title = in.Title
		return guard.CheckTitle("title", in.Title)
	}
	titles, err := guard.ParseHPath("path", in.Path)
	if err != nil {
		return err
	}
	if len(titles) == 0 {
		return contract.InvalidFields(contract.Field{Path: "path", Message: "must name the new document, such as /Projects/Alpha"})
	}
	d.Above, d.Title = titles[:len(titles)-1], titles[len(titles)-1]
	return nil
}

// parent finds the parent document by storage path or readable path; nil is the
// notebook itself.
func parent(ctx context.Context, s *guard.Session, nb guard.Notebook, at string) (*guard.Doc, error) {
	if strings.HasSuffix(at, ".sy") {
		d, err := s.DocAt(ctx, nb, at, contract.ReadWrite)
		return &d, err
	}
	titles, err := guard.ParseHPath("parentPath", at)
	if err != nil || len(titles) == 0 {
		return nil, err
	}
	d, err := s.DocByHPath(ctx, nb, "/"+strings.Join(titles, "/"))
	if err == nil && d == nil {
		err = contract.Fail(contract.NotFound, "There is no document of that parentPath in notebook %s.", nb.ID()).
			WithHint("Create the parent first, or give the whole path in path: missing parents are made then.")
	}
	return d, err
}
