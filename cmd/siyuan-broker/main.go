// Command siyuan-broker is the hosted half: it serves agents over MCP, keeps
// tenants in PostgreSQL and forwards calls to the connectors that dialled in.
// `siyuan-broker up` runs broker and connector together for one person.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/cmd/internal/settings"
	"siyuan-broker/tenants"
)

func main() {
	os.Exit(cli.Run(root(), os.Args[1:], os.Stderr))
}

func root() *cobra.Command {
	a := &app{}
	cmd := &cobra.Command{
		Use:   "siyuan-broker",
		Short: "Let cloud AI agents work in SiYuan notes at home",
	}
	cmd.PersistentFlags().StringVar(&a.file, "config", "", "configuration file (YAML); the environment wins over it")
	return cli.Group(cmd,
		newUp(a), newServe(a), newMigrate(a), newHealth(a), newDoctor(a),
		newTenant(a), newUser(a), newConnector(a), newToken(a), newClient(a), newFeedback(a),
		newCatalogue(), newPayload(), newConfig(a),
	)
}

// app is what the subcommands share: where the configuration comes from.
type app struct{ file string }

// config loads the configuration; change may adjust it before it is checked.
func (a *app) config(change func(*broker.Config)) (broker.Config, error) {
	var c broker.Config
	if err := settings.Load(&c, settings.OS(a.file, "BROKER_")); err != nil {
		return c, cli.Fail(cli.ExitConfig, err)
	}
	if change != nil {
		change(&c)
	}
	return c, cli.Fail(cli.ExitConfig, c.Validate())
}

func logger(c broker.Config) *slog.Logger { return cli.Logger(os.Stderr, c.LogLevel, c.LogFormat) }

// withStore runs fn with the store of the configured database, also while a
// broker is running on it.
func (a *app) withStore(ctx context.Context, fn func(c broker.Config, db *broker.Database) error) (err error) {
	var named bool // the configuration says by which URL agents come
	c, err := a.config(func(c *broker.Config) { named = len(c.PublicURLs) > 0 })
	if err != nil {
		return err
	}
	log := cli.Logger(os.Stderr, "warn", "text")
	db, err := broker.JoinDatabase(ctx, &c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	if !named { // as the broker that was started last on this database
		if err := db.Setting(ctx, urlsSetting, &c.PublicURLs); err != nil && !errors.Is(err, tenants.ErrNotFound) {
			return err
		}
	}
	return fn(c, db)
}

// parseID reads an id given on the command line.
func parseID(flag, s string) (tenants.ID, error) {
	if s == "" {
		return tenants.ID{}, cli.Usagef("--%s is required", flag)
	}
	var id tenants.ID
	if err := id.UnmarshalText([]byte(s)); err != nil {
		return id, cli.Usagef("--%s: %q is not an id; `siyuan-broker tenant show` lists them", flag, s)
	}
	return id, nil
}
