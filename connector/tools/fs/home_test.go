package fs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/fs"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// desk is an executor in front of a sample home.
type desk struct {
	*guardtest.Home
	exec  *tools.Executor
	grant *contract.Grant
}

// newDesk may do everything in Work, read in Diary and Archive, and knows nothing
// of Private.
func newDesk(t testing.TB, notes ...guardtest.Doc) *desk {
	t.Helper()
	d := &desk{Home: guardtest.New(t), grant: guardtest.Grant(map[string]contract.Level{
		guardtest.Work: contract.ReadWriteDelete, guardtest.Diary: contract.Read, guardtest.Archive: contract.Read,
	})}
	for _, n := range notes {
		d.Add(t, n)
	}
	d.exec = executor(t, d.Home)
	return d
}

func executor(t testing.TB, h *guardtest.Home) *tools.Executor {
	t.Helper()
	exec, err := tools.New(tools.Config{Guard: h.Guard, Policy: policy.Fixed(contract.ReadWriteDelete), Catalogue: catalogue.AtHome()}, fs.Bindings()...)
	if err != nil {
		t.Fatal(err)
	}
	return exec
}

// call runs an action; format has a %q for each text that belongs into the
// arguments.
func (d *desk) call(action, format string, texts ...any) contract.Result {
	quoted := make([]any, len(texts))
	for i, v := range texts {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err) // a test's own texts
		}
		quoted[i] = raw
	}
	args := fmt.Sprintf(strings.ReplaceAll(format, "%q", "%s"), quoted...)
	return d.exec.Handle(context.Background(), contract.Call{Tool: "fs", Action: action, RequestID: "req-1", Grant: d.grant, Args: json.RawMessage(args)}, nil)
}

// ok runs a call that must succeed and gives its answer.
func ok[T any](t testing.TB, d *desk, action, format string, texts ...any) (out T) {
	t.Helper()
	r := d.call(action, format, texts...)
	if r.Err != nil {
		t.Fatalf("%s %s %q: %v", action, format, texts, r.Err)
	}
	if err := json.Unmarshal(r.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// fails runs a call that must fail with a code.
func (d *desk) fails(t testing.TB, want contract.Code, action, format string, texts ...any) *contract.Error {
	t.Helper()
	r := d.call(action, format, texts...)
	if got := contract.CodeOf(asError(r.Err)); got != want {
		t.Errorf("%s %s %q: %q %v %s, want %s", action, format, texts, got, r.Err, r.Body, want)
		return contract.Fail(contract.Internal, "")
	}
	return r.Err
}

func asError(e *contract.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// paths are the paths of a listing.
func paths(items []catalogue.FSItem) string {
	var all []string
	for _, i := range items {
		all = append(all, fmt.Sprintf("%s(%d)", i.Path, i.Children))
	}
	return strings.Join(all, " ")
}

// outline writes a tree as one line.
func outline(tree []catalogue.FSTreeNode) string {
	var all []string
	for _, n := range tree {
		text := n.Path
		if n.Count > 0 {
			text += fmt.Sprintf("+%d", n.Count)
		}
		if len(n.Children) > 0 {
			text += "[" + outline(n.Children) + "]"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}
