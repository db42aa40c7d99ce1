package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// maxCounted bounds the blocks that are looked through below others.
const maxCounted = 4096

// whereabouts are conditions for one set of blocks in the index's tables. Every
// value in them went through quoteSQL.
type whereabouts struct {
	blocks string // of blocks
	owned  string // of attributes, by block_id or path
	files  string // of assets
	defs   string // of refs: what is cited
	citing string // of refs: the blocks that cite, where they are of the set themselves
}

// PreviewNotebook says what is in a notebook. What is in a closed one is not
// counted.
func (s *Session) PreviewNotebook(ctx context.Context, n Notebook) (p contract.Preview, err error) {
	if err := s.use(n, contract.Read); err != nil {
		return p, err
	}
	p.Named = []contract.PreviewItem{{Kind: "notebook", Title: n.Name()}}
	if n.Reachable() != nil {
		p.Counts.Notebooks, p.Uncounted = 1, true
		return p.Clean(), nil
	}
	box := "box = " + quoteSQL(n.ID())
	err = s.count(ctx, &p, whereabouts{
		blocks: box, owned: box, files: box, citing: box,
		defs: "def_block_root_id IN (SELECT id FROM blocks WHERE type = 'd' AND " + box + ")",
	})
	p.Counts.Notebooks = 1
	if err != nil {
		return p, err
	}
	rows, err := s.rows(ctx, "type = 'd' AND "+box, "hpath, id", contract.PreviewNamed-1)
	p.Named = append(p.Named, named(rows, nil)...)
	p.More = max(0, p.Counts.Documents-len(rows))
	return p.Clean(), err
}

// PreviewDocs says what documents are with all below them: those asked for are
// named first.
func (s *Session) PreviewDocs(ctx context.Context, docs []Doc) (p contract.Preview, err error) {
	if len(docs) == 0 {
		return p, nil
	}
	var blocks, files []string
	for _, d := range docs {
		if err := s.use(d.nb, contract.Read); err != nil {
			return p, err
		}
		below := strings.TrimSuffix(d.path, ".sy") + "/"
		in := func(column string) string {
			return fmt.Sprintf("(box = %s AND (%s = %s OR substr(%s, 1, %d) = %s))", quoteSQL(d.nb.ID()), column, quoteSQL(d.path), column, len(below), quoteSQL(below))
		}
		blocks, files = append(blocks, in("path")), append(files, in("docpath"))
	}
	set := "(" + strings.Join(blocks, " OR ") + ")"
	err = s.count(ctx, &p, whereabouts{
		blocks: set, owned: set, files: "(" + strings.Join(files, " OR ") + ")", citing: set,
		defs: "def_block_root_id IN (SELECT id FROM blocks WHERE type = 'd' AND " + set + ")",
	})
	if err != nil {
		return p, err
	}
	ids := make([]siyuan.ID, len(docs))
	for i, d := range docs {
		ids[i] = d.id
	}
	rows, err := s.rows(ctx, "type = 'd' AND "+set, "id NOT IN ("+sqlList(ids)+"), hpath, id", contract.PreviewNamed)
	p.Named = named(rows, nil)
	p.More = max(0, p.Counts.Documents-len(rows))
	return p.Clean(), err
}

// PreviewBlocks says what blocks are with all in them. What stands under a
// heading is not in it.
func (s *Session) PreviewBlocks(ctx context.Context, blocks []Block) (p contract.Preview, err error) {
	ids := make([]siyuan.ID, len(blocks))
	for i, b := range blocks {
		if err := s.use(b.doc.nb, contract.Read); err != nil {
			return p, err
		}
		ids[i] = b.id
	}
	ids = unique(ids)
	rows, err := s.rows(ctx, "id IN ("+sqlList(ids)+")", "id", len(ids))
	if err != nil {
		return p, err
	}
	all, more, err := s.inside(ctx, ids, rows)
	if err != nil {
		return p, err
	}
	p.Uncounted = more
	set := sqlList(all)
	err = s.count(ctx, &p, whereabouts{
		blocks: "id IN (" + set + ")", owned: "block_id IN (" + set + ")", files: "block_id IN (" + set + ")",
		defs: "def_block_id IN (" + set + ")", citing: "block_id IN (" + set + ")",
	})
	p.Named = named(rows, blocks)
	p.More = len(ids) - len(p.Named)
	return p.Clean(), err
}

