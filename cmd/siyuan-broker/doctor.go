package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/cmd/internal/doctor/brokerdoctor"
	"siyuan-broker/cmd/internal/doctor/rehearsal"
	"siyuan-broker/cmd/internal/doctor/urldoctor"
)

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	var email string
	cmd := &cobra.Command{
		Use:   "doctor [URL]",
		Short: "Check configuration, database, keys and the way in, and say what to do",
		Long: "Check everything a broker depends on, changing nothing. With a URL, check what agents meet at that address,\n" +
			"from wherever this runs; no configuration is needed then. With --email it also plays the sign-in of Claude,\n" +
			"ChatGPT, Cursor, VS Code and Claude Code as that test person, whose password is in DOCTOR_PASSWORD or in the\n" +
			"file DOCTOR_PASSWORD_FILE; what it makes, it takes back. Exit code 0: nothing is wrong, warnings aside;\n" +
			"78: the configuration has to change; 1: something else is wrong.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("one URL, please")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			probes, err := urlProbes(args, email)
			if err != nil {
				return err
			}
			if probes == nil {
				c, err := a.config(nil)
				probes = (&brokerdoctor.Doctor{Config: c, ConfigErr: err}).Probes()
			}
			return doctor.Examine(cmd.Context(), cmd.OutOrStdout(), asJSON, probes)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().StringVar(&email, "email", "", "address of a test person to sign in as; needs a URL")
	return cmd
}

// urlProbes are the probes of an address; none without one.
func urlProbes(args []string, email string) ([]doctor.Probe, error) {
	if len(args) == 0 {
		if email != "" {
			return nil, cli.Usagef("--email needs the URL to sign in at")
		}
		return nil, nil
	}
	u, err := url.Parse(args[0])
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, cli.Usagef("%q is not a URL such as https://notes.example", args[0])
	}
	if u.User != nil {
		return nil, cli.Usagef("name the person with --email and put the password into DOCTOR_PASSWORD: other programs of this machine can read a command line")
	}
	at := strings.TrimRight(args[0], "/")
	rehearse := &rehearsal.Doctor{URL: at, Email: email}
	if email != "" {
		if rehearse.Password, err = testPassword(); err != nil {
			return nil, cli.Fail(cli.ExitUsage, err)
		}
	}
	return append((&urldoctor.Doctor{URL: at}).Probes(), rehearse.Probes()...), nil
}

// testPassword is the test person's password: never from the command line.
func testPassword() (string, error) {
	password, file := os.Getenv("DOCTOR_PASSWORD"), os.Getenv("DOCTOR_PASSWORD_FILE")
	switch {
	case password != "" && file != "":
		return "", errors.New("DOCTOR_PASSWORD and DOCTOR_PASSWORD_FILE are both set; keep one")
	case file != "":
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("DOCTOR_PASSWORD_FILE: %w", err)
		}
		password = strings.TrimRight(string(b), "\r\n")
	}
	if password == "" {
		return "", errors.New("--email needs the person's password in DOCTOR_PASSWORD, or in the file DOCTOR_PASSWORD_FILE")
	}
	return password, nil
}
