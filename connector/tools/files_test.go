package tools_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// The files of the desk: one that two notebooks link to, one of Private alone,
// and two that nothing links to.
const (
	sharedFile = "assets/shared-20240106090000-pngdot1.png"
	secretFile = "assets/salary-20240106090001-pngdot2.png"
	looseFile  = "assets/loose-20240106090002-pngdot3.png"
	plainFile  = "assets/plain.txt"
	sharedDoc  = "20240109000011-sharedd"
)

// addFiles makes those files and two templates, of which Diary uses one.
func addFiles(t *testing.T, h *guardtest.Home) {
	t.Helper()
	h.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + sharedDoc + ".sy", Title: "Pictures", Text: "![a](" + sharedFile + ")\n"})
	h.Add(t, guardtest.Doc{Box: guardtest.Diary, Path: "/20240109000012-diarypc.sy", Title: "Diary pictures", Text: "![a](" + sharedFile + ")\n"})
	h.Add(t, guardtest.Doc{Box: guardtest.Private, Path: "/20240109000013-privpic.sy", Title: "Salary", Text: "![a](" + secretFile + ")\n"})
	for _, f := range []string{sharedFile, secretFile, looseFile, plainFile, "templates/daily.md", "templates/sub/week.md", "templates/.hidden.md"} {
		write(t, h, f, map[bool]string{true: "## Plan of .action{now | date \"2006\"}\n", false: "bytes of " + f}[strings.HasSuffix(f, ".md")])
	}
	if _, err := h.Client.Writer().SetNotebookConf(t.Context(), guardtest.Diary, map[string]any{"dailyNoteTemplatePath": "/daily.md"}); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, h *guardtest.Home, file, text string) {
	t.Helper()
	name := filepath.Join(h.Kernel.Dir(), "data", filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func fileDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	addFiles(t, d.Home)
	return d
}

func there(d *desk, file string) bool {
	_, err := os.Stat(filepath.Join(d.Kernel.Dir(), "data", filepath.FromSlash(file)))
	return err == nil
}

// hiding is the owner's agent from whom Private is hidden.
func hiding() *contract.Grant {
	g := owner()
	g.Levels = map[string]contract.Level{guardtest.Private: contract.None}
	return g
}

func TestRenamingAFileTakesItsLinksAlong(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	out := ok[catalogue.FileRenameOut](t, d, owner(), "file.rename_asset", fmt.Sprintf(`{"oldPath":%q,"newName":"red dot.PNG"}`, sharedFile))
	if !strings.HasPrefix(out.NewPath, "assets/red dot-") || !strings.HasSuffix(out.NewPath, ".png") || out.NewName != "red dot" || out.Documents != 2 {
		t.Errorf("answer %+v", out)
	}
	if there(d, sharedFile) || !there(d, out.NewPath) {
		t.Error("the file has not moved")
	}
	answers(t, d, owner(), "file.get_doc_assets", `{"id":"`+sharedDoc+`"}`, `{"id":"`+sharedDoc+`","assetType":"all","assets":["`+out.NewPath+`"],"count":1,"truncated":false}`)
}

func TestDeletingAFileSaysWhoseLinksBreak(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	args := fmt.Sprintf(`{"path":%q}`, "/data/"+sharedFile)
	p := previewed(t, d, owner(), "file.delete_asset", args)
	if want := `2 documents, 1 asset|file “` + sharedFile + `”|document “Diary pictures” in “/日记/Diary pictures”|document “Pictures” in “/Work/Pictures”|no undo takes this back`; strings.Join(p.Lines(), "|") != want {
		t.Errorf("the preview says %s", strings.Join(p.Lines(), "|"))
	}
	answers(t, d, owner(), "file.delete_asset", args, `{"success":true,"path":"`+sharedFile+`","documents":2}`)
	if there(d, sharedFile) {
		t.Error("the file is still there")
	}
	fails(t, d.call(owner(), "file.delete_asset", args), contract.NotFound)
}

func TestUnusedFilesAreListedAndRemoved(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	answers(t, d, owner(), "file.list_unused_assets", `{}`, `{"assets":["`+looseFile+`","`+plainFile+`"],"count":2,"truncated":false}`)
	if p := previewed(t, d, owner(), "file.remove_unused_assets", `{}`); p.Counts.Assets != 2 || len(p.Named) != 2 || !p.Lasting {
		t.Errorf("the preview is %+v", p)
	}
	answers(t, d, owner(), "file.remove_unused_assets", `{}`, `{"success":true,"paths":["`+looseFile+`","`+plainFile+`"],"truncated":false}`)
	if there(d, looseFile) || there(d, plainFile) || !there(d, sharedFile) || !there(d, secretFile) {
		t.Error("other files than the unused ones were removed")
	}
}

// TestACoverIsNotUnused: SiYuan lists a file as unused that only a cover with a
// slash before its path shows.
func TestACoverIsNotUnused(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	ok[catalogue.DocumentSetAttrOut](t, d, owner(), "document.set_attr", fmt.Sprintf(`{"id":%q,"attrs":{"cover":%q}}`, sharedDoc, looseFile))
	if err := d.Client.Writer().SetBlockAttrs(t.Context(), guardtest.Entry, siyuan.Attrs{"title-img": `background-image:url("/` + plainFile + `")`}); err != nil {
		t.Fatal(err)
	}
	answers(t, d, owner(), "file.list_unused_assets", `{}`, `{"assets":[],"count":0,"truncated":false}`)
}

func TestThreeHundredUnusedFilesGoInTwoCalls(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	for i := range 300 {
		write(t, d.Home, fmt.Sprintf("assets/many-%03d.txt", i), "x")
	}
	if p := previewed(t, d, owner(), "file.remove_unused_assets", `{}`); p.Counts.Assets != 200 || len(p.Named) != contract.PreviewNamed || p.More != 180 {
		t.Errorf("the preview counts %d, names %d, more %d", p.Counts.Assets, len(p.Named), p.More)
	}
	for _, want := range []int{200, 100, 0} {
		out := ok[catalogue.FileRemoveUnusedOut](t, d, owner(), "file.remove_unused_assets", `{}`)
		if len(out.Paths) != want || out.Truncated != (want == 200) {
			t.Errorf("removed %d, truncated %t, want %d", len(out.Paths), out.Truncated, want)
		}
	}
}

func TestChangingFilesNeedsTheLevelEverywhereAndNothingHidden(t *testing.T) {
	t.Parallel()
	at := func(notebook string, l contract.Level) *contract.Grant {
		g := owner()
		g.Levels = map[string]contract.Level{notebook: l}
		return g
	}
	noSwitch := owner()
	noSwitch.Switches = nil
	rename := fmt.Sprintf(`{"oldPath":%q,"newName":"x"}`, sharedFile)
	path := func(p string) string { return fmt.Sprintf(`{"path":%q}`, p) }
	for _, c := range []struct {
		name, id, args string
		grant          *contract.Grant
		want           contract.Code
	}{
		{"reader of one notebook", "file.rename_asset", rename, at(guardtest.Diary, contract.Read), contract.PermissionDenied},
		{"editor of one notebook", "file.delete_asset", path(sharedFile), at(guardtest.Diary, contract.ReadWrite), contract.PermissionDenied},
		{"reader of a closed notebook", "file.rename_asset", rename, at(guardtest.Archive, contract.Read), contract.PermissionDenied},
		{"something hidden", "file.rename_asset", rename, hiding(), contract.Unsupported},
		{"something hidden", "file.delete_asset", path(sharedFile), hiding(), contract.Unsupported},
		{"something hidden", "file.list_unused_assets", `{}`, hiding(), contract.Unsupported},
		{"something hidden", "file.remove_unused_assets", `{}`, hiding(), contract.Unsupported},
		{"no switch", "file.delete_asset", path(looseFile), noSwitch, contract.PermissionDenied},
		{"no switch", "file.list_unused_assets", `{}`, noSwitch, contract.PermissionDenied},
		{"no such file", "file.delete_asset", path("assets/nosuch.png"), owner(), contract.NotFound},
		{"a folder", "file.delete_asset", path("assets"), owner(), contract.NotFound},
		{"out of the folder", "file.delete_asset", path("assets/../../conf/conf.json"), owner(), contract.NotFound},
		{"encoded", "file.delete_asset", path("assets/%252e%252e/x"), owner(), contract.NotFound},
		{"a folder in the name", "file.rename_asset", fmt.Sprintf(`{"oldPath":%q,"newName":"../x"}`, sharedFile), owner(), contract.InvalidArguments},
		{"a hidden name", "file.rename_asset", fmt.Sprintf(`{"oldPath":%q,"newName":".x"}`, sharedFile), owner(), contract.InvalidArguments},
		{"a bidirectional name", "file.rename_asset", fmt.Sprintf(`{"oldPath":%q,"newName":"gnp\u202eexe"}`, sharedFile), owner(), contract.InvalidArguments},
	} {
		d := fileDesk(t)
		r := d.call(c.grant, c.id, c.args)
		if r.Err == nil || contract.CodeOf(r.Err) != c.want {
			t.Errorf("%s, %s: %v, want %s", c.name, c.id, r.Err, c.want)
		}
		for _, f := range []string{sharedFile, secretFile, looseFile, plainFile} {
			if !there(d, f) {
				t.Errorf("%s, %s: %s is gone", c.name, c.id, f)
			}
		}
	}
}

func TestAChangeOfAFileWithoutEffectIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"file.rename_asset", fmt.Sprintf(`{"oldPath":%q,"newName":"x"}`, sharedFile), "asset/renameAsset"},
		{"file.delete_asset", fmt.Sprintf(`{"path":%q}`, sharedFile), "asset/removeUnusedAsset"},
		{"file.remove_unused_assets", `{}`, "asset/removeUnusedAsset"},
		{"file.update_template", `{"path":"daily.md","markdown":"x"}`, "file/putFile"},
		{"file.delete_template", `{"path":"daily.md"}`, "search/removeTemplate"},
		{"file.save_doc_as_template", `{"id":"` + guardtest.Entry + `","name":"x"}`, "template/docSaveAsTemplate"},
	} {
		d := fileDesk(t)
		d.Kernel.Faults().Set("/api/"+c[2], samplekernel.Fault{Kind: samplekernel.FaultNoEffect})
		if r := d.call(owner(), c[0], c[1]); r.Err == nil || contract.CodeOf(r.Err) != contract.WriteNotPersisted {
			t.Errorf("%s: %v", c[0], r.Err)
		}
	}
}

