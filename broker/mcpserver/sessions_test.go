package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// off are facts with a whole tool switched off.
func off(tenant, agent tenants.ID, tool string) *tenants.Snapshot {
	f := facts(tenant, agent)
	t, _ := catalogue.Tool(tool)
	for _, a := range t.Actions {
		f.Toggles = append(f.Toggles, tenants.Toggle{Tool: tool, Action: a.Name, Enabled: false})
	}
	return f
}

func TestAChangeReachesOpenSessionsAndEveryLaterCall(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		changed := make(chan struct{}, 8)
		s, _ := r.client(t, era, tenantA, agent, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		})
		if listed(t, s)["search"] == nil {
			t.Fatal("search is not listed to begin with")
		}
		// The client's stream opens a moment after it is connected; what happens
		// before is not told to it.
		told := func(to, back *tenants.Snapshot) {
			t.Helper()
			for range 20 {
				r.store.change(to)
				select {
				case <-changed:
					return
				case <-time.After(250 * time.Millisecond):
					r.store.change(back)
				}
			}
			t.Error("list_changed did not arrive")
		}
		told(off(tenantA, agent, "search"), facts(tenantA, agent))
		if listed(t, s)["search"] != nil {
			t.Error("search is still listed")
		}
		before := len(r.home.received())
		for _, action := range []string{"fulltext", "help"} {
			e := failure(t, call(t, s, "search", map[string]any{"action": action, "query": "x"}))
			if e.Type != contract.TypeDisabled || e.Hint == "" {
				t.Errorf("%s: %+v, want disabled_error with a way out", action, e)
			}
		}
		if len(r.home.received()) != before {
			t.Error("a call reached the home")
		}
		told(facts(tenantA, agent), off(tenantA, agent, "search"))
		if listed(t, s)["search"] == nil {
			t.Error("search did not come back")
		}
	})
}

func TestAnOldSnapshotDoesNotUndoANewerList(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	of := func(version int64, f *tenants.Snapshot) *admission.Snapshot {
		f.PolicyVersion = version
		return admission.Compile(f, catalogue)
	}
	a := r.server.agentFor(of(7, facts(tenantA, agent)))
	r.server.agentFor(of(9, off(tenantA, agent, "search")))
	r.server.agentFor(of(8, facts(tenantA, agent))) // a request that was held up
	if a.shown.tools["search"] != nil {
		t.Error("search came back with an older snapshot")
	}
	r.server.agentFor(of(10, facts(tenantA, agent)))
	if a.shown.tools["search"] == nil {
		t.Error("search did not come back with a newer one")
	}
}

// await polls for what other goroutines are about to do.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// Every way of taking a principal's access cuts its stream and its running call
// well within two seconds, and refuses what comes after.
func TestRevokingCutsStreamsAndCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind    tenants.RevocationKind
		subject string
		change  func(*tenants.Snapshot)
		status  int
	}{
		"token":    {tenants.RevokedToken, "", nil, http.StatusUnauthorized},
		"agent":    {tenants.RevokedAgent, agent.String(), func(f *tenants.Snapshot) { f.Agent.RevokedAt = time.Now() }, http.StatusUnauthorized},
		"member":   {tenants.RevokedMember, member.String(), func(f *tenants.Snapshot) { f.Role = "" }, http.StatusUnauthorized},
		"instance": {tenants.RevokedInstance, instance.String(), func(f *tenants.Snapshot) { f.Instance.Enabled = false }, http.StatusForbidden},
		"tenant":   {tenants.RevokedTenant, tenantA.String(), func(f *tenants.Snapshot) { f.TenantStatus = tenants.Suspended }, http.StatusForbidden},
	} {
		for _, era := range []string{"2026-07-28", "2025-11-25"} {
			t.Run(name+" in "+era, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, nil)
				started, ended := make(chan struct{}), make(chan struct{})
				r.home.will(func(ctx context.Context, _ relayed) contract.Result {
					close(started)
					<-ctx.Done()
					close(ended)
					return contract.Result{Err: contract.Fail(contract.Timeout, "cut")}
				})
				raw, claims := r.token(t, tenantA, agent)
				streamEnded, callEnded := r.openStream(t, era, raw), r.startCall(t, era, raw)
				within(t, "the call", started)

				f := facts(tenantA, agent)
				if c.change != nil {
					c.change(f)
				}
				subject := c.subject
				if subject == "" {
					subject = claims.ID
				}
				r.store.put(f)
				r.store.revoke(tenantA, c.kind, subject)
				within(t, "the end of the call at home", ended)
				within(t, "the end of the call's request", callEnded)
				within(t, "the end of the stream", streamEnded)
				if w := r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", "")); w.Code != c.status {
					t.Errorf("afterwards: %d, want %d", w.Code, c.status)
				}
				if name != "token" { // its requests were cut a moment before
					await(t, "the end of the agent's server", func() bool { return r.server.agents.Len() == 0 })
				}
			})
		}
	}
}

