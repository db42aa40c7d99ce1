package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// wire is a request over a real connection whose events are read as they come.
type wire struct {
	resp   *http.Response
	events *bufio.Scanner
}

// open sends a request to a node and returns when its headers are there.
func (r *rig) open(t *testing.T, method, body string, header map[string]string) *wire {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &wire{resp, bufio.NewScanner(resp.Body)}
}

// next is the next message of a stream; nil at its end.
func (w *wire) next(t *testing.T) map[string]any {
	t.Helper()
	for w.events.Scan() {
		data, ok := strings.CutPrefix(w.events.Text(), "data: ")
		if !ok {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		return m
	}
	return nil
}

// comment is the next comment of a stream; "" at its end.
func (w *wire) comment() string {
	for w.events.Scan() {
		if strings.HasPrefix(w.events.Text(), ":") {
			return w.events.Text()
		}
	}
	return ""
}

// text is the text of a tool result in a message.
func text(t *testing.T, m map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(m["result"])
	if err != nil {
		t.Fatal(err)
	}
	var res mcp.CallToolResult
	if err := json.Unmarshal(raw, &res); err != nil || len(res.Content) != 1 {
		t.Fatalf("%v: %v", m, err)
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// M01: a broker that was started again goes on with the sessions of the one
// before, also for a client that was in the middle of something.
func TestASessionSurvivesARestart(t *testing.T) {
	t.Parallel()
	for _, era := range legacyEras {
		s := newStore()
		before := s.node(t, nil)
		raw, _ := before.token(t, tenantA, agent)
		id := before.sessionIn(t, raw, era)
		header := legacyHeader(raw, id)
		header["Mcp-Protocol-Version"] = era
		first := before.send(t, "POST", "/mcp", legacyCall("5"), header)
		key := before.home.last(t).call.RequestID
		before.stop()

		after := s.node(t, nil)
		again := after.send(t, "POST", "/mcp", legacyCall("5"), header)
		if first.Code != 200 || again.Code != 200 || again.Body.String() != first.Body.String() {
			t.Errorf("%s: %d %s, then %d %s", era, first.Code, first.Body, again.Code, again.Body)
		}
		if got := after.home.last(t).call.RequestID; got != key {
			t.Errorf("%s: the same message has request id %s, then %s", era, key, got)
		}
	}
}

func TestASessionGoesOnOnAnotherNode(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	raw, _ := a.token(t, tenantA, agent)
	id := a.session(t, raw)
	for _, node := range []*rig{b, a, b} {
		if w := node.send(t, "POST", "/mcp", legacyCall("1"), legacyHeader(raw, id)); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	// The stream is opened on the node that never saw an initialize.
	stream := b.open(t, "GET", "", legacyHeader(raw, id))
	if stream.resp.StatusCode != http.StatusOK || stream.comment() == "" {
		t.Fatalf("%d", stream.resp.StatusCode)
	}
	a.store.change(off(tenantA, agent, "search"))
	told := map[any]bool{} // in any order
	for range 3 {
		told[stream.next(t)["method"]] = true
	}
	for _, list := range []string{"prompts", "resources", "tools"} {
		if !told["notifications/"+list+"/list_changed"] {
			t.Errorf("nothing of the %s: the stream said %v", list, told)
		}
	}
}

// M19 goes through another node here; TestASessionSurvivesANewToken is the same
// on one.
func TestASessionSurvivesANewTokenOnAnotherNode(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	old, claims := a.token(t, tenantA, agent)
	id := a.session(t, old)
	a.store.revoke(tenantA, tenants.RevokedToken, claims.ID)
	await(t, "the revocation", func() bool {
		return b.send(t, "POST", "/mcp", ping, legacyHeader(old, id)).Code == http.StatusUnauthorized
	})
	fresh, _ := b.token(t, tenantA, agent)
	if w := b.send(t, "POST", "/mcp", legacyCall("1"), legacyHeader(fresh, id)); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// M02: whatever an id looks like, an unknown one is answered 404 in JSON-RPC.
func TestUnknownSessionsAreNotFound(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRig(t, func(c *Config) { c.Now = func() time.Time { return now } })
	raw, _ := r.token(t, tenantA, agent)
	good := r.session(t, raw)
	other := newRig(t, nil)
	theirToken, _ := other.token(t, tenantA, agent)
	foreign := other.session(t, theirToken) // of another installation
	flipped := []byte(good)
	flipped[40] ^= 1
	padded := good[:len(good)-1] + "="
	for name, id := range map[string]string{
		"a word": "x", "long": strings.Repeat("A", 8000), "cut": good[:len(good)-2], "longer": good + "AA", "changed": string(flipped),
		"padded": padded, "of another installation": foreign, "zeros": strings.Repeat("A", len(good)), "a path": "../../etc/passwd",
	} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			w := r.send(t, method, "/mcp", ping, legacyHeader(raw, id))
			if w.Code != http.StatusNotFound {
				t.Errorf("%s, %s: %d", name, method, w.Code)
				continue
			}
			if code, _ := rpcError(t, w); code != -32001 {
				t.Errorf("%s, %s: code %d", name, method, code)
			}
		}
	}
	// The same client, the same token, a day later.
	if w := r.send(t, "POST", "/mcp", ping, legacyHeader(raw, good)); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	now = now.Add(24 * time.Hour)
	late, _ := r.token(t, tenantA, agent)
	if w := r.send(t, "POST", "/mcp", ping, legacyHeader(late, good)); w.Code != http.StatusNotFound {
		t.Errorf("a day later: %d", w.Code)
	}
	if r.server.Sessions() != 1 {
		t.Errorf("%d sessions in memory, want the one that was begun", r.server.Sessions())
	}
}

func TestInitializeWithAnOldIDBeginsANewSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	live := r.session(t, raw)
	for name, id := range map[string]string{"unknown": "x", "still alive": live} {
		w := r.send(t, "POST", "/mcp", initialize, legacyHeader(raw, id))
		fresh := w.Header().Get("Mcp-Session-Id")
		if w.Code != http.StatusOK || fresh == "" || fresh == id {
			t.Fatalf("%s: %d, session %q, %s", name, w.Code, fresh, w.Body)
		}
		if w := r.send(t, "POST", "/mcp", legacyCall("1"), legacyHeader(raw, fresh)); w.Code != http.StatusOK {
			t.Errorf("%s: the new session: %d", name, w.Code)
		}
	}
}

func TestAFailedInitializeLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":7}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":7}}`,
	} {
		w := r.send(t, "POST", "/mcp", body, map[string]string{"Authorization": "Bearer " + raw})
		if strings.Contains(w.Body.String(), `"result"`) {
			t.Errorf("%s: %s", body, w.Body)
		}
	}
	if r.server.Sessions() != 0 {
		t.Errorf("%d sessions", r.server.Sessions())
	}
}

func TestVersionsAreNegotiatedAndKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	for asked, want := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05",
		"2026-07-28": "2025-11-25", "1999-01-01": "2025-11-25",
	} {
		w := r.send(t, "POST", "/mcp", strings.Replace(initialize, "2025-11-25", asked, 1), map[string]string{"Authorization": "Bearer " + raw})
		if !strings.Contains(w.Body.String(), `"protocolVersion":"`+want+`"`) {
			t.Errorf("%s: %s", asked, w.Body)
		}
		got, err := r.server.tickets.open(t.Context(), w.Header().Get("Mcp-Session-Id"))
		if err != nil || got.era != want {
			t.Errorf("%s: the id says %q, %v", asked, got.era, err)
		}
	}
}

// M04: a client that forgets its session each time costs a bounded amount of
// memory, and none of its sessions stops to work.
func TestAClientThatForgetsItsSessionsIsServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MaxSessions = 8 })
	raw, _ := r.token(t, tenantA, agent)
	var ids []string
	for range 100 {
		ids = append(ids, r.session(t, raw))
		if n := r.server.Sessions(); n > 8 {
			t.Fatalf("%d sessions in memory", n)
		}
	}
	for i, id := range ids {
		if w := r.send(t, "POST", "/mcp", ping, legacyHeader(raw, id)); w.Code != http.StatusOK {
			t.Errorf("session %d: %d %s", i, w.Code, w.Body)
		}
	}
}

func TestSessionsAreBoundedForAgentTenantAndNode(t *testing.T) {
	t.Parallel()
	s := newStore()
	var agents []tenants.ID
	for range 4 {
		f := facts(tenantA, tenants.NewID())
		s.put(f)
		agents = append(agents, f.Agent.ID)
	}
	s.put(facts(tenantB, agent))
	r := s.node(t, func(c *Config) { c.MaxSessions, c.MaxTenantSessions, c.MaxNodeSessions = 2, 5, 6 })
	count := func(tenant tenants.ID) int {
		r.server.sessions.mu.Lock()
		defer r.server.sessions.mu.Unlock()
		return r.server.sessions.tenants[tenant]
	}
	for _, a := range agents {
		raw, _ := r.token(t, tenantA, a)
		for range 3 {
			r.session(t, raw)
		}
	}
	if n := count(tenantA); n != 5 {
		t.Errorf("%d sessions of a tenant, want 5", n)
	}
	raw, _ := r.token(t, tenantB, agent)
	for range 2 {
		r.session(t, raw)
	}
	if a, b, n := count(tenantA), count(tenantB), r.server.Sessions(); b != 2 || n != 6 || a != 4 {
		t.Errorf("%d and %d sessions of two tenants, %d in all; want 4, 2 and 6", a, b, n)
	}
}

func TestSessionsAtWorkStayAndNoMoreAreOpened(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MaxSessions = 2 })
	started, finish := make(chan struct{}, 2), make(chan struct{})
	r.home.will(func(context.Context, relayed) contract.Result {
		started <- struct{}{}
		<-finish
		return contract.Result{Body: json.RawMessage(`{}`)}
	})
	raw, _ := r.token(t, tenantA, agent)
	var ended []<-chan struct{}
	for range 2 {
		ended = append(ended, r.serve(t, "POST", legacyCall("1"), legacyHeader(raw, r.session(t, raw))))
		<-started
	}
	w := r.send(t, "POST", "/mcp", initialize, map[string]string{"Authorization": "Bearer " + raw})
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d", w.Code)
	}
	rpcError(t, w)
	close(finish)
	for _, e := range ended {
		within(t, "the end of a call", e)
	}
	r.session(t, raw)
}

// M05: memory and goroutines come back after the idle time.
func TestIdleSessionsLeaveNothing(t *testing.T) { // not parallel: it counts goroutines
	now := time.Now()
	r := newRig(t, func(c *Config) {
		c.Now = func() time.Time { return now }
		c.MaxSessions = 5000
	})
	raw, _ := r.token(t, tenantA, agent)
	before := runtime.NumGoroutine()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round := func() {
		for range 150 {
			r.session(t, raw)
		}
		if n := r.server.Sessions(); n != 150 {
			t.Fatalf("%d sessions", n)
		}
		now = now.Add(9 * time.Minute)
		if r.server.sweep(); r.server.Sessions() != 150 {
			t.Fatal("sessions were dropped too soon")
		}
		now = now.Add(2 * time.Minute)
		// One may still be at work on its last message, which was answered at once.
		await(t, "the end of all sessions", func() bool { r.server.sweep(); return r.server.Sessions() == 0 })
		await(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before+5 })
	}
	round()
	first := heap()
	for range 4 {
		round()
	}
	// 150 idle sessions are about 800 KB. What pools and other tests let go of late
	// may be there for a while.
	await(t, "the memory of 600 sessions", func() bool { return heap() < first+800<<10 })
}

// M06: requests without sessions leave no goroutine behind.
func TestStatelessCallsLeaveNothing(t *testing.T) { // not parallel: it counts goroutines
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	before := 0
	for i := range 1000 {
		if w := r.send(t, "POST", "/mcp", callList, modernHeader(raw, "tools/call", "notebook")); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if i == 10 {
			before = runtime.NumGoroutine()
		}
	}
	await(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before+5 })
}

// M09: what a client says it accepts, and the second session works like the
// first.
func TestEverySessionAnswersWhateverTheClientAccepts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	for accept, ok := range map[string]bool{
		"application/json, text/event-stream": true, "text/event-stream,application/json": true, "*/*": true,
		"application/*, text/*": true, "application/json;q=0.9, text/event-stream;q=0.1": true, "Application/JSON, Text/Event-Stream": true,
		"application/json": false, "text/event-stream": false, "text/html": false, "": false, "application/json, text/event-stream;q=0": false,
	} {
		for range 2 {
			w := r.send(t, "POST", "/mcp", initialize, map[string]string{"Authorization": "Bearer " + raw, "Accept": accept})
			if !ok {
				if w.Code != http.StatusNotAcceptable {
					t.Errorf("%q: %d", accept, w.Code)
				}
				rpcError(t, w)
				continue
			}
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"serverInfo"`) {
				t.Fatalf("%q: %d %s", accept, w.Code, w.Body)
			}
			header := legacyHeader(raw, w.Header().Get("Mcp-Session-Id"))
			header["Accept"] = accept
			if w := r.send(t, "POST", "/mcp", legacyCall("1"), header); !strings.Contains(w.Body.String(), "done") {
				t.Errorf("%q: %d %s", accept, w.Code, w.Body)
			}
		}
	}
}