// inside lists blocks and all blocks in them, as far as they are counted.
func (s *Session) inside(ctx context.Context, ids []siyuan.ID, rows []Row) (all []siyuan.ID, more bool, err error) {
	all = slices.Clone(ids)
	var next []siyuan.ID
	for _, r := range rows {
		if r.Type != "h" {
			next = append(next, siyuan.ID(r.ID))
		}
	}
	for len(next) > 0 {
		found, err := s.g.sql(ctx, fmt.Sprintf("SELECT id FROM blocks WHERE box IN (%s) AND parent_id IN (%s) ORDER BY id LIMIT %d", s.boxes(), sqlList(next), maxCounted+1))
		if err != nil {
			return nil, false, err
		}
		next = nil
		for _, r := range found {
			if id := siyuan.ID(r.Text("id")); !slices.Contains(all, id) {
				next = append(next, id)
			}
		}
		if all = append(all, next...); len(all) > maxCounted {
			return all[:maxCounted], true, nil
		}
	}
	return all, false, nil
}

// count fills in the numbers for a set of blocks. They are of readable notebooks
// only; rows of databases are told to those who see all of them, because a
// database may have a part in a hidden notebook.
func (s *Session) count(ctx context.Context, p *contract.Preview, w whereabouts) error {
	if len(s.sidebar().order) == 0 {
		return nil
	}
	for _, q := range []struct {
		into *int
		stmt string
		skip bool
	}{
		{&p.Counts.Documents, "count(*) AS n FROM blocks WHERE type = 'd' AND " + w.blocks, false},
		{&p.Counts.Blocks, "count(*) AS n FROM blocks WHERE type <> 'd' AND " + w.blocks, false},
		{&p.Counts.References, "count(DISTINCT block_id) AS n FROM refs WHERE " + w.defs + " AND NOT " + w.citing, false},
		{&p.Counts.Assets, "count(DISTINCT path) AS n FROM assets WHERE " + w.files, false},
		{&p.Counts.Attributes, "count(*) AS n FROM attributes WHERE (name IN ('name', 'alias', 'memo', 'bookmark') OR substr(name, 1, 7) = 'custom-'" +
			" AND name <> 'custom-avs' AND substr(name, 1, 13) <> 'custom-sy-av-') AND " + w.owned, false},
		{&p.Counts.Rows, "count(*) AS n FROM attributes WHERE name = 'custom-avs' AND " + w.owned, !s.whole()},
	} {
		if q.skip {
			continue
		}
		rows, err := s.g.sql(ctx, "SELECT "+q.stmt+" AND box IN ("+s.boxes()+")")
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			*q.into = int(rows[0].Int("n"))
		}
	}
	return nil
}

// named are rows by name, in the order of the blocks where there is one.
func named(rows []Row, order []Block) []contract.PreviewItem {
	place := map[string]int{}
	for i, b := range order {
		place[b.ID()] = i
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return place[a.ID] - place[b.ID] })
	var items []contract.PreviewItem
	for _, r := range rows[:min(len(rows), contract.PreviewNamed)] {
		i := contract.PreviewItem{Kind: "block", Title: r.Content, Path: "/" + r.Notebook.Name() + r.HPath}
		if r.Type == "d" {
			i.Kind = "document"
		}
		items = append(items, i)
	}
	return items
}

// PreviewPlace names where something goes.
func (s *Session) PreviewPlace(ctx context.Context, p Place) (*contract.PreviewItem, error) {
	if p.Doc == nil {
		return &contract.PreviewItem{Kind: "notebook", Title: contract.PlainText(p.Notebook.Name(), contract.PreviewRunes)}, nil
	}
	return s.PreviewBlock(ctx, p.Doc.Block())
}

// PreviewBlock names one block.
func (s *Session) PreviewBlock(ctx context.Context, b Block) (*contract.PreviewItem, error) {
	rows, err := s.rows(ctx, "id = "+quoteSQL(b.ID()), "id", 1)
	items := contract.Preview{Named: named(rows, nil)}.Clean().Named
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return &items[0], nil
}
