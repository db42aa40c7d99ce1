package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/token"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// asking adds a tool that asks its user before it answers, as dangerous actions
// do.
func (r *rig) asking(t *testing.T, key agentKey) {
	t.Helper()
	a, ok := r.server.agents.Get(key)
	if !ok {
		t.Fatal("the agent has no server yet")
	}
	a.mcp.AddTool(&mcp.Tool{Name: "asking", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if er, ok := req.Params.InputResponses["confirm"].(*mcp.ElicitResult); ok {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: er.Action}}}, nil
		}
		return &mcp.CallToolResult{RequestState: "state", InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{
			Mode: "form", Message: "Really?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"confirm":{"type":"boolean"}}}`),
		}}}, nil
	})
}

const (
	initializeWithForms = `{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	initialized         = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	askMe               = `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"asking","arguments":{}}}`
	ping                = `{"jsonrpc":"2.0","id":9,"method":"ping"}`
)

func reply(id any, action string) string {
	raw, _ := json.Marshal(id)
	return `{"jsonrpc":"2.0","id":` + string(raw) + `,"result":{"action":"` + action + `","content":{"confirm":true}}}`
}

// formSession begins a session of a client that can show forms.
func (r *rig) formSession(t *testing.T, raw string) string {
	t.Helper()
	w := r.send(t, "POST", "/mcp", initializeWithForms, map[string]string{"Authorization": "Bearer " + raw})
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Header().Get("Mcp-Session-Id")
}

// linked are Peers in one process.
type linked struct{ others []*rig }

func (l *linked) Deliver(ctx context.Context, d Directed) (bool, error) {
	for _, o := range l.others {
		if o.server.Take(ctx, d) {
			return true, nil
		}
	}
	return false, nil
}

// pair are two nodes on one store that know each other.
func pair(t *testing.T) (a, b *rig) {
	t.Helper()
	s := newStore()
	toA, toB := &linked{}, &linked{}
	a = s.node(t, func(c *Config) { c.Peers = toB })
	b = s.node(t, func(c *Config) { c.Peers = toA })
	toA.others, toB.others = []*rig{a}, []*rig{b}
	return a, b
}

func TestQuestionsAreAskedAndAnsweredInLegacySessions(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"accept", "decline", "cancel"} {
		r := newRig(t, nil)
		raw, _ := r.token(t, tenantA, agent)
		id := r.formSession(t, raw)
		r.asking(t, agentKey{tenantA, agent})
		call := r.open(t, "POST", askMe, legacyHeader(raw, id))
		question := call.next(t)
		if question["method"] != "elicitation/create" {
			t.Fatalf("%v", question)
		}
		if w := r.send(t, "POST", "/mcp", reply(question["id"], action), legacyHeader(raw, id)); w.Code != http.StatusAccepted {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if got := text(t, call.next(t)); got != action {
			t.Errorf("the tool got %q, want %q", got, action)
		}
		if w := r.send(t, "POST", "/mcp", reply(question["id"], action), legacyHeader(raw, id)); w.Code != http.StatusNotFound {
			t.Errorf("the same answer again: %d", w.Code)
		}
	}
}

func TestARestoredSessionKnowsWhetherItsClientShowsForms(t *testing.T) {
	t.Parallel()
	for caps, forms := range map[string]bool{
		`{"elicitation":{}}`: true, `{"elicitation":{"form":{}}}`: true, `{"elicitation":{"form":{},"url":{}}}`: true,
		`{"elicitation":{"url":{}}}`: false, `{}`: false,
	} {
		a, b := pair(t)
		raw, _ := a.token(t, tenantA, agent)
		w := a.send(t, "POST", "/mcp", strings.Replace(initializeWithForms, `{"elicitation":{}}`, caps, 1), map[string]string{"Authorization": "Bearer " + raw})
		id := w.Header().Get("Mcp-Session-Id")
		b.send(t, "POST", "/mcp", ping, legacyHeader(raw, id))
		b.asking(t, agentKey{tenantA, agent})
		call := b.open(t, "POST", askMe, legacyHeader(raw, id))
		m := call.next(t)
		if got := m["method"] == "elicitation/create"; got != forms {
			t.Errorf("%s: %v", caps, m)
		}
		if forms {
			b.send(t, "POST", "/mcp", reply(m["id"], "decline"), legacyHeader(raw, id))
			call.next(t)
		}
	}
}

// A session may be alive on two nodes. The SDK numbers its questions from 1 on
// each, so an answer could reach the wrong one.
func TestAnAnswerReachesItsOwnQuestionOnly(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	raw, _ := a.token(t, tenantA, agent)
	id := a.formSession(t, raw)
	b.send(t, "POST", "/mcp", ping, legacyHeader(raw, id))
	calls, questions := map[*rig]*wire{}, map[*rig]any{}
	for _, r := range []*rig{a, b} {
		r.asking(t, agentKey{tenantA, agent})
		calls[r] = r.open(t, "POST", askMe, legacyHeader(raw, id))
		questions[r] = calls[r].next(t)["id"]
	}
	if questions[a] == questions[b] {
		t.Fatalf("both nodes ask with id %v", questions[a])
	}
	// A's answer is sent to B.
	if w := b.send(t, "POST", "/mcp", reply(questions[a], "accept"), legacyHeader(raw, id)); w.Code != http.StatusAccepted {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if got := text(t, calls[a].next(t)); got != "accept" {
		t.Errorf("A's question got %q", got)
	}
	// What a node gave the client as an id says nothing to another session.
	second := b.formSession(t, raw)
	if w := b.send(t, "POST", "/mcp", reply(questions[b], "accept"), legacyHeader(raw, second)); w.Code != http.StatusNotFound {
		t.Errorf("in another session: %d", w.Code)
	}
	for _, wrong := range []any{1, 2, "1", questions[a], nil} {
		for _, r := range []*rig{a, b} {
			if w := r.send(t, "POST", "/mcp", reply(wrong, "accept"), legacyHeader(raw, id)); w.Code != http.StatusNotFound && w.Code != http.StatusBadRequest {
				t.Errorf("answer to %v: %d", wrong, w.Code)
			}
		}
	}
	if w := a.send(t, "POST", "/mcp", reply(questions[b], "decline"), legacyHeader(raw, id)); w.Code != http.StatusAccepted {
		t.Fatalf("%d", w.Code)
	}
	if got := text(t, calls[b].next(t)); got != "decline" {
		t.Errorf("B's question got %q", got)
	}
}

func TestAnswersAndCancellingsNeverOpenASession(t *testing.T) {
	t.Parallel()
	s := newStore()
	a, b := s.node(t, nil), s.node(t, nil) // which do not know each other
	raw, _ := a.token(t, tenantA, agent)
	id := a.session(t, raw)
	for _, body := range []string{
		reply(1, "accept"), `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
	} {
		if w := b.send(t, "POST", "/mcp", body, legacyHeader(raw, id)); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", body, w.Code)
		}
	}
	if b.server.Sessions() != 0 {
		t.Error("a session was opened")
	}
	// Where the session lives, a cancelling that comes too late is no error.
	late := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	if w := a.send(t, "POST", "/mcp", late, legacyHeader(raw, id)); w.Code != http.StatusAccepted {
		t.Errorf("late: %d", w.Code)
	}
}

