package siyuan

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"
)

// pixel is a PNG image of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestLiveFilesAreWrittenMovedPackedAndRemoved(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	dir := "/temp/" + liveName + "-" + string(l.id())
	at := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	t.Cleanup(func() {
		if err := l.RemoveFile(context.Background(), dir); err != nil {
			t.Errorf("remove the test's folder: %v", err)
		}
	})
	check(t, l.MakeDir(ctx, dir+"/sub", at))
	check(t, l.PutFile(ctx, dir+"/a.txt", []byte("content\x00\xff"), at))
	f := take(l.GetFile(ctx, dir+"/a.txt"))(t)
	equal(t, "the file", string(f.Data), "content\x00\xff")
	entries := take(l.ReadDir(ctx, dir))(t)
	equal(t, "the folder", entries, []DirEntry{{Name: "a.txt", Updated: at.Unix()}, {Name: "sub", IsDir: true, Updated: entries[1].Updated}})
	check(t, l.PutFile(ctx, dir+"/b.json", []byte(`{"code":-1}`), at))
	equal(t, "a JSON file", string(take(l.GetFile(ctx, dir+"/b.json"))(t).Data), `{"code":-1}`)

	check(t, l.RenameFile(ctx, dir+"/a.txt", dir+"/deep/c.txt"))
	wantKind(t, "the old name", second(l.GetFile(ctx, dir+"/a.txt")), Missing)
	wantKind(t, "a taken name", l.RenameFile(ctx, dir+"/b.json", dir+"/deep/c.txt"), Rejected)
	wantKind(t, "moving nothing", l.RenameFile(ctx, dir+"/x", dir+"/y"), Missing)
	check(t, l.Zip(ctx, dir+"/deep", dir+"/deep.zip"))
	check(t, l.Unzip(ctx, dir+"/deep.zip", dir+"/out"))
	names := take(l.ReadDir(ctx, dir+"/out"))(t)
	equal(t, "what was packed", len(names) > 0, true)
	wantKind(t, "unpacking nothing", l.Unzip(ctx, dir+"/no.zip", dir+"/out"), Rejected)

	packed := take(l.ExportResources(ctx, []string{dir + "/deep"}, "live"))(t)
	contains(t, "the export", packed, ".zip")
	wantKind(t, "a folder as a file", second(l.GetFile(ctx, dir)), Rejected)
	wantKind(t, "a file as a folder", second(l.ReadDir(ctx, dir+"/b.json")), Rejected)
	wantKind(t, "a folder of nothing", second(l.ReadDir(ctx, dir+"/none")), Missing)
	wantKind(t, "a path outside", second(l.GetFile(ctx, "/../../etc/hostname")), Rejected)
	wantKind(t, "removing nothing", l.RemoveFile(ctx, dir+"/none"), Missing)
	wantKind(t, "removing everything", l.RemoveFile(ctx, "/"), BadArgument)
}

