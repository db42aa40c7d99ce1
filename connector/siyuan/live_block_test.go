package siyuan

import (
	"slices"
	"strings"
	"testing"
)

// page is a document with one of each: ids by name, in the order of the document.
type page struct {
	doc                                                               ID
	h1, p1, h2, list, item1, item2, task, todo, table, code, math, sb ID
	embed, ref                                                        ID
}

func (l *live) page(hpath string) page {
	p := page{}
	for _, id := range []*ID{&p.h1, &p.p1, &p.h2, &p.list, &p.item1, &p.item2, &p.task, &p.todo,
		&p.table, &p.code, &p.math, &p.sb, &p.embed, &p.ref} {
		*id = l.id()
	}
	ial := func(id ID) string { return "{: id=\"" + string(id) + "\"}\n\n" }
	in := func(id ID) string { return "{: id=\"" + string(id) + "\"}" }
	p.doc = l.doc(hpath, "# First\n"+ial(p.h1)+
		"para **bold** #"+liveName+"#\n"+ial(p.p1)+
		"## Second\n"+ial(p.h2)+
		"- "+in(p.item1)+"one\n- "+in(p.item2)+"two\n"+ial(p.list)+
		"- "+in(p.todo)+"[ ] do it\n"+ial(p.task)+
		"| a | b |\n| --- | --- |\n| 1 | 2 |\n"+ial(p.table)+
		"```go\nx := 1\n```\n"+ial(p.code)+
		"$$\nx^2\n$$\n"+ial(p.math)+
		"{{{row\nleft\n\nright\n\n}}}\n"+ial(p.sb))
	// What cites a block must come after it: see API.md, section 7.
	take(l.AppendBlock(l.ctx, p.doc, Markdown,
		"{{SELECT * FROM blocks WHERE id = '"+string(p.p1)+"'}}\n"+ial(p.embed)+
			"(("+string(p.p1)+" \"static\")) (("+string(p.h1)+" 'First'))\n"+ial(p.ref)))(l.t)
	return p
}

func (p page) blocks() []ID {
	return []ID{p.h1, p.p1, p.h2, p.list, p.task, p.table, p.code, p.math, p.sb, p.embed, p.ref}
}

