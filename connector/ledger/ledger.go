package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"siyuan-broker/contract"
)

// Bounds of a ledger, and how long it remembers.
const (
	DefaultKeep    = 7 * 24 * time.Hour
	DefaultEntries = 50_000
	DefaultBytes   = 64 << 20

	// Skew is how far a key's time may be ahead of the ledger's clock.
	Skew = 5 * time.Minute

	pageSize   = 4096
	reserve    = 1 << 20 // kept free, so that a write that began can be ended
	pruneEvery = 10 * time.Minute
	busy       = time.Second // for a connector that just ends
)

// Config is what a ledger is made of. The zero value of a field means its
// default.
type Config struct {
	Path    string           // of the file; required
	Keep    time.Duration    // how long a request is remembered
	Entries int              // most requests remembered at a time
	Bytes   int64            // largest size of the file
	Share   int              // most requests of one scope; default half of Entries, as it has half of Bytes
	Now     func() time.Time // default time.Now
	// Fresh says that this home never wrote before, so that an empty ledger is no
	// loss. Without it a new file refuses keys that are older than itself: they may
	// have been used under the ledger that is gone.
	Fresh bool
}

// Ledger is an open ledger file. One process may have it open at a time. It is
// safe for concurrent use.
type Ledger struct {
	cfg Config

	mu      sync.Mutex // of the connection and all below
	conn    *sqlite.Conn
	floor   time.Time // keys from before are refused
	pruned  time.Time
	running map[string]chan struct{} // closed when the call of a key ends
}

const schema = `
CREATE TABLE IF NOT EXISTS about (floor INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS writes (
	scope TEXT NOT NULL, id TEXT NOT NULL,
	action TEXT NOT NULL, digest BLOB NOT NULL,
	began INTEGER NOT NULL, state INTEGER NOT NULL, answer BLOB,
	PRIMARY KEY (scope, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS writes_began ON writes (began);
CREATE INDEX IF NOT EXISTS writes_scope ON writes (scope, began);
CREATE TABLE IF NOT EXISTS steps (
	scope TEXT NOT NULL, id TEXT NOT NULL, n INTEGER NOT NULL, step TEXT NOT NULL,
	PRIMARY KEY (scope, id, n)) WITHOUT ROWID;
`

// InUse reports whether an error of opening means that a running connector has the
// ledger open.
func InUse(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy }

// Open opens the ledger file, making it when there is none. A file that is in use
// or damaged is an error.
func Open(cfg Config) (*Ledger, error) {
	if cfg.Keep == 0 {
		cfg.Keep = DefaultKeep
	}
	if cfg.Entries == 0 {
		cfg.Entries = DefaultEntries
	}
	if cfg.Bytes == 0 {
		cfg.Bytes = DefaultBytes
	}
	if cfg.Share == 0 {
		cfg.Share = max(1, cfg.Entries/2)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	conn, err := sqlite.OpenConn(cfg.Path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, fmt.Errorf("open the ledger of writes %s: %w", cfg.Path, err)
	}
	conn.SetBusyTimeout(busy) // the library's default is to wait for ever
	l := &Ledger{cfg: cfg, conn: conn, running: map[string]chan struct{}{}}
	if err := l.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the ledger of writes %s: %w; if no other connector has it open, move it away", cfg.Path, err), conn.Close())
	}
	return l, nil
}

func (l *Ledger) prepare() error {
	for _, setting := range []string{
		fmt.Sprintf("page_size = %d", pageSize), "locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL",
		"secure_delete = ON", fmt.Sprintf("max_page_count = %d", l.cfg.Bytes/pageSize),
	} {
		if err := sqlitex.ExecuteTransient(l.conn, "PRAGMA "+setting, nil); err != nil {
			return err
		}
	}
	if err := sqlitex.ExecuteScript(l.conn, schema, nil); err != nil {
		return err
	}
	known := false
	err := l.query("SELECT floor FROM about", nil, func(s *sqlite.Stmt) error {
		known, l.floor = true, time.UnixMilli(s.ColumnInt64(0))
		return nil
	})
	if err != nil {
		return err
	}
	if !known {
		if !l.cfg.Fresh {
			l.floor = l.cfg.Now()
		}
		if err := l.exec("INSERT INTO about (floor) VALUES (?)", l.floor.UnixMilli()); err != nil {
			return err
		}
	}
	return l.prune()
}

// Close closes the file. Calls under way find it closed and fail before they
// write anything.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil
	}
	err := l.conn.Close()
	l.conn = nil
	return err
}

var errClosed = errors.New("the ledger is closed")

// Stats is how full a ledger is.
type Stats struct {
	Entries   int       `json:"entries"`
	Most      int       `json:"most"`
	Bytes     int64     `json:"bytes"`
	MostBytes int64     `json:"most_bytes"`
	Undecided int       `json:"undecided"` // requests whose outcome is not known
	Oldest    time.Time `json:"oldest,omitzero"`
}

