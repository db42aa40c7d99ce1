package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"siyuan-broker/tenants"
)

// ExecIn runs SQL of a test's own inside a tenant's transaction.
func ExecIn(ctx context.Context, in tenants.Tx, sql string, args ...any) error {
	_, err := in.(*tx).db.Exec(ctx, sql, args...)
	return err
}

// ServicePool is the pool whose connections must not remember a tenant.
func (s *Store) ServicePool() *pgxpool.Pool { return s.service }

// SetListenIdle makes a test's connection be asked sooner whether it lives.
func (s *Store) SetListenIdle(d time.Duration) { s.listenIdle = d }
