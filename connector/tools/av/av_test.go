package av_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func TestADatabaseFromItsMakingToItsEnd(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	fromMakingToEnd(t, d)
}

func TestLiveADatabaseFromItsMakingToItsEnd(t *testing.T) { fromMakingToEnd(t, liveDesk(t)) }

// table is a database with a column of every kind that can be set, a bound row
// and one of its own.
type table struct {
	id, block    string
	bound, loose string // rows
	column       map[string]string
}

func newTable(t testing.TB, d *desk) table {
	t.Helper()
	made := ok[catalogue.AvCreateOut](t, d, "create", args{"blockID": d.doc, "name": "Tasks"})
	tb := table{id: made.AvID, block: made.BlockID, column: map[string]string{}}
	for _, c := range made.Columns {
		tb.column[c.Type] = c.ID
	}
	for _, kind := range []string{"text", "number", "date", "mSelect", "url", "email", "phone", "checkbox", "mAsset", "created"} {
		c := ok[catalogue.AvAddColumnOut](t, d, "add_column", args{"avID": tb.id, "keyName": "the " + kind, "keyType": kind, "previousKeyID": tb.column["block"]})
		tb.column[kind] = c.KeyID
	}
	rows := ok[catalogue.AvAddRowsOut](t, d, "add_rows", args{"avID": tb.id, "blockIDs": []string{d.paras[0]}, "primaryKeyTexts": []string{"Buy paint"}})
	if rows.Added != 2 || len(rows.Rows) != 2 || rows.Rows[0].BlockID != d.paras[0] || rows.Rows[1].PrimaryKeyText != "Buy paint" {
		t.Fatalf("added %+v", rows)
	}
	tb.bound, tb.loose = rows.Rows[0].RowID, rows.Rows[1].RowID
	return tb
}

func (tb table) cell(row, kind string, value args) args {
	column := map[string]string{"multi_select": "mSelect"}[kind]
	if column == "" {
		column = kind
	}
	a := args{"avID": tb.id, "rowID": row, "columnID": tb.column[column], "valueType": kind}
	for k, v := range value {
		a[k] = v
	}
	return a
}

