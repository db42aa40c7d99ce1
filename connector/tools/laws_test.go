package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
)

// aimed is a write with a %s for the id that its permission hangs on.
type aimed struct {
	id, args string
	target   string         // of what kind the id is: block, doc or notebook
	need     contract.Level // at the target
	endpoint string         // where the write reaches the kernel
}

var aimedWrites = []aimed{
	{"block.insert", `{"dataType":"markdown","data":"x","previousID":"%s"}`, "block", contract.ReadWrite, "block/insertBlock"},
	{"block.insert", `{"dataType":"markdown","data":"x","nextID":"%s"}`, "block", contract.ReadWrite, "block/insertBlock"},
	{"block.insert", `{"dataType":"markdown","data":"x","parentID":"%s"}`, "doc", contract.ReadWrite, "block/prependBlock"},
	{"block.insert", `{"blocks":[{"dataType":"markdown","data":"x","previousID":"` + guardtest.Intro + `"},{"dataType":"markdown","data":"y","nextID":"%s"}]}`, "block", contract.ReadWrite, "block/batchInsertBlock"},
	{"block.prepend", `{"dataType":"markdown","data":"x","parentID":"%s"}`, "doc", contract.ReadWrite, "block/prependBlock"},
	{"block.delete", `{"id":"%s"}`, "block", contract.ReadWriteDelete, "block/deleteBlock"},
	{"block.move", `{"id":"%s","parentID":"` + guardtest.Projects + `"}`, "block", contract.ReadWrite, "block/moveBlock"},
	{"block.move", `{"id":"` + guardtest.Links + `","previousID":"%s"}`, "block", contract.ReadWrite, "block/moveBlock"},
	{"block.set_attrs", `{"id":"%s","attrs":{"custom-x":"1"}}`, "block", contract.ReadWrite, "attr/setBlockAttrs"},
	{"document.rename", `{"id":"%s","title":"New"}`, "doc", contract.ReadWrite, "filetree/renameDocByID"},
	{"document.move", `{"fromIDs":["%s"],"toID":"` + guardtest.Work + `"}`, "doc", contract.ReadWrite, "filetree/moveDocsByID"},
	{"document.move", `{"fromIDs":["` + guardtest.Alpha + `"],"toID":"%s"}`, "notebook", contract.ReadWrite, "filetree/moveDocsByID"},
	{"document.remove", `{"id":"%s"}`, "doc", contract.ReadWriteDelete, "filetree/removeDocByID"},
	{"document.remove", `{"ids":["%s"]}`, "doc", contract.ReadWriteDelete, "filetree/removeDocByID"},
	{"document.remove", `{"paths":["%s"]}`, "path", contract.ReadWriteDelete, "filetree/removeDocByID"},
	{"document.move", `{"fromPaths":["%s"],"toNotebook":"` + guardtest.Work + `","toPath":"/"}`, "path", contract.ReadWrite, "filetree/moveDocsByID"},
	{"notebook.set_open_state", `{"notebook":"%s","opened":false}`, "notebook", contract.ReadWrite, "notebook/closeNotebook"},
	{"notebook.remove", `{"notebook":"%s"}`, "notebook", contract.ReadWriteDelete, "notebook/removeNotebook"},
	{"notebook.rename", `{"notebook":"%s","name":"New"}`, "notebook", contract.ReadWrite, "notebook/renameNotebook"},
	{"notebook.set_conf", `{"notebook":"%s","conf":{"dailyNoteSavePath":"/x"}}`, "notebook", contract.ReadWrite, "notebook/setNotebookConf"},
	{"notebook.set_icon", `{"notebook":"%s","icon":"1f4d4"}`, "notebook", contract.ReadWrite, "notebook/setNotebookIcon"},
}

// targets are a thing of each kind in one notebook.
type targets map[string]string

func (a aimed) at(t targets) string { return fmt.Sprintf(a.args, t[a.target]) }

var (
	inWork    = targets{"block": guardtest.Intro, "doc": guardtest.Alpha, "notebook": guardtest.Work, "path": alphaPath}
	inDiary   = targets{"block": guardtest.EntryP, "doc": guardtest.Entry, "notebook": guardtest.Diary, "path": "/" + guardtest.Entry + ".sy"}
	inPrivate = targets{"block": guardtest.SecretP, "doc": guardtest.Secret, "notebook": guardtest.Private, "path": "/" + guardtest.Secret + ".sy"}
	nowhere   = targets{"block": guardtest.Missing, "doc": guardtest.Missing, "notebook": guardtest.Missing, "path": "/" + guardtest.Missing + ".sy"}
)

func grantOn(work, diary contract.Level) *contract.Grant {
	return guardtest.Grant(map[string]contract.Level{guardtest.Work: work, guardtest.Diary: diary, guardtest.Archive: contract.Read})
}

