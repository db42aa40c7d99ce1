package undo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/undo"
	"siyuan-broker/contract"
)

// beta is the document that shows the databases of guardtest.
const beta = "20240102100200-betadoc"

// tableDesk is a desk with the databases of guardtest.
func tableDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + beta + ".sy", Title: "Beta", Text: "Second.\n"})
	guardtest.AddDatabase(t, d.Client.Writer())
	fine(t, d.Client.Reader().Flush(context.Background()))
	return d
}

// table lets an agent write to databases, the first of which is given to it.
func (d *desk) table(t *testing.T, agent string, do func(ctx context.Context, s *guard.Session, tx *guard.Tx, db guard.Database) error, ids ...string) {
	t.Helper()
	s := d.sessionOf(t, agent)
	ctx := context.Background()
	in := guard.Intent{Action: "test"}
	var first guard.Database
	for i, id := range ids {
		db, err := s.Database(ctx, id, contract.ReadWrite)
		fine(t, err)
		if in.Targets = append(in.Targets, db); i == 0 {
			first = db
		}
	}
	fine(t, s.Write(ctx, in, func(ctx context.Context, tx *guard.Tx) error { return do(ctx, s, tx, first) }))
}

// set lets an agent set cells of a database.
func (d *desk) set(t *testing.T, agent, db string, cells ...guard.CellInput) {
	t.Helper()
	ids := []string{db}
	for _, c := range cells {
		if c.Type == "relation" {
			ids = []string{guardtest.Database, guardtest.People}
			if db == guardtest.People {
				ids = []string{guardtest.People, guardtest.Database}
			}
		}
	}
	d.table(t, agent, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, db guard.Database) error {
		_, _, err := tx.SetCells(ctx, db, cells)
		return err
	}, ids...)
}

func noted(text string) guard.CellInput {
	return guard.CellInput{Row: guardtest.DatabaseRow, Column: guardtest.DatabaseText, Type: "text", Text: text}
}

// add lets an agent add a row of its own and returns its id.
func (d *desk) add(t *testing.T, agent, db, title string) (id string) {
	t.Helper()
	d.table(t, agent, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, db guard.Database) error {
		added, err := tx.AddRows(ctx, db, []guard.NewRow{{Title: title}}, guard.RowPlace{})
		if err == nil {
			id = added[0].ID
		}
		return err
	}, db)
	return id
}

// person sets a cell as SiYuan's window does, past the connector.
func (d *desk) person(t *testing.T, db, column, row string, v siyuan.Value) {
	t.Helper()
	fine(t, d.Client.Writer().SetCells(context.Background(), siyuan.ID(db), []siyuan.CellUpdate{{KeyID: siyuan.ID(column), ItemID: siyuan.ID(row), Value: v}}))
}

func textValue(s string) siyuan.Value { return siyuan.Value{Text: &siyuan.ValueText{Content: s}} }

// stored is what a database's file says of a cell, without ids, times and what SiYuan
// works out of it; "" of none.
func (d *desk) stored(t *testing.T, db, column, row string) string {
	t.Helper()
	av, err := d.Client.Reader().AttributeView(context.Background(), siyuan.ID(db))
	fine(t, err)
	for _, kv := range av.KeyValues {
		for _, v := range kv.Values {
			if string(kv.Key.ID) != column || string(v.BlockID) != row {
				continue
			}
			v.ID, v.KeyID, v.BlockID, v.CreatedAt, v.UpdatedAt = "", "", "", 0, 0
			if v.Block != nil {
				v.Block.Created, v.Block.Updated = 0, 0
			}
			if v.Number != nil {
				v.Number.FormattedContent = ""
			}
			b, err := json.Marshal(v)
			fine(t, err)
			return string(b)
		}
	}
	return ""
}

func (d *desk) note(t *testing.T) string {
	t.Helper()
	return d.stored(t, guardtest.Database, guardtest.DatabaseText, guardtest.DatabaseRow)
}

