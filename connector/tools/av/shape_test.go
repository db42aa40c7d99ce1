package av_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func TestOptionsAreReplacedByName(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	replaceOptions(t, d)
}

func TestLiveOptionsAreReplacedByName(t *testing.T) { replaceOptions(t, liveDesk(t)) }

func replaceOptions(t *testing.T, d *desk) {
	tb := newTable(t, d)
	pick := tb.column["select"]
	set := func(options ...args) catalogue.AvSetOptionsOut {
		return ok[catalogue.AvSetOptionsOut](t, d, "set_column_options", args{"avID": tb.id, "keyID": pick, "options": append([]args{}, options...)})
	}
	first := set(args{"name": "Open", "color": "4", "desc": "to do"}, args{"name": "Done"})
	if first.OptionCount != 2 || !slices.Equal(first.ObservedOptions, []catalogue.AvOption{{Name: "Open", Color: "4", Desc: "to do"}, {Name: "Done", Color: "2"}}) || first.Status != "applied" {
		t.Errorf("first %+v", first)
	}
	ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.bound, "select", args{"option": "Open"}))
	second := set(args{"name": "Later"}, args{"name": "Done", "color": "9"})
	if !slices.Equal(second.ObservedOptions, []catalogue.AvOption{{Name: "Done", Color: "9"}, {Name: "Later", Color: "1"}}) || second.Status != "intermediate_option_order" {
		t.Errorf("second %+v", second)
	}
	if got, there := rowOf(t, d, tb, tb.bound).Cells[pick]; there {
		t.Errorf("a cell keeps the option %v that is gone", got)
	}
	if again := set(args{"name": "Done"}, args{"name": "Later"}); again.Changed || again.Status != "already_applied" {
		t.Errorf("again %+v", again)
	}
	if none := set(); none.OptionCount != 0 || !none.Changed {
		t.Errorf("none %+v", none)
	}
	fails(t, d, contract.InvalidArguments, "set_column_options", args{"avID": tb.id, "keyID": pick, "options": []args{{"name": "a"}, {"name": "a"}}})
	if got := fails(t, d, contract.InvalidTarget, "set_column_options", args{"avID": tb.id, "keyID": tb.column["text"], "options": []args{}}); !strings.Contains(got, "of type text") {
		t.Errorf("options of a text column: %s", got)
	}
}

func TestRowsAreCopiedWithTheirCells(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	copyRows(t, d)
}

func TestLiveRowsAreCopiedWithTheirCells(t *testing.T) { copyRows(t, liveDesk(t)) }

func copyRows(t *testing.T, d *desk) {
	tb := newTable(t, d)
	ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.bound, "number", args{"number": 0}))
	ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.bound, "select", args{"option": "Open"}))
	source := rowOf(t, d, tb, tb.bound)
	out := ok[catalogue.AvDuplicateRowsOut](t, d, "duplicate_rows", args{"avID": tb.id, "sourceRowIDs": []string{tb.bound, tb.loose}, "previousID": tb.bound})
	if out.Copied != 2 || len(out.Rows) != 2 {
		t.Fatalf("copied %+v", out)
	}
	var order []string
	whole := ok[catalogue.AvGetOut](t, d, "get", args{"id": tb.id})
	for _, r := range whole.ResolvedRows {
		order = append(order, r.RowID)
		if slices.Contains(out.Rows, r.RowID) && r.SourceBlockID != "" {
			t.Errorf("the copy %s is bound to %s", r.RowID, r.SourceBlockID)
		}
	}
	if !slices.Equal(order, []string{tb.bound, out.Rows[0], out.Rows[1], tb.loose}) {
		t.Errorf("the rows stand as %v", order)
	}
	twin := rowOf(t, d, tb, out.Rows[0])
	for _, kind := range []string{"number", "select"} {
		if !reflect.DeepEqual(twin.Cells[tb.column[kind]], source.Cells[tb.column[kind]]) || twin.Cells[tb.column[kind]] == nil {
			t.Errorf("the copy has %v in %s, want %v", twin.Cells[tb.column[kind]], kind, source.Cells[tb.column[kind]])
		}
	}
	if rowOf(t, d, tb, out.Rows[1]).Cells[tb.column["block"]] != "Buy paint" {
		t.Error("the copy has another title")
	}
	last := ok[catalogue.AvDuplicateRowsOut](t, d, "duplicate_rows", args{"avID": tb.id, "sourceRowIDs": []string{tb.loose}})
	whole = ok[catalogue.AvGetOut](t, d, "get", args{"id": tb.id})
	if end := whole.ResolvedRows[len(whole.ResolvedRows)-1].RowID; end != last.Rows[0] {
		t.Errorf("the last row is %s, want the copy %s", end, last.Rows[0])
	}
	if got := fails(t, d, contract.InvalidTarget, "duplicate_rows", args{"avID": tb.id, "sourceRowIDs": []string{d.paras[0]}}); !strings.Contains(got, "the block bound to a row") {
		t.Errorf("a block for a row: %s", got)
	}
}

