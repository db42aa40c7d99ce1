package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// ShownView is a view and the block that shows it.
type ShownView struct {
	Database Database
	Block    Block
	View     string
}

// shownView is the view as stored. SiYuan changes the view that a block shows and
// no other, so that one must be meant.
func (tx *Tx) shownView(ctx context.Context, v ShownView) (Database, siyuan.AvView, error) {
	d, err := tx.database(v.Database)
	if err != nil {
		return d, siyuan.AvView{}, err
	}
	if err := d.ShownBy(v.Block); err != nil {
		return d, siyuan.AvView{}, err
	}
	asked, err := tx.s.viewOf(ctx, d, Block{}, v.View)
	if err != nil {
		return d, asked, err
	}
	shown, err := tx.s.viewOf(ctx, d, v.Block, "")
	if err == nil && shown.ID != asked.ID {
		err = contract.Fail(contract.InvalidTarget, "Block %s shows view %s, not %s.", v.Block.ID(), string(shown.ID), v.View).
			WithHint("SiYuan changes only the view that a block shows; a person chooses it there.").
			WithDetail(map[string]any{"viewID": shown.ID})
	}
	return d, asked, err
}

// The parts of a view that a mark can speak of.
const (
	viewName    = "name"
	viewFilters = "filters"
	viewSorts   = "sorts"
	viewGroup   = "group"
	viewColumns = "columns"
)

// viewMark is a part of a view, as far as it can be set; "gone" without the view.
func viewMark(av siyuan.AttributeView, view siyuan.ID, part string) string {
	i := slices.IndexFunc(av.Views, func(v siyuan.AvView) bool { return v.ID == view })
	if i < 0 {
		return "gone"
	}
	v := av.Views[i]
	switch part {
	case viewFilters:
		filters, err := storedFilters(v)
		return filtersMark(filters) + unreadable(err)
	case viewSorts:
		sorts, err := storedSorts(v)
		return sortsMark(sorts) + unreadable(err)
	case viewGroup:
		return groupMark(v.Group)
	case viewColumns:
		return columnsMark(v.Places())
	}
	return digest(v.Type + " " + v.Name)
}

// viewStep is the step of a change of one part of a view.
func viewStep(op string, d Database, view siyuan.ID, part, after string) Step {
	id := strings.Join([]string{d.ID(), string(view), part}, " ")
	return Step{Op: op, Marks: []Mark{{LookView, id, viewMark(d.file, view, part), after}}}
}

// changeView makes a part of a view what the mark says, unless it is so already.
func (tx *Tx) changeView(ctx context.Context, d Database, view siyuan.ID, op, part, after string, send func(w *siyuan.Writer) error) (changed bool, now siyuan.AvView, err error) {
	stored := func(av siyuan.AttributeView) siyuan.AvView {
		i := slices.IndexFunc(av.Views, func(v siyuan.AvView) bool { return v.ID == view })
		if i < 0 {
			return siyuan.AvView{}
		}
		return av.Views[i]
	}
	if viewMark(d.file, view, part) == after {
		return false, stored(d.file), nil
	}
	av, err := tx.change(ctx, d, viewStep(op, d, view, part, after), send,
		func(av siyuan.AttributeView) bool { return viewMark(av, view, part) == after }, "the "+part+" of the view are others")
	return true, stored(av), err
}

func transaction(ctx context.Context, ops ...siyuan.Op) func(w *siyuan.Writer) error {
	return func(w *siyuan.Writer) error {
		_, err := w.Transactions(ctx, []siyuan.Tx{{Do: ops}})
		return err
	}
}