// refusals are those of a database in a plan, with their numbers.
func refusals(p undo.Plan, id string) string {
	var all []string
	for _, d := range p.Documents {
		for _, r := range d.Refused {
			if d.ID == id {
				all = append(all, fmt.Sprint(r.Part, " ", r.Reason, " ", r.Count))
			}
		}
	}
	return strings.Join(all, ", ")
}

func entry(t *testing.T, p undo.Plan, id string) undo.Document {
	t.Helper()
	for _, d := range p.Documents {
		if d.ID == id {
			return d
		}
	}
	t.Fatalf("the plan has no %s: %+v", id, p.Documents)
	return undo.Document{}
}

func TestUndoBringsBackACellOfEveryKindExactlyAndTheUndoCanBeUndone(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	d.addAllKinds(t)
	roundTrip(t, d, func(agent string) *guard.Session { return d.as(t, agent) }, "t/i//")
}

func TestUndoBringsBackTheTitleOfARow(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	before := d.stored(t, guardtest.Database, guardtest.DatabaseTitle, guardtest.DatabaseRow)
	d.set(t, "a", guardtest.Database, guard.CellInput{Row: guardtest.DatabaseRow, Column: guardtest.DatabaseTitle, Type: "text", Text: "Another"})
	d.undo(t, restore.Choice{})
	if got := d.stored(t, guardtest.Database, guardtest.DatabaseTitle, guardtest.DatabaseRow); got != before {
		t.Errorf("the title is %s, want %s", got, before)
	}
}

func TestThePlanNamesADatabaseByWhereItIsShown(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	d.set(t, "a", guardtest.People, guard.CellInput{Row: guardtest.PeopleRow, Column: guardtest.PeopleAge, Type: "number"})
	e := entry(t, d.plan(t, restore.Choice{}), guardtest.People)
	if e.Kind != undo.Database || e.Title != "/Beta: People" || e.Effect != undo.Restored || e.Cells != 1 || strings.Join(e.Parts, " ") != "cells" {
		t.Errorf("the plan says %+v", e)
	}
}

func TestUndoLeavesACellThatAPersonChangedSinceAndBringsTheOthersBack(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	d.set(t, "a", guardtest.Database, noted("agent's"), guard.CellInput{Row: guardtest.DatabaseRow, Column: guardtest.DatabaseCount, Type: "number", Number: ptr(3.0)})
	d.person(t, guardtest.Database, guardtest.DatabaseText, guardtest.DatabaseRow, textValue("person's"))
	p := d.undo(t, restore.Choice{})
	if got := refusals(p, guardtest.Database); got != "cells changed_since 1" {
		t.Errorf("refused: %q", got)
	}
	if got := d.note(t); !strings.Contains(got, "person's") {
		t.Errorf("the person's cell is %s", got)
	}
	if got := d.stored(t, guardtest.Database, guardtest.DatabaseCount, guardtest.DatabaseRow); strings.Contains(got, `"isNotEmpty":true`) {
		t.Errorf("the other cell is %s, want empty", got)
	}
}

func TestUndoBringsACellBackToWhatAPersonWroteBetweenTwoWritesOfTheAgent(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	d.set(t, "a", guardtest.Database, noted("first"))
	d.person(t, guardtest.Database, guardtest.DatabaseText, guardtest.DatabaseRow, textValue("person's"))
	d.set(t, "a", guardtest.Database, noted("second"))
	d.set(t, "a", guardtest.Database, noted("third"))
	p := d.undo(t, restore.Choice{})
	if got := d.note(t); !strings.Contains(got, "person's") {
		t.Errorf("the cell is %s, want the person's", got)
	}
	if e := entry(t, p, guardtest.Database); e.Cells != 1 || refusals(p, guardtest.Database) != "cells changed_since 1" {
		t.Errorf("the plan says %+v", e)
	}
}

