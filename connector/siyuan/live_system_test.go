package siyuan

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLiveKernelSaysWhoItIs(t *testing.T) {
	c := liveClient(t)
	ctx, r := t.Context(), c.Reader()
	version := take(c.Version(ctx))(t)
	equal(t, "ready", take(c.BootProgress(ctx))(t).Ready(), true)
	id := take(c.Identity(ctx))(t)
	equal(t, "Identity", []any{id.Version, len(id.System), len(id.Workspace), id.ReadOnly}, []any{version, 32, 32, false})
	equal(t, "Identity again", take(c.Identity(ctx))(t), id)
	equal(t, "WorkspaceInfo", take(r.WorkspaceInfo(ctx))(t).Version, version)
	_, boxDocs, err := r.Notebooks(ctx)
	check(t, err)
	equal(t, "BoxDocs", id.BoxDocs, boxDocs)
	now := take(r.CurrentTime(ctx))(t)
	if d := time.Since(now); d < -time.Hour || d > time.Hour {
		t.Errorf("the kernel's clock is off by %v", d)
	}
	raw := take(r.RawConf(ctx))(t)
	contains(t, "RawConf", string(raw), `"kernelVersion"`)
	check(t, second(r.Network(ctx)))
	check(t, second(r.SyncInfo(ctx)))
}

func TestLiveErrorsOfTheConnectionHaveTheirKind(t *testing.T) {
	wrong := liveClient(t, func(c *Config) { c.Token = NewToken("wrong") })
	_, _, err := wrong.Reader().Notebooks(t.Context())
	wantKind(t, "a wrong token", err, Unauthorized)
	wantKind(t, "a write with a wrong token", wrong.Writer().RenameNotebook(t.Context(), BuiltinDeck, "x"), Unauthorized)
	none := liveClient(t, func(c *Config) { c.Token = Token{} })
	_, err = none.Identity(t.Context())
	wantKind(t, "no token", err, Unauthorized)
	check(t, second(none.Version(t.Context())))
	nobody := liveClient(t, func(c *Config) { c.BaseURL, c.Retry.Attempts = "http://127.0.0.1:1", 1 })
	_, err = nobody.Version(t.Context())
	wantKind(t, "no kernel", err, Offline)
	small := liveClient(t, func(c *Config) { c.MaxResponseBytes = 100 })
	wantKind(t, "a big answer", second(small.Reader().RawConf(t.Context())), TooLarge)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	wantKind(t, "a canceled call", second(small.Version(canceled)), Canceled)
}

func TestLiveTemplatesAreSavedAndRendered(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	name := liveName + "-" + string(l.id())[15:]
	doc := l.doc("/Template", "from template .action{ .title }")
	check(t, l.SaveTemplate(ctx, doc, name, false))
	wantKind(t, "saving it again", l.SaveTemplate(ctx, doc, name, false), Rejected)
	check(t, l.SaveTemplate(ctx, doc, name, true))
	found := take(l.Templates(ctx, name))(t)
	equal(t, "Templates", len(found), 1)
	contains(t, "its path", found[0].Path, name+".md", take(l.WorkspaceInfo(ctx))(t).Dir)
	t.Cleanup(func() { _ = l.RemoveTemplate(context.Background(), found[0].Path) })
	contains(t, "RenderTemplate", take(l.RenderTemplate(ctx, found[0].Path, doc))(t), "from template Template")
	wantKind(t, "rendering nothing", second(l.RenderTemplate(ctx, found[0].Path+"x", doc)), Rejected)
	equal(t, "RenderSprig", take(l.RenderSprig(ctx, `/a/{{ "b" | upper }}`))(t), "/a/B")
	wantKind(t, "a broken template", second(l.RenderSprig(ctx, "{{ nosuch }}")), Rejected)
	check(t, l.RemoveTemplate(ctx, found[0].Path))
	equal(t, "a removed template", len(take(l.Templates(ctx, name))(t)), 0)
	check(t, l.RemoveTemplate(ctx, found[0].Path))
}

