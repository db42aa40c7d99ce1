package document

import (
	"context"
	"fmt"

	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

const (
	maxFound     = 1000
	foundOnAPage = 200
)

func searchDocs(ctx context.Context, r *tools.Request, in catalogue.DocumentSearchDocsIn) (out catalogue.DocumentSearchDocsOut, err error) {
	nb, err := r.Session.Notebook(in.Notebook, contract.Read)
	if err != nil {
		return out, err
	}
	path := in.Path
	if path == "" {
		path = "/"
	}
	place, err := r.Session.PlaceAt(ctx, nb, path, contract.Read)
	if err != nil {
		return out, err
	}
	docs, more, err := r.Session.FindDocsBelow(ctx, place, in.Query, maxFound)
	if err != nil {
		return out, err
	}
	out = catalogue.DocumentSearchDocsOut{Path: in.Path, PathApplied: place.Doc != nil}
	from, to, page := catalogue.Page(len(docs), tools.Or(in.Page, 1), tools.Or(in.PageSize, foundOnAPage))
	found := []catalogue.FoundDoc{}
	for _, d := range docs[from:to] {
		found = append(found, catalogue.FoundDoc{ID: d.ID, Notebook: d.Notebook.ID(), Path: d.Path, HPath: d.HPath, Title: d.Content})
	}
	out.Docs, out.PageOut = catalogue.Shrink(found, page, r.Budget)
	out.Truncated, out.Hint = more || out.HasNextPage, catalogue.NextPage(out.PageOut)
	switch {
	case more && !out.HasNextPage:
		out.Hint = fmt.Sprintf("Only the %d changed last are listed; use more of the title, or path.", len(docs))
	case len(docs) == 0 && place.Doc != nil:
		out.Hint = fmt.Sprintf("No document below %s has that in its title.", place.Doc.ID())
	case len(docs) == 0:
		out.Hint = fmt.Sprintf("No document of notebook %s has that in its title.", nb.ID())
	}
	return out, nil
}
