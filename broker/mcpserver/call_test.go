package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// createArgs are valid arguments of document.create, a write.
func createArgs() map[string]any {
	return map[string]any{"action": "create", "notebook": notebook, "path": "/New", "markdown": "text"}
}

func TestAReadReachesTheHomeAndComesBack(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		r.home.will(func(context.Context, relayed) contract.Result {
			return contract.Result{Body: json.RawMessage(`{"notebooks":[]}`), Stats: contract.Stats{Notebook: notebook, KernelCalls: 1, KernelUS: 1, TotalUS: 2}}
		})
		s, _ := r.client(t, era, tenantA, agent, nil)
		if got := s.InitializeResult().ProtocolVersion; got != era {
			t.Fatalf("negotiated %s", got)
		}
		if !strings.Contains(s.InitializeResult().Instructions, "data") {
			t.Errorf("instructions %q", s.InitializeResult().Instructions)
		}
		res := call(t, s, "notebook", map[string]any{"action": "list"})
		if got := answer(t, res); res.IsError || len(got) != 1 || got["notebooks"] == nil {
			t.Errorf("result %v", got)
		}
		got := r.home.last(t)
		c := got.call
		if got.tenant != tenantA.String() || got.instance != instance.String() || !got.idempotent ||
			c.Tool != "notebook" || c.Action != "list" || string(c.Args) != "{}" || c.Server != "siyuan" || c.Method != "tools/call" {
			t.Errorf("relayed %+v", got)
		}
		if c.Grant == nil || c.Grant.Tenant != tenantA.String() || c.Grant.Agent.ID != agent.String() || c.Grant.Level(notebook) != contract.ReadWriteDelete {
			t.Errorf("grant %+v", c.Grant)
		}
		if id, err := uuid.Parse(c.RequestID); err != nil || id.Version() != 7 {
			t.Errorf("request id %q", c.RequestID)
		}
		rec := r.records.last(t)
		if rec.TenantID != tenantA || rec.AgentID != agent || rec.MemberID != member || rec.InstanceID != instance || rec.Tool != "notebook" || rec.Action != "list" ||
			rec.Outcome != tenants.OutcomeOK || rec.NotebookID != notebook || rec.RequestID != c.RequestID || rec.BytesIn != int64(len(`{"action":"list"}`)) ||
			rec.BytesOut != int64(len(`{"notebooks":[]}`)) || rec.Legs.Total < rec.Legs.Kernel {
			t.Errorf("recorded %+v", rec)
		}
	})
}

func TestAWriteReturnsItsRequestID(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		s, _ := r.client(t, era, tenantA, agent, nil)
		given := tenants.NewID().String()
		args := createArgs()
		args["requestId"] = given
		if got := answer(t, call(t, s, "document", args)); got["requestId"] != given || got["done"] != true {
			t.Errorf("result %v, want request id %s", got, given)
		}
		last := r.home.last(t)
		if last.call.RequestID != given || last.idempotent || strings.Contains(string(last.call.Args), "requestId") {
			t.Errorf("relayed %+v", last.call)
		}
		if got := answer(t, call(t, s, "document", createArgs())); got["requestId"] == given || got["requestId"] != r.home.last(t).call.RequestID {
			t.Errorf("without one given: %v", got)
		}
	})
}

func TestARequestIDMustBeAUUIDv7(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s, _ := r.client(t, "", tenantA, agent, nil)
	for _, bad := range []any{"x", uuid.NewString(), "{" + tenants.NewID().String() + "}", 7, strings.Repeat("0", 1000)} {
		args := createArgs()
		args["requestId"] = bad
		if e := failure(t, call(t, s, "document", args)); contract.CodeOf(e) != contract.InvalidArguments {
			t.Errorf("%v: %v", bad, e)
		}
	}
	if len(r.home.received()) != 0 {
		t.Error("a call reached the home")
	}
}

