package main

import (
	"github.com/spf13/cobra"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/cmd/internal/doctor/homedoctor"
)

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check SiYuan, the home policy and the way to the broker, and say what to do",
		Long: "Check everything a connector depends on, changing nothing and leaving a running connector in peace.\n" +
			"Exit code 0: nothing is wrong, warnings aside; 78: the configuration has to change; 1: something else is wrong.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config()
			d := &homedoctor.Doctor{Config: c, ConfigErr: err}
			return doctor.Examine(cmd.Context(), cmd.OutOrStdout(), asJSON, d.Probes())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
