package tools_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/approvals"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// ownedDesk is a home whose owner wants to confirm some kinds of action.
type ownedDesk struct {
	*onceDesk
	data, rules string
	folder      *approvals.Folder
	ahead       time.Duration // of the approvals' clock
}

func newOwnedDesk(t *testing.T, rules string) *ownedDesk {
	t.Helper()
	d := &ownedDesk{onceDesk: newOnceDesk(t)}
	d.data, d.rules = t.TempDir(), rules
	d.folder = approvals.In(d.data, func() time.Time { return time.Now().Add(d.ahead) })
	d.open(d.folder)
	return d
}

// open starts the home, with or without somebody to ask.
func (d *ownedDesk) open(f *approvals.Folder) {
	d.t.Helper()
	file := filepath.Join(d.data, "policy.yaml")
	if err := os.WriteFile(file, []byte("max_level: rwd\n"+d.rules), 0o600); err != nil {
		d.t.Fatal(err)
	}
	p, err := policy.Load(file)
	if err != nil {
		d.t.Fatal(err)
	}
	d.exec, err = tools.New(tools.Config{Guard: d.Guard, Policy: p, Catalogue: catalogue.AtHome(), Ledger: d.l, Approvals: f}, handlers.All()...)
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *ownedDesk) waiting() []approvals.Question {
	d.t.Helper()
	all, err := d.folder.List()
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// answer is the owner's, to the only question there is.
func (d *ownedDesk) answer(a approvals.Answer) {
	d.t.Helper()
	all := d.waiting()
	if len(all) != 1 {
		d.t.Fatalf("%d questions wait, want 1", len(all))
	}
	if _, err := d.folder.Decide(all[0].ID, a); err != nil {
		d.t.Fatal(err)
	}
}

func (d *ownedDesk) remove(key, id string) contract.Result {
	return d.call(wholeGrant(), key, "document.remove", `{"id":"`+id+`"}`)
}

func (d *ownedDesk) there(id string) bool {
	return d.call(wholeGrant(), "", "document.get_doc", `{"id":"`+id+`"}`).Err == nil
}

const confirmsDeletes = "confirm: [delete]\n"

func TestWhatTheOwnerConfirmsRunsOnceAfterTheYes(t *testing.T) {
	t.Parallel()
	d := newOwnedDesk(t, confirmsDeletes)
	key := newKey(t)
	r := d.remove(key, guardtest.Alpha)
	fails(t, r, contract.ConfirmationRequired)
	q := d.waiting()[0]
	if r.Err.RequestID != key || r.Err.Retry != contract.RetrySame || !strings.Contains(r.Err.Hint, "home owner") ||
		!strings.Contains(r.Err.Hint, "siyuan-connector approvals approve "+q.ID) || !strings.Contains(r.Err.Hint, key) {
		t.Errorf("%+v", r.Err)
	}
	if q.Preview.Counts.Documents != 1 || q.Preview.Named[0].Title != "Alpha" {
		t.Errorf("the owner is shown %+v", q.Preview)
	}
	fails(t, d.remove(key, guardtest.Alpha), contract.ConfirmationRequired)
	if !d.there(guardtest.Alpha) {
		t.Fatal("removed before the yes")
	}
	d.answer(approvals.Approved)
	if a := answerOf(t, d.remove(key, guardtest.Alpha)); a.Replayed || d.there(guardtest.Alpha) {
		t.Errorf("after the yes: %+v", a)
	}
	if a := answerOf(t, d.remove(key, guardtest.Alpha)); !a.Replayed || len(d.waiting()) != 0 {
		t.Errorf("the same call again: %+v, %d wait", a, len(d.waiting()))
	}
}

func TestWhatTheOwnerDeclinesDoesNotRun(t *testing.T) {
	t.Parallel()
	d := newOwnedDesk(t, confirmsDeletes)
	key := newKey(t)
	fails(t, d.remove(key, guardtest.Alpha), contract.ConfirmationRequired)
	d.answer(approvals.Declined)
	for range 2 {
		fails(t, d.remove(key, guardtest.Alpha), contract.ConfirmationDeclined)
	}
	if !d.there(guardtest.Alpha) {
		t.Error("removed after a no")
	}
}

func TestAnOwnersYesExpires(t *testing.T) {
	t.Parallel()
	d := newOwnedDesk(t, confirmsDeletes)
	key := newKey(t)
	fails(t, d.remove(key, guardtest.Alpha), contract.ConfirmationRequired)
	d.answer(approvals.Approved)
	d.ahead = 10 * time.Minute
	r := d.remove(key, guardtest.Alpha)
	fails(t, r, contract.ConfirmationRequired)
	if !strings.Contains(r.Err.Message, "expired") || !d.there(guardtest.Alpha) {
		t.Errorf("%v", r.Err)
	}
	d.answer(approvals.Approved)
	if r := d.remove(key, guardtest.Alpha); r.Err != nil {
		t.Errorf("asked again and approved: %v", r.Err)
	}
}

func TestAnOwnersYesIsForOneCallOfOneAgent(t *testing.T) {
	t.Parallel()
	d := newOwnedDesk(t, confirmsDeletes)
	key := newKey(t)
	fails(t, d.remove(key, guardtest.Alpha), contract.ConfirmationRequired)
	d.answer(approvals.Approved)

	fails(t, d.remove(key, guardtest.Projects), contract.ConfirmationInvalid)
	other := wholeGrant()
	other.Agent.ID = "another"
	fails(t, d.call(other, key, "document.remove", `{"id":"`+guardtest.Alpha+`"}`), contract.ConfirmationRequired)
	fails(t, d.remove(newKey(t), guardtest.Alpha), contract.ConfirmationRequired)
	if !d.there(guardtest.Alpha) || !d.there(guardtest.Projects) {
		t.Fatal("removed without a yes")
	}
	// The same arguments written another way are the same call.
	if r := d.call(wholeGrant(), key, "document.remove", `{ "id" : "`+guardtest.Alpha+`" }`); r.Err != nil {
		t.Errorf("the yes was used up by calls it was not for: %v", r.Err)
	}
}

func TestAYesIsUsedUpByACallThatFails(t *testing.T) {
	t.Parallel()
	d := newOwnedDesk(t, "confirm: [write]\n")
	key, args := newKey(t), `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"x"}`
	fails(t, d.call(wholeGrant(), key, "block.append", args), contract.ConfirmationRequired)
	d.answer(approvals.Approved)
	d.Kernel.Faults().Sync(guardtest.Projects)
	fails(t, d.call(wholeGrant(), key, "block.append", args), contract.SyncInProgress)
	d.Kernel.Faults().Sync()
	fails(t, d.call(wholeGrant(), key, "block.append", args), contract.ConfirmationRequired)
}

// Nobody is asked about what would be refused anyway.
func TestTheOwnerIsAskedOnlyAboutWhatTheAgentMayDo(t *testing.T) {
	t.Parallel()
	d := newOwnedDesk(t, confirmsDeletes)
	args := `{"id":"` + guardtest.Alpha + `"}`
	fails(t, d.call(writer(), newKey(t), "document.remove", args), contract.PermissionDenied)
	fails(t, d.remove(newKey(t), guardtest.Missing), contract.NotFound)
	if n := len(d.waiting()); n != 0 {
		t.Errorf("%d questions", n)
	}
}

func TestOtherKindsOfActionRunUnasked(t *testing.T) {
	t.Parallel()
	d := newOwnedDesk(t, confirmsDeletes)
	if r := d.call(wholeGrant(), newKey(t), "block.append", `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"x"}`); r.Err != nil {
		t.Error(r.Err)
	}
	plain := newOwnedDesk(t, "")
	if r := plain.remove(newKey(t), guardtest.Alpha); r.Err != nil || len(plain.waiting()) != 0 {
		t.Errorf("without confirm: %v", r.Err)
	}
}

// Where nobody can be asked, what the owner wants to confirm does not run.
func TestConfirmWithoutAnOwnerToAskIsANo(t *testing.T) {
	t.Parallel()
	d := newOwnedDesk(t, confirmsDeletes)
	d.open(nil)
	fails(t, d.remove(newKey(t), guardtest.Alpha), contract.ActionDisabled)
}

func TestAYesSurvivesARestart(t *testing.T) {
	t.Parallel()
	d := newOwnedDesk(t, confirmsDeletes)
	key := newKey(t)
	fails(t, d.remove(key, guardtest.Alpha), contract.ConfirmationRequired)
	d.answer(approvals.Approved)
	d.restart()
	d.open(approvals.In(d.data, time.Now))
	if r := d.remove(key, guardtest.Alpha); r.Err != nil {
		t.Error(r.Err)
	}
}

func TestValidatingAsksNobodyAndWritingUnderAHashDoes(t *testing.T) {
	t.Parallel()
	d := newOwnedDesk(t, confirmsDeletes)
	send := func(key string, s contract.Safety) contract.Result {
		return d.exec.Handle(t.Context(), contract.Call{
			Tool: "document", Action: "remove", RequestID: key, Grant: wholeGrant(), Args: json.RawMessage(`{"id":"` + guardtest.Alpha + `"}`), Safety: s,
		}, nil)
	}
	r := send(newKey(t), contract.Safety{ValidateOnly: true})
	var lease struct{ StateHash string }
	if r.Err != nil || json.Unmarshal(r.Body, &lease) != nil || len(d.waiting()) != 0 {
		t.Fatalf("validateOnly: %v, %s, %d wait", r.Err, r.Body, len(d.waiting()))
	}
	key := newKey(t)
	fails(t, send(key, contract.Safety{Expect: lease.StateHash}), contract.ConfirmationRequired)
	d.answer(approvals.Approved)
	if r := send(key, contract.Safety{Expect: lease.StateHash}); r.Err != nil || d.there(guardtest.Alpha) {
		t.Errorf("after the yes: %v", r.Err)
	}
}
