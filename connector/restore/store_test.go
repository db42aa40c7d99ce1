package restore_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/siyuan"
)

// shelf is a store with a clock that stands still.
type shelf struct {
	*restore.Store
	cfg restore.Config
	now time.Time
}

func open(t *testing.T, cfg restore.Config) *shelf {
	t.Helper()
	s := &shelf{cfg: cfg, now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	s.cfg.Path = filepath.Join(t.TempDir(), "restore.db")
	s.cfg.Now = func() time.Time { return s.now }
	s.open(t)
	t.Cleanup(func() { fine(t, s.Close()) })
	return s
}

func (s *shelf) open(t *testing.T) {
	t.Helper()
	store, err := restore.Open(s.cfg)
	fine(t, err)
	s.Store = store
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shelf) save(t *testing.T, a guard.Author, doc string) *guard.Point {
	t.Helper()
	p := &guard.Point{Doc: doc, Made: s.now, Last: s.now, Before: guard.DocState{There: true, Text: "before"}, Attrs: siyuan.Attrs{"title": "T"}}
	fine(t, s.Save(context.Background(), a, p))
	return p
}

func (s *shelf) count(t *testing.T, c restore.Choice) int {
	t.Helper()
	all, err := s.Points(c)
	fine(t, err)
	return len(all)
}

var agent = guard.Author{Scope: "t/i/m/a", Name: "agent"}

func TestWritesWithPausesUnderHalfAnHourAreOneSitting(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{})
	for range 3 {
		s.save(t, agent, "d")
		s.now = s.now.Add(29 * time.Minute)
	}
	s.now = s.now.Add(2 * time.Minute)
	s.save(t, agent, "d")
	all, err := s.Sittings("")
	fine(t, err)
	if len(all) != 2 {
		t.Fatalf("%d sittings, want 2", len(all))
	}
	if got := s.count(t, restore.Choice{Sitting: all[1].ID}); got != 3 {
		t.Errorf("%d points in the first, want 3", got)
	}
}

func TestWritesAreCountedBySitting(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{})
	count := func(want ...int) {
		t.Helper()
		all, err := s.Sittings(agent.Scope)
		fine(t, err)
		var got []int
		for _, x := range all {
			got = append(got, x.Writes)
		}
		if !slices.Equal(got, want) {
			t.Errorf("writes %v, want %v", got, want)
		}
	}
	s.save(t, agent, "d")
	count(0)
	for range 3 {
		fine(t, s.Wrote(context.Background(), agent))
	}
	s.now = s.now.Add(time.Hour)
	fine(t, s.Wrote(context.Background(), agent))
	count(1, 3)

	// A file of a connector that did not count is taken over.
	fine(t, s.Close())
	conn, err := sqlite.OpenConn(s.cfg.Path, sqlite.OpenReadWrite)
	fine(t, err)
	fine(t, sqlitex.ExecuteTransient(conn, "ALTER TABLE sittings DROP COLUMN writes", nil))
	fine(t, conn.Close())
	s.open(t)
	count(0, 0)
	fine(t, s.Wrote(context.Background(), agent))
	count(1, 0)
}

func TestAConversationIsOneSittingWhateverItsPauses(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{})
	one, other := agent, agent
	one.Conversation, other.Conversation = "one", "other"
	s.save(t, one, "d")
	s.save(t, other, "d")
	s.now = s.now.Add(3 * time.Hour)
	s.save(t, one, "d")
	all, err := s.Sittings("")
	fine(t, err)
	if len(all) != 2 {
		t.Errorf("%d sittings, want 2", len(all))
	}
}

func TestAnAuthorFindsItsOwnPointsOnly(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{})
	ctx := context.Background()
	other := guard.Author{Scope: "t/i/m/b", Name: "other"}
	mine := s.save(t, agent, "d")
	s.now = s.now.Add(time.Minute)
	s.save(t, other, "d")
	p, found, newest, err := s.Last(ctx, agent, "d")
	fine(t, err)
	if !found || p.ID != mine.ID || p.Attrs["title"] != "T" || !newest.Equal(s.now) {
		t.Errorf("last %+v found %t newest %v, want point %d and %v", p, found, newest, mine.ID, s.now)
	}
	if n := s.count(t, restore.Choice{Scope: other.Scope}); n != 1 {
		t.Errorf("%d points of the other, want 1", n)
	}
	fine(t, s.Undone(mine.ID))
	if _, found, _, err = s.Last(ctx, agent, "d"); found || err != nil {
		t.Errorf("an undone point is found: %t %v", found, err)
	}
}

func TestTheOldestPointsGiveWay(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{Points: 3})
	for _, doc := range []string{"1", "2", "3", "4", "5"} {
		s.save(t, agent, doc)
	}
	points, err := s.Points(restore.Choice{})
	fine(t, err)
	var docs []string
	for _, p := range points {
		docs = append(docs, p.Doc)
	}
	if got := strings.Join(docs, " "); got != "5 4 3" {
		t.Errorf("kept %q, want the newest three", got)
	}
}

func TestPointsAreForgottenAfterTheirTime(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{Keep: 24 * time.Hour})
	s.save(t, agent, "old")
	s.now = s.now.Add(25 * time.Hour)
	s.save(t, agent, "new")
	if got := s.count(t, restore.Choice{}); got != 1 {
		t.Errorf("%d points, want 1", got)
	}
	all, err := s.Sittings("")
	fine(t, err)
	if len(all) != 1 {
		t.Errorf("%d sittings, want 1", len(all))
	}
}

func TestPointsSurviveARestartAndOnlyTheirOwnerReadsTheFile(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{})
	s.save(t, agent, "d")
	fine(t, s.Close())
	s.open(t)
	if got := s.count(t, restore.Choice{Doc: "d"}); got != 1 {
		t.Errorf("%d points, want 1", got)
	}
	info, err := os.Stat(s.cfg.Path)
	fine(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
	if second, err := restore.Open(s.cfg); err == nil {
		t.Error("a second process has the file open too")
		fine(t, second.Close())
	}
}

func TestAnEndlessAttributeIsLeftOutOfAPoint(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{})
	p := &guard.Point{Doc: "d", Made: s.now, Last: s.now, Attrs: siyuan.Attrs{"memo": strings.Repeat("x", 1<<20)}}
	fine(t, s.Save(context.Background(), agent, p))
	all, err := s.Points(restore.Choice{})
	fine(t, err)
	if len(all) != 1 || all[0].Attrs != nil {
		t.Errorf("points %d, attributes kept: %t", len(all), all[0].Attrs != nil)
	}
}

func TestWhatNoPointBringsBackIsListedWithItsSitting(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{})
	for range 60 {
		fine(t, s.Note(context.Background(), agent, "notebook.rename"))
	}
	all, err := s.Sittings(agent.Scope)
	fine(t, err)
	if len(all) != 1 || len(all[0].Others) != 50 || all[0].Others[0].Action != "notebook.rename" {
		t.Errorf("sittings %+v, want one with 50 notes", all)
	}
}
