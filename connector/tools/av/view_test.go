package av_test

import (
	"context"
	"crypto/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func TestViewsAreChangedAndReadBack(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	changeViews(t, d)
}

func TestLiveViewsAreChangedAndReadBack(t *testing.T) { changeViews(t, liveDesk(t)) }

func newID(t testing.TB) string {
	t.Helper()
	id, err := siyuan.NewID(time.Now(), rand.Reader)
	check(t, err)
	return string(id)
}

// in names the view that the block of a table shows.
func (tb table) in(view string, more args) args {
	a := args{"avID": tb.id, "blockID": tb.block, "viewID": view}
	for k, v := range more {
		a[k] = v
	}
	return a
}

func currentView(t testing.TB, d *desk, tb table) string {
	t.Helper()
	out := ok[catalogue.AvRenderOut](t, d, "render", args{"id": tb.id, "blockID": tb.block})
	return out.View.ID
}

// stored are the columns of a view as SiYuan's file has them.
func stored(t testing.TB, d *desk, tb table, view string) (order, hidden []string) {
	t.Helper()
	av, err := d.client.Reader().AttributeView(context.Background(), siyuan.ID(tb.id))
	check(t, err)
	for _, v := range av.Views {
		if string(v.ID) != view {
			continue
		}
		for _, p := range v.Places() {
			if order = append(order, string(p.ID)); p.Hidden {
				hidden = append(hidden, string(p.ID))
			}
		}
	}
	return order, hidden
}