func TestTemplatesAreMadeReadChangedAndDeleted(t *testing.T) {
	t.Parallel()
	d, g := fileDesk(t), owner()
	const made = `{"path":"/data/templates/team/meeting.md","markdown":"# Minutes\n\nof .action{now | date \"2006\"}"}`
	answers(t, d, g, "file.create_template", made, `{"success":true,"path":"team/meeting.md","name":"meeting","totalChars":40}`)
	fails(t, d.call(g, "file.create_template", made), contract.AlreadyExists)
	answers(t, d, g, "file.list_templates", `{}`, `{"data":[{"path":"daily.md","name":"daily"},{"path":"sub/week.md","name":"week"},{"path":"team/meeting.md","name":"meeting"}],"total":3,"page":1,"pageSize":20,"pageCount":1,"hasNextPage":false,"showing":3,"truncated":false}`)
	answers(t, d, g, "file.read_template", `{"path":"team/meeting.md","offset":2,"limit":7}`, `{"path":"team/meeting.md","markdown":"Minutes","totalChars":40,"offset":2,"limit":7,"truncated":true,"nextOffset":9}`)
	ok[catalogue.FileTemplateOut](t, d, g, "file.update_template", `{"path":"team/meeting.md","markdown":"new"}`)
	fails(t, d.call(g, "file.update_template", `{"path":"nosuch.md","markdown":"new"}`), contract.NotFound)
	if out := ok[catalogue.FileRenderOut](t, d, g, "file.render", `{"engine":"template","id":"`+guardtest.Entry+`","path":"team/meeting.md"}`); !strings.Contains(out.Content, ">new<") || out.Path != "team/meeting.md" {
		t.Errorf("rendered %+v", out)
	}
	if p := previewed(t, d, g, "file.delete_template", `{"path":"daily.md"}`); !slices.Contains(p.Lines(), "notebook “日记”") {
		t.Errorf("the preview says %q", p.Lines())
	}
	answers(t, d, g, "file.delete_template", `{"path":"team/meeting.md"}`, `{"success":true,"path":"team/meeting.md"}`)
	fails(t, d.call(g, "file.read_template", `{"path":"team/meeting.md"}`), contract.NotFound)
	answers(t, d, g, "file.save_doc_as_template", `{"id":"`+guardtest.Entry+`","name":"entry"}`, `{"success":true,"id":"`+guardtest.Entry+`","name":"entry","template":"entry.md"}`)
	fails(t, d.call(g, "file.save_doc_as_template", `{"id":"`+guardtest.Entry+`","name":"entry"}`), contract.AlreadyExists)
}

