package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// desk is an executor in front of a sample home.
type desk struct {
	*guardtest.Home
	exec *tools.Executor
	log  *bytes.Buffer
}

func newDesk(t *testing.T, p *policy.Policy, bindings ...tools.Binding) *desk {
	t.Helper()
	return deskOf(t, guardtest.New(t), p, bindings...)
}

func deskOf(t *testing.T, h *guardtest.Home, p *policy.Policy, bindings ...tools.Binding) *desk {
	t.Helper()
	d := &desk{Home: h, log: &bytes.Buffer{}}
	if bindings == nil {
		bindings = handlers.All()
	}
	var err error
	d.exec, err = tools.New(tools.Config{
		Guard: h.Guard, Policy: p, Catalogue: catalogue.AtHome(), Tenant: "t", Instance: "i",
		Now: func() time.Time { return time.Unix(1000, 0) }, Logger: slog.New(slog.NewJSONHandler(d.log, nil)),
	}, bindings...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func writer() *contract.Grant {
	return guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWrite, guardtest.Diary: contract.Read, guardtest.Archive: contract.Read})
}

// call runs a call; reads give all their fields.
func (d *desk) call(g *contract.Grant, id, args string) contract.Result {
	return d.asked(g, id, allFields(id, args))
}

// allFields asks for everything a read can tell.
func allFields(id, args string) string {
	tool, name, _ := strings.Cut(id, ".")
	a, ok := catalogue.New().Action(tool, name)
	if !ok || a.Kind != catalogue.Read || !strings.HasPrefix(args, "{") || !strings.HasSuffix(args, "}") || strings.Contains(args, `"verbose"`) {
		return args
	}
	return strings.Replace(strings.TrimSuffix(args, "}")+`,"verbose":true}`, "{,", "{", 1)
}

// asked runs a call as it is given.
func (d *desk) asked(g *contract.Grant, id, args string) contract.Result {
	tool, action, _ := strings.Cut(id, ".")
	return d.exec.Handle(context.Background(), contract.Call{Tool: tool, Action: action, RequestID: "req-1", Grant: g, Args: json.RawMessage(args)}, nil)
}

// ok runs a call that must succeed and gives its body.
func ok[T any](t *testing.T, d *desk, g *contract.Grant, id, args string) T {
	t.Helper()
	r := d.call(g, id, args)
	var out T
	if r.Err != nil {
		t.Fatalf("%s %s: %v", id, args, r.Err)
	}
	if err := json.Unmarshal(r.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func fails(t *testing.T, r contract.Result, want contract.Code) {
	t.Helper()
	if r.Err == nil {
		t.Errorf("answer %s, want %s", r.Body, want)
	} else if got := contract.CodeOf(r.Err); got != want {
		t.Errorf("code %s (%v), want %s", got, r.Err, want)
	}
}

func TestEveryActionHasAHandler(t *testing.T) {
	t.Parallel()
	if missing := newDesk(t, policy.Fixed(contract.Read)).exec.Unbound(); len(missing) > 0 {
		t.Errorf("without a handler: %s", strings.Join(missing, ", "))
	}
}

func TestTwoHandlersForOneActionAreAnError(t *testing.T) {
	t.Parallel()
	if _, err := tools.New(tools.Config{}, append(handlers.All(), handlers.All()...)...); err == nil {
		t.Error("no error")
	}
}

// refusedExamples are actions whose examples this home refuses, with the reason.
var refusedExamples = map[string]string{
	"file.list_unused_assets":       "it is refused while anything is hidden",
	"file.remove_unused_assets":     "it is refused while anything is hidden",
	"file.rename_asset":             "it is refused while anything is hidden",
	"file.delete_asset":             "it is refused while anything is hidden",
	"file.extract_doc":              "the owner of this home allows no folder",
	"file.create_template":          "it is refused while anything is hidden",
	"file.update_template":          "it is refused while anything is hidden",
	"file.delete_template":          "it is refused while anything is hidden",
	"file.save_doc_as_template":     "it is refused while anything is hidden",
	"fs.replace":                    "the example's word is not in the note",
	"block.replace":                 "the example's word is not in the note",
	"document.duplicate":            "the note shows what is hidden from the caller",
	"search.semantic":               "it is refused while anything is hidden",
	"extension.plugin_read":         "it is refused while anything is hidden",
	"extension.plugin_call":         "it is refused while anything is hidden",
	"extension.native_read":         "it is refused while anything is hidden",
	"extension.native_call":         "it is refused while anything is hidden",
	"system.conf":                   "it is refused while anything is hidden",
	"timeline.list_changes":         "the home keeps no restore points",
	"timeline.create_node":          "the home has no data repository key",
	"timeline.undo":                 "the home keeps no restore points",
	"system.perform_sync":           "the home has no sync",
	"tag.rename":                    "it is refused while anything is hidden",
	"tag.remove":                    "it is refused while anything is hidden",
	"extension.diagnose_plugin_mcp": "it is refused while anything is hidden",
}

func TestEveryExampleRunsOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	g := writer()
	g.Levels[guardtest.Work] = contract.ReadWriteDelete
	g.Switches = contract.Switches()
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			for _, example := range a.Examples {
				d := d
				if a.Kind == catalogue.Delete {
					d = newDesk(t, policy.Fixed(contract.ReadWriteDelete)) // the other examples need what this one takes away
				}
				if r := d.call(g, a.ID(), example); r.Err != nil && refusedExamples[a.ID()] == "" && r.Err.Type != contract.TypeNotFound && r.Err.Type != contract.TypeConflict {
					t.Errorf("%s %s: %v", a.ID(), example, r.Err)
				}
			}
		}
	}
}

