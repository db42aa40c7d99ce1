package main

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/tenants"
)

func newConnector(a *app) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "connector", Short: "Connectors: let a home in, or take it back"},
		newConnectorAdd(a), newConnectorRevoke(a))
}

func newConnectorAdd(a *app) *cobra.Command {
	var t target
	var key, name string
	cmd := &cobra.Command{
		Use:     "add",
		Short:   "Register a connector's public key for an instance",
		Example: "  siyuan-broker connector add --tenant T --instance I --key \"$(siyuan-connector key)\"",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			public, err := parseKey(key)
			if err != nil {
				return err
			}
			var added tenants.Connector
			err = t.change(cmd, a, "connector.add", "connector:"+tenants.Fingerprint(public), func(ctx context.Context, tx tenants.Tx, in tenants.ID) error {
				added, err = addConnector(ctx, tx, in, name, public)
				return err
			})
			if errors.Is(err, tenants.ErrConflict) {
				return errors.New("this key is registered already; every connector needs a key of its own")
			}
			if err != nil {
				return err
			}
			return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"connector": added.ID, "fingerprint": added.Fingerprint})
		},
	}
	t.flags(cmd)
	cmd.Flags().StringVar(&key, "key", "", "public key, as `siyuan-connector key` prints it")
	cmd.Flags().StringVar(&name, "name", "home", "name of the machine, for people")
	return cmd
}

func parseKey(s string) (ed25519.PublicKey, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != ed25519.PublicKeySize {
		return nil, cli.Usagef("--key: not a public key; run `siyuan-connector key` at home and copy its 43 characters")
	}
	return b, nil
}

func addConnector(ctx context.Context, tx tenants.Tx, instance tenants.ID, name string, key ed25519.PublicKey) (tenants.Connector, error) {
	return tx.RegisterConnector(ctx, tenants.Connector{InstanceID: instance, Name: name, PublicKey: key})
}

func newConnectorRevoke(a *app) *cobra.Command {
	return a.newRevoke("connector", "Take a connector's access back; its tunnel is cut and it ends with exit code 77",
		func(ctx context.Context, tx tenants.Tx, id tenants.ID) error { return tx.RevokeConnector(ctx, id) })
}

// newRevoke is the command that takes one thing of a tenant back.
func (a *app) newRevoke(kind, short string, fn func(context.Context, tenants.Tx, tenants.ID) error) *cobra.Command {
	var tenant, id string
	cmd := &cobra.Command{
		Use:   "revoke",
		Short: short,
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.revoke(cmd.Context(), tenant, kind, id, fn)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the tenant")
	cmd.Flags().StringVar(&id, kind, "", "id of the "+kind)
	return cmd
}

// revoke takes one thing of a tenant back and audits it.
func (a *app) revoke(ctx context.Context, tenant, kind, id string, fn func(context.Context, tenants.Tx, tenants.ID) error) error {
	t, err := parseID("tenant", tenant)
	if err != nil {
		return err
	}
	subject, err := parseID(kind, id)
	if err != nil {
		return err
	}
	return a.withStore(ctx, func(_ broker.Config, db *broker.Database) error {
		return db.In(ctx, t, func(tx tenants.Tx) error {
			return errors.Join(fn(ctx, tx, subject), audit(ctx, tx, kind+".revoke", kind+":"+id))
		})
	})
}