func fromMakingToEnd(t *testing.T, d *desk) {
	tb := newTable(t, d)
	again := ok[catalogue.AvAddRowsOut](t, d, "add_rows", args{"avID": tb.id, "blockIDs": []string{d.paras[0]}})
	if again.Added != 0 || !again.Rows[0].Existed || again.Rows[0].RowID != tb.bound {
		t.Errorf("a block that is bound already: %+v", again)
	}
	zone := time.Now().Location()
	morning := time.Date(2026, 11, 30, 9, 5, 0, 0, zone)
	for _, c := range []struct {
		kind  string
		value args
		want  any // as render shows it
	}{
		{"text", args{"text": "words"}, "words"},
		{"number", args{"number": 0}, 0.0},
		{"number", args{"number": 12.5, "numberFormat": "commas"}, 12.5},
		{"date", args{"date": "2026-11-30"}, args{"start": "2026-11-30", "hasTime": false}},
		{"date", args{"date": "2026-11-30 09:05"}, args{"start": morning.Format(time.RFC3339), "hasTime": true}},
		{"date", args{"date": "2026-11-30T08:00Z", "endDate": "2026-11-30T10:00Z"}, args{
			"start": time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC).In(zone).Format(time.RFC3339), "end": time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC).In(zone).Format(time.RFC3339), "hasTime": true}},
		{"date", args{"date": morning.UnixMilli(), "includeTime": false}, args{"start": "2026-11-30", "hasTime": false}},
		{"select", args{"option": "open"}, "open"},
		{"multi_select", args{"options": []string{"red"}}, []any{"red"}},
		{"url", args{"url": "https://example.org"}, "https://example.org"},
		{"email", args{"email": "a@example.org"}, "a@example.org"},
		{"phone", args{"phone": "123"}, "123"},
		{"checkbox", args{"checked": true}, true},
		{"mAsset", args{"assets": []args{{"type": "file", "content": "https://example.org/f.pdf", "name": "f"}}}, []any{args{"type": "file", "content": "https://example.org/f.pdf", "name": "f"}}},
	} {
		out := ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.bound, c.kind, c.value))
		if out.Updated != 1 || !reflect.DeepEqual(out.Verification.Cells[0].Observed, c.want) {
			t.Errorf("%s %v: %+v, want %v", c.kind, c.value, out, c.want)
		}
		column := tb.cell("", c.kind, nil)["columnID"].(string)
		if got := rowOf(t, d, tb, tb.bound).Cells[column]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %v is shown as %v, want %v", c.kind, c.value, got, c.want)
		}
	}
	for _, kind := range []string{"text", "number", "date", "select", "multi_select", "url", "mAsset"} {
		ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.bound, kind, nil))
		if got, there := rowOf(t, d, tb, tb.bound).Cells[tb.cell("", kind, nil)["columnID"].(string)]; there {
			t.Errorf("an emptied %s is shown as %v", kind, got)
		}
	}
	ok[catalogue.AvSetCellsOut](t, d, "set_cells", args{"avID": tb.id, "rowID": tb.loose, "columnID": tb.column["block"], "valueType": "text", "text": "Buy brushes"})
	found := ok[catalogue.AvRenderOut](t, d, "render", args{"id": tb.id, "query": "brushes"})
	if found.Total != 1 || len(found.Table.Rows) != 1 || found.Table.Rows[0].ID != tb.loose {
		t.Errorf("found %+v", found)
	}
	keys := ok[catalogue.AvKeysOut](t, d, "get_attribute_view_keys", args{"id": tb.id})
	titles := ok[catalogue.AvPrimaryOut](t, d, "get_primary_key_values", args{"avID": tb.id, "keyword": "BRUSHES"})
	hits := ok[catalogue.AvSearchOut](t, d, "search", args{"keyword": "brushes"})
	if len(keys.Keys) != 12 || titles.Total != 1 || titles.Rows[0].RowID != tb.loose || len(hits.Results) != 1 || hits.Results[0].ID != tb.id {
		t.Errorf("%d columns, titles %+v, hits %+v", len(keys.Keys), titles, hits)
	}
	removed := ok[catalogue.AvRemoveRowsOut](t, d, "remove_rows", args{"avID": tb.id, "srcIDs": []string{d.paras[0]}})
	if removed.Removed != 1 || !slices.Equal(removed.Verification.RowIDs, []string{tb.bound}) {
		t.Errorf("removed %+v", removed)
	}
	ok[catalogue.AvRemoveColumnOut](t, d, "remove_column", args{"avID": tb.id, "columnID": tb.column["text"]})
	whole := ok[catalogue.AvGetOut](t, d, "get", args{"id": tb.id, "blockID": tb.block})
	if len(whole.Av.Columns) != 11 || len(whole.ResolvedRows) != 1 || whole.ResolvedRows[0].RowID != tb.loose || whole.Av.Name != "Tasks" {
		t.Errorf("left %+v", whole)
	}
	twin := ok[catalogue.AvDuplicateOut](t, d, "duplicate", args{"avID": tb.id})
	if rows := ok[catalogue.AvPrimaryOut](t, d, "get_primary_key_values", args{"avID": twin.AvID}); rows.Total != 1 || !slices.Equal(rows.BlockIDs, []string{twin.BlockID}) {
		t.Errorf("the copy %+v", rows)
	}
}

func rowOf(t testing.TB, d *desk, tb table, id string) catalogue.AvRow {
	t.Helper()
	out := ok[catalogue.AvRenderOut](t, d, "render", args{"id": tb.id, "pageSize": -1})
	i := slices.IndexFunc(out.Table.Rows, func(r catalogue.AvRow) bool { return r.ID == id })
	if i < 0 {
		t.Fatalf("row %s is not among %+v", id, out.Table.Rows)
	}
	return out.Table.Rows[i]
}

func TestIDsOfTheWrongKindAreToldApart(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	tb := newTable(t, d)
	text := func(row, column string) args {
		return args{"avID": tb.id, "rowID": row, "columnID": column, "valueType": "text", "text": "x"}
	}
	whole := ok[catalogue.AvGetOut](t, d, "get", args{"id": tb.id})
	for _, c := range []struct {
		args args
		says string
	}{
		{text(d.paras[0], tb.column["text"]), "the block bound to a row"},
		{text(tb.block, tb.column["text"]), "a block that shows the database"},
		{text(tb.column["text"], tb.column["text"]), "a column"},
		{text(whole.ResolvedRows[0].ValueIDs[0], tb.column["text"]), "a cell"},
		{text(tb.loose, tb.bound), "a row"},
		{text(tb.loose, whole.Av.Views[0].ID), "a view"},
		{text(tb.id, tb.column["text"]), "the database itself"},
		{text(tb.loose, tb.column["created"]), "SiYuan computes itself"},
		{text(tb.bound, tb.column["block"]), "the text of the block bound to it"},
	} {
		if got := fails(t, d, contract.InvalidTarget, "set_cells", c.args); !strings.Contains(got, c.says) {
			t.Errorf("%v: %s, want %q in it", c.args, got, c.says)
		}
	}
	if got := fails(t, d, contract.InvalidTarget, "set_cells", text(d.paras[0], tb.column["text"])); !strings.Contains(got, `"suggestedRowID":"`+tb.bound+`"`) {
		t.Errorf("no row is suggested: %s", got)
	}
	fails(t, d, contract.NotFound, "set_cells", text(guardtest.Missing, tb.column["text"]))
	if got := fails(t, d, contract.InvalidValue, "set_cells", text(tb.loose, tb.column["number"])); !strings.Contains(got, "of type number") {
		t.Errorf("the type of the column is not named: %s", got)
	}
	fails(t, d, contract.InvalidTarget, "render", args{"id": tb.id, "blockID": d.paras[0]})
}