// pair is a table of tasks and one of people, tied by a relation both ways.
type pair struct {
	tasks, people        table
	owner, back          string // columns
	anna, ben            string // rows of people
	age, ages, task, two string // a number of people, a rollup of tasks; rows of tasks
}

func newPair(t testing.TB, d *desk) pair {
	t.Helper()
	var p pair
	small := func(name string, rows ...string) (tb table, ids []string) {
		made := ok[catalogue.AvCreateOut](t, d, "create", args{"blockID": d.doc, "name": name})
		tb = table{id: made.AvID, block: made.BlockID, column: map[string]string{"block": made.Columns[0].ID}}
		for _, r := range ok[catalogue.AvAddRowsOut](t, d, "add_rows", args{"avID": tb.id, "primaryKeyTexts": rows}).Rows {
			ids = append(ids, r.RowID)
		}
		return tb, ids
	}
	add := func(tb table, kind string) string {
		return ok[catalogue.AvAddColumnOut](t, d, "add_column", args{"avID": tb.id, "keyName": "the " + kind, "keyType": kind}).KeyID
	}
	var rows []string
	p.tasks, rows = small("Tasks", "paint", "tiles")
	p.task, p.two = rows[0], rows[1]
	p.people, rows = small("People", "Anna", "Ben")
	p.anna, p.ben = rows[0], rows[1]
	p.owner, p.ages, p.age = add(p.tasks, "relation"), add(p.tasks, "rollup"), add(p.people, "number")
	p.back = newID(t)
	out := ok[catalogue.AvTwoWayOut](t, d, "configure_two_way_relation", p.ways(args{}))
	if !out.Changed || out.Status != "applied" {
		t.Fatalf("tied %+v", out)
	}
	for row, age := range map[string]int{p.anna: 41, p.ben: 0} {
		ok[catalogue.AvSetCellsOut](t, d, "set_cells", args{"avID": p.people.id, "rowID": row, "columnID": p.age, "valueType": "number", "number": age})
	}
	return p
}

func (p pair) ways(more args) args {
	a := args{"avID": p.tasks.id, "keyID": p.owner, "destinationAvID": p.people.id, "backRelationKeyID": p.back, "sourceName": "Owner", "destinationName": "Jobs"}
	maps.Copy(a, more)
	return a
}

// leads are the rows that a cell of a relation leads to.
func leads(t testing.TB, d *desk, database, column, row string) (ids []string) {
	t.Helper()
	av, err := d.client.Reader().AttributeView(context.Background(), siyuan.ID(database))
	check(t, err)
	for _, kv := range av.KeyValues {
		for _, v := range kv.Values {
			if string(kv.Key.ID) == column && string(v.BlockID) == row && v.Relation != nil {
				for _, id := range v.Relation.BlockIDs {
					ids = append(ids, string(id))
				}
			}
		}
	}
	return ids
}

func TestRelationsLeadBothWaysAndRollupsCollect(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	relate(t, d, false)
}

func TestLiveRelationsLeadBothWaysAndRollupsCollect(t *testing.T) { relate(t, liveDesk(t), true) }

