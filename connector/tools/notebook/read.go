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
	out.PageOut = page(len(docs), in.PageIn)
	for _, d := range docs[min((out.Page-1)*out.PageSize, len(docs)):min(out.Page*out.PageSize, len(docs))] {
		out.Data = append(out.Data, catalogue.ChildDoc{
			ID: d.ID, Notebook: n.ID(), Path: d.Path, HPath: "/" + d.Name, Name: d.Name, Icon: d.Icon, SubFileCount: d.ChildCount,
		})
	}
	return out, nil
}

// page places a page in a list; one behind the end is the last.
func page(total int, in catalogue.PageIn) catalogue.PageOut {
	p := catalogue.PageOut{Total: total, Page: 1, PageSize: defaultPageSize}
	if in.PageSize != nil {
		p.PageSize = *in.PageSize
	}
	p.PageCount = max(1, (total+p.PageSize-1)/p.PageSize)
	if in.Page != nil {
		p.Page = min(*in.Page, p.PageCount)
	}
	p.HasNextPage = p.Page < p.PageCount
	return p
}
