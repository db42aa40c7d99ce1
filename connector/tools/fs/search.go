package fs

import (
	"context"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	"siyuan-broker/contract/fspath"
	catalogue "siyuan-broker/contract/tools"
)

const (
	foundPage   = 50   // lines on a page
	searchDocs  = 2000 // documents that may have a match
	searchRead  = 512  // documents one call reads
	readAtOnce  = 64
	longLine    = 400 // characters; longer lines are cut
	shortLine   = 200 // to this many
	beforeMatch = 60  // of them before the match
)

// search looks for lines. The index says which documents may have some; those are
// read, many at a time, until the page is full.
func search(ctx context.Context, r *tools.Request, in catalogue.FSSearchIn) (out catalogue.FSSearchOut, err error) {
	s := r.Session
	line, block, err := patterns(in)
	if err != nil {
		return out, err
	}
	at, err := resolve(ctx, s, "path", in.Path, contract.Read)
	if err != nil {
		return out, err
	}
	places, err := places(s, at)
	if err != nil {
		return out, err
	}
	docs, more, err := s.DocsMatching(ctx, places, block, searchDocs)
	if err != nil {
		return out, err
	}
	page, size := tools.Or(in.Page, 1), tools.Or(in.PageSize, foundPage)
	lines, unread, err := grep(ctx, s, docs, line, page*size)
	if err != nil {
		return out, err
	}
	from, to, pages := catalogue.Page(len(lines), page, size)
	out = catalogue.FSSearchOut{
		Path:  at.path.String(),
		Query: in.Query, Regex: in.Regex, CaseSensitive: in.CaseSensitive,
	}
	out.Data, out.PageOut = catalogue.Shrink(append([]catalogue.FSLine{}, lines[from:to]...), pages, r.Budget)
	out.Hint = catalogue.NextPage(out.PageOut)
	switch {
	case unread > 0 && len(lines) > page*size:
		out.Truncated = true
		out.Hint += " total counts the lines found so far; there may be more on further pages."
	case unread > 0 || more:
		out.Truncated = true
		out.Hint = fmt.Sprintf("The first %d documents that may have it were read; narrow path or query.", len(docs)-unread)
	}
	return out, nil
}

// patterns are the query for one line, and one for a whole block that matches
// wherever a line of it does.
func patterns(in catalogue.FSSearchIn) (line *regexp.Regexp, block *syntax.Regexp, err error) {
	text, flags := in.Query, syntax.Perl
	if !in.Regex {
		text = regexp.QuoteMeta(in.Query)
	}
	if !in.CaseSensitive {
		flags |= syntax.FoldCase
		text = "(?i:" + text + ")"
	}
	if line, err = regexp.Compile(text); err == nil {
		block, err = syntax.Parse(text, flags)
	}
	if err != nil {
		return nil, nil, contract.InvalidFields(contract.Field{Path: "query", Message: "is not a valid regular expression (RE2)"})
	}
	return line, anyLine(block), nil
}

// anyLine lets the beginning and the end of a text be those of any line.
func anyLine(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op = syntax.OpEndLine
	}
	for _, sub := range re.Sub {
		anyLine(sub)
	}
	return re
}

// grep reads documents until it has more than enough lines; unread is how many
// documents it left.
func grep(ctx context.Context, s *guard.Session, docs []guard.DocEntry, re *regexp.Regexp, enough int) (lines []catalogue.FSLine, unread int, err error) {
	done := 0
	for done < min(len(docs), searchRead) && len(lines) <= enough {
		batch := docs[done:min(len(docs), done+readAtOnce, searchRead)]
		texts, err := s.DocTexts(ctx, batch)
		if err != nil {
			return nil, 0, err
		}
		for _, d := range batch {
			lines = append(lines, linesOf(entryPath(s, d).String(), texts[d.ID], re)...)
		}
		done += len(batch)
	}
	return lines, len(docs) - done, nil
}

// entryPath is the path of a document from the index: by titles, or by id where
// those lead elsewhere too, or have slashes, which the index does not tell apart.
func entryPath(s *guard.Session, d guard.DocEntry) fspath.Path {
	titles := strings.Split(strings.TrimPrefix(d.HPath, "/"), "/")
	if d.Shared || len(titles) != strings.Count(d.Path, "/") || titles[len(titles)-1] != d.Title {
		return fspath.Path{d.ID}
	}
	return append(notebookPath(s, d.Notebook), titles...)
}

// linesOf are the lines of a text that match; blocks are parted by an empty one.
func linesOf(path string, blocks []string, re *regexp.Regexp) (found []catalogue.FSLine) {
	number := 0
	for i, b := range blocks {
		if b == "" {
			continue
		}
		if number > 0 {
			number++
		}
		for text := range strings.SplitSeq(b, "\n") {
			number++
			if m := re.FindStringIndex(text); m != nil {
				found = append(found, cutLine(catalogue.FSLine{Path: path, Line: number, BlockIndex: i, Text: text}, m[0]))
			}
		}
	}
	return found
}

// cutLine shortens a long line to what is around its match.
func cutLine(l catalogue.FSLine, match int) catalogue.FSLine {
	runes := []rune(l.Text)
	if len(runes) <= longLine {
		return l
	}
	from := max(0, utf8.RuneCountInString(l.Text[:match])-beforeMatch)
	from = min(from, len(runes)-shortLine)
	l.Text, l.TextTruncated, l.OriginalTextLength = string(runes[from:from+shortLine]), true, len(runes)
	return l
}
