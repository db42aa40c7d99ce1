package siyuan

import (
	"encoding/json"
	"slices"
	"testing"
)

// database is a database shown by a block of a document, with a row bound to a
// paragraph and a detached one.
type database struct {
	av, block, doc, para ID
	primary              ID // column
	bound, detached      ID // items
}

func (l *live) database(hpath, name string) database {
	l.t.Helper()
	d := database{av: l.id(), block: l.id(), bound: l.id(), detached: l.id()}
	d.doc = l.doc(hpath, "bound text")
	d.para = l.children(d.doc)[0]
	l.avs = append(l.avs, d.av)
	div := `<div data-node-id="` + string(d.block) + `" data-type="NodeAttributeView" data-av-id="` + string(d.av) + `" data-av-type="table"></div>`
	take(l.AppendBlock(l.ctx, d.doc, DOM, div))(l.t)
	made := take(l.CreateAttributeView(l.ctx, d.av, d.block))(l.t)
	equal(l.t, "the new database", []any{made.ID, made.ViewType, len(made.Views)}, []any{d.av, "table", 1})
	take(l.Transactions(l.ctx, []Tx{{Do: []Op{{Action: "setAttrViewName", ID: d.av, Data: name}}}}))(l.t)
	d.primary = take(l.Keys(l.ctx, d.av))(l.t)[0].ID
	check(l.t, l.AddRows(l.ctx, d.av, RowsAt{Block: d.block}, []AvSource{
		{ID: d.para, ItemID: d.bound},
		{ID: l.id(), ItemID: d.detached, IsDetached: true, Content: "loose"},
	}))
	return d
}

