package siyuan

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	id1 ID = "20240102100100-alphadc"
	id2 ID = "20240102110001-block01"
	id3 ID = "20240102110002-block02"
	box ID = "20240101090000-work001"
	av1 ID = "20240102100710-avtasks"
)

// every calls each method of Reader and Writer once, with every optional
// argument given.
func every(w *Writer) map[string]func(context.Context) error {
	type fn = func(context.Context) error
	ids := []ID{id1, id2}
	blocks := []NewBlock{{DataType: Markdown, Data: "x", Parent: id1}}
	now := time.UnixMilli(1_700_000_000_000)
	raw := json.RawMessage(`{}`)
	all := map[string]fn{}
	// do registers a call with a result, try one without.
	try := func(name string, f fn) { all[name] = f }
	do := func(name string, f func(context.Context) (any, error)) {
		all[name] = func(ctx context.Context) error { _, err := f(ctx); return err }
	}

	do("BlockInfo", func(c context.Context) (any, error) { return w.BlockInfo(c, id1) })
	do("BlockExists", func(c context.Context) (any, error) { return w.BlockExists(c, id1) })
	do("BlocksExist", func(c context.Context) (any, error) { return w.BlocksExist(c, ids) })
	do("BlockKramdown", func(c context.Context) (any, error) { return w.BlockKramdown(c, id1, KramdownMarkdown) })
	do("BlockKramdowns", func(c context.Context) (any, error) { return w.BlockKramdowns(c, ids, KramdownTextmark) })
	do("ChildBlocks", func(c context.Context) (any, error) { return w.ChildBlocks(c, id1) })
	do("TailChildBlocks", func(c context.Context) (any, error) { return w.TailChildBlocks(c, id1, 3) })
	do("BlockDOM", func(c context.Context) (any, error) { return w.BlockDOM(c, id1) })
	do("BlockDOMs", func(c context.Context) (any, error) { return w.BlockDOMs(c, ids) })
	do("Breadcrumb", func(c context.Context) (any, error) { return w.Breadcrumb(c, id1) })
	do("BlockTreeInfos", func(c context.Context) (any, error) { return w.BlockTreeInfos(c, ids) })
	do("DocInfo", func(c context.Context) (any, error) { return w.DocInfo(c, id1) })
	do("DocsInfo", func(c context.Context) (any, error) { return w.DocsInfo(c, ids) })
	do("RefIDs", func(c context.Context) (any, error) { return w.RefIDs(c, id1) })
	do("WordCount", func(c context.Context) (any, error) { return w.WordCount(c, ids) })
	do("TreeStat", func(c context.Context) (any, error) { return w.TreeStat(c, id1) })
	do("RecentUpdated", func(c context.Context) (any, error) { return w.RecentUpdated(c) })
	do("HeadingChildren", func(c context.Context) (any, error) { return w.HeadingChildren(c, id2) })
	do("SpinBlockDOM", func(c context.Context) (any, error) { return w.SpinBlockDOM(c, "<div></div>") })
	do("BlockAttrs", func(c context.Context) (any, error) { return w.BlockAttrs(c, id1) })
	do("BlocksAttrs", func(c context.Context) (any, error) { return w.BlocksAttrs(c, ids) })

	do("InsertBlock", func(c context.Context) (any, error) { return w.InsertBlock(c, Markdown, "x", Anchor{Previous: id2}) })
	do("AppendBlock", func(c context.Context) (any, error) { return w.AppendBlock(c, id1, Markdown, "x") })
	do("PrependBlock", func(c context.Context) (any, error) { return w.PrependBlock(c, id1, DOM, "x") })
	do("InsertBlocks", func(c context.Context) (any, error) { return w.InsertBlocks(c, blocks) })
	do("AppendBlocks", func(c context.Context) (any, error) { return w.AppendBlocks(c, blocks) })
	do("PrependBlocks", func(c context.Context) (any, error) { return w.PrependBlocks(c, blocks) })
	do("AppendDailyNoteBlock", func(c context.Context) (any, error) { return w.AppendDailyNoteBlock(c, box, Markdown, "x") })
	do("PrependDailyNoteBlock", func(c context.Context) (any, error) { return w.PrependDailyNoteBlock(c, box, Markdown, "x") })
	do("UpdateBlock", func(c context.Context) (any, error) { return w.UpdateBlock(c, id1, Markdown, "x") })
	do("UpdateBlocks", func(c context.Context) (any, error) {
		return w.UpdateBlocks(c, []BlockUpdate{{ID: id1, DataType: Markdown, Data: "x"}})
	})
	try("DeleteBlock", func(c context.Context) error { return w.DeleteBlock(c, id2) })
	try("MoveBlock", func(c context.Context) error { return w.MoveBlock(c, id2, Anchor{Parent: id1}) })
	do("MoveOutlineHeading", func(c context.Context) (any, error) { return w.MoveOutlineHeading(c, id2, id3) })
	try("FoldBlock", func(c context.Context) error { return w.FoldBlock(c, id2) })
	try("UnfoldBlock", func(c context.Context) error { return w.UnfoldBlock(c, id2) })
	try("TransferBlockRef", func(c context.Context) error { return w.TransferBlockRef(c, id2, id3, ids) })
	try("SwapBlockRef", func(c context.Context) error { return w.SwapBlockRef(c, id2, id3, true) })
	do("UpdateTaskMarker", func(c context.Context) (any, error) { return w.UpdateTaskMarker(c, id2, 'X') })
	try("SetBlockAttrs", func(c context.Context) error { return w.SetBlockAttrs(c, id2, Attrs{"memo": "m"}) })
	try("SetBlocksAttrs", func(c context.Context) error {
		return w.SetBlocksAttrs(c, []BlockAttrs{{ID: id2, Attrs: Attrs{"memo": "m"}}})
	})
	do("Transactions", func(c context.Context) (any, error) {
		return w.Transactions(c, []Tx{{Do: []Op{{Action: "delete", ID: id2}}}})
	})

	do("Notebooks", func(c context.Context) (any, error) { n, _, err := w.Notebooks(c); return n, err })
	do("NotebookConf", func(c context.Context) (any, error) { return w.NotebookConf(c, box) })
	do("NotebookInfo", func(c context.Context) (any, error) { return w.NotebookInfo(c, box) })
	do("Docs", func(c context.Context) (any, error) { return w.Docs(c, box, "/") })
	do("DocsSorted", func(c context.Context) (any, error) { return w.DocsSorted(c, box, "/", 3) })
	do("DocTree", func(c context.Context) (any, error) { return w.DocTree(c, box, "/x.sy") })
	do("IDsByHPath", func(c context.Context) (any, error) { return w.IDsByHPath(c, box, "/Projects") })
	do("PathByID", func(c context.Context) (any, error) { return w.PathByID(c, id1) })
	do("HPathByID", func(c context.Context) (any, error) { return w.HPathByID(c, id1) })
	do("FullHPathByID", func(c context.Context) (any, error) { return w.FullHPathByID(c, id1) })
	do("HPathByPath", func(c context.Context) (any, error) { return w.HPathByPath(c, box, "/x.sy") })
	do("SearchDocs", func(c context.Context) (any, error) { return w.SearchDocs(c, "alpha") })
	do("Doc", func(c context.Context) (any, error) { return w.Doc(c, id1, 10, 0) })
	do("DocCreateSavePath", func(c context.Context) (any, error) { return w.DocCreateSavePath(c, box) })
	do("Outline", func(c context.Context) (any, error) { return w.Outline(c, id1) })
	do("RecentDocs", func(c context.Context) (any, error) { return w.RecentDocs(c, RecentViewed) })

	do("CreateNotebook", func(c context.Context) (any, error) { return w.CreateNotebook(c, "n") })
	try("OpenNotebook", func(c context.Context) error { return w.OpenNotebook(c, box) })
	try("CloseNotebook", func(c context.Context) error { return w.CloseNotebook(c, box) })
	try("RemoveNotebook", func(c context.Context) error { return w.RemoveNotebook(c, box) })
	try("RenameNotebook", func(c context.Context) error { return w.RenameNotebook(c, box, "n") })
	do("SetNotebookConf", func(c context.Context) (any, error) {
		return w.SetNotebookConf(c, box, map[string]any{"sortMode": 6})
	})
	try("SetNotebookIcon", func(c context.Context) error { return w.SetNotebookIcon(c, box, "1f4bc") })
	try("SortNotebooks", func(c context.Context) error { return w.SortNotebooks(c, []ID{box}) })
	do("CreateDoc", func(c context.Context) (any, error) {
		return w.CreateDoc(c, NewDoc{Notebook: box, HPath: "/a", Markdown: "x", ID: id1, ParentID: id2, Tags: "t"})
	})
	do("CreateDocAt", func(c context.Context) (any, error) { return w.CreateDocAt(c, box, "/x.sy", "t", "m", ids) })
	do("CreateDailyNote", func(c context.Context) (any, error) { return w.CreateDailyNote(c, box) })
	try("RenameDoc", func(c context.Context) error { return w.RenameDoc(c, id1, "t") })
	try("MoveDocs", func(c context.Context) error { return w.MoveDocs(c, ids, box) })
	try("RemoveDoc", func(c context.Context) error { return w.RemoveDoc(c, id1) })
	do("DuplicateDoc", func(c context.Context) (any, error) { return w.DuplicateDoc(c, id1) })
	try("ChangeSort", func(c context.Context) error { return w.ChangeSort(c, box, []string{"/x.sy"}) })
	try("DocToHeading", func(c context.Context) error { return w.DocToHeading(c, id1, id2, true) })
	try("HeadingToDoc", func(c context.Context) error { return w.HeadingToDoc(c, id2, box, "/") })
	try("ListItemToDoc", func(c context.Context) error { return w.ListItemToDoc(c, id2, box, "/") })

	search := Search{Query: "q", Paths: []string{string(box)}, Types: map[string]bool{"heading": true}}
	do("SQL", func(c context.Context) (any, error) { return w.SQL(c, "SELECT 1 AS x") })
	try("Flush", w.Flush)
	do("FullText", func(c context.Context) (any, error) { return w.FullText(c, search) })
	do("SearchRef", func(c context.Context) (any, error) { return w.SearchRef(c, id2, id1, "k", 512) })
	do("SearchTags", func(c context.Context) (any, error) { return w.SearchTags(c, "k") })
	do("SearchAssets", func(c context.Context) (any, error) { return w.SearchAssets(c, "k", nil) })
	do("InvalidRefs", func(c context.Context) (any, error) { return w.InvalidRefs(c, 1, 32) })
	do("EmbedBlocks", func(c context.Context) (any, error) { return w.EmbedBlocks(c, id2, ids) })
	do("SearchAssetContent", func(c context.Context) (any, error) { return w.SearchAssetContent(c, search) })
	do("AssetContent", func(c context.Context) (any, error) {
		_, err := w.AssetContent(c, id1, "q", SearchKeyword)
		if KindOf(err) == Missing { // the recorded workspace has none
			err = nil
		}
		return nil, err
	})
	do("EmbeddingModel", func(c context.Context) (any, error) { return w.EmbeddingModel(c) })
	do("Semantic", func(c context.Context) (any, error) { return w.Semantic(c, search) })
	do("Backlinks", func(c context.Context) (any, error) { return w.Backlinks(c, id1, "", "", true) })
	do("BacklinkDoc", func(c context.Context) (any, error) { return w.BacklinkDoc(c, id1, id2, "", true) })
	do("BackmentionDoc", func(c context.Context) (any, error) { return w.BackmentionDoc(c, id1, id2, "") })
	do("Tags", func(c context.Context) (any, error) { return w.Tags(c) })
	do("Bookmarks", func(c context.Context) (any, error) { return w.Bookmarks(c) })
	do("BookmarkLabels", func(c context.Context) (any, error) { return w.BookmarkLabels(c) })
	do("Graph", func(c context.Context) (any, error) { return w.Graph(c, "") })
	do("LocalGraph", func(c context.Context) (any, error) { return w.LocalGraph(c, id1, "") })
	try("FindReplace", func(c context.Context) error {
		return w.FindReplace(c, Replacement{Find: "a", Replace: "b", IDs: ids, Kinds: map[string]bool{"text": true}})
	})
	do("SearchEmbed", func(c context.Context) (any, error) { return w.SearchEmbed(c, id2, "SELECT 1", nil) })
	try("RenameTag", func(c context.Context) error { return w.RenameTag(c, "a", "b") })
	try("RemoveTag", func(c context.Context) error { return w.RemoveTag(c, "a") })
	try("RenameBookmark", func(c context.Context) error { return w.RenameBookmark(c, "a", "b") })
	try("RemoveBookmark", func(c context.Context) error { return w.RemoveBookmark(c, "a") })

	cell := Value{Text: &ValueText{Content: "x"}}
	do("RenderAttributeView", func(c context.Context) (any, error) {
		return w.RenderAttributeView(c, Render{ID: av1, Block: id2, View: id3, Page: 2, Size: 5, Query: "q"})
	})
	do("AttributeView", func(c context.Context) (any, error) { return w.AttributeView(c, av1) })
	do("Memberships", func(c context.Context) (any, error) { return w.Memberships(c, id2) })
	do("Item", func(c context.Context) (any, error) { return w.Item(c, av1, id3) })
	do("Keys", func(c context.Context) (any, error) { return w.Keys(c, av1) })
	do("PrimaryValues", func(c context.Context) (any, error) { return w.PrimaryValues(c, av1, 1, 16, "") })
	do("MirrorBlocks", func(c context.Context) (any, error) { return w.MirrorBlocks(c, av1) })
	do("AvBacklinks", func(c context.Context) (any, error) { return w.AvBacklinks(c, av1, id3) })
	do("SearchAttributeViews", func(c context.Context) (any, error) { return w.SearchAttributeViews(c, "t") })
	do("UnusedAttributeViews", func(c context.Context) (any, error) { return w.UnusedAttributeViews(c) })
	do("FilterSort", func(c context.Context) (any, error) { return w.FilterSort(c, av1, id2) })
	do("ItemsByBlocks", func(c context.Context) (any, error) { return w.ItemsByBlocks(c, av1, ids) })
	do("BlocksByItems", func(c context.Context) (any, error) { return w.BlocksByItems(c, av1, ids) })
	try("AddRows", func(c context.Context) error {
		return w.AddRows(c, av1, RowsAt{Block: id2}, []AvSource{{ID: id2, ItemID: id3}})
	})
	try("AddDetachedRows", func(c context.Context) error { return w.AddDetachedRows(c, av1, [][]Value{{cell}}) })
	try("RemoveRows", func(c context.Context) error { return w.RemoveRows(c, av1, ids) })
	try("ReplaceRows", func(c context.Context) error { return w.ReplaceRows(c, av1, false, []map[ID]ID{{id2: id3}}) })
	try("AddKey", func(c context.Context) error { return w.AddKey(c, av1, id3, "n", "text", "", "") })
	try("RemoveKey", func(c context.Context) error { return w.RemoveKey(c, av1, id3) })
	try("SortKey", func(c context.Context) error { return w.SortKey(c, av1, id3, "") })
	do("SetCell", func(c context.Context) (any, error) { return w.SetCell(c, av1, id2, id3, cell) })
	try("SetCells", func(c context.Context) error { return w.SetCells(c, av1, []CellUpdate{{id2, id3, cell}}) })
	do("DuplicateAttributeView", func(c context.Context) (any, error) { return w.DuplicateAttributeView(c, av1) })
	do("CreateAttributeView", func(c context.Context) (any, error) { return w.CreateAttributeView(c, av1, id2) })
	do("CreateItem", func(c context.Context) (any, error) {
		return w.CreateItem(c, av1, ItemAt{Block: id2, View: id3, Template: id1})
	})
	try("SetFilters", func(c context.Context) error { return w.SetFilters(c, av1, id2, nil) })
	try("SetSorts", func(c context.Context) error { return w.SetSorts(c, av1, id2, []AvSort{{id3, "ASC"}}) })
	do("SetGroup", func(c context.Context) (any, error) { return w.SetGroup(c, av1, id2, AvGroup{}) })
	do("SetLayout", func(c context.Context) (any, error) { return w.SetLayout(c, av1, id2, "table") })
	try("SetBlockView", func(c context.Context) error { return w.SetBlockView(c, id2, av1, id3) })
	try("RemoveUnusedAttributeView", func(c context.Context) error { return w.RemoveUnusedAttributeView(c, av1) })

	do("Decks", func(c context.Context) (any, error) { return w.Decks(c) })
	do("Cards", func(c context.Context) (any, error) { return w.Cards(c, "", 1, 20) })
	do("TreeCards", func(c context.Context) (any, error) { return w.TreeCards(c, id1, 1) })
	do("NotebookCards", func(c context.Context) (any, error) { return w.NotebookCards(c, box, 1) })
	do("CardsByBlocks", func(c context.Context) (any, error) { return w.CardsByBlocks(c, ids) })
	do("DueCards", func(c context.Context) (any, error) { return w.DueCards(c, "") })
	do("TreeDueCards", func(c context.Context) (any, error) { return w.TreeDueCards(c, id1) })
	do("NotebookDueCards", func(c context.Context) (any, error) { return w.NotebookDueCards(c, box) })
	do("CreateDeck", func(c context.Context) (any, error) { return w.CreateDeck(c, "d") })
	try("RenameDeck", func(c context.Context) error { return w.RenameDeck(c, BuiltinDeck, "d") })
	try("RemoveDeck", func(c context.Context) error { return w.RemoveDeck(c, id1) })
	do("AddCards", func(c context.Context) (any, error) { return w.AddCards(c, BuiltinDeck, ids) })
	try("RemoveCards", func(c context.Context) error { return w.RemoveCards(c, "", ids) })
	try("ReviewCard", func(c context.Context) error { return w.ReviewCard(c, BuiltinDeck, id1, Good) })
	try("SkipCard", func(c context.Context) error { return w.SkipCard(c, BuiltinDeck, id1) })
	try("SetCardsDue", func(c context.Context) error { return w.SetCardsDue(c, []CardDue{{id1, "20260101000000"}}) })
	try("ResetCards", func(c context.Context) error { return w.ResetCards(c, "deck", BuiltinDeck, BuiltinDeck, ids) })

	history := HistoryQuery{Query: "q", Notebook: box}
	do("SearchHistory", func(c context.Context) (any, error) { return w.SearchHistory(c, history, 1) })
	do("HistoryItems", func(c context.Context) (any, error) { return w.HistoryItems(c, "1796043104", history) })
	do("HistoryDoc", func(c context.Context) (any, error) { return w.HistoryDoc(c, "/history/x.sy") })
	do("Snapshots", func(c context.Context) (any, error) { return w.Snapshots(c, 1) })
	do("TaggedSnapshots", func(c context.Context) (any, error) { return w.TaggedSnapshots(c) })
	do("DiffSnapshots", func(c context.Context) (any, error) { return w.DiffSnapshots(c, "a", "b") })
	do("OpenRepoFile", func(c context.Context) (any, error) { return w.OpenRepoFile(c, "a") })
	do("SearchRepo", func(c context.Context) (any, error) { return w.SearchRepo(c, "k", 1) })
	try("CreateDocHistory", func(c context.Context) error { return w.CreateDocHistory(c, id1) })
	try("RollbackDoc", func(c context.Context) error { return w.RollbackDoc(c, "/history/x.sy") })
	try("CreateSnapshot", func(c context.Context) error { return w.CreateSnapshot(c, "m") })
	try("TagSnapshot", func(c context.Context) error { return w.TagSnapshot(c, "a", "n") })
	try("RemoveSnapshotTag", func(c context.Context) error { return w.RemoveSnapshotTag(c, "n") })
	try("RollbackRepoFile", func(c context.Context) error { return w.RollbackRepoFile(c, "a") })

	do("GetFile", func(c context.Context) (any, error) { return w.GetFile(c, "/data/x") })
	do("Download", func(c context.Context) (any, error) { return w.Download(c, "/export/x y.zip") })
	do("ReadDir", func(c context.Context) (any, error) { return w.ReadDir(c, "/data") })
	do("DocAssets", func(c context.Context) (any, error) { return w.DocAssets(c, id1) })
	do("DocImages", func(c context.Context) (any, error) { return w.DocImages(c, id1) })
	do("UnusedAssets", func(c context.Context) (any, error) { return w.UnusedAssets(c) })
	do("ImageOCR", func(c context.Context) (any, error) { return w.ImageOCR(c, "assets/x.png") })
	do("StatAsset", func(c context.Context) (any, error) { return w.StatAsset(c, "assets/x.png") })
	do("ExportMarkdown", func(c context.Context) (any, error) { return w.ExportMarkdown(c, id1, Export{RefMode: 3}) })
	do("ExportPreview", func(c context.Context) (any, error) { return w.ExportPreview(c, id1) })
	do("ExportResources", func(c context.Context) (any, error) { return w.ExportResources(c, []string{"/data/x"}, "n") })
	do("ExportZip", func(c context.Context) (any, error) { return w.ExportZip(c, id1) })
	try("PutFile", func(c context.Context) error { return w.PutFile(c, "/data/x", []byte("x"), now) })
	try("PutFileFrom", func(c context.Context) error { return w.PutFileFrom(c, "/data/x", strings.NewReader("x"), 1, now) })
	do("OpenFile", func(c context.Context) (any, error) {
		f, err := w.OpenFile(c, "/data/x")
		if err == nil {
			err = f.Close()
		}
		return f, err
	})
	try("MakeDir", func(c context.Context) error { return w.MakeDir(c, "/data/x", now) })
	try("RemoveFile", func(c context.Context) error { return w.RemoveFile(c, "/data/x") })
	try("RenameFile", func(c context.Context) error { return w.RenameFile(c, "/data/x", "/data/y") })
	do("UploadAsset", func(c context.Context) (any, error) { return w.UploadAsset(c, "/assets/", "a.txt", []byte("x")) })
	do("RenameAsset", func(c context.Context) (any, error) { return w.RenameAsset(c, "assets/a", "b") })
	try("SetImageOCR", func(c context.Context) error { return w.SetImageOCR(c, "assets/a", "t") })
	try("RemoveUnusedAsset", func(c context.Context) error { return w.RemoveUnusedAsset(c, "assets/a") })
	do("RemoveUnusedAssets", func(c context.Context) (any, error) { return w.RemoveUnusedAssets(c) })
	try("Zip", func(c context.Context) error { return w.Zip(c, "/data/x", "/data/x.zip") })
	try("Unzip", func(c context.Context) error { return w.Unzip(c, "/data/x.zip", "/data/x") })

	do("CurrentTime", func(c context.Context) (any, error) { return w.CurrentTime(c) })
	do("RawConf", func(c context.Context) (any, error) { return w.RawConf(c) })
	do("WorkspaceInfo", func(c context.Context) (any, error) { return w.WorkspaceInfo(c) })
	do("Network", func(c context.Context) (any, error) { return w.Network(c) })
	do("SyncInfo", func(c context.Context) (any, error) { return w.SyncInfo(c) })
	do("Templates", func(c context.Context) (any, error) { return w.Templates(c, "") })
	do("RenderTemplate", func(c context.Context) (any, error) { return w.RenderTemplate(c, "/w/data/templates/x.md", id1) })
	do("RenderSprig", func(c context.Context) (any, error) { return w.RenderSprig(c, "{{ now }}") })
	do("Snippets", func(c context.Context) (any, error) { return w.Snippets(c, "all") })
	do("PushMessage", func(c context.Context) (any, error) { return w.PushMessage(c, "m", time.Second) })
	do("PushError", func(c context.Context) (any, error) { return w.PushError(c, "m", time.Second) })
	try("ReloadDoc", func(c context.Context) error { return w.ReloadDoc(c, id1) })
	try("ReloadAttributeView", func(c context.Context) error { return w.ReloadAttributeView(c, av1) })
	try("ReloadFiletree", w.ReloadFiletree)
	try("ReloadTags", w.ReloadTags)
	try("SaveTemplate", func(c context.Context) error { return w.SaveTemplate(c, id1, "n", true) })
	try("RemoveTemplate", func(c context.Context) error { return w.RemoveTemplate(c, "/w/x.md") })
	try("TouchRecentDoc", func(c context.Context) error { return w.TouchRecentDoc(c, id1) })

	do("InstalledPackages", func(c context.Context) (any, error) { return w.InstalledPackages(c, PackagePlugin, "") })
	do("BazaarPackages", func(c context.Context) (any, error) { return w.BazaarPackages(c, PackagePlugin, "") })
	do("PackageReadme", func(c context.Context) (any, error) { return w.PackageReadme(c, "plugins", "u", "h") })
	try("InstallPlugin", func(c context.Context) error { return w.InstallPlugin(c, "n", "u", "h") })
	try("UninstallPlugin", func(c context.Context) error { return w.UninstallPlugin(c, "n") })
	try("EnablePlugin", func(c context.Context) error { return w.EnablePlugin(c, "n", true) })
	try("SetSnippets", func(c context.Context) error { return w.SetSnippets(c, nil) })
	try("RemoveSnippet", func(c context.Context) error { return w.RemoveSnippet(c, id1) })
	try("SetSection", func(c context.Context) error { return w.SetSection(c, SectionSearch, raw) })
	try("SetKeymap", func(c context.Context) error { return w.SetKeymap(c, raw) })
	try("Sync", func(c context.Context) error { return w.Sync(c, true) })
	return all
}