func TestEveryWriteNeedsItsLevelAtItsTarget(t *testing.T) {
	t.Parallel()
	for _, a := range aimedWrites {
		for _, level := range []contract.Level{contract.Read, contract.ReadWrite, contract.ReadWriteDelete} {
			t.Run(fmt.Sprintf("%s %s with %s", a.id, a.target, level), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
				r := d.call(grantOn(contract.ReadWriteDelete, level), a.id, a.at(inDiary))
				if level < a.need {
					fails(t, r, contract.PermissionDenied)
					if r.Err != nil && !strings.Contains(string(r.Err.Detail), `"level":"`+level.String()+`"`) {
						t.Errorf("detail %s does not name the level", r.Err.Detail)
					}
					return
				}
				// What leaves Diary needs rwd there.
				leaves := strings.HasSuffix(a.id, ".move") && a.target != "notebook" && strings.Contains(a.args, `"parentID"`) || a.id == "document.move" && a.target != "notebook"
				if leaves && level < contract.ReadWriteDelete {
					fails(t, r, contract.PermissionDenied)
				} else if r.Err != nil {
					t.Errorf("%s: %v", a.at(inDiary), r.Err)
				}
			})
		}
	}
}

func TestForAWriteHiddenIsTheSameAsMissing(t *testing.T) {
	t.Parallel()
	for _, a := range aimedWrites {
		d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
		g := grantOn(contract.ReadWriteDelete, contract.Read)
		hidden, missing := d.call(g, a.id, a.at(inPrivate)), d.call(g, a.id, a.at(nowhere))
		fails(t, hidden, contract.NotFound)
		fails(t, missing, contract.NotFound)
		if hidden.Err == nil || missing.Err == nil {
			continue
		}
		if h, m := strings.ReplaceAll(string(hidden.Err.Body()), inPrivate[a.target], "ID"), strings.ReplaceAll(string(missing.Err.Body()), nowhere[a.target], "ID"); h != m {
			t.Errorf("%s %s:\nhidden  %s\nmissing %s", a.id, a.target, h, m)
		}
	}
}

// TestK32ASuccessWithoutEffectIsNoSuccess: every write is read back.
func TestK32ASuccessWithoutEffectIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, a := range aimedWrites {
		t.Run(a.id+" "+a.endpoint, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
			g := grantOn(contract.ReadWriteDelete, contract.ReadWriteDelete)
			hits := inDiary
			if a.target == "notebook" && a.id != "document.move" {
				hits = inWork
			}
			d.Kernel.Faults().Set("/api/"+a.endpoint, samplekernel.Fault{Kind: samplekernel.FaultNoEffect})
			fails(t, d.call(g, a.id, a.at(hits)), contract.WriteNotPersisted)
			d.Kernel.Faults().Clear()
			if r := d.call(g, a.id, a.at(hits)); r.Err != nil {
				t.Errorf("without the fault: %v", r.Err)
			}
		})
	}
}

func TestAWriteWhoseAnswerIsLostHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, a := range aimedWrites {
		d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
		d.Kernel.Faults().Set("/api/"+a.endpoint, samplekernel.Fault{Kind: samplekernel.FaultDropAfter})
		hits := inDiary
		if a.target == "notebook" && a.id != "document.move" {
			hits = inWork
		}
		r := d.call(grantOn(contract.ReadWriteDelete, contract.ReadWriteDelete), a.id, a.at(hits))
		fails(t, r, contract.OutcomeUnknown)
		if r.Err != nil && r.Err.RequestID != "req-1" {
			t.Errorf("%s: error %s has no request id", a.id, r.Err.Body())
		}
	}
}

// TestKernelCallsOfAWrite holds the number of round trips, the list of notebooks,
// the look for a sync at each document and the flush before the read-back included.
func TestKernelCallsOfAWrite(t *testing.T) {
	t.Parallel()
	most := map[string]int{
		"block.insert": 14, "block.prepend": 9, "block.delete": 7, "block.move": 12, "block.set_attrs": 8,
		"document.rename": 8, "document.move": 10, "document.remove": 9,
		"notebook.set_open_state": 4, "notebook.remove": 4, "notebook.rename": 4, "notebook.set_conf": 6, "notebook.set_icon": 5,
	}
	for _, a := range aimedWrites {
		d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
		r := d.call(grantOn(contract.ReadWriteDelete, contract.ReadWriteDelete), a.id, a.at(inDiary))
		if r.Err != nil || r.Stats.KernelCalls > most[a.id] {
			t.Errorf("%s %s: %d kernel calls, want at most %d (%v)", a.id, a.args, r.Stats.KernelCalls, most[a.id], r.Err)
		}
	}
}

func TestTheHomePolicyCapsWhatMayBeDeletedAndMoved(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	g := grantOn(contract.ReadWriteDelete, contract.ReadWriteDelete)
	for _, c := range []struct{ id, args string }{
		{"block.delete", `{"id":"` + guardtest.Intro + `"}`},
		{"document.remove", `{"id":"` + guardtest.Alpha + `"}`},
		{"notebook.remove", `{"notebook":"` + guardtest.Work + `"}`},
		{"block.move", `{"id":"` + guardtest.Intro + `","parentID":"` + guardtest.Entry + `"}`},
		{"document.move", `{"fromIDs":["` + guardtest.Alpha + `"],"toID":"` + guardtest.Diary + `"}`},
	} {
		fails(t, d.call(g, c.id, c.args), contract.PermissionDenied)
	}
}
