package integration

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// lost is a SiYuan that carries writes out and, while deaf, never says so.
type lost struct {
	next   http.Handler
	deaf   atomic.Bool
	writes atomic.Int32
	done   chan struct{} // a value per lost answer
	hangUp chan struct{} // closed: the connections of lost answers end
}

func (l *lost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/block/appendBlock" {
		l.next.ServeHTTP(w, r)
		return
	}
	l.writes.Add(1)
	if !l.deaf.Load() {
		l.next.ServeHTTP(w, r)
		return
	}
	l.next.ServeHTTP(httptest.NewRecorder(), r)
	l.done <- struct{}{}
	select {
	case <-l.hangUp:
	case <-r.Context().Done():
	}
	panic(http.ErrAbortHandler)
}

// One SiYuan, two connectors. What was first sent to one is never done again by the
// other, and a connector that comes back answers from its own memory.
func TestAWriteSentToOneConnectorIsNotDoneAgainByAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant("Ada", tenants.NewID())
	a.allow()
	siyuan := &lost{done: make(chan struct{}, 1), hangUp: make(chan struct{})}
	x := a.home(func(next http.Handler) http.Handler { siyuan.next = next; return siyuan })
	_, token := a.agentToken(tenants.NewID(), contract.ReadWrite)
	modern, legacy := w.agent(token, eras[0]), w.agent(token, "2025-06-18")
	notebook := into[madeNotebook](t, modern, "notebook", map[string]any{"action": "create", "name": "Work"}).Notebook.ID
	doc := into[made](t, modern, "document", map[string]any{"action": "create", "notebook": notebook, "path": "/Doc", "markdown": "one"}).ID
	add := func(id string) map[string]any {
		args := map[string]any{"action": "append", "parentID": doc, "dataType": "markdown", "data": "two"}
		if id != "" {
			args["requestId"] = id
		}
		return args
	}
	expect := func(when, id, text string, code contract.Code, writes int32) {
		t.Helper()
		got := call(t.Context(), modern, "block", add(id))
		if got.err != nil || got.code != code || !strings.Contains(got.body, text) {
			t.Errorf("%s: %s %v %s, want %q and %q", when, got.code, got.err, got.body, code, text)
		}
		if n := siyuan.writes.Load(); n != writes {
			t.Errorf("%s: SiYuan was asked to write %d times, want %d", when, n, writes)
		}
	}

	first := tenants.NewID().String()
	siyuan.deaf.Store(true)
	answered := make(chan answer, 1)
	go func() { answered <- call(t.Context(), modern, "block", add(first)) }() // received below
	<-siyuan.done
	y := a.beside(x)
	if got := <-answered; got.code != contract.OutcomeUnknown {
		t.Fatalf("the write whose connector was replaced: %+v", got)
	}
	close(siyuan.hangUp)
	must(t, x.stop())
	siyuan.deaf.Store(false)

	expect("repeated after the takeover", first, "took over", contract.OutcomeUnknown, 1)
	second := tenants.NewID().String()
	expect("a new one", second, `"success":true`, "", 2)
	expect("that again", second, `"replayed":true`, "", 2)
	expect("without an id", "", `"success":true`, "", 3)
	if got := call(t.Context(), legacy, "block", add("")); got.code != contract.OutcomeUnknown || !strings.Contains(got.body, "new requestId") {
		t.Errorf("a session from before the takeover, whose messages have ids of its time: %+v", got)
	}

	must(t, y.stop())
	a.run(y)
	expect("after a restart", first, "took over", contract.OutcomeUnknown, 3)
	expect("known after a restart", second, `"replayed":true`, "", 3)

	must(t, y.stop())
	a.run(x)
	expect("the first connector is back", first, `"recovered":true`, "", 3)
	expect("and does not know the second", second, "took over", contract.OutcomeUnknown, 3)
}