func TestChecksBeforeASession(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	id := r.session(t, raw)
	for name, c := range map[string]struct {
		method, body string
		header       map[string]string
		status       int
	}{
		"unknown version":        {"POST", ping, map[string]string{"Mcp-Protocol-Version": "2025-01-01"}, 400},
		"unknown version, GET":   {"GET", "", map[string]string{"Mcp-Protocol-Version": "1"}, 400},
		"no version":             {"POST", ping, map[string]string{"Mcp-Protocol-Version": ""}, 200},
		"no id":                  {"POST", ping, map[string]string{"Mcp-Session-Id": ""}, 400},
		"no id, GET":             {"GET", "", map[string]string{"Mcp-Session-Id": ""}, 400},
		"no id, DELETE":          {"DELETE", "", map[string]string{"Mcp-Session-Id": ""}, 400},
		"GET without events":     {"GET", "", map[string]string{"Accept": "application/json"}, 406},
		"PUT":                    {"PUT", ping, nil, 405},
		"HEAD":                   {"HEAD", "", nil, 405},
		"PATCH":                  {"PATCH", "", nil, 405},
		"text":                   {"POST", ping, map[string]string{"Content-Type": "text/plain"}, 415},
		"no body":                {"POST", "", nil, 400},
		"no JSON":                {"POST", "{", nil, 400},
		"no JSON-RPC":            {"POST", "{}", nil, 400},
		"JSON-RPC 1.0":           {"POST", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, nil, 400},
		"an empty batch":         {"POST", "[]", nil, 400},
		"unknown method":         {"POST", `{"jsonrpc":"2.0","id":1,"method":"foo/bar"}`, nil, 400},
		"a modern body, no head": {"POST", discover, map[string]string{"Mcp-Session-Id": "", "Mcp-Protocol-Version": ""}, 400},
	} {
		header := legacyHeader(raw, id)
		for k, v := range c.header {
			header[k] = v
		}
		w := r.send(t, c.method, "/mcp", c.body, header)
		if w.Code != c.status {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.status)
		}
		if c.status == 405 && !strings.Contains(w.Header().Get("Allow"), "DELETE") {
			t.Errorf("%s: Allow %q", name, w.Header().Get("Allow"))
		}
	}
}

