package guard

import (
	"context"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Row is a block as the index has it, with everything hidden taken out. The
// index is brought up to date with the connector's own writes first.
type Row struct {
	ID, Type, SubType, RootID, ParentID string // Type and SubType as short codes
	Notebook                            Notebook
	Path, HPath                         string // of the document: storage path, readable path
	Content                             string // plain text
	Markdown                            string
	Name, Alias, Memo                   string
	Tags                                []string
	Created, Updated                    string // yyyyMMddHHmmss

	masked bool // something hidden was taken out of Content
}

// rows reads blocks of readable notebooks. The condition and the order are SQL
// of this package; every value in them goes through quoteSQL. Query embeds are
// never among the rows, because theirs holds the text of what they found.
func (s *Session) rows(ctx context.Context, condition, order string, limit int) ([]Row, error) {
	if len(s.sidebar().order) == 0 {
		return nil, nil
	}
	stmt := fmt.Sprintf("SELECT id, parent_id, root_id, box, path, hpath, name, alias, memo, tag, content, markdown, type, subtype, created, updated"+
		" FROM blocks WHERE box IN (%s) AND type <> 'query_embed' AND (%s) ORDER BY %s LIMIT %d", s.boxes(), condition, order, limit)
	found, err := s.g.sql(ctx, stmt)
	if err != nil {
		return nil, err
	}
	return s.show(ctx, found)
}

// boxes are the readable notebooks as a SQL list.
func (s *Session) boxes() string { return sqlList(s.sidebar().order) }

func sqlList(ids []siyuan.ID) string {
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = quoteSQL(string(id))
	}
	return strings.Join(quoted, ", ")
}

// show makes rows fit to be shown; rows of other notebooks than the readable
// ones, and of query embeds, are dropped even though none was asked for.
func (s *Session) show(ctx context.Context, found []siyuan.Row) ([]Row, error) {
	seen := map[string]bool{}
	found = slices.DeleteFunc(found, func(r siyuan.Row) bool {
		_, readable := s.sidebar().notebooks[siyuan.ID(r.Text("box"))]
		again := seen[r.Text("id")]
		seen[r.Text("id")] = true
		return !readable || again || r.Text("type") == "query_embed"
	})
	texts := make([]string, len(found))
	for i, r := range found {
		texts[i] = r.Text("markdown")
	}
	masked, err := s.maskTexts(ctx, texts)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(found))
	for i, r := range found {
		content := withoutZWSP(r.Text("content"))
		if masked[i] != texts[i] || rendered(r.Text("type"), texts[i]) {
			content = plain(ownText(masked[i]))
		}
		rows[i] = Row{
			ID: r.Text("id"), Type: r.Text("type"), SubType: r.Text("subtype"), RootID: r.Text("root_id"), ParentID: r.Text("parent_id"),
			Notebook: s.sidebar().notebooks[siyuan.ID(r.Text("box"))], Path: r.Text("path"), HPath: hpathOf(r), Content: strings.TrimSpace(content),
			Markdown: withoutZWSP(masked[i]), Name: html.UnescapeString(r.Text("name")), Alias: html.UnescapeString(r.Text("alias")),
			Memo: html.UnescapeString(r.Text("memo")), Tags: tagsOf(r.Text("tag")), Created: r.Text("created"), Updated: r.Text("updated"),
			masked: masked[i] != texts[i],
		}
	}
	return rows, nil
}

// tagsOf splits the index's form of tags, "#a# #b c#".
func tagsOf(column string) []string {
	var tags []string
	for _, t := range strings.Split(withoutZWSP(column), "#") {
		if t = strings.TrimSpace(t); t != "" {
			tags = append(tags, t)
		}
	}
	return tags
}

// Limits of the collections below.
const (
	maxRecent = 128
	maxRefs   = 1024
	maxTagged = 20000
)

