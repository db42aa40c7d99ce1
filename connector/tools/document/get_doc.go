package document

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// defaultSize is how many blocks an html window loads.
const defaultSize = 128

func getDoc(ctx context.Context, r *tools.Request, in catalogue.DocumentGetDocIn) (out catalogue.DocumentGetDocOut, err error) {
	doc, err := r.Session.Doc(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	hpath, err := r.Session.HPath(ctx, doc)
	if err != nil {
		return out, err
	}
	blocks, err := r.Session.Children(ctx, doc.Block())
	if err != nil {
		return out, err
	}
	out = catalogue.DocumentGetDocOut{
		ID: doc.ID(), Mode: "markdown", Notebook: doc.Notebook().ID(), NotebookName: doc.Notebook().Name(), HPath: hpath,
	}
	if in.Mode == "html" {
		out.Mode = "html"
		out.WindowOut, err = htmlWindow(ctx, r.Session, doc, blocks, in.Size)
		return out, err
	}
	out.WindowOut = in.Window.Cut(tools.TextBlocks(blocks))
	return out, nil
}

func htmlWindow(ctx context.Context, s *guard.Session, doc guard.Doc, blocks []guard.Child, size int) (catalogue.WindowOut, error) {
	if size == 0 {
		size = defaultSize
	}
	dom, returned, err := s.DocDOM(ctx, doc, size)
	return catalogue.WindowOut{
		Content: dom, Outline: catalogue.Outline(tools.TextBlocks(blocks), true), BlockLimit: size, ReturnedBlocks: returned, TotalBlocks: len(blocks),
		TokenBudget: catalogue.DefaultBudget, EstimatedTokens: catalogue.Tokens(dom), TokenMode: catalogue.TokenMode,
		Truncated: returned < len(blocks),
	}, err
}
