package tools_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

const ensureLinks = "document.ensure_link_targets"

// linkArgs are arguments with the given mode, targets and more.
func linkArgs(nb, parent, mode, targets, more string) string {
	return fmt.Sprintf(`{"notebook":%q,"parentId":%q,"mode":%q,"targets":[%s]%s}`, nb, parent, mode, targets, more)
}

// toldTargets are the targets of an answer or an error's detail as key:status.
func toldTargets(t *testing.T, body json.RawMessage) (all []catalogue.LinkTargetOut, short string) {
	t.Helper()
	var out struct{ Targets []catalogue.LinkTargetOut }
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var words []string
	for _, l := range out.Targets {
		words = append(words, l.Key+":"+l.Status)
	}
	return out.Targets, strings.Join(words, " ")
}

func TestLinkTargetsAreCheckedAndMade(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		parent, other := liveDoc(t, d, g, nb, "/Up", "x"), liveDoc(t, d, g, nb, "/Elsewhere", "y")
		one, below := liveDoc(t, d, g, nb, "/Up/One & <b>", "1"), liveDoc(t, d, g, nb, "/Up/One & <b>/Deep", "2")
		call := func(mode, targets, more string) contract.Result {
			return d.call(g, ensureLinks, linkArgs(nb, parent, mode, targets, more))
		}
		ids := fmt.Sprintf(`{"key":"a","id":%q},{"key":"b","id":%q},{"key":"c","id":%q},{"key":"d","id":"20240102100000-nothere"}`, one, below, other)
		r := call("resolve", ids, "")
		if all, short := toldTargets(t, r.Body); short != "a:resolved b:missing c:missing d:missing" || all[0].Title != "One & <b>" || all[0].ID != one || strings.Contains(string(r.Body), "Elsewhere") {
			t.Errorf("resolve: %s", r.Body)
		}
		r = call("reuse", ids, "")
		fails(t, r, contract.NotFound)
		if _, short := toldTargets(t, r.Err.Detail); short != "b:missing c:missing d:missing" {
			t.Errorf("reuse: %s", r.Err.Detail)
		}
		if _, short := toldTargets(t, call("reuse", fmt.Sprintf(`{"key":"a","id":%q}`, one), "").Body); short != "a:reused" {
			t.Errorf("reuse: %s", short)
		}

		titles := `{"key":"who","title":"Who"},{"key":"why","title":"为什么 “why”?"}`
		r = call("create", titles, `,"dryRun":true,"markdown":"x"`)
		if all, short := toldTargets(t, r.Body); short != "who:planned why:planned" || all[0].ID != "" {
			t.Errorf("dry run: %s", r.Body)
		}
		r = call("create", titles, `,"markdown":"# Who\n\nTo be *written*."`)
		made, short := toldTargets(t, r.Body)
		if short != "who:created why:created" {
			t.Fatalf("create: %s %v", r.Body, r.Err)
		}
		for i, want := range []struct{ hpath, text string }{{"/Up/Who", "To be *written*."}, {"/Up/为什么 “why”?", "# Who\n\nTo be *written*."}} {
			if at := ok[catalogue.DocumentLookupOut](t, d, g, "document.lookup", fmt.Sprintf(`{"id":%q}`, made[i].ID)); at.HumanPath.HPath != want.hpath {
				t.Errorf("made %+v, want %s", at, want.hpath)
			}
			if text := ok[catalogue.DocumentGetDocOut](t, d, g, "document.get_doc", fmt.Sprintf(`{"id":%q}`, made[i].ID)).Content; strings.TrimSpace(text) != want.text {
				t.Errorf("text %q, want %q", text, want.text)
			}
		}
		r = call("create", `{"key":"new","title":"New"},{"key":"who","title":"Who"}`, "")
		fails(t, r, contract.AlreadyExists)
		if r.Err != nil && !strings.Contains(string(r.Err.Detail), made[0].ID) {
			t.Errorf("the error does not name the document: %s", r.Err.Detail)
		}
		if n := len(ok[catalogue.DocumentGetChildDocsOut](t, d, g, "document.get_child_docs", fmt.Sprintf(`{"id":%q}`, parent)).Data); n != 3 {
			t.Errorf("%d documents, want 3", n)
		}
	})
}

