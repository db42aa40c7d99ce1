package document

import (
	"context"
	"fmt"

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
		out.WindowOut, err = htmlWindow(ctx, r, doc, blocks, in.Size)
		return out, err
	}
	out.WindowOut = in.Window.Cut(tools.TextBlocks(blocks), r.Budget)
	return out, nil
}

func htmlWindow(ctx context.Context, r *tools.Request, doc guard.Doc, blocks []guard.Child, size int) (out catalogue.WindowOut, err error) {
	if size == 0 {
		size = defaultSize
	}
	loaded, err := r.Session.DocDOM(ctx, doc, size)
	if err != nil {
		return out, err
	}
	out = catalogue.WindowOut{BlockLimit: size, TotalBlocks: len(blocks), TokenBudget: catalogue.DefaultBudget, TokenMode: catalogue.TokenMode}
	out.SetOutline(catalogue.Outline(tools.TextBlocks(blocks), true), r.Budget/4)
	dom, piece := catalogue.Piece{}.Cut(loaded, r.Budget-catalogue.Chars(out.Outline))
	out.Content, out.ReturnedBlocks, out.EstimatedTokens = dom, piece.ReturnedBlocks, catalogue.Tokens(dom)
	if out.Truncated = out.ReturnedBlocks < len(blocks); out.Truncated {
		out.Hint = fmt.Sprintf("block.dom with id %s and blockStart %d goes on.", doc.ID(), out.ReturnedBlocks)
	}
	return out, nil
}