func TestLiveBlocksAreReadAsTheyWereWritten(t *testing.T) {
	l := newLive(t)
	ctx, p := l.ctx, l.page("/Page")
	gone := l.id()

	info := take(l.BlockInfo(ctx, p.item1))(t)
	equal(t, "BlockInfo", info, BlockInfo{Box: l.nb, Path: info.Path, RootID: p.doc, RootTitle: "Page"})
	contains(t, "the path", info.Path, string(p.doc)+".sy")
	equal(t, "BlockExists", take(l.BlockExists(ctx, p.p1))(t), true)
	equal(t, "BlockExists of nothing", take(l.BlockExists(ctx, gone))(t), false)
	equal(t, "BlocksExist", take(l.BlocksExist(ctx, []ID{p.p1, gone}))(t), map[ID]bool{p.p1: true, gone: false})

	kids := take(l.ChildBlocks(ctx, p.doc))(t)
	var ids []ID
	var types []string
	for _, k := range kids {
		ids, types = append(ids, k.ID), append(types, k.Type+k.SubType)
	}
	equal(t, "ChildBlocks ids", ids, p.blocks())
	equal(t, "ChildBlocks types", types, strings.Fields("hh1 p hh2 lu lt t c m s query_embed p"))
	contains(t, "child markdown", kids[5].Markdown, "|a|b|")
	equal(t, "child content", kids[6].Content, "x := 1\n")
	tail := take(l.TailChildBlocks(ctx, p.doc, 2))(t)
	equal(t, "TailChildBlocks", []ID{tail[0].ID, tail[1].ID}, []ID{p.ref, p.embed})
	equal(t, "children of a heading", l.children(p.h1)[:3], []ID{p.p1, p.h2, p.list})
	equal(t, "children of a leaf", len(l.children(p.p1)), 0)
	equal(t, "HeadingChildren", take(l.HeadingChildren(ctx, p.h2))(t), p.blocks()[3:])
	equal(t, "HeadingChildren of a paragraph", len(take(l.HeadingChildren(ctx, p.p1))(t)), 0)

	contains(t, "markdown kramdown", take(l.BlockKramdown(ctx, p.p1, KramdownMarkdown))(t), "para **bold**", string(p.p1))
	contains(t, "textmark kramdown", take(l.BlockKramdown(ctx, p.p1, KramdownTextmark))(t), `<span data-type="strong">bold</span>`)
	contains(t, "a super block", l.markdown(p.sb), "{{{row", "left", "right")
	many := take(l.BlockKramdowns(ctx, []ID{p.math, gone}, KramdownMarkdown))(t)
	equal(t, "BlockKramdowns", len(many), 1)
	contains(t, "math", many[p.math], "$$\nx^2\n$$")
	contains(t, "references", l.markdown(p.ref), "(("+string(p.p1)+` "static"))`, "(("+string(p.h1)+" 'First'))")

	dom := take(l.BlockDOM(ctx, p.p1))(t)
	contains(t, "DOM", dom, `data-node-id="`+string(p.p1)+`"`, ">bold</span>")
	equal(t, "BlockDOMs", len(take(l.BlockDOMs(ctx, []ID{p.p1, gone}))(t)), 1)
	contains(t, "SpinBlockDOM", take(l.SpinBlockDOM(ctx, dom))(t), string(p.p1), "bold")

	crumbs := take(l.Breadcrumb(ctx, p.p1))(t)
	equal(t, "the first crumb", crumbs[0].Name, liveName+"/Page")
	equal(t, "the crumbs", []ID{crumbs[0].ID, crumbs[1].ID, crumbs[len(crumbs)-1].ID}, []ID{p.doc, p.h1, p.p1})
	tree := take(l.BlockTreeInfos(ctx, []ID{p.p1, gone}))(t)
	equal(t, "BlockTreeInfos", len(tree), 1)
	equal(t, "the type", tree[p.p1].Type, "NodeParagraph")
	equal(t, "previous and next", []ID{tree[p.p1].PreviousID, tree[p.p1].NextID}, []ID{p.h1, p.h2})

	doc := take(l.DocInfo(ctx, p.p1))(t)
	equal(t, "DocInfo", []any{doc.RootID, doc.Name, doc.IAL["title"]}, []any{p.doc, "Page", "Page"})
	docs := take(l.DocsInfo(ctx, []ID{p.doc}))(t)
	equal(t, "DocsInfo", []any{len(docs), docs[0].RootID, docs[0].SubFileCount}, []any{1, p.doc, 0})
	equal(t, "DocsInfo of nothing", len(take(l.DocsInfo(ctx, []ID{gone}))(t)), 0)
	// The embed block cites what its query names.
	var citing []ID
	for _, d := range take(l.RefIDs(ctx, p.p1))(t) {
		citing = append(citing, d.RefID)
		equal(t, "the cited", d.DefIDs, []ID{p.p1})
	}
	slices.Sort(citing)
	equal(t, "RefIDs", citing, slices.Sorted(slices.Values([]ID{p.embed, p.ref})))

	equal(t, "words of the code", take(l.WordCount(ctx, []ID{p.h1, p.h2}))(t).WordCount, 2)
	stat := take(l.TreeStat(ctx, p.doc))(t)
	equal(t, "references in the document", stat.RefCount, 2)
	outline := take(l.Outline(ctx, p.doc))(t)
	equal(t, "Outline", []any{len(outline), outline[0].ID, outline[0].Blocks[0].ID}, []any{1, p.h1, p.h2})
	attrs := take(l.BlockAttrs(ctx, p.p1))(t)
	equal(t, "the id attribute", attrs["id"], string(p.p1))
	equal(t, "BlocksAttrs", len(take(l.BlocksAttrs(ctx, []ID{p.p1, gone}))(t)), 1)
	recent := take(l.RecentUpdated(ctx))(t)
	if len(recent) == 0 || !slices.ContainsFunc(recent, func(b Block) bool { return b.Box == l.nb }) {
		t.Errorf("RecentUpdated does not have the new page")
	}

	// The index has the same: the document, its 11 children, 3 items with a
	// paragraph each, and what is in the super block; 2 references and the embed.
	in := "root_id = '" + string(p.doc) + "'"
	equal(t, "rows of blocks", l.count("blocks", in), int64(1+11+2*3+2))
	equal(t, "rows of refs", l.count("refs", in), int64(2+1))
	equal(t, "rows of tags", l.count("spans", in+" AND type LIKE '%tag%'"), int64(1))
	for what, err := range map[string]error{
		"BlockInfo": second(l.BlockInfo(ctx, gone)), "BlockKramdown": second(l.BlockKramdown(ctx, gone, KramdownMarkdown)),
		"BlockDOM": second(l.BlockDOM(ctx, gone)), "Breadcrumb": second(l.Breadcrumb(ctx, gone)),
		"TreeStat": second(l.TreeStat(ctx, gone)), "DocInfo": second(l.DocInfo(ctx, gone)),
		"BlockAttrs": second(l.BlockAttrs(ctx, gone)), "PathByID": second(l.PathByID(ctx, gone)),
		"HPathByID": second(l.HPathByID(ctx, gone)), "FullHPathByID": second(l.FullHPathByID(ctx, gone)),
		"Doc": second(l.Doc(ctx, gone, 10, 0)), "ExportMarkdown": second(l.ExportMarkdown(ctx, gone, Export{})),
		"DocAssets": second(l.DocAssets(ctx, gone)), "DocImages": second(l.DocImages(ctx, gone)),
		"ExportZip": second(l.ExportZip(ctx, gone)),
	} {
		wantKind(t, what+" of nothing", err, Missing)
	}
	if n := len(take(l.RefIDs(ctx, gone))(t)); n != 0 {
		t.Errorf("RefIDs of nothing: %d", n)
	}
}