func changeViews(t *testing.T, d *desk) {
	tb := newTable(t, d)
	view := currentView(t, d, tb)
	text, number, pick := tb.column["text"], tb.column["number"], tb.column["select"]
	ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.bound, "text", args{"text": "lamp"}))
	ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.loose, "number", args{"number": 0}))

	for i, c := range []struct {
		filters any
		left    []string
	}{
		{[]args{{"column": text, "operator": "Contains", "value": "lam"}}, []string{tb.bound}},
		{[]args{{"column": text, "operator": "Contains", "value": args{"type": "text", "text": args{"content": "lam"}}}}, []string{tb.bound}}, // the same in SiYuan's form
		{[]args{{"column": text, "operator": "Is empty"}}, []string{tb.loose}},
		{[]args{{"column": number, "operator": "Is not empty"}}, []string{tb.loose}}, // 0 is not empty
		{[]args{{"combination": "or", "filters": []args{{"column": text, "operator": "Is not empty"}, {"column": number, "operator": "Is not empty"}}}}, []string{tb.bound, tb.loose}},
		{[]args{}, []string{tb.bound, tb.loose}},
	} {
		out := ok[catalogue.AvSetFiltersOut](t, d, "set_filters", tb.in(view, args{"filters": c.filters}))
		var rows []string
		for _, r := range ok[catalogue.AvRenderOut](t, d, "render", args{"id": tb.id}).Table.Rows {
			rows = append(rows, r.ID)
		}
		slices.Sort(rows)
		slices.Sort(c.left)
		if out.Changed == (i == 1) || !slices.Equal(rows, c.left) {
			t.Errorf("filters %v leave %v, want %v: %+v", c.filters, rows, c.left, out)
		}
		if again := ok[catalogue.AvSetFiltersOut](t, d, "set_filters", tb.in(view, args{"filters": c.filters})); again.Changed {
			t.Errorf("filters %v are not found in what is stored: %+v", c.filters, again)
		}
	}
	filters := []args{{"column": text, "operator": "=", "value": "lamp"}}
	set := ok[catalogue.AvSetFiltersOut](t, d, "set_filters", tb.in(view, args{"filters": filters}))
	read := ok[catalogue.AvFilterSortOut](t, d, "get_attribute_view_filter_sort", args{"id": tb.id, "blockID": tb.block})
	if !reflect.DeepEqual(set.Filters, read.Filters) || len(read.Filters) != 1 || read.Filters[0].Value != "lamp" {
		t.Errorf("set %+v, read %+v", set.Filters, read.Filters)
	}
	ok[catalogue.AvSetFiltersOut](t, d, "set_filters", tb.in(view, args{"filters": []args{}}))

	sorts := ok[catalogue.AvSetSortsOut](t, d, "set_sorts", tb.in(view, args{"sorts": []args{{"column": text, "order": "DESC"}, {"column": number, "order": "ASC"}}}))
	read = ok[catalogue.AvFilterSortOut](t, d, "get_attribute_view_filter_sort", args{"id": tb.id, "blockID": tb.block})
	if !sorts.Changed || !slices.Equal(read.Sorts, []catalogue.AvSort{{Column: text, Order: "DESC"}, {Column: number, Order: "ASC"}}) {
		t.Errorf("sorts %+v, read %+v", sorts, read.Sorts)
	}
	ok[catalogue.AvSetSortsOut](t, d, "set_sorts", tb.in(view, args{"sorts": []args{}}))

	order, _ := stored(t, d, tb, view)
	slices.Reverse(order)
	ok[catalogue.AvSetOrderOut](t, d, "set_column_order", tb.in(view, args{"keyIDs": order}))
	if now, _ := stored(t, d, tb, view); !slices.Equal(now, order) {
		t.Errorf("the columns stand as %v, want %v", now, order)
	}
	ok[catalogue.AvSetVisibilityOut](t, d, "set_column_visibility", tb.in(view, args{"keyID": text, "hidden": true}))
	if _, hidden := stored(t, d, tb, view); !slices.Equal(hidden, []string{text}) {
		t.Errorf("hidden are %v", hidden)
	}
	if again := ok[catalogue.AvSetVisibilityOut](t, d, "set_column_visibility", tb.in(view, args{"keyID": text, "hidden": true})); again.Changed {
		t.Error("a column that was hidden is hidden again")
	}

	ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.bound, "select", args{"option": "open"}))
	group := ok[catalogue.AvSetGroupOut](t, d, "set_group", tb.in(view, args{"group": args{"field": pick}}))
	shown := ok[catalogue.AvRenderOut](t, d, "render", args{"id": tb.id})
	if group.Group.Field != pick || len(shown.Table.Groups) != 2 || shown.Total != 2 {
		t.Errorf("grouped as %+v: %+v", group, shown.Table)
	}
	ok[catalogue.AvSetGroupOut](t, d, "set_group", tb.in(view, args{"group": args{"field": number, "method": 1, "range": args{"numStart": 0, "numEnd": 10, "numStep": 5}}}))
	if none := ok[catalogue.AvSetGroupOut](t, d, "set_group", tb.in(view, args{"group": args{"field": ""}})); !none.Changed || none.Group.Field != "" {
		t.Errorf("no longer grouped: %+v", none)
	}

	for _, layout := range []string{"gallery", "kanban", "table"} {
		id := newID(t)
		ok[catalogue.AvAddViewOut](t, d, "add_view", tb.in(id, args{"layout": layout, "name": "my " + layout}))
		out := ok[catalogue.AvRenderOut](t, d, "render", args{"id": tb.id, "blockID": tb.block})
		if out.View.ID != id || out.View.Name != "my "+layout || out.View.Type != layout || out.Total != 2 {
			t.Errorf("the new view is %+v with %d rows", out.View, out.Total)
		}
		fails(t, d, contract.AlreadyExists, "add_view", tb.in(id, args{"layout": layout, "name": "again"}))
	}
	if got := fails(t, d, contract.InvalidTarget, "set_sorts", tb.in(view, args{"sorts": []args{}})); !strings.Contains(got, "shows view") {
		t.Errorf("a view that the block does not show: %s", got)
	}
}

// K18 on a kanban board, where SiYuan did not keep the cell.
func TestASelectCellOfAKanbanBoardIsReadBack(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	kanbanCell(t, d)
}

func TestLiveASelectCellOfAKanbanBoardIsReadBack(t *testing.T) { kanbanCell(t, liveDesk(t)) }

