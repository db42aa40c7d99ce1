package tools_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/folders"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// onDisk gives a desk a folder of the machine, allowed for both.
func onDisk(t *testing.T, d *desk) string {
	t.Helper()
	dir := t.TempDir()
	list := func() []string { return []string{dir} }
	var err error
	d.exec, err = tools.New(tools.Config{Guard: d.Guard, Policy: policy.Fixed(contract.ReadWriteDelete), Catalogue: catalogue.AtHome(), Folders: folders.New(folders.Config{Upload: list, Export: list})}, handlers.All()...)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// saved are the files below a folder with what is in them.
func saved(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, relErr := filepath.Rel(dir, path)
		if all[filepath.ToSlash(rel)] = string(b); err == nil {
			err = relErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAFileOfTheMachineIsStored(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	dir := onDisk(t, d)
	save(t, filepath.Join(dir, "Plan für Mai.txt"), "abc")
	args := fmt.Sprintf(`{"id":%q,"localFilePath":"Plan für Mai.txt","assetsDirPath":"/assets/"}`, guardtest.Alpha)
	if p := previewed(t, d, owner(), "file.upload_asset", args); p.Counts.Bytes != 3 || len(p.Named) != 1 || p.Named[0].Title != "Plan für Mai.txt" {
		t.Errorf("preview %+v", p)
	}
	out := ok[catalogue.FileUploadAssetOut](t, d, owner(), "file.upload_asset", args)
	if !strings.HasPrefix(out.Path, "assets/Plan-für-Mai-") || out.Size != 3 || !there(d, out.Path) {
		t.Errorf("%+v", out)
	}
	named := ok[catalogue.FileUploadAssetOut](t, d, owner(), "file.upload_asset", fmt.Sprintf(`{"id":%q,"file":%q,"fileName":"b.txt"}`, guardtest.Alpha, filepath.ToSlash(filepath.Join(dir, "Plan für Mai.txt"))))
	if !strings.HasPrefix(named.Path, "assets/b-") {
		t.Errorf("with a name and the parameter's other name: %+v", named)
	}
	fails(t, d.call(owner(), "file.upload_asset", fmt.Sprintf(`{"id":%q,"localFilePath":"Plan für Mai.txt","sha256":%q}`, guardtest.Alpha, strings.Repeat("0", 64))), contract.InvalidValue)
}

func TestTheMachineIsForThoseWhoSpeakForTheHome(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	dir := onDisk(t, d)
	save(t, filepath.Join(dir, "a.txt"), "abc")
	for id, args := range map[string]string{
		"file.upload_asset":     fmt.Sprintf(`{"id":%q,"localFilePath":"a.txt"}`, guardtest.Alpha),
		"file.extract_doc":      fmt.Sprintf(`{"id":%q}`, guardtest.Alpha),
		"file.export_resources": fmt.Sprintf(`{"paths":[%q],"outputPath":"a.zip"}`, sharedFile),
	} {
		fails(t, d.call(writer(), id, args), contract.PermissionDenied)
		bare := fileDesk(t)
		r := bare.call(owner(), id, args)
		fails(t, r, contract.PermissionDenied)
		if !strings.Contains(r.Err.Hint, "_folders") || !strings.Contains(r.Err.Hint, "policy.yaml") || !strings.Contains(r.Err.Hint, "one-time URL") {
			t.Errorf("%s without a folder: hint %q", id, r.Err.Hint)
		}
	}
	if got := saved(t, dir); len(got) != 1 {
		t.Errorf("written: %v", got)
	}
}

func TestAssetsAreWrittenToANewFile(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	dir := onDisk(t, d)
	args := fmt.Sprintf(`{"paths":[%q,%q],"outputPath":"out.zip"}`, sharedFile, "/"+sharedFile)
	if p := previewed(t, d, owner(), "file.export_resources", args); p.Counts.Assets != 1 || p.Target == nil || p.Target.Title != "out.zip" {
		t.Errorf("preview %+v", p)
	}
	out := ok[catalogue.FileExportResourcesOut](t, d, owner(), "file.export_resources", args)
	if out.OutputPath != filepath.Join(dir, "out.zip") || out.Files != 1 || out.Name != "out.zip" {
		t.Errorf("%+v", out)
	}
	got := saved(t, dir)["out.zip"]
	z, err := zip.NewReader(strings.NewReader(got), int64(len(got)))
	if err != nil || len(z.File) != 1 || z.File[0].Name != sharedFile {
		t.Fatalf("%v, %v", z, err)
	}
	fails(t, d.call(owner(), "file.export_resources", args), contract.AlreadyExists)
	if now := saved(t, dir); len(now) != 1 || now["out.zip"] != got {
		t.Errorf("after a second call: %d files", len(now))
	}
	fails(t, d.call(owner(), "file.export_resources", fmt.Sprintf(`{"paths":[%q],"outputPath":"../out.zip"}`, sharedFile)), contract.PermissionDenied)
	// What may not be read is not there, before anything is made.
	fails(t, d.call(hiding(), "file.export_resources", fmt.Sprintf(`{"paths":[%q],"outputPath":"secret.zip"}`, secretFile)), contract.NotFound)
	if now := saved(t, dir); len(now) != 1 {
		t.Errorf("after refusals: %d files", len(now))
	}
}

const mixedDoc = "20240109000014-mixedpc"

// addMixed makes a document with a file of its own, one that a hidden note shows
// too, and one that is gone.
func addMixed(t *testing.T, d *desk) {
	t.Helper()
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + mixedDoc + ".sy", Title: `Mixed: a/b "pictures"`, Text: "![a](assets/a%20b.png)\n\n![s](" + secretFile + ")\n\n[g](assets/gone.pdf)\n"})
	write(t, d.Home, "assets/a b.png", "bytes of a b")
}

func TestADocumentIsExtractedIntoANewFolder(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	addMixed(t, d)
	dir := onDisk(t, d)
	args := fmt.Sprintf(`{"id":%q}`, mixedDoc)
	if p := previewed(t, d, hiding(), "file.extract_doc", args); p.Counts.Assets != 1 || p.Counts.Bytes != len("bytes of a b") || len(p.Named) != 1 || !strings.HasSuffix(p.Named[0].Title, "-mixedpc") {
		t.Errorf("preview %+v", p)
	}
	out := ok[catalogue.FileExtractDocOut](t, d, hiding(), "file.extract_doc", args)
	folder := filepath.Base(out.ExtractedDir)
	if out.OutputRoot != dir || !out.DefaultOutputDirUsed || !strings.HasSuffix(folder, "-mixedpc") || out.DocMdFile != folder+".md" || out.ExtractedAssetCount != 1 || out.SkippedAssetCount != 2 || len(out.Skipped) != 2 {
		t.Errorf("%+v", out)
	}
	for _, s := range out.Skipped {
		if s.Why != "There is no such asset." {
			t.Errorf("a hidden file and one that is gone are told apart: %+v", out.Skipped)
		}
	}
	want := map[string]string{folder + "/" + folder + ".md": "![a](assets/a%20b.png)\n\n![s](" + secretFile + ")\n\n[g](assets/gone.pdf)\n", folder + "/assets/a b.png": "bytes of a b"}
	got := saved(t, dir)
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is %q, want %q", name, got[name], text)
		}
	}
	if len(got) != len(want) || !slices.Equal(out.Structure, []string{folder + ".md", "assets/a b.png"}) {
		t.Errorf("files %v, told %v", got, out.Structure)
	}
	fails(t, d.call(hiding(), "file.extract_doc", args), contract.AlreadyExists)
	if now := saved(t, dir); len(now) != len(want) {
		t.Errorf("after a second call: %v", now)
	}
	if err := os.Mkdir(filepath.Join(dir, "there"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out := ok[catalogue.FileExtractDocOut](t, d, hiding(), "file.extract_doc", fmt.Sprintf(`{"id":%q,"outputDir":"there"}`, mixedDoc)); out.DefaultOutputDirUsed || out.ExtractedDir != filepath.Join(dir, "there", folder) {
		t.Errorf("into a folder: %+v", out)
	}
	fails(t, d.call(hiding(), "file.extract_doc", fmt.Sprintf(`{"id":%q,"outputDir":"none"}`, mixedDoc)), contract.NotFound)
	fails(t, d.call(hiding(), "file.extract_doc", fmt.Sprintf(`{"id":%q,"outputDir":"..","download":true}`, mixedDoc)), contract.InvalidArguments)
}

func TestAnExtractThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	addMixed(t, d)
	dir := onDisk(t, d)
	d.Kernel.Faults().Set("/api/file/getFile", samplekernel.Fault{Kind: samplekernel.FaultDrop})
	r := d.call(hiding(), "file.extract_doc", fmt.Sprintf(`{"id":%q}`, mixedDoc))
	if r.Err == nil || len(saved(t, dir)) != 0 {
		t.Errorf("%s %v, left %v", r.Body, r.Err, saved(t, dir))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A download needs neither a folder nor a switch: it is what the caller may read.
func TestADocumentIsExtractedAsAZip(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	addMixed(t, d)
	args := fmt.Sprintf(`{"id":%q,"download":true}`, mixedDoc)
	out := ok[catalogue.FileExtractDocOut](t, d, writer(), "file.extract_doc", args)
	if !strings.HasSuffix(out.Name, "-mixedpc.zip") || out.ExtractedAssetCount != 1 || out.ExtractedDir != "" {
		t.Errorf("%+v", out)
	}
	var packed sink
	if err := d.carry(writer(), "file.extract_doc", args, 0, nil, &packed); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	folder := strings.TrimSuffix(out.Name, ".zip")
	if !slices.Equal(names, []string{folder + "/" + folder + ".md", folder + "/assets/a b.png"}) {
		t.Errorf("%v", names)
	}
	if err := d.carry(writer(), "file.extract_doc", fmt.Sprintf(`{"id":%q}`, mixedDoc), 0, nil, &packed); contract.CodeOf(err) != contract.Unsupported {
		t.Errorf("a stream without download: %v", err)
	}
}

// An agreement to a read that writes on the machine is good once, too.
func TestWhatWasAgreedToIsNotExtractedAgain(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	dir := onDisk(t, d)
	c := contract.Call{Tool: "file", Action: "extract_doc", RequestID: "req-1", Grant: owner(), Args: json.RawMessage(fmt.Sprintf(`{"id":%q}`, guardtest.Alpha)), Replay: true}
	if r := d.exec.Handle(t.Context(), c, nil); contract.CodeOf(r.Err) != contract.ConfirmationUsed || len(saved(t, dir)) != 0 {
		t.Errorf("%s %v", r.Body, r.Err)
	}
}