func TestTemplatesBelongToTheNotebooksThatUseThem(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	answers(t, d, hiding(), "file.list_templates", `{}`, `{"data":[{"path":"daily.md","name":"daily"}],"total":1,"page":1,"pageSize":20,"pageCount":1,"hasNextPage":false,"showing":1,"truncated":false}`)
	ok[catalogue.FileReadTemplateOut](t, d, hiding(), "file.read_template", `{"path":"daily.md"}`)
	noDiary := guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete})
	reader := owner()
	reader.Levels = map[string]contract.Level{guardtest.Diary: contract.Read}
	for _, c := range []struct {
		id, args string
		grant    *contract.Grant
		want     contract.Code
	}{
		{"file.read_template", `{"path":"sub/week.md"}`, hiding(), contract.NotFound}, {"file.read_template", `{"path":"daily.md"}`, noDiary, contract.NotFound},
		{"file.read_template", `{"path":".hidden.md"}`, owner(), contract.InvalidArguments}, {"file.read_template", `{"path":"../../conf/x.md"}`, owner(), contract.InvalidArguments},
		{"file.read_template", `{"path":"%2e%2e/x.md"}`, owner(), contract.InvalidArguments}, {"file.read_template", `{"path":"daily.txt"}`, owner(), contract.InvalidArguments},
		{"file.create_template", `{"path":"x.md","markdown":"x"}`, hiding(), contract.Unsupported}, {"file.update_template", `{"path":"daily.md","markdown":"x"}`, reader, contract.PermissionDenied},
		{"file.delete_template", `{"path":"daily.md"}`, reader, contract.PermissionDenied}, {"file.save_doc_as_template", `{"id":"` + guardtest.Entry + `","name":"x"}`, hiding(), contract.Unsupported},
		{"file.save_doc_as_template", `{"id":"` + guardtest.Entry + `","name":"a/b"}`, owner(), contract.InvalidArguments},
	} {
		if r := d.call(c.grant, c.id, c.args); r.Err == nil || contract.CodeOf(r.Err) != c.want {
			t.Errorf("%s %s: %v, want %s", c.id, c.args, r.Err, c.want)
		}
	}
}

