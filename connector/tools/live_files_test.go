package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func TestLiveFiles(t *testing.T) {
	d, g := liveDesk(t)
	nb := liveNotebook(t, d, g)
	w, ctx := d.Client.Writer(), t.Context()
	put := func(path, text string) {
		t.Helper()
		if err := w.PutFile(ctx, "/data/"+path, []byte(text), time.Now()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.RemoveFile(context.Background(), "/data/"+path) }) // most tests took it away
	}
	salt := fmt.Sprintf("live%d", time.Now().UnixNano()%1e9)
	used, loose, cover := "assets/"+salt+"-20240106090000-livepng.png", "assets/"+salt+"-loose.txt", "assets/"+salt+"-cover.png"
	for _, f := range []string{used, loose, cover} {
		put(f, "bytes of "+f)
	}
	id := liveDoc(t, d, g, nb, "/Files", "[c]("+used+"?p=1)\n\n![]("+used+")\n\n[b]("+used+")\n")
	ok[catalogue.DocumentSetAttrOut](t, d, g, "document.set_attr", fmt.Sprintf(`{"id":%q,"attrs":{"cover":%q}}`, id, cover))
	if out := ok[catalogue.FileDocAssetsOut](t, d, g, "file.get_doc_assets", `{"id":"`+id+`","assetType":"image"}`); !strings.Contains(strings.Join(out.Assets, " "), used) {
		t.Errorf("images %+v", out)
	}
	if err := w.SetImageOCR(ctx, used, "red dot"); err != nil {
		t.Fatal(err)
	}
	answers(t, d, g, "file.get_image_ocr_text", fmt.Sprintf(`{"path":%q}`, used), fmt.Sprintf(`{"path":%q,"text":"red dot","truncated":false}`, used))

	unused := strings.Join(ok[catalogue.FileUnusedOut](t, d, g, "file.list_unused_assets", `{}`).Assets, " ")
	if !strings.Contains(unused, loose) || strings.Contains(unused, used) || strings.Contains(unused, cover) {
		t.Errorf("unused are %s", unused)
	}
	renamed := ok[catalogue.FileRenameOut](t, d, g, "file.rename_asset", fmt.Sprintf(`{"oldPath":%q,"newName":"red dot.png"}`, used))
	if !strings.HasPrefix(renamed.NewPath, "assets/red dot-") || renamed.Documents != 1 {
		t.Errorf("renamed %+v", renamed)
	}
	if out := ok[catalogue.FileDocAssetsOut](t, d, g, "file.get_doc_assets", `{"id":"`+id+`"}`); !strings.Contains(strings.Join(out.Assets, " "), renamed.NewPath) {
		t.Errorf("files after the renaming %+v", out)
	}
	if p := previewed(t, d, g, "file.delete_asset", fmt.Sprintf(`{"path":%q}`, renamed.NewPath)); p.Counts.Documents != 1 || !p.Lasting {
		t.Errorf("preview %+v", p)
	}
	answers(t, d, g, "file.delete_asset", fmt.Sprintf(`{"path":%q}`, renamed.NewPath), fmt.Sprintf(`{"success":true,"path":%q,"documents":1}`, renamed.NewPath))
	fails(t, d.call(g, "file.delete_asset", fmt.Sprintf(`{"path":%q}`, renamed.NewPath)), contract.NotFound)
	if out := ok[catalogue.FileRemoveUnusedOut](t, d, g, "file.remove_unused_assets", `{}`); !strings.Contains(strings.Join(out.Paths, " "), loose) || strings.Contains(strings.Join(out.Paths, " "), cover) {
		t.Errorf("removed %+v", out)
	}
}

// TestLiveFileInADatabase: a file in a cell needs the level where the database is,
// and is not renamed.
func TestLiveFileInADatabase(t *testing.T) {
	d, g := liveDesk(t)
	nb := liveNotebook(t, d, g)
	w, ctx := d.Client.Writer(), t.Context()
	file := fmt.Sprintf("assets/cell%d-20240106090000-livepng.png", time.Now().UnixNano()%1e9)
	if err := w.PutFile(ctx, "/data/"+file, []byte("x"), time.Now()); err != nil {
		t.Fatal(err)
	}
	id := liveDoc(t, d, g, nb, "/Base", "x")
	made := ok[catalogue.AvCreateOut](t, d, g, "av.create", fmt.Sprintf(`{"blockID":%q,"name":"Files"}`, id))
	col := ok[catalogue.AvAddColumnOut](t, d, g, "av.add_column", fmt.Sprintf(`{"avID":%q,"keyName":"F","keyType":"mAsset"}`, made.AvID))
	rows := ok[catalogue.AvAddRowsOut](t, d, g, "av.add_rows", fmt.Sprintf(`{"avID":%q,"primaryKeyTexts":["a"]}`, made.AvID))
	ok[catalogue.AvSetCellsOut](t, d, g, "av.set_cells", fmt.Sprintf(`{"avID":%q,"rowID":%q,"columnID":%q,"valueType":"mAsset","assets":[{"type":"image","content":%q}]}`, made.AvID, rows.Rows[0].RowID, col.KeyID, file))
	reader := *g
	reader.Default, reader.Levels = contract.ReadWriteDelete, map[string]contract.Level{nb: contract.Read}
	fails(t, d.call(&reader, "file.rename_asset", fmt.Sprintf(`{"oldPath":%q,"newName":"x"}`, file)), contract.PermissionDenied)
	fails(t, d.call(g, "file.rename_asset", fmt.Sprintf(`{"oldPath":%q,"newName":"x"}`, file)), contract.Unsupported)
	if p := previewed(t, d, g, "file.delete_asset", fmt.Sprintf(`{"path":%q}`, file)); len(p.Named) != 2 || p.Named[1].Kind != "database" {
		t.Errorf("preview %+v", p)
	}
	answers(t, d, g, "file.delete_asset", fmt.Sprintf(`{"path":%q}`, file), fmt.Sprintf(`{"success":true,"path":%q,"documents":0}`, file))
}

