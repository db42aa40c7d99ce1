package document

import (
	"context"
	"fmt"
	"strings"

	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Limits of lists that have no pages.
const (
	maxChildDocs   = 1000
	maxChildBlocks = 512
)

func getChildDocs(ctx context.Context, r *tools.Request, in catalogue.DocumentID) (out catalogue.DocumentGetChildDocsOut, err error) {
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
	out = catalogue.DocumentGetChildDocsOut{ID: doc.ID(), Data: []catalogue.ChildDoc{}}
	for _, n := range nodes[:min(len(nodes), maxChildDocs)] {
		out.Data = append(out.Data, catalogue.ChildDoc{
			ID: n.ID, Notebook: doc.Notebook().ID(), Path: n.Path, HPath: strings.TrimSuffix(hpath, "/") + "/" + n.Name,
			Name: n.Name, Icon: n.Icon, SubFileCount: n.ChildCount,
		})
	}
	out.Data = tools.Fit(out.Data, maxChildDocs, r.Budget, tools.Chars[catalogue.ChildDoc])
	if out.Truncated = len(out.Data) < len(nodes); out.Truncated {
		out.Hint = fmt.Sprintf("There are %d documents; find the others with document.search_docs, with path set to this document's storage path %s.", len(nodes), doc.Path())
	}
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
	out.Data = tools.Fit(out.Data, maxChildBlocks, r.Budget, tools.Chars[catalogue.ChildBlock])
	if out.Truncated = len(out.Data) < len(children); out.Truncated {
		out.Hint = fmt.Sprintf("These are the first %d of %d blocks; block.get_children lists all of them by page.", len(out.Data), len(children))
	}
	return out, nil
}
