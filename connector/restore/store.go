package restore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"siyuan-broker/connector/guard"
)

// Bounds of a store, and how long it remembers. SiYuan itself keeps its history
// for 30 days unless told otherwise.
const (
	DefaultKeep   = 30 * 24 * time.Hour
	DefaultPoints = 20_000
	DefaultCells  = 64 << 20 // bytes of points of databases

	// Pause ends a sitting: a write after it begins another.
	Pause = 30 * time.Minute

	maxPoint   = 32 << 10 // bytes of one point; of a longer one the attributes are left out
	maxNotes   = 50       // of a sitting
	pruneEvery = 10 * time.Minute
	busy       = time.Second // for a connector that just ends
)

// Config is what a store is made of. The zero value of a field means its default.
type Config struct {
	Path   string // of the file; required
	Keep   time.Duration
	Points int              // most points at a time; the oldest give way
	Cells  int              // most bytes of points of databases, which hold what cells said; likewise
	Now    func() time.Time // default time.Now
}

// Store is an open file of restore points. One process may have it open at a
// time. It is safe for concurrent use.
type Store struct {
	cfg Config

	mu     sync.Mutex
	conn   *sqlite.Conn
	pruned time.Time
}

var _ guard.Points = (*Store)(nil)

const schema = `
CREATE TABLE IF NOT EXISTS sittings (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	scope TEXT NOT NULL, conversation TEXT NOT NULL, name TEXT NOT NULL,
	began INTEGER NOT NULL, last INTEGER NOT NULL, writes INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS sittings_of ON sittings (scope, conversation, last);
CREATE TABLE IF NOT EXISTS points (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	sitting INTEGER NOT NULL REFERENCES sittings, doc TEXT NOT NULL, ordered INTEGER NOT NULL,
	made INTEGER NOT NULL, last INTEGER NOT NULL, undone INTEGER NOT NULL DEFAULT 0, point TEXT NOT NULL,
	cells INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS points_of ON points (sitting, doc);
CREATE INDEX IF NOT EXISTS points_doc ON points (doc, made);
CREATE TABLE IF NOT EXISTS notes (
	sitting INTEGER NOT NULL REFERENCES sittings, at INTEGER NOT NULL, action TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS notes_of ON notes (sitting);
`

// Open opens the file, making it when there is none. A file that is in use or
// damaged is an error.
func Open(cfg Config) (*Store, error) {
	if cfg.Keep == 0 {
		cfg.Keep = DefaultKeep
	}
	if cfg.Points == 0 {
		cfg.Points = DefaultPoints
	}
	if cfg.Cells == 0 {
		cfg.Cells = DefaultCells
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	f, err := os.OpenFile(cfg.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the restore points: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return nil, fmt.Errorf("open the restore points: %w", err)
	}
	conn, err := sqlite.OpenConn(cfg.Path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, fmt.Errorf("open the restore points %s: %w", cfg.Path, err)
	}
	conn.SetBusyTimeout(busy)
	s := &Store{cfg: cfg, conn: conn}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the restore points %s: %w; if no other connector has them open, move the file away", cfg.Path, err), conn.Close())
	}
	return s, nil
}

func (s *Store) prepare() error {
	for _, setting := range []string{"locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"} {
		if err := sqlitex.ExecuteTransient(s.conn, "PRAGMA "+setting, nil); err != nil {
			return err
		}
	}
	if err := sqlitex.ExecuteScript(s.conn, schema, nil); err != nil {
		return err
	}
	return s.transact(func() error {
		for _, c := range []struct{ table, column string }{{"sittings", "writes"}, {"points", "cells"}} {
			if err := s.addColumn(c.table, c.column); err != nil {
				return err
			}
		}
		if err := s.exec("CREATE INDEX IF NOT EXISTS points_cells ON points (id, cells) WHERE cells > 0"); err != nil {
			return err
		}
		return s.prune()
	})
}

// addColumn gives a file of an older connector a number that it did not keep yet.
func (s *Store) addColumn(table, column string) error {
	has := false
	err := s.query("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", []any{table, column}, func(*sqlite.Stmt) error {
		has = true
		return nil
	})
	if err != nil || has {
		return err
	}
	return s.exec("ALTER TABLE " + table + " ADD COLUMN " + column + " INTEGER NOT NULL DEFAULT 0")
}

// Close closes the file. It is safe to call twice.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn = nil
	return err
}

var errClosed = errors.New("the restore points are closed")

// transact runs f in a transaction that is on disk when it returns nil.
func (s *Store) transact(f func() error) (err error) {
	if s.conn == nil {
		return errClosed
	}
	end, err := sqlitex.ImmediateTransaction(s.conn)
	if err != nil {
		return err
	}
	defer end(&err)
	return f()
}

func (s *Store) exec(query string, args ...any) error { return s.query(query, args, nil) }

func (s *Store) query(query string, args []any, row func(*sqlite.Stmt) error) error {
	return sqlitex.Execute(s.conn, query, &sqlitex.ExecOptions{Args: args, ResultFunc: row})
}

// sitting is the one that an author is in, 0 for none.
func (s *Store) sitting(a guard.Author) (id int64, err error) {
	const q = "SELECT id FROM sittings WHERE scope = ? AND conversation = ? AND last > ? ORDER BY last DESC LIMIT 1"
	since := s.cfg.Now().Add(-Pause)
	if a.Conversation != "" { // it says itself what belongs together
		since = time.UnixMilli(0)
	}
	err = s.query(q, []any{a.Scope, a.Conversation, since.UnixMilli()}, func(row *sqlite.Stmt) error {
		id = row.ColumnInt64(0)
		return nil
	})
	return id, err
}

