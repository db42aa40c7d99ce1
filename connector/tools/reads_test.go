package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

var faultDrop = samplekernel.Fault{Kind: samplekernel.FaultDrop}

func TestNotebookListShowsLevels(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	out := ok[catalogue.NotebookListOut](t, d, writer(), "notebook.list", "{}")
	var got []string
	for _, n := range out.Notebooks {
		got = append(got, fmt.Sprint(n.Name, " ", n.Level, " ", n.Closed))
	}
	if s := strings.Join(got, ", "); s != "Work r false, 日记 r false, Archive r true" {
		t.Errorf("notebooks %s", s)
	}
}

func TestNotebookCreateNeedsSwitchAndPolicy(t *testing.T) {
	t.Parallel()
	g := writer()
	g.Default = contract.Read
	fails(t, newDesk(t, policy.Fixed(contract.ReadWrite)).call(g, "notebook.create", `{"name":"New"}`), contract.PermissionDenied)
	g.Switches = []contract.Switch{contract.SwitchWorkspace}
	fails(t, newDesk(t, policy.Fixed(contract.Read)).call(g, "notebook.create", `{"name":"New"}`), contract.PermissionDenied)
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	out := ok[catalogue.NotebookCreateOut](t, d, g, "notebook.create", `{"name":"New","icon":"1f4d4"}`)
	if n := out.Notebook; n.Name != "New" || n.Icon != "1f4d4" || n.Level != contract.Read || n.Closed {
		t.Errorf("notebook %+v", n)
	}
	fails(t, d.call(g, "notebook.create", `{"name":"a/b"}`), contract.InvalidArguments)
}

func TestGetDocWindowsCoverTheDocument(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	type getDoc = catalogue.DocumentGetDocOut
	whole := ok[getDoc](t, d, writer(), "document.get_doc", `{"id":"`+guardtest.Alpha+`","includeBlockIds":true}`)
	if whole.TotalBlocks != 5 || whole.ReturnedBlocks != 5 || whole.HasNextWindow || whole.HPath != "/Projects/Alpha" || whole.NotebookName != "Work" {
		t.Errorf("whole document: %+v", whole)
	}
	if len(whole.Outline) != 1 || whole.Outline[0] != (catalogue.OutlineEntry{BlockIndex: 0, Level: 1, Title: "Alpha goals", ID: guardtest.Heading}) {
		t.Errorf("outline %+v", whole.Outline)
	}
	if runes := len([]rune(whole.Content)); whole.EstimatedTokens != (runes+3)/4 {
		t.Errorf("%d tokens for %d characters", whole.EstimatedTokens, runes)
	}
	var parts []string
	next := &catalogue.NextWindow{BlockStart: 0, BlockLimit: 2}
	for next != nil {
		w := ok[getDoc](t, d, writer(), "document.get_doc", fmt.Sprintf(`{"id":"%s","blockStart":%d,"blockLimit":%d}`, guardtest.Intro, next.BlockStart, next.BlockLimit))
		parts = append(parts, w.Content)
		if next = w.NextWindow; w.Truncated != (next != nil) || len(w.Outline) != 1 {
			t.Errorf("window %+v", w)
		}
	}
	if got := strings.Join(parts, "\n\n"); got != whole.Content || len(parts) != 3 {
		t.Errorf("%d windows give\n%s\nwant\n%s", len(parts), got, whole.Content)
	}
}

func TestGetDocKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	small := ok[catalogue.DocumentGetDocOut](t, d, writer(), "document.get_doc", `{"id":"`+guardtest.Alpha+`","tokenBudget":1}`)
	if small.ReturnedBlocks != 1 || !small.BudgetExceeded || small.Content != "# Alpha goals" || small.NextWindow.BlockStart != 1 {
		t.Errorf("window %+v", small)
	}
	beyond := ok[catalogue.DocumentGetDocOut](t, d, writer(), "document.get_doc", `{"id":"`+guardtest.Alpha+`","blockStart":99}`)
	if beyond.ReturnedBlocks != 0 || beyond.HasNextWindow || beyond.Content != "" || beyond.TotalBlocks != 5 {
		t.Errorf("beyond the end: %+v", beyond)
	}
}

func TestGetDocAsHTML(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	out := ok[catalogue.DocumentGetDocOut](t, d, writer(), "document.get_doc", `{"id":"`+guardtest.Alpha+`","mode":"html"}`)
	if out.Mode != "html" || !strings.Contains(out.Content, `data-node-id="`+guardtest.Intro+`"`) || strings.Contains(out.Content, guardtest.SecretTitle) {
		t.Errorf("html %+v", out)
	}
}

// SiYuan's index has a document twice for a while after it changed.
func TestATreeHasADocumentOnceThoughTheIndexHasItTwice(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	const top, child = "20240101100000-topdoc1", "20240101100000-childoc"
	row := func(id, path, title, ial string) string {
		return fmt.Sprintf(`{"id":"%s","box":"%s","path":"%s","content":"%s","ial":"%s","updated":"20240101100000"}`, id, guardtest.Work, path, title, ial)
	}
	d.Home.Answer("/api/query/sql", "["+strings.Join([]string{
		row(top, "/"+top+".sy", "Top", ""), row(top, "/"+top+".sy", "Top", "{: icon=x}"),
		row(child, "/"+top+"/"+child+".sy", "Child", ""), row(child, "/"+top+"/"+child+".sy", "Child of old", ""),
	}, ",")+"]")
	out := ok[catalogue.DocumentListTreeOut](t, d, writer(), "document.list_tree", `{"notebook":"`+guardtest.Work+`","path":"/"}`)
	if len(out.Tree) != 1 || len(out.Tree[0].Children) != 1 || out.Tree[0].Children[0].Name != "Child" || out.Truncated {
		t.Errorf("%+v", out)
	}
}

