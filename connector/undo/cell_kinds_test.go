package undo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/undo"
	"siyuan-broker/contract"
)

// allKinds is a database with a column of every type that can be set. Its cells
// stand as SiYuan stores them.
const (
	allKinds      = "20261130120000-allkind"
	allKindsBlock = "20261130120000-allblck"
)

// kindsOfCells are, by the type of a column: what a cell says, as SiYuan stores it,
// and what the agent makes of it. "" before is a cell that is not there.
var kindsOfCells = []struct {
	kind, before string
	agent        guard.CellInput
}{
	{"text", `{"type":"text","text":{"content":"line\n  with \"quotes\" "}}`, guard.CellInput{Text: "other"}},
	{"text", `{"type":"text","text":{"content":"emptied by the agent"}}`, guard.CellInput{}},
	{"number", `{"type":"number","number":{"content":0,"isNotEmpty":true,"format":""}}`, guard.CellInput{}},
	{"number", `{"type":"number","number":{"content":0,"isNotEmpty":false,"format":""}}`, guard.CellInput{Number: new(float64)}},
	{"number", `{"type":"number","number":{"content":0.1,"isNotEmpty":true,"format":""}}`, guard.CellInput{Number: ptr(1234.0), Format: "commas"}},
	{"number", `{"type":"number","number":{"content":-500000000000000000000,"isNotEmpty":true,"format":"commas"}}`, guard.CellInput{Number: ptr(7.0)}},
	{"date", `{"type":"date","date":{"content":1796083200000,"isNotEmpty":true,"hasEndDate":true,"isNotTime":false,"content2":1796169600000,"isNotEmpty2":true}}`, guard.CellInput{Start: ptr(time.UnixMilli(1796000000000))}},
	{"date", `{"type":"date","date":{"content":1796083200000,"isNotEmpty":true,"hasEndDate":false,"isNotTime":true,"content2":1,"isNotEmpty2":true}}`, guard.CellInput{}},
	{"date", `{"type":"date","date":{"content":0,"isNotEmpty":true,"hasEndDate":false,"isNotTime":true,"content2":0,"isNotEmpty2":false}}`, guard.CellInput{Start: ptr(time.UnixMilli(5))}},
	{"select", `{"type":"select","mSelect":[{"content":"b","color":"2"}]}`, guard.CellInput{Options: []string{"c"}}},
	{"mSelect", `{"type":"mSelect","mSelect":[{"content":"c","color":"3"},{"content":"a","color":"1"}]}`, guard.CellInput{Options: []string{"a", "c"}}},
	{"mSelect", `{"type":"mSelect","mSelect":[{"content":"a","color":"1"}]}`, guard.CellInput{Options: []string{"made by the agent"}}},
	{"url", `{"type":"url","url":{"content":"https://example.org/?a=1#b"}}`, guard.CellInput{Text: "https://example.org"}},
	{"email", `{"type":"email","email":{"content":"a@example.org"}}`, guard.CellInput{}},
	{"phone", `{"type":"phone","phone":{"content":"+49 30 1"}}`, guard.CellInput{Text: "1"}},
	{"checkbox", `{"type":"checkbox","checkbox":{"checked":true}}`, guard.CellInput{}},
	{"checkbox", `{"type":"checkbox","checkbox":{"checked":false}}`, guard.CellInput{Checked: true}},
	{"mAsset", `{"type":"mAsset","mAsset":[{"type":"file","name":"n","content":"https://example.org/n.txt"},{"type":"image","name":"","content":"https://example.org/n.png"}]}`, guard.CellInput{}},
	{"relation", `{"type":"relation","relation":{"blockIDs":["` + guardtest.PeopleRow + `"],"contents":null}}`, guard.CellInput{}},
}

func ptr[T any](v T) *T { return &v }

// addAllKinds makes the database, with one row and one column for each kind, both
// named by its number. It is made by calls, because SiYuan does not look at files
// that others write.
func (d *desk) addAllKinds(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	w := d.Client.Writer()
	d.newTable(t, allKinds, allKindsBlock, "All kinds")
	var rows []siyuan.AvSource
	for i, k := range kindsOfCells {
		rows = append(rows, siyuan.AvSource{ID: siyuan.ID(rowOf(i)), ItemID: siyuan.ID(rowOf(i)), IsDetached: true, Content: fmt.Sprint("row ", i)})
		fine(t, w.AddKey(ctx, allKinds, siyuan.ID(keyOf(i)), fmt.Sprint(i), k.kind, "", ""))
		op := siyuan.Op{AvID: allKinds, ID: siyuan.ID(keyOf(i)), Action: "updateAttrViewColOptions", Data: []siyuan.KeyOption{{Name: "a", Color: "1"}, {Name: "b", Color: "2"}, {Name: "c", Color: "3"}}}
		switch k.kind {
		case "relation":
			op = siyuan.Op{AvID: allKinds, ID: guardtest.People, KeyID: siyuan.ID(keyOf(i)), Action: "updateAttrViewColRelation"}
		case "select", "mSelect":
		default:
			continue
		}
		_, err := w.Transactions(ctx, []siyuan.Tx{{Do: []siyuan.Op{op}}})
		fine(t, err)
	}
	fine(t, w.AddRows(ctx, allKinds, siyuan.RowsAt{}, rows))
	for i, k := range kindsOfCells {
		var v siyuan.Value
		fine(t, json.Unmarshal([]byte(k.before), &v))
		d.person(t, allKinds, keyOf(i), rowOf(i), v)
		if got := d.stored(t, allKinds, keyOf(i), rowOf(i)); got != k.before {
			t.Fatalf("%d, %s: SiYuan stores\n%s\nof\n%s", i, k.kind, got, k.before)
		}
	}
}

