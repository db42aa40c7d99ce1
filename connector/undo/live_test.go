package undo_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// liveDesk is a desk in front of the SiYuan that the environment names, with a
// notebook of its own.
func liveDesk(t *testing.T) (*desk, string) {
	t.Helper()
	url, token := os.Getenv("SIYUAN_API_URL"), os.Getenv("SIYUAN_TOKEN")
	if url == "" || token == "" {
		t.Skip("SIYUAN_API_URL and SIYUAN_TOKEN name no SiYuan to test with")
	}
	client, err := siyuan.New(siyuan.Config{BaseURL: url, Token: siyuan.NewToken(token)})
	fine(t, err)
	t.Cleanup(client.Close)
	d := &desk{live: true, config: restore.Config{Path: filepath.Join(t.TempDir(), "restore.db")}}
	d.reopen(t)
	t.Cleanup(func() { fine(t, d.store.Close()) })
	d.Home = &guardtest.Home{Client: client, Guard: guard.New(client.Reader(), client.Writer(), guard.Options{Points: d.store})}
	ctx := context.Background()
	n, err := client.Writer().CreateNotebook(ctx, "undo live test")
	fine(t, err)
	t.Cleanup(func() { fine(t, client.Writer().RemoveNotebook(ctx, n.ID)) })
	return d, string(n.ID)
}

// liveAs is an agent's session that may do everything.
func (d *desk) liveAs(t *testing.T, agent string) *guard.Session {
	t.Helper()
	w, err := d.Guard.Workspace(context.Background())
	fine(t, err)
	return d.Guard.Session(w, &contract.Grant{V: contract.GrantVersion, Agent: contract.AgentRef{ID: agent, Name: agent}, Default: contract.ReadWriteDelete, Exp: 1 << 40})
}

const liveText = "# Head\n\nplain **bold** #tag#\n{: name=\"nm\" custom-x=\"1\" }\n\n* a\n  * nested\n* b\n\n* [ ] task\n\n```go\nx<y && z\n```\n\n<div>html</div>\n\n$$\na^2\n$$\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n{{select * from blocks where 1=0}}\n\n> quote\n"

// stateOf is a document's kramdown, attributes and path.
func (d *desk) stateOf(t *testing.T, id string) string {
	t.Helper()
	ctx := context.Background()
	at, err := d.Client.Reader().PathByID(ctx, siyuan.ID(id))
	if err != nil {
		return "gone"
	}
	attrs, err := d.Client.Reader().BlockAttrs(ctx, siyuan.ID(id))
	fine(t, err)
	return at.Path + "\n" + plainAttrs(attrs) + "\n" + plainText(d.text(t, id))
}

