package policy

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
)

const (
	work  = "20240101090000-work001"
	diary = "20240101090100-diary01"
	other = "20240101090200-private"
)

func notebooks() []contract.NotebookInfo {
	return []contract.NotebookInfo{{ID: work, Name: "Work"}, {ID: diary, Name: "Diary"}, {ID: other, Name: "Twin"}}
}

func write(t *testing.T, path, text string, mtime time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, mtime, mtime); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, text string) *Policy {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, text, time.Unix(1, 0))
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWithoutAFileHomesAreReadOnly(t *testing.T) {
	t.Parallel()
	p, err := Load(filepath.Join(t.TempDir(), "none.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Restrict(&contract.Grant{Default: contract.ReadWriteDelete, Levels: map[string]contract.Level{work: contract.ReadWrite}}, unasked(t))
	if err != nil || g.Default != contract.Read || g.Level(work) != contract.Read {
		t.Errorf("default %s, work %s, want r for both", g.Default, g.Level(work))
	}
}

func TestAnEmptyFileIsReadOnlyToo(t *testing.T) {
	t.Parallel()
	if got := load(t, "# nothing yet\n").MaxLevel(); got != contract.Read {
		t.Errorf("max level %s, want r", got)
	}
}

func TestExampleParsesAndMeansWhatItSays(t *testing.T) {
	t.Parallel()
	p := load(t, Example)
	e := p.Effect([]contract.NotebookInfo{{ID: diary, Name: "Diary"}, {ID: other, Name: "Inbox"}, {ID: work, Name: "Work"}})
	want := map[string]contract.Level{diary: contract.None, other: contract.ReadWriteDelete, work: contract.Read}
	for id, l := range want {
		if e.Cap(id) != l {
			t.Errorf("cap of %s is %s, want %s", id, e.Cap(id), l)
		}
	}
	if e.Cap("20240101090300-archive") != contract.ReadWrite {
		t.Errorf("cap of an unnamed notebook is %s, want rw", e.Cap("20240101090300-archive"))
	}
	if !e.Vetoes("notebook", "create") || e.Vetoes("notebook", "list") {
		t.Errorf("vetoed %v, want notebook.create and not notebook.list", e.Vetoed)
	}
	if got := p.Confirm(); !slices.Equal(got, []Confirm{ConfirmDelete}) {
		t.Errorf("confirm %v, want delete", got)
	}
}

func TestRestrictNeverRaises(t *testing.T) {
	t.Parallel()
	levels := []contract.Level{contract.None, contract.Read, contract.ReadWrite, contract.ReadWriteDelete}
	for _, max := range levels {
		for _, named := range levels {
			for _, granted := range levels {
				p := load(t, "max_level: "+max.String()+"\nnotebooks:\n  "+work+": "+named.String()+"\n")
				g, err := p.Restrict(&contract.Grant{Default: granted, Levels: map[string]contract.Level{diary: granted}}, func() ([]contract.NotebookInfo, error) { return notebooks(), nil })
				if err != nil || g.Level(work) != min(granted, named) || g.Level(diary) != min(granted, max) || g.Default != min(granted, max) {
					t.Errorf("max %s, named %s, granted %s: work %s, diary %s, default %s", max, named, granted, g.Level(work), g.Level(diary), g.Default)
				}
			}
		}
	}
}

// unasked is a list of notebooks that nobody may ask for.
func unasked(t *testing.T) func() ([]contract.NotebookInfo, error) {
	return func() ([]contract.NotebookInfo, error) {
		t.Error("the list of notebooks was asked for")
		return nil, nil
	}
}

func TestTheListIsAskedForWhereNotebooksHaveRules(t *testing.T) {
	t.Parallel()
	g := &contract.Grant{Default: contract.ReadWriteDelete}
	if _, err := load(t, "max_level: rw\n").Restrict(g, unasked(t)); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"Diary", diary} {
		p, away := load(t, "max_level: rw\nnotebooks: {"+key+": none}\n"), errors.New("away")
		if g, err := p.Restrict(g, func() ([]contract.NotebookInfo, error) { return nil, away }); g != nil || !errors.Is(err, away) {
			t.Errorf("a rule of %s without a list: %+v, %v", key, g, err)
		}
	}
}

func TestASharedNameOnlyLowers(t *testing.T) {
	t.Parallel()
	twins := []contract.NotebookInfo{{ID: work, Name: "Twin"}, {ID: other, Name: "Twin"}}
	if got := load(t, "max_level: r\nnotebooks: {Twin: rwd}\n").Effect(twins); got.Cap(work) != contract.Read || got.Cap(other) != contract.Read {
		t.Errorf("caps %s and %s, want r: the name is not unique", got.Cap(work), got.Cap(other))
	}
	if got := load(t, "max_level: rw\nnotebooks: {Twin: none}\n").Effect(twins); got.Cap(work) != contract.None || got.Cap(other) != contract.None {
		t.Errorf("caps %s and %s, want none for both", got.Cap(work), got.Cap(other))
	}
}

func TestAnIDWinsOverAName(t *testing.T) {
	t.Parallel()
	got := load(t, "notebooks: {Work: rwd, "+work+": none}\n").Effect(notebooks())
	if got.Cap(work) != contract.None {
		t.Errorf("cap %s, want none", got.Cap(work))
	}
}

func TestAllowVetoesEverythingElse(t *testing.T) {
	t.Parallel()
	p := load(t, "allow: [notebook.list, search]\ndeny: [search.fulltext]\n")
	for _, tool := range tools.New().Tools() {
		for _, a := range tool.Actions {
			want := a.ID() != "notebook.list" && (tool.Name != "search" || a.ID() == "search.fulltext")
			if got := p.Vetoes(tool.Name, a.Name); got != want {
				t.Errorf("%s vetoed: %v, want %v", a.ID(), got, want)
			}
		}
	}
	if !load(t, "allow: []\n").Vetoes("notebook", "list") {
		t.Error("an empty allow list allows something")
	}
}

func TestBrokenFilesAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	root := filepath.ToSlash(filepath.VolumeName(t.TempDir()) + string(filepath.Separator))
	for name, text := range map[string]string{
		"unknown key":       "max_levels: rw\n",
		"unknown level":     "max_level: admin\n",
		"unknown tool":      "deny: [documents]\n",
		"unknown action":    "deny: [document.erase]\n",
		"unknown confirm":   "confirm: [everything]\n",
		"bad nested level":  "notebooks: {Work: yes}\n",
		"no name":           "notebooks: {\"\": r}\n",
		"a list":            "- a\n",
		"two documents":     "max_level: r\n---\nmax_level: rwd\n",
		"duplicate keys":    "max_level: r\nmax_level: rwd\n",
		"not YAML":          "max_level: [",
		"oversized":         "# " + strings.Repeat("x", maxBytes) + "\n",
		"a short path":      "upload_folders: [Documents]\n",
		"a home":            "export_folders: [~/Documents]\n",
		"a disk":            "export_folders: [\"" + root + "\"]\n",
		"duplicate entries": "notebooks:\n  Work: r\n  Work: rwd\n",
	} {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		write(t, path, text, time.Unix(1, 0))
		if _, err := Load(path); err == nil {
			t.Errorf("%s: loaded", name)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %q does not name the file", name, err)
		}
	}
}

func TestRefreshTakesOverAChangedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "max_level: rw\n", time.Unix(1, 0))
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := p.Refresh(); changed || err != nil {
		t.Fatalf("untouched file: changed %v, err %v", changed, err)
	}
	write(t, path, "max_level: rwd\n", time.Unix(2, 0))
	if changed, err := p.Refresh(); !changed || err != nil || p.MaxLevel() != contract.ReadWriteDelete {
		t.Fatalf("changed %v, err %v, level %s; want true, nil, rwd", changed, err, p.MaxLevel())
	}
	write(t, path, "max_level: rwd # same\n", time.Unix(3, 0))
	if changed, err := p.Refresh(); changed || err != nil {
		t.Errorf("a comment counts as a change of meaning: %v, %v", changed, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if changed, err := p.Refresh(); !changed || err != nil || p.MaxLevel() != contract.Read {
		t.Errorf("removed file: changed %v, err %v, level %s; want true, nil, r", changed, err, p.MaxLevel())
	}
}

func TestAnInvalidFileKeepsTheLastGoodRules(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "max_level: none\n", time.Unix(1, 0))
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "max_level: everything\n", time.Unix(2, 0))
	for range 2 { // the second look finds the file unchanged and must still report it
		if changed, err := p.Refresh(); changed || err == nil || !strings.Contains(err.Error(), "stay in force") {
			t.Fatalf("changed %v, err %v", changed, err)
		}
	}
	if p.MaxLevel() != contract.None {
		t.Errorf("level %s, want the none of the last good file", p.MaxLevel())
	}
	write(t, path, "max_level: r\n", time.Unix(3, 0))
	if changed, err := p.Refresh(); !changed || err != nil {
		t.Errorf("corrected file: changed %v, err %v", changed, err)
	}
}

