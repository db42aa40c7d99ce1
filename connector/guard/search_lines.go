package guard

import (
	"context"
	"fmt"
	"regexp/syntax"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// DocsMatching lists the documents at places and below them in which a block may
// have a match, at most limit, in the order of their readable paths: the index is
// asked once. A block that shows the title of something hidden counts as having
// one, since its text is not known here.
func (s *Session) DocsMatching(ctx context.Context, places []Place, pattern *syntax.Regexp, limit int) (docs []DocEntry, more bool, err error) {
	where, err := s.below(places)
	if err != nil || where == "" {
		return nil, false, err
	}
	for _, p := range places {
		if p.Doc != nil {
			where += " OR root_id = " + quoteSQL(p.Doc.ID())
		}
	}
	has := "replace(markdown, '" + zwsp + "', '') REGEXP " + quoteSQL(kernelPattern(pattern))
	if !s.whole() {
		has = "markdown = " + quoteSQL(Placeholder) + " OR " + has
	}
	found, more, err := s.scoped(ctx, fmt.Sprintf("SELECT DISTINCT id, box, path, hpath, content,"+
		" box || hpath IN (SELECT box || hpath FROM blocks WHERE type = 'd' GROUP BY box, hpath HAVING count(DISTINCT id) > 1) AS shared"+
		" FROM blocks WHERE type = 'd' AND id IN (SELECT root_id FROM blocks WHERE type <> 'd' AND (%s) AND (%s)) ORDER BY hpath, id", where, has), limit)
	if err != nil {
		return nil, false, err
	}
	docs, _, err = s.entries(found, limit)
	return docs, more, err
}

// kernelPattern writes a pattern for the kernel's REGEXP, which takes two
// backslashes for one before it reads the pattern.
func kernelPattern(pattern *syntax.Regexp) string {
	text := pattern.String()
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\' || i+1 == len(text):
			out.WriteByte(text[i])
		case text[i+1] == '\\':
			out.WriteString(`\x5c`)
			i++
		default:
			out.WriteString(text[i : i+2])
			i++
		}
	}
	return out.String()
}

// DocTexts are documents as Children shows them, block by block; those that are
// no longer where the index had them are left out. It takes the same number of
// questions for many as for one, because it asks after reading, and after a
// flush, where each document was.
func (s *Session) DocTexts(ctx context.Context, docs []DocEntry) (map[string][]string, error) {
	ids := make([]siyuan.ID, len(docs))
	for i, d := range docs {
		if err := s.use(d.Notebook, contract.Read); err != nil {
			return nil, err
		}
		ids[i] = siyuan.ID(d.ID)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	texts, err := s.kramdowns(ctx, ids, false)
	if err != nil {
		return nil, err
	}
	if err := s.g.r.Flush(ctx); err != nil {
		return nil, err
	}
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT DISTINCT id, box FROM blocks WHERE type = 'd' AND id IN (%s) LIMIT %d", sqlList(ids), 2*len(ids)))
	if err != nil {
		return nil, err
	}
	boxes := map[string][]string{}
	for _, r := range found {
		boxes[r.Text("id")] = append(boxes[r.Text("id")], r.Text("box"))
	}
	shown := map[string][]string{}
	for _, d := range docs {
		at := boxes[d.ID]
		if text, ok := texts[siyuan.ID(d.ID)]; ok && len(at) == 1 && at[0] == d.Notebook.ID() {
			shown[d.ID] = shownBlocks(text)
		}
	}
	return shown, nil
}

// shownBlocks splits the kramdown of a document into its top-level blocks,
// without the attribute lists of blocks.
func shownBlocks(kramdown string) []string {
	var blocks []string
	var lines []string
	depth, fence := 0, ""
	end := func() {
		for n := len(lines) - 1; n >= 0 && strings.Trim(strings.TrimLeft(lines[n], ">"), " \t") == "" && !strings.HasPrefix(lines[n], " "); n-- {
			lines = lines[:n] // SiYuan's own text of a quote ends with its last line too
		}
		for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
			lines = lines[1:]
		}
		blocks = append(blocks, strings.Join(lines, "\n"))
		lines = nil
	}
	for line := range strings.Lines(kramdown) {
		line = strings.TrimRight(line, "\r\n")
		if mark := fenceLine.FindStringSubmatch(line); fence != "" || mark != nil {
			switch {
			case fence == "" && !closedOnLine(line, mark[1]):
				fence = mark[1]
			case fence != "" && mark != nil && strings.HasPrefix(mark[1], fence) && onlyMark(line):
				fence = ""
			}
			lines = append(lines, line)
			continue
		}
		switch {
		case strings.HasPrefix(line, "{{{"):
			depth++
		case line == "}}}":
			depth--
		}
		bare := ialPattern.ReplaceAllStringFunc(line, func(list string) string {
			if parseIAL(list)["id"] == "" {
				return list // of a marked text
			}
			return ""
		})
		if bare == line {
			lines = append(lines, line)
			continue
		}
		switch {
		case bare == "" && depth <= 0:
			end()
		case strings.Trim(bare, "> \t") != "":
			lines = append(lines, bare)
		}
	}
	if len(blocks) > 0 { // the last list is the document's own
		blocks = blocks[:len(blocks)-1]
	}
	return blocks
}
