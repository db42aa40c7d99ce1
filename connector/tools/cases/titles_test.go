package cases_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// docs lists the readable paths below a folder, whatever the index says.
func (d *desk) docs(t testing.TB) []string {
	t.Helper()
	var paths []string
	var walk func(at string, nodes []catalogue.TreeNode)
	walk = func(at string, nodes []catalogue.TreeNode) {
		for _, n := range nodes {
			paths = append(paths, at+"/"+n.Name)
			walk(at+"/"+n.Name, n.Children)
		}
	}
	walk("", ok[catalogue.DocumentListTreeOut](t, d, "document.list_tree", `{"notebook":%q,"path":"/","maxDepth":20}`, guardtest.Work).Tree)
	return paths
}

// TestK06ASecondDocumentOfAPathIsAConflict and its text is not dropped in
// silence.
func TestK06ASecondDocumentOfAPathIsAConflict(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]string{
		"by path": `"path":"/Note"`, "with a slash more": `"path":"Note/"`, "by parent": `"parentPath":"/","title":"Note"`,
		"deep": `"path":"/Projects/Note"`, "below a storage path": `"parentPath":"/` + guardtest.Projects + `.sy","title":"Note"`,
	} {
		d := newDesk(t)
		create := `{"notebook":%q,` + place + `,"markdown":%q%s}`
		args := func(body, more string) string {
			return strings.Replace(sprintf(strings.Replace(create, "%s", "", 1), []any{guardtest.Work, body}), `}`, more+`}`, 1)
		}
		first := ok[catalogue.DocumentCreateOut](t, d, "document.create", args("first", ""))
		for _, fails := range []string{"", `,"ifExists":"fail"`} {
			r := d.call("document.create", args("second", fails))
			if r.Err == nil || contract.CodeOf(r.Err) != contract.AlreadyExists || !strings.Contains(string(r.Err.Detail), `"id":"`+first.ID+`"`) {
				t.Errorf("%s%s: %v %s, want already_exists with %s", name, fails, r.Err, r.Body, first.ID)
			}
		}
		if found := ok[catalogue.DocumentCreateOut](t, d, "document.create", args("second", `,"ifExists":"return"`)); found.ID != first.ID || found.Created {
			t.Errorf("%s, return: %+v", name, found)
		}
		other := ok[catalogue.DocumentCreateOut](t, d, "document.create", args("second", `,"ifExists":"suffix"`))
		if other.ID == first.ID || other.Title != "Note (2)" || !strings.HasPrefix(d.kramdown(t, other.ID), "second\n") || !strings.HasPrefix(d.kramdown(t, first.ID), "first\n") {
			t.Errorf("%s, suffix: %+v", name, other)
		}
	}
}

// TestK07ParallelCreatesShareTheirParents: ten at once below one missing parent,
// by either way to name the place, and no level twice.
func TestK07ParallelCreatesShareTheirParents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			if r := d.call("document.create", fmt.Sprintf(`{"notebook":%q,"path":"/2023/2023-%d/day","ifExists":"return"}`, guardtest.Work, i%5)); r.Err != nil {
				t.Error(r.Err)
			}
		})
	}
	group.Wait()
	seen := map[string]int{}
	for _, p := range d.docs(t) {
		seen[p]++
	}
	if seen["/2023"] != 1 || len(seen) != 3+1+5+5 {
		t.Errorf("documents %v", seen)
	}
	for p, n := range seen {
		if n != 1 {
			t.Errorf("%s exists %d times", p, n)
		}
	}
}

// TestK08NothingPicksOneOfTwo: every argument that is a readable path.
func TestK08NothingPicksOneOfTwo(t *testing.T) {
	t.Parallel()
	twins := []string{"20240102100700-twin001", "20240102100800-twin002"}
	d := newDesk(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + twins[0] + ".sy", Title: "Note"}, guardtest.Doc{Box: guardtest.Work, Path: "/" + twins[1] + ".sy", Title: "Note"})
	for _, place := range []string{`"path":"/Note/Child"`, `"parentPath":"/Note","title":"Child"`, `"path":"/Note/Deep/Child"`} {
		e := d.fails(t, contract.AmbiguousPath, "document.create", `{"notebook":%q,`+place+`}`, guardtest.Work)
		for _, id := range twins {
			if !strings.Contains(string(e.Detail), id) {
				t.Errorf("%s: detail %s does not name %s", place, e.Detail, id)
			}
		}
	}
	e := d.fails(t, contract.AmbiguousPath, "document.create", `{"notebook":%q,"path":"/Note","ifExists":"return"}`, guardtest.Work)
	if !strings.Contains(string(e.Detail), twins[0]) || !strings.Contains(string(e.Detail), twins[1]) {
		t.Errorf("detail %s", e.Detail)
	}
	found := ok[catalogue.DocumentLookupOut](t, d, "document.lookup", `{"notebook":%q,"hpath":"/Note","include":["ids"]}`, guardtest.Work)
	if found.IDPath.ID != "" || strings.Join(found.IDPath.IDs, " ") != strings.Join(twins, " ") {
		t.Errorf("lookup %+v", found.IDPath)
	}
	if len(d.docs(t)) != 5 {
		t.Errorf("documents %v", d.docs(t))
	}
}

