package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/cmd/internal/settings"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
)

// actionView is one action as `catalogue` prints it.
type actionView struct {
	Action    string         `json:"action"`
	Kind      tools.Kind     `json:"kind"`
	Level     string         `json:"level"`
	Scope     tools.Scope    `json:"scope"`
	Switch    string         `json:"switch,omitempty"`
	Dangerous bool           `json:"dangerous"`
	Enabled   bool           `json:"enabled_by_default"`
	Tier      tools.Tier     `json:"tier"`
	Summary   string         `json:"summary"`
	Signature string         `json:"signature"`
	Aliases   []string       `json:"aliases,omitempty"`
	Schema    map[string]any `json:"schema"`
}

type toolView struct {
	Tool    string       `json:"tool"`
	Purpose string       `json:"purpose"`
	Actions []actionView `json:"actions"`
}

func newCatalogue() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "catalogue",
		Short: "List every tool and action, with everything allowed",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			views := catalogueViews()
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), views)
			}
			for _, t := range views {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", t.Tool, t.Purpose)
				for _, a := range t.Actions {
					fmt.Fprintf(cmd.OutOrStdout(), "  %-50s %-4s %s\n", a.Signature, a.Level, a.Summary)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON with the schema of every action")
	return cmd
}

func catalogueViews() []toolView {
	var views []toolView
	for _, t := range tools.New().Tools() {
		v := toolView{Tool: t.Name, Purpose: t.Purpose}
		for _, a := range t.Actions {
			v.Actions = append(v.Actions, actionView{
				Action: a.Name, Kind: a.Kind, Level: a.Level.String(), Scope: a.Scope, Switch: string(a.Switch),
				Dangerous: a.Dangerous, Enabled: !a.Off, Tier: a.Tier, Summary: a.Summary, Signature: a.Signature(),
				Aliases: a.Aliases, Schema: a.Schema(),
			})
		}
		views = append(views, v)
	}
	return views
}

func newPayload() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "payload",
		Short: "Measure what an agent has to read before its first call, in characters",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			enabled := func(a *tools.Action) bool { return all || !a.Off }
			p := disclosure.Measure(tools.New(), enabled, true, disclosure.Preface{})
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(p)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%-14s %6d\n", "instructions", p.Instructions)
			for _, name := range slices.Sorted(maps.Keys(disclosure.Plan)) {
				fmt.Fprintf(out, "  %-12s %6d of %6d\n", name, p.Tools[name], disclosure.Plan[name])
			}
			fmt.Fprintf(out, "%-14s %6d\n%-14s %6d\n", "tools_list", p.ToolsList, "total", p.Total)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "with every action switched on")
	return cmd
}

func newConfig(a *app) *cobra.Command {
	dump := &cobra.Command{
		Use:   "dump",
		Short: "Print every setting with its meaning and value; secrets stay hidden",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(nil)
			if derr := settings.Dump(cmd.OutOrStdout(), &c); derr != nil {
				return derr
			}
			return err // what is wrong with it, if anything
		},
	}
	return cli.Group(&cobra.Command{Use: "config", Short: "The configuration in force"}, dump)
}
