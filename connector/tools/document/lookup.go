package document

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// storagePath is a path of ids; anything else is a readable one.
var storagePath = regexp.MustCompile(`^/?(?:\d{14}-[0-9a-z]{7}/)*\d{14}-[0-9a-z]{7}\.sy$`)

// lookup shows one document's id and paths. A readable path that several
// documents share has no one id: all are listed, none is picked.
func lookup(ctx context.Context, r *tools.Request, in catalogue.DocumentLookupIn) (out catalogue.DocumentLookupOut, err error) {
	docs, err := lookedUp(ctx, r.Session, in)
	if err != nil {
		return out, err
	}
	nb := docs[0].Notebook()
	out.HumanPath.NotebookName, out.IDPath.Notebook = nb.Name(), nb.ID()
	if out.HumanPath.HPath, err = r.Session.HPath(ctx, docs[0]); err != nil {
		return out, err
	}
	if len(docs) > 1 || slices.Contains(in.Include, "ids") {
		for _, d := range docs {
			out.IDPath.IDs = append(out.IDPath.IDs, d.ID())
		}
	}
	if len(docs) > 1 {
		return out, nil
	}
	out.IDPath.ID, out.IDPath.Path = docs[0].ID(), docs[0].Path()
	if slices.Contains(in.Include, "docInfo") {
		heads, err := r.Session.DocHeads(ctx, docs, true, true)
		if err != nil {
			return out, err
		}
		info := tools.DocInfo(heads[0], true)
		out.DocInfo = &info
	}
	return out, nil
}

// lookedUp are the documents meant, at least one.
func lookedUp(ctx context.Context, s *guard.Session, in catalogue.DocumentLookupIn) ([]guard.Doc, error) {
	if in.ID != "" {
		d, err := s.Doc(ctx, in.ID, contract.Read)
		return []guard.Doc{d}, err
	}
	nb, err := s.Notebook(in.Notebook, contract.Read)
	if err == nil {
		err = nb.Reachable()
	}
	if err != nil {
		return nil, err
	}
	if storagePath.MatchString(in.Path) {
		d, err := s.DocAt(ctx, nb, in.Path, contract.Read)
		return []guard.Doc{d}, err
	}
	hpath := "/" + strings.Trim(in.HPath+in.Path, "/")
	docs, err := s.DocsByHPath(ctx, nb, hpath)
	if err == nil && len(docs) == 0 {
		err = contract.Fail(contract.NotFound, "There is no document of that readable path in notebook %s.", nb.ID()).
			WithHint("Upper and lower case count. document.search_docs finds documents by a part of their title.")
	}
	return docs, err
}
