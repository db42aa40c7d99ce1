package tools

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"siyuan-broker/connector/guard"
	catalogue "siyuan-broker/contract/tools"
)

// Page says which entries [from, to) of a list stand on a page, counted from 1.
// A page beyond the end is the last one.
func Page(total, number, size int) (from, to int, out catalogue.PageOut) {
	pages := max(1, (total+size-1)/size)
	number = min(number, pages)
	from = (number - 1) * size
	to = min(from+size, total)
	return from, to, catalogue.PageOut{Total: total, Page: number, PageSize: size, PageCount: pages, HasNextPage: number < pages}
}

// Chars is the size of an entry as the agent gets it: the characters, not the
// bytes, of its JSON.
func Chars[T any](entry T) int {
	raw, err := json.Marshal(entry)
	if err != nil {
		return 0 // then the answer as a whole cannot be encoded either
	}
	return utf8.RuneCount(raw)
}

// Shrink makes a page smaller until its entries have at most budget characters,
// but for one entry that has more alone. The smaller page begins where the page
// did, so that the next page of the smaller size goes on exactly behind it.
func Shrink[T any](entries []T, p catalogue.PageOut, budget int) ([]T, catalogue.PageOut) {
	fits := len(Fit(entries, len(entries), budget, Chars[T]))
	if fits == len(entries) {
		return entries, p
	}
	from := (p.Page - 1) * p.PageSize
	size := max(1, fits)
	for from%size != 0 {
		size--
	}
	pages := (p.Total + size - 1) / size
	number := from/size + 1
	return entries[:size], catalogue.PageOut{Total: p.Total, Page: number, PageSize: size, PageCount: pages, HasNextPage: number < pages}
}

// NextPage tells how to go on behind a page, "" where there is nothing more.
func NextPage(p catalogue.PageOut) string {
	if !p.HasNextPage {
		return ""
	}
	return fmt.Sprintf("The next are on page %d with pageSize %d.", p.Page+1, p.PageSize)
}

// Fit is the beginning of a list that has at most limit entries and, but for the
// first, at most budget in all by the given measure. Entries are never cut.
func Fit[T any](list []T, limit, budget int, size func(T) int) []T {
	used := 0
	for i, v := range list {
		used += size(v)
		if i == limit || i > 0 && used > budget {
			return list[:i]
		}
	}
	return list
}

// DocInfo is a document's head as answers show it; refs says that its
// references were counted.
func DocInfo(h guard.DocHead, refs bool) catalogue.DocInfo {
	info := catalogue.DocInfo{ID: h.ID, Name: h.Title, Icon: h.Icon}
	if refs {
		info.RefCount = &h.Refs
	}
	for _, d := range h.Databases {
		info.AttrViews = append(info.AttrViews, catalogue.AVInfo{ID: d.ID, Name: d.Name})
	}
	return info
}

// TextBlocks are the blocks of a document as windows of its text are cut from.
func TextBlocks(children []guard.Child) []catalogue.TextBlock {
	blocks := make([]catalogue.TextBlock, len(children))
	for i, c := range children {
		blocks[i] = catalogue.TextBlock{ID: c.ID, Type: c.Type, Markdown: c.Markdown, Level: c.Level(), Title: c.Title}
	}
	return blocks
}
