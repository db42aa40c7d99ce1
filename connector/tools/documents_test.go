package tools_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

const alphaPath = "/" + guardtest.Projects + "/" + guardtest.Alpha + ".sy"

func (d *desk) place(t *testing.T, id string) string {
	t.Helper()
	loc, err := d.Client.Reader().PathByID(context.Background(), siyuan.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return string(loc.Notebook) + loc.Path
}

func TestRenameByIDAndByPath(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	for title, which := range map[string]string{
		`50% "quoted" & <b>`: `"id":"` + guardtest.Alpha + `"`,
		`Hello — 世界 𠮷`:       `"notebook":"` + guardtest.Work + `","path":"` + alphaPath + `"`,
	} {
		out := ok[catalogue.DocumentRenameOut](t, d, writer(), "document.rename", fmt.Sprintf(`{"title":%q,%s}`, title, which))
		if out.ID != guardtest.Alpha || out.Notebook != guardtest.Work || out.Path != alphaPath || out.Title != title || !out.Success {
			t.Errorf("%+v", out)
		}
		attrs, err := d.Client.Reader().BlockAttrs(context.Background(), guardtest.Alpha)
		if err != nil || attrs["title"] != title {
			t.Errorf("title %q, want %q (%v)", attrs["title"], title, err)
		}
	}
}

// TestK10ATitleIsOneLevel holds for rename what create holds: SiYuan would drop
// the slash without a word.
func TestK10ATitleIsOneLevel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	for _, title := range []string{"A/B test", " ..", "..", "a\nb", "tab\there", " ", strings.Repeat("x", 513)} {
		fails(t, d.call(writer(), "document.rename", fmt.Sprintf(`{"id":%q,"title":%q}`, guardtest.Alpha, title)), contract.InvalidArguments)
		fails(t, d.call(writer(), "notebook.rename", fmt.Sprintf(`{"notebook":%q,"name":%q}`, guardtest.Work, title)), contract.InvalidArguments)
	}
}

// TestOnlyADocumentsOwnIDNamesIt: renameDocByID and removeDocByID act on the
// document of any block.
func TestOnlyADocumentsOwnIDNamesIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	for action, args := range map[string]string{
		"rename": `{"id":"%s","title":"x"}`, "remove": `{"id":"%s"}`, "move": `{"fromIDs":["%s"],"toID":"` + guardtest.Work + `"}`,
	} {
		r := d.call(full(), "document."+action, fmt.Sprintf(args, guardtest.Intro))
		fails(t, r, contract.InvalidTarget)
		if r.Err != nil && !strings.Contains(r.Err.Message, guardtest.Alpha) {
			t.Errorf("%s: %q does not name the document", action, r.Err.Message)
		}
	}
	fails(t, d.call(full(), "document.move", `{"fromIDs":["`+guardtest.Alpha+`"],"toID":"`+guardtest.Intro+`"}`), contract.InvalidTarget)
	if !d.exists(t, guardtest.Alpha) || d.place(t, guardtest.Alpha) != guardtest.Work+alphaPath {
		t.Error("the document was touched")
	}
}

func TestANotebooksRootDocumentIsNoDocument(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	g := full()
	g.Switches, g.Default = contract.Switches(), contract.ReadWriteDelete
	nb := ok[catalogue.NotebookCreateOut](t, d, g, "notebook.create", `{"name":"Fresh"}`).Notebook.ID
	for _, c := range [][2]string{
		{"document.rename", `{"id":"` + nb + `","title":"x"}`}, {"document.remove", `{"id":"` + nb + `"}`},
		{"document.move", `{"fromIDs":["` + nb + `"],"toID":"` + guardtest.Work + `"}`},
	} {
		r := d.call(g, c[0], c[1])
		fails(t, r, contract.InvalidTarget)
		if r.Err != nil && !strings.Contains(r.Err.Hint, "notebook.") {
			t.Errorf("%s: hint %q", c[0], r.Err.Hint)
		}
	}
}

