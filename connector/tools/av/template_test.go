package av_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func TestRowsAreMadeByTemplates(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	makeByTemplate(t, d, guardtest.Work)
}

func TestLiveRowsAreMadeByTemplates(t *testing.T) {
	d := liveDesk(t)
	at, err := d.client.Reader().PathByID(context.Background(), siyuan.ID(d.doc))
	check(t, err)
	makeByTemplate(t, d, string(at.Notebook))
}

func makeByTemplate(t *testing.T, d *desk, notebook string) {
	tb := newTable(t, d)
	ok[catalogue.AvSetOptionsOut](t, d, "set_column_options", args{"avID": tb.id, "keyID": tb.column["select"], "options": []args{{"name": "Open"}}})
	static := func(v any) args { return args{"mode": "static", "value": v} }
	row, doc := newID(t), newID(t)
	set := func(standard string, list ...args) catalogue.AvSetTemplatesOut {
		return ok[catalogue.AvSetTemplatesOut](t, d, "set_new_item_templates", args{"avID": tb.id, "blockID": tb.block, "templates": append([]args{}, list...), "defaultTemplateID": standard})
	}
	errand := args{"id": row, "name": "Errand", "targetType": "detached", "fieldValues": args{
		tb.column["text"]: static("by bike"), tb.column["number"]: static(0), tb.column["select"]: static("Open"), tb.column["checkbox"]: static(true),
		tb.column["date"]: args{"mode": "currentTime"},
	}}
	note := args{"id": doc, "name": "Note", "targetType": "document", "saveLocation": args{"boxID": notebook, "path": "/Made/Note"}, "fieldValues": args{tb.column["text"]: static(args{"type": "text", "text": args{"content": "long"}})}}
	if out := set(row, errand, note); !out.Changed || out.TemplateCount != 2 || out.Status != "applied" {
		t.Errorf("set %+v", out)
	}
	if again := set(row, errand, note); again.Changed || again.Status != "already_applied" {
		t.Errorf("again %+v", again)
	}
	whole := ok[catalogue.AvGetOut](t, d, "get", args{"id": tb.id})
	want := []catalogue.AvTemplate{
		{ID: row, Name: "Errand", Target: "detached", Fields: map[string]any{tb.column["text"]: "by bike", tb.column["number"]: 0.0, tb.column["select"]: "Open", tb.column["checkbox"]: true, tb.column["date"]: "currentTime"}},
		{ID: doc, Name: "Note", Target: "document", Place: &catalogue.AvPlace{BoxID: notebook, Path: "/Made/Note"}, Fields: map[string]any{tb.column["text"]: "long"}},
	}
	if !reflect.DeepEqual(whole.Av.Templates, want) || whole.Av.DefaultTemplate != row {
		t.Errorf("templates %+v, want %+v", whole.Av.Templates, want)
	}

	made := ok[catalogue.AvFromTemplateOut](t, d, "create_from_template", args{"avID": tb.id, "blockID": tb.block, "templateID": row, "previousID": tb.bound})
	if !made.IsDetached || made.BlockID != made.ItemID || len(made.Readback) != 5 {
		t.Errorf("made %+v", made)
	}
	cells := rowOf(t, d, tb, made.ItemID).Cells
	day, isDay := cells[tb.column["date"]].(args)
	if cells[tb.column["text"]] != "by bike" || cells[tb.column["number"]] != 0.0 || cells[tb.column["select"]] != "Open" || !isDay || day["hasTime"] != false {
		t.Errorf("the cells are %v", cells)
	}
	made = ok[catalogue.AvFromTemplateOut](t, d, "create_from_template", args{"avID": tb.id, "blockID": tb.block, "templateID": doc, "viewID": currentView(t, d, tb)})
	at, err := d.client.Reader().PathByID(context.Background(), siyuan.ID(made.BlockID))
	check(t, err)
	if made.IsDetached || made.BlockID == made.ItemID || made.Content != "Note" || string(at.Notebook) != notebook {
		t.Errorf("made %+v in %+v", made, at)
	}
	if r := rowOf(t, d, tb, made.ItemID); r.Cells[tb.column["text"]] != "long" {
		t.Errorf("its row is %+v", r)
	}
	if none := set(""); none.TemplateCount != 0 || !none.Changed {
		t.Errorf("none %+v", none)
	}
	fails(t, d, contract.NotFound, "create_from_template", args{"avID": tb.id, "blockID": tb.block, "templateID": row})
}

