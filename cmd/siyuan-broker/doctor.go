package main

import (
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/cmd/internal/doctor/brokerdoctor"
	"siyuan-broker/cmd/internal/doctor/urldoctor"
)

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [URL]",
		Short: "Check configuration, database, keys and the way in, and say what to do",
		Long: "Check everything a broker depends on, changing nothing. With a URL, check what agents meet at that address,\n" +
			"from wherever this runs; no configuration is needed then. Exit code 0: nothing is wrong, warnings aside;\n" +
			"78: the configuration has to change; 1: something else is wrong.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("one URL, please")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				u, err := url.Parse(args[0])
				if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
					return cli.Usagef("%q is not a URL such as https://notes.example", args[0])
				}
				d := &urldoctor.Doctor{URL: strings.TrimRight(args[0], "/")}
				return doctor.Examine(cmd.Context(), cmd.OutOrStdout(), asJSON, d.Probes())
			}
			c, err := a.config(nil)
			d := &brokerdoctor.Doctor{Config: c, ConfigErr: err}
			return doctor.Examine(cmd.Context(), cmd.OutOrStdout(), asJSON, d.Probes())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