func TestCellsWrittenBeforeTheGivenTimeStay(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	d.set(t, "a", guardtest.Database, noted("early"))
	d.Pass(5 * time.Minute)
	d.set(t, "a", guardtest.Database, noted("late"))
	d.undo(t, restore.Choice{Since: time.Date(2026, 11, 30, 9, 5, 0, 0, time.UTC)})
	if got := d.note(t); !strings.Contains(got, "early") {
		t.Errorf("the cell is %s, want what it was at that time", got)
	}
}

func TestAnAddedRowGoesWithItsCells(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	row := d.add(t, "a", guardtest.Database, "Mine")
	cell := noted("mine too")
	cell.Row = row
	d.set(t, "a", guardtest.Database, cell)
	p := d.undo(t, restore.Choice{})
	if e := entry(t, p, guardtest.Database); e.Rows != 1 || e.Cells != 1 || p.Refused > 0 {
		t.Errorf("the plan says %+v", e)
	}
	for _, column := range []string{guardtest.DatabaseTitle, guardtest.DatabaseText} {
		if got := d.stored(t, guardtest.Database, column, row); got != "" {
			t.Errorf("the row still has %s", got)
		}
	}
	if got := d.stored(t, guardtest.Database, guardtest.DatabaseTitle, guardtest.DatabaseRow); got == "" {
		t.Error("the row that was there is gone")
	}
}

func TestAnAddedRowStaysWhenAPersonFilledACellOfIt(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	row := d.add(t, "a", guardtest.Database, "Mine")
	d.person(t, guardtest.Database, guardtest.DatabaseText, row, textValue("a person's"))
	p := d.undo(t, restore.Choice{})
	if got := refusals(p, guardtest.Database); got != "rows changed_since 1" {
		t.Errorf("refused: %q", got)
	}
	if got := d.stored(t, guardtest.Database, guardtest.DatabaseText, row); !strings.Contains(got, "a person's") {
		t.Errorf("the cell is %q", got)
	}
}

func TestARowBoundToADocumentGoesAndTheDocumentStays(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	before := d.look(t)
	s := d.as(t, "a")
	ctx := context.Background()
	db, err := s.Database(ctx, guardtest.Database, contract.ReadWrite)
	fine(t, err)
	doc, err := s.Doc(ctx, guardtest.Alpha, contract.ReadWrite)
	fine(t, err)
	block := doc.Block()
	fine(t, s.Write(ctx, guard.Intent{Action: "test", Targets: []guard.Target{db, doc}}, func(ctx context.Context, tx *guard.Tx) error {
		_, err := tx.AddRows(ctx, db, []guard.NewRow{{Block: &block}}, guard.RowPlace{})
		return err
	}))
	p := d.undo(t, restore.Choice{})
	if e := entry(t, p, guardtest.Database); e.Rows != 1 || p.Refused > 0 {
		t.Errorf("the plan says %+v", p.Documents)
	}
	av, err := d.Client.Reader().AttributeView(ctx, guardtest.Database)
	fine(t, err)
	if n := len(av.KeyValues[0].Values); n != 1 {
		t.Errorf("the database has %d rows, want the one that was there", n)
	}
	same(t, before, d.look(t))
}

func TestUndoTakesBothSidesOfATwoWayRelationBack(t *testing.T) {
	t.Parallel()
	bothSides(t, tableDesk(t))
}

func bothSides(t *testing.T, d *desk) {
	scope := "t/i//"
	if d.live {
		scope = "///"
	}
	task, person := d.add(t, "relater", guardtest.Database, "Task"), d.add(t, "relater", guardtest.People, "Bert")
	lead := func(db, column, row string, to ...string) {
		t.Helper()
		d.set(t, "relater", db, guard.CellInput{Row: row, Column: column, Type: "relation", Related: to})
	}
	lead(guardtest.Database, guardtest.DatabaseOwner, guardtest.DatabaseRow, guardtest.PeopleRow)
	lead(guardtest.Database, guardtest.DatabaseOwner, task, person)
	lead(guardtest.People, guardtest.PeopleTasks, person, task, guardtest.DatabaseRow)
	p := d.undo(t, restore.Choice{Scope: scope + "relater"})
	if p.Refused > 0 {
		t.Errorf("refused: %+v", p.Documents)
	}
	for _, c := range [][3]string{{guardtest.Database, guardtest.DatabaseOwner, guardtest.DatabaseRow}, {guardtest.People, guardtest.PeopleTasks, guardtest.PeopleRow}} {
		if got := d.stored(t, c[0], c[1], c[2]); strings.Contains(got, "2024") {
			t.Errorf("the cell still leads somewhere: %s", got)
		}
	}
	if got := d.title(t, guardtest.Database, task) + d.title(t, guardtest.People, person); got != "" {
		t.Errorf("a row is still there: %s", got)
	}
}

