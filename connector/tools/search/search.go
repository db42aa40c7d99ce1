// Package search has the handlers of the search tool.
package search

import (
	"context"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.SearchFulltext, fulltext),
		tools.Bind(catalogue.SearchQuerySQL, querySQL),
		tools.Bind(catalogue.SearchGetBacklinks, getBacklinks),
		tools.Bind(catalogue.SearchRefs, searchRefs),
		tools.Bind(catalogue.SearchInvalidRefs, listInvalidRefs),
		tools.Bind(catalogue.SearchAssets, searchAssets),
		tools.Bind(catalogue.SearchSemantic, semantic),
		tools.BindDangerous(catalogue.SearchFindReplace, previewFindReplace, findReplace),
		tools.Bind(catalogue.SearchAssetContent, fulltextAssetContent),
	}
}

const defaultPageSize = 32

func fulltext(ctx context.Context, r *tools.Request, in catalogue.SearchFulltextIn) (out catalogue.SearchFulltextOut, err error) {
	q, err := query(in)
	if err != nil {
		return out, err
	}
	if in.ParentID != "" {
		b, err := r.Session.Block(ctx, in.ParentID, contract.Read)
		if err != nil {
			return out, err
		}
		q.Inside = &b
	}
	hits, more, err := r.Session.Search(ctx, q)
	if err != nil {
		return out, err
	}
	data, p := page(hits, tools.Or(in.Page, 1), tools.Or(in.PageSize, defaultPageSize), r.Budget)
	out = catalogue.SearchFulltextOut{
		Data: data, Total: p.Total, Page: p.Page, PageSize: p.PageSize, PageCount: p.PageCount,
		HasNextPage: p.HasNextPage, Showing: len(data), Truncated: p.HasNextPage, Hint: catalogue.NextPage(p),
	}
	switch {
	case more:
		out.Truncated = true
		out.Hint = "The search stopped at its limit, so total is not everything; narrow it with paths, types or more words."
	case len(hits) == 0:
		out.Hint = "Nothing found by " + describe(in, q) + "."
	}
	return out, nil
}

var methodNames = map[string]guard.Method{
	"keyword": guard.Keyword, "query": guard.QuerySyntax, "query_syntax": guard.QuerySyntax, "sql": guard.Statement, "regex": guard.Regexp,
}

// orders are the kernel's numbers for the orders by name.
var orders = map[string]int{
	"type": 0, "created_asc": 1, "created_desc": 2, "updated_asc": 3, "updated_desc": 4, "date": 4, "relevance": 7,
}

func query(in catalogue.SearchFulltextIn) (guard.Query, error) {
	q := guard.Query{
		Text: in.Query, Method: guard.Method(tools.Or(in.Method, 0)), Within: in.Paths,
		Order: tools.Or(in.OrderBy, 0), Grouped: tools.Or(in.GroupBy, 0) == 1, HasTags: in.HasTags,
	}
	if in.MethodName != "" {
		q.Method = methodNames[in.MethodName]
	}
	if in.SortBy != "" {
		q.Order = orders[in.SortBy]
	}
	var err error
	q.Types, err = types(in.Types, in.TypeShortcodes)
	return q, err
}

// types merges the two ways to choose block types; nil is no choice.
func types(byName map[string]bool, codes []string) (map[string]bool, error) {
	if byName == nil && codes == nil {
		return nil, nil
	}
	chosen := map[string]bool{}
	set := func(field, name string, on bool) error {
		code, ok := guard.TypeCode(name)
		if !ok {
			return contract.InvalidFields(contract.Field{Path: field, Message: "knows the types d h p l i b c m t s html embed av callout iframe video audio widget"})
		}
		chosen[code] = chosen[code] || on
		return nil
	}
	for name, on := range byName {
		if err := set("types", name, on); err != nil {
			return nil, err
		}
	}
	for _, name := range codes {
		if err := set("typeShortcodes", name, true); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// page cuts one page out of all hits. A page beyond the end is the last one.
func page(hits []guard.Hit, number, size, budget int) ([]catalogue.SearchHit, catalogue.PageOut) {
	from, to, p := catalogue.Page(len(hits), number, size)
	data := []catalogue.SearchHit{}
	for _, h := range hits[from:to] {
		data = append(data, catalogue.SearchHit{
			ID: h.ID, Type: h.Type, SubType: h.SubType, Notebook: h.Notebook.ID(), NotebookName: h.Notebook.Name(),
			RootID: h.RootID, HPath: h.HPath, Content: h.Content, Truncated: h.Cut, Updated: h.Updated,
		})
	}
	return catalogue.Shrink(data, p, budget)
}

// describe says how the query was understood, so that an empty answer can be
// judged. It repeats nothing of the query itself.
func describe(in catalogue.SearchFulltextIn, q guard.Query) string {
	names := []string{"keyword", "query syntax", "SQL", "regular expression"}
	parts := []string{names[q.Method]}
	if q.Types != nil {
		parts = append(parts, "among the chosen block types")
	}
	if in.Paths != nil {
		parts = append(parts, "in the given paths")
	} else {
		parts = append(parts, "in all notebooks you may read")
	}
	if q.Inside != nil {
		parts = append(parts, "inside "+in.ParentID)
	}
	if in.HasTags != nil {
		parts = append(parts, map[bool]string{true: "with tags only", false: "without tags only"}[*in.HasTags])
	}
	return strings.Join(parts, ", ")
}
