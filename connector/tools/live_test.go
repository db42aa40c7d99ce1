package tools_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// liveDesk is an executor in front of the SiYuan that the environment names.
func liveDesk(t *testing.T) (*desk, *contract.Grant) {
	t.Helper()
	url, token := os.Getenv("SIYUAN_API_URL"), os.Getenv("SIYUAN_TOKEN")
	if url == "" || token == "" {
		t.Skip("SIYUAN_API_URL and SIYUAN_TOKEN name no SiYuan to test with")
	}
	client, err := siyuan.New(siyuan.Config{BaseURL: url, Token: siyuan.NewToken(token)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	d := &desk{Home: &guardtest.Home{Client: client, Guard: guard.New(client.Reader(), client.Writer(), guard.Options{})}}
	d.exec, err = tools.New(tools.Config{Guard: d.Guard, Policy: policy.Fixed(contract.ReadWriteDelete), Catalogue: catalogue.AtHome()}, handlers.All()...)
	if err != nil {
		t.Fatal(err)
	}
	g := guardtest.Grant(nil)
	g.Default, g.Switches = contract.ReadWriteDelete, contract.Switches()
	return d, g
}

// liveNotebook makes a notebook that is removed with the test.
func liveNotebook(t *testing.T, d *desk, g *contract.Grant) string {
	t.Helper()
	nb := ok[catalogue.NotebookCreateOut](t, d, g, "notebook.create", `{"name":"live test"}`).Notebook.ID
	t.Cleanup(func() {
		if r := d.call(g, "notebook.remove", `{"notebook":"`+nb+`"}`); r.Err != nil && r.Err.Type != contract.TypeNotFound {
			t.Errorf("remove notebook: %v", r.Err)
		}
	})
	return nb
}

func liveDoc(t *testing.T, d *desk, g *contract.Grant, nb, path, markdown string) string {
	t.Helper()
	return ok[catalogue.DocumentCreateOut](t, d, g, "document.create", fmt.Sprintf(`{"notebook":%q,"path":%q,"markdown":%q}`, nb, path, markdown)).ID
}

func (d *desk) children(t *testing.T, id string) []siyuan.ChildBlock {
	t.Helper()
	children, err := d.Client.Reader().ChildBlocks(context.Background(), siyuan.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return children
}

func TestLiveBlocks(t *testing.T) {
	d, g := liveDesk(t)
	doc := liveDoc(t, d, g, liveNotebook(t, d, g), "/Blocks", "A\n\nB\n\n- one\n- two\n\n1. first\n")
	top := d.children(t, doc)
	a, b, list, numbers := string(top[0].ID), string(top[1].ID), string(top[2].ID), string(top[3].ID)
	item := string(d.children(t, list)[0].ID)
	insert := func(args string) catalogue.BlockInsertOut {
		return ok[catalogue.BlockInsertOut](t, d, g, "block.insert", `{`+args+`}`)
	}
	order := func(want string) {
		t.Helper()
		var got []string
		for _, c := range d.children(t, doc) {
			if c.Type == "p" {
				got = append(got, strings.ReplaceAll(c.Markdown, "\u200b", ""))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("paragraphs %q, want %q", strings.Join(got, " "), want)
		}
	}
	md := func(text string) string { return fmt.Sprintf(`"dataType":"markdown","data":%q`, text) }
	entry := func(text string) string { return `{` + md(text) + `}` }

	insert(md("x\n\ny #tag# `code`") + `,"previousID":"` + a + `"`)
	insert(`"previousID":"` + a + `","blocks":[` + entry("1") + `,` + entry("2\n\n3") + `]`)
	insert(`"nextID":"` + a + `","blocks":[` + entry("0") + `,` + entry("00") + `]`)
	insert(`"parentID":"` + doc + `","blocks":[` + entry("S") + `,` + entry("T") + `]`)
	ok[catalogue.BlockAppendOut](t, d, g, "block.prepend", `{`+md("Hello — 世界 𠮷 👨‍👩‍👧")+`,"parentID":"`+doc+`"}`)
	order("Hello — 世界 𠮷 👨‍👩‍👧 S T 0 00 A 1 2 3 x y #tag# `code` B")
	insert(`"dataType":"dom","data":"<div data-node-id=\"20260101000000-aaaaaaa\" data-type=\"NodeParagraph\" class=\"p\"><div contenteditable=\"true\">dom</div><div class=\"protyle-attr\"></div></div>","nextID":"` + b + `"`)
	order("Hello — 世界 𠮷 👨‍👩‍👧 S T 0 00 A 1 2 3 x y #tag# `code` dom B")

	for _, args := range []string{md("- i1") + `,"previousID":"` + item + `"`, md("- i2\n  - deep\n  - er") + `,"nextID":"` + item + `"`,
		`"previousID":"` + item + `","blocks":[` + entry("- i3") + `,` + entry("* i4") + `]`, md("- i5\n- i6") + `,"parentID":"` + list + `"`} {
		insert(args)
	}
	items := d.children(t, list)
	for _, c := range items {
		if c.Type != "i" || c.SubType != "u" {
			t.Errorf("a %s %s stands in the list", c.Type, c.SubType)
		}
	}
	if len(items) != 8 {
		t.Errorf("%d items, want 8:\n%s", len(items), d.kramdown(t, list))
	}
	for _, text := range []string{"plain", "1. n", "- a\n- b"} {
		fails(t, d.call(g, "block.insert", `{`+md(text)+`,"previousID":"`+item+`"}`), contract.InvalidTarget)
	}
	insert(md("in the item") + `,"parentID":"` + item + `"`)
	fails(t, d.call(g, "block.insert", `{`+md("x")+`,"previousID":"`+doc+`"}`), contract.InvalidTarget)

	move := func(args string) { t.Helper(); ok[catalogue.BlockMoveOut](t, d, g, "block.move", `{`+args+`}`) }
	move(`"ids":["` + b + `","` + a + `"],"parentID":"` + doc + `"`)
	move(`"id":"` + a + `","previousID":"` + list + `"`)
	move(`"id":"` + item + `","parentID":"` + list + `"`)
	move(`"id":"` + b + `","parentID":"` + item + `"`)
	fails(t, d.call(g, "block.move", `{"id":"`+item+`","parentID":"`+numbers+`"}`), contract.InvalidTarget)
	fails(t, d.call(g, "block.move", `{"id":"`+list+`","parentID":"`+item+`"}`), contract.InvalidTarget)

	for name, value := range map[string]string{"name": `a & "b" <c>`, "memo": "two\nlines", "custom-x": " {: id=\"x\"} &amp; 𠮷\u200b ", "style": "color: red;", "bookmark": "Later"} {
		args := fmt.Sprintf(`{"id":%q,"attrs":{%q:%q}}`, a, name, value)
		ok[catalogue.BlockSetAttrsOut](t, d, g, "block.set_attrs", args)
	}
	if out := ok[catalogue.BlockSetAttrsOut](t, d, g, "block.set_attrs", `{"id":"`+a+`","attrs":{"memo":""}}`); out.Attrs["memo"] != "" || out.Attrs["bookmark"] != "Later" {
		t.Errorf("attributes %v", out.Attrs)
	}
	for _, id := range []string{item, a, numbers} {
		ok[catalogue.BlockDeleteOut](t, d, g, "block.delete", `{"id":"`+id+`"}`)
		if d.exists(t, id) {
			t.Errorf("%s is still there", id)
		}
	}
	fails(t, d.call(g, "block.delete", `{"id":"`+doc+`"}`), contract.InvalidTarget)
}

func TestLiveDocuments(t *testing.T) {
	d, g := liveDesk(t)
	nb, other := liveNotebook(t, d, g), liveNotebook(t, d, g)
	c := liveDoc(t, d, g, nb, "/A/B/C", "text")
	leaf := liveDoc(t, d, g, nb, "/Leaf", "text")
	loc := strings.Split(strings.TrimPrefix(d.place(t, c), nb+"/"), "/")
	a, b := loc[0], loc[1]
	rename := ok[catalogue.DocumentRenameOut](t, d, g, "document.rename", fmt.Sprintf(`{"id":%q,"title":%q}`, b, `50% "q" & <b> 世界`))
	if rename.Path != "/"+a+"/"+b+".sy" {
		t.Errorf("%+v", rename)
	}
	fails(t, d.call(g, "document.rename", `{"id":"`+nb+`","title":"x"}`), contract.InvalidTarget)
	fails(t, d.call(g, "document.move", `{"fromIDs":["`+a+`"],"toID":"`+c+`"}`), contract.InvalidTarget)
	for _, args := range []string{`"fromIDs":["` + b + `","` + leaf + `"],"toID":"` + other + `"`, `"fromIDs":["` + leaf + `"],"toID":"` + b + `"`,
		`"fromPaths":["/` + b + `.sy"],"toNotebook":"` + nb + `","toPath":"/` + a + `.sy"`, `"fromIDs":["` + b + `"],"toID":"` + a + `"`} {
		ok[catalogue.DocumentMoveOut](t, d, g, "document.move", `{`+args+`}`)
	}
	if got := d.place(t, leaf); got != nb+"/"+a+"/"+b+"/"+leaf+".sy" {
		t.Errorf("the leaf is at %s", got)
	}
	fails(t, d.call(g, "document.remove", `{"id":"`+nb+`"}`), contract.InvalidTarget)
	if out := ok[catalogue.DocumentRemoveOut](t, d, g, "document.remove", `{"id":"`+leaf+`"}`); out.Count != 1 {
		t.Errorf("removed %+v, want one", out)
	}
	if out := ok[catalogue.DocumentRemoveOut](t, d, g, "document.remove", `{"ids":["`+b+`","`+a+`"]}`); out.Count != 3 || d.exists(t, c) {
		t.Errorf("removed %+v, want three", out)
	}
}

func TestLiveNotebooks(t *testing.T) {
	d, g := liveDesk(t)
	nb := liveNotebook(t, d, g)
	doc := liveDoc(t, d, g, nb, "/Doc", "text")
	ok[catalogue.NotebookRenameOut](t, d, g, "notebook.rename", `{"notebook":"`+nb+`","name":"live & 世界"}`)
	ok[catalogue.NotebookSetIconOut](t, d, g, "notebook.set_icon", `{"notebook":"`+nb+`","icon":"1f4d4"}`)
	c := ok[catalogue.NotebookSetConfOut](t, d, g, "notebook.set_conf",
		`{"notebook":"`+nb+`","conf":{"name":"renamed","refCreateSavePath":" /refs/ ","createDocNameTemplate":"N {{now | date \"2006\"}}","dailyNoteSavePath":"d/x/","dailyNoteTemplatePath":"t.md"}}`).Conf
	if c.Name != "renamed" || c.Icon != "1f4d4" || strings.Trim(c.DailyNoteSavePath, "/") != "d/x" || c.DocCreateSavePath != `N {{now | date "2006"}}` {
		t.Errorf("conf %+v", c)
	}
	for _, opened := range []bool{false, true} {
		ok[catalogue.NotebookSetOpenStateOut](t, d, g, "notebook.set_open_state", fmt.Sprintf(`{"notebook":%q,"opened":%t}`, nb, opened))
	}
	if d.place(t, doc) != nb+"/"+doc+".sy" {
		t.Error("after opening, the document is not there")
	}
	if out := ok[catalogue.NotebookGetChildDocsOut](t, d, g, "notebook.get_child_docs", `{"notebook":"`+nb+`"}`); out.Total != 1 || out.Data[0].ID != doc || out.Data[0].HPath != "/Doc" {
		t.Errorf("%+v", out)
	}
	ok[catalogue.NotebookRemoveOut](t, d, g, "notebook.remove", `{"notebook":"`+nb+`"}`)
	if d.notebook(t, nb) != nil {
		t.Error("the notebook is still there")
	}
}