// Stats tells how full the ledger is.
func (l *Ledger) Stats() (Stats, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := Stats{Most: l.cfg.Entries, MostBytes: l.cfg.Bytes}
	if l.conn == nil {
		return st, errClosed
	}
	err := l.query("SELECT count(*), coalesce(sum(state = ?), 0), coalesce(min(began), 0) FROM writes", []any{int(open)}, func(s *sqlite.Stmt) error {
		st.Entries, st.Undecided = s.ColumnInt(0), s.ColumnInt(1)
		if ms := s.ColumnInt64(2); ms > 0 {
			st.Oldest = time.UnixMilli(ms)
		}
		return nil
	})
	if err != nil {
		return st, err
	}
	st.Bytes, err = l.used()
	return st, err
}

// used is how many bytes of the file hold something.
func (l *Ledger) used() (int64, error) {
	var pages int64
	err := l.query("SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count)", nil, func(s *sqlite.Stmt) error {
		pages = s.ColumnInt64(0)
		return nil
	})
	return pages * pageSize, err
}

// room refuses a new request of a scope when the ledger is full, or when the
// scope has taken up its share: one agent must not end the writing of all.
func (l *Ledger) room(scope string) error {
	entries, mine := 0, 0
	err := l.query("SELECT (SELECT count(*) FROM writes), (SELECT count(*) FROM writes WHERE scope = ?)", []any{scope}, func(s *sqlite.Stmt) error {
		entries, mine = s.ColumnInt(0), s.ColumnInt(1)
		return nil
	})
	if err != nil {
		return err
	}
	used, err := l.used()
	if err != nil {
		return err
	}
	if entries >= l.cfg.Entries || used >= l.cfg.Bytes-reserve {
		return contract.Fail(contract.LedgerFull, "The connector remembers %d writes of the last %s and has no room for another; nothing was executed.", entries, days(l.cfg.Keep)).
			WithHint("The home owner can give it more: ledger_entries and ledger_mb.")
	}
	full := mine >= l.cfg.Share
	if !full && used >= l.cfg.Bytes/2 { // only then one scope can have taken half
		bytes, err := l.bytesOf(scope)
		if err != nil {
			return err
		}
		full = bytes >= l.cfg.Bytes/2
	}
	if full {
		return contract.Fail(contract.LedgerFull, "The connector remembers %d writes of this agent of the last %s, which is its share; nothing was executed.", mine, days(l.cfg.Keep)).
			WithHint("The oldest are forgotten as they come of age. The home owner can make the ledger larger: ledger_entries and ledger_mb.")
	}
	return nil
}

// bytesOf is what the rows of a scope hold, without SQLite's own bookkeeping.
func (l *Ledger) bytesOf(scope string) (n int64, err error) {
	const sum = `SELECT (SELECT coalesce(sum(length(scope) + length(id) + length(digest) + coalesce(length(answer), 0)), 0) FROM writes WHERE scope = ?1)
		+ (SELECT coalesce(sum(length(scope) + length(id) + length(step)), 0) FROM steps WHERE scope = ?1)`
	err = l.query(sum, []any{scope}, func(s *sqlite.Stmt) error { n = s.ColumnInt64(0); return nil })
	return n, err
}

func days(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}

// prune forgets requests whose keys are refused by now.
func (l *Ledger) prune() error {
	now := l.cfg.Now()
	if now.Sub(l.pruned) < pruneEvery {
		return nil
	}
	before := now.Add(-l.cfg.Keep - 2*Skew).UnixMilli()
	err := l.transact(func() error {
		if err := l.exec("DELETE FROM steps WHERE (scope, id) IN (SELECT scope, id FROM writes WHERE began < ?)", before); err != nil {
			return err
		}
		return l.exec("DELETE FROM writes WHERE began < ?", before)
	})
	if err == nil {
		l.pruned = now
	}
	return err
}

func (l *Ledger) exec(query string, args ...any) error { return l.query(query, args, nil) }

func (l *Ledger) query(query string, args []any, row func(*sqlite.Stmt) error) error {
	return sqlitex.Execute(l.conn, query, &sqlitex.ExecOptions{Args: args, ResultFunc: row})
}

// transact runs f in a transaction that is on disk when it returns nil.
func (l *Ledger) transact(f func() error) (err error) {
	if l.conn == nil {
		return errClosed
	}
	end, err := sqlitex.ImmediateTransaction(l.conn)
	if err != nil {
		return err
	}
	defer end(&err)
	return f()
}

// within runs f with the connection.
func (l *Ledger) within(f func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return errClosed
	}
	return f()
}

// take makes the caller the only one that runs a key; it waits for the one that
// does. It gives up with the context.
func (l *Ledger) take(ctx context.Context, key string) error {
	for {
		l.mu.Lock()
		other := l.running[key]
		if other == nil {
			l.running[key] = make(chan struct{})
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *Ledger) give(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.running[key])
	delete(l.running, key)
}
