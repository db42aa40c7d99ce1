package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"siyuan-broker/contract"
)

func TestExitCodesFollowTheDocumentedTable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{contract.InvalidFields(contract.Field{Path: "id", Message: "is required"}), 2},
		{contract.Fail(contract.NotFound, "x"), 3},
		{fmt.Errorf("call: %w", contract.Fail(contract.PermissionDenied, "x")), 3},
		{contract.Fail(contract.SiYuanOffline, "x"), 4},
		{contract.Fail(contract.ConfirmationRequired, "x"), 5},
		{contract.Fail(contract.OutcomeUnknown, "x"), 6},
		{Fail(ExitRevoked, errors.New("x")), 77},
		{fmt.Errorf("start: %w", Fail(ExitConfig, errors.New("x"))), 78},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestMistakesOnTheCommandLineExitWithTwoAndPointToHelp(t *testing.T) {
	for _, args := range [][]string{{"--nosuch"}, {"nosuch"}, {"sub", "extra"}, {"sub", "--nosuch"}} {
		sub := &cobra.Command{Use: "sub", Args: NoArgs, RunE: func(*cobra.Command, []string) error { return nil }}
		root := Group(&cobra.Command{Use: "prog"}, sub)
		var out bytes.Buffer
		root.SetOut(&out)
		if code := Run(root, args, &out); code != ExitUsage {
			t.Errorf("%v: exit code %d, want 2", args, code)
		}
		if !strings.Contains(out.String(), "--help") {
			t.Errorf("%v: no pointer to help in %q", args, &out)
		}
	}
}