func second[T any](_ T, err error) error { return err }

func TestLiveInsertedBlocksStandWhereTheyWerePut(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	doc := l.doc("/Insert", "middle")
	middle := l.children(doc)[0]
	order := func() (all []string) {
		t.Helper()
		for _, c := range take(l.ChildBlocks(ctx, doc))(t) {
			all = append(all, c.Content)
		}
		return all
	}
	firstID := func(txs []Tx, err error) ID { t.Helper(); check(t, err); return Ops(txs)[0].ID }

	after := firstID(l.InsertBlock(ctx, Markdown, "after", Anchor{Previous: middle}))
	firstID(l.InsertBlock(ctx, Markdown, "before", Anchor{Next: middle}))
	firstID(l.InsertBlock(ctx, Markdown, "first", Anchor{Parent: doc}))
	firstID(l.PrependBlock(ctx, doc, Markdown, "zero"))
	firstID(l.AppendBlock(ctx, doc, Markdown, "last\n\nlast2"))
	equal(t, "the order", order(), strings.Fields("zero first before middle after last last2"))
	equal(t, "the answered id", l.markdown(after), "after")

	doc = l.doc("/Batches", "middle")
	middle = l.children(doc)[0]
	firstID(l.InsertBlocks(ctx, []NewBlock{{DataType: Markdown, Data: "i1", Previous: middle}, {DataType: Markdown, Data: "i2", Next: middle}}))
	firstID(l.AppendBlocks(ctx, []NewBlock{{DataType: Markdown, Data: "a1", Parent: doc}, {DataType: Markdown, Data: "a2", Parent: doc}}))
	firstID(l.PrependBlocks(ctx, []NewBlock{{DataType: Markdown, Data: "p1", Parent: doc}}))
	equal(t, "the order of batches", order(), strings.Fields("p1 i2 middle i1 a1 a2"))

	dom := `<div data-node-id="` + string(l.id()) + `" data-type="NodeParagraph" class="p"><div contenteditable="true" spellcheck="false">from dom</div><div class="protyle-attr" contenteditable="false"></div></div>`
	equal(t, "DOM content", l.markdown(firstID(l.AppendBlock(ctx, doc, DOM, dom))), "from dom")

	daily := take(l.CreateDailyNote(ctx, l.nb))(t)
	equal(t, "the same day's note", take(l.CreateDailyNote(ctx, l.nb))(t), daily)
	last := firstID(l.AppendDailyNoteBlock(ctx, l.nb, Markdown, "evening"))
	start := firstID(l.PrependDailyNoteBlock(ctx, l.nb, Markdown, "morning"))
	kids := l.children(daily)
	equal(t, "the daily note's ends", []ID{kids[0], kids[len(kids)-1]}, []ID{start, last})

	gone := l.id()
	_, err := l.InsertBlock(ctx, Markdown, "x", Anchor{Previous: gone})
	wantKind(t, "insert behind nothing", err, Rejected)
	_, err = l.AppendBlock(ctx, middle, Markdown, "x")
	wantKind(t, "append to a paragraph", err, Rejected)
	_, err = l.AppendBlocks(ctx, []NewBlock{{DataType: Markdown, Data: "x", Parent: doc}, {DataType: Markdown, Data: "x", Parent: gone}})
	wantKind(t, "append to nothing", err, Rejected)
	_, err = l.InsertBlock(ctx, Markdown, "x", Anchor{})
	wantKind(t, "no anchor", err, BadArgument)
	_, err = l.AppendBlock(ctx, "not-an-id", Markdown, "x")
	wantKind(t, "a malformed id", err, BadArgument)
	equal(t, "after refusals", len(order()), 7)
}

