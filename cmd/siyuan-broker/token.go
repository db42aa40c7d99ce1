package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/broker/token"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func newToken(a *app) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "token", Short: "Agent tokens: create and revoke"}, newTokenCreate(a), newTokenRevoke(a))
}

func newTokenCreate(a *app) *cobra.Command {
	var t target
	var name, level, email string
	var only []string
	var days int
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Create an agent and print its token, once",
		Example: "  siyuan-broker token create --tenant T --instance I --name laptop --level rw",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := contract.ParseLevel(level)
			if err != nil || l == contract.None {
				return cli.Usagef("--level: want r, rw or rwd")
			}
			if name == "" || days < 1 || days > 365 {
				return cli.Usagef("--name is required, and --days must be 1 to 365")
			}
			tenant, err := parseID("tenant", t.tenant)
			if err != nil {
				return err
			}
			instance, err := parseID("instance", t.instance)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.withStore(ctx, func(c broker.Config, db *broker.Database) error {
				agent := tenants.Agent{InstanceID: instance, Name: name, Origin: tenants.FromToken, Ceiling: l, Tools: only,
					ExpiresAt: time.Now().AddDate(0, 0, days)}
				made, raw, err := issueToken(ctx, c, db, tenant, email, agent)
				if err != nil {
					return err
				}
				return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{
					"agent": made.ID, "token": raw, "expires": made.ExpiresAt.UTC().Format(time.RFC3339), "mcp_url": c.Resource(),
				})
			})
		},
	}
	t.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "what the agent is called in lists")
	f.StringVar(&level, "level", "r", "the highest level it may have: r, rw or rwd")
	f.StringVar(&email, "email", "", "member it acts for; empty: the tenant's owner")
	f.StringSliceVar(&only, "tools", nil, "tools it is limited to; empty: all")
	f.IntVar(&days, "days", 90, "days until it expires")
	return cmd
}

// issueToken creates an agent for a member (the owner where none is named) and
// signs its token.
func issueToken(ctx context.Context, c broker.Config, db *broker.Database, tenant tenants.ID, email string, agent tenants.Agent) (tenants.Agent, string, error) {
	var member *tenants.User
	if email != "" {
		u, err := db.UserByEmail(ctx, email)
		if err != nil {
			return agent, "", err
		}
		member = &u
	}
	err := db.In(ctx, tenant, func(tx tenants.Tx) error {
		all, err := tx.Members(ctx)
		if err != nil {
			return err
		}
		for _, m := range all {
			if member != nil && m.User.ID == member.ID || member == nil && m.Role == tenants.Owner && agent.MemberID == (tenants.ID{}) {
				agent.MemberID = m.User.ID
			}
		}
		if agent.MemberID == (tenants.ID{}) {
			return errors.New("nobody of that address is a member of the tenant")
		}
		agent, err = tx.CreateAgent(ctx, agent)
		return errors.Join(err, audit(ctx, tx, "agent.create", "agent:"+agent.ID.String()))
	})
	if err != nil {
		return agent, "", err
	}
	keys := token.NewKeys(db, token.KeysOptions{})
	if err := keys.Load(ctx); err != nil {
		return agent, "", err
	}
	issuer := token.Issuer{URL: c.PublicURLs[0], Keys: keys, Now: time.Now}
	raw, _, err := issuer.Issue(token.Request{Tenant: tenant, Member: agent.MemberID, Agent: agent.ID,
		Resource: c.Resource(), Life: time.Until(agent.ExpiresAt)})
	return agent, raw, err
}

func newTokenRevoke(a *app) *cobra.Command {
	return a.newRevoke("agent", "Take an agent's access back, on every node within two seconds",
		func(ctx context.Context, tx tenants.Tx, id tenants.ID) error { return tx.RevokeAgent(ctx, id) })
}
