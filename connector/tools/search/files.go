package search

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	catalogue "siyuan-broker/contract/tools"
)

// fileOrders are the kernel's numbers for the orders of file searches by name.
var fileOrders = map[string]int{"relevance": 0, "relevance_desc": 0, "relevance_asc": 1, "updated_asc": 2, "updated_desc": 3}

func fulltextAssetContent(ctx context.Context, r *tools.Request, in catalogue.SearchAssetContentIn) (out catalogue.SearchAssetContentOut, err error) {
	q := guard.FileQuery{Text: in.Query, Method: guard.Method(tools.Or(in.Method, 0)), Exts: in.Types, Order: tools.Or(in.OrderBy, 0)}
	if in.MethodName != "" {
		q.Method = methodNames[in.MethodName]
	}
	if in.SortBy != "" {
		q.Order = fileOrders[in.SortBy]
	}
	if in.AssetID != "" {
		return oneFile(ctx, r, in, q)
	}
	files, more, err := r.Session.SearchFiles(ctx, q)
	if err != nil {
		return out, err
	}
	from, to, page := catalogue.Page(len(files), tools.Or(in.Page, 1), tools.Or(in.PageSize, defaultPageSize))
	data := []catalogue.AssetContent{}
	for _, f := range files[from:to] {
		data = append(data, fileHit(f))
	}
	out.Data, out.PageOut = catalogue.Shrink(data, page, r.Budget)
	out.Showing = len(out.Data)
	switch {
	case more:
		out.Truncated, out.Hint = true, "The search stopped at its limit, so total is not everything; narrow it with types or more words."
	case out.HasNextPage:
		out.Truncated, out.Hint = true, catalogue.NextPage(out.PageOut)
	case len(files) == 0:
		out.Hint = "No file that notes you may read refer to has that in its text."
	}
	return out, nil
}

func oneFile(ctx context.Context, r *tools.Request, in catalogue.SearchAssetContentIn, q guard.FileQuery) (out catalogue.SearchAssetContentOut, err error) {
	if in.QueryMethod != nil {
		q.Method = guard.Method(*in.QueryMethod)
	}
	f, err := r.Session.FileTextByID(ctx, in.AssetID, q)
	if err != nil {
		return out, err
	}
	_, _, page := catalogue.Page(1, 1, 1)
	return catalogue.SearchAssetContentOut{Data: []catalogue.AssetContent{fileHit(f)}, PageOut: page, Showing: 1}, nil
}

func fileHit(f guard.FileText) catalogue.AssetContent {
	return catalogue.AssetContent{ID: f.ID, Name: f.Name, Ext: f.Ext, Path: f.Path, Size: f.Size, Updated: f.Updated, Content: f.Content}
}

func semantic(ctx context.Context, r *tools.Request, in catalogue.SearchSemanticIn) (out catalogue.SearchSemanticOut, err error) {
	q := guard.Query{Text: in.Query, Within: in.Paths, SubTypes: in.SubTypes}
	if q.Types, err = types(in.Types, in.TypeShortcodes); err != nil {
		return out, err
	}
	hits, more, err := r.Session.Semantic(ctx, q)
	if err != nil {
		return out, err
	}
	out = catalogue.SearchSemanticOut{DataEgress: true, ExternalCost: true}
	out.Data, out.PageOut = page(hits, tools.Or(in.Page, 1), tools.Or(in.PageSize, defaultPageSize), r.Budget)
	if out.Hint = catalogue.NextPage(out.PageOut); more {
		out.Hint = "The search stopped at its limit, so total is not everything; narrow it with paths or types."
	}
	return out, nil
}
