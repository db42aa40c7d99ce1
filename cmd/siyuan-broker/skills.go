package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/tenants"
)

func newTenantSkills(a *app) *cobra.Command {
	var tenant string
	var on bool
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "Offer skills to agents' programs by the Skills extension of MCP, or not",
		Long: "Agents can read skills as resources in any case. The extension (skills/list, skills/get) lets programs that know it load\n" +
			"them by themselves; it is off until it is switched on.",
		Example: "  siyuan-broker tenant skills --tenant T\n  siyuan-broker tenant skills --tenant T --on=false",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := parseID("tenant", tenant)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.withStore(ctx, func(_ broker.Config, db *broker.Database) error {
				return db.In(ctx, id, func(tx tenants.Tx) error { return setSkillsExtension(ctx, tx, on) })
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the tenant")
	cmd.Flags().BoolVar(&on, "on", true, "--on=false switches it off")
	return cmd
}

func setSkillsExtension(ctx context.Context, tx tenants.Tx, on bool) error {
	t, err := tx.Tenant(ctx)
	if err != nil {
		return err
	}
	settings := t.Settings
	settings.SkillsExtension = on
	if _, err := tx.UpdateTenant(ctx, tenants.TenantUpdate{Settings: &settings}); err != nil {
		return err
	}
	return audit(ctx, tx, "settings.set", fmt.Sprintf("skills_extension %v", on))
}