// TestTemplatesAreNoWayAroundLevels: SiYuan runs what stands in template code over
// every notebook, statements that write too.
func TestTemplatesAreNoWayAroundLevels(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	for name, code := range map[string]struct {
		code          string
		hidden, whole bool // allowed
	}{
		"time":            {`{{now | date "2006-01-02"}}`, true, true},
		"text":            {`{{ "x" | upper }}{{if eq 1 1}}y{{end}}`, true, true},
		"blocks":          {`{{range queryBlocks "SELECT * FROM blocks LIMIT 1"}}{{.ID}}{{end}}`, false, true},
		"a write":         {`{{querySQL "UPDATE blocks SET content='x' RETURNING id"}}`, false, false},
		"a write in two":  {`{{querySQL "SELECT 1; DELETE FROM blocks"}}`, false, false},
		"a made text":     {`{{querySQL (print "SELECT" " 1")}}`, false, false},
		"a piped text":    {`{{"SELECT 1" | querySQL}}`, false, false},
		"an argument":     {`{{queryBlocks "SELECT * FROM blocks WHERE id = '?'" "x"}}`, false, false},
		"a variable":      {`{{$f := "SELECT 1"}}{{querySQL $f}}`, false, false},
		"in a definition": {`{{define "x"}}{{querySQL "SELECT 1"}}{{end}}{{template "x"}}`, false, false},
		"in a with":       {`{{with getBlock "20240102110062-block3e"}}{{.Content}}{{end}}`, false, false},
		"in brackets":     {`{{(getBlock "20240102110062-block3e").Content}}`, false, false},
		"call":            {`{{call .x}}`, false, false},
		"unknown":         {`{{httpGet "http://127.0.0.1"}}`, false, false},
		"too much":        {`{{repeat 1000000000 "x"}}`, false, false},
		"deep loops":      {`{{range list 1}}{{range list 1}}{{range list 1}}{{end}}{{end}}{{end}}`, false, false},
	} {
		args := fmt.Sprintf(`{"engine":"sprig","template":%q}`, code.code)
		for grant, allowed := range map[*contract.Grant]bool{hiding(): code.hidden, owner(): code.whole} {
			if r := d.call(grant, "file.render", args); (r.Err == nil) != allowed || !allowed && contract.CodeOf(r.Err) != contract.HiddenReference {
				t.Errorf("%s, allowed %t: %s %v", name, allowed, r.Body, r.Err)
			}
		}
		markdown := strings.NewReplacer("{{", ".action{", "}}", "}").Replace(code.code)
		r := d.call(owner(), "file.create_template", fmt.Sprintf(`{"path":"try.md","overwrite":true,"markdown":%q}`, markdown))
		if (r.Err == nil) != code.whole {
			t.Errorf("%s as a template: %v", name, r.Err)
		}
	}
	write(t, d.Home, "templates/daily.md", `.action{range queryBlocks "SELECT * FROM blocks"}.action{.Content}.action{end}`)
	fails(t, d.call(hiding(), "file.render", `{"engine":"template","id":"`+guardtest.Entry+`","path":"daily.md"}`), contract.HiddenReference)
	ok[catalogue.FileRenderOut](t, d, owner(), "file.render", `{"engine":"template","id":"`+guardtest.Entry+`","path":"daily.md"}`)
}