// AddView adds a view that the block then shows. SiYuan gives it all columns and
// rows, and makes it the current one.
func (tx *Tx) AddView(ctx context.Context, d Database, b Block, id, layout, name string) error {
	d, err := tx.database(d)
	if err != nil {
		return err
	}
	if err := firstErr(d.ShownBy(b), tx.covers(b)); err != nil {
		return err
	}
	view := siyuan.ID(id)
	if !view.Valid() {
		return contract.InvalidFields(contract.Field{Path: "viewID", Message: "must be a new id such as 20240131120000-abc1234"})
	}
	if err := d.unused(view, "viewID"); err != nil {
		return err
	}
	if layout == "kanban" && !slices.ContainsFunc(d.file.KeyValues, func(kv siyuan.KeyValues) bool { return kv.Key.Type == "select" }) {
		return contract.Fail(contract.InvalidTarget, "Database %s has no select column to make the lanes of a kanban board of; SiYuan would add one to every view.", d.ID()).
			WithHint("Add a select column with av.add_column first.")
	}
	after := digest(layout + " " + name)
	ops := []siyuan.Op{
		{Action: "addAttrViewView", AvID: d.id, BlockID: b.id, ID: view, Layout: layout},
		{Action: "setAttrViewViewName", AvID: d.id, BlockID: b.id, ID: view, Data: name},
	}
	st := viewStep("database.add_view", d, view, viewName, after)
	st.New = []string{id}
	_, err = tx.change(ctx, d, st, transaction(ctx, ops...),
		func(av siyuan.AttributeView) bool { return viewMark(av, view, viewName) == after }, "the view is not there, or has another name")
	return err
}

// unused demands an id that names nothing of a database yet.
func (d Database) unused(id siyuan.ID, field string) error {
	if err := d.misnamed("part", id); contract.CodeOf(err) != contract.NotFound {
		return contract.Fail(contract.AlreadyExists, "%s %s names something of database %s already.", field, string(id), d.ID()).WithHint("Choose a new id.")
	}
	return nil
}

// usable demands columns whose cells the caller may read: the rows of a view must
// not tell what others hold.
func (tx *Tx) usable(ctx context.Context, d Database, columns []siyuan.ID) error {
	m, err := tx.s.cellMask(ctx, d, nil)
	if err != nil {
		return err
	}
	for _, id := range columns {
		k, err := d.column(string(id))
		if err != nil {
			return err
		}
		if k.Type == "lineNumber" {
			return contract.Fail(contract.InvalidTarget, "Column %s numbers the rows of a view and has no cells.", string(id))
		}
		if m.columns[id] {
			return contract.Fail(contract.Unsupported, "Column %s shows more than you may read, so no view can be made to depend on it.", string(id))
		}
	}
	return nil
}

// SetSorts replaces the sorts of a view and returns them as stored.
func (tx *Tx) SetSorts(ctx context.Context, v ShownView, sorts []Sort) (changed bool, err error) {
	d, view, err := tx.shownView(ctx, v)
	if err != nil {
		return false, err
	}
	var columns []siyuan.ID
	want := []siyuan.AvSort{}
	for i, s := range sorts {
		want = append(want, siyuan.AvSort{Column: siyuan.ID(s.Column), Order: s.Order})
		if columns = append(columns, siyuan.ID(s.Column)); len(unique(columns)) <= i {
			return false, contract.InvalidFields(contract.Field{Path: fmt.Sprintf("sorts.%d.column", i), Message: "is named before"})
		}
	}
	if err := tx.usable(ctx, d, columns); err != nil {
		return false, err
	}
	changed, _, err = tx.changeView(ctx, d, view.ID, "database.set_sorts", viewSorts, sortsMark(sorts),
		func(w *siyuan.Writer) error { return w.SetSorts(ctx, d.id, v.Block.id, want) })
	return changed, err
}

func storedSorts(v siyuan.AvView) (sorts []Sort, err error) {
	if len(v.Sorts) > 0 {
		err = json.Unmarshal(v.Sorts, &sorts)
	}
	return sorts, err
}

// unreadable sets the mark of what has an unknown form apart from all others.
func unreadable(err error) string {
	if err != nil {
		return " in an unknown form"
	}
	return ""
}

func sortsMark(sorts []Sort) string {
	var b strings.Builder
	for _, s := range sorts {
		b.WriteString(s.Column + " " + s.Order + "\n")
	}
	return digest(b.String())
}

// Grouping is how a view is grouped; the zero value is not at all.
type (
	Grouping   = siyuan.AvGroup
	GroupRange = siyuan.AvGroupSpan
)

// GroupBy is a grouping by a column.
func GroupBy(column string, method, order int, hideEmpty bool) Grouping {
	return Grouping{Field: siyuan.ID(column), Method: method, Order: order, HideEmpty: hideEmpty}
}

