package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// DocsNamed proves a level for the documents that titles lead to from a place
// down, one level a title. Several may share them.
func (s *Session) DocsNamed(ctx context.Context, p Place, titles []string, need contract.Level) ([]Doc, error) {
	if err := firstErr(s.use(p.Notebook, contract.Read), p.Notebook.Reachable()); err != nil {
		return nil, err
	}
	ids, err := s.idsNamed(ctx, p, titles)
	if err != nil {
		return nil, err
	}
	slices.Sort(ids)
	var docs []Doc
	for _, id := range ids {
		b, err := s.block(ctx, id, "document", need)
		if err != nil {
			return nil, err
		}
		below, inside := strings.CutPrefix(b.doc.path, p.folder()+"/")
		if inside && b.doc.nb.id == p.Notebook.id && strings.Count(below, "/")+1 == len(titles) {
			docs = append(docs, b.doc)
		}
	}
	return docs, nil
}

// unfindable are the characters of titles that SiYuan's own paths of titles do
// not lead to: a slash, which they take for a level, and the joiner of emoji,
// which a title keeps and a search for it loses.
const unfindable = "/\u200d"

// idsNamed finds the documents of titles below a place, and may find others of
// the notebook. Where SiYuan cannot find a title by its path, each level is
// listed.
func (s *Session) idsNamed(ctx context.Context, p Place, titles []string) ([]siyuan.ID, error) {
	if strings.ContainsAny(strings.Join(titles, ""), unfindable) {
		return s.walkTitles(ctx, p, titles)
	}
	hpath := "/" + strings.Join(titles, "/")
	if p.Doc != nil {
		above, err := s.HPath(ctx, *p.Doc)
		if err != nil {
			return nil, s.vanished(err, "document", p.Doc.id)
		}
		hpath = above + hpath
	}
	return s.g.r.IDsByHPath(ctx, p.Notebook.id, hpath)
}

func (s *Session) walkTitles(ctx context.Context, p Place, titles []string) (ids []siyuan.ID, err error) {
	folders := []string{p.Storage()}
	for _, title := range titles {
		ids = nil
		var next []string
		for _, folder := range folders {
			files, err := s.g.r.Docs(ctx, p.Notebook.id, folder)
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				if f.Name == title && f.ID != p.Notebook.id {
					next, ids = append(next, f.Path), append(ids, f.ID)
				}
			}
		}
		folders = next
	}
	return ids, nil
}

// DocEntry is a document as the index has it.
type DocEntry struct {
	ID, Title string
	Path      string // storage path, of ids
	HPath     string // of titles
	Shared    bool   // another document of the notebook has the same titles; DocsMatching tells
	Notebook  Notebook
}

// DocsBelow lists the documents below places, by storage path, at most limit;
// more says that there are more. It is one question, however many there are.
func (s *Session) DocsBelow(ctx context.Context, places []Place, limit int) (docs []DocEntry, more bool, err error) {
	where, err := s.below(places)
	if err != nil || where == "" {
		return nil, false, err
	}
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT DISTINCT id, box, path, hpath, content FROM blocks WHERE type = 'd' AND id <> box AND (%s) ORDER BY path, id LIMIT %d", where, limit+1))
	if err != nil {
		return nil, false, err
	}
	return s.entries(found, limit)
}

func (s *Session) entries(found []siyuan.Row, limit int) (docs []DocEntry, more bool, err error) {
	for _, r := range found[:min(len(found), limit)] {
		if n, readable := s.sidebar().notebooks[siyuan.ID(r.Text("box"))]; readable {
			docs = append(docs, DocEntry{ID: r.Text("id"), Title: withoutZWSP(r.Text("content")), Path: r.Text("path"), HPath: r.Text("hpath"), Shared: r.Int("shared") != 0, Notebook: n})
		}
	}
	return docs, len(found) > limit, nil
}

// below is the SQL condition that a block is in a document at one of the places
// or below it, "" where there is no place. Closed notebooks have no rows.
func (s *Session) below(places []Place) (string, error) {
	var any []string
	for _, p := range places {
		if err := s.use(p.Notebook, contract.Read); err != nil {
			return "", err
		}
		one := "box = " + quoteSQL(p.Notebook.ID())
		if p.Doc != nil {
			one += " AND path GLOB " + quoteSQL(p.folder()+"/*")
		}
		any = append(any, "("+one+")")
	}
	return strings.Join(any, " OR "), nil
}

// NamedDoc is a document with its title.
type NamedDoc struct {
	Doc
	Title string
}

// DocsAt proves a level for the documents right below a place, all of them, in
// the order of the notebook. One look at the tree proves them all.
func (s *Session) DocsAt(ctx context.Context, p Place, need contract.Level) ([]NamedDoc, error) {
	if err := s.use(p.Notebook, need); err != nil {
		return nil, err
	}
	nodes, err := s.DocsIn(ctx, p)
	docs := make([]NamedDoc, len(nodes))
	for i, n := range nodes {
		docs[i] = NamedDoc{Doc{nb: p.Notebook, id: siyuan.ID(n.ID), path: n.Path}, n.Name}
	}
	return docs, err
}