func kanbanCell(t *testing.T, d *desk) {
	tb := newTable(t, d)
	ok[catalogue.AvAddViewOut](t, d, "add_view", tb.in(newID(t), args{"layout": "kanban", "name": "Board"}))
	for _, option := range []string{"open", "done"} {
		out := ok[catalogue.AvSetCellsOut](t, d, "set_cells", tb.cell(tb.bound, "select", args{"option": option}))
		if out.Verification.Cells[0].Observed != option {
			t.Errorf("observed %+v", out.Verification)
		}
		if got := rowOf(t, d, tb, tb.bound).Cells[tb.column["select"]]; got != option {
			t.Errorf("the board shows %v, want %s", got, option)
		}
	}
}

func TestWhatAViewCannotBeIsRefusedBeforeItIsWritten(t *testing.T) {
	t.Parallel()
	d, _ := sampleDesk(t)
	tb := newTable(t, d)
	view, text := currentView(t, d, tb), tb.column["text"]
	before, err := d.client.Reader().AttributeView(context.Background(), siyuan.ID(tb.id))
	check(t, err)
	order, _ := stored(t, d, tb, view)
	for _, c := range []struct {
		action string
		more   args
		code   contract.Code
		says   string
	}{
		{"set_filters", args{"filters": []args{{"column": text, "operator": "like"}}}, contract.InvalidArguments, "Does not contains"},
		{"set_filters", args{"filters": []args{{"column": newID(t), "operator": "="}}}, contract.NotFound, "no column"},
		{"set_filters", args{"filters": []args{{"column": tb.loose, "operator": "="}}}, contract.InvalidTarget, "a row"},
		{"set_filters", args{"filters": []args{{"colum": text}}}, contract.InvalidArguments, "filters.0"},
		{"set_filters", args{"filters": []args{{"combination": "or", "filters": []args{}}}}, contract.InvalidArguments, "must hold a filter"},
		{"set_filters", args{"filters": []args{{"column": tb.column["number"], "operator": "=", "value": "many"}}}, contract.InvalidArguments, "of type number"},
		{"set_sorts", args{"sorts": []args{{"column": text, "order": "ASC"}, {"column": text, "order": "DESC"}}}, contract.InvalidArguments, "named before"},
		{"set_sorts", args{"sorts": []args{{"column": tb.bound, "order": "ASC"}}}, contract.InvalidTarget, "a row"},
		{"set_group", args{"group": args{"field": tb.id}}, contract.InvalidTarget, "the database itself"},
		{"set_group", args{"group": args{"field": tb.column["number"], "method": 1, "range": args{"numStart": 5, "numEnd": 1, "numStep": 1}}}, contract.InvalidArguments, "numEnd"},
		{"set_column_order", args{"keyIDs": order[1:]}, contract.InvalidArguments, "each column"},
		{"set_column_order", args{"keyIDs": append(slices.Clone(order[1:]), order[1])}, contract.InvalidArguments, "each column"},
		{"set_column_visibility", args{"keyID": view, "hidden": true}, contract.InvalidTarget, "a view"},
		{"add_view", args{"viewID": text, "layout": "table", "name": "x"}, contract.AlreadyExists, "already"},
	} {
		if got := fails(t, d, c.code, c.action, tb.in(view, c.more)); !strings.Contains(got, c.says) {
			t.Errorf("%s %v: %s, want %q in it", c.action, c.more, got, c.says)
		}
	}
	check(t, d.client.Writer().RemoveKey(context.Background(), siyuan.ID(tb.id), siyuan.ID(tb.column["select"])))
	if got := fails(t, d, contract.InvalidTarget, "add_view", tb.in(newID(t), args{"layout": "kanban", "name": "x"})); !strings.Contains(got, "no select column") {
		t.Errorf("a board without lanes: %s", got)
	}
	after, err := d.client.Reader().AttributeView(context.Background(), siyuan.ID(tb.id))
	check(t, err)
	if !reflect.DeepEqual(before.Views[0].Filters, after.Views[0].Filters) || len(after.Views) != 1 {
		t.Errorf("something was written: %+v", after.Views)
	}
}