func TestListTreeHasNoTreeForALeafAndMarksWhatItCuts(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	type tree = catalogue.DocumentListTreeOut
	leaf := ok[tree](t, d, writer(), "document.list_tree", fmt.Sprintf(`{"notebook":"%s","path":"/%s/%s.sy"}`, guardtest.Work, guardtest.Projects, guardtest.Alpha))
	if leaf.Tree == nil || len(leaf.Tree) != 0 || leaf.Truncated {
		t.Errorf("leaf %+v", leaf)
	}
	cut := ok[tree](t, d, writer(), "document.list_tree", `{"notebook":"`+guardtest.Work+`","path":"/","maxDepth":1}`)
	if len(cut.Tree) != 1 || !cut.Tree[0].ChildrenTruncated || cut.Tree[0].ChildCount != 1 || !cut.Truncated || cut.Hint == "" {
		t.Errorf("cut tree %+v", cut)
	}
	fails(t, d.call(writer(), "document.list_tree", `{"notebook":"`+guardtest.Archive+`","path":"/"}`), contract.NotebookClosed)
	fails(t, d.call(writer(), "document.list_tree", `{"notebook":"`+guardtest.Private+`","path":"/"}`), contract.NotFound)
}

func TestSearchFindsWhatWasJustWritten(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	made := ok[catalogue.BlockAppendOut](t, d, writer(), "block.append", `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"zanzibar"}`)
	out := ok[catalogue.SearchFulltextOut](t, d, writer(), "search.fulltext", `{"query":"zanzibar","typeShortcodes":["p"]}`)
	if out.Total != 1 || out.Data[0].ID != made.ID || out.Data[0].HPath != "/Projects" || out.Data[0].NotebookName != "Work" {
		t.Errorf("found %+v", out)
	}
}

func TestAnEmptySearchSaysHowItWasUnderstood(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	out := ok[catalogue.SearchFulltextOut](t, d, writer(), "search.fulltext", `{"query":"qqqq","methodName":"regex","typeShortcodes":["h"],"hasTags":true}`)
	if want := "Nothing found by regular expression, among the chosen block types, in all notebooks you may read, with tags only."; out.Hint != want || out.Data == nil {
		t.Errorf("hint %q, want %q", out.Hint, want)
	}
	fails(t, d.call(writer(), "search.fulltext", `{"query":"(","method":3}`), contract.InvalidArguments)
	fails(t, d.call(writer(), "search.fulltext", `{"query":"select * from main.blocks","method":2}`), contract.StatementRefused)
}

func TestSearchPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	ok[catalogue.BlockAppendOut](t, d, writer(), "block.append", `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"walrus 1\n\nwalrus 2\n\nwalrus 3"}`)
	page := func(n int) catalogue.SearchFulltextOut {
		return ok[catalogue.SearchFulltextOut](t, d, writer(), "search.fulltext", fmt.Sprintf(`{"query":"walrus","types":{"p":true},"page":%d,"pageSize":2}`, n))
	}
	if p := page(1); p.Total != 3 || p.Showing != 2 || !p.HasNextPage || p.PageCount != 2 || !p.Truncated {
		t.Errorf("page 1: %+v", p)
	}
	if p := page(9); p.Page != 2 || p.Showing != 1 || p.HasNextPage {
		t.Errorf("a page beyond the end is the last one: %+v", p)
	}
}

func TestKramdownHasNoZeroWidthSpacesAndKeepsJoiners(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	made := ok[catalogue.BlockAppendOut](t, d, writer(), "block.append", `{"parentID":"`+guardtest.Projects+"\",\"dataType\":\"markdown\",\"data\":\"a `code` #tag# 👨‍👩‍👧\"}")
	out := ok[catalogue.BlockGetKramdownOut](t, d, writer(), "block.get_kramdown", `{"id":"`+made.ID+`"}`)
	if want := "a `code` #tag# 👨‍👩‍👧\n"; !strings.HasPrefix(out.Kramdown, want) {
		t.Errorf("kramdown %q, want it to begin with %q", out.Kramdown, want)
	}
}

func TestNothingHiddenShowsInAnyRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	for _, c := range []struct{ id, args string }{
		{"document.get_doc", `{"id":"` + guardtest.Alpha + `"}`},
		{"document.get_doc", `{"id":"` + guardtest.Alpha + `","mode":"html"}`},
		{"block.get_kramdown", `{"id":"` + guardtest.Alpha + `"}`},
		{"block.get_kramdown", `{"id":"` + guardtest.Links + `"}`},
		{"search.fulltext", `{"query":"See"}`},
	} {
		r := d.call(writer(), c.id, c.args)
		if r.Err != nil || strings.Contains(string(r.Body), "Nightfall") || !strings.Contains(string(r.Body), guard.Placeholder) {
			t.Errorf("%s %s: %v %s", c.id, c.args, r.Err, r.Body)
		}
	}
}
