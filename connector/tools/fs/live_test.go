package fs_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/fs"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// liveDesk is an executor in front of a real SiYuan, with a notebook of its own
// that is removed at the end.
func liveDesk(t *testing.T) (d *desk, client *siyuan.Client, notebook siyuan.Notebook) {
	t.Helper()
	url, token := os.Getenv("SIYUAN_API_URL"), os.Getenv("SIYUAN_TOKEN")
	if url == "" || token == "" {
		t.Skip("needs SIYUAN_API_URL and SIYUAN_TOKEN")
	}
	client, err := siyuan.New(siyuan.Config{BaseURL: url, Token: siyuan.NewToken(token)})
	check(t, err)
	t.Cleanup(client.Close)
	g := guard.New(client.Reader(), client.Writer(), guard.Options{})
	t.Cleanup(func() { check(t, g.Close()) })
	notebook, err = client.Writer().CreateNotebook(context.Background(), fmt.Sprintf("fs 测试 %d", time.Now().UnixNano()))
	check(t, err)
	t.Cleanup(func() { check(t, client.Writer().RemoveNotebook(context.Background(), notebook.ID)) })
	d = &desk{grant: &contract.Grant{V: contract.GrantVersion, Exp: 1 << 40, Levels: map[string]contract.Level{string(notebook.ID): contract.ReadWriteDelete}}}
	d.exec, err = tools.New(tools.Config{Guard: g, Policy: policy.Fixed(contract.ReadWriteDelete), Catalogue: catalogue.AtHome()}, fs.Bindings()...)
	check(t, err)
	return d, client, notebook
}