func TestAHundredLinkTargetsAreMadeInOneCall(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		parent := liveDoc(t, d, g, nb, "/Up", "x")
		var targets, keys []string
		for i := range 100 {
			targets = append(targets, fmt.Sprintf(`{"key":"k%d","title":"T%d %s"}`, i, i, strings.Repeat("长", 250)))
			keys = append(keys, fmt.Sprintf("k%d:created", i))
		}
		r := d.call(g, ensureLinks, linkArgs(nb, parent, "create", strings.Join(targets, ","), `,"markdown":"x"`))
		all, short := toldTargets(t, r.Body)
		if short != strings.Join(keys, " ") || all[0].Title != "" || !strings.Contains(string(r.Body), "Titles are left out") {
			t.Errorf("%v %.300s", r.Err, r.Body)
		}
		t.Logf("%d kernel calls", r.Stats.KernelCalls)
		fails(t, d.call(g, ensureLinks, linkArgs(nb, parent, "create", strings.Join(append(targets, `{"key":"more","title":"more"}`), ","), "")), contract.InvalidArguments)
	})
}

func TestLinkTargetsThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	id := `"id":"` + guardtest.Alpha + `"`
	for name, args := range map[string][3]string{
		"no title to create":    {"create", `{"key":"a"}`, ""},
		"an id to create":       {"create", `{"key":"a","title":"A",` + id + `}`, ""},
		"a title to resolve":    {"resolve", `{"key":"a","title":"A",` + id + `}`, ""},
		"no id to reuse":        {"reuse", `{"key":"a"}`, ""},
		"text to resolve":       {"resolve", `{"key":"a",` + id + `}`, `,"markdown":"x"`},
		"a dry run of reuse":    {"reuse", `{"key":"a",` + id + `}`, `,"dryRun":true`},
		"one key twice":         {"create", `{"key":"a","title":"A"},{"key":"a","title":"B"}`, ""},
		"one key twice, by id":  {"resolve", `{"key":"a",` + id + `},{"key":"a",` + id + `}`, ""},
		"one title twice":       {"create", `{"key":"a","title":"A"},{"key":"b","title":"A"}`, ""},
		"a slash":               {"create", `{"key":"a","title":"A/B"}`, ""},
		"a backslash":           {"create", `{"key":"a","title":"A\\B"}`, ""},
		"a space at the end":    {"create", `{"key":"a","title":"A "}`, ""},
		"nothing":               {"create", ``, ""},
		"a mode that is no one": {"adopt", `{"key":"a",` + id + `}`, ""},
	} {
		if r := d.call(writer(), ensureLinks, linkArgs(guardtest.Work, guardtest.Projects, args[0], args[1], args[2])); codeOfResult(r) != contract.InvalidArguments {
			t.Errorf("%s: %s %v", name, r.Body, r.Err)
		}
	}
	alpha := `{"key":"a",` + id + `}`
	fails(t, d.call(writer(), ensureLinks, linkArgs(guardtest.Diary, guardtest.Projects, "resolve", alpha, "")), contract.NotFound)
	fails(t, d.call(writer(), ensureLinks, linkArgs(guardtest.Work, guardtest.Intro, "resolve", alpha, "")), contract.InvalidTarget)
	fails(t, d.call(writer(), ensureLinks, linkArgs(guardtest.Archive, guardtest.Projects, "resolve", alpha, "")), contract.NotebookClosed)
}

// TestLinkTargetsNeedTheLevelOfTheirMode: r to look, rw to create, and nothing
// there for those who may not read.
func TestLinkTargetsNeedTheLevelOfTheirMode(t *testing.T) {
	t.Parallel()
	targets := map[string]string{"resolve": `{"key":"a","id":"` + guardtest.Alpha + `"}`, "reuse": `{"key":"a","id":"` + guardtest.Alpha + `"}`, "create": `{"key":"a","title":"A"}`}
	for mode, list := range targets {
		for _, level := range []contract.Level{contract.None, contract.Read, contract.ReadWrite, contract.ReadWriteDelete} {
			for _, dry := range []string{"", `,"dryRun":true`} {
				if dry != "" && mode != "create" {
					continue
				}
				d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
				r := d.call(grantOn(level, contract.ReadWriteDelete), ensureLinks, linkArgs(guardtest.Work, guardtest.Projects, mode, list, dry))
				want := contract.Code("")
				switch {
				case level == contract.None:
					want = contract.NotFound
				case level == contract.Read && mode == "create":
					want = contract.PermissionDenied
				}
				if codeOfResult(r) != want {
					t.Errorf("%s%s with %s: %v, want %q", mode, dry, level, r.Err, want)
				}
			}
		}
	}
}

