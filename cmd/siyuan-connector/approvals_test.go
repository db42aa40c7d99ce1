package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/connector/approvals"
	"siyuan-broker/contract"
)

// command runs the program with a data folder and gives what it prints and its
// exit code.
func command(data string, args ...string) (string, int) {
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	code := cli.Run(cmd, append([]string{"--data", data}, args...), &out)
	return out.String(), code
}

func TestTheOwnerAnswersWithACommand(t *testing.T) {
	data := t.TempDir()
	if out, code := command(data, "approvals"); code != cli.ExitOK || out != "No call waits for you.\n" {
		t.Errorf("%d %q", code, out)
	}
	folder := approvals.In(data, time.Now)
	call := approvals.Call{Principal: "t/i/m/a", RequestID: "r", Tool: "document", Action: "remove", Arguments: "d"}
	q, err := folder.Ask(call, "Cl”aude\nx", contract.Preview{
		Counts: contract.PreviewCounts{Documents: 1, Blocks: 3}, Named: []contract.PreviewItem{{Kind: "document", Title: "Lost", Path: "/Work/Lost"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, code := command(data, "approvals")
	for _, want := range []string{q.ID + "\n", "document.remove for the agent “Cl'aude x”", "1 document, 3 blocks", "document “Lost” in “/Work/Lost”", "approve ID"} {
		if code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, out)
		}
	}
	if out, code := command(data, "approvals", "approve", "apr_none"); code != cli.ExitNotFound || !strings.Contains(out, "No call waits under the id") {
		t.Errorf("%d %q", code, out)
	}
	for _, args := range [][]string{{"approvals", "approve"}, {"approvals", "agree", q.ID}, {"approvals", "deny", q.ID, "x"}} {
		if out, code := command(data, args...); code != cli.ExitUsage {
			t.Errorf("%v: exit %d %q", args, code, out)
		}
	}
	if out, code := command(data, "approvals", "approve", q.ID[:8]); code != cli.ExitOK || !strings.HasPrefix(out, "document.remove approved.") {
		t.Errorf("%d %q", code, out)
	}
	if out, _ := command(data, "approvals"); !strings.Contains(out, ", approved\n") {
		t.Errorf("%q", out)
	}
	if out, code := command(data, "approvals", "deny", q.ID); code != cli.ExitOK || !strings.HasPrefix(out, "document.remove declined.") {
		t.Errorf("%d %q", code, out)
	}
	if standing, _, err := folder.Claim(call); standing != approvals.Refused || err != nil {
		t.Errorf("%s, %v", standing, err)
	}
	if _, code := command(data, "approvals", "approve", q.ID); code == cli.ExitOK {
		t.Error("a no became a yes")
	}
}
