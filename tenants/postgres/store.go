package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"siyuan-broker/tenants"
)

// Options say how the store reaches its database.
type Options struct {
	ServiceDSN  string
	RecorderDSN string
	ListenDSN   string // the service, direct; empty: ServiceDSN
	// MasterKey seals signing keys: 32 bytes. OldMasterKeys still open what was
	// sealed before a change of the key; see Reseal.
	MasterKey     []byte
	OldMasterKeys [][]byte
	MaxConns      int32 // of the service; 0: 16
	RecorderConns int32 // 0: 2
	Logger        *slog.Logger
}

// Store is tenants.Store in PostgreSQL. It is safe for concurrent use.
type Store struct {
	service    *pgxpool.Pool
	recorder   *pgxpool.Pool
	listenDSN  string
	listenIdle time.Duration // how long to wait for a push before asking whether the connection lives
	box        *keyBox
	codeKey    []byte // under which short codes are hashed
	logger     *slog.Logger
}

var _ tenants.Store = (*Store)(nil)

// Open prepares the pools and checks that both roles are let in.
func Open(ctx context.Context, o Options) (*Store, error) {
	box, err := newKeyBox(o.MasterKey, o.OldMasterKeys)
	if err != nil {
		return nil, err
	}
	s := &Store{listenDSN: o.ListenDSN, listenIdle: 15 * time.Second, box: box, codeKey: codeKey(o.MasterKey), logger: o.Logger}
	if s.listenDSN == "" {
		s.listenDSN = o.ServiceDSN
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.service, err = openPool(ctx, o.ServiceDSN, orDefault(o.MaxConns, 16)); err != nil {
		return nil, fmt.Errorf("open database as the service: %w", err)
	}
	if s.recorder, err = openPool(ctx, o.RecorderDSN, orDefault(o.RecorderConns, 2)); err != nil {
		s.service.Close()
		return nil, fmt.Errorf("open database as the recorder: %w", err)
	}
	return s, nil
}

func orDefault(n, fallback int32) int32 {
	if n == 0 {
		return fallback
	}
	return n
}

func openPool(ctx context.Context, dsn string, maxConns int32) (*pgxpool.Pool, error) {
	conf, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	conf.MaxConns = maxConns
	conf.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // nothing prepared: poolers mix connections
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// Close waits for running queries and closes the connections.
func (s *Store) Close() {
	s.service.Close()
	s.recorder.Close()
}

// Ping reports whether the store answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.service.Ping(ctx); err != nil {
		return fmt.Errorf("database does not answer: %w", err)
	}
	return nil
}

// In runs fn in one transaction of one tenant. The setting that row-level
// security looks at travels with BEGIN, so it costs no round trip, and ends with
// the transaction.
func (s *Store) In(ctx context.Context, tenant tenants.ID, fn func(tenants.Tx) error) error {
	// A UUID's text needs no quoting, and BEGIN takes no parameters.
	begin := "begin; select set_config('app.tenant', '" + tenant.String() + "', true)"
	err := pgx.BeginTxFunc(ctx, s.service, pgx.TxOptions{BeginQuery: begin}, func(t pgx.Tx) error {
		return fn(&tx{db: t, tenant: tenant, box: s.box})
	})
	if err != nil {
		return failure(err, "tenant %s", tenant)
	}
	return nil
}

// tx is one tenant's transaction.
type tx struct {
	db     pgx.Tx
	tenant tenants.ID
	box    *keyBox
}

var _ tenants.Tx = (*tx)(nil)

// door names the setting that lets a single statement see rows.
type door string

const (
	asTenant    door = "app.tenant"
	asPerson    door = "app.person"
	asConnector door = "app.fingerprint"
)

// through runs statements with one setting in one round trip: a batch without
// BEGIN is one transaction, and the setting is local to it.
func (s *Store) through(ctx context.Context, d door, value string, queue func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	b.Queue("select set_config($1, $2, true)", string(d), value)
	queue(b)
	return s.service.SendBatch(ctx, b).Close()
}

// Database codes that a caller of the store can act on.
var (
	conflictCodes = []string{"23505"}                                     // unique_violation
	missingCodes  = []string{"23503"}                                     // foreign_key_violation
	invalidCodes  = []string{"23514", "23502", "22P02", "22001", "22021"} // check, not null, text form, length, encoding
)

const lastOwnerCode = "SY001" // raised by the schema's keep_an_owner

// failure says what failed and turns the database's codes into the domain's
// errors.
func failure(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	kind := error(nil)
	switch {
	case errors.Is(err, pgx.ErrNoRows), isCode(err, missingCodes...):
		kind = tenants.ErrNotFound
	case isCode(err, conflictCodes...):
		kind = tenants.ErrConflict
	case isCode(err, invalidCodes...):
		kind = tenants.ErrInvalid
	case isCode(err, lastOwnerCode):
		kind = tenants.ErrLastOwner
	}
	if kind == nil || errors.Is(err, kind) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w (%w)", what, kind, err)
}

// exec runs a statement that must touch a row.
func (t *tx) exec(ctx context.Context, what, sql string, args ...any) error {
	tag, err := t.db.Exec(ctx, sql, args...)
	if err != nil {
		return failure(err, "%s", what)
	}
	if tag.RowsAffected() == 0 {
		return failure(tenants.ErrNotFound, "%s", what)
	}
	return nil
}

// run runs a statement that may touch no row.
func (t *tx) run(ctx context.Context, what, sql string, args ...any) error {
	if _, err := t.db.Exec(ctx, sql, args...); err != nil {
		return failure(err, "%s", what)
	}
	return nil
}

// list collects rows.
func list[T any](ctx context.Context, t *tx, what string, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := t.db.Query(ctx, sql, args...)
	if err != nil {
		return nil, failure(err, "%s", what)
	}
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, failure(err, "%s", what)
	}
	return all, nil
}

// one reads a row that must exist.
func one[T any](ctx context.Context, t *tx, what string, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	rows, err := t.db.Query(ctx, sql, args...)
	if err == nil {
		var v T
		if v, err = pgx.CollectExactlyOneRow(rows, scan); err == nil {
			return v, nil
		}
	}
	var zero T
	return zero, failure(err, "%s", what)
}