func TestLiveChangesOfBlocksAreSeenAtOnce(t *testing.T) {
	l := newLive(t)
	ctx, p := l.ctx, l.page("/Change")
	gone := l.id()

	take(l.UpdateBlock(ctx, p.p1, Markdown, "new text"))(t)
	equal(t, "an updated block", l.markdown(p.p1), "new text")
	take(l.UpdateBlocks(ctx, []BlockUpdate{{p.p1, Markdown, "newer"}, {p.code, Markdown, "```\ny\n```"}}))(t)
	equal(t, "updated blocks", l.markdown(p.p1)+l.markdown(p.code), "newer```\ny\n```")
	wantKind(t, "update of nothing", second(l.UpdateBlock(ctx, gone, Markdown, "x")), Rejected)

	take(l.UpdateTaskMarker(ctx, p.todo, 'X'))(t)
	contains(t, "a done task", l.markdown(p.todo), "[X] do it")
	wantKind(t, "a task marker on a paragraph", second(l.UpdateTaskMarker(ctx, p.p1, 'X')), Rejected)

	check(t, l.SetBlockAttrs(ctx, p.p1, Attrs{"name": "n", "custom-x": "a&b", "memo": "m", "bookmark": ""}))
	check(t, l.SetBlocksAttrs(ctx, []BlockAttrs{{p.p1, Attrs{"memo": ""}}, {p.h1, Attrs{"alias": "al"}}}))
	attrs := take(l.BlocksAttrs(ctx, []ID{p.p1, p.h1}))(t)
	_, memo := attrs[p.p1]["memo"]
	equal(t, "attributes", []any{attrs[p.p1]["name"], attrs[p.p1]["custom-x"], memo, attrs[p.h1]["alias"]}, []any{"n", "a&b", false, "al"})
	wantKind(t, "attributes of nothing", l.SetBlockAttrs(ctx, gone, Attrs{"memo": "m"}), Rejected)
	wantKind(t, "a bad attribute name", l.SetBlockAttrs(ctx, p.p1, Attrs{"bad name": "m"}), Rejected)

	check(t, l.FoldBlock(ctx, p.h2))
	equal(t, "folded", take(l.BlockAttrs(ctx, p.h2))(t)["fold"], "1")
	check(t, l.UnfoldBlock(ctx, p.h2))
	equal(t, "unfolded", take(l.BlockAttrs(ctx, p.h2))(t)["fold"], "")

	check(t, l.MoveBlock(ctx, p.code, Anchor{Previous: p.h1}))
	check(t, l.MoveBlock(ctx, p.math, Anchor{Parent: p.doc}))
	equal(t, "moved blocks", l.children(p.doc)[:4], []ID{p.math, p.h1, p.code, p.p1})
	wantKind(t, "a move before a block", l.MoveBlock(ctx, p.p1, Anchor{Next: p.h1}), BadArgument)

	check(t, l.DeleteBlock(ctx, p.table))
	equal(t, "a deleted block exists", take(l.BlockExists(ctx, p.table))(t), false)
	equal(t, "a deleted block is a child", slices.Contains(l.children(p.doc), p.table), false)
	equal(t, "a deleted block's rows", l.count("blocks", "id = '"+string(p.table)+"'"), int64(0))
	check(t, l.DeleteBlock(ctx, gone))

	take(l.Transactions(ctx, []Tx{{Do: []Op{{Action: "delete", ID: p.code}}}}))(t)
	equal(t, "deleted by a transaction", take(l.BlockExists(ctx, p.code))(t), false)

	doc := l.doc("/Outline", "# A\n\n# B\n\n# C")
	heads := l.children(doc)
	take(l.MoveOutlineHeading(ctx, heads[0], heads[2]))(t)
	equal(t, "a moved heading", l.children(doc), []ID{heads[1], heads[2], heads[0]})
}

func TestLiveReferencesFollowTransferAndSwap(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	defs := l.doc("/Defs", "old def\n\nnew def")
	from, to := l.children(defs)[0], l.children(defs)[1]
	doc := l.doc("/Citing", "")
	keep := l.para(doc, "(("+string(from)+` "keep"))`)
	move := l.para(doc, "(("+string(from)+` "move"))`)
	check(t, l.TransferBlockRef(ctx, from, to, []ID{move}))
	contains(t, "the reference to keep", l.markdown(keep), string(from))
	contains(t, "the moved reference", l.markdown(move), string(to))
	check(t, l.TransferBlockRef(ctx, from, to, nil))
	contains(t, "all references", l.markdown(keep), string(to))

	swap := l.para(doc, "(("+string(from)+` "swap"))`)
	equal(t, "the reference's rows", l.count("refs", "block_id = '"+string(swap)+"'"), int64(1))
	check(t, l.SwapBlockRef(ctx, swap, from, false))
	equal(t, "the place of the reference", slices.Contains(l.children(doc), from), true)
	equal(t, "the place of the text", slices.Contains(l.children(defs), swap), true)
}
