package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/tenants"
)

// tenantsAtOnce is how many tenants are asked for at a time.
const tenantsAtOnce = 200

func newFeedback(a *app) *cobra.Command {
	var tenant string
	var days int
	cmd := &cobra.Command{
		Use:     "feedback",
		Short:   "Print what agents said about this service, as JSON",
		Example: "  siyuan-broker feedback --days 7",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 {
				return cli.Usagef("--days must be at least 1")
			}
			var only tenants.ID
			if tenant != "" {
				id, err := parseID("tenant", tenant)
				if err != nil {
					return err
				}
				only = id
			}
			return a.withStore(cmd.Context(), func(_ broker.Config, db *broker.Database) error {
				since := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
				return eachFeedback(cmd.Context(), db, only, since, func(f tenantFeedback) error { return cli.PrintJSON(cmd.OutOrStdout(), f) })
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "only this tenant's; empty: everybody's")
	cmd.Flags().IntVar(&days, "days", 30, "how far to look back")
	return cmd
}

// tenantFeedback is one line of the list.
type tenantFeedback struct {
	Tenant tenants.ID `json:"tenant_id"`
	tenants.Feedback
}

// eachFeedback goes through the feedback since a time, of one tenant or, with the
// zero id, of all.
func eachFeedback(ctx context.Context, store tenants.Store, only tenants.ID, since time.Time, fn func(tenantFeedback) error) error {
	of := func(tenant tenants.ID) error {
		var all []tenants.Feedback
		err := store.In(ctx, tenant, func(tx tenants.Tx) (err error) {
			all, err = tx.Feedback(ctx, tenants.MaxFeedback)
			return err
		})
		if err != nil {
			return err
		}
		for _, f := range all {
			if f.WrittenAt.Before(since) {
				break // the rest is older
			}
			if err := fn(tenantFeedback{tenant, f}); err != nil {
				return err
			}
		}
		return nil
	}
	if only != (tenants.ID{}) {
		return of(only)
	}
	for after := (tenants.ID{}); ; {
		page, err := store.Tenants(ctx, after, tenantsAtOnce)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, t := range page {
			if err := of(t.ID); err != nil {
				return err
			}
			after = t.ID
		}
	}
}
