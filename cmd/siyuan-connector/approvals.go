package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/connector/approvals"
)

func newApprovals(a *app) *cobra.Command {
	folder := func() (*approvals.Folder, error) {
		c, err := a.config()
		return approvals.In(c.Data, time.Now), err
	}
	cmd := cli.Group(&cobra.Command{
		Use:   "approvals",
		Short: "List the calls that wait for your yes, because of confirm: in the policy file, and answer them",
		Example: "  siyuan-connector approvals\n" +
			"  siyuan-connector approvals approve apr_k3f",
	}, decision(folder, "approve", "Let one call run, once", approvals.Approved), decision(folder, "deny", "Refuse one call", approvals.Declined))
	unknown := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknown(cmd, args)
		}
		f, err := folder()
		if err != nil {
			return err
		}
		all, err := f.List()
		if err != nil {
			return err
		}
		return printQuestions(cmd.OutOrStdout(), all)
	}
	return cmd
}

func decision(folder func() (*approvals.Folder, error), use, short string, answer approvals.Answer) *cobra.Command {
	return &cobra.Command{
		Use:   use + " ID",
		Short: short,
		Long:  short + ". The beginning of the ID is enough where no other has it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("want the ID of one call; list them with: siyuan-connector approvals")
			}
			f, err := folder()
			if err != nil {
				return err
			}
			q, err := f.Decide(args[0], answer)
			if err != nil {
				return err
			}
			next := "It runs when the agent sends it again, until " + timeOfDay(q.Expires) + "."
			if answer == approvals.Declined {
				next = "The agent is told so when it sends the call again."
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s.%s %s. %s\n", q.Call.Tool, q.Call.Action, q.Answer, next)
			return err
		},
	}
}

func printQuestions(w io.Writer, all []approvals.Question) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "No call waits for you.")
		return err
	}
	var b strings.Builder
	for _, q := range all {
		state := "waits until " + timeOfDay(q.Expires)
		if q.Answer != approvals.Waiting {
			state = string(q.Answer)
		}
		name := strings.NewReplacer("“", "'", "”", "'").Replace(q.Agent)
		fmt.Fprintf(&b, "%s\n  %s.%s for the agent “%s”, asked at %s, %s\n", q.ID, q.Call.Tool, q.Call.Action, name, timeOfDay(q.Asked), state)
		for _, line := range q.Preview.Lines() {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	b.WriteString("\nAnswer with: siyuan-connector approvals approve ID, or deny ID\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func timeOfDay(t time.Time) string { return t.Local().Format("15:04:05") }
