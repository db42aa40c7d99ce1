package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func (d *desk) notebook(t *testing.T, id string) *siyuan.Notebook {
	t.Helper()
	all, _, err := d.Client.Reader().Notebooks(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if string(n.ID) == id {
			return &n
		}
	}
	return nil
}

func TestOpenAndCloseUntilItIsSo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	for _, opened := range []bool{false, false, true, true} {
		out := ok[catalogue.NotebookSetOpenStateOut](t, d, writer(), "notebook.set_open_state", fmt.Sprintf(`{"notebook":%q,"opened":%t}`, guardtest.Work, opened))
		if out.Opened != opened || d.notebook(t, guardtest.Work).Closed == opened {
			t.Errorf("%+v, closed is %t", out, d.notebook(t, guardtest.Work).Closed)
		}
	}
	if !d.exists(t, guardtest.Alpha) {
		t.Error("after opening, the documents are not there")
	}
	g := writer()
	g.Levels[guardtest.Archive] = contract.ReadWrite
	ok[catalogue.NotebookSetOpenStateOut](t, d, g, "notebook.set_open_state", `{"notebook":"`+guardtest.Archive+`","opened":true}`)
}

func TestRenameRemoveAndIconOfANotebook(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	ok[catalogue.NotebookRenameOut](t, d, full(), "notebook.rename", `{"notebook":"`+guardtest.Work+`","name":"工作 & more"}`)
	ok[catalogue.NotebookSetIconOut](t, d, full(), "notebook.set_icon", `{"notebook":"`+guardtest.Work+`","icon":"1f4d4"}`)
	if n := d.notebook(t, guardtest.Work); n.Name != "工作 & more" || n.Icon != "1f4d4" {
		t.Errorf("%+v", n)
	}
	ok[catalogue.NotebookSetIconOut](t, d, full(), "notebook.set_icon", `{"notebook":"`+guardtest.Work+`","icon":""}`)
	if n := d.notebook(t, guardtest.Work); n.Icon != "" {
		t.Errorf("icon %q, want none", n.Icon)
	}
	g := full()
	g.Levels[guardtest.Archive] = contract.ReadWriteDelete
	fails(t, d.call(g, "notebook.rename", `{"notebook":"`+guardtest.Archive+`","name":"x"}`), contract.NotebookClosed)
	ok[catalogue.NotebookRemoveOut](t, d, g, "notebook.remove", `{"notebook":"`+guardtest.Archive+`"}`)
	ok[catalogue.NotebookRemoveOut](t, d, full(), "notebook.remove", `{"notebook":"`+guardtest.Work+`"}`)
	if d.notebook(t, guardtest.Work) != nil || d.notebook(t, guardtest.Archive) != nil || d.exists(t, guardtest.Alpha) {
		t.Error("a removed notebook is still there")
	}
	fails(t, d.call(full(), "notebook.remove", `{"notebook":"`+guardtest.Work+`"}`), contract.NotFound)
}

func TestNotebookSettingsMergeAndTellTheResult(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	set := func(conf string) catalogue.NotebookConf {
		return ok[catalogue.NotebookSetConfOut](t, d, writer(), "notebook.set_conf", `{"notebook":"`+guardtest.Work+`","conf":`+conf+`}`).Conf
	}
	set(`{"refCreateSavePath":"/refs","createDocNameTemplate":"Note {{now | date \"2006-01-02\"}}"}`)
	c := set(`{"name":"Jobs","dailyNoteSavePath":"/diary/{{now | date \"2006/01\"}}"}`)
	want := catalogue.NotebookConf{Name: "Jobs", Sort: 1, SortMode: 15, RefCreateSavePath: "/refs",
		DocCreateSavePath: `Note {{now | date "2006-01-02"}}`, DailyNoteSavePath: `/diary/{{now | date "2006/01"}}`}
	if c != want {
		t.Errorf("conf %+v\nwant %+v", c, want)
	}
	if got := ok[catalogue.NotebookGetConfOut](t, d, writer(), "notebook.get_conf", `{"notebook":"`+guardtest.Work+`"}`); got.Conf != want || got.Box != guardtest.Work || got.Name != "Jobs" {
		t.Errorf("get_conf says %+v", got)
	}
	if c := set(`{"closed":true}`); !c.Closed || !d.notebook(t, guardtest.Work).Closed {
		t.Errorf("closed: %+v", c)
	}
	fails(t, d.call(writer(), "notebook.set_conf", `{"notebook":"`+guardtest.Work+`","conf":{"name":"x"}}`), contract.NotebookClosed)
	if c := set(`{"closed":false,"name":"Open again"}`); c.Closed || c.Name != "Open again" {
		t.Errorf("opened: %+v", c)
	}
	for _, conf := range []string{`{}`, `{"dailyNoteSavePath":" / "}`, `{"name":"a/b"}`} {
		fails(t, d.call(writer(), "notebook.set_conf", `{"notebook":"`+guardtest.Work+`","conf":`+conf+`}`), contract.InvalidArguments)
	}
}

