package document

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

const maxHeadings = 1000

// getOutline nests the headings by level. In the preview the title of the
// document stands above them as one more heading.
func getOutline(ctx context.Context, r *tools.Request, in catalogue.DocumentGetOutlineIn) (out catalogue.DocumentGetOutlineOut, err error) {
	doc, err := r.Session.Doc(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	headings, err := r.Session.Outline(ctx, doc)
	if err != nil {
		return out, err
	}
	if in.Preview {
		heads, err := r.Session.DocHeads(ctx, []guard.Doc{doc}, false, false)
		if err != nil {
			return out, err
		}
		headings = append([]guard.Heading{{ID: doc.ID(), Level: 1, Title: heads[0].Title}}, headings...)
	}
	out = catalogue.DocumentGetOutlineOut{ID: doc.ID(), Notebook: doc.Notebook().ID(), Preview: in.Preview, HeadingCount: len(headings)}
	from, to, page := catalogue.Page(len(headings), tools.Or(in.Page, 1), tools.Or(in.PageSize, maxHeadings))
	shown, page := catalogue.Shrink(headings[from:to], page, r.Budget)
	out.Outline, _ = nest(shown, 0)
	out.PageOut = page
	out.Truncated, out.Hint = page.HasNextPage, catalogue.NextPage(page)
	return out, nil
}

// nest takes the headings below one of the given level off the front of a list.
func nest(headings []guard.Heading, above int) (tree []catalogue.OutlineHeading, rest []guard.Heading) {
	tree = []catalogue.OutlineHeading{}
	for len(headings) > 0 && headings[0].Level > above {
		h := headings[0]
		node := catalogue.OutlineHeading{ID: h.ID, Level: h.Level, Title: h.Title}
		node.Children, headings = nest(headings[1:], h.Level)
		tree = append(tree, node)
	}
	return tree, headings
}
