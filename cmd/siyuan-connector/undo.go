package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/connector"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/undo"
)

// undoFlags are what `undo` is told besides the number of a sitting.
type undoFlags struct {
	document, since string
	apply, asJSON   bool
	yes             bool
	confirm         func() bool // asks the owner after the preview; nil: nobody is there to be asked
}

func newUndo(a *app) *cobra.Command {
	var f undoFlags
	cmd := &cobra.Command{
		Use:   "undo [number]",
		Short: "Show what agents wrote, and take it back",
		Long: "Without anything it lists what agents wrote, each time they sat down to it with a number.\n" +
			"With a number, --document or --since it tells what an undo would do; with --apply it does that,\n" +
			"after it has shown it and you have said yes; where nobody sits at a terminal, at once.\n" +
			"What somebody else changed since is left as it is. An undo can be undone, by its number.\n" +
			"SiYuan must be running. The connector may: then it does the work.",
		Example: "  siyuan-connector undo\n  siyuan-connector undo 12\n  siyuan-connector undo 12 --apply\n  siyuan-connector undo --since 14:05 --document 20240102100100-alphadc",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			choice, list, err := f.choice(args, time.Now())
			if err != nil {
				return err
			}
			if in := cmd.InOrStdin(); f.apply && !f.yes && !f.asJSON && terminal(in) {
				f.confirm = func() bool {
					fmt.Fprint(cmd.OutOrStdout(), "Do this? Type yes: ")
					answer, _ := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n') // nothing is no
					return strings.TrimSpace(answer) == "yes"
				}
			}
			home, err := connector.OpenWayBack(cmd.Context(), c, cli.Logger(os.Stderr, "warn", c.LogFormat))
			if err != nil {
				return cli.Fail(cli.ExitOffline, err)
			}
			return errors.Join(f.run(cmd.Context(), cmd.OutOrStdout(), home, choice, list), home.Close())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.document, "document", "", "only this document or database, by its id")
	fl.StringVar(&f.since, "since", "", "what was written since then, such as 14:05, 2026-11-30 14:05, or 2h")
	fl.BoolVar(&f.apply, "apply", false, "do it")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON; with --apply it does not ask")
	fl.BoolVar(&f.yes, "yes", false, "with --apply: do not ask")
	return cmd
}

// choice reads what is to be undone; list says that nothing was named.
func (f undoFlags) choice(args []string, now time.Time) (c restore.Choice, list bool, err error) {
	c.Doc = f.document
	if len(args) == 1 {
		if c.Sitting, err = strconv.ParseInt(args[0], 10, 64); err != nil || c.Sitting < 1 {
			return c, false, cli.Usagef("%q is no number of the list that `undo` prints", args[0])
		}
	}
	if f.since != "" {
		if c.Since, err = since(f.since, now); err != nil {
			return c, false, err
		}
	}
	list = c == restore.Choice{}
	if list && f.apply {
		return c, false, cli.Usagef("say what to undo: a number, --document or --since")
	}
	return c, list, nil
}

// since reads a time of today or yesterday, a day with a time, or how long ago.
func since(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	if t, err := time.ParseInLocation("2006-01-02 15:04", text, now.Location()); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	t, err := time.ParseInLocation("15:04", text, now.Location())
	if err != nil {
		return t, cli.Usagef("--since %q is no time such as 14:05, 2026-11-30 14:05, or 2h", text)
	}
	t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
	if t.After(now) {
		t = t.AddDate(0, 0, -1)
	}
	return t, nil
}

func (f undoFlags) run(ctx context.Context, out io.Writer, home connector.WayBack, c restore.Choice, list bool) error {
	if list {
		all, err := home.Sittings(ctx)
		switch {
		case err != nil:
			return err
		case f.asJSON:
			return cli.PrintJSON(out, all)
		}
		return printSittings(out, all)
	}
	if f.apply && f.confirm == nil {
		plan, err := home.Undo(ctx, c, "")
		return f.tell(out, plan, true, err)
	}
	plan, err := home.Preview(ctx, c)
	if err = f.tell(out, plan, false, err); err != nil || f.asJSON || plan.Empty() {
		return err
	}
	if !f.apply {
		_, err = io.WriteString(out, "Nothing was changed. To do it, add --apply.\n")
		return err
	}
	if !f.confirm() {
		return cli.Fail(cli.ExitConfirmation, errors.New("nothing was changed"))
	}
	plan, err = home.Undo(ctx, c, plan.Stamp)
	return f.tell(out, plan, true, err)
}

// tell prints a plan, or what was done.
func (f undoFlags) tell(out io.Writer, p undo.Plan, done bool, err error) error {
	switch {
	case err != nil:
		return err
	case f.asJSON:
		return cli.PrintJSON(out, p)
	}
	return printPlan(out, p, done)
}

const clock = "2006-01-02 15:04"

func printSittings(out io.Writer, all []restore.Sitting) error {
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("No agent wrote anything that is remembered.\n")
	}
	for _, s := range all {
		fmt.Fprintf(&b, "%6d  %s to %s  %s: %d documents and databases\n", s.ID, s.Began.Format(clock), s.Last.Format("15:04"), strconv.Quote(s.Agent), s.Documents)
		for _, n := range s.Others {
			fmt.Fprintf(&b, "        cannot be undone: %s at %s\n", n.Action, n.At.Format("15:04"))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

var effects = map[undo.Effect][2]string{ // would be, was
	undo.Restored:  {"would be brought back", "brought back"},
	undo.Removed:   {"would be removed (the agent made it)", "removed (the agent had made it)"},
	undo.Returned:  {"would be put back (the agent removed it)", "put back (the agent had removed it)"},
	undo.Reordered: {"the order below it would be brought back", "the order below it was brought back"},
	undo.Nothing:   {"stays as it is", "stayed as it is"},
}

func printPlan(out io.Writer, p undo.Plan, done bool) error {
	var b strings.Builder
	if len(p.Documents) == 0 {
		b.WriteString("There is nothing to undo.\n")
	}
	tense := 0
	if done {
		tense = 1
	}
	for _, d := range p.Documents {
		what := effects[d.Effect][tense]
		if d.Effect == undo.Restored {
			what += ": " + strings.Join(partsOf(d), ", ")
		}
		if d.Failed != "" {
			what = "FAILED: " + d.Failed
		}
		name := strconv.Quote(d.Title)
		if d.Kind == undo.Database {
			name = "database " + name
		}
		fmt.Fprintf(&b, "%s  %s  %s\n", d.ID, name, what)
		for _, r := range d.Refused {
			if r.Count > 0 {
				fmt.Fprintf(&b, "    left of its %s: %d: %s\n", r.Part, r.Count, r.Text)
				continue
			}
			fmt.Fprintf(&b, "    %s is left: %s\n", r.Part, r.Text)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// partsOf are the parts that come back, of a database with their numbers.
func partsOf(d undo.Document) []string {
	var all []string
	for _, part := range d.Parts {
		switch part {
		case "cells":
			part = fmt.Sprintf("%d cells", d.Cells)
		case "rows":
			part = fmt.Sprintf("%d rows that it added go", d.Rows)
		}
		all = append(all, part)
	}
	return all
}