// TestK10ATitleIsStoredAsItIsOrRefused, never as another one and never as two
// levels, by every argument that is a title.
func TestK10ATitleIsStoredAsItIsOrRefused(t *testing.T) {
	t.Parallel()
	kept := []string{
		`50%`, `100%25`, `%2F`, `A\B`, `a?b#c`, `"q" & <b> 'a'`, `#tag#`, `..x`, `x..`, `...`, `.hidden`, `x.sy`, `con`, `{{x}}`, `((x))`, `👨‍👩‍👧 𠮷`, `日记 ／ 周`, `مرحبا بالعالم`,
		`שלום`, `é`, `e` + "\u0301", strings.Repeat("字", 512), strings.Repeat("𠮷", 512),
	}
	refused := []string{
		`A/B test`, `/`, `a/`, ` ..`, `..`, `.`, ` `, ``, ` a`, `a `, "a\nb", "a\tb", "a\rb", "a\x00b", "a\x7fb", "a\u0085b", "\u00a0", strings.Repeat("字", 513),
	}
	d := newDesk(t)
	for _, title := range kept {
		before := len(d.docs(t))
		for _, args := range []string{`{"notebook":%q,"parentPath":"/Projects","title":%q}`, `{"notebook":%q,"path":%q}`} {
			given := title
			if strings.Contains(args, `"path"`) {
				given = "/" + title
			}
			made := ok[catalogue.DocumentCreateOut](t, d, "document.create", args, guardtest.Work, given)
			if got := d.attrs(t, made.ID)["title"]; got != title || made.Title != title {
				t.Errorf("%.40q is stored as %.40q, told %.40q", title, got, made.Title)
			}
			found := ok[catalogue.DocumentLookupOut](t, d, "document.lookup", `{"notebook":%q,"hpath":%q}`, guardtest.Work, made.Path)
			if found.IDPath.ID != made.ID {
				t.Errorf("%.40q: its path leads to %q", title, found.IDPath.ID)
			}
		}
		ok[struct{}](t, d, "document.rename", `{"id":%q,"title":%q}`, guardtest.Alpha, title)
		ok[struct{}](t, d, "notebook.rename", `{"notebook":%q,"name":%q}`, guardtest.Work, title)
		if got := d.attrs(t, guardtest.Alpha)["title"]; got != title {
			t.Errorf("%.40q: renamed to %.40q", title, got)
		}
		if after := len(d.docs(t)); after != before+2 {
			t.Errorf("%.40q: %d documents more, want 2", title, after-before)
		}
	}
	before := d.files(t)
	for _, title := range refused {
		for id, args := range map[string]string{
			"document.create":   `{"notebook":"` + guardtest.Work + `","parentPath":"/Projects","title":%q}`,
			"document.rename":   `{"id":"` + guardtest.Alpha + `","title":%q}`,
			"notebook.rename":   `{"notebook":"` + guardtest.Work + `","name":%q}`,
			"notebook.set_conf": `{"notebook":"` + guardtest.Work + `","conf":{"name":%q}}`,
		} {
			e := d.fails(t, contract.InvalidArguments, id, args, title)
			if !strings.Contains(string(e.Detail), "title") && !strings.Contains(string(e.Detail), "name") {
				t.Errorf("%s %.40q: detail %s does not name the field", id, title, e.Detail)
			}
		}
		if r := d.callAs(owner(), "notebook.create", sprintf(`{"name":%q}`, []any{title})); r.Err == nil || contract.CodeOf(r.Err) != contract.InvalidArguments {
			t.Errorf("notebook.create %.40q: %v", title, r.Err)
		}
	}
	for _, path := range []string{"/A/../B", "/A/ ../B", "/A/./B", "/A//B", "/ /B", "/A\n/B", "/..", "/A/\x00"} {
		d.fails(t, contract.InvalidArguments, "document.create", `{"notebook":%q,"path":%q}`, guardtest.Work, path)
	}
	if after := d.files(t); len(after) != len(before) {
		t.Errorf("%d files, %d before", len(after), len(before))
	}
}
