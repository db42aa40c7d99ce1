package fs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Documents that names alone do not tell apart.
const (
	noteOne = "20240110000000-noteone"
	noteTwo = "20240110000001-notetwo"
	below   = "20240110000002-belowtw"
	slashed = "20240110000003-slashed"
	nestedA = "20240110000004-nesteda"
	nestedB = "20240110000005-nestedb"
)

func twins() []guardtest.Doc {
	return []guardtest.Doc{
		{Box: guardtest.Work, Path: "/" + noteOne + ".sy", Title: "Note", Text: "one"},
		{Box: guardtest.Work, Path: "/" + noteTwo + ".sy", Title: "Note", Text: "two"},
		{Box: guardtest.Work, Path: "/" + noteTwo + "/" + below + ".sy", Title: "Below 笔记 📓", Text: "below"},
	}
}

// slashes adds a title with a slash beside two levels of the same spelling.
func slashes(t *testing.T, d *desk) {
	t.Helper()
	for _, n := range []guardtest.Doc{
		{Box: guardtest.Work, Path: "/" + slashed + ".sy", Title: "slash", Text: "in one title"},
		{Box: guardtest.Work, Path: "/" + nestedA + ".sy", Title: "A", Text: "a"},
		{Box: guardtest.Work, Path: "/" + nestedA + "/" + nestedB + ".sy", Title: "B", Text: "on two levels"},
	} {
		d.Add(t, n)
	}
	// SiYuan drops a slash from the titles it is given, but for this one way.
	if err := d.Client.Writer().SetBlockAttrs(context.Background(), slashed, siyuan.Attrs{"title": "A/B"}); err != nil {
		t.Fatal(err)
	}
}

func TestTheRootListsReadableNotebooks(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	out := ok[catalogue.FSLsOut](t, d, "ls", `{"path":"/"}`)
	if got := paths(out.Items); got != "/Work(1) /日记(1) /Archive(0)" || out.Path != "/" || out.Total != 3 || !out.Items[2].Closed || out.Items[0].Closed {
		t.Errorf("%s %+v", got, out)
	}
	if r := d.call("ls", `{"path":"/"}`); r.Stats.KernelCalls != 1 {
		t.Errorf("%d kernel calls for a list that one answer has", r.Stats.KernelCalls)
	}
}

func TestListsAndTreesGivePathsThatLeadBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twins()...)
	slashes(t, d)
	out := ok[catalogue.FSLsOut](t, d, "ls", `{"path":"Work"}`)
	for _, want := range []string{"/Work/Projects(1)", "/" + noteOne + "(0)", "/" + noteTwo + "(1)", `/Work/A\/B(0)`, "/Work/A(1)"} {
		if !strings.Contains(paths(out.Items)+" ", want+" ") {
			t.Errorf("no %s in %s", want, paths(out.Items))
		}
	}
	tree := ok[catalogue.FSTreeOut](t, d, "tree", `{"path":"/Work"}`)
	want := "/Work/A[/Work/A/B] /Work/A\\/B /" + noteOne + " /" + noteTwo + "[/" + noteTwo + "/Below 笔记 📓] /Work/Projects[/Work/Projects/Alpha]"
	if got := outline(tree.Tree); got != want || tree.Truncated {
		t.Errorf("tree %s\nwant %s", got, want)
	}
	var walk func(nodes []catalogue.FSTreeNode)
	walk = func(nodes []catalogue.FSTreeNode) {
		for _, n := range nodes {
			if read := ok[catalogue.FSReadOut](t, d, "read", `{"path":%q}`, n.Path); read.Path != n.Path {
				t.Errorf("%s is read as %s", n.Path, read.Path)
			}
			walk(n.Children)
		}
	}
	walk(tree.Tree)
	for path, text := range map[string]string{`/Work/A\/B`: "in one title", "/Work/A/B": "on two levels", "/" + noteTwo + "/Below 笔记 📓": "below", "A/B": "on two levels"} {
		if got := ok[catalogue.FSReadOut](t, d, "read", `{"path":%q}`, path).Content; got != text {
			t.Errorf("%s has %q, want %q", path, got, text)
		}
	}
}

func TestTreesOpenAsManyLevelsAsAsked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for args, want := range map[string]string{
		`{"path":"/","maxDepth":0}`:              "/Work+1 /日记+1",
		`{"path":"/","maxDepth":1}`:              "/Work[/Work/Projects+1] /日记[/日记/Entry]",
		`{"path":"/Work","maxDepth":0}`:          "/Work/Projects+1",
		`{"path":"/Work"}`:                       "/Work/Projects[/Work/Projects/Alpha]",
		`{"path":"/Work/Projects"}`:              "/Work/Projects/Alpha",
		`{"path":"/Work/Projects/Alpha"}`:        "", // K28: a leaf is an empty tree
		`{"path":"/` + guardtest.Projects + `"}`: "/" + guardtest.Projects + "/Alpha",
		`{"path":"/` + guardtest.Work + `"}`:     "/" + guardtest.Work + "/Projects[/" + guardtest.Work + "/Projects/Alpha]",
	} {
		if got := outline(ok[catalogue.FSTreeOut](t, d, "tree", args).Tree); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	d.fails(t, contract.NotebookClosed, "tree", `{"path":"/Archive"}`)
	d.fails(t, contract.NotebookClosed, "ls", `{"path":"/Archive"}`)
	d.fails(t, contract.NotFound, "tree", `{"path":"/Private"}`)
}