func TestACellWhoseColumnOptionOrRowIsGoneStaysForAReasonOfItsOwn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pick := func(option string) guard.CellInput {
		return guard.CellInput{Row: guardtest.DatabaseRow, Column: guardtest.DatabasePick, Type: "select", Options: []string{option}}
	}
	for name, c := range map[string]struct {
		cell   guard.CellInput
		db     string
		person func(d *desk) error
	}{
		"column_gone": {noted("x"), guardtest.Database, func(d *desk) error {
			return d.Client.Writer().RemoveKey(ctx, guardtest.Database, guardtest.DatabaseText)
		}},
		"row_gone": {noted("x"), guardtest.Database, func(d *desk) error {
			return d.Client.Writer().RemoveRows(ctx, guardtest.Database, []siyuan.ID{guardtest.DatabaseRow})
		}},
		"option_gone": {pick("Done"), guardtest.Database, func(d *desk) error {
			_, err := d.Client.Writer().Transactions(ctx, []siyuan.Tx{{Do: []siyuan.Op{{Action: "removeAttrViewColOption", AvID: guardtest.Database, ID: guardtest.DatabasePick, Data: "Open"}}}})
			return err
		}},
		"column_changed": {noted("x"), guardtest.Database, func(d *desk) error {
			return d.rewrite(guardtest.Database, `"name":"Note","type":"text"`, `"name":"Note","type":"url"`)
		}},
		"target_gone": {guard.CellInput{Row: guardtest.DatabaseRow, Column: guardtest.DatabaseOwner, Type: "relation"}, guardtest.Database, func(d *desk) error {
			return d.Client.Writer().RemoveRows(ctx, guardtest.People, []siyuan.ID{guardtest.PeopleRow})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := tableDesk(t)
			d.person(t, guardtest.Database, guardtest.DatabaseText, guardtest.DatabaseRow, textValue("before"))
			d.person(t, guardtest.Database, guardtest.DatabasePick, guardtest.DatabaseRow, siyuan.Value{Select: []siyuan.ValueOption{{Content: "Open"}}})
			d.person(t, guardtest.Database, guardtest.DatabaseOwner, guardtest.DatabaseRow, siyuan.Value{Relation: &siyuan.ValueRelation{BlockIDs: []siyuan.ID{guardtest.PeopleRow}}})
			d.set(t, "a", c.db, c.cell)
			fine(t, c.person(d))
			if got := refusals(d.plan(t, restore.Choice{}), c.db); got != "cells "+name+" 1" {
				t.Errorf("refused %q, want cells %s 1", got, name)
			}
		})
	}
}