func TestLiveUndo(t *testing.T) {
	d, box := liveDesk(t)
	ctx := context.Background()
	w := d.Client.Writer()
	up, err := w.CreateDoc(ctx, siyuan.NewDoc{Notebook: siyuan.ID(box), HPath: "/Up", Markdown: "upper"})
	fine(t, err)
	doc, err := w.CreateDoc(ctx, siyuan.NewDoc{Notebook: siyuan.ID(box), HPath: "/Up/Doc", Markdown: liveText})
	fine(t, err)
	fine(t, w.SetBlockAttrs(ctx, doc, siyuan.Attrs{"icon": "1f600", "custom-d": "v", "alias": "al"}))
	base, err := d.Client.Reader().ChildBlocks(ctx, doc)
	fine(t, err)
	fine(t, d.Client.Reader().Flush(ctx))

	write := func(tree bool, do func(ctx context.Context, s *guard.Session, tx *guard.Tx, at guard.Doc) error) {
		t.Helper()
		s := d.liveAs(t, "a")
		at, err := s.Doc(ctx, string(doc), contract.ReadWrite)
		fine(t, err)
		in := guard.Intent{Action: "test", Targets: []guard.Target{at}}
		if tree {
			in.Targets = append(in.Targets, at.Notebook())
		}
		fine(t, s.Write(ctx, in, func(ctx context.Context, tx *guard.Tx) error { return do(ctx, s, tx, at) }))
	}
	back := func() {
		t.Helper()
		points, err := d.store.Points(restore.Choice{Scope: "///a"})
		fine(t, err)
		s := d.liveAs(t, "owner")
		p, err := undo.Make(ctx, s, points, time.Time{})
		fine(t, err)
		if p.Refused > 0 {
			t.Errorf("refused: %+v", p.Documents)
		}
		fine(t, p.Apply(ctx, s, guard.Intent{Action: "undo"}, d.store, nil))
		for _, doc := range p.Documents {
			if doc.Failed != "" {
				t.Errorf("document %s: %s", doc.ID, doc.Failed)
			}
		}
	}
	check := func(name string, ids []siyuan.ID, do func()) {
		t.Helper()
		before := map[siyuan.ID]string{}
		for _, id := range ids {
			before[id] = d.stateOf(t, string(id))
		}
		do()
		back()
		fine(t, d.Client.Reader().Flush(ctx))
		for _, id := range ids {
			if now := d.stateOf(t, string(id)); now != before[id] {
				t.Errorf("%s: document %s was\n%s\nand is\n%s", name, id, before[id], now)
			}
		}
	}

	check("texts and attributes", []siyuan.ID{up, doc}, func() {
		write(false, func(ctx context.Context, s *guard.Session, tx *guard.Tx, at guard.Doc) error {
			b, err := s.Block(ctx, string(base[1].ID), contract.ReadWrite)
			if err != nil {
				return err
			}
			if _, err := tx.Update(ctx, []guard.Update{{Block: b, Text: markdown("rewritten")}}); err != nil {
				return err
			}
			list, err := s.Block(ctx, string(base[2].ID), contract.ReadWriteDelete)
			if err != nil {
				return err
			}
			if err := tx.Delete(ctx, list); err != nil {
				return err
			}
			_, err = tx.Append(ctx, at.Block(), markdown("more\n\nand more"))
			return err
		})
		write(true, func(ctx context.Context, s *guard.Session, tx *guard.Tx, at guard.Doc) error {
			icon := ""
			if _, err := tx.SetLook(ctx, at, &icon, nil); err != nil {
				return err
			}
			if err := tx.RenameDoc(ctx, at, "Other"); err != nil {
				return err
			}
			_, err := tx.MoveDocs(ctx, []guard.Doc{at}, guard.Place{Notebook: at.Notebook()})
			return err
		})
	})
	check("creation", []siyuan.ID{up, doc}, func() {
		write(true, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, at guard.Doc) error {
			_, err := tx.CreateDoc(ctx, guard.NewDoc{Notebook: at.Notebook(), Parent: &at, Title: "New", Markdown: "x", IfExists: guard.Fail})
			return err
		})
	})
	if files, err := d.Client.Reader().Docs(ctx, siyuan.ID(box), "/"+string(up)+"/"+string(doc)+".sy"); err != nil || len(files) > 0 {
		t.Errorf("below the document stand %v (%v), want none", files, err)
	}
	check("removal of a tree", []siyuan.ID{up, doc}, func() {
		s := d.liveAs(t, "a")
		at, err := s.Doc(ctx, string(up), contract.ReadWriteDelete)
		fine(t, err)
		fine(t, s.Write(ctx, guard.Intent{Action: "test", Targets: []guard.Target{at, at.Notebook()}}, func(ctx context.Context, tx *guard.Tx) error {
			_, err := tx.RemoveDocs(ctx, []guard.Doc{at})
			return err
		}))
	})
	t.Run("database", func(t *testing.T) { liveDatabase(t, d, box) })
}

// A document that shows a database is brought back block by block, and the
// database stays what it is now.
func liveDatabase(t *testing.T, d *desk, box string) {
	ctx := context.Background()
	w := d.Client.Writer()
	av, block := siyuan.ID("20261130120000-undoav1"), "20261130120001-undoblk"
	dom := fmt.Sprintf(`<div class="av" data-node-id="%s" data-av-id="%s" data-type="NodeAttributeView" data-av-type="table"></div>`, block, av)
	doc, err := w.CreateDoc(ctx, siyuan.NewDoc{Notebook: siyuan.ID(box), HPath: "/Base", Markdown: "first\n\nsecond\n\n* item\n\n" + liveText})
	fine(t, err)
	children, err := d.Client.Reader().ChildBlocks(ctx, doc)
	fine(t, err)
	_, err = w.InsertBlock(ctx, siyuan.DOM, dom, siyuan.Anchor{Previous: children[1].ID})
	fine(t, err)
	fine(t, d.Client.Reader().Flush(ctx))
	before := d.stateOf(t, string(doc))
	if !strings.Contains(before, "NodeAttributeView") {
		t.Fatalf("the document shows no database: %s", before)
	}
	s := d.liveAs(t, "b")
	at, err := s.Doc(ctx, string(doc), contract.ReadWrite)
	fine(t, err)
	fine(t, s.Write(ctx, guard.Intent{Action: "test", Targets: []guard.Target{at, at.Notebook()}}, func(ctx context.Context, tx *guard.Tx) error {
		b, err := s.Block(ctx, string(children[0].ID), contract.ReadWrite)
		if err != nil {
			return err
		}
		if _, err := tx.Update(ctx, []guard.Update{{Block: b, Text: markdown("rewritten")}}); err != nil {
			return err
		}
		for _, gone := range []string{string(children[2].ID), block} {
			b, err := s.Block(ctx, gone, contract.ReadWriteDelete)
			if err != nil {
				return err
			}
			if err := tx.Delete(ctx, b); err != nil {
				return err
			}
		}
		for _, c := range children[3:] { // every kind of block
			b, err := s.Block(ctx, string(c.ID), contract.ReadWriteDelete)
			if err != nil {
				return err
			}
			if err := tx.Delete(ctx, b); err != nil {
				return err
			}
		}
		if _, err := tx.Append(ctx, at.Block(), markdown("more")); err != nil {
			return err
		}
		return tx.RenameDoc(ctx, at, "Base of another name")
	}))
	points, err := d.store.Points(restore.Choice{Scope: "///b"})
	fine(t, err)
	owner := d.liveAs(t, "owner")
	p, err := undo.Make(ctx, owner, points, time.Time{})
	fine(t, err)
	if err := p.Apply(ctx, owner, guard.Intent{Action: "undo"}, d.store, nil); err != nil {
		t.Error(err)
	}
	for _, doc := range p.Documents {
		if doc.Failed != "" || len(doc.Refused) > 0 {
			t.Errorf("document %s: %s %v", doc.ID, doc.Failed, doc.Refused)
		}
	}
	if now := d.stateOf(t, string(doc)); now != before {
		t.Errorf("was\n%s\nand is\n%s", before, now)
	}
}

