package siyuan

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLiveDocumentsAreWhereTheyWerePut(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	top := l.doc("/Top", "# Head\n\nunder head\n\n- item one\n- item two")
	sub := l.doc("/Top/Sub", "sub text")
	other := l.doc("/Other", "other")
	gone := l.id()

	path := "/" + string(top) + "/" + string(sub) + ".sy"
	equal(t, "PathByID", take(l.PathByID(ctx, sub))(t), Location{Notebook: l.nb, Path: path})
	equal(t, "HPathByID", take(l.HPathByID(ctx, sub))(t), "/Top/Sub")
	equal(t, "FullHPathByID", take(l.FullHPathByID(ctx, sub))(t), liveName+"/Top/Sub")
	equal(t, "HPathByPath", take(l.HPathByPath(ctx, l.nb, path))(t), "/Top/Sub")
	equal(t, "IDsByHPath", take(l.IDsByHPath(ctx, l.nb, "/Top/Sub"))(t), []ID{sub})
	equal(t, "IDsByHPath of nothing", len(take(l.IDsByHPath(ctx, l.nb, "/top/sub"))(t)), 0)

	titles := func(files []DocFile) (all []string) {
		for _, f := range files {
			all = append(all, f.Name)
		}
		return all
	}
	equal(t, "DocsSorted by name", titles(take(l.DocsSorted(ctx, l.nb, "/", 0))(t)), []string{"Other", "Top"})
	equal(t, "DocsSorted, descending", titles(take(l.DocsSorted(ctx, l.nb, "/", 1))(t)), []string{"Top", "Other"})
	docs := take(l.Docs(ctx, l.nb, "/"))(t)
	i := slices.IndexFunc(docs, func(f DocFile) bool { return f.ID == top })
	equal(t, "Docs", []any{len(docs), docs[i].SubFileCount, docs[i].Path}, []any{2, 1, "/" + string(top) + ".sy"})
	equal(t, "Docs below", titles(take(l.Docs(ctx, l.nb, docs[i].Path))(t)), []string{"Sub"})
	equal(t, "DocTree", take(l.DocTree(ctx, l.nb, docs[i].Path))(t), []DocNode{{ID: sub}})
	wantKind(t, "DocTree of everything", second(l.DocTree(ctx, l.nb, "/")), Rejected)

	page := take(l.Doc(ctx, top, 100, 0))(t)
	equal(t, "Doc", []any{page.ID, page.RootID, page.Box, page.Type}, []any{top, top, l.nb, "NodeDocument"})
	equal(t, "the end of Doc", take(l.Doc(ctx, top, 100, 4))(t).EOF, true)
	contains(t, "Doc's content", page.Content, "under head", "item two")
	equal(t, "DocCreateSavePath", take(l.DocCreateSavePath(ctx, l.nb))(t).Box, string(l.nb))
	hits := take(l.SearchDocs(ctx, "Sub"))(t)
	if !slices.ContainsFunc(hits, func(h DocHit) bool {
		return h.Box == l.nb && h.Path == path && h.HPath == liveName+"/Top/Sub"
	}) {
		t.Errorf("SearchDocs does not find the document: %+v", hits)
	}

	check(t, l.ChangeSort(ctx, l.nb, []string{"/" + string(top) + ".sy", "/" + string(other) + ".sy"}))
	equal(t, "manual order", titles(take(l.DocsSorted(ctx, l.nb, "/", 6))(t)), []string{"Top", "Other"})

	check(t, l.RenameDoc(ctx, sub, "A/B"))
	equal(t, "a renamed document", take(l.HPathByID(ctx, sub))(t), "/Top/AB")
	equal(t, "its title", take(l.BlockAttrs(ctx, sub))(t)["title"], "AB")
	equal(t, "its row", l.count("blocks", "id = '"+string(sub)+"' AND hpath = '/Top/AB'"), int64(1))

	check(t, l.MoveDocs(ctx, []ID{sub}, other))
	equal(t, "a moved document", take(l.HPathByID(ctx, sub))(t), "/Other/AB")
	check(t, l.MoveDocs(ctx, []ID{sub}, l.nb))
	equal(t, "moved to the top", take(l.HPathByID(ctx, sub))(t), "/AB")

	twin := take(l.DuplicateDoc(ctx, sub))(t)
	equal(t, "the copy's notebook", twin.Notebook, l.nb)
	equal(t, "the copy's text", l.markdown(l.children(twin.ID)[0]), "sub text")

	at := l.id()
	equal(t, "CreateDocAt", take(l.CreateDocAt(ctx, l.nb, "/"+string(top)+"/"+string(at)+".sy", "At/it", "body", nil))(t), at)
	equal(t, "its place", take(l.HPathByID(ctx, at))(t), "/Top/Atit")
	below := take(l.CreateDoc(ctx, NewDoc{Notebook: l.nb, HPath: "/Top/Atit/Below", Markdown: "x", ParentID: at, Tags: "t1,t2"}))(t)
	equal(t, "a document below another", take(l.HPathByID(ctx, below))(t), "/Top/Atit/Below")
	equal(t, "its tags", take(l.BlockAttrs(ctx, below))(t)["tags"], "t1,t2")
	_, err := l.CreateDoc(ctx, NewDoc{Notebook: l.nb, HPath: "/Other", ID: other})
	wantKind(t, "the same id again", err, Rejected)

	kids := take(l.ChildBlocks(ctx, top))(t)
	head, item := kids[0].ID, l.children(kids[2].ID)[0]
	check(t, l.ListItemToDoc(ctx, item, l.nb, "/"))
	equal(t, "an item as a document", take(l.PathByID(ctx, item))(t).Path, "/"+string(item)+".sy")
	check(t, l.HeadingToDoc(ctx, head, l.nb, "/"+string(other)+".sy"))
	equal(t, "a heading as a document", take(l.HPathByID(ctx, head))(t), "/Other/Head")
	check(t, l.DocToHeading(ctx, head, l.children(other)[0], true))
	info := take(l.BlockInfo(ctx, head))(t)
	equal(t, "a document as a heading", info.RootID, other)
	equal(t, "its type", take(l.BlockTreeInfos(ctx, []ID{head}))(t)[head].Type, "NodeHeading")

	check(t, l.RemoveDoc(ctx, top))
	for _, id := range []ID{top, at, below} {
		equal(t, "a removed document exists", take(l.BlockExists(ctx, id))(t), false)
	}
	eventually(ctx, t, "a removed document's rows are gone", func() bool {
		return l.count("blocks", "root_id = '"+string(top)+"'") == 0
	})
	wantKind(t, "a removed document", second(l.PathByID(ctx, top)), Missing)
	wantKind(t, "renaming nothing", l.RenameDoc(ctx, gone, "x"), Rejected)

	check(t, l.TouchRecentDoc(ctx, other))
	for _, by := range []RecentOrder{RecentViewed, RecentOpened, RecentClosed, RecentUpdatedOrder} {
		recent := take(l.RecentDocs(ctx, by))(t)
		found := slices.ContainsFunc(recent, func(d RecentDoc) bool { return d.RootID == other && d.Title == "Other" })
		if by != RecentOpened && by != RecentClosed && !found {
			t.Errorf("RecentDocs by %s has no document just touched", by)
		}
	}
}