// Symbolic links would let a template be any file of the machine.
func TestSymbolicLinksAreNeitherTemplatesNorUnusedFiles(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	dir := d.Kernel.Dir()
	for link, target := range map[string]string{"templates/leak.md": "conf/conf.json", "templates/dir": "conf", "assets/dir": "conf", "assets/leak.json": "conf/conf.json"} {
		if err := os.Symlink(filepath.Join(dir, target), filepath.Join(dir, "data", link)); err != nil {
			t.Skip("this system makes no symbolic links: ", err)
		}
	}
	fails(t, d.call(owner(), "file.read_template", `{"path":"leak.md"}`), contract.NotFound)
	fails(t, d.call(owner(), "file.render", `{"engine":"template","id":"`+guardtest.Entry+`","path":"leak.md"}`), contract.NotFound)
	if out := ok[catalogue.FileListTemplatesOut](t, d, owner(), "file.list_templates", `{}`); out.Total != 2 {
		t.Errorf("templates %+v", out.Data)
	}
	answers(t, d, owner(), "file.list_unused_assets", `{}`, `{"assets":["`+looseFile+`","`+plainFile+`"],"count":2,"truncated":false}`)
	fails(t, d.call(owner(), "file.delete_asset", `{"path":"assets/leak.json"}`), contract.NotFound)
}

func TestAnAgentDeletesWhatItStoredAndNothingLinksTo(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	own := ok[catalogue.FileUploadAssetOut](t, d, owner(), "file.upload_asset", `{"id":"`+guardtest.Alpha+`","fileName":"own.txt","content":"YWJj"}`).Path
	without := owner()
	without.Switches = nil
	fails(t, d.call(without, "file.delete_asset", fmt.Sprintf(`{"path":%q}`, own)), contract.PermissionDenied)
	answers(t, d, owner(), "file.delete_asset", fmt.Sprintf(`{"path":%q}`, own), fmt.Sprintf(`{"success":true,"path":%q,"documents":0}`, own))
	if there(d, own) {
		t.Error("it is still there")
	}
}