// The cells of a real SiYuan come back as those of the sample kernel do.
func TestLiveUndoOfCells(t *testing.T) {
	d, box := liveDesk(t)
	ctx := context.Background()
	w := d.Client.Writer()
	_, err := w.CreateDocAt(ctx, siyuan.ID(box), "/"+beta+".sy", "Beta", "Second.", nil)
	fine(t, err)
	fine(t, d.Client.Reader().Flush(ctx))
	d.liveTables(t)
	d.addAllKinds(t)
	t.Cleanup(func() { // SiYuan notes who shows a database when it makes its file
		for av, block := range map[siyuan.ID]siyuan.ID{guardtest.Database: guardtest.DatabaseBlock, guardtest.People: guardtest.PeopleBlock, allKinds: allKindsBlock} {
			fine(t, w.DeleteBlock(ctx, block))
			fine(t, d.Client.Reader().Flush(ctx))
			fine(t, w.RemoveUnusedAttributeView(ctx, av))
		}
	})
	t.Run("every kind", func(t *testing.T) {
		roundTrip(t, d, func(agent string) *guard.Session { return d.liveAs(t, agent) }, "///")
	})
	t.Run("two-way relations and rows", func(t *testing.T) { bothSides(t, d) })
	t.Run("a row bound to a block", func(t *testing.T) { liveBound(t, d) })
}

// liveTables makes what the tests need of the databases of guardtest.
func (d *desk) liveTables(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	w := d.Client.Writer()
	for _, db := range []struct{ id, row string }{{guardtest.Database, guardtest.DatabaseRow}, {guardtest.People, guardtest.PeopleRow}} {
		d.newTable(t, db.id, guardtest.ShownBy(db.id), "Of a test")
		fine(t, w.AddRows(ctx, siyuan.ID(db.id), siyuan.RowsAt{}, []siyuan.AvSource{{ID: siyuan.ID(db.row), ItemID: siyuan.ID(db.row), IsDetached: true, Content: "a row"}}))
	}
	fine(t, w.AddKey(ctx, guardtest.Database, guardtest.DatabaseText, "Note", "text", "", ""))
	fine(t, w.AddKey(ctx, guardtest.Database, guardtest.DatabaseOwner, "Owner", "relation", "", ""))
	_, err := w.Transactions(ctx, []siyuan.Tx{{Do: []siyuan.Op{{
		Action: "updateAttrViewColRelation", AvID: guardtest.Database, ID: guardtest.People, KeyID: guardtest.DatabaseOwner, IsTwoWay: true, BackRelationKey: guardtest.PeopleTasks, Name: "Tasks", Format: "Owner",
	}}}})
	fine(t, err)
}

// liveBound binds a block that is rewritten afterwards: both are taken back.
func liveBound(t *testing.T, d *desk) {
	ctx := context.Background()
	before := d.stateOf(t, beta)
	s := d.liveAs(t, "binder")
	db, err := s.Database(ctx, guardtest.Database, contract.ReadWrite)
	fine(t, err)
	doc, err := s.Doc(ctx, beta, contract.ReadWrite)
	fine(t, err)
	children, err := d.Client.Reader().ChildBlocks(ctx, beta)
	fine(t, err)
	block, err := s.Block(ctx, string(children[0].ID), contract.ReadWrite)
	fine(t, err)
	row := ""
	fine(t, s.Write(ctx, guard.Intent{Action: "test", Targets: []guard.Target{db, doc, block}}, func(ctx context.Context, tx *guard.Tx) error {
		whole := doc.Block()
		added, err := tx.AddRows(ctx, db, []guard.NewRow{{Block: &block}, {Block: &whole}}, guard.RowPlace{})
		if err != nil {
			return err
		}
		row = added[0].ID
		_, err = tx.Append(ctx, doc.Block(), markdown("more"))
		return err
	}))
	cell := noted("of a bound row")
	cell.Row = row
	d.set(t, "binder", guardtest.Database, cell)
	p := d.undo(t, restore.Choice{Scope: "///binder"})
	if e := entry(t, p, guardtest.Database); e.Rows != 2 || e.Cells != 1 || p.Refused > 0 {
		t.Errorf("the plan says %+v", p.Documents)
	}
	if got := d.title(t, guardtest.Database, row); got != "" {
		t.Errorf("the row is still there: %s", got)
	}
	fine(t, d.Client.Reader().Flush(ctx))
	if now := d.stateOf(t, beta); now != before {
		t.Errorf("the document was\n%s\nand is\n%s", before, now)
	}
}