func TestLiveNotebooksKeepTheirSettings(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	doc := l.doc("/Doc", "text")
	find := func() Notebook {
		t.Helper()
		all, _, err := l.Notebooks(ctx)
		check(t, err)
		i := slices.IndexFunc(all, func(n Notebook) bool { return n.ID == l.nb })
		if i < 0 {
			t.Fatal("the notebook is not in the list")
		}
		return all[i]
	}
	equal(t, "the name", find().Name, liveName)
	check(t, l.RenameNotebook(ctx, l.nb, liveName+"-renamed"))
	check(t, l.SetNotebookIcon(ctx, l.nb, "1f4bc"))
	conf := take(l.SetNotebookConf(ctx, l.nb, map[string]any{"sortMode": 6, "dailyNoteSavePath": "/d/{{now | date \"2006\"}}"}))(t)
	equal(t, "the settings", []any{conf.Name, conf.Icon, conf.SortMode, conf.DailyNoteSavePath},
		[]any{liveName + "-renamed", "1f4bc", 6, "/d/{{now | date \"2006\"}}"})
	equal(t, "the settings, read", take(l.NotebookConf(ctx, l.nb))(t), conf)
	equal(t, "the list", []any{find().Name, find().Icon, find().SortMode}, []any{conf.Name, "1f4bc", 6})
	daily := take(l.CreateDailyNote(ctx, l.nb))(t)
	equal(t, "the daily note", take(l.HPathByID(ctx, daily))(t), "/d/"+time.Now().Format("2006"))

	info := take(l.NotebookInfo(ctx, l.nb))(t)
	const want = 3 // Doc, d and the daily note
	equal(t, "NotebookInfo", []any{info.ID, info.Name, info.DocCount, info.Size > 0}, []any{l.nb, conf.Name, want, true})

	gone := l.id()
	wantKind(t, "settings of nothing", second(l.NotebookConf(ctx, gone)), Missing)
	wantKind(t, "info of nothing", second(l.NotebookInfo(ctx, gone)), Missing)
	wantKind(t, "documents of nothing", second(l.Docs(ctx, gone, "/")), Missing)
	wantKind(t, "an icon for nothing", l.SetNotebookIcon(ctx, gone, "1f4bc"), Missing)
	wantKind(t, "opening nothing", l.OpenNotebook(ctx, gone), Rejected)
	wantKind(t, "a long name", l.RenameNotebook(ctx, l.nb, strings.Repeat("x", 513)), Rejected)
	check(t, l.CloseNotebook(ctx, gone))

	check(t, l.CloseNotebook(ctx, l.nb))
	equal(t, "closed", find().Closed, true)
	equal(t, "settings of a closed notebook", take(l.NotebookConf(ctx, l.nb))(t).Closed, true)
	wantKind(t, "info of a closed notebook", second(l.NotebookInfo(ctx, l.nb)), Rejected)
	wantKind(t, "documents of a closed notebook", second(l.Docs(ctx, l.nb, "/")), Rejected)
	wantKind(t, "renaming a closed notebook", l.RenameNotebook(ctx, l.nb, "x"), Rejected)
	_, err := l.CreateDoc(ctx, NewDoc{Notebook: l.nb, HPath: "/x"})
	wantKind(t, "a document in a closed notebook", err, Rejected)
	eventually(ctx, t, "the rows of a closed notebook are gone", func() bool {
		return l.count("blocks", "box = '"+string(l.nb)+"'") == 0
	})
	equal(t, "a closed notebook's block exists", take(l.BlockExists(ctx, doc))(t), false)
	for what, err := range map[string]error{
		"BlockInfo": second(l.BlockInfo(ctx, doc)), "BlockAttrs": second(l.BlockAttrs(ctx, doc)),
		"BlockKramdown": second(l.BlockKramdown(ctx, doc, KramdownMarkdown)), "PathByID": second(l.PathByID(ctx, doc)),
	} {
		wantKind(t, what+" in a closed notebook", err, Missing)
	}
	check(t, l.OpenNotebook(ctx, l.nb))
	equal(t, "open again", find().Closed, false)
	eventually(ctx, t, "the rows of an opened notebook are back", func() bool {
		return l.count("blocks", "id = '"+string(doc)+"'") == 1
	})
}

func TestLiveSidebarKeepsItsOrder(t *testing.T) {
	scratch(t)
	l := newLive(t)
	ids := func() (all []ID) {
		list, _, err := l.Notebooks(l.ctx)
		check(t, err)
		for _, n := range list {
			all = append(all, n.ID)
		}
		return all
	}
	before := ids()
	want := slices.Clone(before)
	slices.Reverse(want)
	check(t, l.SortNotebooks(l.ctx, want))
	equal(t, "the order", ids(), want)
	check(t, l.SortNotebooks(l.ctx, before))
	equal(t, "the order before", ids(), before)
}