// rewrite changes the file of a database as it is stored.
func (d *desk) rewrite(db, old, now string) error {
	ctx := context.Background()
	file, err := json.Marshal(must(d.Client.Reader().AttributeView(ctx, siyuan.ID(db))))
	if err != nil {
		return err
	}
	if !strings.Contains(string(file), old) {
		return fmt.Errorf("the file has no %s: %s", old, file)
	}
	return d.Client.Writer().PutFile(ctx, "/data/storage/av/"+db+".json", []byte(strings.Replace(string(file), old, now, 1)), time.Time{})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestACellThatIsTooLargeIsNotKept(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	d.person(t, guardtest.Database, guardtest.DatabaseText, guardtest.DatabaseRow, textValue(strings.Repeat("long ", 4000)))
	d.set(t, "a", guardtest.Database, noted("short"))
	if got := refusals(d.plan(t, restore.Choice{}), guardtest.Database); got != "cells too_large 1" {
		t.Errorf("refused: %q", got)
	}
	points, err := d.store.Points(restore.Choice{})
	fine(t, err)
	if raw, err := json.Marshal(points); err != nil || strings.Contains(string(raw), "long ") {
		t.Errorf("the point has the text all the same: %d bytes (%v)", len(raw), err)
	}
}

// A connector that ends during a write leaves an open point behind.
func TestACellWhoseWriteWasInterruptedComesBackOnlyIfNothingHappened(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("written %t", after), func(t *testing.T) {
			t.Parallel()
			d := tableDesk(t)
			s := d.as(t, "a")
			ctx := context.Background()
			db, err := s.Database(ctx, guardtest.Database, contract.ReadWrite)
			fine(t, err)
			entry := crash{before: !after, close: d.store.Close}
			err = s.Write(ctx, guard.Intent{Action: "test", Targets: []guard.Target{db}, Entry: entry}, func(ctx context.Context, tx *guard.Tx) error {
				_, _, err := tx.SetCells(ctx, db, []guard.CellInput{noted("interrupted")})
				return err
			})
			if after {
				fine(t, err)
			} else if err == nil {
				t.Fatal("the write went on behind the crash")
			}
			d.reopen(t)
			p := d.plan(t, restore.Choice{})
			want := ""
			if after {
				want = "cells not_known 1"
			}
			if got := refusals(p, guardtest.Database); got != want || !p.Empty() {
				t.Errorf("refused %q, want %q; empty %t", got, want, p.Empty())
			}
		})
	}
}

func TestAPlanTellsOfDatabasesOnlyWhatItsCallerMaySee(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := tableDesk(t)
	d.set(t, "a", guardtest.Database, noted("x"))
	points, err := d.store.Points(restore.Choice{})
	fine(t, err)
	plan := func(levels map[string]contract.Level) undo.Plan {
		t.Helper()
		p, err := undo.Make(ctx, d.Session(t, levels), points, time.Time{})
		fine(t, err)
		return p
	}
	if p := plan(map[string]contract.Level{guardtest.Diary: contract.ReadWriteDelete}); len(p.Documents) != 0 {
		t.Errorf("one who may not read there is told of %+v", p.Documents)
	}
	if got := refusals(plan(map[string]contract.Level{guardtest.Work: contract.Read}), guardtest.Database); got != "cells not_allowed 1" {
		t.Errorf("a reader is refused %q", got)
	}
	// Shown in a hidden notebook, a database is as one that is gone.
	work := map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete}
	_, err = d.Client.Writer().AppendBlock(ctx, guardtest.Secret, siyuan.DOM, `<div class="av" data-node-id="20261130120009-mirrord" data-type="NodeAttributeView" data-av-id="`+guardtest.Database+`" data-av-type="table"></div>`)
	fine(t, err)
	fine(t, d.Client.Reader().Flush(ctx))
	hidden := plan(work)
	if got := refusals(hidden, guardtest.Database); got != "cells database_gone 1" {
		t.Errorf("refused: %q", got)
	}
	for _, block := range []siyuan.ID{"20261130120009-mirrord", guardtest.DatabaseBlock} {
		fine(t, d.Client.Writer().DeleteBlock(ctx, block))
	}
	fine(t, d.Client.Reader().Flush(ctx))
	gone := plan(work)
	if fmt.Sprint(hidden.Documents[0]) != fmt.Sprint(gone.Documents[0]) {
		t.Errorf("hidden it reads\n%+v\ngone\n%+v", hidden.Documents[0], gone.Documents[0])
	}
}