func TestLiveCellsOfEveryKindKeepTheirValue(t *testing.T) {
	l := newLive(t)
	ctx, d := l.ctx, l.database("/Db", liveName+" cells")
	other := l.database("/Other db", liveName+" other")

	const day = 1_700_000_000_000
	kinds := []struct {
		kind  string
		value Value
		same  func(Value) bool
	}{
		{"text", Value{Text: &ValueText{"words"}}, func(v Value) bool { return v.Text.Content == "words" }},
		{"number", Value{Number: &ValueNumber{Content: 12.5, IsNotEmpty: true}}, func(v Value) bool { return v.Number.Content == 12.5 && v.Number.IsNotEmpty }},
		{"date", Value{Date: &ValueDate{Content: day, IsNotEmpty: true}}, func(v Value) bool { return v.Date.Content == day && !v.Date.HasEndDate }},
		{"select", Value{Select: []ValueOption{{"one", "3"}}}, func(v Value) bool { return v.Select[0] == ValueOption{"one", "3"} }},
		{"mSelect", Value{Select: []ValueOption{{"x", "1"}, {"y", "2"}}}, func(v Value) bool { return len(v.Select) == 2 && v.Select[1].Content == "y" }},
		{"url", Value{URL: &ValueText{"https://example.org"}}, func(v Value) bool { return v.URL.Content == "https://example.org" }},
		{"email", Value{Email: &ValueText{"a@example.org"}}, func(v Value) bool { return v.Email.Content == "a@example.org" }},
		{"phone", Value{Phone: &ValueText{"123"}}, func(v Value) bool { return v.Phone.Content == "123" }},
		{"mAsset", Value{Assets: []ValueAsset{{"file", "f", "assets/f.txt"}}}, func(v Value) bool { return v.Assets[0] == ValueAsset{"file", "f", "assets/f.txt"} }},
		{"checkbox", Value{Checkbox: &ValueCheckbox{true}}, func(v Value) bool { return v.Checkbox.Checked }},
		{"relation", Value{Relation: &ValueRelation{BlockIDs: []ID{other.detached}}}, func(v Value) bool {
			return v.Relation.BlockIDs[0] == other.detached && v.Relation.Contents[0].Block.Content == "loose"
		}},
	}
	keys := map[string]ID{}
	previous := d.primary
	for _, k := range kinds {
		keys[k.kind] = l.id()
		check(t, l.AddKey(ctx, d.av, keys[k.kind], "the "+k.kind, k.kind, "", previous))
		previous = keys[k.kind]
		if k.kind == "relation" {
			take(l.Transactions(ctx, []Tx{{Do: []Op{{Action: "updateAttrViewColRelation", AvID: d.av, ID: other.av, KeyID: keys[k.kind], IsTwoWay: true, BackRelationKey: l.id(), Name: "back"}}}}))(t)
		}
		stored := take(l.SetCell(ctx, d.av, keys[k.kind], d.bound, k.value))(t)
		equal(t, "the stored cell of "+k.kind, []any{stored.Type, stored.KeyID, stored.BlockID}, []any{k.kind, keys[k.kind], d.bound})
	}
	for _, kind := range []string{"template", "created", "updated", "lineNumber", "rollup"} {
		check(t, l.AddKey(ctx, d.av, l.id(), "the "+kind, kind, "", previous))
	}

	r := take(l.RenderAttributeView(ctx, Render{ID: d.av, Block: d.block}))(t)
	equal(t, "the table", []any{r.Name, r.View.RowCount, len(r.View.Rows), r.IsMirror}, []any{liveName + " cells", 2, 2, false})
	column := map[ID]int{}
	for i, c := range r.View.Columns {
		column[c.ID] = i
	}
	row := r.View.Rows[slices.IndexFunc(r.View.Rows, func(a AvRow) bool { return a.ID == d.bound })]
	for _, k := range kinds {
		cell := row.Cells[column[keys[k.kind]]]
		if cell.Value == nil || cell.ValueType != k.kind || !k.same(*cell.Value) {
			raw, _ := json.Marshal(cell)
			t.Errorf("the %s is rendered as %s", k.kind, raw)
		}
	}
	block := row.Cells[column[d.primary]].Value.Block
	equal(t, "the primary cell", []any{block.ID, block.Content}, []any{d.para, "bound text"})
	equal(t, "the options", r.View.Columns[column[keys["mSelect"]]].Options[0].Name, "x")

	whole := take(l.AttributeView(ctx, d.av))(t)
	equal(t, "the file", []any{whole.ID, whole.Name, len(whole.Views)}, []any{d.av, liveName + " cells", 1})
	items := take(l.Item(ctx, d.av, d.bound))(t)
	equal(t, "Item", []any{items[0].AvID, len(items[0].KeyValues) > len(kinds)}, []any{d.av, true})
	member := take(l.Memberships(ctx, d.para))(t)
	equal(t, "Memberships", []any{len(member), member[0].AvID, member[0].AvName, member[0].BlockIDs}, []any{1, d.av, liveName + " cells", []ID{d.block}})
	equal(t, "the bound block's attribute", take(l.BlockAttrs(ctx, d.para))(t)["custom-avs"], string(d.av))

	back := take(l.AvBacklinks(ctx, other.av, other.detached))(t)
	equal(t, "AvBacklinks", []any{len(back), back[0].AvID, back[0].ItemID, back[0].BoundBlockID, back[0].Relations[0].TargetItemID},
		[]any{1, d.av, d.bound, d.para, other.detached})
	hits := take(l.SearchAttributeViews(ctx, liveName+" cells"))(t)
	equal(t, "SearchAttributeViews", []any{hits[0].AvID, hits[0].AvName, hits[0].BlockID}, []any{d.av, liveName + " cells", d.block})
	equal(t, "a view below a hit", hits[0].Children[0].ViewLayout, "table")

	check(t, l.SetCells(ctx, d.av, []CellUpdate{{keys["text"], d.bound, Value{Text: &ValueText{"again"}}}, {keys["number"], d.detached, Value{Number: &ValueNumber{Content: 7, IsNotEmpty: true}}}}))
	found := take(l.RenderAttributeView(ctx, Render{ID: d.av, Block: d.block, Query: "again"}))(t)
	equal(t, "rows with a keyword", []any{found.View.RowCount, found.View.Rows[0].ID}, []any{1, d.bound})
	paged := take(l.RenderAttributeView(ctx, Render{ID: d.av, Block: d.block, Size: 1, Page: 2}))(t)
	equal(t, "a page", []any{paged.View.RowCount, len(paged.View.Rows)}, []any{2, 1})

	gone := l.id()
	wantKind(t, "rendering nothing", second(l.RenderAttributeView(ctx, Render{ID: gone})), Missing)
	wantKind(t, "the file of nothing", second(l.AttributeView(ctx, gone)), Missing)
	wantKind(t, "the rows of nothing", second(l.PrimaryValues(ctx, gone, 1, 10, "")), Missing)
	_, err := l.SetCell(ctx, d.av, gone, d.bound, Value{Text: &ValueText{"x"}})
	wantKind(t, "a cell of an unknown column", err, OutcomeUnknown)
	wantKind(t, "a column of nothing", l.AddKey(ctx, gone, l.id(), "x", "text", "", ""), Rejected)
}

