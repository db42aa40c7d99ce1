package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func (d *onceDesk) safely(g *contract.Grant, s contract.Safety, key, id, args string) contract.Result {
	tool, action, _ := strings.Cut(id, ".")
	return d.exec.Handle(context.Background(), contract.Call{Tool: tool, Action: action, RequestID: key, Grant: g, Safety: s, Args: json.RawMessage(args)}, nil)
}

// validated validates a call and gives the hash.
func (d *onceDesk) validated(g *contract.Grant, id, args string) string {
	d.t.Helper()
	r := d.safely(g, contract.Safety{ValidateOnly: true}, newKey(d.t), id, args)
	if r.Err != nil {
		d.t.Fatalf("%s %s: %v", id, args, r.Err)
	}
	var out map[string]any
	if err := json.Unmarshal(r.Body, &out); err != nil {
		d.t.Fatal(err)
	}
	action, _ := catalogue.New().Action(strings.Split(id, ".")[0], strings.Split(id, ".")[1])
	hash, _ := out[string(action.Guarded)+"Hash"].(string)
	if out["writeAttempted"] != false || out["writeExecuted"] != false || out["preconditionField"] != action.Guarded.Field() || out["hashPrefixLength"] != float64(len(hash)) || len(hash) < 4 {
		d.t.Errorf("%s: %s", id, r.Body)
	}
	if at, err := time.Parse(time.RFC3339, out["leaseExpiresAt"].(string)); err != nil || time.Until(at) > 10*time.Minute {
		d.t.Errorf("%s: %s", id, r.Body)
	}
	return hash
}

func TestAValidatedWriteHappensWhileNothingChanged(t *testing.T) {
	t.Parallel()
	for _, a := range aimedWrites {
		action, _ := catalogue.New().Action(strings.Split(a.id, ".")[0], strings.Split(a.id, ".")[1])
		t.Run(a.id+" "+a.endpoint, func(t *testing.T) {
			t.Parallel()
			d := newOnceDesk(t)
			args := a.at(a.hits())
			if action.Guarded == catalogue.NoPrecondition {
				r := d.safely(wholeGrant(), contract.Safety{ValidateOnly: true}, newKey(t), a.id, args)
				if r.Err != nil || !strings.Contains(string(r.Body), `"preflightRequired":false`) {
					t.Errorf("%s, %v", r.Body, r.Err)
				}
				return
			}
			hash := d.validated(wholeGrant(), a.id, args)
			key := newKey(t)
			r := d.safely(wholeGrant(), contract.Safety{Expect: "SHA256:V1:" + strings.ToUpper(hash)}, key, a.id, args)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			var out struct {
				Success bool
				Safety  struct{ RequestID, TransactionState, PreviousHash, ResultHash string }
			}
			if err := json.Unmarshal(r.Body, &out); err != nil || !out.Success || out.Safety.RequestID != key || out.Safety.TransactionState != "committed" ||
				!strings.HasPrefix(out.Safety.PreviousHash, "sha256:v1:"+hash) || out.Safety.ResultHash == out.Safety.PreviousHash {
				t.Errorf("%s, %v", r.Body, err)
			}
			if again := d.safely(wholeGrant(), contract.Safety{Expect: hash}, key, a.id, args); !answerOf(t, again).Replayed {
				t.Errorf("again: %s", again.Body)
			}
			fails(t, d.safely(wholeGrant(), contract.Safety{Expect: hash}, newKey(t), a.id, args), contract.LeaseInvalid)
		})
	}
}