func TestCallsThatAreNotForThisHome(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	change := func(f func(*contract.Grant)) *contract.Grant { g := writer(); f(g); return g }
	for name, g := range map[string]*contract.Grant{
		"no grant":         nil,
		"unknown version":  change(func(g *contract.Grant) { g.V = 99 }),
		"another tenant":   change(func(g *contract.Grant) { g.Tenant = "other" }),
		"another instance": change(func(g *contract.Grant) { g.Instance = "other" }),
		"expired":          change(func(g *contract.Grant) { g.Exp = 1000 }),
	} {
		r := d.call(g, "notebook.list", "{}")
		if r.Err == nil || contract.CodeOf(r.Err) != contract.PermissionDenied || r.Stats.KernelCalls != 0 {
			t.Errorf("%s: %+v after %d kernel calls, want permission_denied after none", name, r.Err, r.Stats.KernelCalls)
		}
	}
	fails(t, d.call(writer(), "nosuch.list", "{}"), contract.UnknownTool)
	fails(t, d.call(writer(), "notebook.nosuch", "{}"), contract.UnknownAction)
	fails(t, d.call(writer(), "block.append", `{"parentID":"x"}`), contract.InvalidArguments)
	fails(t, d.exec.Handle(context.Background(), contract.Call{Server: "other", Tool: "notebook", Action: "list", Grant: writer()}, nil), contract.Unsupported)
}

func TestTheHomePolicyHasTheLastWord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string, at int64) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(at, 0), time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	write("max_level: rw\ndeny: [search]\nnotebooks: {日记: none}\n", 1)
	p, err := policy.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, p)
	fails(t, d.call(writer(), "search.fulltext", `{"query":"a"}`), contract.ActionDisabled)
	fails(t, d.call(writer(), "block.get_kramdown", `{"id":"`+guardtest.EntryP+`"}`), contract.NotFound)
	if r := d.call(writer(), "block.append", `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"x"}`); r.Err != nil {
		t.Error(r.Err)
	}
	write("max_level: r\n", 2)
	fails(t, d.call(writer(), "block.append", `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"x"}`), contract.PermissionDenied)
	write("max_level: nonsense\n", 3)
	fails(t, d.call(writer(), "block.append", `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"x"}`), contract.PermissionDenied)
	if !strings.Contains(d.log.String(), "home policy not taken over") {
		t.Error("the log says nothing about the broken file")
	}
}

func TestAPanicBecomesAnErrorThatLeadsToTheLog(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read), tools.Bind(catalogue.NotebookList,
		func(context.Context, *tools.Request, catalogue.NotebookListIn) (catalogue.NotebookListOut, error) {
			panic("note text that must not be logged")
		}))
	r := d.call(writer(), "notebook.list", "{}")
	fails(t, r, contract.Internal)
	if r.Err.RequestID != "req-1" || !strings.Contains(d.log.String(), "executor_test.go") {
		t.Errorf("request id %q; log %s", r.Err.RequestID, d.log)
	}
	if strings.Contains(d.log.String()+string(r.Err.Body()), "note text") {
		t.Error("the panic's value got out")
	}
}

func TestAnActionWithoutHandlerSaysSo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read), handlers.All()[:1]...)
	fails(t, d.call(writer(), "search.fulltext", `{"query":"a"}`), contract.Unsupported)
}

func TestKernelCallsPerAction(t *testing.T) {
	t.Parallel()
	g := writer()
	g.Switches = []contract.Switch{contract.SwitchWorkspace}
	for _, c := range []struct {
		id, args string
		want     int // a promise about cost: raise it only with a reason
	}{
		{"notebook.list", "{}", 1},
		{"notebook.create", `{"name":"New"}`, 3},
		{"document.create", `{"notebook":"` + guardtest.Work + `","path":"/New","markdown":"x"}`, 5},
		{"document.get_doc", `{"id":"` + guardtest.Entry + `"}`, 4},
		{"document.list_tree", `{"notebook":"` + guardtest.Work + `","path":"/"}`, 3},
		{"block.get_kramdown", `{"id":"` + guardtest.Intro + `"}`, 2},
		{"block.append", `{"parentID":"` + guardtest.Projects + `","dataType":"markdown","data":"x"}`, 8},
		{"block.update", `{"id":"` + guardtest.Intro + `","dataType":"markdown","data":"x"}`, 11},
		{"search.fulltext", `{"query":"small"}`, 3}, // one is the flush of what built the home
	} {
		r := newDesk(t, policy.Fixed(contract.ReadWriteDelete)).call(g, c.id, c.args)
		if r.Err != nil || r.Stats.KernelCalls != c.want {
			t.Errorf("%s: %d kernel calls, want %d (err %v)", c.id, r.Stats.KernelCalls, c.want, r.Err)
		}
	}
}

func TestLogsHoldNoNoteText(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	d.call(writer(), "block.append", `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"canary text"}`)
	d.call(writer(), "block.append", `{"parentID":"`+guardtest.Heading+`","dataType":"markdown","data":"canary text"}`)
	d.call(writer(), "search.fulltext", `{"query":"canary"}`)
	d.call(writer(), "document.create", `{"notebook":"`+guardtest.Work+`","path":"/canary/../x","markdown":"canary"}`)
	if strings.Contains(d.log.String(), "canary") {
		t.Errorf("log %s", d.log)
	}
}

func TestTheHomeBeingOfflineIsSaidPlainly(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	d.Client.Close()
	d.Kernel.Faults().Set("", faultDrop)
	fails(t, d.call(writer(), "notebook.list", "{}"), contract.SiYuanOffline)
}
