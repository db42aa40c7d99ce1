package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// DefaultResultChars is how many characters an answer may have where nobody
// chose otherwise. About this much a client shows whole: a token has one to two
// characters of Chinese, four of English.
const DefaultResultChars = 24_000

// Bounds of what may be chosen instead.
const (
	MinResultChars = 2_000
	MaxResultChars = 1_000_000
)

// Chars is the size of an entry as the agent gets it: the characters, not the
// bytes, of its JSON.
func Chars[T any](entry T) int {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(entry) != nil {
		return 0 // then the answer as a whole cannot be encoded either
	}
	return utf8.RuneCount(buf.Bytes()) - 1
}

// TextChars is the size of a text inside a JSON string.
func TextChars(text string) int { return Chars(text) - 2 }

// Page says which entries [from, to) of a list stand on a page, counted from 1.
// A page beyond the end is the last one.
func Page(total, number, size int) (from, to int, out PageOut) {
	pages := max(1, (total+size-1)/size)
	number = min(number, pages)
	from = (number - 1) * size
	to = min(from+size, total)
	return from, to, PageOut{Total: total, Page: number, PageSize: size, PageCount: pages, HasNextPage: number < pages}
}

// Shrink makes a page smaller until its entries have at most budget characters,
// but for one entry that has more alone. The smaller page begins where the page
// did, so that the next page of the smaller size goes on exactly behind it.
func Shrink[T any](entries []T, p PageOut, budget int) ([]T, PageOut) {
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
	return entries[:size], PageOut{Total: p.Total, Page: number, PageSize: size, PageCount: pages, HasNextPage: number < pages}
}

// NextPage tells how to go on behind a page, "" where there is nothing more.
func NextPage(p PageOut) string {
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
