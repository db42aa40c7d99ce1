// Command siyuan-connector is the home half: it runs beside SiYuan, dials out to
// a broker and carries out what the home policy allows.
package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/cmd/internal/settings"
	"siyuan-broker/connector"
	"siyuan-broker/connector/policy"
)

func main() {
	os.Exit(cli.Run(root(), os.Args[1:], os.Stderr))
}

func root() *cobra.Command {
	a := &app{}
	cmd := &cobra.Command{
		Use:   "siyuan-connector",
		Short: "Let agents reach your SiYuan, as far as you allow",
	}
	f := cmd.PersistentFlags()
	f.StringVar(&a.file, "config", "", "configuration file (YAML); the environment wins over it, flags over both")
	f.StringVar(&a.data, "data", "", "data folder; empty: the user's data folder, as root /var/lib/siyuan-connector")
	return cli.Group(cmd, newPair(a), newUnpair(a), newRun(a), newKey(a), newStatus(a), newUndo(a), newDoctor(a), newPolicy(a), newApprovals(a), newRepin(a), newConfig(a))
}

// app is what the subcommands share: where the configuration comes from.
type app struct{ file, data, broker, url, token string }

func (a *app) config() (connector.Config, error) {
	var c connector.Config
	if err := settings.Load(&c, settings.OS(a.file, "CONNECTOR_")); err != nil {
		return c, cli.Fail(cli.ExitConfig, err)
	}
	for _, o := range []struct {
		flag string
		into *string
	}{{a.data, &c.Data}, {a.broker, &c.Broker}, {a.url, &c.URL}, {a.token, &c.Token}} {
		if o.flag != "" {
			*o.into = o.flag
		}
	}
	c.Complete()
	return c, nil
}

func newRun(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Keep a tunnel to the broker and carry out calls",
		Example: "  SIYUAN_TOKEN=… siyuan-connector run --broker https://notes.example",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.token != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "Warning: other programs of this machine can read --token; set SIYUAN_TOKEN instead.")
			}
			c, err := a.config()
			if err != nil {
				return err
			}
			if err := c.Validate(); err != nil {
				return cli.Fail(cli.ExitConfig, err)
			}
			return runHome(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.broker, "broker", "", "the broker's URL (CONNECTOR_BROKER)")
	f.StringVar(&a.url, "url", "", "SiYuan's address (SIYUAN_API_URL), default http://127.0.0.1:6806")
	f.StringVar(&a.token, "token", "", "SiYuan's API token; better set SIYUAN_TOKEN")
	return cmd
}

// runHome is the connector's life, until ctx ends or its access is taken back.
func runHome(ctx context.Context, c connector.Config) error {
	home, err := connector.New(c, cli.Version, cli.Logger(os.Stderr, c.LogLevel, c.LogFormat))
	if err != nil {
		return cli.Fail(cli.ExitConfig, err)
	}
	err = home.Run(ctx)
	if errors.Is(err, connector.ErrRevoked) {
		return cli.Fail(cli.ExitRevoked, err)
	}
	return err
}

func newKey(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Print the connector's public key, making the key pair at the first time",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			key, err := connector.LoadKey(c.Data)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), connector.EncodePublic(key.Public().(ed25519.PublicKey)))
			return err
		},
	}
}

func newPolicy(a *app) *cobra.Command {
	var example bool
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Print what the home policy file means",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if example {
				_, err := fmt.Fprint(cmd.OutOrStdout(), policy.Example)
				return err
			}
			c, err := a.config()
			if err != nil {
				return err
			}
			p, err := policy.Load(c.Policy)
			if err != nil {
				return cli.Fail(cli.ExitConfig, err)
			}
			return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"file": c.Policy, "effect": p.Effect(nil), "confirm": p.Confirm(),
				"upload_folders": p.Uploads(), "export_folders": p.Exports()})
		},
	}
	cmd.Flags().BoolVar(&example, "example", false, "print a commented example file")
	return cmd
}

func newRepin(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "repin",
		Short: "Forget the pinned SiYuan workspace; the one that answers next becomes the pinned one",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			if err := connector.PinFile(c.Data).Forget(); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "Forgotten. A running connector pins the workspace that answers at its next look.")
			return err
		},
	}
}

func newConfig(a *app) *cobra.Command {
	dump := &cobra.Command{
		Use:   "dump",
		Short: "Print every setting with its meaning and value; secrets stay hidden",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			return settings.Dump(cmd.OutOrStdout(), &c)
		},
	}
	return cli.Group(&cobra.Command{Use: "config", Short: "The configuration in force"}, dump)
}