func TestMoveDocumentsWithAllBelowThem(t *testing.T) {
	t.Parallel()
	moved := func(d *desk, g *contract.Grant, args string) catalogue.DocumentMoveOut {
		return ok[catalogue.DocumentMoveOut](t, d, g, "document.move", args)
	}
	d := newPlainDesk(t)
	out := moved(d, writer(), `{"fromIDs":["`+guardtest.Alpha+`"],"toID":"`+plainDoc+`"}`)
	want := "/" + plainDoc + "/" + guardtest.Alpha + ".sy"
	if d.place(t, guardtest.Alpha) != guardtest.Work+want || out.Paths[0] != want || out.ToNotebook != guardtest.Work || out.ToPath != "/"+plainDoc+".sy" {
		t.Errorf("below a document: at %s, told %+v", d.place(t, guardtest.Alpha), out)
	}
	out = moved(d, writer(), `{"fromPaths":["`+want+`"],"toNotebook":"`+guardtest.Work+`","toPath":"/"}`)
	if d.place(t, guardtest.Alpha) != guardtest.Work+"/"+guardtest.Alpha+".sy" || out.FromIDs[0] != guardtest.Alpha || out.ToPath != "/" {
		t.Errorf("to the top: at %s, told %+v", d.place(t, guardtest.Alpha), out)
	}
	d = newPlainDesk(t)
	moved(d, full(), `{"fromIDs":["`+guardtest.Projects+`","`+plainDoc+`"],"toID":"`+guardtest.Diary+`"}`)
	if d.place(t, guardtest.Alpha) != guardtest.Diary+alphaPath || d.place(t, plainDoc) != guardtest.Diary+"/"+plainDoc+".sy" {
		t.Errorf("to another notebook: %s, %s", d.place(t, guardtest.Alpha), d.place(t, plainDoc))
	}
	moved(d, full(), `{"fromIDs":["`+plainDoc+`"],"toID":"`+guardtest.Diary+`"}`) // it is there already
	for _, level := range []contract.Level{contract.Read, contract.ReadWrite} {
		r := newPlainDesk(t).call(grantOn(level, contract.ReadWrite), "document.move", `{"fromIDs":["`+plainDoc+`"],"toID":"`+guardtest.Diary+`"}`)
		fails(t, r, contract.PermissionDenied)
		if !strings.Contains(string(r.Err.Body()), `"required":"rwd"`) {
			t.Errorf("with %s: %s", level, r.Err.Body())
		}
	}
}

func TestMovesTheKernelWouldPassOverAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	for name, c := range map[string]struct {
		args string
		want contract.Code
	}{
		"into itself":           {`"fromIDs":["` + guardtest.Projects + `"],"toID":"` + guardtest.Projects + `"`, contract.InvalidTarget},
		"into its own child":    {`"fromIDs":["` + guardtest.Projects + `"],"toID":"` + guardtest.Alpha + `"`, contract.InvalidTarget},
		"with its own child":    {`"fromIDs":["` + guardtest.Projects + `","` + guardtest.Alpha + `"],"toID":"` + guardtest.Diary + `"`, contract.InvalidTarget},
		"twice":                 {`"fromIDs":["` + guardtest.Alpha + `","` + guardtest.Alpha + `"],"toID":"` + guardtest.Work + `"`, contract.InvalidTarget},
		"from an outdated path": {`"fromPaths":["/` + guardtest.Alpha + `.sy"],"toNotebook":"` + guardtest.Work + `","toPath":"/"`, contract.NotFound},
		"from a hidden path":    {`"fromPaths":["/` + guardtest.Secret + `.sy"],"toNotebook":"` + guardtest.Work + `","toPath":"/"`, contract.NotFound},
		"to a hidden path":      {`"fromPaths":["` + alphaPath + `"],"toNotebook":"` + guardtest.Work + `","toPath":"/` + guardtest.Secret + `.sy"`, contract.NotFound},
	} {
		r := d.call(full(), "document.move", `{`+c.args+`}`)
		if r.Err == nil || contract.CodeOf(r.Err) != c.want {
			t.Errorf("%s: %v %s, want %s", name, r.Err, r.Body, c.want)
		}
	}
	if d.place(t, guardtest.Alpha) != guardtest.Work+alphaPath {
		t.Error("something moved")
	}
	g := full()
	g.Levels[guardtest.Archive] = contract.ReadWriteDelete
	fails(t, d.call(g, "document.move", `{"fromIDs":["`+guardtest.Alpha+`"],"toID":"`+guardtest.Archive+`"}`), contract.NotebookClosed)
}

