package broker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pglocal"
)

// Addresses are the addresses by which a broker reaches its database.
type Addresses struct {
	Service, Recorder string
	Listen            string // where pushes come from
	Owner             string // of migrations; "" when not configured
}

// Addresses gives the configured ones or, for the broker's own PostgreSQL, those
// of its private socket, whether or not a server answers there.
func (c *Config) Addresses() (Addresses, error) {
	if c.DatabaseURL != "" {
		a := Addresses{Service: c.DatabaseURL, Recorder: c.DatabaseRecord, Listen: c.DatabaseDirect, Owner: c.DatabaseDirect}
		if a.Listen == "" {
			a.Listen = a.Service
		}
		return a, nil
	}
	dsn, err := pglocal.Running(c.Data)
	if err != nil {
		return Addresses{}, err
	}
	roles := postgres.RolesNamed(rolePrefix)
	service := dsn(roles.Service.Name, databaseName)
	return Addresses{Service: service, Recorder: dsn(roles.Recorder.Name, databaseName), Listen: service,
		Owner: dsn(roles.Owner.Name, databaseName)}, nil
}

// AttachDatabase opens a database that is running and prepared already. It
// starts, migrates and makes nothing.
func AttachDatabase(ctx context.Context, c *Config, log *slog.Logger) (*Database, error) {
	if c.DatabaseURL != "" {
		return OpenDatabase(ctx, c, log)
	}
	dsn, err := pglocal.Running(c.Data)
	if err != nil {
		return nil, err
	}
	key, err := c.keyInForce()
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, ownOptions(dsn, key, log))
	if err != nil {
		return nil, err
	}
	return &Database{Store: store}, nil
}

// keyInForce is the configured master key, else the one in the data folder.
func (c *Config) keyInForce() ([]byte, error) {
	if c.MasterKey != "" {
		return c.masterKey()
	}
	key, err := os.ReadFile(filepath.Join(c.Data, masterKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	return key, nil // its length is checked by whoever uses it
}
