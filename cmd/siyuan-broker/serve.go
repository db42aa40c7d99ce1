package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/tenants/postgres"
)

func newServe(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run a broker node",
		Long: "Run a broker node until it is told to stop. Settings come from --config and the environment;\n" +
			"`siyuan-broker config dump` lists them.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(nil)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), c, cmd.OutOrStdout())
		},
	}
}

func serve(ctx context.Context, c broker.Config, out io.Writer) (err error) {
	log := logger(c)
	broker.TuneMemory(log)
	db, err := openServing(ctx, &c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	b, err := broker.New(c, db, cli.Version, log)
	if err != nil {
		return cli.Fail(cli.ExitConfig, err)
	}
	if err := greetOperator(ctx, c, db, out); err != nil {
		return err
	}
	return b.Run(ctx)
}

// urlsSetting is where a broker leaves its public URLs in the database, so that
// commands beside it make tokens for them without being told again.
const urlsSetting = "public_urls"

// openServing opens the database for a broker that stays: changes must reach it.
func openServing(ctx context.Context, c *broker.Config, log *slog.Logger) (*broker.Database, error) {
	db, err := broker.OpenDatabase(ctx, c, log)
	if err != nil {
		return nil, err
	}
	if err = db.CanListen(ctx); errors.Is(err, postgres.ErrNoPush) {
		err = cli.Fail(cli.ExitConfig, err)
	}
	if err == nil {
		err = db.SetSetting(ctx, urlsSetting, c.PublicURLs)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close(context.WithoutCancel(ctx)))
	}
	return db, nil
}

func newMigrate(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database to the newest schema",
		Long: "Bring the database to the newest schema, connecting as the owner by DATABASE_DIRECT_URL.\n" +
			"With DATABASE_ADMIN_URL (a superuser) it first makes the roles and the database.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(nil)
			if err != nil {
				return err
			}
			if c.DatabaseURL != "" && c.DatabaseDirect == "" {
				return cli.Fail(cli.ExitConfig, errors.New("migrate connects as the owner: set DATABASE_DIRECT_URL=postgres://siyuan_owner:…@host:5432/siyuan"))
			}
			version, err := broker.MigrateDatabase(cmd.Context(), &c, logger(c))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "schema version %d\n", version)
			return err
		},
	}
}

// newHealth is what a container's health check runs: there is no curl in the
// image.
func newHealth(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Ask the broker on this machine whether it is ready",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(nil)
			if err != nil {
				return err
			}
			return health(cmd.Context(), c, cmd.OutOrStdout())
		},
	}
}

func health(ctx context.Context, c broker.Config, out io.Writer) error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	client, scheme := c.LoopbackClient()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the broker does not answer on %s: %w", c.Listen, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", body)
	}
	_, err = out.Write(body)
	return err
}