// Recent lists the blocks changed last, the newest first, at most limit.
func (s *Session) Recent(ctx context.Context, limit int) ([]Row, error) {
	return s.rows(ctx, "type IN ('p', 'd')", "updated DESC, id", min(limit, maxRecent))
}

// FindDocs lists documents whose title contains a text, at most limit.
func (s *Session) FindDocs(ctx context.Context, text string, limit int) ([]Row, error) {
	return s.rows(ctx, "type = 'd' AND "+contains("content", text), "updated DESC, id", min(limit, maxRefs))
}

// contains is the condition that a column has a text in it; ASCII letters match
// in either case.
func contains(column, text string) string {
	return "instr(lower(" + column + "), lower(" + quoteSQL(text) + "))"
}

// Tag is a label with the number of blocks that carry it.
type Tag struct {
	Label string
	Count int
}

// Tags lists the labels used in what the caller may read, by name.
func (s *Session) Tags(ctx context.Context) ([]Tag, error) {
	rows, err := s.rows(ctx, "tag <> '' AND type NOT IN ('l', 'i', 'b', 's', 'callout')", "id", maxTagged)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, r := range rows {
		for _, t := range r.Tags {
			counts[t]++
		}
	}
	tags := make([]Tag, 0, len(counts))
	for label, n := range counts {
		tags = append(tags, Tag{label, n})
	}
	slices.SortFunc(tags, func(a, b Tag) int { return strings.Compare(a.Label, b.Label) })
	return tags, nil
}

// Bookmark is a label with the blocks that carry it.
type Bookmark struct {
	Label  string
	Blocks []Row
}

// Bookmarks lists the bookmarks in what the caller may read, by label.
func (s *Session) Bookmarks(ctx context.Context) ([]Bookmark, error) {
	if len(s.sidebar().order) == 0 {
		return nil, nil
	}
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT block_id, value FROM attributes WHERE name = 'bookmark' AND box IN (%s) ORDER BY value, block_id LIMIT %d", s.boxes(), maxTagged))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	labels := map[string]string{}
	var ids []siyuan.ID
	for _, r := range found {
		labels[r.Text("block_id")] = html.UnescapeString(r.Text("value"))
		ids = append(ids, siyuan.ID(r.Text("block_id")))
	}
	rows, err := s.rows(ctx, "id IN ("+sqlList(unique(ids))+")", "id", maxTagged)
	if err != nil {
		return nil, err
	}
	byLabel := map[string][]Row{}
	for _, r := range rows {
		byLabel[labels[r.ID]] = append(byLabel[labels[r.ID]], r)
	}
	var marks []Bookmark
	for label, blocks := range byLabel {
		marks = append(marks, Bookmark{label, blocks})
	}
	slices.SortFunc(marks, func(a, b Bookmark) int { return strings.Compare(a.Label, b.Label) })
	return marks, nil
}

// RowsOf reads the index rows of blocks; those missing, or in another notebook
// than the readable ones, are left out.
func (s *Session) RowsOf(ctx context.Context, ids []string) ([]Row, error) {
	var valid []siyuan.ID
	for _, id := range ids {
		if siyuan.ID(id).Valid() {
			valid = append(valid, siyuan.ID(id))
		}
	}
	if len(valid) == 0 {
		return nil, nil
	}
	return s.rows(ctx, "id IN ("+sqlList(unique(valid))+")", "id", len(valid)*2)
}

// Attrs are the attributes of a block, without those the kernel computes from
// databases.
func (s *Session) Attrs(ctx context.Context, b Block) (map[string]string, error) {
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return nil, err
	}
	attrs, err := s.g.r.BlockAttrs(ctx, b.id)
	if err != nil {
		return nil, s.vanished(err, "block", b.id)
	}
	delete(attrs, "av-names")
	if !s.whole() {
		maps.DeleteFunc(attrs, func(name, _ string) bool { return databaseAttr(name) })
	}
	return attrs, nil
}