func TestAHiddenLinkTargetIsLikeAMissingOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	for _, mode := range []string{"resolve", "reuse"} {
		var answers []string
		for _, id := range []string{guardtest.Secret, "20240102100000-nothere"} {
			r := d.call(writer(), ensureLinks, linkArgs(guardtest.Work, guardtest.Projects, mode, `{"key":"a","id":"`+id+`"}`, ""))
			said := string(r.Body) + fmt.Sprint(r.Stats.KernelCalls)
			if r.Err != nil {
				said += string(r.Err.Body())
			}
			answers = append(answers, strings.ReplaceAll(said, id, "ID"))
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: hidden %s\nmissing %s", mode, answers[0], answers[1])
		}
	}
}

// TestAValidatedCreationHoldsWhatIsBelowTheParent: a document that came there, went
// or was renamed stops it; what others say does not.
func TestAValidatedCreationHoldsWhatIsBelowTheParent(t *testing.T) {
	t.Parallel()
	args := linkArgs(guardtest.Work, guardtest.Projects, "create", `{"key":"a","title":"A"}`, "")
	for name, change := range map[string]struct {
		id, args string
		stops    bool
	}{
		"nothing":    {},
		"a new one":  {"document.create", `{"notebook":"` + guardtest.Work + `","path":"/Projects/Late"}`, true},
		"a renaming": {"document.rename", `{"id":"` + guardtest.Alpha + `","title":"Omega"}`, true},
		"a text":     {"block.append", `{"parentID":"` + guardtest.Projects + `","dataType":"markdown","data":"x"}`, false},
	} {
		d := newOnceDesk(t)
		hash := d.validated(wholeGrant(), ensureLinks, args)
		if change.id != "" {
			if r := d.call(wholeGrant(), newKey(t), change.id, change.args); r.Err != nil {
				t.Fatalf("%s: %v", name, r.Err)
			}
		}
		r := d.safely(wholeGrant(), contract.Safety{Expect: hash}, newKey(t), ensureLinks, args)
		if stopped := codeOfResult(r) == contract.StateChanged; stopped != change.stops || !stopped && r.Err != nil {
			t.Errorf("%s: %s %v", name, r.Body, r.Err)
		}
	}
	d := newOnceDesk(t)
	for _, dead := range []string{
		linkArgs(guardtest.Work, guardtest.Projects, "resolve", `{"key":"a","id":"`+guardtest.Alpha+`"}`, ""),
		linkArgs(guardtest.Work, guardtest.Projects, "create", `{"key":"a","title":"A"}`, `,"dryRun":true`),
	} {
		fails(t, d.safely(wholeGrant(), contract.Safety{ValidateOnly: true}, newKey(t), ensureLinks, dead), contract.Unsupported)
	}
	fails(t, d.safely(wholeGrant(), contract.Safety{ValidateOnly: true}, newKey(t), ensureLinks, linkArgs(guardtest.Work, guardtest.Projects, "create", `{"key":"a","title":"Alpha"}`, "")), contract.AlreadyExists)
}

// refusing refuses the nth creation of a document.
func refusing(n int32) func(http.Handler) http.Handler {
	var seen atomic.Int32
	return func(kernel http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/filetree/createDoc") && seen.Add(1) == n {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				_, _ = w.Write([]byte(`{"code":-1,"msg":"no","data":null}`)) // a client gone is no concern of ours
				return
			}
			kernel.ServeHTTP(w, r)
		})
	}
}

