package undo_test

import (
	"context"
	"errors"
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

// appendLine is the plainest write.
func (d *desk) appendLine(t *testing.T, agent, doc, line string) {
	t.Helper()
	d.write(t, agent, doc, false, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, doc guard.Doc) error {
		_, err := tx.Append(ctx, doc.Block(), markdown(line))
		return err
	})
}

func (d *desk) text(t *testing.T, doc string) string {
	t.Helper()
	text, err := d.Client.Reader().BlockKramdown(context.Background(), siyuan.ID(doc), siyuan.KramdownMarkdown)
	fine(t, err)
	return text
}

// reasonsOf are the reasons of a document's refusals.
func reasonsOf(p undo.Plan, doc string) string {
	var all []string
	for _, d := range p.Documents {
		for _, r := range d.Refused {
			if d.ID == doc {
				all = append(all, r.Part+" "+r.Reason)
			}
		}
	}
	return strings.Join(all, ", ")
}

func TestUndoLeavesWhatSomebodyElseChangedSinceAndDoesTheRest(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := d.look(t)
	d.appendLine(t, "a", guardtest.Alpha, "by the agent")
	d.appendLine(t, "a", guardtest.Projects, "by the agent too")
	_, err := d.Client.Writer().AppendBlock(context.Background(), guardtest.Alpha, siyuan.Markdown, "by the person")
	fine(t, err)
	p := d.undo(t, restore.Choice{})
	if got, want := reasonsOf(p, guardtest.Alpha), "text changed_since"; got != want {
		t.Errorf("refused of Alpha: %q, want %q", got, want)
	}
	if text := d.text(t, guardtest.Alpha); !strings.Contains(text, "by the person") || !strings.Contains(text, "by the agent") {
		t.Errorf("Alpha was touched: %s", text)
	}
	if after := d.look(t); after[guardtest.Projects] != before[guardtest.Projects] {
		t.Errorf("Projects was not brought back:\n%s", after[guardtest.Projects])
	}
}

func TestUndoBringsTheTextBackAndKeepsATitleThatAPersonGave(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := plainText(d.text(t, guardtest.Alpha))
	d.appendLine(t, "a", guardtest.Alpha, "by the agent")
	fine(t, d.Client.Writer().RenameDoc(context.Background(), guardtest.Alpha, "Named by a person"))
	p := d.undo(t, restore.Choice{})
	if p.Refused > 0 {
		t.Errorf("refused: %+v", p.Documents)
	}
	if got, want := plainText(d.text(t, guardtest.Alpha)), strings.Replace(before, `title="Alpha"`, `title="Named by a person"`, 1); got != want {
		t.Errorf("text is\n%s\nwant\n%s", got, want)
	}
}

func TestUndoKeepsWhatAPersonWroteBetweenTwoWritesOfTheAgent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.appendLine(t, "a", guardtest.Alpha, "first of the agent")
	d.Pass(2 * time.Second)
	_, err := d.Client.Writer().AppendBlock(context.Background(), guardtest.Alpha, siyuan.Markdown, "of the person")
	fine(t, err)
	d.appendLine(t, "a", guardtest.Alpha, "second of the agent")
	p := d.undo(t, restore.Choice{})
	text := d.text(t, guardtest.Alpha)
	for part, want := range map[string]bool{"first of the agent": true, "of the person": true, "second of the agent": false} {
		if strings.Contains(text, part) != want {
			t.Errorf("%q there: %t, want %t", part, !want, want)
		}
	}
	if got := reasonsOf(p, guardtest.Alpha); got != "text changed_since" {
		t.Errorf("refused: %q", got)
	}
}

func TestUndoOfOneAgentLeavesWhatAnotherWroteOver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.appendLine(t, "a", guardtest.Alpha, "of a")
	d.appendLine(t, "b", guardtest.Alpha, "of b")
	p := d.undo(t, restore.Choice{Scope: scopeOf("a")})
	if text := d.text(t, guardtest.Alpha); !strings.Contains(text, "of a") || !strings.Contains(text, "of b") {
		t.Errorf("the text lost something: %s", text)
	}
	if reasonsOf(p, guardtest.Alpha) != "text changed_since" {
		t.Errorf("plan: %+v", p.Documents)
	}
}

func TestAnUndoCanBeUndone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.appendLine(t, "a", guardtest.Alpha, "by the agent")
	written := d.look(t)
	d.undo(t, restore.Choice{Scope: scopeOf("a")})
	if strings.Contains(d.text(t, guardtest.Alpha), "by the agent") {
		t.Fatal("the undo did nothing")
	}
	d.undo(t, restore.Choice{Scope: scopeOf("owner")})
	same(t, written, d.look(t))
}

func TestACreatedDocumentStaysWhileAPersonsDocumentIsBelowIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var made guard.CreatedDoc
	d.write(t, "a", guardtest.Projects, true, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, at guard.Doc) (err error) {
		made, err = tx.CreateDoc(ctx, guard.NewDoc{Notebook: at.Notebook(), Title: "Made", IfExists: guard.Fail})
		return err
	})
	_, err := d.Client.Writer().CreateDocAt(context.Background(), guardtest.Work, "/"+made.ID+"/20261130120000-persons.sy", "Of a person", "", nil)
	fine(t, err)
	p := d.undo(t, restore.Choice{})
	if got := reasonsOf(p, made.ID); got != "document holds_others" {
		t.Errorf("refused: %q", got)
	}
}

func TestUndoBringsBackAnOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 3 {
		d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: fmt.Sprintf("/%s/2026113012000%d-ordered.sy", guardtest.Projects, i), Title: fmt.Sprint(i)})
	}
	before := d.look(t)
	d.write(t, "a", guardtest.Projects, true, func(ctx context.Context, s *guard.Session, tx *guard.Tx, at guard.Doc) error {
		place := guard.Place{Notebook: at.Notebook(), Doc: &at}
		nodes, err := s.DocsIn(ctx, place)
		if err != nil {
			return err
		}
		var order []guard.Doc
		for _, n := range nodes {
			doc, err := s.Doc(ctx, n.ID, contract.ReadWrite)
			if err != nil {
				return err
			}
			order = append([]guard.Doc{doc}, order...)
		}
		_, err = tx.Reorder(ctx, place, order)
		return err
	})
	if after := d.look(t); after[guardtest.Alpha] == before[guardtest.Alpha] {
		t.Fatal("the order did not change")
	}
	p := d.undo(t, restore.Choice{})
	if p.Refused > 0 {
		t.Errorf("refused: %+v", p.Documents)
	}
	same(t, before, d.look(t))
}

func TestBlocksThatWentToAnotherDocumentComeBackOnlyTogether(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := d.look(t)
	s := d.as(t, "a")
	ctx := context.Background()
	from, err := s.Block(ctx, guardtest.Intro, contract.ReadWriteDelete)
	fine(t, err)
	to, err := s.Doc(ctx, guardtest.Projects, contract.ReadWrite)
	fine(t, err)
	fine(t, s.Write(ctx, guard.Intent{Action: "test", Targets: []guard.Target{from, to}}, func(ctx context.Context, tx *guard.Tx) error {
		_, err := tx.Move(ctx, []guard.Block{from}, guard.Anchor{Block: to.Block(), Side: guard.Into})
		return err
	}))
	alone := d.undo(t, restore.Choice{Doc: guardtest.Alpha})
	if got := reasonsOf(alone, guardtest.Alpha); got != "text blocks_moved" {
		t.Errorf("refused alone: %q", got)
	}
	together := d.undo(t, restore.Choice{})
	if together.Refused > 0 {
		t.Errorf("refused together: %+v", together.Documents)
	}
	same(t, before, d.look(t))
}

// A connector that ends during a write leaves an open point behind.
func TestAPointWhoseWriteWasInterruptedIsUndoneOnlyIfNothingHappened(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("written %t", after), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			s := d.as(t, "a")
			ctx := context.Background()
			at, err := s.Doc(ctx, guardtest.Alpha, contract.ReadWrite)
			fine(t, err)
			entry := crash{before: !after, close: d.store.Close}
			err = s.Write(ctx, guard.Intent{Action: "test", Targets: []guard.Target{at}, Entry: entry}, func(ctx context.Context, tx *guard.Tx) error {
				_, err := tx.Append(ctx, at.Block(), markdown("interrupted"))
				return err
			})
			if after {
				fine(t, err)
			} else if !errors.Is(err, errCrash) {
				t.Fatalf("error %v, want the crash", err)
			}
			d.reopen(t)
			points, err := d.store.Points(restore.Choice{})
			fine(t, err)
			if len(points) != 1 || !points[0].Open || points[0].Version == "" {
				t.Fatalf("points %+v, want one open with a version", points)
			}
			p := d.plan(t, restore.Choice{})
			want := ""
			if after {
				want = "document not_known"
			}
			if got := reasonsOf(p, guardtest.Alpha); got != want || !p.Empty() {
				t.Errorf("refused %q, want %q; empty %t", got, want, p.Empty())
			}
		})
	}
}

var errCrash = errors.New("killed")

// crash is an Entry that closes the store of points: nothing more gets into it.
type crash struct {
	before bool // nothing gets to the kernel either
	close  func() error
}

func (c crash) Step(context.Context, guard.Step) error {
	if err := c.close(); err != nil {
		return err
	}
	if c.before {
		return errCrash
	}
	return nil
}

func (crash) Drop(context.Context) error { return nil }

func TestUndoDoesNotTellOfWhatItsCallerMayNotRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.appendLine(t, "a", guardtest.Entry, "in the diary")
	points, err := d.store.Points(restore.Choice{})
	fine(t, err)
	p, err := undo.Make(context.Background(), d.Session(t, map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete}), points, time.Time{})
	fine(t, err)
	if len(p.Documents) != 0 {
		t.Errorf("plan tells of %+v", p.Documents)
	}
	p, err = undo.Make(context.Background(), d.Session(t, map[string]contract.Level{guardtest.Diary: contract.Read}), points, time.Time{})
	fine(t, err)
	if got := reasonsOf(p, guardtest.Entry); got != "text not_allowed" {
		t.Errorf("a reader is refused %q", got)
	}
}

func TestWhatBeganBeforeTheGivenTimeIsLeft(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	start := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	d.appendLine(t, "a", guardtest.Alpha, "early")
	d.Pass(5 * time.Minute)
	since := start.Add(5 * time.Minute)
	d.appendLine(t, "a", guardtest.Alpha, "late")
	d.appendLine(t, "a", guardtest.Projects, "late too")
	p := d.undo(t, restore.Choice{Since: since})
	if got := reasonsOf(p, guardtest.Alpha); got != "document began_before" {
		t.Errorf("refused %q", got)
	}
	if strings.Contains(d.text(t, guardtest.Projects), "late too") || !strings.Contains(d.text(t, guardtest.Alpha), "late") {
		t.Error("not exactly Projects was brought back")
	}
}
