package cases_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func cellArgs(column, kind, value string) string {
	if value != "" {
		value = "," + value
	}
	return `{"avID":"` + guardtest.Database + `","rowID":"` + guardtest.DatabaseRow + `","columnID":"` + column + `","valueType":"` + kind + `"` + value + `}`
}

// TestK18ASelectCellThatIsNotStoredIsNoSuccess: SiYuan answers 0 for cells that it
// does not store, on a kanban board as in a table.
func TestK18ASelectCellThatIsNotStoredIsNoSuccess(t *testing.T) {
	t.Parallel()
	pick := cellArgs(guardtest.DatabasePick, "select", `"option":"Done"`)
	for _, layout := range []string{"table", "kanban"} {
		d := newDeskFor(t, "av.set_cells")
		added := `{"avID":"` + guardtest.Database + `","blockID":"` + guardtest.DatabaseBlock + `","viewID":"20260131120000-newview","layout":"` + layout + `","name":"New"}`
		if r := d.call("av.add_view", added); r.Err != nil {
			t.Fatal(r.Err)
		}
		d.kernel.Faults().Set("/api/av/batchSetAttributeViewBlockAttrs", samplekernel.Fault{Kind: samplekernel.FaultNoEffect})
		if e := d.fails(t, contract.WriteNotPersisted, "av.set_cells", pick); !strings.Contains(e.Message, guardtest.DatabaseRow) {
			t.Errorf("%s: the cell is not named: %s", layout, e.Message)
		}
		d.kernel.Faults().Set("/api/av/batchSetAttributeViewBlockAttrs", samplekernel.Fault{})
		if r := d.call("av.set_cells", pick); r.Err != nil || !strings.Contains(string(r.Body), `"observed":"Done"`) {
			t.Errorf("%s: %v %s", layout, r.Err, r.Body)
		}
	}
}

// TestK19RowsAreNamedByTheirItemIDs: newer kernels refuse rowID, and take the id of
// a bound block for that of a row without a word.
func TestK19RowsAreNamedByTheirItemIDs(t *testing.T) {
	t.Parallel()
	d := newDeskFor(t, "av.set_cells")
	added := d.call("av.add_rows", `{"avID":"`+guardtest.Database+`","blockIDs":["`+guardtest.Intro+`"]}`)
	var rows catalogue.AvAddRowsOut
	if added.Err != nil || json.Unmarshal(added.Body, &rows) != nil {
		t.Fatal(added.Err)
	}
	by := func(row string) string {
		return strings.Replace(cellArgs(guardtest.DatabaseText, "text", `"text":"x"`), guardtest.DatabaseRow, row, 1)
	}
	e := d.fails(t, contract.InvalidTarget, "av.set_cells", by(guardtest.Intro))
	if !strings.Contains(string(e.Detail), `"suggestedRowID":"`+rows.Rows[0].RowID+`"`) || !strings.Contains(e.Message, "the block bound to a row") {
		t.Errorf("%s %s", e.Message, e.Detail)
	}
	d.front.take()
	for _, row := range []string{rows.Rows[0].RowID, guardtest.DatabaseRow} {
		if r := d.call("av.set_cells", by(row)); r.Err != nil {
			t.Errorf("row %s: %v", row, r.Err)
		}
	}
	writes := 0
	for _, x := range d.front.take() {
		if !d.kernel.Faults().IsWrite(x.path) {
			continue
		}
		writes++
		if strings.Contains(string(x.body), `"rowID"`) || !strings.Contains(string(x.body), `"itemID"`) {
			t.Errorf("%s is sent %s", x.path, x.body)
		}
	}
	if writes != 2 {
		t.Errorf("%d writes, want 2", writes)
	}
}

// TestK21ValuesAreTypedByTheirColumns: ISO dates go in and come out with a zone, 0
// is not empty, and a value of another kind names the kind of the column.
func TestK21ValuesAreTypedByTheirColumns(t *testing.T) {
	t.Parallel()
	d := newDeskFor(t, "av.set_cells")
	date := func(start string, withTime bool) map[string]any {
		return map[string]any{"start": start, "hasTime": withTime}
	}
	zone := time.Date(2026, 11, 30, 9, 5, 0, 0, time.Local).Format("Z07:00") // of the machine that SiYuan runs on
	for _, c := range []struct {
		column, kind, value string
		want                any
	}{
		{guardtest.DatabaseDay, "date", `"date":"2026-11-30"`, date("2026-11-30", false)},
		{guardtest.DatabaseDay, "date", `"date":"2026-11-30 09:05"`, date("2026-11-30T09:05:00"+zone, true)},
		{guardtest.DatabaseDay, "date", `"date":1796029500000,"includeTime":false`, date("2026-11-30", false)}, // 09:05 UTC
		{guardtest.DatabaseDay, "date", ``, nil},
		{guardtest.DatabaseCount, "number", `"number":0`, 0.0},
		{guardtest.DatabaseCount, "number", ``, nil},
		{guardtest.DatabasePick, "select", `"option":"Open"`, "Open"},
	} {
		r := d.call("av.set_cells", cellArgs(c.column, c.kind, c.value))
		var out catalogue.AvSetCellsOut
		if r.Err != nil || json.Unmarshal(r.Body, &out) != nil || len(out.Verification.Cells) != 1 {
			t.Fatalf("%s %s: %v %s", c.kind, c.value, r.Err, r.Body)
		}
		if got := out.Verification.Cells[0].Observed; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s is stored as %v, want %v", c.kind, c.value, got, c.want)
		}
	}
	for _, c := range [][3]string{{guardtest.DatabaseCount, "text", `"text":"3"`}, {guardtest.DatabaseDay, "number", `"number":3`}, {guardtest.DatabasePick, "multi_select", `"options":["Open"]`}} {
		kind := map[string]string{guardtest.DatabaseCount: "number", guardtest.DatabaseDay: "date", guardtest.DatabasePick: "select"}[c[0]]
		if e := d.fails(t, contract.InvalidValue, "av.set_cells", cellArgs(c[0], c[1], c[2])); !strings.Contains(e.Message, "of type "+kind) {
			t.Errorf("%v: %s", c, e.Message)
		}
	}
}
