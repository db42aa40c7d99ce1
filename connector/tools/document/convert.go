package document

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func duplicate(ctx context.Context, r *tools.Request, in catalogue.DocumentID) (out catalogue.DocumentDuplicateOut, err error) {
	d, err := r.Session.ExactDoc(ctx, in.ID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(d, d.Notebook()), func(ctx context.Context, tx *guard.Tx) error {
		made, err := tx.DuplicateDoc(ctx, d)
		if err != nil {
			return err
		}
		hpath, err := r.Session.HPath(ctx, made)
		out = catalogue.DocumentDuplicateOut{
			Success: true, SourceID: d.ID(), ID: made.ID(), Notebook: made.Notebook().ID(), Path: made.Path(), HPath: hpath,
		}
		return err
	})
	return out, err
}

// headingToDoc proves the levels last: leaving a notebook needs more than
// staying in it.
func headingToDoc(ctx context.Context, r *tools.Request, in catalogue.DocumentHeadingToDocIn) (out catalogue.DocumentHeadingToDocOut, err error) {
	h, err := r.Session.Block(ctx, in.HeadingID, contract.Read)
	if err != nil {
		return out, err
	}
	to, behind, err := newPlace(ctx, r.Session, in)
	if err != nil {
		return out, err
	}
	if err := r.Session.MayLeave(h.Doc().Notebook(), to.Notebook); err != nil {
		return out, err
	}
	targets := append([]guard.Target{h, h.Doc().Notebook()}, to.Targets()...)
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		made, err := tx.HeadingToDoc(ctx, h, to, behind)
		out = catalogue.DocumentHeadingToDocOut{
			Success: true, HeadingID: h.ID(), ID: made.ID(), TargetNotebook: to.Notebook.ID(), TargetPath: to.Storage(), PreviousPath: in.PreviousPath,
		}
		return err
	})
	return out, err
}

// newPlace is where the document goes, and the document it follows, if any. With
// only the latter it goes where that is.
func newPlace(ctx context.Context, s *guard.Session, in catalogue.DocumentHeadingToDocIn) (to guard.Place, behind *guard.Doc, err error) {
	n, err := s.Notebook(in.TargetNotebook, contract.Read)
	if err != nil {
		return to, nil, err
	}
	if to, err = s.PlaceAt(ctx, n, in.TargetPath, contract.Read); err != nil || in.PreviousPath == "" {
		return to, nil, err
	}
	d, err := s.DocAt(ctx, n, in.PreviousPath, contract.Read)
	if err != nil || in.TargetPath != "" {
		return to, &d, err
	}
	to, err = s.PlaceAt(ctx, n, d.Folder(), contract.Read)
	return to, &d, err
}

// joinable proves the levels for a document that becomes part of another.
func joinable(ctx context.Context, s *guard.Session, in catalogue.DocumentToHeadingIn) (src guard.Doc, target guard.Block, err error) {
	if src, err = s.ExactDoc(ctx, in.SrcID, contract.Read); err != nil {
		return src, target, err
	}
	if target, err = s.Block(ctx, in.TargetID, contract.ReadWrite); err != nil {
		return src, target, err
	}
	return src, target, s.MayLeave(src.Notebook(), target.Doc().Notebook())
}

func previewDocToHeading(ctx context.Context, r *tools.Request, in catalogue.DocumentToHeadingIn) (p contract.Preview, err error) {
	src, target, err := joinable(ctx, r.Session, in)
	if err != nil {
		return p, err
	}
	if p, err = r.Session.PreviewDocs(ctx, []guard.Doc{src}); err != nil {
		return p, err
	}
	p.Target, err = r.Session.PreviewBlock(ctx, target)
	return p, err
}

func docToHeading(ctx context.Context, r *tools.Request, in catalogue.DocumentToHeadingIn) (out catalogue.DocumentToHeadingOut, err error) {
	src, target, err := joinable(ctx, r.Session, in)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(src, src.Notebook(), target), func(ctx context.Context, tx *guard.Tx) error {
		out = catalogue.DocumentToHeadingOut{
			Success: true, SrcID: src.ID(), TargetID: target.ID(), After: in.After, SrcTreeBox: src.Notebook().ID(), SrcTreePath: src.Path(),
		}
		return tx.DocToHeading(ctx, src, target, !in.After)
	})
	return out, err
}