func TestAFailureIsAResultInTheVocabulary(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		r.home.will(func(context.Context, relayed) contract.Result {
			e := contract.Fail(contract.OutcomeUnknown, "The link broke.")
			e.RequestID = "of the home's own making"
			return contract.Result{Err: e}
		})
		s, _ := r.client(t, era, tenantA, agent, nil)
		e := failure(t, call(t, s, "document", createArgs()))
		if e.Type != contract.TypeUnknown || e.Retry != contract.RetrySame || e.RequestID != r.home.last(t).call.RequestID || e.RequestID == "" {
			t.Errorf("error %+v", e)
		}
		rec := r.records.last(t)
		if rec.Outcome != tenants.OutcomeUnknown || rec.ErrorType != "outcome_unknown" || rec.ErrorCode != "outcome_unknown" {
			t.Errorf("recorded %+v", rec)
		}
	})
}

func TestWrongArgumentsNeverReachTheHome(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s, _ := r.client(t, "", tenantA, agent, nil)
	for name, c := range map[string]struct {
		args map[string]any
		code contract.Code
	}{
		"no action":         {map[string]any{}, contract.InvalidArguments},
		"action not text":   {map[string]any{"action": 1}, contract.InvalidArguments},
		"unknown action":    {map[string]any{"action": "fly"}, contract.UnknownAction},
		"long action":       {map[string]any{"action": strings.Repeat("x", 10_000)}, contract.InvalidArguments},
		"missing parameter": {map[string]any{"action": "create"}, contract.InvalidArguments},
		"unknown parameter": {map[string]any{"action": "get_doc", "id": "20240101090000-work001", "confirm": true}, contract.InvalidArguments},
	} {
		e := failure(t, call(t, s, "document", c.args))
		if contract.CodeOf(e) != c.code {
			t.Errorf("%s: %v", name, e)
		}
		if c.code == contract.UnknownAction || name == "no action" {
			var detail struct {
				Valid []string `json:"valid_actions"`
			}
			if err := json.Unmarshal(e.Detail, &detail); err != nil || !slices.Contains(detail.Valid, "create") || !slices.Contains(detail.Valid, "help") {
				t.Errorf("%s: detail %s", name, e.Detail)
			}
		}
	}
	if len(r.home.received()) != 0 {
		t.Error("a call reached the home")
	}
}

func TestActionsAndParametersMayBeSpelledLoosely(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s, _ := r.client(t, "", tenantA, agent, nil)
	id := tenants.NewID().String()
	call(t, s, "document", map[string]any{"Action": "GET-DOC", "ID": "20240101090000-work001", "request_id": id})
	if last := r.home.last(t).call; last.Action != "get_doc" || last.RequestID != id || string(last.Args) != `{"id":"20240101090000-work001"}` {
		t.Errorf("relayed %+v", last)
	}
}

func TestHelpIsAnsweredWithoutTheHome(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s, _ := r.client(t, "", tenantA, agent, nil)
	if got := answer(t, call(t, s, "document", map[string]any{"action": "help"})); got["tool"] != "document" || got["actions"] == nil {
		t.Errorf("index %v", got)
	}
	if got := answer(t, call(t, s, "document", map[string]any{"action": "help", "topic": "get_doc"})); got["action"] != "get_doc" || got["schema"] == nil {
		t.Errorf("topic %v", got)
	}
	if e := failure(t, call(t, s, "document", map[string]any{"action": "help", "topic": "fly"})); contract.CodeOf(e) != contract.UnknownHelpTopic {
		t.Errorf("unknown topic: %v", e)
	}
	if len(r.home.received()) != 0 {
		t.Error("help reached the home")
	}
}