func TestAnEndedSessionStaysEndedEverywhere(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	raw, _ := a.token(t, tenantA, agent)
	id, other := a.session(t, raw), a.session(t, raw)
	stream := b.open(t, "GET", "", legacyHeader(raw, id))
	stream.comment()
	if w := a.send(t, "DELETE", "/mcp", "", legacyHeader(raw, id)); w.Code != http.StatusNoContent {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if w := a.send(t, method, "/mcp", ping, legacyHeader(raw, id)); w.Code != http.StatusNotFound {
			t.Errorf("%s afterwards: %d", method, w.Code)
		}
	}
	if m := stream.next(t); m != nil {
		t.Errorf("the stream on the other node said %v", m)
	}
	if w := b.send(t, "POST", "/mcp", ping, legacyHeader(raw, id)); w.Code != http.StatusNotFound {
		t.Errorf("on the other node: %d", w.Code)
	}
	// A node that starts later knows too, from its first request on.
	late := a.store.node(t, nil)
	if w := late.send(t, "POST", "/mcp", ping, legacyHeader(raw, id)); w.Code != http.StatusNotFound {
		t.Errorf("on a new node: %d", w.Code)
	}
	for _, r := range []*rig{a, b, late} {
		if w := r.send(t, "POST", "/mcp", ping, legacyHeader(raw, other)); w.Code != http.StatusOK {
			t.Errorf("another session: %d", w.Code)
		}
	}
}

func TestEndingASessionEndsItsCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	started, ended := make(chan struct{}), make(chan struct{})
	r.home.will(func(ctx context.Context, _ relayed) contract.Result {
		close(started)
		<-ctx.Done()
		close(ended)
		return contract.Result{Err: contract.Fail(contract.Timeout, "cut")}
	})
	raw, _ := r.token(t, tenantA, agent)
	id := r.session(t, raw)
	call := r.serve(t, "POST", legacyCall("1"), legacyHeader(raw, id))
	within(t, "the call", started)
	if w := r.send(t, "DELETE", "/mcp", "", legacyHeader(raw, id)); w.Code != http.StatusNoContent {
		t.Fatalf("%d", w.Code)
	}
	within(t, "the end of the call at home", ended)
	within(t, "the end of the request", call)
}

// M20: somebody else's session id opens nothing, and both tenants hear of it.
func TestUsingSomebodyElsesSessionIsAudited(t *testing.T) {
	t.Parallel()
	s := newStore()
	s.put(facts(tenantA, agent2))
	s.put(facts(tenantB, agent))
	book := newBook()
	r := s.node(t, func(c *Config) { c.Book = book })
	mine, _ := r.token(t, tenantA, agent)
	id := r.session(t, mine)
	ticket, err := r.server.tickets.open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []struct{ tenant, agent tenants.ID }{{tenantA, agent2}, {tenantB, agent}} {
		raw, _ := r.token(t, who.tenant, who.agent)
		for _, method := range []string{"POST", "GET", "DELETE"} {
			if w := r.send(t, method, "/mcp", ping, legacyHeader(raw, id)); w.Code != http.StatusNotFound {
				t.Errorf("%v: %d", who, w.Code)
			}
		}
	}
	got := map[string]bool{}
	for range 3 {
		got[<-book.audits] = true
	}
	object := "session:" + ticket.id.String()
	for _, want := range []string{
		tenantA.String() + " agent " + agent2.String() + " session.foreign " + object,
		tenantB.String() + " agent " + agent.String() + " session.foreign session", // nothing about the other tenant
		tenantA.String() + " system " + (tenants.ID{}).String() + " session.foreign " + object,
	} {
		if !got[want] {
			t.Errorf("not in the audit logs: %s\n%v", want, got)
		}
	}
	if w := r.send(t, "POST", "/mcp", legacyCall("1"), legacyHeader(mine, id)); w.Code != http.StatusOK {
		t.Errorf("the owner: %d", w.Code)
	}
	if len(book.audits) != 0 {
		t.Error("one attempt was noted more than once")
	}
}

