package av_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan/samplekernel/av"
)

type rig struct {
	db *av.Database
	m  av.Maker
	l  av.Lookup
}

func newRig() *rig {
	n, now := 0, int64(1000)
	m := av.Maker{
		NewID: func() string { n++; return fmt.Sprintf("20260102030405-made%03d", n) },
		Now:   func() int64 { now++; return now },
	}
	r := &rig{db: av.New("20240101000000-databse", m), m: m}
	r.l = av.Lookup{
		Block:    func(id string) (string, bool) { return "text of " + id, id == "bound" },
		Database: func(id string) (*av.Database, bool) { return r.db, id == r.db.ID },
		NewID:    m.NewID,
	}
	return r
}

func (r *rig) rows(query string) (out []string) {
	for _, row := range r.db.RenderRows(r.db.View(""), query, r.l) {
		out = append(out, row.Cells[0].Value.String())
	}
	return out
}

func TestANewDatabaseHasAPrimaryKeyAndASelectColumn(t *testing.T) {
	t.Parallel()
	r := newRig()
	var got []string
	for _, c := range r.db.RenderColumns(r.db.View("nosuch")) {
		got = append(got, c.Name+" "+c.Type)
	}
	if strings.Join(got, ", ") != "Primary Key block, Select select" {
		t.Fatal(got)
	}
}

func TestRowsOfOneCallKeepTheirOrderAndLaterOnesGoOnTop(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.db.AddRows([]av.Source{{ItemID: "a", Detached: true, Content: "A"}, {ItemID: "b", Detached: true, Content: "B"}}, "", r.m)
	r.db.AddRows([]av.Source{{BlockID: "bound", ItemID: "c", Content: "old text"}}, "", r.m)
	r.db.AddRows([]av.Source{{BlockID: "bound", ItemID: "d"}}, "", r.m)
	r.db.AddRows([]av.Source{{ItemID: "e", Detached: true, Content: "E"}}, "a", r.m)
	if got := strings.Join(r.rows(""), ", "); got != "text of bound, A, E, B" {
		t.Fatal(got)
	}
	if got := r.rows("b"); len(got) != 2 {
		t.Fatalf("query b finds %v", got)
	}
	if item, ok := r.db.ItemOf("bound"); !ok || item != "c" {
		t.Fatal(item)
	}
	if unbound := r.db.RemoveRows([]string{"c", "a"}); len(unbound) != 1 || unbound[0] != "bound" {
		t.Fatal(unbound)
	}
	if got := strings.Join(r.rows(""), ", "); got != "E, B" {
		t.Fatal(got)
	}
}

// The traps are recorded ones.
func TestCellsAreNotCheckedAgainstTheirColumn(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.db.AddKey(&av.Key{ID: "num", Type: "number"}, "")
	r.db.AddKey(&av.Key{ID: "sel", Type: "select"}, "num")
	if _, err := r.db.Set("nosuch", "row", []byte(`{}`), r.m); !errors.Is(err, av.ErrNoKey) {
		t.Fatal(err)
	}
	_, err := r.db.Set("num", "row", []byte(`{"number":{"content":"3","isNotEmpty":true}}`), r.m)
	if err == nil || err.Error() != "json: cannot unmarshal string into Go struct field ValueNumber.number.content of type float64" {
		t.Fatal(err)
	}
	v, err := r.db.Set("num", "ghost", []byte(`{"number":{"content":1234.5,"isNotEmpty":true,"format":"commas"}}`), r.m)
	if err != nil || v.Number.FormattedContent != "1,234.5" || v.BlockID != "ghost" {
		t.Fatalf("%+v %v", v, err)
	}
	v, err = r.db.Set("sel", "row", []byte(`{"mSelect":[{"content":"a","color":"3"},{"content":"b"}]}`), r.m)
	if err != nil || len(v.MSelect) != 2 {
		t.Fatalf("%+v %v", v, err)
	}
	v, err = r.db.Set("sel", "other", []byte(`{"mSelect":[{"content":"a","color":"7"}]}`), r.m)
	if err != nil || v.MSelect[0].Color != "3" {
		t.Fatalf("the colour of an existing option does not win: %+v %v", v.MSelect[0], err)
	}
	if v, err = r.db.Set("sel", "row", []byte(`{"mSelect":[]}`), r.m); err != nil || len(v.MSelect) != 0 {
		t.Fatalf("%+v %v", v, err)
	}
}

