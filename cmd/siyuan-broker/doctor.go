package main

import (
	"github.com/spf13/cobra"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/cmd/internal/doctor/brokerdoctor"
)

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check configuration, database, keys and the way in, and say what to do",
		Long: "Check everything a broker depends on, changing nothing. Exit code 0: nothing is wrong, warnings aside;\n" +
			"78: the configuration has to change; 1: something else is wrong.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(nil)
			d := &brokerdoctor.Doctor{Config: c, ConfigErr: err}
			return doctor.Examine(cmd.Context(), cmd.OutOrStdout(), asJSON, d.Probes())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
