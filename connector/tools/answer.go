package tools

import (
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
