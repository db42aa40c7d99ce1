package tools_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
)

const listPath = "/api/notebook/lsNotebooks"

// listless counts the lists of notebooks that a kernel is asked for, and has it
// break down at each.
func listless(h *guardtest.Home) *atomic.Int32 {
	var asked atomic.Int32
	h.Between(func(kernel http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == listPath {
				asked.Add(1)
				http.Error(w, "out of order", http.StatusInternalServerError)
				return
			}
			kernel.ServeHTTP(w, r)
		})
	})
	return &asked
}

func TestAReadOfBlocksAsksForNoListOfNotebooks(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	asked := listless(d.Home)
	for id, args := range map[string]string{
		"block.get_kramdown":        `{"id":"` + guardtest.Intro + `"}`,
		"block.batch_kramdown":      `{"ids":["` + guardtest.Intro + `","` + guardtest.Heading + `"]}`,
		"block.get_children":        `{"id":"` + guardtest.List + `"}`,
		"document.get_child_blocks": `{"id":"` + guardtest.Entry + `"}`,
		"document.get_outline":      `{"id":"` + guardtest.Alpha + `"}`,
	} {
		if r := d.call(writer(), id, args); r.Err != nil {
			t.Errorf("%s: %v", id, r.Err)
		}
	}
	for _, gone := range []string{guardtest.SecretP, guardtest.Closed, guardtest.Missing} {
		fails(t, d.call(writer(), "block.get_kramdown", `{"id":"`+gone+`"}`), contract.NotFound)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the list was asked for %d times", n)
	}
}

// A list that cannot be had is no empty one: nothing that was found with it counts.
func TestACallFailsWithTheListItLookedAt(t *testing.T) {
	t.Parallel()
	g := writer()
	g.Switches = []contract.Switch{contract.SwitchWorkspace}
	for _, c := range []struct{ id, args string }{
		{"notebook.list", `{}`},
		{"notebook.get_conf", `{"notebook":"` + guardtest.Work + `"}`},
		{"notebook.get_conf", `{"notebook":"20240101099999-nowhere"}`},
		{"document.get_doc", `{"id":"` + guardtest.Entry + `"}`}, // it names the notebook
		{"search.fulltext", `{"query":"small"}`},
		{"search.query_sql", `{"stmt":"SELECT id FROM blocks"}`},
		{"block.recent_updated", `{"count":1}`},
		{"block.append", `{"parentID":"` + guardtest.Projects + `","dataType":"markdown","data":"x"}`},
		{"notebook.create", `{"name":"New"}`},
	} {
		d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
		asked := listless(d.Home)
		r := d.call(g, c.id, c.args)
		if r.Err == nil || contract.CodeOf(r.Err) == contract.NotFound || asked.Load() == 0 {
			t.Errorf("%s: %v, %s after %d lists", c.id, r.Err, r.Body, asked.Load())
		}
	}
}

func TestARuleOfOneNotebookNeedsTheList(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte("max_level: r\nnotebooks: {日记: none}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, p)
	asked := listless(d.Home)
	for _, id := range []string{guardtest.Intro, guardtest.Entry} {
		if r := d.call(writer(), "block.get_kramdown", `{"id":"`+id+`"}`); r.Err == nil {
			t.Errorf("%s was read while nobody knows which notebook the rule means", id)
		}
	}
	if asked.Load() == 0 {
		t.Error("the list was not asked for")
	}
}

func TestAClosedNotebookIsClosedForTheNextRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	g := guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete})
	g.Switches = []contract.Switch{contract.SwitchWorkspace}
	read := func() contract.Result { return d.call(g, "block.get_kramdown", `{"id":"`+guardtest.Intro+`"}`) }
	if r := read(); r.Err != nil || !strings.Contains(string(r.Body), guardtest.Intro) {
		t.Fatalf("%v, %s", r.Err, r.Body)
	}
	if r := d.call(g, "notebook.set_conf", `{"notebook":"`+guardtest.Work+`","conf":{"closed":true}}`); r.Err != nil {
		t.Fatal(r.Err)
	}
	fails(t, read(), contract.NotFound)
}