func TestProgressArrivesBeforeTheResult(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		seen := make(chan *mcp.ProgressNotificationParams, 1)
		got := make(chan struct{})
		r.home.will(func(ctx context.Context, c relayed) contract.Result {
			c.progress(contract.Progress{Done: 1, Total: 3, Message: "one of three"})
			select {
			case <-got:
			case <-ctx.Done():
			}
			return contract.Result{Body: json.RawMessage(`{}`)}
		})
		s, _ := r.client(t, era, tenantA, agent, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) {
			seen <- p.Params
			close(got)
		}})
		params := &mcp.CallToolParams{Name: "notebook", Arguments: map[string]any{"action": "list"}}
		params.SetProgressToken("p1")
		if _, err := s.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		within(t, "progress", got)
		if p := <-seen; p.ProgressToken != "p1" || p.Progress != 1 || p.Total != 3 || p.Message != "one of three" {
			t.Errorf("progress %+v", p)
		}
	})
}

func TestWithoutATokenNoProgressIsAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s, _ := r.client(t, "", tenantA, agent, nil)
	call(t, s, "notebook", map[string]any{"action": "list"})
	if r.home.last(t).progress != nil {
		t.Error("progress was asked for")
	}
}

func TestCancellingACallReachesTheHome(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		started, ended := make(chan struct{}), make(chan struct{})
		r.home.will(func(ctx context.Context, _ relayed) contract.Result {
			close(started)
			<-ctx.Done()
			close(ended)
			return contract.Result{Err: contract.Fail(contract.Timeout, "cancelled")}
		})
		s, _ := r.client(t, era, tenantA, agent, nil)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "notebook", Arguments: map[string]any{"action": "list"}})
			failed <- err
		}()
		within(t, "the call", started)
		cancel()
		within(t, "the end of the call at home", ended)
		if err := <-failed; err == nil {
			t.Error("the cancelled call succeeded")
		}
	})
}

func TestACallHasADeadline(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, func(c *Config) { c.CallTimeout = 50 * time.Millisecond })
		r.home.will(func(ctx context.Context, _ relayed) contract.Result {
			<-ctx.Done()
			return contract.Result{Err: contract.Fail(contract.Timeout, "It took too long.")}
		})
		s, _ := r.client(t, era, tenantA, agent, nil)
		if e := failure(t, call(t, s, "notebook", map[string]any{"action": "list"})); e.Type != contract.TypeTimeout {
			t.Errorf("error %v", e)
		}
	})
}

func TestATenantsResultLimitHoldsForReadsOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := facts(tenantA, agent)
	f.Limits.ResultBytes = 10
	r.store.put(f)
	r.home.will(func(context.Context, relayed) contract.Result {
		return contract.Result{Body: json.RawMessage(`{"long":"0123456789"}`)}
	})
	s, _ := r.client(t, "", tenantA, agent, nil)
	if e := failure(t, call(t, s, "notebook", map[string]any{"action": "list"})); e.Type != contract.TypeTooLarge {
		t.Errorf("error %v", e)
	}
	if res := call(t, s, "document", createArgs()); res.IsError { // it happened: to say otherwise would invite a second one
		t.Errorf("a write that was done is reported as %v", answer(t, res))
	}
}

func TestATenantsNumberOfCharactersTravelsWithTheCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := facts(tenantA, agent)
	f.Limits.ResultChars = 12_000
	r.store.put(f)
	chars := make(chan int, 1)
	r.home.will(func(_ context.Context, c relayed) contract.Result {
		chars <- c.call.ResultChars
		return contract.Result{Body: json.RawMessage(`{}`)}
	})
	s, _ := r.client(t, "", tenantA, agent, nil)
	if res := call(t, s, "notebook", map[string]any{"action": "list"}); res.IsError || <-chars != 12_000 {
		t.Errorf("answer %v", answer(t, res))
	}
}

func TestAHomesOwnErrorWordsAreNotRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.home.will(func(context.Context, relayed) contract.Result {
		return contract.Result{
			Err:   &contract.Error{Type: "own\x00type", Code: "own\x00code", Message: "m"},
			Stats: contract.Stats{Notebook: "secret title", TotalUS: 1 << 62, KernelUS: -5},
		}
	})
	s, _ := r.client(t, "", tenantA, agent, nil)
	call(t, s, "notebook", map[string]any{"action": "list"})
	rec := r.records.last(t)
	if rec.ErrorType != "internal_error" || rec.ErrorCode != "internal_error" || rec.NotebookID != "" || rec.Legs.Kernel != 0 || rec.Legs.Home < 0 || rec.Legs.Home > rec.Legs.Total {
		t.Errorf("recorded %+v", rec)
	}
}

func TestAnUnknownToolIsAProtocolError(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		s, _ := r.client(t, era, tenantA, agent, nil)
		if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
			t.Errorf("got %v", err)
		}
	})
}

// A write whose result is not an object could not carry its request id.
func TestEveryWriteAnswersAnObject(t *testing.T) {
	t.Parallel()
	for _, tool := range catalogue.Tools() {
		for _, a := range tool.Actions {
			if a.Kind.Mutates() && a.Output.Kind().String() != "struct" {
				t.Errorf("%s answers a %s", a.ID(), a.Output)
			}
			for _, p := range a.Params {
				if slices.Contains([]string{"action", "topic", "requestid"}, strings.ToLower(p.Name)) {
					t.Errorf("%s has a parameter %s, which belongs to the call", a.ID(), p.Name)
				}
			}
		}
	}
}

func TestWithRequestIDKeepsTheRest(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`:              `{"requestId":"i"}`,
		` { } `:           `{"requestId":"i" } `,
		`{"a":1}`:         `{"requestId":"i","a":1}`,
		`{"a":{"b":"}"}}`: `{"requestId":"i","a":{"b":"}"}}`,
		`[1]`:             `[1]`,
	} {
		if got := string(withRequestID(json.RawMessage(in), "i")); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// A connector that takes over from another one tells by their time which ids the
// other one may have been sent: none goes home before its time.
func TestAWriteIsNotSentBeforeTheTimeOfItsRequestID(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s, _ := r.client(t, "", tenantA, agent, nil)
	sent := make(chan time.Time, 1)
	r.home.will(func(context.Context, relayed) contract.Result {
		sent <- time.Now()
		return contract.Result{Body: json.RawMessage(`{}`)}
	})
	at := func(when time.Time) map[string]any {
		id := tenants.NewID()
		for i, ms := 0, when.UnixMilli(); i < 6; i++ {
			id[i] = byte(ms >> (8 * (5 - i)))
		}
		args := createArgs()
		args["requestId"] = id.String()
		return args
	}
	soon := time.Now().Add(700 * time.Millisecond)
	answer(t, call(t, s, "document", at(soon)))
	if early := soon.Truncate(time.Millisecond).Sub(<-sent); early > 0 {
		t.Errorf("sent %v before its time", early)
	}
	e := failure(t, call(t, s, "document", at(time.Now().Add(maxAhead+time.Minute))))
	if contract.CodeOf(e) != contract.InvalidArguments || !strings.Contains(string(e.Detail), "of a time to come") {
		t.Errorf("far ahead: %+v", e)
	}
	if len(r.home.received()) != 1 {
		t.Error("a call of a time to come reached the home")
	}
	read := at(time.Now().Add(maxAhead + time.Minute))
	answer(t, call(t, s, "notebook", map[string]any{"action": "list", "requestId": read["requestId"]}))
}

func TestOnlyAnIDMadeForTheCallIsSaidToBeTheFirst(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		s, _ := r.client(t, era, tenantA, agent, nil)
		answer(t, call(t, s, "document", createArgs()))
		if got, want := r.home.last(t).call.First, era == eras[0]; got != want { // else the message's, which a client may send again
			t.Errorf("%s: without an id first is %v", era, got)
		}
		args := createArgs()
		args["requestId"] = tenants.NewID().String()
		answer(t, call(t, s, "document", args))
		if r.home.last(t).call.First {
			t.Errorf("%s: an id of the caller's counts as the first", era)
		}
	})
}
