package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/ledger"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// onceDesk is a desk with a ledger; a restart gives it a new executor on the same file.
type onceDesk struct {
	*guardtest.Home
	t     *testing.T
	path  string
	l     *ledger.Ledger
	books tools.Books // nil: no restore points are kept
	exec  *tools.Executor
}

func newOnceDesk(t *testing.T) *onceDesk {
	t.Helper()
	return newOnceDeskWith(t, guardtest.Notes())
}

func newOnceDeskWith(t *testing.T, notes guardtest.Docs) *onceDesk {
	t.Helper()
	d := &onceDesk{Home: guardtest.NewWith(t, notes), t: t, path: filepath.Join(t.TempDir(), "ledger.db")}
	d.start()
	t.Cleanup(func() { _ = d.l.Close() })
	return d
}

func (d *onceDesk) start() {
	d.t.Helper()
	var err error
	if d.l, err = ledger.Open(ledger.Config{Path: d.path, Fresh: true}); err != nil {
		d.t.Fatal(err)
	}
	d.exec, err = tools.New(tools.Config{Guard: d.Guard, Policy: policy.Fixed(contract.ReadWriteDelete), Catalogue: catalogue.AtHome(), Ledger: d.l, Books: d.books}, handlers.All()...)
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *onceDesk) restart() {
	d.t.Helper()
	if err := d.l.Close(); err != nil {
		d.t.Fatal(err)
	}
	d.start()
}

func (d *onceDesk) call(g *contract.Grant, key, id, args string) contract.Result {
	tool, action, _ := strings.Cut(id, ".")
	return d.exec.Handle(context.Background(), contract.Call{Tool: tool, Action: action, RequestID: key, Grant: g, Args: json.RawMessage(args)}, nil)
}

func newKey(t *testing.T) string {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

func wholeGrant() *contract.Grant { return grantOn(contract.ReadWriteDelete, contract.ReadWriteDelete) }

// replayed are the fields that say how an answer came about.
type replayed struct {
	Success, Replayed, Recovered bool
	ID                           string
}

func answerOf(t *testing.T, r contract.Result) (a replayed) {
	t.Helper()
	if r.Err != nil {
		t.Fatalf("error %v", r.Err)
	}
	if err := json.Unmarshal(r.Body, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a aimed) hits() targets {
	if a.target == "notebook" && a.id != "document.move" {
		return inWork
	}
	return inDiary
}

// M17: the reply is dropped, the same call comes again.
func TestM17ARepeatedWriteIsAnsweredAndNotDone(t *testing.T) {
	t.Parallel()
	for _, a := range aimedWrites {
		t.Run(a.id+" "+a.endpoint, func(t *testing.T) {
			t.Parallel()
			d := newOnceDesk(t)
			key, args := newKey(t), a.at(a.hits())
			first := d.call(wholeGrant(), key, a.id, args)
			if first.Err != nil {
				t.Fatal(first.Err)
			}
			d.restart()
			d.Kernel.Faults().Set("/api/"+a.endpoint, samplekernel.Fault{Kind: samplekernel.FaultStatus})
			again := d.call(wholeGrant(), key, a.id, args)
			if !answerOf(t, again).Replayed {
				t.Errorf("answer %s is not marked", again.Body)
			}
			if want := strings.Replace(string(again.Body), `"replayed":true,`, "", 1); want != string(first.Body) {
				t.Errorf("first %s, again %s", first.Body, again.Body)
			}
		})
	}
}

// T19: what happened to a write whose answer was lost is found out.
func TestT19TheOutcomeOfALostAnswerIsFoundOut(t *testing.T) {
	t.Parallel()
	for _, a := range aimedWrites {
		for _, happened := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %s happened=%t", a.id, a.endpoint, happened), func(t *testing.T) {
				t.Parallel()
				d := newOnceDesk(t)
				fault := samplekernel.Fault{Kind: samplekernel.FaultDrop, Times: 1}
				if happened {
					fault.Kind = samplekernel.FaultDropAfter
				}
				d.Kernel.Faults().Set("/api/"+a.endpoint, fault)
				key, args := newKey(t), a.at(a.hits())
				first := d.call(wholeGrant(), key, a.id, args)
				fails(t, first, contract.OutcomeUnknown)
				if first.Err == nil || first.Err.RequestID != key || !strings.Contains(string(first.Err.Detail), `"read"`) && a.id != "notebook.create" {
					t.Errorf("error %v does not say what to read", first.Err)
				}
				d.restart()
				if happened { // it must not reach the kernel again
					d.Kernel.Faults().Set("/api/"+a.endpoint, samplekernel.Fault{Kind: samplekernel.FaultStatus})
				}
				again := answerOf(t, d.call(wholeGrant(), key, a.id, args))
				if again.Recovered != happened || again.Replayed != happened {
					t.Errorf("again: %+v", again)
				}
				d.Kernel.Faults().Clear()
				if third := answerOf(t, d.call(wholeGrant(), key, a.id, args)); !third.Replayed {
					t.Errorf("third: %+v", third)
				}
			})
		}
	}
}