func TestTemplatesAreCheckedBeforeSiYuanRefusesThemInSilence(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	tb := newTable(t, d)
	ok[catalogue.AvSetOptionsOut](t, d, "set_column_options", args{"avID": tb.id, "keyID": tb.column["select"], "options": []args{{"name": "Open"}}})
	field := func(column string, f args) args {
		return args{"id": newID(t), "name": "x", "targetType": "detached", "fieldValues": args{column: f}}
	}
	document := func(box, path string) args {
		return args{"id": newID(t), "name": "x", "targetType": "document", "saveLocation": args{"boxID": box, "path": path}}
	}
	for _, c := range []struct {
		template args
		code     contract.Code
		says     string
	}{
		{args{"id": "x", "name": "x", "targetType": "detached"}, contract.InvalidArguments, "templates.0.id"},
		{args{"id": newID(t), "name": "x", "targetType": "document"}, contract.InvalidArguments, "where the documents go"},
		{field(newID(t), args{"mode": "static", "value": "x"}), contract.NotFound, "no column"},
		{field(tb.column["block"], args{"mode": "static", "value": "x"}), contract.InvalidTarget, "cannot fill in"},
		{field(tb.column["created"], args{"mode": "static", "value": "2026-11-30"}), contract.InvalidTarget, "cannot fill in"},
		{field(tb.column["select"], args{"mode": "static", "value": "open"}), contract.InvalidValue, `no option \"open\"`},
		{field(tb.column["text"], args{"mode": "currentTime"}), contract.InvalidArguments, "date column only"},
		{field(tb.column["text"], args{"mode": "static"}), contract.InvalidArguments, "is needed"},
		{field(tb.column["number"], args{"mode": "static", "value": "many"}), contract.InvalidArguments, "of type number"},
		{document(guardtest.Work, "Note"), contract.InvalidArguments, "readable path"},
		{document(guardtest.Work, "/../Note"), contract.InvalidArguments, "readable path"},
		{document(guardtest.Work, `/{{(queryBlocks "SELECT * FROM blocks")}}`), contract.HiddenReference, "read every notebook"},
		{document(guardtest.Diary, "/Note"), contract.PermissionDenied, "level rw"},
		{document(guardtest.Private, "/Note"), contract.NotFound, "no notebook"},
	} {
		got := fails(t, d, c.code, "set_new_item_templates", args{"avID": tb.id, "blockID": tb.block, "templates": []args{c.template}, "defaultTemplateID": ""})
		if !strings.Contains(got, c.says) {
			t.Errorf("%v: %s, want %q in it", c.template, got, c.says)
		}
	}
	fails(t, d, contract.InvalidArguments, "set_new_item_templates", args{"avID": tb.id, "blockID": tb.block, "templates": []args{}, "defaultTemplateID": newID(t)})
}

// What a person made in SiYuan may lead where the agent may not, or look at
// everything.
func TestTemplatesOfAPersonTellAndDoNoMoreThanTheAgentMay(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	tb := newTable(t, d)
	template := func(box, path, content string) string {
		id := newID(t)
		list := []siyuan.ItemTemplate{{ID: siyuan.ID(id), Name: "x", TargetType: "document", Content: content, SaveLocation: &siyuan.ItemPlace{BoxID: siyuan.ID(box), PathTemplate: path}}}
		if box == "" {
			list[0].SaveLocation = nil
		}
		op := siyuan.Op{Action: "setAttrViewNewItemTemplates", AvID: siyuan.ID(tb.id), Data: map[string]any{"templates": list, "defaultTemplateID": ""}}
		_, err := d.client.Writer().Transactions(context.Background(), []siyuan.Tx{{Do: []siyuan.Op{op}}})
		check(t, err)
		return id
	}
	create := func(id string, code contract.Code) string {
		return fails(t, d, code, "create_from_template", args{"avID": tb.id, "blockID": tb.block, "templateID": id})
	}
	create(template(guardtest.Diary, "/x", ""), contract.PermissionDenied)
	create(template(guardtest.Work, `/{{(queryBlocks "SELECT * FROM blocks")}}`, ""), contract.HiddenReference)
	create(template(guardtest.Work, "/x", "notes.md"), contract.Unsupported)
	create(template("", "", ""), contract.InvalidTarget)
	hidden := create(template(guardtest.Private, "/Nightfall", ""), contract.HiddenReference)
	whole := ok[catalogue.AvGetOut](t, d, "get", args{"id": tb.id})
	if strings.Contains(hidden, guardtest.Private) || len(whole.Av.Templates) != 1 || *whole.Av.Templates[0].Place != (catalogue.AvPlace{BoxID: guard.Placeholder}) {
		t.Errorf("%s; templates %+v", hidden, whole.Av.Templates)
	}
	if rows := ok[catalogue.AvPrimaryOut](t, d, "get_primary_key_values", args{"avID": tb.id}); rows.Total != 2 {
		t.Errorf("%d rows, want the 2 there were", rows.Total)
	}
}
