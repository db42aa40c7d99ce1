package main

import (
	"crypto/rand"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/broker/oauth"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/tenants"
)

func newClient(a *app) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "client", Short: "OAuth clients that are registered by hand: add, list, remove"},
		newClientAdd(a), newClientList(a), newClientRemove(a))
}

// clientShown is how a client is printed.
type clientShown struct {
	ID           string   `json:"client_id"`
	Name         string   `json:"name"`
	RedirectURIs []string `json:"redirect_uris"`
}

func shownClient(c tenants.OAuthClient) clientShown {
	return clientShown{c.ID, c.Name, c.RedirectURIs}
}

func newClientAdd(a *app) *cobra.Command {
	var id, name string
	var redirects []string
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Register a client that cannot register itself",
		Long: "Register a client that cannot register itself. It gets a client id and no secret: clients prove themselves\n" +
			"by PKCE. The registration gives no right to anything; a person still has to agree each time.",
		Example: "  siyuan-broker client add --name \"Own script\" --redirect http://localhost/callback",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if id == "" {
				id = "client-" + rand.Text()
			}
			c, err := oauth.Preregister(id, name, redirects)
			if err != nil {
				return cli.Usagef("%v", err)
			}
			ctx := cmd.Context()
			return a.withStore(ctx, func(_ broker.Config, db *broker.Database) error {
				made, err := db.CreateOAuthClient(ctx, c)
				if err != nil {
					return err
				}
				return cli.PrintJSON(cmd.OutOrStdout(), shownClient(made))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&id, "id", "", "client id; empty: a random one")
	f.StringVar(&name, "name", "", "what people are shown as its name")
	f.StringArrayVar(&redirects, "redirect", nil, "a redirect URI; may be given several times. The port of localhost does not matter")
	return cmd
}

func newClientList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the clients that were registered by hand", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.withStore(ctx, func(_ broker.Config, db *broker.Database) error {
				all, err := db.OAuthClients(ctx)
				if err != nil {
					return err
				}
				shown := make([]clientShown, len(all))
				for i, c := range all {
					shown[i] = shownClient(c)
				}
				return cli.PrintJSON(cmd.OutOrStdout(), shown)
			})
		},
	}
}

func newClientRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove CLIENT_ID", Short: "Remove a client; its agents get no new tokens, so their access ends within 15 minutes", Args: oneClient,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(_ broker.Config, db *broker.Database) error {
				return db.DeleteOAuthClient(cmd.Context(), args[0])
			})
		},
	}
}

func oneClient(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("give one client id; `siyuan-broker client list` shows them")
	}
	return nil
}
