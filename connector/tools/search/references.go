package search

import (
	"context"
	"fmt"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Limits of lists that have no pages.
const (
	maxLinks      = 200
	maxCandidates = 64
	maxAssetNames = 200
)

// Characters of a hit's text: in all, and in front of what was looked for.
const (
	hitRunes        = 400
	hitBefore       = 150
	candidateBefore = 512
)

func getBacklinks(ctx context.Context, r *tools.Request, in catalogue.SearchGetBacklinksIn) (out catalogue.SearchGetBacklinksOut, err error) {
	b, err := r.Session.Block(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	scope := ""
	if in.RefTreeID != "" {
		doc, err := r.Session.Doc(ctx, in.RefTreeID, contract.Read)
		if err != nil {
			return out, err
		}
		scope = doc.ID()
	}
	wanted := func(row guard.Row) bool {
		text := strings.ReplaceAll(row.Content, guard.Placeholder, "")
		return (scope == "" || row.RootID == scope) && strings.Contains(strings.ToLower(text), strings.ToLower(in.Keyword))
	}
	out = catalogue.SearchGetBacklinksOut{Mode: in.Mode, Backlinks: []catalogue.SearchHit{}, Backmentions: []catalogue.SearchHit{}}
	if in.Mode == "" {
		out.Mode = "both"
	}
	if out.Mode != "mentions" {
		links, more, err := r.Session.Backlinks(ctx, b)
		if err != nil {
			return out, err
		}
		for _, l := range links {
			if wanted(l.Row) {
				out.Backlinks = append(out.Backlinks, rowHit(l.Row, in.Keyword, hitBefore))
			}
		}
		out.Truncated = more
	}
	if out.Mode != "links" {
		mentions, more, err := r.Session.Mentions(ctx, b)
		if err != nil {
			return out, err
		}
		for _, row := range mentions {
			if wanted(row) {
				out.Backmentions = append(out.Backmentions, rowHit(row, in.Keyword, hitBefore))
			}
		}
		out.Truncated = out.Truncated || more
	}
	for _, list := range []*[]catalogue.SearchHit{&out.Backlinks, &out.Backmentions} {
		shown := catalogue.Fit(*list, maxLinks, r.Budget/2, catalogue.Chars[catalogue.SearchHit])
		out.Truncated = out.Truncated || len(shown) < len(*list)
		*list = shown
	}
	if out.Truncated {
		out.Hint = "There are more; narrow the search with refTreeID (one document), keyword or mode, or query the table refs with search.query_sql."
	}
	return out, nil
}

// searchRefs finds what a reference could point at.
func searchRefs(ctx context.Context, r *tools.Request, in catalogue.SearchRefsIn) (out catalogue.SearchRefsOut, err error) {
	b, err := r.Session.Block(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	if in.RootID != "" {
		if _, err := r.Session.Doc(ctx, in.RootID, contract.Read); err != nil {
			return out, err
		}
	}
	found, err := r.Session.Candidates(ctx, b, in.K, in.IsSquareBrackets, maxCandidates)
	if err != nil {
		return out, err
	}
	out = catalogue.SearchRefsOut{Data: []catalogue.SearchHit{}, NewDoc: found.NewDoc, K: in.K, ReqID: in.ReqID}
	for _, row := range found.Rows {
		out.Data = append(out.Data, rowHit(row, in.K, tools.Or(in.BeforeLen, candidateBefore)))
	}
	all := len(out.Data)
	out.Data = catalogue.Fit(out.Data, maxCandidates, r.Budget, catalogue.Chars[catalogue.SearchHit])
	out.Showing = len(out.Data)
	switch {
	case found.More, out.Showing < all:
		out.Truncated = true
		out.Hint = fmt.Sprintf("These are the first %d; give more of the text in k.", out.Showing)
	case out.Showing == 0:
		out.Hint = "No block you may read has that in its text, name, alias or memo."
	}
	return out, nil
}

func listInvalidRefs(ctx context.Context, r *tools.Request, in catalogue.SearchInvalidRefsIn) (out catalogue.SearchInvalidRefsOut, err error) {
	ids, more, err := r.Session.InvalidRefs(ctx)
	if err != nil {
		return out, err
	}
	from, to, page := catalogue.Page(len(ids), tools.Or(in.Page, 1), tools.Or(in.PageSize, defaultPageSize))
	rows, err := r.Session.RowsOf(ctx, ids[from:to])
	if err != nil {
		return out, err
	}
	data := []catalogue.SearchHit{}
	for _, row := range rows {
		data = append(data, rowHit(row, guard.Placeholder, hitBefore))
	}
	out.Data, out.PageOut = catalogue.Shrink(data, page, r.Budget)
	out.Showing = len(out.Data)
	switch {
	case more:
		out.Truncated = true
		out.Hint = "The list stopped at its limit, so total is not everything; mend these and call again."
	case out.HasNextPage:
		out.Truncated, out.Hint = true, catalogue.NextPage(out.PageOut)
	}
	return out, nil
}

func searchAssets(ctx context.Context, r *tools.Request, in catalogue.SearchAssetsIn) (out catalogue.SearchAssetsOut, err error) {
	files, more, err := r.Session.Assets(ctx, in.K, in.Exts)
	if err != nil {
		return out, err
	}
	out.Data = []catalogue.AssetFile{}
	for _, f := range files[:min(len(files), maxAssetNames)] {
		out.Data = append(out.Data, catalogue.AssetFile{HName: f.Name, Path: f.Path, Updated: f.Updated})
	}
	out.Data = catalogue.Fit(out.Data, maxAssetNames, r.Budget, catalogue.Chars[catalogue.AssetFile])
	switch {
	case len(files) > len(out.Data):
		out.Truncated = true
		out.Hint = fmt.Sprintf("%d files match and the first %d are shown; give more of the name in k, or exts.", len(files), len(out.Data))
	case more:
		out.Truncated = true
		out.Hint = "There are too many files to look through; query the table assets with search.query_sql."
	case len(files) == 0:
		out.Hint = "No file of that name is linked from notes you may read."
	}
	return out, nil
}

// rowHit shows a row as a hit, its text around what was looked for.
func rowHit(row guard.Row, text string, before int) catalogue.SearchHit {
	content, cut := around(row.Content, text, before)
	return catalogue.SearchHit{
		ID: row.ID, Type: row.Type, SubType: row.SubType, Notebook: row.Notebook.ID(), NotebookName: row.Notebook.Name(),
		RootID: row.RootID, HPath: row.HPath, Content: content, Truncated: cut, Updated: row.Updated,
	}
}

// around is the part of a text that begins at most before characters in front of
// a word in it and has hitRunes more.
func around(content, word string, before int) (part string, cut bool) {
	runes := []rune(content)
	at := 0
	if i := strings.Index(strings.ToLower(content), strings.ToLower(word)); i > 0 && i <= len(content) {
		at = len([]rune(strings.ToLower(content)[:i]))
	}
	from := min(max(0, at-before), len(runes))
	to := min(from+before+hitRunes, len(runes))
	return string(runes[from:to]), from > 0 || to < len(runes)
}
