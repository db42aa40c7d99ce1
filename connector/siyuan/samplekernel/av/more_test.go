package av_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan/samplekernel/av"
)

// table is a database with a text and a select column and three rows of their own.
func (r *rig) table(t *testing.T) (text, pick string) {
	t.Helper()
	primary := r.db.Primary().Key.ID
	r.db.AddKey(&av.Key{ID: "text", Name: "T", Type: "text"}, primary)
	for _, c := range r.db.Columns {
		if c.Key.Type == "select" {
			pick = c.Key.ID
		}
	}
	r.db.AddRows([]av.Source{{ItemID: "a", Detached: true, Content: "A"}, {ItemID: "b", Detached: true, Content: "B"}, {ItemID: "c", Detached: true, Content: "C"}}, "", r.m)
	if _, err := r.db.Set("text", "a", []byte(`{"text":{"content":"lamp"}}`), r.m); err != nil {
		t.Fatal(err)
	}
	return "text", pick
}

// As observed: filters are kept in one outer group, a condition without a value is
// passed over, and what they say is not checked.
func TestFiltersAreStoredInOneGroup(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.table(t)
	v := r.db.View("")
	for _, c := range []struct {
		filters, stored string
		left            []string
	}{
		{`[{"column":"text","operator":"Contains","value":{"type":"text","text":{"content":"am"}}}]`,
			`{"column":"","operator":"","value":null,"combination":"and","filters":[{"column":"text","operator":"Contains","value":{"type":"text","text":{"content":"am"}}}]}`, []string{"A"}},
		{`[{"column":"text","operator":"Is empty","value":{"type":"text"}}]`,
			`{"column":"","operator":"","value":null,"combination":"and","filters":[{"column":"text","operator":"Is empty","value":{"type":"text"}}]}`, []string{"B", "C"}},
		{`[{"column":"text","operator":"Is empty"}]`,
			`{"column":"","operator":"","value":null,"combination":"and","filters":[{"column":"text","operator":"Is empty","value":null}]}`, []string{"A", "B", "C"}},
		{`[]`, `{"column":"","operator":"","value":null,"combination":"and"}`, []string{"A", "B", "C"}},
	} {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(c.filters), &list); err != nil {
			t.Fatal(err)
		}
		v.Filters = av.Filters(list)
		if len(v.Filters) != 1 || string(v.Filters[0]) != c.stored {
			t.Errorf("%s is stored as %s, want %s", c.filters, v.Filters, c.stored)
		}
		if got := r.rows(""); !slices.Equal(got, c.left) {
			t.Errorf("%s leaves %v, want %v", c.filters, got, c.left)
		}
	}
}

func TestOptionsAreNeverTakenAwayByANewList(t *testing.T) {
	t.Parallel()
	r := newRig()
	_, pick := r.table(t)
	c, _ := r.db.Column(pick)
	names := func() (list []string) {
		for _, o := range c.Key.Options {
			list = append(list, o.Name+o.Color)
		}
		return list
	}
	c.Key.SetOptions([]*av.Option{{Name: "A", Color: "1"}, {Name: "B", Color: "2"}, {Name: "C", Color: "3"}})
	c.Key.SetOptions([]*av.Option{{Name: "D", Color: "4"}, {Name: "A", Color: "5"}})
	if got := names(); !slices.Equal(got, []string{"A5", "B2", "C3", "D4"}) {
		t.Error(got)
	}
	if _, err := r.db.Set(pick, "a", []byte(`{"mSelect":[{"content":"B","color":"2"}]}`), r.m); err != nil {
		t.Fatal(err)
	}
	c.RemoveOption("B")
	if v, _ := c.Value("a"); !slices.Equal(names(), []string{"A5", "C3", "D4"}) || len(v.MSelect) != 0 {
		t.Errorf("%v, the cell has %v", names(), v.MSelect)
	}
}

func TestACopiedRowStandsBehindAnotherOrLast(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.table(t)
	r.db.CopyRow("x", "a", "a", r.m, r.l)
	r.db.CopyRow("y", "b", "", r.m, r.l)
	r.db.CopyRow("z", "nosuch", "a", r.m, r.l)
	if got := strings.Join(r.rows(""), " "); got != "A A B C B" {
		t.Error(got)
	}
	c, _ := r.db.Column("text")
	if v, ok := c.Value("x"); !ok || v.Text.Content != "lamp" {
		t.Errorf("the copy has %+v", v)
	}
}