func TestLiveTemplates(t *testing.T) {
	d, g := liveDesk(t)
	nb := liveNotebook(t, d, g)
	id := liveDoc(t, d, g, nb, "/Template", "Some text.\n")
	name := fmt.Sprintf("live%d", time.Now().UnixNano()%1e9)
	path := "team/" + name + ".md"
	ok[catalogue.FileTemplateOut](t, d, g, "file.create_template", fmt.Sprintf(`{"path":%q,"markdown":"# Plan of .action{.title} in .action{now | date \"2006\"}"}`, path))
	fails(t, d.call(g, "file.create_template", fmt.Sprintf(`{"path":%q,"markdown":"x"}`, path)), contract.AlreadyExists)
	if out := ok[catalogue.FileListTemplatesOut](t, d, g, "file.list_templates", fmt.Sprintf(`{"query":%q}`, name)); out.Total != 1 || out.Data[0].Path != path {
		t.Errorf("templates %+v", out)
	}
	if out := ok[catalogue.FileRenderOut](t, d, g, "file.render", fmt.Sprintf(`{"engine":"template","id":%q,"path":%q}`, id, path)); !strings.Contains(out.Content, "Plan of Template in 2") {
		t.Errorf("rendered %s", out.Content)
	}
	ok[catalogue.FileTemplateOut](t, d, g, "file.update_template", fmt.Sprintf(`{"path":%q,"markdown":"new text"}`, path))
	if out := ok[catalogue.FileReadTemplateOut](t, d, g, "file.read_template", fmt.Sprintf(`{"path":%q}`, path)); out.Markdown != "new text" {
		t.Errorf("read %+v", out)
	}
	answers(t, d, g, "file.delete_template", fmt.Sprintf(`{"path":%q}`, path), fmt.Sprintf(`{"success":true,"path":%q}`, path))
	saved := ok[catalogue.FileSaveDocOut](t, d, g, "file.save_doc_as_template", fmt.Sprintf(`{"id":%q,"name":%q}`, id, name))
	fails(t, d.call(g, "file.save_doc_as_template", fmt.Sprintf(`{"id":%q,"name":%q}`, id, name)), contract.AlreadyExists)
	ok[catalogue.FileSaveDocOut](t, d, g, "file.save_doc_as_template", fmt.Sprintf(`{"id":%q,"name":%q,"overwrite":true}`, id, name))
	if out := ok[catalogue.FileReadTemplateOut](t, d, g, "file.read_template", fmt.Sprintf(`{"path":%q}`, saved.Template)); !strings.Contains(out.Markdown, "Some text.") {
		t.Errorf("saved %+v", out)
	}
	ok[catalogue.FileDeleteTemplateOut](t, d, g, "file.delete_template", fmt.Sprintf(`{"path":%q}`, saved.Template))

	answers(t, d, g, "file.render", `{"engine":"sprig","template":"{{ \"x\" | upper }}"}`, `{"string":"X","truncated":false}`)
	fails(t, d.call(g, "file.render", `{"engine":"sprig","template":"{{querySQL \"UPDATE blocks SET content='x' RETURNING id\"}}"}`), contract.HiddenReference)
	for _, f := range strings.Fields("now date dateInZone upper lower trim replace contains hasPrefix add sub mul len print title substr default ISOWeek Weekday") {
		if _, err := d.Client.Reader().RenderSprig(t.Context(), "{{if false}}{{"+f+"}}{{end}}"); err != nil && siyuan.KindOf(err) != siyuan.Rejected {
			t.Error(f, err)
		} else if e, rejected := err.(*siyuan.Error); rejected && strings.Contains(e.Msg, "not defined") {
			t.Errorf("SiYuan has no function %s", f)
		}
	}
}
