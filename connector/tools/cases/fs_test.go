package cases_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// TestK28TreesOfANotebookAndOfALeaf: the kernel has no tree of either.
func TestK28TreesOfANotebookAndOfALeaf(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	top := ok[catalogue.FSTreeOut](t, d, "fs.tree", `{"path":"/Work"}`)
	if len(top.Tree) != 1 || top.Tree[0].Name != "Projects" || len(top.Tree[0].Children) != 2 {
		t.Errorf("%+v", top)
	}
	if leaf := ok[catalogue.FSTreeOut](t, d, "fs.tree", `{"path":"/Work/Projects/Alpha"}`); leaf.Tree == nil || len(leaf.Tree) != 0 || leaf.Truncated {
		t.Errorf("%+v", leaf)
	}
	if all := ok[catalogue.FSTreeOut](t, d, "fs.tree", `{"path":"/"}`); len(all.Tree) != 2 {
		t.Errorf("%+v", all)
	}
}

// TestK29OverwritingReadsTheTreeAndNotTheIndex: the alias was set a moment ago,
// and the index of this home never learns of it by itself.
func TestK29OverwritingReadsTheTreeAndNotTheIndex(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.append(t, beta, "- outer\n  - inner\n    - innermost")[0]
	nested := string(d.children(t, string(d.children(t, string(d.children(t, id)[0].ID))[1].ID))[0].ID)
	check(t, d.client.Writer().SetBlockAttrs(context.Background(), siyuan.ID(nested), siyuan.Attrs{"alias": "mine"}))
	d.untouched(t, beta, func() {
		err := d.fails(t, contract.WouldLoseAttrs, "fs.write", `{"path":"/Work/Projects/Beta","markdown":"new","overwrite":true}`)
		if !strings.Contains(string(err.Detail), nested) || !strings.Contains(string(err.Detail), "alias") {
			t.Errorf("the error does not name block %s and its alias: %s", nested, err.Detail)
		}
	})
	d.append(t, guardtest.Projects, "Cites (("+betaLine+" \"a line\")).")
	check(t, d.client.Writer().SetBlockAttrs(context.Background(), siyuan.ID(nested), siyuan.Attrs{"alias": ""}))
	d.untouched(t, beta, func() {
		err := d.fails(t, contract.WouldLoseAttrs, "fs.write", `{"path":"/Work/Projects/Beta","markdown":"new","overwrite":true}`)
		if !strings.Contains(string(err.Detail), betaLine) {
			t.Errorf("the error does not name the cited block: %s", err.Detail)
		}
	})
}

// TestK10PathsReachEveryTitle, also those that a path of SiYuan's own cannot
// tell apart, and never make documents by accident.
func TestK10PathsReachEveryTitle(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, title := range []string{"50%", "a & b <c>", "日记", "📓", "%2F", "x.md", "#1?", "--", `back\slash`} {
		path := "/Work/" + strings.ReplaceAll(title, `\`, `\\`)
		made := ok[catalogue.FSWriteOut](t, d, "fs.write", `{"path":%q,"markdown":"x"}`, path)
		if got := d.attrs(t, made.ID)["title"]; got != title {
			t.Errorf("%s made a document titled %q", path, got)
		}
		if again := d.fails(t, contract.AlreadyExists, "fs.write", `{"path":%q,"markdown":"x"}`, path); !strings.Contains(string(again.Detail), made.ID) {
			t.Errorf("%s again: %s", path, again.Detail)
		}
	}
	before := d.docs(t)
	d.fails(t, contract.InvalidArguments, "fs.write", `{"path":%q,"markdown":"x"}`, `/Work/A\/B test`)
	d.fails(t, contract.NotFound, "fs.write", `{"path":"/Work/A/B test","markdown":"x"}`)
	d.fails(t, contract.InvalidArguments, "fs.write", `{"path":"/Work/ ..","markdown":"x"}`)
	if after := d.docs(t); !slices.Equal(after, before) {
		t.Errorf("documents %v, were %v", after, before)
	}
}

// TestM15ABigListIsCutByRowsAndSaysSo.
func TestM15ABigListIsCutByRowsAndSaysSo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const many = 400
	for i := range many {
		d.add(t, guardtest.Doc{Box: guardtest.Work, Path: fmt.Sprintf("/20240301%06d-manydoc.sy", i), Title: fmt.Sprintf("A rather long title of document %03d 文档", i), Text: "needle"})
	}
	tree := ok[catalogue.FSTreeOut](t, d, "fs.tree", `{"path":"/Work"}`)
	if !tree.Truncated || tree.Hint == "" || len(tree.Tree) == 0 || len(tree.Tree) >= many {
		t.Errorf("%d of %d shown, truncated %v, hint %q", len(tree.Tree), many, tree.Truncated, tree.Hint)
	}
	found := 0
	for page := 1; ; page++ {
		out := ok[catalogue.FSSearchOut](t, d, "fs.search", fmt.Sprintf(`{"path":"/","query":"needle","page":%d,"pageSize":150}`, page))
		if found += len(out.Data); !out.HasNextPage {
			break
		}
	}
	if found != many {
		t.Errorf("the pages have %d lines of %d", found, many)
	}
}
