package block

import (
	"context"
	"fmt"
	"slices"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

const (
	defaultPageSize = 50
	defaultRecent   = 16
	maxSamples      = 3 // blocks shown of each document
	recentRunes     = 400
	recentDocChars  = 300 // about what a document takes beside its blocks
)

func getAttrs(ctx context.Context, r *tools.Request, in catalogue.BlockID) (out catalogue.BlockGetAttrsOut, err error) {
	b, err := r.Session.Block(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	attrs, err := r.Session.Attrs(ctx, b)
	return catalogue.BlockGetAttrsOut{ID: b.ID(), Attrs: attrs}, err
}

func batchKramdown(ctx context.Context, r *tools.Request, in catalogue.BlockBatchKramdownIn) (out catalogue.BlockBatchKramdownOut, err error) {
	texts, err := r.Session.Kramdowns(ctx, in.IDs, in.Mode == "textmark")
	if err != nil {
		return out, err
	}
	out.Requested = len(texts)
	for _, t := range texts {
		item := catalogue.KramdownItem{ID: t.ID, OK: t.Err == nil, Kramdown: t.Kramdown}
		if t.Err == nil && t.IsDoc && catalogue.TextChars(t.Kramdown) > r.Budget {
			t.Err = contract.Fail(contract.TooLarge, "The document is larger than one answer may be; block.get_kramdown reads it piece by piece.")
			item.OK, item.Kramdown = false, ""
		}
		if t.Err != nil {
			item.Error = &catalogue.ItemError{Type: t.Err.Type, Message: t.Err.Message}
		}
		out.Items = append(out.Items, item)
	}
	out.Items = catalogue.Fit(out.Items, len(out.Items), r.Budget, catalogue.Chars[catalogue.KramdownItem])
	for _, item := range out.Items {
		if item.OK {
			out.Succeeded++
		} else {
			out.Failed++
		}
	}
	if out.Truncated = len(out.Items) < out.Requested; out.Truncated {
		out.Hint = fmt.Sprintf("Call again with the last %d ids.", out.Requested-len(out.Items))
	}
	return out, nil
}

// getChildren shows a page of children, a smaller one where they are long.
func getChildren(ctx context.Context, r *tools.Request, in catalogue.BlockGetChildrenIn) (out catalogue.BlockGetChildrenOut, err error) {
	b, err := r.Session.Block(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	children, err := r.Session.Children(ctx, b)
	if err != nil {
		return out, err
	}
	from, to, page := catalogue.Page(len(children), tools.Or(in.Page, 1), tools.Or(in.PageSize, defaultPageSize))
	data := make([]catalogue.ChildBlock, 0, to-from)
	for _, c := range children[from:to] {
		data = append(data, catalogue.ChildBlock{ID: c.ID, Type: c.Type, SubType: c.SubType, Content: c.Plain(), Markdown: c.Markdown})
	}
	out.ID = b.ID()
	out.Data, out.PageOut = catalogue.Shrink(data, page, r.Budget)
	if out.Hint = catalogue.NextPage(out.PageOut); len(children) == 0 {
		out.Hint = "The block has no blocks in it."
	}
	return out, nil
}

func info(ctx context.Context, r *tools.Request, in catalogue.BlockID) (out catalogue.BlockInfoOut, err error) {
	b, err := r.Session.Block(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	i, err := r.Session.BlockInfo(ctx, b)
	return catalogue.BlockInfoOut{
		ID: b.ID(), Box: b.Doc().Notebook().ID(), Path: b.Doc().Path(), RootID: b.Doc().ID(),
		RootTitle: i.RootTitle, RootTitleEmpty: i.Untitled, RootIcon: i.RootIcon, RootChildID: i.TopID,
	}, err
}

func breadcrumb(ctx context.Context, r *tools.Request, in catalogue.BlockBreadcrumbIn) (out catalogue.BlockBreadcrumbOut, err error) {
	var exclude []string
	for _, name := range in.ExcludeTypes {
		code, ok := guard.TypeCode(name)
		if !ok {
			return out, contract.InvalidFields(contract.Field{Path: "excludeTypes", Message: "must be node types such as NodeListItem, or short codes such as i"})
		}
		exclude = append(exclude, code)
	}
	b, err := r.Session.Block(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	crumbs, err := r.Session.Breadcrumb(ctx, b)
	out = catalogue.BlockBreadcrumbOut{ID: b.ID(), Breadcrumb: []catalogue.Crumb{}}
	for _, c := range crumbs {
		if !slices.Contains(exclude, c.Type) {
			out.Breadcrumb = append(out.Breadcrumb, catalogue.Crumb{ID: c.ID, Name: c.Name, Type: c.Type, SubType: c.SubType})
		}
	}
	return out, err
}

func dom(ctx context.Context, r *tools.Request, in catalogue.BlockDOMIn) (out catalogue.BlockDOMOut, err error) {
	b, err := r.Session.Block(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	text, err := r.Session.DOM(ctx, b)
	if err != nil {
		return out, err
	}
	out.ID = b.ID()
	out.DOM, out.PieceOut, err = piece(ctx, r, b, in.Piece, text, func(dom string, _ []guard.Child) []string { return guard.DOMBlocks(dom) })
	return out, err
}

// piece cuts the text of a document that is long, or that is asked for from a
// later block. The text of a single block is whole.
func piece(ctx context.Context, r *tools.Request, b guard.Block, in catalogue.Piece, text string, split func(string, []guard.Child) []string) (string, catalogue.PieceOut, error) {
	whole := b.ID() != b.Doc().ID() || in.BlockStart == nil && catalogue.TextChars(text) <= r.Budget
	if whole {
		return text, catalogue.PieceOut{}, nil
	}
	children, err := r.Session.Children(ctx, b)
	if err != nil {
		return "", catalogue.PieceOut{}, err
	}
	text, out := in.Cut(split(text, children), r.Budget)
	return text, out, nil
}

func wordCount(ctx context.Context, r *tools.Request, in catalogue.BlockWordCountIn) (out catalogue.BlockWordCountOut, err error) {
	blocks, err := r.Session.Blocks(ctx, in.IDs, contract.Read)
	if err != nil {
		return out, err
	}
	size, err := r.Session.Size(ctx, blocks)
	return catalogue.BlockWordCountOut{Stat: catalogue.WordCount(size)}, err
}

// docsInfo describes the document of each id: a block's id stands for the
// document it is in.
func docsInfo(ctx context.Context, r *tools.Request, in catalogue.BlockDocsInfoIn) (out catalogue.BlockDocsInfoOut, err error) {
	ids := in.IDs
	if in.ID != "" {
		ids = []string{in.ID}
	}
	blocks, err := r.Session.Blocks(ctx, ids, contract.Read)
	if err != nil {
		return out, err
	}
	docs := make([]guard.Doc, len(blocks))
	for i, b := range blocks {
		docs[i] = b.Doc()
	}
	heads, err := r.Session.DocHeads(ctx, docs, in.RefCount, in.AV)
	if err != nil {
		return out, err
	}
	for _, h := range heads {
		out.Data = append(out.Data, tools.DocInfo(h, in.RefCount))
	}
	return out, nil
}

// recentBlock shows the beginning of a block.
func recentBlock(row guard.Row) catalogue.RecentBlock {
	b := catalogue.RecentBlock{ID: row.ID, Type: row.Type, RootID: row.RootID, Content: row.Content, Updated: row.Updated}
	if runes := []rune(b.Content); len(runes) > recentRunes {
		b.Content, b.Truncated = string(runes[:recentRunes]), true
	}
	return b
}

// recentUpdated shows the blocks changed last, and beside them the documents
// they are in, in the order of their newest block.
func recentUpdated(ctx context.Context, r *tools.Request, in catalogue.BlockRecentUpdatedIn) (out catalogue.BlockRecentUpdatedOut, err error) {
	rows, err := r.Session.Recent(ctx, tools.Or(in.Count, defaultRecent))
	if err != nil {
		return out, err
	}
	var roots []string
	for _, row := range rows {
		if !slices.Contains(roots, row.RootID) {
			roots = append(roots, row.RootID)
		}
	}
	docs, err := r.Session.RowsOf(ctx, roots)
	if err != nil {
		return out, err
	}
	titles := map[string]string{}
	for _, d := range docs {
		titles[d.ID] = d.Content
	}
	out = catalogue.BlockRecentUpdatedOut{Documents: []catalogue.RecentDocument{}, Items: []catalogue.RecentBlock{}}
	at, left := map[string]int{}, r.Budget
	for _, row := range rows {
		block := recentBlock(row)
		if left -= 2*catalogue.Chars(block) + recentDocChars; left < 0 && len(out.Items) > 0 {
			out.Truncated = true
			out.Hint = fmt.Sprintf("These are the %d changed last; go on with search.query_sql: SELECT id, root_id, content, updated FROM blocks WHERE type IN ('p', 'd') ORDER BY updated DESC, id LIMIT 1000 OFFSET %d.", len(out.Items), len(out.Items))
			break
		}
		i, known := at[row.RootID]
		if !known {
			i = len(out.Documents)
			at[row.RootID] = i
			out.Documents = append(out.Documents, catalogue.RecentDocument{
				DocumentID: row.RootID, Notebook: row.Notebook.ID(), Path: row.Path, HPath: row.HPath, Name: titles[row.RootID],
			})
		}
		d := &out.Documents[i]
		if d.UpdatedBlockCount++; len(d.SampleBlocks) < maxSamples {
			d.SampleBlocks = append(d.SampleBlocks, block)
		}
		out.Items = append(out.Items, block)
	}
	out.Count, out.DocumentCount = len(out.Items), len(out.Documents)
	return out, nil
}
