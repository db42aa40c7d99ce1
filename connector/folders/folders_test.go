package folders_test

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"siyuan-broker/connector/folders"
	"siyuan-broker/contract"
)

// disk is a folder that the owner allows for both, with things in it and beside.
type disk struct {
	*folders.Folders
	above, allowed, private string
}

func newDisk(t *testing.T) disk {
	t.Helper()
	above, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := disk{above: above, allowed: filepath.Join(above, "allowed"), private: filepath.Join(above, "allowed", "own")}
	for name, text := range map[string]string{
		"secret.txt": "secret", "other/secret.txt": "secret", "allowed/a b.txt": "abc", "allowed/sub/c.txt": "c", "allowed/.env": "secret", "allowed/.ssh/id": "secret",
		"allowed/own/state.db": "secret", "allowed/note.sy": "secret", "allowed/SiYuan/conf/conf.json": "secret", "allowed/SiYuan/temp/x.txt": "secret", "allowed/SiYuan/data/assets/x.txt": "secret",
		"allowed/box/.siyuan/conf.json": "secret", "allowed/box/x.txt": "secret", "allowed/elsewhere/connector.key": "secret", "allowed/elsewhere/x.txt": "secret",
	} {
		d.write(t, name, text)
	}
	list := func() []string { return []string{d.allowed} }
	d.Folders = folders.New(folders.Config{Upload: list, Export: list, Private: []string{d.private, filepath.Join(above, "none")}})
	return d
}

