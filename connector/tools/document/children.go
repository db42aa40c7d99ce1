package document

import (
	"context"
	"fmt"
	"strings"

	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Most entries on a page, and in a list that has no pages.
const (
	maxChildDocs   = 1000
	maxChildBlocks = 512
)

func getChildDocs(ctx context.Context, r *tools.Request, in catalogue.DocumentGetChildDocsIn) (out catalogue.DocumentGetChildDocsOut, err error) {
	doc, err := r.Session.Doc(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	hpath, err := r.Session.HPath(ctx, doc)
	if err != nil {
		return out, err
	}
	nodes, err := r.Session.DocsIn(ctx, doc.Place())
	if err != nil {
		return out, err
	}
	data := []catalogue.ChildDoc{}
	from, to, page := catalogue.Page(len(nodes), tools.Or(in.Page, 1), tools.Or(in.PageSize, maxChildDocs))
	for _, n := range nodes[from:to] {
		data = append(data, catalogue.ChildDoc{
			ID: n.ID, Notebook: doc.Notebook().ID(), Path: n.Path, HPath: strings.TrimSuffix(hpath, "/") + "/" + n.Name,
			Name: n.Name, Icon: n.Icon, SubFileCount: n.ChildCount,
		})
	}
	out.ID = doc.ID()
	out.Data, out.PageOut = catalogue.Shrink(data, page, r.Budget)
	out.Truncated, out.Hint = out.HasNextPage, catalogue.NextPage(out.PageOut)
	return out, nil
}

func getChildBlocks(ctx context.Context, r *tools.Request, in catalogue.DocumentID) (out catalogue.DocumentGetChildBlocksOut, err error) {
	doc, err := r.Session.Doc(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	children, err := r.Session.Children(ctx, doc.Block())
	if err != nil {
		return out, err
	}
	out = catalogue.DocumentGetChildBlocksOut{ID: doc.ID(), Data: []catalogue.ChildBlock{}}
	for _, c := range children[:min(len(children), maxChildBlocks)] {
		out.Data = append(out.Data, catalogue.ChildBlock{ID: c.ID, Type: c.Type, SubType: c.SubType, Content: c.Plain(), Markdown: c.Markdown})
	}
	out.Data = catalogue.Fit(out.Data, maxChildBlocks, r.Budget, catalogue.Chars[catalogue.ChildBlock])
	if out.Truncated = len(out.Data) < len(children); out.Truncated {
		out.Hint = fmt.Sprintf("These are the first %d of %d blocks; block.get_children lists all of them by page.", len(out.Data), len(children))
	}
	return out, nil
}