func TestOptionsAreMadeOrRefusedByName(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	tb := newTable(t, d)
	first := ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.loose, "select", args{"option": "Open"}))
	second := ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.bound, "select", args{"option": "Open"}))
	if !slices.Equal(first.CreatedOptions, []string{"Open"}) || second.CreatedOptions != nil {
		t.Errorf("created %v, then %v", first.CreatedOptions, second.CreatedOptions)
	}
	if got := fails(t, d, contract.InvalidValue, "set_cells", tb.cell(tb.loose, "select", args{"option": "open"})); !strings.Contains(got, "Open") {
		t.Errorf("the option there is is not named: %s", got)
	}
}

// K18: SiYuan answers 0 for cells it does not store.
func TestACellThatIsNotStoredIsNeverASuccess(t *testing.T) {
	t.Parallel()
	d, h := sampleDesk(t)
	tb := newTable(t, d)
	h.Answer("/api/av/batchSetAttributeViewBlockAttrs", `null`)
	if got := fails(t, d, contract.WriteNotPersisted, "set_cells", tb.cell(tb.loose, "select", args{"option": "Open"})); !strings.Contains(got, tb.loose) {
		t.Errorf("the cell is not named: %s", got)
	}
	h.Answer("/api/av/addAttributeViewBlocks", `null`)
	fails(t, d, contract.WriteNotPersisted, "add_rows", args{"avID": tb.id, "primaryKeyTexts": []string{"x"}})
}

func TestAReadLeavesTheCurrentViewAsItWas(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	keepsView(t, d)
}

func TestLiveAReadLeavesTheCurrentViewAsItWas(t *testing.T) { keepsView(t, liveDesk(t)) }

func keepsView(t *testing.T, d *desk) {
	ctx := context.Background()
	tb := newTable(t, d)
	second, err := siyuan.NewID(time.Now(), strings.NewReader("0123456789abcdef0123456789"))
	check(t, err)
	_, err = d.client.Writer().Transactions(ctx, []siyuan.Tx{{Do: []siyuan.Op{{Action: "addAttrViewView", AvID: siyuan.ID(tb.id), ID: second, BlockID: siyuan.ID(tb.block), Layout: "table"}}}})
	check(t, err)
	before, err := d.client.Reader().AttributeView(ctx, siyuan.ID(tb.id))
	check(t, err)
	if len(before.Views) != 2 {
		t.Fatalf("views %+v", before.Views)
	}
	for _, v := range before.Views {
		out := ok[catalogue.AvRenderOut](t, d, "render", args{"id": tb.id, "viewID": v.ID})
		if out.View.ID != string(v.ID) || out.Total != 2 {
			t.Errorf("view %s is shown as %+v", v.ID, out)
		}
		after, err := d.client.Reader().AttributeView(ctx, siyuan.ID(tb.id))
		check(t, err)
		if after.ViewID != before.ViewID {
			t.Errorf("reading view %s made it the current one", v.ID)
		}
	}
}

func TestADatabaseIsThereForThoseWhoMayReadAllItTouches(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	tb := newTable(t, d)
	check(t, d.client.Writer().AddRows(context.Background(), siyuan.ID(tb.id), siyuan.RowsAt{}, []siyuan.AvSource{{ID: guardtest.EntryP}}))
	fails(t, d, contract.PermissionDenied, "add_rows", args{"avID": tb.id, "primaryKeyTexts": []string{"x"}}) // the diary may only be read
	ok[catalogue.AvRenderOut](t, d, "render", args{"id": tb.id})
	check(t, d.client.Writer().AddRows(context.Background(), siyuan.ID(tb.id), siyuan.RowsAt{}, []siyuan.AvSource{{ID: guardtest.SecretP}}))
	fails(t, d, contract.NotFound, "render", args{"id": tb.id})
	if hits := ok[catalogue.AvSearchOut](t, d, "search", args{"keyword": "Tasks"}); len(hits.Results) != 0 {
		t.Errorf("found %+v", hits.Results)
	}
}
