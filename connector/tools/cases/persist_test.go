package cases_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// more are arguments of actions whose examples change nothing in the home of
// these tests, or leave out a way to do it. Every other action is tried with its
// examples alone.
var more = map[string][]string{
	"file.rename_asset":       {`{"oldPath":"` + usedFile + `","newName":"x"}`},
	"file.delete_asset":       {`{"path":"` + usedFile + `"}`},
	"file.read_image":         {`{"id":"20240109000021-picture","path":"` + usedFile + `"}`},
	"file.get_image_ocr_text": {`{"path":"` + usedFile + `"}`},
	"block.insert":            {`{"dataType":"markdown","data":"x","parentID":"` + guardtest.Alpha + `"}`, `{"dataType":"markdown","data":"x","nextID":"` + guardtest.Intro + `"}`},
	"block.replace":           {`{"id":"` + guardtest.Intro + `","old":"small","new":"big"}`},
	"document.reorder":        {`{"parentID":"` + guardtest.Projects + `","orderedIDs":["` + beta + `","` + guardtest.Alpha + `"]}`},
	"search.find_replace":     {`{"k":"Alpha","r":"Beta","ids":["` + guardtest.Alpha + `"],"replaceTypes":{"text":true,"docTitle":true}}`},
	"fs.replace":              {`{"path":"/Work/Projects/Alpha","old":"small","new":"big"}`},
	"block.move":              {`{"ids":["` + guardtest.Links + `","` + guardtest.Intro + `"],"previousID":"` + guardtest.List + `"}`},
	"block.update":            {`{"items":[{"id":"` + guardtest.Intro + `","dataType":"markdown","data":"one"},{"id":"` + guardtest.Heading + `","dataType":"markdown","data":"# two"}]}`, `{"id":"` + guardtest.Item + `","dataType":"markdown","data":"- other"}`},
	"document.create":         {`{"notebook":"` + guardtest.Work + `","path":"/New/Deep","markdown":"text","icon":"1f4d4"}`, `{"notebook":"` + guardtest.Work + `","parentPath":"/Projects","title":"New"}`},
	"document.move":           {`{"fromIDs":["` + guardtest.Alpha + `"],"toID":"` + guardtest.Work + `"}`},
	"document.remove":         {`{"ids":["` + guardtest.Projects + `","` + guardtest.Entry + `"]}`},
	"notebook.create":         {`{"name":"New","icon":"1f4d4"}`},
	"notebook.rename":         {`{"notebook":"` + guardtest.Work + `","name":"Other"}`},
	"notebook.set_conf":       {`{"notebook":"` + guardtest.Work + `","conf":{"name":"Other","closed":true,"dailyNoteSavePath":"/x"}}`},
	"notebook.set_open_state": {`{"notebook":"` + guardtest.Work + `","opened":false}`, `{"notebook":"` + guardtest.Archive + `","opened":true}`},
}

// noNotes are writes that leave no trace in notes, with what tests them instead.
var noNotes = map[string]string{
	"file.download_asset":   "is answered by a transfer (cmd/internal/integration)",
	"file.export_resources": "is answered by a transfer (cmd/internal/integration)",
	"extension.plugin_call": "what a plugin writes is its own affair (connector/tools, TestACallOfAPluginsToolIsNeverRepeated)",
	"extension.native_call": "sends a request into the internet",
	"system.notify":         "shows a message in SiYuan's window (TestLiveSystem)",
	"timeline.create_node":  "names a snapshot beside the notes (connector/tools, TestANodeIsASnapshotWithAName)",
	"timeline.delete_node":  "takes the name off a snapshot (connector/tools, TestANodeIsASnapshotWithAName)",
	"timeline.list_changes": "lists restore points, which are not kept here (connector/tools, TestAnAgentListsAndTakesBackItsOwnWritesOnly)",
	"timeline.undo":         "needs restore points, which are not kept here (connector/tools, TestAnAgentListsAndTakesBackItsOwnWritesOnly)",

	"system.perform_sync": "starts SiYuan's own sync, which is off in the sample home (TestLiveSystem)",
}

// attempt is one call of an action that writes, and the endpoints it writes by.
type attempt struct {
	id, args string
	writes   []string
	replies  map[string][][]byte // of the kernel that did carry it out, by endpoint
}

// attempts runs every write of the catalogue and gives those that changed
// something. An action of which none did is an error: it needs arguments in more.
func attempts(t *testing.T) []attempt {
	t.Helper()
	var all []attempt
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			if !a.Kind.Mutates() || noNotes[a.ID()] != "" {
				continue
			}
			found := false
			for _, args := range slices.Concat(a.Examples, more[a.ID()]) {
				d := newDeskFor(t, a.ID())
				before := d.files(t)
				if r := d.callAs(owner(), a.ID(), args); r.Err != nil || maps.Equal(before, d.files(t)) {
					continue
				}
				found = true
				all = append(all, attemptOf(d, a.ID(), args))
			}
			if !found {
				t.Errorf("no arguments make %s change something; add some to more", a.ID())
			}
		}
	}
	return all
}

func attemptOf(d *desk, id, args string) attempt {
	x := attempt{id: id, args: args, replies: map[string][][]byte{}}
	for _, e := range d.front.take() {
		if !d.kernel.Faults().IsWrite(e.path) {
			continue
		}
		if x.replies[e.path] == nil {
			x.writes = append(x.writes, e.path)
		}
		x.replies[e.path] = append(x.replies[e.path], e.reply)
	}
	return x
}

