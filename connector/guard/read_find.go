package guard

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// FindDocsBelow lists the documents below a place whose title contains a text,
// the last changed first, at most limit; more says that there are more.
func (s *Session) FindDocsBelow(ctx context.Context, p Place, text string, limit int) (docs []Row, more bool, err error) {
	if err := firstErr(s.use(p.Notebook, contract.Read), p.Notebook.Reachable()); err != nil {
		return nil, false, err
	}
	condition := "type = 'd' AND id <> box AND box = " + quoteSQL(p.Notebook.ID()) + " AND " + contains("content", text)
	if p.Doc != nil {
		condition += " AND path LIKE " + quoteSQL(p.folder()+"/%")
	}
	docs, err = s.rows(ctx, condition, "updated DESC, id", limit+1)
	if len(docs) > limit {
		return docs[:limit], true, err
	}
	return docs, false, err
}

// Candidates are what a reference could point at.
type Candidates struct {
	Rows   []Row
	More   bool
	NewDoc bool // no document has the text as its title
}

// refTypes are the blocks offered as targets of a reference: containers have the
// text of what is in them.
const refTypes = "type IN ('d', 'h', 'p', 'c', 'm', 't', 'html')"

// Candidates finds blocks to refer to from a block, by a part of their text,
// name, alias or memo; exact names and titles come first, then documents, then
// the rest, the last changed first. Without text, the last changed. SiYuan's own
// search for this is not used: it looks at all notebooks and stops after a
// number of hits, hidden ones too.
func (s *Session) Candidates(ctx context.Context, from Block, text string, docsOnly bool, limit int) (Candidates, error) {
	if err := s.use(from.doc.nb, contract.Read); err != nil {
		return Candidates{}, err
	}
	condition := refTypes
	if docsOnly {
		condition = "type = 'd'"
	}
	condition += " AND id <> box AND id <> " + quoteSQL(string(from.id))
	order := "updated DESC"
	text = strings.TrimSpace(text)
	if text != "" {
		anywhere, exact := []string{mentions(text)}, []string(nil)
		for _, column := range []string{"name", "alias", "memo"} {
			anywhere = append(anywhere, contains(column, text))
		}
		for _, column := range []string{"content", "name", "alias"} {
			exact = append(exact, "lower("+column+") = lower("+quoteSQL(text)+")")
		}
		condition += " AND (" + strings.Join(anywhere, " OR ") + ")"
		order = "CASE WHEN " + strings.Join(exact, " OR ") + " THEN 0 WHEN type = 'd' THEN 1 ELSE 2 END, " + order
	}
	rows, more, err := s.match(ctx, condition, order, limit)
	if err != nil || text == "" {
		return Candidates{Rows: rows, More: more}, err
	}
	named, err := s.rows(ctx, "type = 'd' AND content = "+quoteSQL(text), "id", 1)
	return Candidates{Rows: rows, More: more, NewDoc: len(named) == 0}, err
}

// InvalidRefs lists the readable blocks that cite something that is not there, in
// the order of their ids. What the caller may not read is not there. more says
// that the list stopped at a limit.
func (s *Session) InvalidRefs(ctx context.Context) (ids []string, more bool, err error) {
	if len(s.sidebar().order) == 0 {
		return nil, false, nil
	}
	boxes := s.boxes()
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT DISTINCT block_id FROM refs WHERE box IN (%s) AND type = 'textmark'"+
		" AND def_block_id NOT IN (SELECT id FROM blocks WHERE box IN (%s)) ORDER BY block_id LIMIT %d", boxes, boxes, maxRefs+1))
	if err != nil {
		return nil, false, err
	}
	for _, r := range found {
		ids = append(ids, r.Text("block_id"))
	}
	return ids[:min(len(ids), maxRefs)], len(ids) > maxRefs, nil
}

// maxAssets bounds the assets looked through.
const maxAssets = 4096

// AssetName is a file that readable notes link to.
type AssetName struct {
	Path, Name string // Name is for people: without the id SiYuan puts into it
	Updated    int64  // Unix seconds; 0 when the file is not in the common folder
}

// idInName is the id that SiYuan adds to the name of an uploaded file.
var idInName = regexp.MustCompile(`-` + idPattern + `(\.[^.]*)?$`)