// TestLiveNotesAreFiles takes notes through every action.
func TestLiveNotesAreFiles(t *testing.T) {
	d, client, nb := liveDesk(t)
	root := "/" + nb.Name
	write := func(path, text string) string {
		t.Helper()
		return ok[catalogue.FSWriteOut](t, d, "write", `{"path":%q,"markdown":%q}`, path, text).ID
	}
	for _, title := range []string{"Projects", `50% & <b> "q" 'z'`, "日记 📓 👨‍👩‍👧", "C:\\notes", "a.md", "x_y*z*"} {
		path := root + "/" + strings.ReplaceAll(title, `\`, `\\`)
		id := write(path, "text of "+title)
		if got := ok[catalogue.FSReadOut](t, d, "read", `{"path":%q,"includeBlockIds":true}`, path); got.Path != path || got.TotalBlocks != 1 {
			t.Errorf("%s: %+v", path, got)
		}
		ls := paths(ok[catalogue.FSLsOut](t, d, "ls", `{"path":%q}`, root).Items)
		tree := outline(ok[catalogue.FSTreeOut](t, d, "tree", `{"path":%q}`, root).Tree)
		if !strings.Contains(ls, path+"(0)") || !strings.Contains(tree, path) {
			t.Errorf("%s (%s) is not in %s, or not in %s", path, id, ls, tree)
		}
	}
	slashed := write(root+"/Slash", "in one title")
	check(t, client.Writer().SetBlockAttrs(context.Background(), siyuan.ID(slashed), siyuan.Attrs{"title": "A/B"}))
	write(root+"/A", "a")
	write(root+"/A/B", "on two levels")
	for path, want := range map[string]string{`/A\/B`: "in one title", "/A/B": "on two levels"} {
		if got := d.text(t, root+path); got != want {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}

	alpha := root + "/Projects/Alpha"
	write(alpha, "# Goals\n\nShips a **small** tool. #urgent#\n\n- one\n- two\n  - three\n\n| a | b |\n| - | - |\n| cell | x |\n\n```go\nfunc old() {}\n```\n\n> quoted\n\nlast **red**{: style=\"color:red\"} words")
	before := d.text(t, alpha)
	out := ok[catalogue.FSReplaceOut](t, d, "replace", `{"path":%q,"edit":[{"old":"a **small** tool","new":"*two* tools"},{"old":"- two","new":"- 二"},{"old":"three","new":"3"},{"old":"cell","new":"zelle"},{"old":"old()","new":"renamed()"},{"old":"quoted","new":"cited"},{"old":"last","new":"final"}]}`, alpha)
	want := strings.NewReplacer("| ------|", "| -------|", "a **small** tool", "*two* tools", "- two", "- 二", "three", "3", "cell", "zelle", "old()", "renamed()", "quoted", "cited", "last", "final").Replace(before)
	if got := d.text(t, alpha); got != want || !out.Changed || out.EditsApplied != 7 {
		t.Errorf("after edits %q\nwant %q", got, want)
	}
	blocks := ok[catalogue.FSReadOut](t, d, "read", `{"path":%q,"includeBlockIds":true,"tokenBudget":32000}`, alpha).BlockRefs
	styled, err := client.Reader().BlockKramdown(context.Background(), siyuan.ID(blocks[len(blocks)-1].ID), siyuan.KramdownMarkdown)
	check(t, err)
	if !strings.Contains(styled, "color:red") {
		t.Errorf("the colour was lost: %s", styled)
	}

	lines := strings.Split(d.text(t, alpha), "\n")
	found := ok[catalogue.FSSearchOut](t, d, "search", `{"path":%q,"query":".","regex":true,"pageSize":200}`, alpha)
	for _, l := range found.Data {
		if l.Path != alpha || l.Line > len(lines) || lines[l.Line-1] != l.Text {
			t.Errorf("line %d is %q", l.Line, l.Text)
		}
	}
	if len(found.Data) < 12 {
		t.Errorf("%d lines found", len(found.Data))
	}
	for query, n := range map[string]int{`{"path":%q,"query":"RENAMED()"}`: 1, `{"path":%q,"query":"RENAMED()","caseSensitive":true}`: 0, `{"path":%q,"query":"^- 二$","regex":true}`: 1, `{"path":%q,"query":"\\w+\\(\\)","regex":true}`: 1, `{"path":%q,"query":"#urgent#"}`: 1} {
		if got := ok[catalogue.FSSearchOut](t, d, "search", query, root); len(got.Data) != n {
			t.Errorf("%s: %d lines, want %d", query, len(got.Data), n)
		}
	}

	check(t, client.Writer().SetBlockAttrs(context.Background(), siyuan.ID(blocks[1].ID), siyuan.Attrs{"alias": "kept"}))
	if e := d.fails(t, contract.WouldLoseAttrs, "write", `{"path":%q,"markdown":"new","overwrite":true}`, alpha); !strings.Contains(string(e.Detail), blocks[1].ID) {
		t.Errorf("the error does not name the block: %s", e.Detail)
	}
	check(t, client.Writer().SetBlockAttrs(context.Background(), siyuan.ID(blocks[1].ID), siyuan.Attrs{"alias": ""}))
	d.fails(t, contract.AlreadyExists, "write", `{"path":%q,"markdown":"new"}`, alpha)
	over := ok[catalogue.FSWriteOut](t, d, "write", `{"path":%q,"markdown":"# New\n\nbody","overwrite":true}`, alpha)
	if got := d.text(t, alpha); got != "# New\n\nbody" || !over.Overwritten {
		t.Errorf("overwritten: %q %+v", got, over)
	}
	ok[catalogue.FSWriteOut](t, d, "write", `{"path":%q,"markdown":"","overwrite":true}`, alpha)
	if got := d.text(t, alpha); got != "" {
		t.Errorf("emptied: %q", got)
	}

	ok[catalogue.FSMvOut](t, d, "mv", `{"from":%q,"to":%q}`, alpha, root+"/A/阿尔法")
	if got := ok[catalogue.FSReadOut](t, d, "read", `{"path":%q}`, root+"/A/阿尔法"); got.TotalBlocks != 1 {
		t.Errorf("moved: %+v", got)
	}
	order := []string{root + "/A/阿尔法", root + "/A/B"}
	re := ok[catalogue.FSReorderOut](t, d, "reorder", `{"path":%q,"orderedPaths":%q}`, root+"/A", order)
	if !slices.Equal(re.Order, order) {
		t.Errorf("%+v", re)
	}
	slices.Reverse(order)
	if re = ok[catalogue.FSReorderOut](t, d, "reorder", `{"path":%q,"orderedPaths":%q}`, root+"/A", order); !slices.Equal(re.Order, order) || !re.OrderChanged {
		t.Errorf("%+v", re)
	}
	if rm := ok[catalogue.FSRmOut](t, d, "rm", `{"path":%q}`, root+"/A"); rm.Count != 3 {
		t.Errorf("%+v", rm)
	}
	d.fails(t, contract.NotFound, "read", `{"path":%q}`, root+"/A/B")
}