// M21 over two nodes: a cancelling finds its call, and no other.
func TestCancellingReachesTheNodeThatRunsTheCall(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	started, ended, finish := make(chan struct{}, 2), make(chan string, 2), make(chan struct{})
	defer close(finish)
	for name, r := range map[string]*rig{"a": a, "b": b} {
		r.home.will(func(ctx context.Context, _ relayed) contract.Result {
			started <- struct{}{}
			select {
			case <-ctx.Done():
				ended <- name
			case <-finish:
			}
			return contract.Result{Body: json.RawMessage(`{}`)}
		})
	}
	raw, _ := a.token(t, tenantA, agent)
	one, two := a.session(t, raw), a.session(t, raw)
	a.serve(t, "POST", legacyCall("7"), legacyHeader(raw, one))
	<-started
	b.serve(t, "POST", legacyCall("7"), legacyHeader(raw, two)) // the same id in another session
	<-started
	if w := b.send(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, legacyHeader(raw, one)); w.Code != http.StatusAccepted {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if who := <-ended; who != "a" {
		t.Errorf("the call on %s ended", who)
	}
	select {
	case who := <-ended:
		t.Errorf("the call on %s ended too", who)
	default:
	}
}

func TestAQuestionNobodyAnswersIsWithdrawn(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.QuestionTimeout = time.Second })
	raw, _ := r.token(t, tenantA, agent)
	id := r.formSession(t, raw)
	r.asking(t, agentKey{tenantA, agent})
	call := r.open(t, "POST", askMe, legacyHeader(raw, id))
	question := call.next(t)["id"]
	failed := false
	for m := call.next(t); m != nil; m = call.next(t) { // the SDK's notice may come before the error, or not at all
		failed = failed || m["error"] != nil
	}
	if !failed {
		t.Error("the call did not fail")
	}
	w := r.send(t, "POST", "/mcp", reply(question, "accept"), legacyHeader(raw, id))
	if w.Code == http.StatusAccepted { // it came between the end of the call and the withdrawal, and counts for nothing
		w = r.send(t, "POST", "/mcp", reply(question, "accept"), legacyHeader(raw, id))
	}
	if w.Code != http.StatusNotFound {
		t.Errorf("an answer that comes too late: %d", w.Code)
	}
}