func TestLiveMessagesAndReloadsAreAccepted(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	doc := l.doc("/Reload", "x")
	for what, err := range map[string]error{
		"PushMessage":         second(l.PushMessage(ctx, liveName, time.Second)),
		"PushError":           second(l.PushError(ctx, liveName, time.Second)),
		"ReloadDoc":           l.ReloadDoc(ctx, doc),
		"ReloadAttributeView": l.ReloadAttributeView(ctx, l.id()),
		"ReloadFiletree":      l.ReloadFiletree(ctx),
		"ReloadTags":          l.ReloadTags(ctx),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantKind(t, "no message", second(l.PushMessage(ctx, "", time.Second)), BadArgument)
}

func TestLiveHistoryBringsADocumentBack(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	title := "Kept " + string(l.id())[15:]
	doc := l.doc("/"+title, "the old text")
	check(t, l.CreateDocHistory(ctx, doc))
	wantKind(t, "history of nothing", l.CreateDocHistory(ctx, l.id()), Rejected)
	take(l.UpdateBlock(ctx, l.children(doc)[0], Markdown, "the new text"))(t)
	q := HistoryQuery{Query: title, Notebook: l.nb}
	var times HistoryTimes
	eventually(ctx, t, "the history is indexed", func() bool {
		times = take(l.SearchHistory(ctx, q, 1))(t)
		return len(times.Histories) > 0
	})
	equal(t, "SearchHistory", []any{times.TotalCount > 0, times.PageCount}, []any{true, 1})
	items := take(l.HistoryItems(ctx, times.Histories[0], q))(t)
	equal(t, "HistoryItems", []any{items[0].Title, items[0].Notebook}, []any{title, l.nb})
	kept := take(l.HistoryDoc(ctx, items[0].Path))(t)
	equal(t, "HistoryDoc", []any{kept.ID, kept.RootID}, []any{doc, doc})
	contains(t, "its text", kept.Content, "the old text")
	wantKind(t, "HistoryDoc of nothing", second(l.HistoryDoc(ctx, items[0].Path+"x")), Missing)
	check(t, l.RollbackDoc(ctx, items[0].Path))
	equal(t, "the old text is back", l.markdown(l.children(doc)[0]), "the old text")
	wantKind(t, "rolling back to nothing", l.RollbackDoc(ctx, "/history/none/x.sy"), Rejected)
}

func TestLiveSnapshotsKeepFiles(t *testing.T) {
	scratch(t)
	l := newLive(t)
	ctx := l.ctx
	if _, err := l.Snapshots(ctx, 1); KindOf(err) == Rejected {
		t.Skip("the workspace has no repository key")
	}
	doc := l.doc("/Snap", "in the first")
	para := l.children(doc)[0]
	check(t, l.CreateSnapshot(ctx, liveName+" 1"))
	taken := time.Now().Unix()
	eventually(ctx, t, "the next second", func() bool { return time.Now().Unix() > taken+1 })
	take(l.UpdateBlock(ctx, para, Markdown, "in the second"))(t)
	check(t, l.CreateSnapshot(ctx, liveName+" 2"))
	page := take(l.Snapshots(ctx, 1))(t)
	latest, first := page.Snapshots[0], page.Snapshots[1]
	equal(t, "Snapshots", []any{latest.Memo, first.Memo, len(latest.ID), latest.Count > 0}, []any{liveName + " 2", liveName + " 1", 40, true})
	tag := "live" + string(l.id())[15:]
	check(t, l.TagSnapshot(ctx, first.ID, tag))
	tagged := func() bool {
		return slices.ContainsFunc(take(l.TaggedSnapshots(ctx))(t), func(s Snapshot) bool { return s.Tag == tag && s.ID == first.ID })
	}
	equal(t, "a tagged snapshot", tagged(), true)
	check(t, l.RemoveSnapshotTag(ctx, tag))
	equal(t, "an untagged snapshot", tagged(), false)
	wantKind(t, "a bad tag", l.TagSnapshot(ctx, first.ID, "a/b"), Rejected)

	diff := take(l.DiffSnapshots(ctx, latest.ID, first.ID))(t)
	i := slices.IndexFunc(diff.UpdatesRight, func(f RepoFile) bool { return strings.Contains(f.Path, string(doc)) })
	if i < 0 {
		t.Fatalf("DiffSnapshots: %+v", diff)
	}
	old := diff.UpdatesRight[i]
	equal(t, "the changed file", []any{old.Title, strings.HasPrefix(old.Path, "/"+string(l.nb))}, []any{"Snap", true})
	contains(t, "OpenRepoFile", take(l.OpenRepoFile(ctx, old.FileID))(t).Content, "in the first")
	hits := take(l.SearchRepo(ctx, "Snap", 1))(t)
	equal(t, "SearchRepo", slices.ContainsFunc(hits.Files, func(f RepoFile) bool { return f.FileID == old.FileID }), true)
	check(t, l.RollbackRepoFile(ctx, old.FileID))
	equal(t, "the first text is back", l.markdown(l.children(doc)[0]), "in the first")
	wantKind(t, "a file of nothing", second(l.OpenRepoFile(ctx, strings.Repeat("0", 40))), Rejected)
}

func TestLiveSettingsAreReplacedByThemselves(t *testing.T) {
	scratch(t)
	c := liveClient(t)
	ctx, w := t.Context(), c.Writer()
	conf := func() map[string]json.RawMessage {
		var m map[string]json.RawMessage
		check(t, json.Unmarshal(take(w.RawConf(ctx))(t), &m))
		return m
	}
	before := conf()
	for section, key := range map[Section]string{
		SectionAppearance: "appearance", SectionEditor: "editor", SectionExport: "export", SectionFiletree: "fileTree",
		SectionFlashcard: "flashcard", SectionSearch: "search", SectionSnippet: "snippet",
	} {
		check(t, w.SetSection(ctx, section, before[key]))
		equal(t, key, string(conf()[key]), string(before[key]))
	}
	check(t, w.SetKeymap(ctx, before["keymap"]))
	equal(t, "the keymap", string(conf()["keymap"]), string(before["keymap"]))
	var search map[string]any
	check(t, json.Unmarshal(before["search"], &search))
	search["limit"] = 77
	changed, _ := json.Marshal(search)
	check(t, w.SetSection(ctx, SectionSearch, changed))
	contains(t, "a changed setting", string(conf()["search"]), `"limit":77`)
	check(t, w.SetSection(ctx, SectionSearch, before["search"]))
	wantKind(t, "an unknown section", w.SetSection(ctx, "Nothing", before["search"]), BadArgument)

	id := take(NewID(time.Now(), strings.NewReader(strings.Repeat("snippet!", 4))))(t)
	all := take(w.Snippets(ctx, "all"))(t)
	mine := json.RawMessage(`{"id":"` + string(id) + `","name":"` + liveName + `","type":"css","enabled":false,"content":".x{}"}`)
	check(t, w.SetSnippets(ctx, append(slices.Clone(all), mine)))
	equal(t, "Snippets", len(take(w.Snippets(ctx, "css"))(t)), len(all)+1)
	check(t, w.RemoveSnippet(ctx, id))
	equal(t, "a removed snippet", len(take(w.Snippets(ctx, "all"))(t)), len(all))
	check(t, w.RemoveSnippet(ctx, id))
}

func TestLivePluginsAreListedSwitchedAndRemoved(t *testing.T) {
	scratch(t)
	c := liveClient(t)
	ctx, w := t.Context(), c.Writer()
	const name = liveName + "-plugin"
	dir := "/data/plugins/" + name
	manifest := `{"name":"` + name + `","author":"a","url":"https://example.org/a/b","version":"1.0.0","minAppVersion":"2.8.8",` +
		`"backends":["all"],"frontends":["all"],"displayName":{"default":"Live"},"description":{"default":"d"},"readme":{"default":"README.md"}}`
	check(t, w.PutFile(ctx, dir+"/plugin.json", []byte(manifest), time.Now()))
	check(t, w.PutFile(ctx, dir+"/index.js", []byte("module.exports = class {}"), time.Now()))
	t.Cleanup(func() { _ = w.RemoveFile(context.Background(), dir) })
	listed := func() bool {
		return strings.Contains(string(take(w.InstalledPackages(ctx, PackagePlugin, ""))(t)), name)
	}
	equal(t, "listed", listed(), true)
	check(t, w.EnablePlugin(ctx, name, true))
	check(t, w.EnablePlugin(ctx, name, false))
	check(t, w.UninstallPlugin(ctx, name))
	equal(t, "listed after its removal", listed(), false)
	for _, kind := range []PackageKind{PackageWidget, PackageTheme, PackageIcon, PackageTemplate} {
		check(t, second(w.InstalledPackages(ctx, kind, "")))
	}
	wantKind(t, "an unknown kind", second(w.InstalledPackages(ctx, "Nothing", "")), BadArgument)
	check(t, second(w.BazaarPackages(ctx, PackagePlugin, "x")))
}