func TestDigestFollowsTheMeaning(t *testing.T) {
	t.Parallel()
	digest := func(text string) string { return load(t, text).Effect(nil).Digest }
	same := digest("max_level: rw\ndeny: [block, search]\n")
	if digest("deny: [search, block, block.append]\nmax_level: rw # for now\n") != same {
		t.Error("order and comments change the digest")
	}
	for _, text := range []string{"max_level: r\ndeny: [block, search]\n", "max_level: rw\ndeny: [block]\n", "max_level: rw\ndeny: [block, search]\nnotebooks: {A: r}\n"} {
		if digest(text) == same {
			t.Errorf("%q has the digest of another meaning", text)
		}
	}
}

func TestConfirmNamesKindsOfAction(t *testing.T) {
	t.Parallel()
	confirmed := func(text, id string) bool {
		tool, name, _ := strings.Cut(id, ".")
		a, ok := tools.New().Action(tool, name)
		if !ok {
			t.Fatal(id)
		}
		return load(t, text).Confirms(a, json.RawMessage("{}"))
	}
	for _, c := range []struct {
		id                       string
		write, delete, dangerous bool
	}{
		{"document.remove", true, true, true},
		{"document.move", true, false, true},
		{"document.create", true, false, false},
		{"document.get_doc", false, false, false},
	} {
		if confirmed("max_level: rwd\n", c.id) {
			t.Errorf("%s waits for the owner without confirm", c.id)
		}
		for kind, want := range map[string]bool{"write": c.write, "delete": c.delete, "dangerous": c.dangerous} {
			if got := confirmed("confirm: ["+kind+"]\n", c.id); got != want {
				t.Errorf("confirm %s, %s: %v, want %v", kind, c.id, got, want)
			}
		}
	}
}

func TestToolsThatReachIntoTheInternetAreNamedByTheOwner(t *testing.T) {
	t.Parallel()
	p := load(t, "extension: [web_fetch, http_request, web_fetch]\n")
	for tool, want := range map[string]bool{"web_fetch": true, "http_request": true, "web_search": false, "outline": false} {
		if p.Outside(tool) != want {
			t.Errorf("%s: %v", tool, !want)
		}
	}
	if load(t, "max_level: rwd\n").Outside("web_fetch") || Fixed(contract.ReadWriteDelete).Outside("web_fetch") {
		t.Error("a policy that names no such tool lets one through")
	}
	if p.Effect(nil).Digest == load(t, "max_level: r\n").Effect(nil).Digest {
		t.Error("naming tools does not change the digest")
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "extension: [block]\n", time.Unix(1, 0))
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "web_search") {
		t.Errorf("another tool: %v", err)
	}
}

func TestFoldersOfTheMachineAreNamedByTheOwner(t *testing.T) {
	t.Parallel()
	in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
	text := "upload_folders: ['" + in + "/', '" + in + "']\nexport_folders: ['" + out + "', '" + in + "']\n"
	p := load(t, text)
	if got := p.Uploads(); !slices.Equal(got, []string{in}) {
		t.Errorf("uploads %q", got)
	}
	if got := p.Exports(); !slices.Equal(got, []string{out, in}) {
		t.Errorf("exports %q: not in the order of the file", got)
	}
	if p := load(t, "max_level: rwd\n"); len(p.Uploads())+len(p.Exports()) != 0 || len(Fixed(contract.ReadWriteDelete).Exports()) != 0 {
		t.Error("a policy that names no folder opens one")
	}
	if load(t, "max_level: r\n").Effect(nil).Digest == p.Effect(nil).Digest {
		t.Error("naming folders does not change the digest")
	}
}

// A call that asks for a one-time URL writes nothing at home, so that it is only a
// read; the same action with a path is dangerous.
func TestDangerIsOfACallNotOfAnAction(t *testing.T) {
	t.Parallel()
	p := load(t, "confirm: [dangerous]\n")
	for _, c := range []struct {
		action, args string
		want         bool
	}{
		{"export_resources", `{"paths":["assets/a"]}`, false},
		{"export_resources", `{"paths":["assets/a"],"outputPath":"a.zip"}`, true},
		{"extract_doc", `{"id":"20240102100100-alphadc"}`, true},
		{"extract_doc", `{"id":"20240102100100-alphadc","download":true}`, false},
		{"extract_doc", `{"id":"20240102100100-alphadc","download":false}`, true},
		{"delete_asset", `{"path":"assets/a"}`, true},
	} {
		a, ok := tools.New().Action("file", c.action)
		if !ok {
			t.Fatal(c.action)
		}
		if got := p.Confirms(a, json.RawMessage(c.args)); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.action, c.args, got, c.want)
		}
	}
}