func TestWithdrawingNamesTheQuestionAsTheClientKnowsIt(t *testing.T) {
	t.Parallel()
	inner := &recordingConn{}
	c := newSessionConn()
	c.Connection = inner
	one, err := jsonrpc.MakeID(float64(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), &jsonrpc.Request{ID: one, Method: "elicitation/create"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), &jsonrpc.Request{Method: methodCancelled, Params: json.RawMessage(`{"requestId":1,"reason":"x"}`)}); err != nil {
		t.Fatal(err)
	}
	asked, withdrawn := inner.written[0].(*jsonrpc.Request), inner.written[1].(*jsonrpc.Request)
	var params struct{ RequestID any }
	if err := json.Unmarshal(withdrawn.Params, &params); err != nil || params.RequestID != asked.ID.Raw() {
		t.Errorf("asked %v, withdrew %v (%v)", asked.ID.Raw(), params.RequestID, err)
	}
	if c.claim(asked.ID) {
		t.Error("the question can still be answered")
	}
	for i := range questionsMax + 1 {
		id, err := jsonrpc.MakeID(float64(i))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), &jsonrpc.Request{ID: id, Method: "ping"}); (err != nil) != (i == questionsMax) {
			t.Errorf("question %d: %v", i, err)
		}
	}
}

// recordingConn keeps what is written.
type recordingConn struct {
	mcp.Connection
	written []jsonrpc.Message
}

func (c *recordingConn) Write(_ context.Context, m jsonrpc.Message) error {
	c.written = append(c.written, m)
	return nil
}

func TestABatchMayAnswerAndAskAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	w := r.send(t, "POST", "/mcp", strings.Replace(initializeWithForms, "2025-11-25", "2025-03-26", 1), map[string]string{"Authorization": "Bearer " + raw})
	header := legacyHeader(raw, w.Header().Get("Mcp-Session-Id"))
	header["Mcp-Protocol-Version"] = "2025-03-26"
	r.asking(t, agentKey{tenantA, agent})
	call := r.open(t, "POST", askMe, header)
	question := call.next(t)["id"]
	w = r.send(t, "POST", "/mcp", "["+reply(question, "accept")+","+ping+"]", header)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"id":9`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := text(t, call.next(t)); got != "accept" {
		t.Errorf("%q", got)
	}
	if w := r.send(t, "POST", "/mcp", "["+reply(question, "accept")+"]", header); w.Code != http.StatusNotFound {
		t.Errorf("answers alone, too late: %d", w.Code)
	}
}

func TestStoppingTheBrokerClosesSessionsAndTheirQuestions(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	id := r.formSession(t, raw)
	r.asking(t, agentKey{tenantA, agent})
	call := r.open(t, "POST", askMe, legacyHeader(raw, id))
	stream := r.open(t, "GET", "", legacyHeader(raw, id))
	call.next(t)
	stream.comment()
	closed := make(chan struct{})
	go func() { r.server.Close(); close(closed) }()
	within(t, "the end of the server", closed)
	for call.next(t) != nil {
	}
	for stream.next(t) != nil { // the news that asking brought, perhaps
	}
	if r.server.Sessions() != 0 {
		t.Error("a session is still there")
	}
}

func TestRevokingAnAgentCutsItsQuestions(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	id := r.formSession(t, raw)
	r.asking(t, agentKey{tenantA, agent})
	call := r.open(t, "POST", askMe, legacyHeader(raw, id))
	question := call.next(t)["id"]
	f := facts(tenantA, agent)
	f.Agent.RevokedAt = time.Now()
	r.store.put(f)
	r.store.revoke(tenantA, tenants.RevokedAgent, agent.String())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for call.next(t) != nil {
		}
	}()
	within(t, "the end of the call", ended)
	if w := r.send(t, "POST", "/mcp", reply(question, "accept"), legacyHeader(raw, id)); w.Code != http.StatusUnauthorized {
		t.Errorf("%d", w.Code)
	}
	await(t, "the end of its sessions", func() bool { return r.server.Sessions() == 0 })
}

func TestACallKnowsTheTokenOfItsOwnRequest(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	one, first := a.token(t, tenantA, agent)
	id := a.session(t, one)
	two, second := a.token(t, tenantA, agent)
	for _, r := range []*rig{a, b} {
		for raw, want := range map[string]token.Claims{one: first, two: second} {
			r.send(t, "POST", "/mcp", ping, legacyHeader(raw, id))
			server, _ := r.server.agents.Get(agentKey{tenantA, agent})
			got := make(chan string, 1)
			server.mcp.AddTool(&mcp.Tool{Name: "who", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				got <- requestOf(req.Extra).Claims.ID
				return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
			})
			r.send(t, "POST", "/mcp", strings.Replace(askMe, "asking", "who", 1), legacyHeader(raw, id))
			if who := <-got; who != want.ID {
				t.Errorf("the call has token %s, want %s", who, want.ID)
			}
		}
	}
}
