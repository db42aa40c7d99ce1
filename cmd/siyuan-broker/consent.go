package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/broker/admission"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

func newTenantConsent(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "consent TENANT INSTANCE TOOL.ACTION MODE",
		Short: "Say how a person agrees to a dangerous action: ask, console, preview, allow or deny",
		Long: "ask (the default) shows a form where the agent's program can, else the console's page; console always asks there;\n" +
			"preview lets the agent itself confirm what it was shown, which stops mistakes but no agent that was talked into something;\n" +
			"allow asks nobody; deny refuses the action and hides it.",
		Example: "  siyuan-broker tenant consent T I document.remove console",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 4 {
				return cli.Usagef("want TENANT INSTANCE TOOL.ACTION MODE, such as: siyuan-broker tenant consent T I document.remove console")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			action, mode, err := readConsent(args[2], args[3])
			if err != nil {
				return err
			}
			t := target{tenant: args[0], instance: args[1]}
			return t.change(cmd, a, "consent.set", action.ID()+" "+string(mode), func(ctx context.Context, tx tenants.Tx, in tenants.ID) error {
				return tx.SetConsent(ctx, in, tenants.Consent{Tool: action.Tool, Action: action.Name, Mode: mode})
			})
		},
	}
}

// readConsent checks what was typed; a policy that the action would not follow is
// refused rather than raised in silence.
func readConsent(id, word string) (*tools.Action, tenants.ConsentMode, error) {
	tool, name, _ := strings.Cut(id, ".")
	action, ok := tools.New().Action(tool, name)
	mode := tenants.ConsentMode(word)
	switch {
	case !ok:
		return nil, "", cli.Usagef("%q is no action; `siyuan-broker catalogue` lists them in the form document.remove", id)
	case !action.Dangerous:
		return nil, "", cli.Usagef("%s is not a dangerous action: nobody is asked about it", id)
	case !slices.Contains(admission.ConsentModes(action), mode):
		return nil, "", cli.Usagef("%q is no policy for %s: choose one of %v", word, id, admission.ConsentModes(action))
	}
	return action, mode, nil
}

// mostBudgetMinutes bounds the time in which writes are counted.
const mostBudgetMinutes = 24 * 60

func newTenantWrites(a *app) *cobra.Command {
	var tenant string
	var writes, minutes int
	var off bool
	cmd := &cobra.Command{
		Use:   "writes",
		Short: "Set how many writes an agent may make before a person is asked",
		Long: fmt.Sprintf("An agent that has written more than this is asked about every further write, as ask does for dangerous actions,\n"+
			"until the time has passed. Without a budget of its own a tenant has %d writes in %d minutes.", tenants.WriteBudget, int(tenants.WriteWindow.Minutes())),
		Example: "  siyuan-broker tenant writes --tenant T --budget 1000\n  siyuan-broker tenant writes --tenant T --off",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := parseID("tenant", tenant)
			if err != nil {
				return err
			}
			l, told, err := readBudget(writes, minutes, off)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.withStore(ctx, func(_ broker.Config, db *broker.Database) error {
				return db.In(ctx, id, func(tx tenants.Tx) error {
					return setLimit(ctx, tx, func(all *tenants.Limits) { all.WriteBudget, all.WriteWindow = l.WriteBudget, l.WriteWindow }, told)
				})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&tenant, "tenant", "", "id of the tenant")
	f.IntVar(&writes, "budget", 0, fmt.Sprintf("writes of one agent; 0: the default, %d", tenants.WriteBudget))
	f.IntVar(&minutes, "minutes", 0, fmt.Sprintf("minutes in which they are counted; 0: the default, %d", int(tenants.WriteWindow.Minutes())))
	f.BoolVar(&off, "off", false, "ask about no write because of their number")
	return cmd
}

// readBudget checks what was typed.
func readBudget(writes, minutes int, off bool) (l tenants.Limits, told string, err error) {
	switch {
	case off && (writes != 0 || minutes != 0):
		return l, "", cli.Usagef("--off does not go with --budget and --minutes")
	case off:
		return tenants.Limits{WriteBudget: tenants.NoWriteBudget}, "write_budget off", nil
	case writes < 0 || writes > tenants.MostWriteBudget:
		return l, "", cli.Usagef("--budget: from 1 to %d, or 0 for the default of %d; --off asks about none", tenants.MostWriteBudget, tenants.WriteBudget)
	case minutes < 0 || minutes > mostBudgetMinutes:
		return l, "", cli.Usagef("--minutes: from 1 to %d, or 0 for the default of %d", mostBudgetMinutes, int(tenants.WriteWindow.Minutes()))
	}
	return tenants.Limits{WriteBudget: writes, WriteWindow: minutes * 60}, fmt.Sprintf("write_budget %d in %d min", writes, minutes), nil
}