func relate(t *testing.T, d *desk, real bool) {
	p := newPair(t, d)
	if again := ok[catalogue.AvTwoWayOut](t, d, "configure_two_way_relation", p.ways(args{})); again.Changed || again.Status != "already_applied" {
		t.Errorf("again %+v", again)
	}
	if renamed := ok[catalogue.AvTwoWayOut](t, d, "configure_two_way_relation", p.ways(args{"destinationName": "Errands"})); !renamed.Changed {
		t.Errorf("renamed %+v", renamed)
	}
	keys := ok[catalogue.AvKeysOut](t, d, "get_attribute_view_keys", args{"id": p.people.id})
	at := slices.IndexFunc(keys.Keys, func(c catalogue.AvColumn) bool { return c.ID == p.back })
	if at < 0 || keys.Keys[at].Name != "Errands" || *keys.Keys[at].Relation != (catalogue.AvRelation{AvID: p.tasks.id, IsTwoWay: true, BackKeyID: p.owner}) {
		t.Errorf("the column that leads back: %+v", keys.Keys)
	}

	relation := func(rows ...string) catalogue.AvSetRelationOut {
		return ok[catalogue.AvSetRelationOut](t, d, "set_relation", args{"avID": p.tasks.id, "keyID": p.owner, "itemID": p.task, "relatedItemIDs": append([]string{}, rows...)})
	}
	if out := relation(p.ben, p.anna); !out.Changed || !out.Reverse || !slices.Equal(leads(t, d, p.tasks.id, p.owner, p.task), []string{p.ben, p.anna}) || !slices.Equal(leads(t, d, p.people.id, p.back, p.anna), []string{p.task}) {
		t.Errorf("related %+v", out)
	}
	if again := relation(p.ben, p.anna); again.Changed || !again.Reverse {
		t.Errorf("again %+v", again)
	}

	roll := func(operator string) args {
		return args{"avID": p.tasks.id, "keyID": p.ages, "relationKeyID": p.owner, "destinationKeyID": p.age, "calc": args{"operator": operator}}
	}
	if out := ok[catalogue.AvRollupOut](t, d, "configure_rollup", roll("")); !out.Changed || out.FilteredBy != 0 {
		t.Errorf("rollup %+v", out)
	}
	if got := rowOf(t, d, p.tasks, p.task).Cells[p.ages]; !reflect.DeepEqual(got, []any{0.0, 41.0}) { // 0 is not empty
		t.Errorf("the rollup collects %v", got)
	}
	if got := rowOf(t, d, p.tasks, p.task).Cells[p.owner]; !reflect.DeepEqual(got, args{"blockIDs": []any{p.ben, p.anna}, "contents": []any{"Ben", "Anna"}}) {
		t.Errorf("the relation shows %v", got)
	}
	ok[catalogue.AvRollupOut](t, d, "configure_rollup", roll("Sum"))
	if got := rowOf(t, d, p.tasks, p.task).Cells[p.ages]; real && !reflect.DeepEqual(got, []any{41.0}) {
		t.Errorf("the sum is %v", got)
	}
	if again := ok[catalogue.AvRollupOut](t, d, "configure_rollup", roll("Sum")); again.Changed {
		t.Errorf("again %+v", again)
	}

	twin := ok[catalogue.AvDuplicateRowsOut](t, d, "duplicate_rows", args{"avID": p.tasks.id, "sourceRowIDs": []string{p.task}})
	if !slices.Equal(twin.RelatedAvID, []string{p.people.id}) || !slices.Equal(leads(t, d, p.tasks.id, p.owner, twin.Rows[0]), []string{p.ben, p.anna}) {
		t.Errorf("a copied relation: %+v leads to %v", twin, leads(t, d, p.tasks.id, p.owner, twin.Rows[0]))
	}
	if out := relation(); !out.Cleared || !out.Reverse || len(leads(t, d, p.tasks.id, p.owner, p.task)) != 0 || slices.Contains(leads(t, d, p.people.id, p.back, p.anna), p.task) {
		t.Errorf("cleared %+v", out)
	}
	ok[catalogue.AvRemoveColumnOut](t, d, "remove_column", args{"avID": p.tasks.id, "keyID": p.owner, "removeRelationDest": true})
	keys = ok[catalogue.AvKeysOut](t, d, "get_attribute_view_keys", args{"id": p.people.id})
	if slices.ContainsFunc(keys.Keys, func(c catalogue.AvColumn) bool { return c.ID == p.back }) {
		t.Error("the column that leads back is still there")
	}
}

func TestRelationsAndRollupsAreRefusedWhereTheyDoNotFit(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	p := newPair(t, d)
	other := newTable(t, d)
	set := args{"avID": p.tasks.id, "keyID": p.owner, "itemID": p.task, "relatedItemIDs": []string{p.anna}}
	roll := args{"avID": p.tasks.id, "keyID": p.ages, "relationKeyID": p.owner, "destinationKeyID": p.age, "calc": args{"operator": "Sum"}}
	with := func(a args, key string, v any) args {
		b := maps.Clone(a)
		b[key] = v
		return b
	}
	for _, c := range []struct {
		action string
		args   args
		code   contract.Code
		says   string
	}{
		{"set_relation", with(set, "relatedItemIDs", []string{p.two}), contract.NotFound, "no row"},
		{"set_relation", with(set, "relatedItemIDs", []string{p.anna, p.anna}), contract.InvalidArguments, "named before"},
		{"set_relation", with(set, "itemID", p.tasks.block), contract.InvalidTarget, "a block that shows the database"},
		{"set_relation", with(set, "keyID", p.ages), contract.InvalidTarget, "of type rollup"},
		{"configure_rollup", with(roll, "calc", args{"operator": "Total"}), contract.InvalidArguments, "Average"},
		{"configure_rollup", with(roll, "relationKeyID", p.ages), contract.InvalidTarget, "not relation"},
		{"configure_rollup", with(roll, "keyID", p.owner), contract.InvalidTarget, "not rollup"},
		{"configure_rollup", with(roll, "destinationKeyID", p.anna), contract.InvalidTarget, "a row"},
		{"configure_two_way_relation", p.ways(args{"destinationAvID": other.id}), contract.InvalidTarget, "leads elsewhere"},
		{"configure_two_way_relation", p.ways(args{"backRelationKeyID": newID(t)}), contract.InvalidTarget, "leads elsewhere"},
		{"configure_two_way_relation", p.ways(args{"keyID": p.ages}), contract.InvalidTarget, "of type rollup"},
	} {
		if got := fails(t, d, c.code, c.action, c.args); !strings.Contains(got, c.says) {
			t.Errorf("%s %v: %s, want %q in it", c.action, c.args, got, c.says)
		}
	}
}