func (d *desk) refuses(t *testing.T, fault string, want contract.Code, x attempt) {
	t.Helper()
	r := d.callAs(owner(), x.id, x.args)
	switch {
	case r.Err == nil:
		t.Errorf("%s, %s: success %s, want %s", x.args, fault, r.Body, want)
	case contract.CodeOf(r.Err) != want:
		t.Errorf("%s, %s: %v, want %s", x.args, fault, r.Err, want)
	case r.Err.RequestID != requestID:
		t.Errorf("%s, %s: error %s does not carry the request id", x.args, fault, r.Err.Body())
	}
}

// TestK32EveryWriteIsReadBack runs every action that writes, and every endpoint
// it writes by, against a kernel that fails there in each way that looks like
// success or leaves it open.
func TestK32EveryWriteIsReadBack(t *testing.T) {
	t.Parallel()
	for _, x := range attempts(t) {
		for _, endpoint := range x.writes {
			t.Run(x.id+" "+strings.TrimPrefix(endpoint, "/api/"), func(t *testing.T) {
				t.Parallel()
				withoutEffect(t, x, endpoint)
				claimedEffect(t, x, endpoint)
				lostAnswer(t, x, endpoint)
				lostReadBack(t, x, endpoint)
			})
		}
	}
}

// withoutEffect: the kernel answers code 0 and does nothing.
func withoutEffect(t *testing.T, x attempt, endpoint string) {
	d := newDeskFor(t, x.id)
	d.kernel.Faults().Set(endpoint, samplekernel.Fault{Kind: samplekernel.FaultNoEffect})
	d.refuses(t, "code 0", contract.WriteNotPersisted, x)
}

// claimedEffect: the kernel answers what it answers after the effect, operations
// and all, and does nothing.
func claimedEffect(t *testing.T, x attempt, endpoint string) {
	d := newDeskFor(t, x.id)
	replies := x.replies[endpoint]
	d.front.answering(func(path string, _ []byte) (int, []byte, bool) {
		if path != endpoint || len(replies) == 0 {
			return 0, nil, false
		}
		reply := replies[0]
		replies = replies[1:]
		return http.StatusOK, reply, true
	})
	d.refuses(t, "claim", contract.WriteNotPersisted, x)
}

// lostAnswer: the write happens; its answer does not arrive, or only half of it,
// or there is a server error.
func lostAnswer(t *testing.T, x attempt, endpoint string) {
	for name, kind := range map[string]samplekernel.FaultKind{
		"no answer": samplekernel.FaultDropAfter, "half an answer": samplekernel.FaultHalf, "server error": samplekernel.FaultStatus,
	} {
		d := newDeskFor(t, x.id)
		d.kernel.Faults().Set(endpoint, samplekernel.Fault{Kind: kind})
		d.refuses(t, name, contract.OutcomeUnknown, x)
	}
}

// lostReadBack: SiYuan goes away between the write and the look at it. To say
// offline, which may be sent again, would write twice.
func lostReadBack(t *testing.T, x attempt, endpoint string) {
	for name, reply := range map[string]string{"server error": "", "null": `{"code":0,"msg":"","data":null}`, "refusal": `{"code":-1,"msg":"x","data":null}`} {
		d := newDeskFor(t, x.id)
		written := false
		d.front.answering(func(path string, _ []byte) (int, []byte, bool) {
			switch {
			case path == endpoint:
				written = true
			case written && !d.kernel.Faults().IsWrite(path) && reply == "":
				return http.StatusBadGateway, []byte("{}"), true
			case written && !d.kernel.Faults().IsWrite(path):
				return http.StatusOK, []byte(reply), true
			}
			return 0, nil, false
		})
		r := d.callAs(owner(), x.id, x.args)
		if r.Err == nil || r.Err.Type != contract.TypeUnknown && r.Err.Type != contract.TypeWrite {
			t.Errorf("%s, read-back gets %s: %v %s, want outcome_unknown or write_not_persisted", x.args, name, r.Err, r.Body)
		}
	}
}

// TestK33EveryResultHasItsDeclaredForm holds the results of all actions against
// their output types, strictly: no field more, none of another type, no null
// where the type has a list. It holds K37 too: one object in compact JSON.
func TestK33EveryResultHasItsDeclaredForm(t *testing.T) {
	t.Parallel()
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			t.Run(a.ID(), func(t *testing.T) {
				t.Parallel()
				desk := deskFor(t, a)
				answered := false
				for _, args := range slices.Concat(a.Examples, more[a.ID()]) {
					r := desk().callAs(owner(), a.ID(), args)
					if r.Err != nil {
						wellFormedError(t, r.Err)
						continue
					}
					answered = true
					wellFormed(t, a, r.Body)
				}
				if !answered && noNotes[a.ID()] == "" {
					t.Errorf("no example of %s is answered", a.ID())
				}
				wellFormedError(t, desk().callAs(owner(), a.ID(), `{"nonsense":1}`).Err)
				wellFormedError(t, desk().callAs(guardtest.Grant(nil), a.ID(), a.Examples[0]).Err)
			})
		}
	}
}

// TestK37EveryAnswerIsOneObject is part of the above.
func TestK37EveryAnswerIsOneObject(t *testing.T) {
	t.Parallel()
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			if a.Output.Kind().String() != "struct" {
				t.Errorf("the results of %s are of kind %s, not objects", a.ID(), a.Output.Kind())
			}
		}
	}
	var envelope map[string]json.RawMessage
	check(t, json.Unmarshal(contract.Fail(contract.NotFound, "x").Body(), &envelope))
	if len(envelope) != 1 || envelope["error"] == nil {
		t.Errorf("an error is %v", envelope)
	}
}
