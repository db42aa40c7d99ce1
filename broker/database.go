package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pglocal"
)

// The names a broker gives the roles and the database of its own PostgreSQL.
const (
	rolePrefix   = "siyuan"
	databaseName = "siyuan"
)

// masterKeyFile is where a broker keeps the master key nobody configured.
const masterKeyFile = "master.key"

// Database is an open store, with the PostgreSQL server behind it where that is
// the broker's own.
type Database struct {
	*postgres.Store
	Schema int64           // version after migration; 0 when it was not migrated here
	server *pglocal.Server // nil: somebody else's
}

// Lost is closed when the broker's own server ended by itself; nil otherwise.
func (d *Database) Lost() <-chan struct{} {
	if d.server == nil {
		return nil
	}
	return d.server.Done()
}

// Close closes the store and stops the server if it is the broker's own.
func (d *Database) Close(ctx context.Context) error {
	d.Store.Close()
	if d.server == nil {
		return nil
	}
	return d.server.Stop(ctx)
}

// OpenDatabase opens the configured database. The broker's own is started,
// prepared and migrated first, or, while another process runs it, joined; an
// external one must have been migrated (`siyuan-broker migrate`).
func OpenDatabase(ctx context.Context, c *Config, log *slog.Logger) (*Database, error) {
	if c.DatabaseURL != "" {
		store, err := postgres.Open(ctx, c.storeOptions(log))
		if err != nil {
			return nil, err
		}
		return &Database{Store: store}, nil
	}
	return openOwn(ctx, c, log)
}

// JoinDatabase is OpenDatabase for a command that runs beside a broker: where
// that broker runs its own PostgreSQL, the command uses it.
func JoinDatabase(ctx context.Context, c *Config, log *slog.Logger) (*Database, error) {
	db, err := OpenDatabase(ctx, c, log)
	var locked *pglocal.LockedError
	if !errors.As(err, &locked) {
		return db, err
	}
	return AttachDatabase(ctx, c, log)
}

func openOwn(ctx context.Context, c *Config, log *slog.Logger) (_ *Database, err error) {
	server, err := pglocal.Start(ctx, pglocal.Options{DataDir: c.Data, Logger: log.With("part", "postgres")})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, server.Stop(context.WithoutCancel(ctx)))
		}
	}()
	roles := postgres.RolesNamed(rolePrefix)
	if err := postgres.Bootstrap(ctx, server.DSN(pglocal.Superuser, "postgres"), roles, databaseName); err != nil {
		return nil, err
	}
	version, err := postgres.Migrate(ctx, server.DSN(roles.Owner.Name, databaseName), roles)
	if err != nil {
		return nil, err
	}
	var key []byte
	if c.MasterKey != "" {
		key, err = c.masterKey()
	} else {
		key, err = ownMasterKey(c.Data)
	}
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, ownOptions(server.DSN, key, log))
	if err != nil {
		return nil, err
	}
	return &Database{Store: store, Schema: version, server: server}, nil
}

func ownOptions(dsn func(role, database string) string, key []byte, log *slog.Logger) postgres.Options {
	roles := postgres.RolesNamed(rolePrefix)
	return postgres.Options{
		ServiceDSN: dsn(roles.Service.Name, databaseName), RecorderDSN: dsn(roles.Recorder.Name, databaseName),
		MasterKey: key, Logger: log,
	}
}

func (c *Config) storeOptions(log *slog.Logger) postgres.Options {
	key, _ := c.masterKey() // checked by Validate
	return postgres.Options{
		ServiceDSN: c.DatabaseURL, RecorderDSN: c.DatabaseRecord, ListenDSN: c.DatabaseDirect, MasterKey: key, Logger: log,
	}
}

// ownMasterKey is the master key of a broker with its own PostgreSQL: a file
// beside the database, made at the first start.
func ownMasterKey(data string) ([]byte, error) {
	name := filepath.Join(data, masterKeyFile)
	key, err := os.ReadFile(name)
	switch {
	case err == nil && len(key) == 32:
		return key, nil
	case err == nil:
		return nil, fmt.Errorf("%s is damaged: it must have 32 bytes. Restore it from a backup; without it the signing keys in the database cannot be opened", name)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read master key: %w", err)
	}
	key = make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	if err := writeOnce(name, key); err != nil {
		return nil, fmt.Errorf("keep master key: %w", err)
	}
	return key, nil
}

// writeOnce creates a private file that is whole or absent after a crash.
func writeOnce(name string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(content)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Link(tmp.Name(), name) // fails where another process was first
}

// MigrateDatabase brings an external database to the newest schema. With
// DATABASE_ADMIN_URL it makes roles and database first, with the passwords of
// the other addresses.
func MigrateDatabase(ctx context.Context, c *Config, log *slog.Logger) (int64, error) {
	if c.DatabaseURL == "" {
		db, err := openOwn(ctx, c, log)
		if err != nil {
			return 0, err
		}
		return db.Schema, db.Close(ctx)
	}
	roles, database, err := c.roles()
	if err != nil {
		return 0, err
	}
	if c.DatabaseAdmin != "" {
		if err := postgres.Bootstrap(ctx, c.DatabaseAdmin, roles, database); err != nil {
			return 0, err
		}
	}
	return postgres.Migrate(ctx, c.DatabaseDirect, roles)
}

// roles reads role names and passwords from the database addresses.
func (c *Config) roles() (roles postgres.Roles, database string, err error) {
	for _, x := range []struct {
		key, dsn string
		role     *postgres.Role
	}{
		{"database_direct_url", c.DatabaseDirect, &roles.Owner},
		{"database_url", c.DatabaseURL, &roles.Service},
		{"database_recorder_url", c.DatabaseRecord, &roles.Recorder},
	} {
		u, err := url.Parse(x.dsn)
		if err != nil || u.User.Username() == "" || len(u.Path) < 2 {
			return roles, "", fmt.Errorf("%s: not an address of the form postgres://role:password@host:5432/database", x.key)
		}
		password, _ := u.User.Password()
		*x.role = postgres.Role{Name: u.User.Username(), Password: password}
		if x.key == "database_direct_url" {
			database = u.Path[1:]
		}
	}
	return roles, database, nil
}

// AdoptDatabase turns an administrator's address in database_url into the three
// roles' addresses: it makes roles and database, gives the roles the password,
// and migrates. `up` uses it, so that one address is enough there.
func AdoptDatabase(ctx context.Context, c *Config, password string) error {
	roles := postgres.RolesNamed(rolePrefix)
	var addresses [3]string
	for i, r := range []postgres.Role{roles.Service, roles.Recorder, roles.Owner} {
		r.Password = password
		var err error
		if addresses[i], err = r.DSN(c.DatabaseURL, databaseName); err != nil {
			return fmt.Errorf("DATABASE_URL: %w", err)
		}
	}
	c.DatabaseAdmin, c.DatabaseURL = c.DatabaseURL, addresses[0]
	c.DatabaseRecord, c.DatabaseDirect = addresses[1], addresses[2]
	if _, err := MigrateDatabase(ctx, c, slog.New(slog.DiscardHandler)); err != nil {
		return fmt.Errorf("prepare the database of DATABASE_URL: %w", err)
	}
	c.DatabaseDirect = "" // the running broker needs no owner
	return nil
}
