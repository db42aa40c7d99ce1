package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"siyuan-broker/migrations"
)

// Migrate brings the schema to the newest version and applies the grants. It
// connects as the owner, past any transaction pooler (it holds an advisory lock,
// so that nodes starting together migrate once). It returns the schema version.
func Migrate(ctx context.Context, ownerDSN string, roles Roles) (version int64, err error) {
	conf, err := pgx.ParseConfig(ownerDSN)
	if err != nil {
		return 0, fmt.Errorf("migrations: database address: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return 0, fmt.Errorf("migrations: connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := checkRoles(ctx, conn, roles); err != nil {
		return 0, err
	}

	db := stdlib.OpenDB(*conf)
	defer func() { err = errors.Join(err, db.Close()) }()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 120)) // tries each second, for two minutes
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	if err := grant(ctx, conn, roles); err != nil {
		return 0, err
	}
	if version, err = provider.GetDBVersion(ctx); err != nil {
		return 0, fmt.Errorf("migrations: version: %w", err)
	}
	return version, nil
}

// grant applies the grants in one transaction, one node at a time.
func grant(ctx context.Context, conn *pgx.Conn, roles Roles) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('siyuan grants')),
			set_config('siyuan.service', $1, true), set_config('siyuan.recorder', $2, true)`,
			roles.Service.Name, roles.Recorder.Name)
		if err != nil {
			return fmt.Errorf("grants: %w", err)
		}
		if _, err := tx.Exec(ctx, migrations.Grants); err != nil {
			return fmt.Errorf("grants: %w", err)
		}
		return nil
	})
}
