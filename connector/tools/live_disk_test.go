package tools_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	catalogue "siyuan-broker/contract/tools"
)

func TestLiveFilesGoThroughTheMachine(t *testing.T) {
	d, g := liveDesk(t)
	dir := onDisk(t, d)
	nb := liveNotebook(t, d, g)
	doc := liveDoc(t, d, g, nb, "/Trip: Rome", "Day one.")
	save(t, filepath.Join(dir, "map of rome.png"), firstBytes["image/png"]+"rest")
	stored := ok[catalogue.FileUploadAssetOut](t, d, g, "file.upload_asset", fmt.Sprintf(`{"id":%q,"localFilePath":"map of rome.png"}`, doc)).Path
	ok[catalogue.BlockAppendOut](t, d, g, "block.append", fmt.Sprintf(`{"parentID":%q,"dataType":"markdown","data":"![map](%s)\n\n![again](%s)\n\n[gone](assets/gone.pdf)\n\n![net](https://example.org/x.png)"}`, doc, stored, stored))

	image := ok[catalogue.FileReadImageOut](t, d, g, "file.read_image", fmt.Sprintf(`{"id":%q,"path":%q}`, doc, stored))
	if image.MimeType != "image/png" || string(image.Data) != firstBytes["image/png"]+"rest" {
		t.Errorf("image %+v", image)
	}
	audit := ok[catalogue.FileAuditOut](t, d, g, "file.audit_image_refs", fmt.Sprintf(`{"id":%q,"expectedRefs":["map-of-rome.png","map-of-rome.png","x.png"]}`, doc))
	if !audit.Matches || len(audit.Actual) != 3 {
		t.Errorf("audit %+v", audit)
	}

	out := ok[catalogue.FileExtractDocOut](t, d, g, "file.extract_doc", fmt.Sprintf(`{"id":%q}`, doc))
	folder := filepath.Base(out.ExtractedDir)
	if folder != "Trip-Rome-"+doc[len(doc)-7:] || out.ExtractedAssetCount != 1 || out.SkippedAssetCount != 1 {
		t.Errorf("extracted %+v", out)
	}
	got := saved(t, out.ExtractedDir)
	if got[stored] != firstBytes["image/png"]+"rest" || !strings.HasPrefix(got[folder+".md"], "Day one.\n\n![map]("+stored+")\n") {
		t.Errorf("files %q", got)
	}
	zipped := ok[catalogue.FileExportResourcesOut](t, d, g, "file.export_resources", fmt.Sprintf(`{"paths":[%q],"outputPath":"maps.zip"}`, stored))
	if zipped.OutputPath != filepath.Join(dir, "maps.zip") || saved(t, dir)["maps.zip"] == "" {
		t.Errorf("zip %+v", zipped)
	}
}

func TestLiveASnapshotComesWhole(t *testing.T) {
	d, g := liveDesk(t)
	nb := liveNotebook(t, d, g)
	var want []string
	for _, path := range []string{"/B", "/A", "/A/Deep", "/A/Deep/Er"} {
		want = append(want, liveDoc(t, d, g, nb, path, "text of "+path))
	}
	docs, pages := snapshots(t, d, g, fmt.Sprintf(`"notebookID":%q,"roots":["/"],"limit":1`, nb))
	var got, paths []string
	for _, doc := range docs {
		got, paths = append(got, doc.ID), append(paths, doc.RelativePath)
		if !strings.Contains(doc.Content, "text of "+doc.HPath) || len(doc.Metadata.Updated) != 14 {
			t.Errorf("%+v", doc)
		}
	}
	if !slices.Equal(got, []string{want[1], want[2], want[3], want[0]}) || !slices.Equal(paths, []string{"A.md", "A/Deep.md", "A/Deep/Er.md", "B.md"}) || len(pages) != 4 {
		t.Errorf("documents %v at %v, made %v", got, paths, want)
	}
	below := ok[catalogue.FileSnapshotOut](t, d, g, "file.export_markdown_snapshot", fmt.Sprintf(`{"notebookID":%q,"roots":[%q]}`, nb, docs[1].StoragePath))
	if below.Page.Total != 2 {
		t.Errorf("below a document %+v", below)
	}
}