func TestARecoveredAnswerNamesTheNewBlock(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"para", "a\\n\\nb\\n\\n- c", "# head", "> quote", "|a|b|\\n|-|-|\\n|1|2|", "```\\ncode\\n```", "$$\\nx\\n$$", "---", "- one\\n- two", "<u>x</u>"} {
		d := newOnceDesk(t)
		d.Kernel.Faults().Set("/api/block/appendBlock", samplekernel.Fault{Kind: samplekernel.FaultDropAfter, Times: 1})
		key, args := newKey(t), `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"`+text+`"}`
		fails(t, d.call(wholeGrant(), key, "block.append", args), contract.OutcomeUnknown)
		a := answerOf(t, d.call(wholeGrant(), key, "block.append", args))
		if r := d.call(wholeGrant(), newKey(t), "block.info", `{"id":"`+a.ID+`"}`); !a.Recovered || r.Err != nil {
			t.Errorf("%q: %+v leads to %v", text, a, r.Err)
		}
	}
}

func TestWhatSomebodyElseChangedStaysUnknown(t *testing.T) {
	t.Parallel()
	d := newOnceDesk(t)
	d.Kernel.Faults().Set("/api/block/updateBlock", samplekernel.Fault{Kind: samplekernel.FaultDrop, Times: 1})
	key, args := newKey(t), `{"id":"`+guardtest.EntryP+`","dataType":"markdown","data":"Mine."}`
	fails(t, d.call(wholeGrant(), key, "block.update", args), contract.OutcomeUnknown)
	if r := d.call(wholeGrant(), newKey(t), "block.update", `{"id":"`+guardtest.EntryP+`","dataType":"markdown","data":"Theirs."}`); r.Err != nil {
		t.Fatal(r.Err)
	}
	for range 2 {
		r := d.call(wholeGrant(), key, "block.update", args)
		fails(t, r, contract.OutcomeUnknown)
		if r.Err == nil || !strings.Contains(string(r.Err.Detail), `"read":["`+guardtest.EntryP+`"]`) {
			t.Errorf("detail %s", r.Err.Detail)
		}
	}
}

func TestAnInterruptedCallSaysWhichPartHappened(t *testing.T) {
	t.Parallel()
	d := newOnceDesk(t)
	d.Kernel.Faults().Set("/api/attr/setBlockAttrs", samplekernel.Fault{Kind: samplekernel.FaultDrop, Times: 1})
	key, args := newKey(t), `{"notebook":"`+guardtest.Diary+`","path":"/New","markdown":"x","icon":"1f4d4"}`
	fails(t, d.call(wholeGrant(), key, "document.create", args), contract.OutcomeUnknown)
	d.restart()
	var first string
	for range 2 {
		r := d.call(wholeGrant(), key, "document.create", args)
		fails(t, r, contract.PartlyDone)
		if !strings.Contains(string(r.Err.Detail), `"op":"document.create"`) || first != "" && first != string(r.Err.Detail) {
			t.Errorf("detail %s", r.Err.Detail)
		}
		first = string(r.Err.Detail)
	}
}

func TestTheStartDecidesWhatWasUnderWay(t *testing.T) {
	t.Parallel()
	d := newOnceDesk(t)
	d.Kernel.Faults().Set("/api/block/appendBlock", samplekernel.Fault{Kind: samplekernel.FaultDropAfter, Times: 1})
	key, args := newKey(t), `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"x"}`
	fails(t, d.call(wholeGrant(), key, "block.append", args), contract.OutcomeUnknown)
	d.restart()
	if err := d.exec.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st, err := d.l.Stats(); err != nil || st.Undecided != 0 || st.Entries != 1 {
		t.Errorf("stats %+v, %v", st, err)
	}
	if a := answerOf(t, d.call(wholeGrant(), key, "block.append", args)); !a.Recovered {
		t.Errorf("%+v", a)
	}
}

func TestARequestIdForOtherArgumentsIsAConflict(t *testing.T) {
	t.Parallel()
	d := newOnceDesk(t)
	key := newKey(t)
	args := `{"parentID":"` + guardtest.Projects + `","dataType":"markdown","data":"%s"}`
	if r := d.call(wholeGrant(), key, "block.append", fmt.Sprintf(args, "x")); r.Err != nil {
		t.Fatal(r.Err)
	}
	fails(t, d.call(wholeGrant(), key, "block.append", fmt.Sprintf(args, "y")), contract.Conflict)
	other := wholeGrant()
	other.Agent.ID = "another"
	if r := d.call(other, key, "block.append", fmt.Sprintf(args, "x")); answerOf(t, r).Replayed {
		t.Errorf("another agent got %s", r.Body)
	}
}

func TestAReplayIsForThoseWhoMayStillRead(t *testing.T) {
	t.Parallel()
	d := newOnceDesk(t)
	key, args := newKey(t), `{"id":"`+guardtest.EntryP+`","dataType":"markdown","data":"x"}`
	if r := d.call(wholeGrant(), key, "block.update", args); r.Err != nil {
		t.Fatal(r.Err)
	}
	fails(t, d.call(grantOn(contract.ReadWriteDelete, contract.None), key, "block.update", args), contract.NotFound)
}

func TestARefusedWriteMayBeSentAgain(t *testing.T) {
	t.Parallel()
	d := newOnceDesk(t)
	key, args := newKey(t), `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"x"}`
	d.Kernel.Faults().Sync(guardtest.Projects)
	fails(t, d.call(wholeGrant(), key, "block.append", args), contract.SyncInProgress)
	d.Kernel.Faults().Sync()
	if a := answerOf(t, d.call(wholeGrant(), key, "block.append", args)); a.Replayed {
		t.Errorf("%+v", a)
	}
}