func TestAWriteWhoseTargetMovedOnIsNotDone(t *testing.T) {
	t.Parallel()
	d := newOnceDesk(t)
	args := `{"id":"` + guardtest.EntryP + `","dataType":"markdown","data":"Mine."}`
	hash := d.validated(wholeGrant(), "block.update", args)
	for _, change := range []string{`{"id":"` + guardtest.EntryP + `","attrs":{"custom-x":"1"}}`} {
		if r := d.call(wholeGrant(), newKey(t), "block.set_attrs", change); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	fails(t, d.safely(wholeGrant(), contract.Safety{Expect: hash}, newKey(t), "block.update", args), contract.StateChanged)
	fails(t, d.safely(wholeGrant(), contract.Safety{Expect: hash}, newKey(t), "block.update", args), contract.LeaseInvalid)
	if got := ok[struct{ Kramdown string }](t, deskWith(d), wholeGrant(), "block.get_kramdown", `{"id":"`+guardtest.EntryP+`"}`).Kramdown; strings.Contains(got, "Mine.") {
		t.Errorf("written: %q", got)
	}
}

// deskWith is a desk for reading at a onceDesk.
func deskWith(d *onceDesk) *desk { return &desk{Home: d.Home, exec: d.exec} }

func TestAHashIsForItsOwnCall(t *testing.T) {
	t.Parallel()
	d := newOnceDesk(t)
	args := `{"id":"` + guardtest.EntryP + `","dataType":"markdown","data":"%"}`
	hash := d.validated(wholeGrant(), "block.update", strings.Replace(args, "%", "one", 1))
	other := strings.Replace(args, "%", "two", 1)
	fails(t, d.safely(wholeGrant(), contract.Safety{Expect: hash}, newKey(t), "block.update", other), contract.LeaseInvalid)
	stranger := wholeGrant()
	stranger.Agent.ID = "another"
	fails(t, d.safely(stranger, contract.Safety{Expect: hash}, newKey(t), "block.update", strings.Replace(args, "%", "one", 1)), contract.LeaseInvalid)
	fails(t, d.safely(wholeGrant(), contract.Safety{Expect: "xyz!"}, newKey(t), "block.update", other), contract.LeaseInvalid)
	fails(t, d.safely(wholeGrant(), contract.Safety{ValidateOnly: true}, newKey(t), "block.update", strings.Replace(args, guardtest.EntryP, guardtest.Missing, 1)), contract.NotFound)
	fails(t, d.safely(grantOn(contract.ReadWriteDelete, contract.Read), contract.Safety{ValidateOnly: true}, newKey(t), "block.update", other), contract.PermissionDenied)
}

// A database is what a write to it is guarded by: any change of its columns, views,
// cells or templates is one of its state.
func TestWritesToDatabasesAreGuardedByTheWholeDatabase(t *testing.T) {
	t.Parallel()
	for id, calls := range cutWrites {
		action, _ := catalogue.New().Action(strings.Split(id, ".")[0], strings.Split(id, ".")[1])
		if !strings.HasPrefix(id, "av.") || action.Guarded == catalogue.NoPrecondition {
			continue
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			args := calls[0]
			d := cutDesk(t, &cutter{}, id)
			hash := d.validated(allGrant(), id, args)
			r := d.safely(allGrant(), contract.Safety{Expect: hash}, newKey(t), id, args)
			var out struct {
				Safety struct{ PreviousHash, ResultHash string }
			}
			if r.Err != nil || json.Unmarshal(r.Body, &out) != nil {
				t.Fatalf("%s, %v", r.Body, r.Err)
			}
			if copied := id == "av.duplicate"; (out.Safety.ResultHash == out.Safety.PreviousHash) != copied { // the copy is another database
				t.Errorf("the state was %s and is %s", out.Safety.PreviousHash, out.Safety.ResultHash)
			}
			d = cutDesk(t, &cutter{}, id)
			hash = d.validated(allGrant(), id, args)
			change := `{"avID":"` + guardtest.Database + `","rowID":"` + guardtest.DatabaseRow + `","columnID":"` + guardtest.DatabaseCount + `","valueType":"number","number":0}`
			if r := d.call(allGrant(), newKey(t), "av.set_cells", change); r.Err != nil {
				t.Fatal(r.Err)
			}
			fails(t, d.safely(allGrant(), contract.Safety{Expect: hash}, newKey(t), id, args), contract.StateChanged)
		})
	}
}