// TestEveryMethodSendsACompleteBodyAndReadsTheRecordedAnswer holds each method
// against what API.md and the recordings say of its endpoint: a handler that
// misses a field panics inside and answers a success that did nothing.
func TestEveryMethodSendsACompleteBodyAndReadsTheRecordedAnswer(t *testing.T) {
	t.Parallel()
	answers := load[map[string]struct{ Answer json.RawMessage }](t, "answers.json")
	fields := load[map[string]struct{ Must, Known []string }](t, "fields.json")
	rendered := answers["av/renderAttributeView"]
	answers["av/setAttrViewGroup"], answers["av/changeAttrViewLayout"] = rendered, rendered
	answers["block/checkBlockExist"] = struct{ Answer json.RawMessage }{json.RawMessage(`{"code":0,"msg":"","data":true}`)}

	for name := range every(&Writer{}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKernel(t, func(w http.ResponseWriter, path string) {
				a, ok := answers[path]
				if !ok {
					sendData(w, map[string]any{})
					return
				}
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				_, _ = w.Write(a.Answer)
			})
			if err := every(newClient(t, k.URL).Writer())[name](t.Context()); err != nil {
				t.Errorf("the recorded answer is not read: %v (%+v)", err, unwrapAll(err))
			}
			for _, r := range k.requests() {
				if name == "Download" {
					continue
				}
				want, ok := fields[r.path]
				if !ok {
					t.Fatalf("endpoint %q is not in API.md", r.path)
				}
				for _, f := range want.Must {
					if v, ok := r.fields[f]; !ok || string(v) == "null" {
						t.Errorf("%s: field %s is not sent", r.path, f)
					}
				}
				for f := range r.fields {
					if !slices.Contains(want.Known, f) {
						t.Errorf("%s: field %s is not known", r.path, f)
					}
				}
				if r.auth != "Token "+testToken {
					t.Errorf("%s: authorization %q", r.path, r.auth)
				}
			}
			if len(k.requests()) == 0 {
				t.Error("nothing was sent")
			}
		})
	}
}