// TestACreationCutShortTellsOfEachTarget refuses one of three documents, or loses
// it on the way there or back.
func TestACreationCutShortTellsOfEachTarget(t *testing.T) {
	t.Parallel()
	args := linkArgs(guardtest.Work, guardtest.Projects, "create", `{"key":"a","title":"A"},{"key":"b","title":"B"},{"key":"c","title":"C"}`, `,"markdown":"x"`)
	count := func(d *onceDesk) int {
		r := d.call(wholeGrant(), "", "document.get_child_docs", `{"id":"`+guardtest.Projects+`"}`)
		return len(did[catalogue.DocumentGetChildDocsOut](t, r).Data)
	}
	for _, c := range []struct {
		name, want string
		code       contract.Code
		refuse     int32
		cut        *cutter
		more, done int // documents made in fact, and told as done
	}{
		{name: "the first is refused", code: contract.APIError, refuse: 1},
		{name: "the second is refused", want: "a:created b:failed c:not_attempted", code: contract.PartlyDone, refuse: 2, more: 1, done: 1},
		{name: "the second is lost before", want: "a:created b:unknown c:not_attempted", code: contract.OutcomeUnknown, cut: &cutter{at: 2}, more: 1, done: 1},
		{name: "the third is lost after", want: "a:created b:created c:unknown", code: contract.OutcomeUnknown, cut: &cutter{at: 3, after: true}, more: 3, done: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newOnceDesk(t)
			before := count(d)
			if c.cut != nil {
				c.cut.isWrite = d.Kernel.Faults().IsWrite
				d.Between(c.cut.wrap)
			} else {
				d.Between(refusing(c.refuse))
			}
			r := d.call(wholeGrant(), newKey(t), ensureLinks, args)
			if codeOfResult(r) != c.code || count(d) != before+c.more {
				t.Fatalf("%v, %d documents more", r.Err, count(d)-before)
			}
			if c.want == "" {
				return
			}
			var detail struct{ Done []string }
			if err := json.Unmarshal(r.Err.Detail, &detail); err != nil {
				t.Fatal(err)
			}
			all, short := toldTargets(t, r.Err.Detail)
			if short != c.want || len(detail.Done) != c.done {
				t.Errorf("told %s, done %v, want %s", short, detail.Done, c.want)
			}
			for i, l := range all {
				if made := l.Status == catalogue.LinkCreated; made && detail.Done[i] != l.ID || l.Status == catalogue.LinkNotAttempted && l.ID != "" {
					t.Errorf("%+v of %v", l, detail.Done)
				}
			}
		})
	}
}

func TestAnUndoTakesTheCreatedLinkTargetsOut(t *testing.T) {
	t.Parallel()
	d, who := newKeepingDesk(t), agent("a")
	r := d.call(who, newKey(t), ensureLinks, linkArgs(guardtest.Work, guardtest.Projects, "create", `{"key":"a","title":"A"},{"key":"b","title":"B"}`, `,"markdown":"x"`))
	made, _ := toldTargets(t, did[json.RawMessage](t, r))
	seen := d.changes(t, who, `{}`)
	if len(seen.Documents) != 2 || len(seen.Sittings) != 1 || seen.Documents[0].Effect != "removed" {
		t.Fatalf("%+v", seen)
	}
	if out := d.undo(t, who, fmt.Sprintf(`{"sitting":%d}`, seen.Sittings[0].ID)); out.Undone != 2 || out.Left != 0 {
		t.Errorf("undo %+v", out)
	}
	for _, m := range made {
		if r := d.call(who, "", "document.lookup", fmt.Sprintf(`{"id":%q}`, m.ID)); codeOfResult(r) != contract.NotFound {
			t.Errorf("%s is still there: %s %v", m.Key, r.Body, r.Err)
		}
	}
	if left := did[catalogue.DocumentGetChildDocsOut](t, d.call(who, "", "document.get_child_docs", `{"id":"`+guardtest.Projects+`"}`)).Data; !slices.ContainsFunc(left, func(c catalogue.ChildDoc) bool { return c.ID == guardtest.Alpha }) {
		t.Errorf("left %+v", left)
	}
}

// codeOfResult is the code of a call's error, "" without one.
func codeOfResult(r contract.Result) contract.Code {
	if r.Err == nil {
		return ""
	}
	return contract.CodeOf(r.Err)
}
