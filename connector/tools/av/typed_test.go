package av_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func TestDatesAreISOWithTheirZoneBothWays(t *testing.T) {
	t.Parallel()
	d, h := sampleDesk(t)
	home := time.FixedZone("half", 5*3600+1800)
	d.start(t, guard.New(h.Client.Reader(), h.Client.Writer(), guard.Options{
		Now:   func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, home) },
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}))
	tb := newTable(t, d)
	for _, c := range []struct {
		in   any
		want args
		ms   int64
	}{
		{"2026-11-30T09:00+01:00", args{"start": "2026-11-30T13:30:00+05:30", "hasTime": true}, time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC).UnixMilli()},
		{"2026-11-30T09:00", args{"start": "2026-11-30T09:00:00+05:30", "hasTime": true}, time.Date(2026, 11, 30, 3, 30, 0, 0, time.UTC).UnixMilli()},
		{"2026-11-30", args{"start": "2026-11-30", "hasTime": false}, time.Date(2026, 11, 29, 18, 30, 0, 0, time.UTC).UnixMilli()},
		{"2026-11-29T20:00Z", args{"start": "2026-11-30T01:30:00+05:30", "hasTime": true}, time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC).UnixMilli()},
	} {
		out := ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.loose, "date", args{"date": c.in}))
		if got := out.Verification.Cells[0].Observed; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v is read as %v, want %v", c.in, got, c.want)
		}
		av, err := h.Client.Reader().AttributeView(context.Background(), siyuan.ID(tb.id))
		check(t, err)
		for _, kv := range av.KeyValues {
			if string(kv.Key.ID) == tb.column["date"] && kv.Values[0].Date.Content != c.ms {
				t.Errorf("%v is stored as %d, want %d", c.in, kv.Values[0].Date.Content, c.ms)
			}
		}
		// What was read can be written: it is the same moment.
		back := ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.loose, "date", args{"date": c.want["start"]}))
		if got := back.Verification.Cells[0].Observed; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v written back is %v", c.want, got)
		}
	}
	for _, bad := range []string{"30.11.2026", "tomorrow", "2026-13-01", "2026-11-30T25:00"} {
		if got := fails(t, d, contract.InvalidArguments, "set_cells", tb.cell(tb.loose, "date", args{"date": bad})); !strings.Contains(got, "2026-11-30T09:00+01:00") {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

func TestZeroIsNotEmpty(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	zero(t, d)
}

func TestLiveZeroIsNotEmpty(t *testing.T) { zero(t, liveDesk(t)) }

func zero(t *testing.T, d *desk) {
	tb := newTable(t, d)
	number := tb.column["number"]
	if got, there := rowOf(t, d, tb, tb.loose).Cells[number]; there {
		t.Errorf("a cell that was never set is %v", got)
	}
	ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.loose, "number", args{"number": 0}))
	whole := ok[catalogue.AvGetOut](t, d, "get", args{"id": tb.id})
	if got := rowOf(t, d, tb, tb.loose).Cells[number]; got != 0.0 {
		t.Errorf("0 is shown as %v", got)
	}
	for _, r := range whole.Av.Rows {
		if _, there := r.Cells[number]; there != (r.ID == tb.loose) {
			t.Errorf("row %s as stored has %v", r.ID, r.Cells[number])
		}
	}
	ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.loose, "number", nil))
	if got, there := rowOf(t, d, tb, tb.loose).Cells[number]; there {
		t.Errorf("an emptied cell is %v", got)
	}
}

// A relation shows the titles of rows; one whose block is gone has none to show.
func TestARelationToARowOfAMissingBlockShowsAPlaceholder(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	p := newPair(t, d)
	row := ok[catalogue.AvAddRowsOut](t, d, "add_rows", args{"avID": p.people.id, "blockIDs": []string{d.paras[1]}}).Rows[0].RowID
	ok[catalogue.AvSetRelationOut](t, d, "set_relation", args{"avID": p.tasks.id, "keyID": p.owner, "itemID": p.task, "relatedItemIDs": []string{row, p.anna}})
	contents := func() any { return rowOf(t, d, p.tasks, p.task).Cells[p.owner].(args)["contents"] }
	if got := contents(); !reflect.DeepEqual(got, []any{args{"id": d.paras[1], "content": "Alpha goals"}, "Anna"}) {
		t.Errorf("the relation shows %v", got)
	}
	check(t, d.client.Writer().DeleteBlock(context.Background(), siyuan.ID(d.paras[1])))
	if got := contents(); !reflect.DeepEqual(got, []any{args{"id": d.paras[1], "content": guard.Placeholder}, "Anna"}) {
		t.Errorf("the relation to a row whose block is gone shows %v", got)
	}
}