// session begins a legacy session by hand and returns its id.
func (r *rig) session(t testing.TB, raw string) string {
	t.Helper()
	return r.sessionIn(t, raw, "2025-11-25")
}

func (r *rig) sessionIn(t testing.TB, raw, era string) string {
	t.Helper()
	w := r.send(t, "POST", "/mcp", strings.Replace(initialize, "2025-11-25", era, 1), map[string]string{"Authorization": "Bearer " + raw})
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || id == "" {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	if w := r.send(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, legacyHeader(raw, id)); w.Code != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", w.Code, w.Body)
	}
	return id
}

func legacyHeader(raw, session string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + raw, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"}
}

// serve runs a request in the background; the channel closes when it ends.
func (r *rig) serve(t *testing.T, method, body string, header map[string]string) <-chan struct{} {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, "https://notes.example/mcp", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	ended := make(chan struct{})
	before := r.running()
	go func() {
		defer close(ended)
		r.handlers.ServeHTTP(httptest.NewRecorder(), req)
	}()
	await(t, "the request's start", func() bool { return r.running() > before })
	return ended
}

func (r *rig) running() int {
	r.server.live.mu.Lock()
	defer r.server.live.mu.Unlock()
	return len(r.server.live.all)
}

func (r *rig) openStream(t *testing.T, era, raw string) <-chan struct{} {
	t.Helper()
	if era >= modernEra {
		listen := `{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`
		return r.serve(t, "POST", listen, modernHeader(raw, "subscriptions/listen", ""))
	}
	return r.serve(t, "GET", "", legacyHeader(raw, r.session(t, raw)))
}

func (r *rig) startCall(t *testing.T, era, raw string) <-chan struct{} {
	t.Helper()
	if era >= modernEra {
		return r.serve(t, "POST", callList, modernHeader(raw, "tools/call", "notebook"))
	}
	return r.serve(t, "POST", legacyCall("7"), legacyHeader(raw, r.session(t, raw)))
}