func TestLiveAssetsAndExportsOfADocument(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	image, err := base64.StdEncoding.DecodeString(pixel)
	check(t, err)
	image = append(image, l.id()...) // no two assets have the same bytes
	name := liveName + "-" + string(l.id())[15:]
	path := take(l.UploadAsset(ctx, "/assets/", name+".png", image))(t)
	contains(t, "the asset", path, "assets/"+name)
	last := path
	t.Cleanup(func() { _ = l.RemoveUnusedAsset(context.Background(), last) })
	equal(t, "its size", take(l.StatAsset(ctx, path))(t).Size, int64(len(image)))
	wantKind(t, "the size of nothing", second(l.StatAsset(ctx, "assets/none.png")), Missing)
	equal(t, "Download", take(l.Download(ctx, "/"+path))(t).Data, image)
	wantKind(t, "Download of nothing", second(l.Download(ctx, "/assets/none.png")), Missing)
	wantKind(t, "Download of something else", second(l.Download(ctx, "/conf/conf.json")), BadArgument)
	unused := func() bool {
		return slices.ContainsFunc(take(l.UnusedAssets(ctx))(t), func(u UnusedItem) bool { return u.Item == last })
	}
	equal(t, "unused before it is linked", unused(), true)

	doc := l.doc("/Assets", "# Title\n\n![alt]("+path+")\n\nplain text")
	equal(t, "DocAssets", take(l.DocAssets(ctx, doc))(t), []string{path})
	equal(t, "DocImages", take(l.DocImages(ctx, doc))(t), []string{path})
	equal(t, "unused when linked", unused(), false)
	check(t, l.Flush(ctx))
	equal(t, "the same bytes again", take(l.UploadAsset(ctx, "/assets/", name+".png", image))(t), path)
	var hits []AssetHit
	eventually(ctx, t, "the asset is found", func() bool {
		hits = take(l.SearchAssets(ctx, name, []string{".png"}))(t)
		return len(hits) > 0
	})
	equal(t, "SearchAssets", []any{len(hits), hits[0].Path, hits[0].Updated > 0}, []any{1, path, true})
	contains(t, "the hit's name", hits[0].HName, "<mark>")
	check(t, l.SetImageOCR(ctx, path, "recognised"))
	equal(t, "ImageOCR", take(l.ImageOCR(ctx, path))(t), "recognised")

	e := take(l.ExportMarkdown(ctx, doc, Export{}))(t)
	equal(t, "ExportMarkdown", []any{e.HPath, strings.HasPrefix(e.Content, "# Title"), strings.Contains(e.Content, "---")}, []any{"/Assets", true, false})
	contains(t, "the Markdown", e.Content, "plain text", path)
	full := take(l.ExportMarkdown(ctx, doc, Export{FrontMatter: true, Title: true}))(t)
	contains(t, "the front matter", full.Content, "---\ntitle: Assets", "# Assets")
	contains(t, "ExportPreview", take(l.ExportPreview(ctx, doc))(t), "plain text", "<h")
	file := take(l.Download(ctx, take(l.ExportZip(ctx, doc))(t)))(t)
	z, err := zip.NewReader(bytes.NewReader(file.Data), int64(len(file.Data)))
	check(t, err)
	var inside []string
	for _, f := range z.File {
		inside = append(inside, f.Name)
	}
	contains(t, "the zip", strings.Join(inside, " "), "Assets.md", name)

	last = take(l.RenameAsset(ctx, path, name+"-new"))(t)
	contains(t, "the new path", last, name+"-new")
	equal(t, "the document's link", take(l.DocAssets(ctx, doc))(t), []string{last})
	check(t, l.RemoveDoc(ctx, doc))
	eventually(ctx, t, "the asset is unused", unused)
	check(t, l.RemoveUnusedAsset(ctx, last))
	wantKind(t, "a removed asset", second(l.StatAsset(ctx, last)), Missing)
}

func TestLiveAssetTextIsSearched(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	word := "zq" + string(l.id())[15:]
	path := take(l.UploadAsset(ctx, "/assets/", liveName+".txt", []byte("some "+word+" text")))(t)
	t.Cleanup(func() { _ = l.RemoveUnusedAsset(context.Background(), path) })
	var found []AssetContent
	eventually(ctx, t, "the text is found", func() bool {
		r := take(l.SearchAssetContent(ctx, Search{Query: word, Types: map[string]bool{".txt": true}}))(t)
		found = r.AssetContents
		return r.MatchedAssetCount == 1
	})
	equal(t, "the hit", []any{found[0].Path, found[0].Ext}, []any{path, ".txt"})
	contains(t, "its text", found[0].Content, "<mark>"+word+"</mark>")
	whole := take(l.AssetContent(ctx, found[0].ID, word, SearchKeyword))(t)
	equal(t, "AssetContent", []any{whole.ID, whole.Path}, []any{found[0].ID, path})
	contains(t, "its whole text", whole.Content, "some ", " text")
	wantKind(t, "AssetContent of nothing", second(l.AssetContent(ctx, l.id(), "", SearchKeyword)), Missing)
}

func TestLiveUnusedAssetsAreRemovedTogether(t *testing.T) {
	scratch(t)
	l := newLive(t)
	path := take(l.UploadAsset(l.ctx, "/assets/", liveName+".bin", []byte(l.id())))(t)
	removed := take(l.RemoveUnusedAssets(l.ctx))(t)
	equal(t, "what was removed", slices.ContainsFunc(removed, func(p string) bool { return strings.HasSuffix(p, "/"+path) }), true)
	equal(t, "what is left", len(take(l.UnusedAssets(l.ctx))(t)), 0)
}