func (d disk) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(d.above, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree is everything there is, to tell that nothing changed.
func (d disk) tree(t *testing.T) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(d.above, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		line := path
		if e.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += "=" + string(b)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

func link(t *testing.T, old, path string) {
	t.Helper()
	if err := os.Symlink(old, path); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}

func TestFilesAreReadFromAllowedFolders(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	for path, want := range map[string]string{
		"a b.txt": "abc", "sub/c.txt": "c", "sub/../a b.txt": "abc", filepath.Join(d.allowed, "sub", "c.txt"): "c", filepath.Join(d.allowed, "sub", "..", "a b.txt"): "abc",
	} {
		s, err := d.Open(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		text, err := io.ReadAll(s)
		if err != nil || string(text) != want || s.Size != int64(len(want)) || s.Name != filepath.Base(path) {
			t.Errorf("%s: %q, %d bytes, name %q, %v", path, text, s.Size, s.Name, err)
		}
		_ = s.Close()
	}
}

func TestNothingElseIsRead(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	link(t, filepath.Join(d.above, "secret.txt"), filepath.Join(d.allowed, "link.txt"))
	link(t, filepath.Join("..", "secret.txt"), filepath.Join(d.allowed, "short.txt"))
	link(t, filepath.Join(d.above, "other"), filepath.Join(d.allowed, "out"))
	link(t, "SiYuan", filepath.Join(d.allowed, "in"))
	link(t, "a b.txt", filepath.Join(d.allowed, "inner.txt"))
	for path, want := range map[string]contract.Code{
		"../secret.txt": contract.PermissionDenied, "sub/../../secret.txt": contract.PermissionDenied, filepath.Join(d.above, "secret.txt"): contract.PermissionDenied, d.allowed + "x/a": contract.PermissionDenied,
		"link.txt": contract.PermissionDenied, "short.txt": contract.PermissionDenied, "inner.txt": contract.PermissionDenied, "out/secret.txt": contract.PermissionDenied, "in/temp/x.txt": contract.PermissionDenied,
		".env": contract.PermissionDenied, ".ssh/id": contract.PermissionDenied, "own/state.db": contract.PermissionDenied, "note.sy": contract.PermissionDenied, "NOTE.SY": contract.PermissionDenied,
		"SiYuan/conf/conf.json": contract.PermissionDenied, "SiYuan/temp/x.txt": contract.PermissionDenied, "SiYuan/data/assets/x.txt": contract.PermissionDenied, "box/x.txt": contract.PermissionDenied, "elsewhere/x.txt": contract.PermissionDenied,
		"sub": contract.PermissionDenied, ".": contract.InvalidValue, d.allowed: contract.InvalidValue, "none.txt": contract.NotFound, "none/c.txt": contract.NotFound, "a\x00b": contract.PermissionDenied, "a\nb": contract.PermissionDenied,
	} {
		s, err := d.Open(path)
		if contract.CodeOf(err) != want {
			t.Errorf("%q: %v, want %s", path, err, want)
		}
		if err == nil {
			_ = s.Close()
		}
	}
}

// Whether something is there outside is not told: the answer to a path outside
// comes before any look at the disk.
func TestOutsideThereAndMissingAnswerAlike(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	_, there := d.Open(filepath.Join(d.above, "secret.txt"))
	_, missing := d.Open(filepath.Join(d.above, "sacret.txt"))
	if a, b := string(contract.AsError(there).Body()), string(contract.AsError(missing).Body()); a != strings.ReplaceAll(b, "sacret", "secret") {
		t.Errorf("%s\n%s", a, b)
	}
}

func TestWithoutAFolderTheAnswerSaysWhatToWriteWhere(t *testing.T) {
	t.Parallel()
	none := func() []string { return nil }
	for name, f := range map[string]*folders.Folders{"nil": nil, "none": folders.New(folders.Config{Upload: none, Export: none})} {
		_, err := f.Open("a.txt")
		if e := contract.AsError(err); contract.CodeOf(err) != contract.PermissionDenied || !strings.Contains(e.Hint, "upload_folders") || !strings.Contains(e.Hint, "policy.yaml") {
			t.Errorf("%s: %v %q", name, err, e.Hint)
		}
		_, err = f.NewFolder("", "a")
		if e := contract.AsError(err); contract.CodeOf(err) != contract.PermissionDenied || !strings.Contains(e.Hint, "export_folders") {
			t.Errorf("%s: %v %q", name, err, e.Hint)
		}
	}
}

func TestAFolderThatIsOrLiesInAPrivateOneIsOfNoUse(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	for _, folder := range []string{"SiYuan", "SiYuan/data/assets", "SiYuan/temp", "own", "elsewhere"} {
		list := func() []string { return []string{filepath.Join(d.allowed, filepath.FromSlash(folder))} }
		f := folders.New(folders.Config{Upload: list, Export: list, Private: []string{d.private}})
		if _, err := f.Open("x.txt"); contract.CodeOf(err) != contract.PermissionDenied {
			t.Errorf("%s: read: %v", folder, err)
		}
		if _, err := f.NewFolder("", "new"); contract.CodeOf(err) != contract.PermissionDenied {
			t.Errorf("%s: written: %v", folder, err)
		}
		if p := f.Check(); len(p) != 2 || !strings.Contains(p[0], "upload_folders") || !strings.Contains(p[1], "export_folders") {
			t.Errorf("%s: %q", folder, p)
		}
	}
	if p := d.Check(); len(p) != 0 {
		t.Errorf("a good one: %q", p)
	}
}

// save is one export of a file.
func save(f *folders.Folders, path, text string) error {
	e, file, err := f.NewFile(path)
	if err != nil {
		return err
	}
	if _, err := file.Write([]byte(text)); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return e.Close()
}

func TestExportsAreNewFilesInAllowedFolders(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	for _, path := range []string{"new.zip", filepath.Join(d.allowed, "sub", "new one.zip")} {
		if err := save(d.Folders, path, "zip"); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"new.zip", "sub/new one.zip"} {
		if b, err := os.ReadFile(filepath.Join(d.allowed, path)); err != nil || string(b) != "zip" {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}

func TestAnExportChangesNothingThatIsThere(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	link(t, filepath.Join(d.above, "made.txt"), filepath.Join(d.allowed, "dangling.txt"))
	link(t, filepath.Join(d.above, "other"), filepath.Join(d.allowed, "out"))
	before := d.tree(t)
	for path, want := range map[string]contract.Code{
		"a b.txt": contract.AlreadyExists, "sub": contract.AlreadyExists, "dangling.txt": contract.AlreadyExists, "../new.zip": contract.PermissionDenied, filepath.Join(d.above, "new.zip"): contract.PermissionDenied,
		"out/new.zip": contract.PermissionDenied, "SiYuan/temp/new.zip": contract.PermissionDenied, "SiYuan/new.zip": contract.PermissionDenied, "own/new.zip": contract.PermissionDenied, "box/new.zip": contract.PermissionDenied,
		"none/new.zip": contract.NotFound, "a b.txt/new.zip": contract.PermissionDenied, ".new": contract.PermissionDenied, "new.sy": contract.PermissionDenied, ".": contract.InvalidValue,
		"NUL": contract.InvalidValue, "com1.zip": contract.InvalidValue, "lpt¹": contract.InvalidValue, "aux .txt": contract.InvalidValue, "a:b": contract.InvalidValue, "a.": contract.InvalidValue, "a ": contract.InvalidValue, `a\b`: contract.InvalidValue, "a?": contract.InvalidValue,
	} {
		if runtime.GOOS == "windows" && want == contract.InvalidValue && path != "." {
			continue // such a path is no local one there
		}
		if err := save(d.Folders, path, "x"); contract.CodeOf(err) != want {
			t.Errorf("%q: %v, want %s", path, err, want)
		}
	}
	for _, path := range []string{"a b.txt", "dangling.txt", "out", "SiYuan", "own", "../other", "none"} {
		if _, err := d.NewFolder(path, "new"); err == nil {
			t.Errorf("a folder below %q", path)
		}
	}
	if now := d.tree(t); now != before {
		t.Errorf("there is now\n%s\nwas\n%s", now, before)
	}
}

func TestAFolderIsFilledAndNamedOnce(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	e, err := d.NewFolder("", "Doc-abcdefg")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"Doc.md", "assets/x.png", "assets/deep/er/y.png", "assets/deep/z.png"} {
		f, err := e.Create(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if _, err := f.Write([]byte(path)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]contract.Code{"Doc.md": contract.AlreadyExists, "../x": contract.InvalidValue, "assets/../../x": contract.InvalidValue, "a//b": contract.InvalidValue, "": contract.InvalidValue, "assets/nul": contract.InvalidValue} {
		if want == contract.InvalidValue && folders.Usable(path) && path != "" && path != "a//b" {
			t.Errorf("%q is called usable", path)
		}
		if _, err := e.Create(path); contract.CodeOf(err) != want {
			t.Errorf("%q: %v, want %s", path, err, want)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(e.Path, "assets", "deep", "er", "y.png")); err != nil || string(b) != "assets/deep/er/y.png" || e.Root != d.allowed || !e.First {
		t.Errorf("%q, %v, %+v", b, err, e)
	}
	before := d.tree(t)
	if _, err := d.NewFolder("", "Doc-abcdefg"); contract.CodeOf(err) != contract.AlreadyExists {
		t.Errorf("again: %v", err)
	}
	if _, err := d.Place("", "Doc-abcdefg"); contract.CodeOf(err) != contract.AlreadyExists {
		t.Errorf("looked at: %v", err)
	}
	if got, err := d.Place("sub", "Doc-abcdefg"); err != nil || got != filepath.Join(d.allowed, "sub", "Doc-abcdefg") {
		t.Errorf("elsewhere: %q, %v", got, err)
	}
	if now := d.tree(t); now != before {
		t.Error("a look changed something")
	}
}

func TestAnAbandonedExportTakesAwayWhatItMadeAndNothingElse(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	before := d.tree(t)
	fill := func(name string) *folders.Export {
		e, err := d.NewFolder("", name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := e.Create("assets/x.png")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return e
	}
	if err := fill("gone").Abandon(); err != nil {
		t.Error(err)
	}
	if now := d.tree(t); now != before {
		t.Errorf("there is now\n%s\nwas\n%s", now, before)
	}
	e := fill("kept")
	d.write(t, "allowed/kept/mine.txt", "mine")
	if err := os.Remove(filepath.Join(e.Path, "assets", "x.png")); err != nil {
		t.Fatal(err)
	}
	d.write(t, "allowed/kept/assets/x.png", "mine too")
	_ = e.Abandon() // it says that the folders are not empty
	for _, path := range []string{"mine.txt", "assets/x.png"} {
		if _, err := os.Stat(filepath.Join(e.Path, path)); err != nil {
			t.Error(err)
		}
	}
	whole, file, err := d.NewFile("done.zip")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := whole.Close(); err != nil {
		t.Fatal(err)
	}
	if err := whole.Abandon(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(whole.Path); err != nil {
		t.Errorf("what was kept is gone: %v", err)
	}
}