func TestLiveRowsAndColumnsComeAndGo(t *testing.T) {
	l := newLive(t)
	ctx, d := l.ctx, l.database("/Rows", liveName+" rows")
	items := func() (all []ID) {
		t.Helper()
		for _, r := range take(l.RenderAttributeView(ctx, Render{ID: d.av, Block: d.block}))(t).View.Rows {
			all = append(all, r.ID)
		}
		return all
	}
	equal(t, "the order of a call", items(), []ID{d.bound, d.detached})
	equal(t, "ItemsByBlocks", take(l.ItemsByBlocks(ctx, d.av, []ID{d.para}))(t), map[ID]ID{d.para: d.bound})
	equal(t, "BlocksByItems", take(l.BlocksByItems(ctx, d.av, []ID{d.bound}))(t), map[ID]ID{d.bound: d.para})

	check(t, l.AddDetachedRows(ctx, d.av, [][]Value{{{KeyID: d.primary, Block: &ValueBlock{Content: "third"}}}}))
	p := take(l.PrimaryValues(ctx, d.av, 1, 10, ""))(t)
	equal(t, "PrimaryValues", []any{p.Name, len(p.Rows.Values), p.BlockIDs, p.Rows.Key.ID}, []any{liveName + " rows", 3, []ID{d.block}, d.primary})
	third := take(l.PrimaryValues(ctx, d.av, 1, 10, "third"))(t).Rows.Values[0]
	equal(t, "the third row", []any{third.Block.Content, third.IsDetached}, []any{"third", true})

	para := l.para(d.doc, "another")
	check(t, l.ReplaceRows(ctx, d.av, false, []map[ID]ID{{d.bound: para}}))
	equal(t, "a row bound elsewhere", take(l.BlocksByItems(ctx, d.av, []ID{d.bound}))(t), map[ID]ID{d.bound: para})
	check(t, l.RemoveRows(ctx, d.av, []ID{third.BlockID, l.id()}))
	equal(t, "after a removal", len(items()), 2)
	equal(t, "MirrorBlocks", take(l.MirrorBlocks(ctx, d.av))(t), []RefDef{{RefID: d.block, DefIDs: []ID{}}})

	a, b := l.id(), l.id()
	check(t, l.AddKey(ctx, d.av, a, "A", "text", "", d.primary))
	check(t, l.AddKey(ctx, d.av, b, "B", "number", "", a))
	columns := func() (all []ID) {
		t.Helper()
		for _, c := range take(l.RenderAttributeView(ctx, Render{ID: d.av, Block: d.block}))(t).View.Columns {
			all = append(all, c.ID)
		}
		return all
	}
	equal(t, "the columns", columns()[:3], []ID{d.primary, a, b})
	check(t, l.SortKey(ctx, d.av, b, d.primary))
	order := take(l.AttributeView(ctx, d.av))(t).KeyIDs
	equal(t, "the place of the column", slices.Index(order, b), slices.Index(order, d.primary)+1)
	equal(t, "the order in the view", columns()[:3], []ID{d.primary, a, b})
	check(t, l.SortKey(ctx, d.av, b, ""))
	equal(t, "the first column", take(l.AttributeView(ctx, d.av))(t).KeyIDs[0], b)
	check(t, l.RemoveKey(ctx, d.av, a))
	equal(t, "a removed column", slices.Contains(columns(), a), false)
	wantKind(t, "removing it again", l.RemoveKey(ctx, d.av, a), Rejected)

	copied := take(l.DuplicateAttributeView(ctx, d.av))(t)
	equal(t, "the copy's rows", len(take(l.AttributeView(ctx, copied.AvID))(t).KeyValues[0].Values), 2)
	l.avs = append(l.avs, copied.AvID)
	contains(t, "what the row is bound to", take(l.BlockAttrs(ctx, para))(t)["custom-avs"], string(d.av), string(copied.AvID))

	lone := l.id()
	take(l.CreateAttributeView(ctx, lone, d.block))(t)
	unused := func() bool {
		return slices.ContainsFunc(take(l.UnusedAttributeViews(ctx))(t), func(u UnusedItem) bool { return u.Item == string(lone) })
	}
	equal(t, "a database without blocks is unused", unused(), true)
	check(t, l.RemoveUnusedAttributeView(ctx, lone))
	equal(t, "a removed database is unused", unused(), false)
	wantKind(t, "a removed database", second(l.AttributeView(ctx, lone)), Missing)
}

