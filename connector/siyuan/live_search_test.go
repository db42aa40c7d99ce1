package siyuan

import (
	"slices"
	"strings"
	"testing"
)

func TestLiveSearchFindsWhatWasJustWritten(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	word := "zq" + strings.ReplaceAll(string(l.id())[15:], "0", "a")
	doc := l.doc("/Find", "# Heading "+word+"\n\ntext "+word+" here")
	kids := l.children(doc)
	para := kids[1]
	paths := []string{string(l.nb)}

	one := func(what string, s Search) Block {
		t.Helper()
		r := take(l.FullText(ctx, s))(t)
		ids := slices.Compact(blockIDs(r.Blocks))
		if len(ids) != 1 || r.MatchedBlockCount == 0 {
			t.Fatalf("%s found %v of %d", what, ids, r.MatchedBlockCount)
		}
		return r.Blocks[0]
	}
	only := func(kind string) map[string]bool { return map[string]bool{kind: true} }
	hit := one("keyword", Search{Query: word, Paths: paths, Types: only("paragraph")})
	equal(t, "the hit", []any{hit.ID, hit.Box, hit.RootID, hit.Type}, []any{para, l.nb, doc, "NodeParagraph"})
	contains(t, "its text", hit.Content, "<mark>"+word+"</mark>")
	equal(t, "by query", one("query", Search{Query: word + " AND here", Method: SearchQuery, Paths: paths, Types: only("paragraph")}).ID, para)
	equal(t, "by SQL", one("SQL", Search{Query: "SELECT * FROM blocks WHERE id = '" + string(para) + "'", Method: SearchSQL}).ID, para)
	equal(t, "by expression", one("regexp", Search{Query: word[:4] + ".* here", Method: SearchRegexp, Paths: paths, Types: only("paragraph")}).ID, para)
	grouped := take(l.FullText(ctx, Search{Query: word, Paths: paths, GroupBy: 1, OrderBy: 5}))(t)
	equal(t, "a group", []any{grouped.Blocks[0].ID, len(grouped.Blocks[0].Children) > 0}, []any{doc, true})
	equal(t, "a bad query", len(take(l.FullText(ctx, Search{Query: "(", Method: SearchQuery}))(t).Blocks), 0)
	equal(t, "Semantic without a model", len(take(l.Semantic(ctx, Search{Query: word, Paths: paths}))(t).Blocks) >= 0, true)

	refs := take(l.SearchRef(ctx, para, doc, word, 512))(t)
	equal(t, "SearchRef", slices.Contains(blockIDs(refs.Blocks), kids[0]), true)

	check(t, l.FindReplace(ctx, Replacement{Find: word, Replace: "replaced", IDs: []ID{para}, Kinds: map[string]bool{"text": true}, Types: only("paragraph")}))
	equal(t, "replaced", l.markdown(para), "text replaced here")
	contains(t, "not replaced", l.markdown(kids[0]), word)
	wantKind(t, "replacing nowhere", l.FindReplace(ctx, Replacement{Find: "a", Kinds: only("text")}), BadArgument)

	rows := take(l.SQL(ctx, "SELECT id, sort, NULLIF(1, 1) AS gap FROM blocks WHERE id = '"+string(kids[0])+"'"))(t)
	equal(t, "a row", []any{rows[0].Text("id"), rows[0].Int("sort"), rows[0].Text("gap")}, []any{string(kids[0]), int64(5), ""})
	wantKind(t, "a broken statement", second(l.SQL(ctx, "SELECT FROM nowhere WHERE")), Rejected)
	wantKind(t, "a writing statement", second(l.SQL(ctx, "DELETE FROM blocks WHERE id = '' RETURNING id")), Rejected)
	check(t, l.Flush(ctx))

	embed := l.para(doc, "{{SELECT * FROM blocks WHERE id = '"+string(kids[0])+"'}}")
	found := take(l.SearchEmbed(ctx, embed, "SELECT * FROM blocks WHERE id = '"+string(kids[0])+"'", nil))(t)
	equal(t, "SearchEmbed", []any{found[0].Block.ID, found[0].Block.Box}, []any{kids[0], l.nb})
	equal(t, "EmbedBlocks", take(l.EmbedBlocks(ctx, embed, []ID{kids[0]}))(t)[0].Block.ID, kids[0])
	wantKind(t, "an embed that writes", second(l.SearchEmbed(ctx, embed, "DELETE FROM blocks", nil)), Rejected)
}