func TestWhatNothingTakesBackInADatabaseIsNotedAlsoWhereDocumentsChange(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	d.table(t, "a", func(ctx context.Context, _ *guard.Session, tx *guard.Tx, db guard.Database) error {
		_, err := tx.RemoveRows(ctx, db, []string{guardtest.DatabaseRow})
		return err
	}, guardtest.Database)
	d.table(t, "a", func(ctx context.Context, _ *guard.Session, tx *guard.Tx, db guard.Database) error {
		_, err := tx.AddColumn(ctx, db, guard.NewColumn{Name: "More", Type: "text"})
		return err
	}, guardtest.Database)
	d.set(t, "b", guardtest.People, guard.CellInput{Row: guardtest.PeopleRow, Column: guardtest.PeopleAge, Type: "number"})
	all, err := d.store.Sittings("")
	fine(t, err)
	got := map[string]int{}
	for _, s := range all {
		got[s.Agent] = len(s.Others)
	}
	if got["a"] != 2 || got["b"] != 0 {
		t.Errorf("not undoable by agent: %v, want 2 of a and none of b", got)
	}
}

func TestManyWritesToCellsAreTakenBackInFew(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	for i := range 30 {
		d.set(t, "a", guardtest.Database, noted(fmt.Sprint(i)))
	}
	d.undo(t, restore.Choice{Scope: scopeOf("a")})
	if got := d.note(t); strings.Contains(got, `"content":"`) && !strings.Contains(got, `"content":""`) {
		t.Errorf("the cell is %s, want empty", got)
	}
	points, err := d.store.Points(restore.Choice{Scope: scopeOf("owner")})
	fine(t, err)
	if len(points) != 1 {
		t.Errorf("the undo wrote %d times, want once", len(points))
	}
	left, err := d.store.Points(restore.Choice{Scope: scopeOf("a")})
	fine(t, err)
	if len(left) != 0 {
		t.Errorf("%d points are not marked as brought back", len(left))
	}
}

func TestRowsThatATemplateAndACopyMadeGo(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	before := d.look(t)
	row := ""
	d.table(t, "a", func(ctx context.Context, s *guard.Session, tx *guard.Tx, db guard.Database) error {
		block, err := s.Block(ctx, guardtest.DatabaseBlock, contract.ReadWrite)
		if err != nil {
			return err
		}
		made, err := tx.CreateFromTemplate(ctx, db, guardtest.Template, guard.RowPlace{Block: block})
		row = made.ID
		return err
	}, guardtest.Database)
	d.table(t, "a", func(ctx context.Context, _ *guard.Session, tx *guard.Tx, db guard.Database) error {
		_, err := tx.DuplicateRows(ctx, db, []string{row}, "")
		return err
	}, guardtest.Database, guardtest.People)
	p := d.undo(t, restore.Choice{})
	if e := entry(t, p, guardtest.Database); e.Rows != 2 || p.Refused > 0 {
		t.Errorf("the plan says %+v", e)
	}
	if got := d.title(t, guardtest.Database, row); got != "" {
		t.Errorf("the row is still there: %s", got)
	}
	same(t, before, d.look(t))
}

func TestAnUndoOfOneDocumentLeavesCellsAndOneOfADatabaseBringsThemBack(t *testing.T) {
	t.Parallel()
	d := tableDesk(t)
	d.set(t, "a", guardtest.Database, noted("agent's"))
	d.appendLine(t, "a", beta, "by the agent")
	d.undo(t, restore.Choice{Doc: beta})
	if !strings.Contains(d.note(t), "agent's") || strings.Contains(d.text(t, beta), "by the agent") {
		t.Errorf("not exactly the document was brought back: %s\n%s", d.note(t), d.text(t, beta))
	}
	d.appendLine(t, "a", beta, "by the agent")
	d.undo(t, restore.Choice{Doc: guardtest.Database})
	if strings.Contains(d.note(t), "agent's") || !strings.Contains(d.text(t, beta), "by the agent") {
		t.Errorf("not exactly the cell was brought back: %s\n%s", d.note(t), d.text(t, beta))
	}
}