// book is a Book in memory.
type book struct {
	audits  chan string
	touches chan agentKey
}

func newBook() *book { return &book{make(chan string, 16), make(chan agentKey, 16)} }

func (b *book) Audit(_ context.Context, tenant tenants.ID, e tenants.AuditEntry) error {
	b.audits <- strings.Join([]string{tenant.String(), e.ActorKind, e.ActorID.String(), e.Verb, e.Object}, " ")
	return nil
}

func (b *book) TouchAgent(_ context.Context, tenant, agent tenants.ID, _ time.Time) error {
	b.touches <- agentKey{tenant, agent}
	return nil
}

func TestTheUseOfAnAgentIsNotedOnceAMinute(t *testing.T) {
	t.Parallel()
	now := time.Now()
	book := newBook()
	r := newRig(t, func(c *Config) { c.Book, c.Now = book, func() time.Time { return now } })
	raw, _ := r.token(t, tenantA, agent)
	use := func() { r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", "")) }
	use()
	use()
	now = now.Add(59 * time.Second)
	use()
	now = now.Add(time.Second)
	use()
	r.server.Close() // works off what was noted
	if len(book.touches) != 2 {
		t.Errorf("%d notes, want 2", len(book.touches))
	}
	if got := <-book.touches; got != (agentKey{tenantA, agent}) {
		t.Errorf("%v", got)
	}
}
