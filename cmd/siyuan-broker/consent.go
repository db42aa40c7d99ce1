package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
