package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoPush means that the listening address does not carry LISTEN.
var ErrNoPush = errors.New("the database address goes through a pooler in transaction mode, which does not carry LISTEN, so this node would learn of changed levels up to 30 seconds late: " +
	"set DATABASE_DIRECT_URL to an address that leads straight to PostgreSQL (DATABASE_URL may stay as it is)")

// pushPatience is how long a push may take before a pooler is to blame.
const pushPatience = 2 * time.Second

// CanListen tells whether pushes reach Listen: nil, ErrNoPush, or an error of
// the connection.
func (s *Store) CanListen(ctx context.Context) error { return CanListen(ctx, s.listenDSN) }

// CanListen tells whether an address carries LISTEN: nil, ErrNoPush, or an error
// of the connection.
func CanListen(ctx context.Context, dsn string) error {
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		return ErrAddress
	}
	conf.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return fmt.Errorf("connect to listen: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// A pooler makes up the process id it greets with.
	var pid uint32
	if err := conn.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
		return fmt.Errorf("ask who answers: %w", err)
	}
	if pid == conn.PgConn().PID() {
		return nil
	}
	return awaitOwnPush(ctx, conn, conf)
}

// awaitOwnPush listens and has another connection push: a pooler that keeps the
// session delivers it, one in transaction mode does not.
func awaitOwnPush(ctx context.Context, conn *pgx.Conn, conf *pgx.ConnConfig) error {
	channel := "siyuan_probe_" + strings.ToLower(rand.Text())
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	other, err := pgx.ConnectConfig(ctx, conf) // not conn.Config(): that one hands notifications to conn
	if err != nil {
		return fmt.Errorf("connect to push: %w", err)
	}
	defer other.Close(context.WithoutCancel(ctx))
	if _, err := other.Exec(ctx, "notify "+channel); err != nil {
		return fmt.Errorf("push: %w", err)
	}
	patience, cancel := context.WithTimeout(ctx, pushPatience)
	defer cancel()
	if _, err := conn.WaitForNotification(patience); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrNoPush
	}
	return nil
}