// A rollup that was made while its database could be read shows nothing of it once
// it cannot.
func TestARollupOverAHiddenDatabaseIsAPlaceholder(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	p := newPair(t, d)
	ok[catalogue.AvSetRelationOut](t, d, "set_relation", args{"avID": p.tasks.id, "keyID": p.owner, "itemID": p.task, "relatedItemIDs": []string{p.anna}})
	ok[catalogue.AvRollupOut](t, d, "configure_rollup", args{"avID": p.tasks.id, "keyID": p.ages, "relationKeyID": p.owner, "destinationKeyID": p.age, "calc": args{"operator": ""}})
	cells := func() map[string]any { return rowOf(t, d, p.tasks, p.task).Cells }
	if got := cells()[p.ages]; !reflect.DeepEqual(got, []any{41.0}) {
		t.Fatalf("the rollup shows %v", got)
	}
	check(t, d.client.Writer().AddRows(context.Background(), siyuan.ID(p.people.id), siyuan.RowsAt{}, []siyuan.AvSource{{ID: guardtest.SecretP}}))
	if got := cells(); got[p.ages] != guard.Placeholder || got[p.owner] != guard.Placeholder {
		t.Errorf("the cells are %v", got)
	}
	whole := ok[catalogue.AvGetOut](t, d, "get", args{"id": p.tasks.id})
	for _, r := range whole.Av.Rows {
		if r.ID == p.task && r.Cells[p.owner] != guard.Placeholder {
			t.Errorf("as stored the relation is %v", r.Cells[p.owner])
		}
	}
	found := ok[catalogue.AvRenderOut](t, d, "render", args{"id": p.tasks.id, "query": "Anna"})
	if found.Total != 0 {
		t.Errorf("a search for a hidden title finds %d rows", found.Total)
	}
}

func TestTemplateColumnsThatQueryAreRefusedWhileAnythingIsHidden(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	tb := newTable(t, d)
	column := ok[catalogue.AvAddColumnOut](t, d, "add_column", args{"avID": tb.id, "keyName": "computed", "keyType": "template"}).KeyID
	compute := func(template string) {
		op := siyuan.Op{Action: "updateAttrViewColTemplate", AvID: siyuan.ID(tb.id), ID: siyuan.ID(column), Data: template}
		_, err := d.client.Writer().Transactions(context.Background(), []siyuan.Tx{{Do: []siyuan.Op{op}}})
		check(t, err)
	}
	view := currentView(t, d, tb)
	compute(`.action{ len (queryBlocks "SELECT * FROM blocks") }`)
	if got := rowOf(t, d, tb, tb.loose).Cells[column]; got != guard.Placeholder {
		t.Errorf("a template that queries shows %v", got)
	}
	for action, more := range map[string]args{
		"set_sorts": {"sorts": []args{{"column": column, "order": "ASC"}}}, "set_group": {"group": args{"field": column}},
		"set_filters": {"filters": []args{{"column": column, "operator": "=", "value": "3"}}},
	} {
		fails(t, d, contract.Unsupported, action, tb.in(view, more))
	}
	check(t, d.client.Writer().SetSorts(context.Background(), siyuan.ID(tb.id), siyuan.ID(tb.block), []siyuan.AvSort{{Column: siyuan.ID(column), Order: "ASC"}}))
	fails(t, d, contract.Unsupported, "render", args{"id": tb.id}) // a person's sort would tell the order
	compute(`.action{ print "own words" }`)
	if got := rowOf(t, d, tb, tb.loose).Cells[column]; got != "own words" {
		t.Errorf("a template of the row's own shows %v", got)
	}
}

// What an action costs at home. A number is raised only with a reason. Finding out
// whether a database may be seen is not counted, see guard.Session.Database.
func TestKernelCallsOfDatabaseActions(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	p := newPair(t, d)
	view := currentView(t, d, p.tasks)
	order, _ := stored(t, d, p.tasks, view)
	for _, c := range []struct {
		action string
		args   args
		most   int
	}{
		{"render", args{"id": p.tasks.id}, 2},
		{"get", args{"id": p.tasks.id}, 1},
		{"set_filters", p.tasks.in(view, args{"filters": []args{{"column": p.tasks.column["block"], "operator": "Contains", "value": "paint"}}}), 5},
		{"set_sorts", p.tasks.in(view, args{"sorts": []args{{"column": p.tasks.column["block"], "order": "ASC"}}}), 5},
		{"set_group", p.tasks.in(view, args{"group": args{"field": p.tasks.column["block"]}}), 5},
		{"set_column_visibility", p.tasks.in(view, args{"keyID": p.owner, "hidden": true}), 6},
		{"set_column_order", p.tasks.in(view, args{"keyIDs": append(order[1:], order[0])}), 6},
		{"add_view", p.tasks.in(newID(t), args{"layout": "table", "name": "x"}), 7},
		{"set_relation", args{"avID": p.tasks.id, "keyID": p.owner, "itemID": p.task, "relatedItemIDs": []string{p.anna}}, 5},
		{"duplicate_rows", args{"avID": p.tasks.id, "sourceRowIDs": []string{p.task, p.two, p.task}}, 5},
		{"configure_rollup", args{"avID": p.tasks.id, "keyID": p.ages, "relationKeyID": p.owner, "destinationKeyID": p.age, "calc": args{"operator": ""}}, 5},
	} {
		r := d.call(c.action, c.args)
		if r.Err != nil {
			t.Fatalf("%s: %v", c.action, r.Err)
		}
		t.Logf("%s: %d kernel calls", c.action, r.Stats.KernelCalls)
		if r.Stats.KernelCalls > c.most {
			t.Errorf("%s: %d kernel calls, at most %d", c.action, r.Stats.KernelCalls, c.most)
		}
	}
}
