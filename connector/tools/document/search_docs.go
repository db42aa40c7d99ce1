package document

import (
	"context"
	"fmt"

	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

const maxFound = 200

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
	out = catalogue.DocumentSearchDocsOut{Docs: []catalogue.FoundDoc{}, Path: in.Path, PathApplied: place.Doc != nil}
	for _, d := range docs {
		out.Docs = append(out.Docs, catalogue.FoundDoc{ID: d.ID, Notebook: d.Notebook.ID(), Path: d.Path, HPath: d.HPath, Title: d.Content})
	}
	found := len(out.Docs)
	out.Docs = tools.Fit(out.Docs, maxFound, r.Budget, tools.Chars[catalogue.FoundDoc])
	switch {
	case more, len(out.Docs) < found:
		out.Truncated = true
		out.Hint = fmt.Sprintf("These are the %d changed last; use more of the title, or path.", len(out.Docs))
	case len(docs) == 0 && place.Doc != nil:
		out.Hint = fmt.Sprintf("No document below %s has that in its title.", place.Doc.ID())
	case len(docs) == 0:
		out.Hint = fmt.Sprintf("No document of notebook %s has that in its title.", nb.ID())
	}
	return out, nil
}
