package restore_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/siyuan"
)

// saveCell saves a point of a database with a cell that said a text.
func (s *shelf) saveCell(t *testing.T, text string) *guard.Point {
	t.Helper()
	p := &guard.Point{Doc: "av", Made: s.now, Last: s.now, Before: guard.DocState{There: true}, Cells: &guard.Cells{Cells: []guard.CellChange{{
		Row: "row", Column: "column", Type: "text", Before: &guard.CellImage{Text: &siyuan.ValueText{Content: text}}, Was: "was", After: "is",
	}}}}
	fine(t, s.Save(context.Background(), agent, p))
	return p
}

func TestTheOldestCellsGiveWayToTheBytesOfNewOnesAndDocumentsStay(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{Cells: 10_000})
	s.save(t, agent, "document")
	for i := range 6 {
		s.saveCell(t, fmt.Sprint(i)+strings.Repeat("x", 3000)) // three are under the bound, four above it
	}
	points, err := s.Points(restore.Choice{})
	fine(t, err)
	var kept []string
	for _, p := range points {
		if p.Cells == nil {
			kept = append(kept, p.Doc)
			continue
		}
		kept = append(kept, p.Cells.Cells[0].Before.Text.Content[:1])
	}
	if got := strings.Join(kept, " "); got != "5 4 3 document" {
		t.Errorf("kept %q, want the newest three and the document", got)
	}
}

func TestWhatACellSaidLeavesTheFileOnceItIsBroughtBack(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{})
	p := s.saveCell(t, "what the cell said")
	has := func() bool {
		t.Helper()
		fine(t, s.Close())
		file, err := os.ReadFile(s.cfg.Path)
		fine(t, err)
		s.open(t)
		return bytes.Contains(file, []byte("what the cell said"))
	}
	if !has() {
		t.Fatal("the test looks in the wrong place")
	}
	fine(t, s.Undone(p.ID))
	if has() {
		t.Error("the file still has it")
	}
	if got := s.count(t, restore.Choice{}); got != 0 {
		t.Errorf("%d points are left to undo", got)
	}
}

func TestAFileFromBeforeCellsWereKeptIsTakenOver(t *testing.T) {
	t.Parallel()
	s := open(t, restore.Config{})
	s.save(t, agent, "document")
	fine(t, s.Close())
	conn, err := sqlite.OpenConn(s.cfg.Path, sqlite.OpenReadWrite)
	fine(t, err)
	fine(t, sqlitex.ExecuteScript(conn, "DROP INDEX points_cells; ALTER TABLE points DROP COLUMN cells", nil))
	fine(t, conn.Close())
	s.open(t)
	s.saveCell(t, "x")
	if got := s.count(t, restore.Choice{}); got != 2 {
		t.Errorf("%d points, want 2", got)
	}
}