func TestLiveLinksAreFoundFromBothEnds(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	title := "Target " + string(l.id())[15:]
	def := l.doc("/"+title, "defined")
	citing := l.doc("/Citing", "(("+string(def)+" '"+title+"'))\n\na mention of "+title+" here")
	kids := l.children(citing)
	check(t, l.SetBlockAttrs(ctx, def, Attrs{"name": title}))

	back := take(l.Backlinks(ctx, def, "", "", true))(t)
	equal(t, "Backlinks", []any{back.Box, back.LinkRefsCount, len(back.Links), back.Links[0].ID, back.Links[0].Box},
		[]any{l.nb, 1, 1, citing, l.nb})
	equal(t, "mentions", []any{len(back.Mentions), back.Mentions[0].ID}, []any{1, citing})
	links := take(l.BacklinkDoc(ctx, def, citing, "", true))(t)
	equal(t, "BacklinkDoc", len(links), 1)
	contains(t, "the citing block", links[0].DOM, string(kids[0]))
	mentions := take(l.BackmentionDoc(ctx, def, citing, ""))(t)
	equal(t, "BackmentionDoc", len(mentions), 1)
	contains(t, "the mentioning block", mentions[0].DOM, string(kids[1]))
	equal(t, "Backlinks of nothing", take(l.Backlinks(ctx, l.id(), "", "", true))(t).LinkRefsCount, 0)

	graph := take(l.LocalGraph(ctx, def, ""))(t)
	equal(t, "LocalGraph joins them", slices.ContainsFunc(graph.Links, func(g GraphLink) bool {
		return g.Ref && g.To == string(def)
	}), true)
	all := take(l.Graph(ctx, title))(t)
	equal(t, "Graph has the document", slices.ContainsFunc(all.Nodes, func(n GraphNode) bool {
		return n.ID == string(def) && n.Box == l.nb
	}), true)

	check(t, l.RemoveDoc(ctx, def))
	broken := take(l.InvalidRefs(ctx, 1, 100))(t)
	equal(t, "InvalidRefs", slices.Contains(blockIDs(broken.Blocks), kids[0]), true)
}

func TestLiveTagsAndBookmarksOfOnesOwn(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	label := liveName + "-" + string(l.id())[15:]
	doc := l.doc("/Tagged", "one #"+label+"/sub#\n\ntwo")
	kids := l.children(doc)
	check(t, l.SetBlockAttrs(ctx, kids[1], Attrs{"bookmark": label}))

	find := func(name string) *Tag {
		t.Helper()
		tags := take(l.Tags(ctx))(t)
		if i := slices.IndexFunc(tags, func(g Tag) bool { return g.Label == name }); i >= 0 {
			return &tags[i]
		}
		return nil
	}
	parent := find(label)
	if parent == nil || len(parent.Children) != 1 {
		t.Fatalf("the tag is %+v", parent)
	}
	equal(t, "Tags", []any{parent.Count, parent.Children[0].Label, parent.Children[0].Count}, []any{0, label + "/sub", 1})
	tags := take(l.SearchTags(ctx, label))(t)
	equal(t, "SearchTags", []any{len(tags), strings.NewReplacer("<mark>", "", "</mark>", "").Replace(tags[0])}, []any{1, label + "/sub"})
	check(t, l.RenameTag(ctx, label+"/sub", label+"/new"))
	contains(t, "a renamed tag", l.markdown(kids[0]), "#"+label+"/new#")
	check(t, l.RemoveTag(ctx, label+"/new"))
	equal(t, "a removed tag", strings.Contains(l.markdown(kids[0]), label), false)
	equal(t, "a removed tag in Tags", find(label) == nil, true)

	marked := func(name string) []ID {
		t.Helper()
		for _, b := range take(l.Bookmarks(ctx))(t) {
			if b.Name == name {
				return slices.Compact(blockIDs(b.Blocks))
			}
		}
		return nil
	}
	equal(t, "Bookmarks", marked(label), []ID{kids[1]})
	equal(t, "BookmarkLabels", slices.Contains(take(l.BookmarkLabels(ctx))(t), label), true)
	check(t, l.RenameBookmark(ctx, label, label+"-b"))
	equal(t, "a renamed bookmark", take(l.BlockAttrs(ctx, kids[1]))(t)["bookmark"], label+"-b")
	check(t, l.RemoveBookmark(ctx, label+"-b"))
	equal(t, "a removed bookmark", len(marked(label+"-b")), 0)
}