func TestLiveViewsFilterSortGroupAndChangeLayout(t *testing.T) {
	l := newLive(t)
	ctx, d := l.ctx, l.database("/Views", liveName+" views")
	num, sel := l.id(), l.id()
	check(t, l.AddKey(ctx, d.av, num, "N", "number", "", d.primary))
	check(t, l.AddKey(ctx, d.av, sel, "S", "select", "", num))
	cell := func(item ID, n float64, option string) {
		take(l.SetCell(ctx, d.av, num, item, Value{Number: &ValueNumber{Content: n, IsNotEmpty: true}}))(t)
		take(l.SetCell(ctx, d.av, sel, item, Value{Select: []ValueOption{{option, "1"}}}))(t)
	}
	cell(d.bound, 2, "todo")
	cell(d.detached, 1, "done")
	render := func() Rendered {
		t.Helper()
		return take(l.RenderAttributeView(ctx, Render{ID: d.av, Block: d.block}))(t)
	}
	rows := func(all []AvRow) (ids []ID) {
		for _, r := range all {
			ids = append(ids, r.ID)
		}
		return ids
	}

	check(t, l.SetSorts(ctx, d.av, d.block, []AvSort{{num, "ASC"}}))
	equal(t, "ascending", rows(render().View.Rows), []ID{d.detached, d.bound})
	check(t, l.SetSorts(ctx, d.av, d.block, []AvSort{{num, "DESC"}}))
	equal(t, "descending", rows(render().View.Rows), []ID{d.bound, d.detached})
	filter := json.RawMessage(`{"column":"` + string(num) + `","operator":">","value":{"type":"number","number":{"content":1,"isNotEmpty":true}}}`)
	check(t, l.SetFilters(ctx, d.av, d.block, []json.RawMessage{filter}))
	equal(t, "filtered", rows(render().View.Rows), []ID{d.bound})
	fs := take(l.FilterSort(ctx, d.av, d.block))(t)
	contains(t, "the filters", string(fs.Filters), string(num))
	contains(t, "the sorts", string(fs.Sorts), "DESC")
	check(t, l.SetFilters(ctx, d.av, d.block, nil))
	check(t, l.SetSorts(ctx, d.av, d.block, nil))
	equal(t, "no filter", len(render().View.Rows), 2)

	check(t, second(l.SetGroup(ctx, d.av, d.block, AvGroup{Field: sel})))
	groups := map[string][]ID{}
	for _, g := range render().View.Groups {
		if g.GroupValue != nil && len(g.GroupValue.Select) > 0 {
			groups[g.GroupValue.Select[0].Content] = rows(g.Rows)
		}
	}
	equal(t, "groups", groups, map[string][]ID{"todo": {d.bound}, "done": {d.detached}})
	check(t, second(l.SetGroup(ctx, d.av, d.block, AvGroup{})))
	equal(t, "no groups", len(render().View.Groups), 0)

	for _, layout := range []string{"gallery", "kanban", "table"} {
		changed := take(l.SetLayout(ctx, d.av, d.block, layout))(t)
		equal(t, "the layout", changed.ViewType, layout)
		r := render()
		var cards []AvRow
		for _, g := range r.View.Groups {
			cards = append(cards, g.Cards...)
		}
		cards = append(cards, r.View.Cards...)
		if layout == "table" {
			cards = r.View.Rows
		}
		slices.SortFunc(cards, func(a, b AvRow) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
		want := []ID{d.bound, d.detached}
		slices.Sort(want)
		if layout != "table" || len(r.View.Groups) == 0 {
			equal(t, "the items of a "+layout, rows(cards), want)
		}
		if layout == "gallery" {
			equal(t, "a gallery", []any{r.View.CardCount, len(r.View.Fields) >= 3, len(cards[0].Values) >= 3}, []any{2, true, true})
		}
	}

	item := take(l.CreateItem(ctx, d.av, ItemAt{Block: d.block, View: render().ViewID}))(t)
	equal(t, "a created row", slices.Contains(rows(render().View.Rows), item.ItemID) || len(render().View.Groups) > 0, true)
	check(t, l.SetBlockView(ctx, d.block, d.av, render().ViewID))
	equal(t, "the block's view", take(l.BlockAttrs(ctx, d.block))(t)["custom-sy-av-view"], string(render().ViewID))
}
