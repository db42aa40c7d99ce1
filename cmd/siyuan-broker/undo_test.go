package main_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan/samplekernel"
)

// owner runs the connector's commands on the home of `siyuan-broker up`.
type owner struct{ env []string }

func (o owner) try(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(bin), "siyuan-connector"), args...)
	cmd.Env = o.env
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// undo runs the command and returns what it would do to the one document, or did.
func (o owner) undo(t *testing.T, args ...string) (effect string) {
	t.Helper()
	var plan struct {
		Documents []struct{ Effect, Failed string }
	}
	code, out := o.try(t, append([]string{"undo", "--json"}, args...)...)
	if code != 0 || json.Unmarshal([]byte(out), &plan) != nil || len(plan.Documents) != 1 || plan.Documents[0].Failed != "" {
		t.Fatalf("undo %v: exit code %d, %s; want one document", args, code, out)
	}
	return plan.Documents[0].Effect
}

// TestTheOwnerTakesWritesBackWhetherOrNotTheConnectorRuns uses the programs as they
// are released.
func TestTheOwnerTakesWritesBackWhetherOrNotTheConnectorRuns(t *testing.T) {
	t.Parallel()
	kernel, err := samplekernel.New(samplekernel.Options{Token: "kernel-token", Sample: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kernel.Close() })
	siyuan := httptest.NewServer(kernel.Handler())
	t.Cleanup(siyuan.Close)
	data, listen := dataDir(t), freeAddr(t)
	env := []string{"SIYUAN_TOKEN=kernel-token"}
	start := func() *home { return upWith(t, env, data, listen, "--url", siyuan.URL, "--allow", "rwd") }
	h := start()
	o := owner{append(env, "HOME="+data, "CONNECTOR_DATA="+filepath.Join(data, "siyuan"), "SIYUAN_API_URL="+siyuan.URL)}

	a := h.agent(t, "")
	var list struct{ Notebooks []notebook }
	call(t, a, "notebook", map[string]any{"action": "list"}, &list)
	var doc struct{ ID string }
	call(t, a, "document", map[string]any{"action": "create", "notebook": list.Notebooks[0].ID, "path": "/To take back", "markdown": "One."}, &doc)
	there := func() bool {
		text, failed := try(t, a, "document", map[string]any{"action": "get_doc", "id": doc.ID})
		return !failed && strings.Contains(text, "One.")
	}

	if effect := o.undo(t, "--document", doc.ID); effect != "removed" || !there() {
		t.Errorf("the preview says %s, and the document is there: %t", effect, there())
	}
	if effect := o.undo(t, "--document", doc.ID, "--apply"); effect != "removed" || there() {
		t.Errorf("the undo says %s, and the document is there: %t", effect, there())
	}
	code, out := o.try(t, "undo", "--document", doc.ID, "--apply")
	if code != 0 || out != "There is nothing to undo.\n" || there() {
		t.Errorf("a second time: exit code %d, %q, and the document is there: %t", code, out, there())
	}

	var sittings []struct {
		ID   int
		Undo bool
	}
	code, out = o.try(t, "undo", "--json")
	if err := json.Unmarshal([]byte(out), &sittings); code != 0 || err != nil || len(sittings) != 2 || !sittings[0].Undo {
		t.Fatalf("the list: exit code %d, %s; want the agent's sitting and above it the undo", code, out)
	}
	h.stop(t)
	if effect := o.undo(t, fmt.Sprint(sittings[0].ID), "--apply"); effect != "returned" {
		t.Errorf("the undo of the undo, while nothing runs, says %s", effect)
	}
	h = start()
	if a = h.agent(t, ""); !there() {
		t.Error("the document did not come back")
	}
}