// TestK28RemovingALeafAndATree: the kernel has no tree of documents for a leaf.
func TestK28RemovingALeafAndATree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  string
		count int
	}{
		"a leaf":           {`"id":"` + guardtest.Alpha + `"`, 1},
		"a leaf by path":   {`"notebook":"` + guardtest.Work + `","path":"` + alphaPath + `"`, 1},
		"a tree":           {`"ids":["` + guardtest.Projects + `"]`, 2},
		"parent and child": {`"ids":["` + guardtest.Projects + `","` + guardtest.Alpha + `"]`, 2},
		"child and parent": {`"paths":["` + alphaPath + `","/` + guardtest.Projects + `.sy"]`, 2},
	} {
		d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
		out := ok[catalogue.DocumentRemoveOut](t, d, full(), "document.remove", `{`+c.args+`}`)
		if out.Count != c.count || d.exists(t, guardtest.Alpha) || d.exists(t, guardtest.Intro) || d.exists(t, guardtest.Projects) != (c.count == 1) {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func TestNothingIsRemovedUnlessEverythingMayBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	g := grantOn(contract.ReadWriteDelete, contract.ReadWrite)
	fails(t, d.call(g, "document.remove", `{"ids":["`+guardtest.Alpha+`","`+guardtest.Entry+`"]}`), contract.PermissionDenied)
	fails(t, d.call(g, "document.remove", `{"ids":["`+guardtest.Alpha+`","`+guardtest.Secret+`"]}`), contract.NotFound)
	fails(t, d.call(g, "document.remove", `{"notebook":"`+guardtest.Work+`","path":"/`+guardtest.Entry+`.sy"}`), contract.PermissionDenied)
	fails(t, d.call(full(), "document.remove", `{"notebook":"`+guardtest.Work+`","path":"/`+guardtest.Entry+`.sy"}`), contract.NotFound)
	if !d.exists(t, guardtest.Alpha) || !d.exists(t, guardtest.Entry) {
		t.Error("a document is gone")
	}
}

// TestK07ParallelCreatesAndMovesMakeOneParent: creating documents and moving
// them take the same lock.
func TestK07ParallelCreatesAndMovesMakeOneParent(t *testing.T) {
	t.Parallel()
	d := newPlainDesk(t)
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			id, args := "document.create", fmt.Sprintf(`{"notebook":%q,"path":"/2023/2023-%d"}`, guardtest.Work, i)
			if i == 5 {
				id, args = "document.move", `{"fromIDs":["`+plainDoc+`"],"toID":"`+guardtest.Projects+`"}`
			}
			if r := d.call(writer(), id, args); r.Err != nil {
				t.Errorf("%s %s: %v", id, args, r.Err)
			}
		})
	}
	group.Wait()
	tree := ok[catalogue.DocumentListTreeOut](t, d, writer(), "document.list_tree", `{"notebook":"`+guardtest.Work+`","path":"/"}`)
	for _, n := range tree.Tree {
		if n.Name == "2023" && len(n.Children) == 9 {
			return
		}
	}
	t.Errorf("tree %+v, want one 2023 with nine below it", tree.Tree)
}
