package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/undo"
)

func TestSinceIsATimeOfTodayOrYesterdayOrADayOrAnAge(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*3600)
	now := time.Date(2026, 11, 30, 14, 30, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"14:05":                time.Date(2026, 11, 30, 14, 5, 0, 0, zone),
		"14:31":                time.Date(2026, 11, 29, 14, 31, 0, 0, zone),
		"2026-11-28 08:00":     time.Date(2026, 11, 28, 8, 0, 0, 0, zone),
		"2026-11-28T08:00:00Z": time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC),
		"2h":                   now.Add(-2 * time.Hour),
	} {
		if got, err := since(text, now); err != nil || !got.Equal(want) {
			t.Errorf("since %q is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "noon", "-2h", "25:00"} {
		if got, err := since(text, now); err == nil {
			t.Errorf("since %q is taken for %v", text, got)
		}
	}
}

func TestUndoOfNothingNamedListsAndIsNeverApplied(t *testing.T) {
	t.Parallel()
	if _, list, err := (undoFlags{}).choice(nil, time.Now()); err != nil || !list {
		t.Errorf("list %t, error %v; want the list", list, err)
	}
	if _, _, err := (undoFlags{apply: true}).choice(nil, time.Now()); err == nil {
		t.Error("everything would be undone")
	}
	c, list, err := undoFlags{apply: true}.choice([]string{"12"}, time.Now())
	if err != nil || list || c.Sitting != 12 {
		t.Errorf("choice %+v, list %t, error %v; want sitting 12", c, list, err)
	}
	if _, _, err := (undoFlags{}).choice([]string{"x"}, time.Now()); err == nil {
		t.Error("x is taken for a number")
	}
}

func TestThePlanSaysWhatWouldHappenAndWhatIsLeft(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	err := printPlan(&b, undo.Plan{Documents: []undo.Document{
		{ID: "20240102100100-alphadc", Title: "Al\u001bpha", Effect: undo.Restored, Parts: []string{"text", "place"}},
		{ID: "20240102100000-projdoc", Title: "Projects", Effect: undo.Nothing, Refused: []undo.Refusal{{Part: "text", Text: "somebody else changed it since"}}},
	}}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := `20240102100100-alphadc  "Al\x1bpha"  would be brought back: text, place
20240102100000-projdoc  "Projects"  stays as it is
    text is left: somebody else changed it since
`
	if b.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", b.String(), want)
	}
}

func TestADatabaseIsPrintedWithTheNumbersOfItsCellsAndRows(t *testing.T) {
	t.Parallel()
	plan := undo.Plan{Documents: []undo.Document{{
		ID: "20240106120000-taskavs", Kind: undo.Database, Title: "/Beta: Tasks", Effect: undo.Restored, Parts: []string{"cells", "rows"}, Cells: 3, Rows: 1,
		Refused: []undo.Refusal{{Part: "cells", Reason: "option_gone", Text: "the column has not that option any more", Count: 2}},
	}}}
	var b strings.Builder
	if err := printPlan(&b, plan, true); err != nil {
		t.Fatal(err)
	}
	want := `20240106120000-taskavs  database "/Beta: Tasks"  brought back: 3 cells, 1 rows that it added go
    left of its cells: 2: the column has not that option any more
`
	if b.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTheListNamesWhatCannotBeUndone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 14, 5, 0, 0, time.UTC)
	var b strings.Builder
	err := printSittings(&b, []restore.Sitting{{ID: 12, Agent: "Claude", Began: at, Last: at.Add(time.Minute), Documents: 3, Others: []restore.Note{{At: at, Action: "notebook.rename"}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := "    12  2026-11-30 14:05 to 14:06  \"Claude\": 3 documents and databases\n        cannot be undone: notebook.rename at 14:05\n"
	if b.String() != want {
		t.Errorf("printed %q, want %q", b.String(), want)
	}
}

// book is a home with one plan that notes what was agreed to.
type book struct {
	plan   undo.Plan
	undone []string // the stamps
}

func (b *book) Sittings(context.Context) ([]restore.Sitting, error) { return nil, nil }

func (b *book) Preview(context.Context, restore.Choice) (undo.Plan, error) { return b.plan, nil }

func (b *book) Undo(_ context.Context, _ restore.Choice, seen string) (undo.Plan, error) {
	b.undone = append(b.undone, seen)
	return b.plan, nil
}

func (b *book) Close() error { return nil }

func TestAnUndoIsShownAndAgreedToBeforeItIsDone(t *testing.T) {
	t.Parallel()
	something := undo.Plan{Stamp: "seen", Documents: []undo.Document{{ID: "d", Title: "T", Effect: undo.Removed}}}
	nothing := undo.Plan{Stamp: "none", Documents: []undo.Document{{ID: "d", Title: "T", Effect: undo.Nothing}}}
	yes, no := func() bool { return true }, func() bool { return false }
	for name, c := range map[string]struct {
		plan    undo.Plan
		apply   bool
		confirm func() bool
		undone  string // the stamps
		code    int
		shown   string
	}{
		"preview":       {something, false, nil, "", cli.ExitOK, "To do it, add --apply."},
		"yes":           {something, true, yes, "[seen]", cli.ExitOK, "would be removed"},
		"no":            {something, true, no, "", cli.ExitConfirmation, "would be removed"},
		"nobody to ask": {something, true, nil, "[]", cli.ExitOK, "the agent had made it"},
		"nothing to do": {nothing, true, yes, "", cli.ExitOK, "stays as it is"},
	} {
		b := &book{plan: c.plan}
		var out strings.Builder
		f := undoFlags{apply: c.apply, confirm: c.confirm}
		err := f.run(t.Context(), &out, b, restore.Choice{Sitting: 1}, false)
		undone := ""
		for _, stamp := range b.undone {
			undone += "[" + stamp + "]"
		}
		if cli.CodeOf(err) != c.code || undone != c.undone || !strings.Contains(out.String(), c.shown) {
			t.Errorf("%s: %v, undone %q, printed\n%s", name, err, undone, &out)
		}
	}
}