// TestASettingCannotMakeSiYuanReadHiddenNotes: SiYuan renders the templates in
// these settings over every notebook.
func TestASettingCannotMakeSiYuanReadHiddenNotes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	whole := writer()
	whole.Default = contract.Read
	for _, c := range []struct{ field, value string }{
		{"dailyNoteSavePath", `/x/{{(index (queryBlocks "SELECT * FROM blocks LIMIT 1") 0).Content}}`},
		{"refCreateSavePath", `{{querySQL "SELECT 1"}}`},
		{"createDocNameTemplate", "{{ `}}` }}{{ now }}"},
		{"createDocNameTemplate", `{{ '"' | queryBlocks '"' }}`},
		{"createDocNameTemplate", `{{ "}}" | queryBlocks }}`},
		{"createDocNameTemplate", "{{/* \" */}}{{queryBlocks}}{{/* \" */}}"},
		{"createDocNameTemplate", "{{now\n| queryBlocks}}"},
		{"dailyNoteTemplatePath", "/daily.md"},
	} {
		args := fmt.Sprintf(`{"notebook":%q,"conf":{%q:%q}}`, guardtest.Work, c.field, c.value)
		fails(t, d.call(writer(), "notebook.set_conf", args), contract.HiddenReference)
		// With nothing hidden a question must still be one SELECT: SiYuan would run a
		// statement that writes.
		made := strings.Contains(c.value, "| queryBlocks") || strings.Contains(c.value, "{{queryBlocks}}")
		if r := d.call(whole, "notebook.set_conf", args); (r.Err != nil) != made {
			t.Errorf("%s with nothing hidden: %v", c.value, r.Err)
		}
	}
	fails(t, d.call(whole, "notebook.set_conf", fmt.Sprintf(`{"notebook":%q,"conf":{"dailyNoteSavePath":%q}}`, guardtest.Work,
		`/x/{{querySQL "UPDATE blocks SET content = '' RETURNING id"}}`)), contract.HiddenReference)
}

func TestSettingsDoNotNameHiddenNotebooks(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	for box, want := range map[string]string{guardtest.Private: "", guardtest.Missing: "", guardtest.Diary: guardtest.Diary} {
		_, err := d.Client.Writer().SetNotebookConf(context.Background(), guardtest.Work, map[string]any{"refCreateSaveBox": box, "docCreateSaveBox": box})
		if err != nil {
			t.Fatal(err)
		}
		c := ok[catalogue.NotebookGetConfOut](t, d, writer(), "notebook.get_conf", `{"notebook":"`+guardtest.Work+`"}`).Conf
		if c.RefCreateSaveBox != want || c.DocCreateSaveBox != want {
			t.Errorf("%s is shown as %q and %q, want %q", box, c.RefCreateSaveBox, c.DocCreateSaveBox, want)
		}
	}
}

func TestPermissionsAreTheCallersOwnInWhatHeMayRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	all := ok[catalogue.NotebookGetPermissionsOut](t, d, full(), "notebook.get_permissions", `{}`).Notebooks
	want := []catalogue.NotebookPermission{
		{ID: guardtest.Work, Name: "Work", Permission: contract.ReadWrite}, // rwd, capped at home
		{ID: guardtest.Diary, Name: "日记", Permission: contract.ReadWrite},
		{ID: guardtest.Archive, Name: "Archive", Permission: contract.Read},
	}
	if fmt.Sprint(all) != fmt.Sprint(want) {
		t.Errorf("%v\nwant %v", all, want)
	}
	if one := ok[catalogue.NotebookGetPermissionsOut](t, d, full(), "notebook.get_permissions", `{"notebook":"`+guardtest.Diary+`"}`).Notebooks; len(one) != 1 || one[0] != want[1] {
		t.Errorf("one notebook: %v", one)
	}
	fails(t, d.call(full(), "notebook.get_permissions", `{"notebook":"`+guardtest.Private+`"}`), contract.NotFound)
}

func TestChildDocsOfANotebookByPage(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	for i := range 4 {
		d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: fmt.Sprintf("/2024010700000%d-pagedoc.sy", i), Title: fmt.Sprintf("P%d", i)})
	}
	list := func(args string) catalogue.NotebookGetChildDocsOut {
		return ok[catalogue.NotebookGetChildDocsOut](t, d, writer(), "notebook.get_child_docs", `{"notebook":"`+guardtest.Work+`"`+args+`}`)
	}
	var names []string
	for page := 1; page <= 3; page++ {
		out := list(fmt.Sprintf(`,"page":%d,"pageSize":2`, page))
		if out.Total != 5 || out.PageCount != 3 || out.Page != page || out.HasNextPage != (page < 3) {
			t.Errorf("page %d: %+v", page, out.PageOut)
		}
		for _, c := range out.Data {
			names = append(names, c.Name)
			if c.HPath != "/"+c.Name || c.Notebook != guardtest.Work || c.Path != "/"+c.ID+".sy" {
				t.Errorf("entry %+v", c)
			}
			if c.ID == guardtest.Projects && c.SubFileCount != 1 {
				t.Errorf("Projects has %d documents below it, want 1", c.SubFileCount)
			}
		}
	}
	if len(names) != 5 || strings.Count(strings.Join(names, " "), "P") != 5 {
		t.Errorf("names %v", names)
	}
	if out := list(`,"page":99`); out.Page != 1 || len(out.Data) != 5 {
		t.Errorf("a page behind the end: %+v", out.PageOut)
	}
	fails(t, d.call(writer(), "notebook.get_child_docs", `{"notebook":"`+guardtest.Archive+`"}`), contract.NotebookClosed)
	fails(t, d.call(writer(), "notebook.get_child_docs", `{"notebook":"`+guardtest.Private+`"}`), contract.NotFound)
}