func TestANewViewIsOfItsLayout(t *testing.T) {
	t.Parallel()
	r := newRig()
	_, pick := r.table(t)
	if err := r.db.RemoveKey(pick); err != nil {
		t.Fatal(err)
	}
	for _, layout := range []string{"gallery", "calendar", "kanban"} {
		r.db.AddView("v"+layout, layout, r.m)
	}
	r.db.AddView("vgallery", "table", r.m)
	var got []string
	for _, v := range r.db.Views {
		got = append(got, v.Type+" "+v.Name)
	}
	if want := []string{"table Table", "gallery Gallery", "kanban Kanban"}; !slices.Equal(got, want) || r.db.ViewID != "vkanban" {
		t.Errorf("%v, want %v; current %s", got, want, r.db.ViewID)
	}
	last := r.db.Columns[len(r.db.Columns)-1]
	if last.Key.Type != "select" || r.db.Views[2].Group.Field != last.Key.ID {
		t.Errorf("a board without lanes got %+v and groups by %s", last.Key, r.db.Views[2].Group.Field)
	}
}

func TestAGroupedColumnOfOptionsHasAnOrderOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig()
	text, pick := r.table(t)
	v := r.db.View("")
	for _, c := range []struct {
		group  av.Group
		order  int
		groups int
	}{{av.Group{Field: pick}, 3, 1}, {av.Group{Field: text, Order: 1}, 1, 2}, {av.Group{}, 0, 0}, {av.Group{Field: "nosuch"}, 0, 0}} {
		r.db.SetGroup(v, c.group, r.m, r.l)
		if v.Group.Order != c.order || len(v.Groups) != c.groups {
			t.Errorf("%+v: order %d, %d groups", c.group, v.Group.Order, len(v.Groups))
		}
	}
}

func TestTemplatesAreAllRefusedForOne(t *testing.T) {
	t.Parallel()
	r := newRig()
	text, pick := r.table(t)
	c, _ := r.db.Column(pick)
	c.Key.SetOptions([]*av.Option{{Name: "A", Color: "1"}})
	preset := func(id, column, mode string, v *av.Value) *av.ItemTemplate {
		return &av.ItemTemplate{ID: id, Name: "x", TargetType: "detached", FieldValues: map[string]*av.Preset{column: {Mode: mode, Value: v}}}
	}
	good := preset("t", pick, "static", &av.Value{MSelect: []*av.ValueSelect{{Content: "A"}, {Content: "ZZ"}}})
	if err := r.db.SetTemplates([]*av.ItemTemplate{good}, "t"); err != nil {
		t.Fatal(err)
	}
	if got := r.db.Template("t").FieldValues[pick].Value.MSelect; len(got) != 1 || got[0].Content != "A" {
		t.Errorf("options %+v", got)
	}
	for _, bad := range []*av.ItemTemplate{
		{ID: "u", TargetType: "detached"}, {ID: "u", Name: "x", TargetType: "doc"}, {ID: "t", Name: "x", TargetType: "detached"},
		preset("u", "nosuch", "static", nil), preset("u", text, "bogus", nil), preset("u", text, "currentTime", nil), preset("u", r.db.Primary().Key.ID, "static", nil),
	} {
		if err := r.db.SetTemplates([]*av.ItemTemplate{good, bad}, ""); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	if err := r.db.SetTemplates([]*av.ItemTemplate{good}, "nosuch"); err == nil || r.db.DefaultTemplateID != "t" {
		t.Error("a default that is not there is taken")
	}
	r.db.AddRows([]av.Source{{ItemID: "new", Detached: true}}, "", r.m)
	if err := r.db.Fill(r.db.Template("t"), "new", r.m); err != nil {
		t.Fatal(err)
	}
	if v, ok := c.Value("new"); !ok || v.MSelect[0].Content != "A" {
		t.Errorf("the new row has %+v", v)
	}
}

func TestATwoWayRelationIsKeptOnBothSides(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.table(t)
	r.db.AddKey(&av.Key{ID: "back", Type: "relation", Relation: &av.Relation{AvID: "other", IsTwoWay: true}}, "")
	links := func() map[string][]string {
		c, _ := r.db.Column("back")
		m := map[string][]string{}
		for _, v := range c.Values {
			m[v.BlockID] = v.Relation.BlockIDs
		}
		return m
	}
	r.db.LinkBack("back", "x", []string{"a", "b"}, r.m)
	r.db.LinkBack("back", "y", []string{"b"}, r.m)
	r.db.LinkBack("back", "x", []string{"b"}, r.m)
	if got := links(); !reflect.DeepEqual(got, map[string][]string{"a": {}, "b": {"x", "y"}}) {
		t.Error(got)
	}
}
