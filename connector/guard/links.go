package guard

import (
	"context"
	"fmt"
	"html"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Backlink is a block that cites another one.
type Backlink struct {
	Row
	Targets []string // the cited blocks, in the block or document asked for
}

// Backlinks lists the readable blocks that cite a block; of a document, also
// those that cite a block in it. more says that there are more than are listed.
func (s *Session) Backlinks(ctx context.Context, b Block) (links []Backlink, more bool, err error) {
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return nil, false, err
	}
	column := "def_block_id"
	if b.IsDoc() {
		column = "def_block_root_id"
	}
	found, err := s.refRows(ctx, column+" = "+quoteSQL(string(b.id)))
	if err != nil || len(found) == 0 {
		return nil, false, err
	}
	targets := map[string][]string{}
	var ids []siyuan.ID
	for _, r := range found {
		id := r.Text("block_id")
		if !slices.Contains(targets[id], r.Text("def_block_id")) {
			targets[id] = append(targets[id], r.Text("def_block_id"))
		}
		ids = append(ids, siyuan.ID(id))
	}
	rows, err := s.rows(ctx, "id IN ("+sqlList(unique(ids))+")", "updated DESC, id", maxRefs)
	for _, r := range rows {
		links = append(links, Backlink{r, targets[r.ID]})
	}
	return links, len(found) > maxRefs, err
}

// refRows reads the references made in readable notebooks, one more than the
// limit to tell whether there are more.
func (s *Session) refRows(ctx context.Context, condition string) ([]siyuan.Row, error) {
	if len(s.sidebar().order) == 0 {
		return nil, nil
	}
	return s.g.sql(ctx, fmt.Sprintf("SELECT block_id, def_block_id FROM refs WHERE box IN (%s) AND %s ORDER BY block_id, def_block_id LIMIT %d", s.boxes(), condition, maxRefs+1))
}

// Refs lists the readable blocks that a block cites; of a document, all that is
// cited in it. Unreadable targets are left out, whatever the reason.
func (s *Session) Refs(ctx context.Context, b Block) ([]Row, error) {
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return nil, err
	}
	column := "block_id"
	if b.IsDoc() {
		column = "root_id"
	}
	found, err := s.refRows(ctx, column+" = "+quoteSQL(string(b.id)))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, r := range found {
		ids = append(ids, r.Text("def_block_id"))
	}
	return s.RowsOf(ctx, ids)
}

// minMention is the shortest name that is looked for as a mention: shorter ones
// are in every text.
const minMention = 2

// Mentions lists the readable blocks that have the title, name or an alias of a
// block in their text without citing it. Blocks that show the title of something
// hidden are not looked through.
func (s *Session) Mentions(ctx context.Context, b Block) (rows []Row, more bool, err error) {
	attrs, err := s.Attrs(ctx, b)
	if err != nil {
		return nil, false, err
	}
	names := append(strings.Split(attrs["alias"], ","), attrs["name"], attrs["title"])
	var conditions []string
	for i, n := range names {
		names[i] = strings.TrimSpace(n)
		if len([]rune(names[i])) >= minMention {
			conditions = append(conditions, mentions(names[i]))
		}
	}
	if len(conditions) == 0 {
		return nil, false, nil
	}
	links, _, err := s.Backlinks(ctx, b)
	if err != nil {
		return nil, false, err
	}
	cites := map[string]bool{b.ID(): true}
	for _, l := range links {
		cites[l.ID] = true
	}
	rows, more, err = s.match(ctx, "type IN ('p', 'h', 't') AND root_id <> "+quoteSQL(string(b.id))+" AND ("+strings.Join(conditions, " OR ")+")", "updated DESC", maxRefs)
	return slices.DeleteFunc(rows, func(r Row) bool { return cites[r.ID] }), more, err
}

// Crumb is a step from the document to a block.
type Crumb struct {
	ID, Type, Name string // Type as short code; Name without marks, of a document its path with the notebook
	SubType        string // of headings and lists
}

// Breadcrumb leads from the document to a block.
func (s *Session) Breadcrumb(ctx context.Context, b Block) ([]Crumb, error) {
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return nil, err
	}
	steps, err := s.g.r.Breadcrumb(ctx, b.id)
	if err != nil {
		return nil, s.vanished(err, "block", b.id)
	}
	var ids []siyuan.ID
	for _, c := range steps {
		if c.Type != "NodeDocument" && c.Name != "" {
			ids = append(ids, c.ID)
		}
	}
	titles, err := s.titles(ctx, ids)
	if err != nil {
		return nil, err
	}
	crumbs := make([]Crumb, len(steps))
	for i, c := range steps {
		name := html.UnescapeString(c.Name)
		if c.Type != "NodeDocument" {
			name = titles[c.ID]
		}
		crumbs[i] = Crumb{ID: string(c.ID), Type: typeCode(c.Type), SubType: c.SubType, Name: name}
	}
	return crumbs, nil
}

// titles are the first lines of blocks, without marks and hidden anchors.
func (s *Session) titles(ctx context.Context, ids []siyuan.ID) (map[siyuan.ID]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	texts, err := s.g.r.BlockKramdowns(ctx, unique(ids), siyuan.KramdownMarkdown)
	if err != nil {
		return nil, err
	}
	titles := make(map[siyuan.ID]string, len(texts))
	for id, text := range texts {
		masked, err := s.maskText(ctx, body(text))
		if err != nil {
			return nil, err
		}
		titles[id], _, _ = strings.Cut(plain(masked), "\n")
	}
	return titles, nil
}

// Heading is an entry of a document's outline.
type Heading struct {
	ID    string
	Level int // 1..6
	Title string
}

// Outline lists the headings of a document in order, also those inside quotes
// and super blocks.
func (s *Session) Outline(ctx context.Context, d Doc) ([]Heading, error) {
	if err := s.use(d.nb, contract.Read); err != nil {
		return nil, err
	}
	paths, err := s.g.r.Outline(ctx, d.id)
	if err != nil {
		return nil, s.vanished(err, "document", d.id)
	}
	var headings []Heading
	var blocks func(list []siyuan.Block)
	blocks = func(list []siyuan.Block) {
		for _, b := range list {
			headings = append(headings, Heading{ID: string(b.ID), Level: Child{Type: "h", SubType: b.SubType}.Level()})
			blocks(b.Children)
		}
	}
	for _, p := range paths {
		headings = append(headings, Heading{ID: string(p.ID), Level: Child{Type: "h", SubType: p.SubType}.Level()})
		blocks(p.Blocks)
	}
	ids := make([]siyuan.ID, len(headings))
	for i, h := range headings {
		ids[i] = siyuan.ID(h.ID)
	}
	titles, err := s.titles(ctx, ids)
	for i := range headings {
		headings[i].Title = titles[siyuan.ID(headings[i].ID)]
	}
	return headings, err
}

// DocInfo describes a document; counts are over what the caller may read.
type DocInfo struct {
	Title, Icon string
	Attrs       map[string]string
	Backlinks   int
	Children    int // documents right below
}

// DocInfo describes a document.
func (s *Session) DocInfo(ctx context.Context, d Doc) (DocInfo, error) {
	attrs, err := s.Attrs(ctx, d.Block())
	if err != nil {
		return DocInfo{}, err
	}
	links, _, err := s.Backlinks(ctx, d.Block())
	if err != nil {
		return DocInfo{}, err
	}
	below, err := s.g.r.Docs(ctx, d.nb.id, d.path)
	return DocInfo{Title: attrs["title"], Icon: attrs["icon"], Attrs: attrs, Backlinks: len(links), Children: len(below)}, err
}
