package restore

import (
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"siyuan-broker/connector/guard"
)

// Sitting is what one author wrote without a long pause, or in one conversation.
type Sitting struct {
	ID        int64     `json:"id"`
	Scope     string    `json:"-"`
	Agent     string    `json:"agent"`
	Began     time.Time `json:"began"`
	Last      time.Time `json:"last"`
	Documents int       `json:"documents"`      // with points that are not undone; databases too
	Writes    int       `json:"writes"`         // that came to their end; 0 where they were not counted yet
	Undo      bool      `json:"undo,omitempty"` // it took others back
	Others    []Note    `json:"not_undoable,omitempty"`
}

// Note is a write that no point can bring back.
type Note struct {
	At     time.Time `json:"at"`
	Action string    `json:"action"`
}

// maxSittings bounds a list.
const maxSittings = 200

// Sittings lists them, the newest first; scope "" means those of all authors.
func (s *Store) Sittings(scope string) ([]Sitting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, errClosed
	}
	all := []Sitting{}
	const q = `SELECT id, scope, name, began, last, (SELECT count(DISTINCT doc) FROM points WHERE sitting = sittings.id AND undone = 0), conversation, writes
		FROM sittings WHERE ? IN ('', scope) ORDER BY last DESC, id DESC LIMIT ?`
	err := s.query(q, []any{scope, maxSittings}, func(row *sqlite.Stmt) error {
		all = append(all, Sitting{
			ID: row.ColumnInt64(0), Scope: row.ColumnText(1), Agent: row.ColumnText(2),
			Began: time.UnixMilli(row.ColumnInt64(3)), Last: time.UnixMilli(row.ColumnInt64(4)), Documents: row.ColumnInt(5),
			Undo: strings.HasPrefix(row.ColumnText(6), undoPrefix), Writes: row.ColumnInt(7),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list sittings: %w", err)
	}
	for i := range all {
		err := s.query("SELECT at, action FROM notes WHERE sitting = ? ORDER BY at", []any{all[i].ID}, func(row *sqlite.Stmt) error {
			all[i].Others = append(all[i].Others, Note{time.UnixMilli(row.ColumnInt64(0)), row.ColumnText(1)})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list sittings: %w", err)
		}
	}
	return all, nil
}

// undoPrefix begins the conversation of every undo.
const undoPrefix = "undo "

// UndoConversation is the conversation in which an undo writes, so that its restore
// points are a sitting of their own.
func UndoConversation(requestID string) string { return undoPrefix + requestID }

// Choice says which points are meant. The zero value of a field means any.
type Choice struct {
	Scope   string // of one author
	Sitting int64
	Doc     string    // or a database
	Since   time.Time // written to at or after it
	NoUndo  bool      // without what undos wrote
}

// Points lists the points that are not undone, the newest first.
func (s *Store) Points(c Choice) ([]guard.Point, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, errClosed
	}
	since := int64(0)
	if !c.Since.IsZero() {
		since = c.Since.UnixMilli()
	}
	var all []guard.Point
	const q = `SELECT p.id, p.point FROM points p JOIN sittings s ON s.id = p.sitting
		WHERE undone = 0 AND ? IN ('', s.scope) AND ? IN (0, p.sitting) AND ? IN ('', p.doc) AND p.last >= ?
		AND (? = 0 OR s.conversation NOT LIKE ? || '%') ORDER BY p.id DESC`
	err := s.query(q, []any{c.Scope, c.Sitting, c.Doc, since, c.NoUndo, undoPrefix}, func(row *sqlite.Stmt) error {
		p, err := pointOf(row.ColumnInt64(0), row.ColumnText(1))
		all = append(all, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list restore points: %w", err)
	}
	return all, nil
}

// Undone marks points as brought back. What those of databases say of cells is not
// needed any more and goes.
func (s *Store) Undone(ids ...int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transact(func() error {
		for _, id := range ids {
			const q = "UPDATE points SET undone = ?, point = CASE WHEN cells > 0 THEN '{}' ELSE point END, cells = 0 WHERE id = ?"
			if err := s.exec(q, s.cfg.Now().UnixMilli(), id); err != nil {
				return err
			}
		}
		return nil
	})
}