// newTable makes an empty database that a block of Beta shows.
func (d *desk) newTable(t *testing.T, id, block, name string) {
	t.Helper()
	ctx := context.Background()
	w := d.Client.Writer()
	_, err := w.AppendBlock(ctx, beta, siyuan.DOM, `<div class="av" data-node-id="`+block+`" data-type="NodeAttributeView" data-av-id="`+id+`" data-av-type="table"></div>`)
	fine(t, err)
	_, err = w.CreateAttributeView(ctx, siyuan.ID(id), siyuan.ID(block))
	fine(t, err)
	_, err = w.Transactions(ctx, []siyuan.Tx{{Do: []siyuan.Op{{Action: "setAttrViewName", ID: siyuan.ID(id), Data: name}}}})
	fine(t, err)
	fine(t, d.Client.Reader().Flush(ctx))
}

// title is the stored primary cell of a row, "" when there is no such row.
func (d *desk) title(t *testing.T, db, row string) string {
	t.Helper()
	av, err := d.Client.Reader().AttributeView(context.Background(), siyuan.ID(db))
	fine(t, err)
	for _, kv := range av.KeyValues {
		if kv.Key.Type == "block" {
			return d.stored(t, db, string(kv.Key.ID), row)
		}
	}
	return ""
}

func rowOf(i int) string { return fmt.Sprintf("20261130120000-r%06d", i) }
func keyOf(i int) string { return fmt.Sprintf("20261130120000-k%06d", i) }

// roundTrip has an agent change a cell of every kind at once and looks whether each
// is exactly what it was after an undo.
func roundTrip(t *testing.T, d *desk, s func(agent string) *guard.Session, scope string) {
	t.Helper()
	ctx := context.Background()
	var cells []guard.CellInput
	before := map[int]string{}
	for i, k := range kindsOfCells {
		before[i] = d.stored(t, allKinds, keyOf(i), rowOf(i))
		k.agent.Row, k.agent.Column, k.agent.Type = rowOf(i), keyOf(i), k.kind
		cells = append(cells, k.agent)
	}
	agent := s("a")
	db, err := agent.Database(ctx, allKinds, contract.ReadWrite)
	fine(t, err)
	fine(t, agent.Write(ctx, guard.Intent{Action: "test", Targets: []guard.Target{db}}, func(ctx context.Context, tx *guard.Tx) error {
		_, _, err := tx.SetCells(ctx, db, cells)
		return err
	}))
	written := map[int]string{}
	for i, k := range kindsOfCells {
		if written[i] = d.stored(t, allKinds, keyOf(i), rowOf(i)); written[i] == before[i] {
			t.Errorf("%d, %s: the agent changed nothing: %s", i, k.kind, before[i])
		}
	}
	takeBack := func(scope string, as string, want map[int]string) {
		t.Helper()
		points, err := d.store.Points(restore.Choice{Scope: scope})
		fine(t, err)
		who := s(as)
		p, err := undo.Make(ctx, who, points, time.Time{})
		fine(t, err)
		if e := entry(t, p, allKinds); e.Cells != len(kindsOfCells) || p.Refused > 0 {
			t.Errorf("the plan brings %d cells back, want %d: %+v", e.Cells, len(kindsOfCells), p.Documents)
		}
		fine(t, p.Apply(ctx, who, guard.Intent{Action: "undo"}, d.store, nil))
		if f := entry(t, p, allKinds).Failed; f != "" {
			t.Error(f)
		}
		for i, k := range kindsOfCells {
			if got := d.stored(t, allKinds, keyOf(i), rowOf(i)); got != want[i] {
				t.Errorf("%d, %s: the cell is\n%s\nwant\n%s", i, k.kind, got, want[i])
			}
		}
	}
	takeBack(scope+"a", "owner", before)
	takeBack(scope+"owner", "owner again", written) // an undo can be undone
}