func TestRelationsShowThePrimaryValuesOfTheirRows(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.db.AddKey(&av.Key{ID: "rel", Type: "relation", Relation: &av.Relation{AvID: r.db.ID}}, r.db.Primary().Key.ID)
	r.db.AddRows([]av.Source{{ItemID: "a", Detached: true, Content: "A"}, {ItemID: "b", Detached: true, Content: "B"}}, "", r.m)
	if _, err := r.db.Set("rel", "a", []byte(`{"relation":{"blockIDs":["b","gone"]}}`), r.m); err != nil {
		t.Fatal(err)
	}
	contents := r.db.RenderRows(r.db.View(""), "", r.l)[0].Cells[1].Value.Relation.Contents
	if len(contents) != 1 || contents[0].String() != "B" {
		t.Fatalf("%+v", contents)
	}
}

func TestColumnsCanBeMovedAndRemoved(t *testing.T) {
	t.Parallel()
	r := newRig()
	primary := r.db.Primary().Key.ID
	r.db.AddKey(&av.Key{ID: "x", Name: "X"}, primary)
	r.db.AddKey(&av.Key{ID: "y", Name: "Y"}, primary)
	r.db.MoveKey("x", primary)
	order := func() string {
		var names []string
		for _, c := range r.db.RenderColumns(r.db.View("")) {
			names = append(names, c.Name)
		}
		return strings.Join(names, " ")
	}
	if order() != "Primary Key X Y Select" {
		t.Fatal(order())
	}
	if err := r.db.RemoveKey("x"); err != nil || order() != "Primary Key Y Select" {
		t.Fatal(order(), err)
	}
	if err := r.db.RemoveKey("x"); !errors.Is(err, av.ErrNoKey) {
		t.Fatal(err)
	}
}

func TestRollupsAndTemplatesAreComputedWhenRendered(t *testing.T) {
	t.Parallel()
	r := newRig()
	primary := r.db.Primary().Key.ID
	r.db.AddKey(&av.Key{ID: "note", Name: "Note", Type: "text"}, primary)
	r.db.AddKey(&av.Key{ID: "rel", Type: "relation", Relation: &av.Relation{AvID: r.db.ID}}, "note")
	r.db.AddKey(&av.Key{ID: "roll", Type: "rollup"}, "rel")
	r.db.AddKey(&av.Key{ID: "tpl", Type: "template", Template: "T"}, "roll")
	roll, _ := r.db.Column("roll")
	roll.Key.Rollup.RelationKeyID, roll.Key.Rollup.KeyID = "rel", "note"
	r.l.Template = func(tpl string, row map[string]string) string { return tpl + row["Note"] }
	r.db.AddRows([]av.Source{{ItemID: "a", Detached: true}, {ItemID: "b", Detached: true}}, "", r.m)
	for _, set := range [][3]string{{"note", "a", `{"text":{"content":"of a"}}`}, {"note", "b", `{"text":{"content":"of b"}}`}, {"rel", "a", `{"relation":{"blockIDs":["b"]}}`}} {
		if _, err := r.db.Set(set[0], set[1], []byte(set[2]), r.m); err != nil {
			t.Fatal(err)
		}
	}
	cells := r.db.RenderRows(r.db.View(""), "", r.l)[0].Cells
	if got := cells[3].Value.String(); got != "of b" {
		t.Errorf("rollup %q", got)
	}
	if got := cells[4].Value.Template.Content; got != "Tof a" {
		t.Errorf("template %q", got)
	}
}