// sit is the sitting that an author is in from now on.
func (s *Store) sit(a guard.Author) (int64, error) {
	now := s.cfg.Now().UnixMilli()
	id, err := s.sitting(a)
	if err != nil {
		return 0, err
	}
	if id != 0 {
		return id, s.exec("UPDATE sittings SET last = ? WHERE id = ?", now, id)
	}
	err = s.exec("INSERT INTO sittings (scope, conversation, name, began, last) VALUES (?, ?, ?, ?, ?)", a.Scope, a.Conversation, a.Name, now, now)
	return s.conn.LastInsertRowID(), err
}

// Last implements guard.Points.
func (s *Store) Last(_ context.Context, a guard.Author, doc string) (p guard.Point, found bool, newest time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return p, false, newest, errClosed
	}
	id, err := s.sitting(a)
	if err != nil {
		return p, false, newest, err
	}
	err = s.query("SELECT id, point FROM points WHERE sitting = ? AND doc = ? AND ordered = 0 AND undone = 0 ORDER BY id DESC LIMIT 1", []any{id, doc}, func(row *sqlite.Stmt) error {
		found = true
		p, err = pointOf(row.ColumnInt64(0), row.ColumnText(1))
		return err
	})
	if err != nil {
		return p, false, newest, fmt.Errorf("find a restore point: %w", err)
	}
	err = s.query("SELECT coalesce(max(made), 0) FROM points WHERE doc = ?", []any{doc}, func(row *sqlite.Stmt) error {
		newest = time.UnixMilli(row.ColumnInt64(0))
		return nil
	})
	return p, found, newest, err
}

func pointOf(id int64, text string) (p guard.Point, err error) {
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read restore point %d: %w", id, err)
	}
	p.ID = id
	return p, nil
}

// Save implements guard.Points.
func (s *Store) Save(_ context.Context, a guard.Author, points ...*guard.Point) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.transact(func() error {
		sitting, err := s.sit(a)
		if err != nil {
			return err
		}
		for _, p := range points {
			if err := s.save(sitting, p); err != nil {
				return err
			}
			if p.Cells != nil {
				if err := s.pruneCells(); err != nil {
					return err
				}
			}
		}
		return s.prune()
	})
	if err != nil {
		return fmt.Errorf("save restore points: %w", err)
	}
	return nil
}

func (s *Store) save(sitting int64, p *guard.Point) error {
	text, err := json.Marshal(p)
	if err == nil && len(text) > maxPoint {
		short := *p
		short.Attrs = nil
		text, err = json.Marshal(short)
	}
	if err != nil {
		return err
	}
	cells := 0
	if p.Cells != nil {
		cells = len(text)
	}
	if p.ID != 0 {
		return s.exec("UPDATE points SET last = ?, point = ?, cells = ? WHERE id = ?", p.Last.UnixMilli(), string(text), cells, p.ID)
	}
	err = s.exec("INSERT INTO points (sitting, doc, ordered, made, last, point, cells) VALUES (?, ?, ?, ?, ?, ?, ?)",
		sitting, p.Doc, p.Order != nil, p.Made.UnixMilli(), p.Last.UnixMilli(), string(text), cells)
	p.ID = s.conn.LastInsertRowID()
	return err
}

// Wrote implements guard.Points.
func (s *Store) Wrote(_ context.Context, a guard.Author) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transact(func() error {
		sitting, err := s.sit(a)
		if err != nil {
			return err
		}
		return s.exec("UPDATE sittings SET writes = writes + 1 WHERE id = ?", sitting)
	})
}

// Note implements guard.Points.
func (s *Store) Note(_ context.Context, a guard.Author, action string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transact(func() error {
		sitting, err := s.sit(a)
		if err != nil {
			return err
		}
		const q = "INSERT INTO notes (sitting, at, action) SELECT ?, ?, ? WHERE (SELECT count(*) FROM notes WHERE sitting = ?) < ?"
		return s.exec(q, sitting, s.cfg.Now().UnixMilli(), action, sitting, maxNotes)
	})
}

// prune forgets what is too old or too much. It needs a transaction.
func (s *Store) prune() error {
	now := s.cfg.Now()
	if err := s.exec("DELETE FROM points WHERE id <= (SELECT max(id) FROM points) - ?", s.cfg.Points); err != nil {
		return err
	}
	if now.Sub(s.pruned) < pruneEvery {
		return nil
	}
	s.pruned = now
	before := now.Add(-s.cfg.Keep).UnixMilli()
	for _, q := range []string{
		"DELETE FROM points WHERE last < ?",
		"DELETE FROM notes WHERE at < ?",
		"DELETE FROM sittings WHERE last < ? AND id NOT IN (SELECT sitting FROM points UNION SELECT sitting FROM notes)",
	} {
		if err := s.exec(q, before); err != nil {
			return err
		}
	}
	return nil
}

// pruneCells forgets the oldest points of databases that are too much together.
func (s *Store) pruneCells() error {
	const q = `DELETE FROM points WHERE cells > 0 AND id <= coalesce((SELECT max(id) FROM
		(SELECT id, sum(cells) OVER (ORDER BY id DESC) AS held FROM points WHERE cells > 0) WHERE held > ?), 0)`
	return s.exec(q, s.cfg.Cells)
}
