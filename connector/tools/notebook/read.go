package notebook

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func getPermissions(_ context.Context, r *tools.Request, in catalogue.NotebookGetPermissionsIn) (catalogue.NotebookGetPermissionsOut, error) {
	out := catalogue.NotebookGetPermissionsOut{Notebooks: []catalogue.NotebookPermission{}}
	asked := r.Session.Notebooks()
	if in.Notebook != "" {
		n, err := r.Session.Notebook(in.Notebook, contract.Read)
		if err != nil {
			return out, err
		}
		asked = []guard.Notebook{n}
	}
	for _, n := range asked {
		out.Notebooks = append(out.Notebooks, catalogue.NotebookPermission{ID: n.ID(), Name: n.Name(), Permission: n.Level()})
	}
	return out, nil
}

const defaultPageSize = 50

func getChildDocs(ctx context.Context, r *tools.Request, in catalogue.NotebookGetChildDocsIn) (out catalogue.NotebookGetChildDocsOut, err error) {
	n, err := r.Session.Notebook(in.Notebook, contract.Read)
	if err != nil {
		return out, err
	}
	docs, err := r.Session.DocsIn(ctx, guard.Place{Notebook: n})
	if err != nil {
		return out, err
	}
	out = catalogue.NotebookGetChildDocsOut{Notebook: n.ID(), Data: []catalogue.ChildDoc{}}
	from, to, page := catalogue.Page(len(docs), tools.Or(in.Page, 1), tools.Or(in.PageSize, defaultPageSize))
	for _, d := range docs[from:to] {
		out.Data = append(out.Data, catalogue.ChildDoc{
			ID: d.ID, Notebook: n.ID(), Path: d.Path, HPath: "/" + d.Name, Name: d.Name, Icon: d.Icon, SubFileCount: d.ChildCount,
		})
	}
	out.Data, out.PageOut = catalogue.Shrink(out.Data, page, r.Budget)
	out.Hint = catalogue.NextPage(out.PageOut)
	return out, nil
}