// Assets lists the files that readable notes link to, by path: those whose name
// contains a text, with one of the extensions if any are given. more says that
// not all were looked through.
func (s *Session) Assets(ctx context.Context, text string, exts []string) (files []AssetName, more bool, err error) {
	if len(s.sidebar().order) == 0 {
		return nil, false, nil
	}
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT DISTINCT path FROM assets WHERE box IN (%s) ORDER BY path LIMIT %d", s.boxes(), maxAssets+1))
	if err != nil {
		return nil, false, err
	}
	if more = len(found) > maxAssets; more {
		found = found[:maxAssets]
	}
	for _, r := range found {
		p := r.Text("path")
		name := idInName.ReplaceAllString(path.Base(p), "$1")
		hasExt := func(ext string) bool { return strings.EqualFold("."+strings.TrimPrefix(ext, "."), path.Ext(p)) }
		if !strings.Contains(strings.ToLower(name), strings.ToLower(text)) || len(exts) > 0 && !slices.ContainsFunc(exts, hasExt) {
			continue
		}
		files = append(files, AssetName{Path: p, Name: name})
	}
	if len(files) == 0 {
		return nil, more, nil
	}
	entries, err := s.g.r.ReadDir(ctx, "/data/assets")
	if err != nil && siyuan.KindOf(err) != siyuan.Missing {
		return nil, false, err
	}
	updated := map[string]int64{}
	for _, e := range entries {
		updated["assets/"+e.Name] = e.Updated
	}
	for i := range files {
		files[i].Updated = updated[files[i].Path]
	}
	return files, more, nil
}

// DocHead is what SiYuan keeps about a document besides its text.
type DocHead struct {
	ID, Title, Icon string
	Refs            int // blocks that cite it or a block in it, where that was asked for
	Databases       []DatabaseName
}

// DatabaseName names a database.
type DatabaseName struct{ ID, Name string }

// DocHeads describes documents, one entry for each in order. Citations count
// where the caller may read them; databases are those shown in a readable note.
func (s *Session) DocHeads(ctx context.Context, docs []Doc, refs, databases bool) ([]DocHead, error) {
	ids := make([]siyuan.ID, len(docs))
	for i, d := range docs {
		if err := s.use(d.nb, contract.Read); err != nil {
			return nil, err
		}
		ids[i] = d.id
	}
	attrs, err := s.g.r.BlocksAttrs(ctx, unique(ids))
	if err != nil {
		return nil, err
	}
	counts, names := map[siyuan.ID]int{}, map[siyuan.ID][]DatabaseName{}
	if refs {
		if counts, err = s.countRefs(ctx, unique(ids)); err != nil {
			return nil, err
		}
	}
	if databases {
		if names, err = s.databasesOf(ctx, unique(ids)); err != nil {
			return nil, err
		}
	}
	heads := make([]DocHead, len(docs))
	for i, id := range ids {
		if attrs[id]["id"] == "" {
			return nil, notFound("document", id)
		}
		heads[i] = DocHead{ID: string(id), Title: attrs[id]["title"], Icon: attrs[id]["icon"], Refs: counts[id], Databases: names[id]}
	}
	return heads, nil
}

// countRefs counts the readable blocks that cite each document or a block in it.
func (s *Session) countRefs(ctx context.Context, docs []siyuan.ID) (map[siyuan.ID]int, error) {
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT def_block_root_id AS doc, count(DISTINCT block_id) AS n FROM refs WHERE box IN (%s)"+
		" AND type = 'textmark' AND def_block_root_id IN (%s) GROUP BY def_block_root_id LIMIT %d", s.boxes(), sqlList(docs), len(docs)))
	counts := map[siyuan.ID]int{}
	for _, r := range found {
		counts[siyuan.ID(r.Text("doc"))] = int(r.Int("n"))
	}
	return counts, err
}

// databasesOf names the databases that documents are rows of. With something
// hidden from the caller those count that a readable note shows.
func (s *Session) databasesOf(ctx context.Context, docs []siyuan.ID) (map[siyuan.ID][]DatabaseName, error) {
	infos, err := s.g.r.DocsInfo(ctx, docs)
	if err != nil {
		return nil, err
	}
	shown := map[siyuan.ID]bool{}
	if !s.whole() {
		found, err := s.g.sql(ctx, fmt.Sprintf("SELECT markdown FROM blocks WHERE type = 'av' AND box IN (%s) LIMIT %d", s.boxes(), maxTagged))
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			for _, id := range firstGroup(avTarget, r.Text("markdown")) {
				shown[id] = true
			}
		}
	}
	names := map[siyuan.ID][]DatabaseName{}
	for _, info := range infos {
		for _, av := range info.AttrViews {
			if s.whole() || shown[av.ID] {
				names[info.RootID] = append(names[info.RootID], DatabaseName{ID: string(av.ID), Name: av.Name})
			}
		}
	}
	for _, list := range names {
		slices.SortFunc(list, func(a, b DatabaseName) int { return strings.Compare(a.ID, b.ID) })
	}
	return names, nil
}

// Place is the document as a place for others.
func (d Doc) Place() Place {
	if d.id == d.nb.id {
		return Place{Notebook: d.nb}
	}
	return Place{Notebook: d.nb, Doc: &d}
}