// TestK08NamesakesAreAmbiguous for every action that takes a path; the
// candidates' own paths are not.
func TestK08NamesakesAreAmbiguous(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twins()...)
	for action, args := range map[string]string{
		"ls": `{"path":%q}`, "tree": `{"path":%q}`, "read": `{"path":%q}`, "write": `{"path":%q,"markdown":"x","overwrite":true}`,
		"rm": `{"path":%q}`, "mv": `{"from":%q,"to":"/Work/New"}`, "search": `{"path":%q,"query":"x"}`,
	} {
		for _, path := range []string{"/Work/Note", "Note"} {
			err := d.fails(t, contract.AmbiguousPath, action, args, path)
			var detail struct {
				Candidates []struct{ ID, Path string } `json:"candidates"`
			}
			if json.Unmarshal(err.Detail, &detail) != nil || len(detail.Candidates) != 2 || detail.Candidates[0].Path != "/"+noteOne || detail.Candidates[1].ID != noteTwo {
				t.Errorf("%s: candidates %s", action, err.Detail)
			}
		}
	}
	d.fails(t, contract.AmbiguousPath, "mv", `{"from":"/Work/Projects","to":"/Work/Note/Projects"}`)
	if out := ok[catalogue.FSReadOut](t, d, "read", `{"path":"`+noteTwo+`"}`); out.Content != "two" {
		t.Errorf("%+v", out)
	}
}

func TestNotebooksOfOneNameAreAmbiguous(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	second, err := d.Client.Writer().CreateNotebook(context.Background(), "Work")
	if err != nil {
		t.Fatal(err)
	}
	hidden := ok[catalogue.FSTreeOut](t, d, "tree", `{"path":"/Work"}`)
	if len(hidden.Tree) != 1 {
		t.Errorf("with a hidden namesake: %+v", hidden)
	}
	d.grant.Levels[string(second.ID)] = contract.Read
	d.fails(t, contract.AmbiguousPath, "read", `{"path":"/Work/Projects"}`)
	out := ok[catalogue.FSLsOut](t, d, "ls", `{"path":"/"}`)
	if got := paths(out.Items); !strings.Contains(got, "/"+guardtest.Work+"(1)") || !strings.Contains(got, "/"+string(second.ID)+"(0)") {
		t.Errorf("%s", got)
	}
	if out := ok[catalogue.FSReadOut](t, d, "read", `{"path":%q}`, "/"+guardtest.Work+"/Projects"); out.Content != "Index of projects." {
		t.Errorf("%+v", out)
	}
}

func TestAPathWithoutItsNotebookIsLookedForInAll(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guardtest.Doc{Box: guardtest.Private, Path: "/20240110000009-privent.sy", Title: "Projects", Text: "hidden"})
	for path, want := range map[string]string{"/Projects/Alpha": "/Work/Projects/Alpha", "Entry": "/日记/Entry", "Projects": "/Work/Projects"} {
		if out := ok[catalogue.FSReadOut](t, d, "read", `{"path":%q}`, path); out.Path != want {
			t.Errorf("%s is %s, want %s", path, out.Path, want)
		}
	}
	d.fails(t, contract.NotFound, "read", `{"path":%q}`, guardtest.SecretTitle)
	d.fails(t, contract.NotFound, "read", `{"path":%q}`, "/Private/"+guardtest.SecretTitle)
	d.fails(t, contract.NotFound, "read", `{"path":%q}`, "/"+guardtest.Secret)
	d.fails(t, contract.NotFound, "read", `{"path":%q}`, "/WORK/Projects")
	d.fails(t, contract.InvalidTarget, "read", `{"path":"/Work"}`)
	d.fails(t, contract.InvalidTarget, "read", `{"path":"/"}`)
	d.fails(t, contract.InvalidTarget, "read", `{"path":"/`+guardtest.Intro+`"}`)
	d.fails(t, contract.InvalidArguments, "read", `{"path":" "}`)
}

func TestVirtualFilesAreNotAtHome(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for action, args := range map[string]string{
		"ls": `{"path":%q}`, "tree": `{"path":%q}`, "read": `{"path":%q}`, "write": `{"path":%q,"markdown":"x"}`, "rm": `{"path":%q}`,
		"mv": `{"from":%q,"to":"/Work/New"}`, "search": `{"path":%q,"query":"x"}`,
	} {
		for _, path := range []string{"/AGENTS.md", "USER_RULES.md"} {
			if r := d.call(action, args, path); contract.CodeOf(asError(r.Err)) != contract.Unsupported || r.Stats.KernelCalls > 1 {
				t.Errorf("%s %s: %v after %d kernel calls", action, path, r.Err, r.Stats.KernelCalls)
			}
		}
	}
	d.fails(t, contract.Unsupported, "mv", `{"from":"/Work/Projects","to":"/AGENTS.md"}`)
}

func TestLongListsComeInPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 5 {
		d.Add(t, guardtest.Doc{Box: guardtest.Diary, Path: fmt.Sprintf("/2024011000010%d-paged0%d.sy", i, i), Title: fmt.Sprintf("Day %d", i)})
	}
	seen := map[string]bool{}
	for page := 1; page <= 3; page++ {
		out := ok[catalogue.FSLsOut](t, d, "ls", fmt.Sprintf(`{"path":"/日记","page":%d,"pageSize":2}`, page))
		if out.Total != 6 || out.PageCount != 3 || out.HasNextPage != (page < 3) || len(out.Items) != 2 {
			t.Errorf("page %d: %+v", page, out)
		}
		for _, i := range out.Items {
			seen[i.Path] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("the pages have %d documents", len(seen))
	}
}