// SetGroup groups a view and returns how it is stored: SiYuan chooses the order of
// options and ticked boxes itself.
func (tx *Tx) SetGroup(ctx context.Context, v ShownView, g Grouping) (changed bool, stored Grouping, err error) {
	d, view, err := tx.shownView(ctx, v)
	if err != nil {
		return false, stored, err
	}
	if g.Field == "" {
		if view.Type == "kanban" {
			return false, stored, contract.Fail(contract.InvalidTarget, "View %s is a kanban board, which is always grouped.", v.View)
		}
		g = Grouping{}
	} else if err := tx.usable(ctx, d, []siyuan.ID{g.Field}); err != nil {
		return false, stored, err
	}
	changed, now, err := tx.changeView(ctx, d, view.ID, "database.set_group", viewGroup, groupMark(&g), func(w *siyuan.Writer) error {
		_, err := w.SetGroup(ctx, d.id, v.Block.id, g)
		return err
	})
	if now.Group != nil {
		stored = *now.Group
	}
	return changed, stored, err
}

// groupMark leaves out the order, which SiYuan chooses for some kinds of column.
func groupMark(g *siyuan.AvGroup) string {
	if g == nil || g.Field == "" {
		return digest("")
	}
	span := siyuan.AvGroupSpan{}
	if g.Range != nil {
		span = *g.Range
	}
	return digest(fmt.Sprint(g.Field, g.Method, g.HideEmpty, span))
}

// HideColumn hides or shows a column in a view.
func (tx *Tx) HideColumn(ctx context.Context, v ShownView, column string, hidden bool) (changed bool, err error) {
	d, view, err := tx.shownView(ctx, v)
	if err != nil {
		return false, err
	}
	k, err := d.column(column)
	if err != nil {
		return false, err
	}
	places := slices.Clone(view.Places())
	i := slices.IndexFunc(places, func(p siyuan.AvPlace) bool { return p.ID == k.ID })
	if i < 0 {
		return false, contract.Fail(contract.NotFound, "View %s has no column %s.", v.View, column)
	}
	places[i].Hidden = hidden
	changed, _, err = tx.changeView(ctx, d, view.ID, "database.hide_column", viewColumns, columnsMark(places),
		transaction(ctx, siyuan.Op{Action: "setAttrViewColHidden", AvID: d.id, BlockID: v.Block.id, ID: k.ID, Data: hidden}))
	return changed, err
}

// OrderColumns puts the columns of a view in order; the list must be all of them.
func (tx *Tx) OrderColumns(ctx context.Context, v ShownView, columns []string) (changed bool, err error) {
	d, view, err := tx.shownView(ctx, v)
	if err != nil {
		return false, err
	}
	have := view.Places()
	var want []siyuan.AvPlace
	var ops []siyuan.Op
	previous := siyuan.ID("")
	for _, c := range columns {
		k, err := d.column(c)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(have, func(p siyuan.AvPlace) bool { return p.ID == k.ID })
		if i < 0 || slices.ContainsFunc(want, func(p siyuan.AvPlace) bool { return p.ID == k.ID }) {
			break
		}
		want = append(want, have[i])
		ops = append(ops, siyuan.Op{Action: "sortAttrViewCol", AvID: d.id, BlockID: v.Block.id, ID: k.ID, PreviousID: previous})
		previous = k.ID
	}
	if len(want) != len(have) || len(columns) != len(have) {
		var all []siyuan.ID
		for _, p := range have {
			all = append(all, p.ID)
		}
		return false, contract.InvalidFields(contract.Field{Path: "keyIDs", Message: "must name each column of the view once"}).
			WithDetail(map[string]any{"keyIDs": all})
	}
	changed, _, err = tx.changeView(ctx, d, view.ID, "database.order_columns", viewColumns, columnsMark(want), transaction(ctx, ops...))
	return changed, err
}

func columnsMark(places []siyuan.AvPlace) string {
	var b strings.Builder
	for _, p := range places {
		fmt.Fprintln(&b, p.ID, p.Hidden)
	}
	return digest(b.String())
}