func legacyCall(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"document","arguments":{"action":"create","notebook":"` + notebook + `","path":"/New"}}}`
}

func TestARevocationEndsItsOwnPrincipalsOnly(t *testing.T) {
	t.Parallel()
	other := tenants.NewID()
	for name, c := range map[string]struct {
		kind     tenants.RevocationKind
		tenant   tenants.ID
		subject  tenants.ID
		instance tenants.ID // of the request
		want     bool
	}{
		"tenant":                        {tenants.RevokedTenant, tenantA, tenantA, instance, true},
		"another tenant":                {tenants.RevokedTenant, tenantB, tenantB, instance, false},
		"member":                        {tenants.RevokedMember, tenantA, member, instance, true},
		"another member":                {tenants.RevokedMember, tenantA, other, instance, false},
		"agent":                         {tenants.RevokedAgent, tenantA, agent, instance, true},
		"another agent":                 {tenants.RevokedAgent, tenantA, other, instance, false},
		"equal agent of another tenant": {tenants.RevokedAgent, tenantB, agent, instance, false},
		"instance":                      {tenants.RevokedInstance, tenantA, instance, instance, true},
		"another instance":              {tenants.RevokedInstance, tenantA, other, instance, false},
		"instance not known yet":        {tenants.RevokedInstance, tenantA, instance, tenants.ID{}, true},
		"share":                         {tenants.RevokedShare, tenantA, other, instance, false},
		"connector":                     {tenants.RevokedConnector, tenantA, other, instance, false},
	} {
		rev := tenants.Revocation{TenantID: c.tenant, Kind: c.kind, Subject: c.subject.String()}
		if got := ends(rev, tenantA, member, agent, c.instance); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRevokingOneTokenLeavesTheAgentsOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	gone, claims := r.token(t, tenantA, agent)
	stays, _ := r.token(t, tenantA, agent)
	s := r.session(t, gone)
	r.store.revoke(tenantA, tenants.RevokedToken, claims.ID)
	await(t, "the revocation", func() bool { return r.send(t, "POST", "/mcp", legacyCall("1"), legacyHeader(gone, s)).Code == 401 })
	if w := r.send(t, "POST", "/mcp", legacyCall("2"), legacyHeader(stays, s)); w.Code != http.StatusOK {
		t.Errorf("the other token: %d %s", w.Code, w.Body)
	}
}

func TestAnAgentsExpiryCutsItsStreams(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRig(t, func(c *Config) { c.Now = func() time.Time { return now } })
	f := facts(tenantA, agent)
	f.Agent.ExpiresAt = now.Add(300 * time.Millisecond)
	r.store.put(f)
	raw, _ := r.token(t, tenantA, agent)
	within(t, "the end of the stream", r.openStream(t, "2026-07-28", raw))
}

func TestEqualIDsOfTwoTenantsStayApart(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		r.store.put(facts(tenantB, agent)) // same agent, member, instance and notebook ids
		r.home.will(func(_ context.Context, c relayed) contract.Result {
			return contract.Result{Body: json.RawMessage(fmt.Sprintf(`{"tenant":%q,"grant":%q}`, c.tenant, c.call.Grant.Tenant))}
		})
		var toldB atomic.Int32
		a, _ := r.client(t, era, tenantA, agent, nil)
		b, _ := r.client(t, era, tenantB, agent, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { toldB.Add(1) },
		})
		for range 2 {
			for s, want := range map[*mcp.ClientSession]tenants.ID{a: tenantA, b: tenantB} {
				if got := answer(t, call(t, s, "notebook", map[string]any{"action": "list"})); got["tenant"] != want.String() || got["grant"] != want.String() {
					t.Fatalf("tenant %s got %v", want, got)
				}
			}
		}
		r.store.change(off(tenantA, agent, "search"))
		if listed(t, a)["search"] != nil || listed(t, b)["search"] == nil {
			t.Error("a change in A shows in B, or not in A")
		}
		f := facts(tenantA, agent)
		f.Agent.RevokedAt = time.Now()
		r.store.put(f)
		r.store.revoke(tenantA, tenants.RevokedAgent, agent.String())
		await(t, "the revocation in A", func() bool {
			_, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "notebook", Arguments: map[string]any{"action": "list"}})
			return err != nil
		})
		if res := call(t, b, "notebook", map[string]any{"action": "list"}); res.IsError {
			t.Error("revoking A's agent hit B")
		}
		if toldB.Load() != 0 {
			t.Error("B was told of A's change")
		}
	})
}

func TestCancellingNamesOnlyTheSendersOwnCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.store.put(facts(tenantB, agent))
	started, ended, finish := make(chan string, 2), make(chan string, 2), make(chan struct{})
	r.home.will(func(ctx context.Context, c relayed) contract.Result {
		started <- c.tenant
		select {
		case <-ctx.Done():
			ended <- c.tenant
		case <-finish:
		}
		return contract.Result{Body: json.RawMessage(`{}`)}
	})
	rawA, _ := r.token(t, tenantA, agent)
	rawB, _ := r.token(t, tenantB, agent)
	sessionA, sessionB := r.session(t, rawA), r.session(t, rawB)
	callA := r.serve(t, "POST", legacyCall("7"), legacyHeader(rawA, sessionA))
	callB := r.serve(t, "POST", legacyCall("7"), legacyHeader(rawB, sessionB))
	<-started
	<-started
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	if w := r.send(t, "POST", "/mcp", cancel, legacyHeader(rawA, sessionB)); w.Code != http.StatusNotFound {
		t.Errorf("A in B's session: %d", w.Code)
	}
	if w := r.send(t, "POST", "/mcp", cancel, legacyHeader(rawA, sessionA)); w.Code != http.StatusAccepted {
		t.Errorf("A in its own: %d %s", w.Code, w.Body)
	}
	if who := <-ended; who != tenantA.String() {
		t.Errorf("the call of %s ended", who)
	}
	close(finish)
	within(t, "the end of B's call", callB)
	within(t, "the end of A's request", callA)
	if len(ended) != 0 {
		t.Error("B's call was cancelled too")
	}
}

func TestASessionSurvivesANewToken(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s, bearer := r.client(t, "2025-11-25", tenantA, agent, nil)
	id := s.ID()
	fresh, _ := r.token(t, tenantA, agent)
	bearer.refresh(fresh)
	if res := call(t, s, "notebook", map[string]any{"action": "list"}); res.IsError || s.ID() != id {
		t.Error("the session did not go on")
	}
}

// A session that left memory comes back under its id; what ends the first does
// not end what runs in the second.
func TestClosingASessionCutsOnlyWhatRunsInIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, claims := r.token(t, tenantA, agent)
	key := sessionKey{tenantA, r.session(t, raw)}
	old := r.server.sessions.held(key)
	again := &session{key: key}
	inOld, oldRequest := r.server.live.track(t.Context(), claims)
	defer oldRequest.end()
	oldRequest.in(old)
	inNew, newRequest := r.server.live.track(t.Context(), claims)
	defer newRequest.end()
	newRequest.in(again)
	r.server.closeAll(r.server.sessions.remove(func(s *session) bool { return s == old }))
	<-inOld.Done()
	newRequest.in(again) // waits until all that was to be cut is
	if inNew.Err() != nil {
		t.Errorf("the request in the session that came back was cut too: %v", context.Cause(inNew))
	}
}

func TestASessionIsNobodyElses(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.store.put(facts(tenantA, agent2))
	r.store.put(facts(tenantB, agent))
	mine, _ := r.token(t, tenantA, agent)
	id := r.session(t, mine)
	for name, who := range map[string][2]tenants.ID{"another agent": {tenantA, agent2}, "equal ids, another tenant": {tenantB, agent}} {
		other, _ := r.token(t, who[0], who[1])
		for method, body := range map[string]string{"POST": legacyCall("1"), "GET": "", "DELETE": ""} {
			w := r.send(t, method, "/mcp", body, legacyHeader(other, id))
			if w.Code != http.StatusNotFound {
				t.Errorf("%s, %s: %d", name, method, w.Code)
			}
			rpcError(t, w)
		}
	}
	for _, unknown := range []string{"x", "..", uuid.NewString()} {
		w := r.send(t, "POST", "/mcp", legacyCall("1"), legacyHeader(mine, unknown))
		if w.Code != http.StatusNotFound {
			t.Errorf("unknown session %q: %d", unknown, w.Code)
		}
		rpcError(t, w)
	}
	if len(r.home.received()) != 0 {
		t.Error("a call reached the home")
	}
	if w := r.send(t, "POST", "/mcp", legacyCall("1"), legacyHeader(mine, id)); w.Code != http.StatusOK {
		t.Errorf("the owner: %d %s", w.Code, w.Body)
	}
	if w := r.send(t, "DELETE", "/mcp", "", legacyHeader(mine, id)); w.Code != http.StatusNoContent {
		t.Errorf("delete: %d", w.Code)
	}
	if w := r.send(t, "POST", "/mcp", legacyCall("1"), legacyHeader(mine, id)); w.Code != http.StatusNotFound {
		t.Errorf("after delete: %d", w.Code)
	}
}

func TestALegacyMessageSentTwiceHasOneRequestID(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	one, two := r.session(t, raw), r.session(t, raw)
	id := func(session, message string) string {
		if w := r.send(t, "POST", "/mcp", message, legacyHeader(raw, session)); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		got := r.home.last(t).call.RequestID
		parsed, err := uuid.Parse(got)
		if err != nil || parsed.Version() != 7 || parsed.Variant() != uuid.RFC4122 {
			t.Fatalf("%s is no UUIDv7", got)
		}
		if at := time.Unix(parsed.Time().UnixTime()); time.Since(at).Abs() > time.Minute {
			t.Errorf("%s says %v", got, at)
		}
		return got
	}
	first := id(one, legacyCall("5"))
	if again := id(one, legacyCall("5")); again != first {
		t.Errorf("sent again: %s, then %s", first, again)
	}
	for name, other := range map[string]string{
		"another message":      id(one, legacyCall("6")),
		"text instead of 5":    id(one, legacyCall(`"5"`)),
		"another session":      id(two, legacyCall("5")),
		"another session's 5b": id(two, legacyCall(`"5b"`)),
	} {
		if other == first {
			t.Errorf("%s has the same request id", name)
		}
	}
}

func TestBatchesAreForTheOldestEraOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	for _, era := range legacyEras {
		if era > "2025-03-26" {
			header := legacyHeader(raw, r.sessionIn(t, raw, era))
			header["Mcp-Protocol-Version"] = "2025-03-26" // what is agreed counts
			if w := r.send(t, "POST", "/mcp", "["+legacyCall("1")+"]", header); w.Code != http.StatusBadRequest {
				t.Errorf("%s: %d", era, w.Code)
			} else {
				rpcError(t, w)
			}
		}
	}
	header := legacyHeader(raw, r.sessionIn(t, raw, "2025-03-26"))
	header["Mcp-Protocol-Version"] = "2025-03-26"
	w := r.send(t, "POST", "/mcp", "["+legacyCall("1")+","+legacyCall("2")+"]", header)
	if w.Code != http.StatusOK || len(r.home.received()) != 2 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	calls := r.home.received()
	if calls[0].call.RequestID == calls[1].call.RequestID {
		t.Error("both calls have one request id")
	}
}

func TestAgentsInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MaxAgents = 2 })
	first, _ := r.token(t, tenantA, agent)
	id := r.session(t, first)
	for range 2 {
		f := facts(tenantA, tenants.NewID())
		r.store.put(f)
		raw, _ := r.token(t, tenantA, f.Agent.ID)
		if w := r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", "")); w.Code != http.StatusOK {
			t.Fatalf("%d", w.Code)
		}
	}
	if r.server.agents.Len() != 2 {
		t.Errorf("%d agents, want 2", r.server.agents.Len())
	}
	await(t, "the end of the evicted agent's session", func() bool { return r.server.Sessions() == 0 })
	if w := r.send(t, "POST", "/mcp", legacyCall("1"), legacyHeader(first, id)); w.Code != http.StatusOK {
		t.Errorf("coming back: %d %s", w.Code, w.Body)
	}
}
