package av_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// preview is what a person is shown before they agree to a call.
func (d *desk) preview(t testing.TB, action string, a args) contract.Preview {
	t.Helper()
	raw, err := json.Marshal(a)
	check(t, err)
	r := d.exec.Handle(context.Background(), contract.Call{Method: contract.MethodPreview, Tool: "av", Action: action, RequestID: "req-1", Grant: d.grant, Args: raw}, nil)
	if r.Err != nil {
		t.Fatalf("%s %v: %v", action, a, r.Err)
	}
	var p contract.Preview
	check(t, json.Unmarshal(r.Body, &p))
	return p
}

func TestAPersonIsShownWhatADangerousCallTouches(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	p := newPair(t, d)
	tb := newTable(t, d)
	pick := tb.column["select"]
	ok[catalogue.AvSetOptionsOut](t, d, "set_column_options", args{"avID": tb.id, "keyID": pick, "options": []args{{"name": "Open"}, {"name": "Done"}}})
	errand, note := newID(t), newID(t)
	templates := []args{
		{"id": errand, "name": "Errand", "targetType": "detached"},
		{"id": note, "name": "Note", "targetType": "document", "saveLocation": args{"boxID": guardtest.Work, "path": "/Made/Note"}},
	}
	set := func(list []args) args {
		return args{"avID": tb.id, "blockID": tb.block, "templates": list, "defaultTemplateID": ""}
	}
	ok[catalogue.AvSetTemplatesOut](t, d, "set_new_item_templates", set(templates))
	column := func(title, in string) contract.PreviewItem {
		return contract.PreviewItem{Kind: "database column", Title: title, Path: in}
	}
	for _, c := range []struct {
		action string
		args   args
		rows   int
		docs   int
		named  []contract.PreviewItem
	}{
		{"set_column_options", args{"avID": tb.id, "keyID": pick, "options": []args{{"name": "Done"}}}, 0, 0,
			[]contract.PreviewItem{column("Select", "Tasks"), {Kind: "dropped option", Title: "Open"}}},
		{"duplicate_rows", args{"avID": tb.id, "sourceRowIDs": []string{tb.loose}}, 1, 0,
			[]contract.PreviewItem{{Kind: "database row", Title: "Buy paint", Path: "Tasks"}}},
		{"remove_rows", args{"avID": tb.id, "srcIDs": []string{tb.loose}}, 1, 0,
			[]contract.PreviewItem{{Kind: "database row", Title: "Buy paint", Path: "Tasks"}}},
		{"remove_column", args{"avID": tb.id, "keyID": pick}, 0, 0, []contract.PreviewItem{column("Select", "Tasks")}},
		{"set_relation", args{"avID": p.tasks.id, "keyID": p.owner, "itemID": p.task, "relatedItemIDs": []string{p.anna}}, 1, 0,
			[]contract.PreviewItem{{Kind: "database row", Title: "paint", Path: "Tasks"}, column("Owner", "Tasks")}},
		{"configure_rollup", args{"avID": p.tasks.id, "keyID": p.ages, "relationKeyID": p.owner, "destinationKeyID": p.age, "calc": args{"operator": "Sum"}}, 0, 0,
			[]contract.PreviewItem{column("the rollup", "Tasks")}},
		{"configure_two_way_relation", p.ways(args{"destinationName": "Jobs"}), 0, 0,
			[]contract.PreviewItem{column("Owner", "Tasks"), {Kind: "new database column", Title: "Jobs", Path: "People"}}},
		{"set_new_item_templates", set(templates[:1]), 0, 0,
			[]contract.PreviewItem{{Kind: "dropped template", Title: "Note", Path: "Tasks"}, {Kind: "template for new rows", Title: "Errand", Path: "Tasks"}}},
		{"create_from_template", args{"avID": tb.id, "blockID": tb.block, "templateID": note}, 1, 1,
			[]contract.PreviewItem{{Kind: "template for new rows", Title: "Note", Path: "Tasks"}, {Kind: "place of the new document", Title: "/Made/Note", Path: "Work"}}},
	} {
		got := d.preview(t, c.action, c.args)
		if got.Counts.Rows != c.rows || got.Counts.Documents != c.docs || !slices.Equal(got.Named, c.named) {
			t.Errorf("%s shows %+v, want %d rows, %d documents and %+v", c.action, got, c.rows, c.docs, c.named)
		}
	}
	if out := ok[catalogue.AvGetOut](t, d, "get", args{"id": tb.id}); len(out.Av.Rows) != 2 || len(out.Av.Templates) != 2 {
		t.Errorf("a preview changed something: %+v", out.Av)
	}
}