// A two-way relation writes to both databases, so both notebooks need the level.
func TestATwoWayRelationNeedsTheLevelOnBothDatabases(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	p := newPair(t, d)
	ok[catalogue.AvRollupOut](t, d, "configure_rollup", args{"avID": p.tasks.id, "keyID": p.ages, "relationKeyID": p.owner, "destinationKeyID": p.age, "calc": args{"operator": ""}})
	ok[catalogue.AvSetRelationOut](t, d, "set_relation", args{"avID": p.tasks.id, "keyID": p.owner, "itemID": p.task, "relatedItemIDs": []string{p.anna}})
	free := ok[catalogue.AvAddColumnOut](t, d, "add_column", args{"avID": p.tasks.id, "keyName": "free", "keyType": "relation"}).KeyID
	calls := []struct {
		action string
		args   args
	}{
		{"set_relation", args{"avID": p.tasks.id, "keyID": p.owner, "itemID": p.task, "relatedItemIDs": []string{}}},
		{"set_cells", args{"avID": p.tasks.id, "rowID": p.task, "columnID": p.owner, "valueType": "relation"}},
		{"duplicate_rows", args{"avID": p.tasks.id, "sourceRowIDs": []string{p.task}}},
		{"remove_column", args{"avID": p.tasks.id, "keyID": p.owner}},
		{"configure_two_way_relation", p.ways(args{"keyID": free, "backRelationKeyID": newID(t)})},
	}
	bind := func(block siyuan.ID) {
		check(t, d.client.Writer().AddRows(context.Background(), siyuan.ID(p.people.id), siyuan.RowsAt{}, []siyuan.AvSource{{ID: block}}))
	}
	bind(guardtest.EntryP) // of a notebook that may only be read
	for _, c := range calls {
		fails(t, d, contract.PermissionDenied, c.action, c.args)
	}
	if got := rowOf(t, d, p.tasks, p.task).Cells; got[p.ages] == nil || got[p.owner] == nil {
		t.Errorf("what may be read is not shown: %v", got)
	}
	bind(guardtest.SecretP) // of a hidden one
	for _, c := range calls {
		fails(t, d, contract.NotFound, c.action, c.args)
	}
	cells := rowOf(t, d, p.tasks, p.task).Cells
	if cells[p.owner] != guard.Placeholder || cells[p.ages] != guard.Placeholder {
		t.Errorf("cells of a hidden database: %v", cells)
	}
	if got := fails(t, d, contract.HiddenReference, "configure_rollup", args{"avID": p.tasks.id, "keyID": p.ages, "relationKeyID": p.owner, "destinationKeyID": p.age, "calc": args{"operator": "Sum"}}); strings.Contains(got, p.people.id) {
		t.Errorf("the hidden database is named: %s", got)
	}
	view := currentView(t, d, p.tasks)
	for action, more := range map[string]args{
		"set_sorts": {"sorts": []args{{"column": p.ages, "order": "ASC"}}}, "set_group": {"group": args{"field": p.owner}},
		"set_filters": {"filters": []args{{"column": p.owner, "operator": "Is not empty"}}},
	} {
		fails(t, d, contract.Unsupported, action, p.tasks.in(view, more))
	}
}

// A copy is a text of its own, so the title of a bound block must be one that the
// caller reads as it is stored.
func TestACopiedRowShowsNothingHidden(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	tb := newTable(t, d)
	links := ok[catalogue.AvAddRowsOut](t, d, "add_rows", args{"avID": tb.id, "blockIDs": []string{guardtest.Links}}).Rows[0].RowID
	fails(t, d, contract.HiddenReference, "duplicate_rows", args{"avID": tb.id, "sourceRowIDs": []string{links}})
	check(t, d.client.Writer().DeleteBlock(context.Background(), siyuan.ID(d.paras[0])))
	fails(t, d, contract.HiddenReference, "duplicate_rows", args{"avID": tb.id, "sourceRowIDs": []string{tb.bound}})
}