func unwrapAll(err error) []string {
	var all []string
	for e := err; e != nil; {
		all = append(all, e.Error())
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			break
		}
		e = u.Unwrap()
	}
	return all
}

func TestTheMethodTableHasEveryMethod(t *testing.T) {
	t.Parallel()
	table := every(&Writer{})
	typ := reflect.TypeFor[*Writer]()
	mcp := 0 // they speak another protocol; mcp_test.go has them
	for i := range typ.NumMethod() {
		name := typ.Method(i).Name
		if strings.HasPrefix(name, "MCP") {
			mcp++
		} else if table[name] == nil {
			t.Errorf("method %s is not in the table", name)
		}
	}
	if len(table)+mcp != typ.NumMethod() {
		t.Errorf("table has %d entries for %d methods", len(table), typ.NumMethod())
	}
}

func TestNoWritingEndpointIsAReaderMethod(t *testing.T) {
	t.Parallel()
	// Verbs of the API that change something. flushTransaction and export only
	// touch queues and temporary files.
	verbs := []string{"set", "create", "insert", "append", "prepend", "update", "delete", "move", "remove",
		"rename", "add", "put", "rollback", "push", "reload", "install", "duplicate", "change", "transfer"}
	k := newKernel(t, func(w http.ResponseWriter, _ string) { sendData(w, nil) })
	w := newClient(t, k.URL).Writer()
	readers := reflect.TypeFor[*Reader]()
	for name, call := range every(w) {
		if _, ok := readers.MethodByName(name); !ok {
			continue
		}
		_ = call(t.Context())
	}
	for _, path := range k.paths() {
		_, verb, _ := strings.Cut(path, "/")
		for _, v := range verbs {
			if strings.HasPrefix(verb, v) {
				t.Errorf("a Reader method calls %s", path)
			}
		}
	}
}
