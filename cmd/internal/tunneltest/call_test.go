package tunneltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"siyuan-broker/broker/relay"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
)

var transports = []string{"tls", "wss", "ws"}

func TestACallArrivesWholeAndItsAnswerReturns(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			got := make(chan contract.Call, 1)
			n, hm, _ := pair(t, transport, tunnel.HandlerFunc(func(ctx context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
				got <- c
				return contract.Result{Body: json.RawMessage(`{"ok":"Grüße"}`), Stats: contract.Stats{Notebook: "n", KernelCalls: 2, KernelUS: 3, TotalUS: 4}}
			}))
			sent := contract.Call{Server: contract.DefaultServer, Method: contract.MethodCall, Tool: "block", Action: "get", RequestID: "r1", Trace: "00-1-2-01",
				Grant: &contract.Grant{V: 1, Tenant: tenant, Instance: instance, Levels: map[string]contract.Level{"n": contract.ReadWrite}, Default: contract.Read, Exp: 9},
				Args:  json.RawMessage(`{"id":"20230101120000-abcdefg"}`)}
			res := n.call(t.Context(), sent, true)
			if res.Err != nil || string(res.Body) != `{"ok":"Grüße"}` || res.Stats != (contract.Stats{Notebook: "n", KernelCalls: 2, KernelUS: 3, TotalUS: 4}) {
				t.Fatalf("result %s %+v %v", res.Body, res.Stats, res.Err)
			}
			call := <-got
			if call.Tool != "block" || call.Action != "get" || call.RequestID != "r1" || call.Trace != "00-1-2-01" || call.Server != contract.DefaultServer ||
				string(call.Args) != string(sent.Args) || call.Grant.Level("n") != contract.ReadWrite || call.Grant.Exp != 9 {
				t.Errorf("handler got %+v", call)
			}
			eventually(t, "the connector says so", func() bool { return hm.client.State().Phase == tunnel.Connected })
			st := hm.client.State()
			want := strings.Replace(transport, "ws", "wss", 1)
			if transport != "ws" {
				want = transport
			}
			if st.Phase != tunnel.Connected || st.Transport != want || st.Epoch != 1 {
				t.Errorf("state %+v", st)
			}
			info, ok := n.hub.Session(tenant, instance)
			if !ok || info.Connector != connector || info.Transport != want || info.Software != "test/1" || info.Epoch != 1 {
				t.Errorf("session %+v", info)
			}
		})
	}
}

func TestAnErrorOfTheHomeReachesTheCaller(t *testing.T) {
	t.Parallel()
	n, _, _ := pair(t, "ws", tunnel.HandlerFunc(func(context.Context, contract.Call, func(contract.Progress)) contract.Result {
		return contract.Result{Err: contract.Fail(contract.NotFound, "No such block.").WithDetail(map[string]int{"x": 1}), Stats: contract.Stats{KernelCalls: 1}}
	}))
	res := n.call(t.Context(), contract.Call{RequestID: "r7"}, false)
	if !errors.Is(res.Err, contract.Fail(contract.NotFound, "")) || res.Err.Message != "No such block." || string(res.Err.Detail) != `{"x":1}` ||
		res.Err.RequestID != "r7" || res.Stats.KernelCalls != 1 {
		t.Errorf("%+v", res)
	}
}

func TestProgressArrivesInOrderBeforeTheResult(t *testing.T) {
	t.Parallel()
	late := make(chan func(contract.Progress), 1)
	n, _, _ := pair(t, "tls", tunnel.HandlerFunc(func(_ context.Context, _ contract.Call, progress func(contract.Progress)) contract.Result {
		for i := range 20 {
			progress(contract.Progress{Done: float64(i), Total: 20, Message: "step"})
		}
		late <- progress
		return contract.Result{Body: json.RawMessage(`1`)}
	}))
	var got []float64
	res := n.hub.Call(t.Context(), tenant, instance, contract.Call{Grant: &contract.Grant{}, Args: json.RawMessage(`{}`)}, true, func(p contract.Progress) { got = append(got, p.Done) })
	if res.Err != nil || len(got) != 20 {
		t.Fatalf("%v, %d steps", res.Err, len(got))
	}
	for i, v := range got {
		if v != float64(i) {
			t.Fatalf("step %d is %v", i, v)
		}
	}
	(<-late)(contract.Progress{Done: 99}) // after the handler returned: must not confuse the next call
	if res := n.call(t.Context(), contract.Call{}, true); res.Err != nil {
		t.Errorf("next call: %v", res.Err)
	}
}

func TestACancelledCallStopsTheHandlerAndItsStreamIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	started, stopped := make(chan struct{}), make(chan error, 1)
	n, _, _ := pair(t, "tls", tunnel.HandlerFunc(func(ctx context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
		if c.Tool != "slow" {
			return contract.Result{Body: c.Args}
		}
		close(started)
		<-ctx.Done()
		stopped <- ctx.Err()
		return contract.Result{Body: json.RawMessage(`"late"`)}
	}))
	eventually(t, "a warm stream", func() bool { return n.hub.Stats().Streams == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan contract.Result, 1)
	go func() { answer <- n.call(ctx, contract.Call{Tool: "slow"}, true) }()
	receive(t, "the handler", started)
	cancel()
	if res := receive(t, "the answer", answer); !errors.Is(res.Err, contract.Fail(contract.Timeout, "")) {
		t.Errorf("cancelled read: %v", res.Err)
	}
	if err := receive(t, "the end of the handler", stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("handler context: %v", err)
	}
	eventually(t, "the stream is gone", func() bool { return n.hub.Stats().Streams == 0 })
	for i := range 3 {
		args := fmt.Sprintf(`{"i":%d}`, i)
		if res := n.call(t.Context(), contract.Call{Args: json.RawMessage(args)}, true); string(res.Body) != args {
			t.Fatalf("call %d after the cancelled one got %s %v", i, res.Body, res.Err)
		}
	}
	if s := n.hub.Stats(); s.Streams != 1 || s.Sessions != 1 {
		t.Errorf("%+v", s)
	}
}

func TestTheHomeGetsALittleLessTimeThanTheCaller(t *testing.T) {
	t.Parallel()
	n, _, _ := pair(t, "ws", tunnel.HandlerFunc(func(ctx context.Context, _ contract.Call, _ func(contract.Progress)) contract.Result {
		deadline, _ := ctx.Deadline()
		return contract.Result{Body: json.RawMessage(fmt.Sprint(deadline.UnixMilli()))}
	}))
	deadline := time.Now().Add(time.Minute)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	res := n.call(ctx, contract.Call{}, true)
	var home int64
	if err := json.Unmarshal(res.Body, &home); err != nil {
		t.Fatal(err, res.Err)
	}
	// The margin, and what the call took on its way, which shifts the home's.
	if margin := relay.DefaultTiming().ReplyMargin.Milliseconds(); home > deadline.UnixMilli()+patience.Milliseconds()-margin || home < deadline.UnixMilli()-margin-10 {
		t.Errorf("caller's deadline %d, the home's %d", deadline.UnixMilli(), home)
	}
}

func TestAHomeThatMissesTheDeadlineIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	n, _, _ := pair(t, "ws", tunnel.HandlerFunc(func(context.Context, contract.Call, func(contract.Progress)) contract.Result {
		<-release
		return contract.Result{}
	}))
	t.Cleanup(func() { close(release) })
	for idempotent, want := range map[bool]contract.Code{true: contract.Timeout, false: contract.OutcomeUnknown} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if res := n.call(ctx, contract.Call{}, idempotent); contract.CodeOf(res.Err) != want {
			t.Errorf("read %v: %v", idempotent, res.Err)
		}
		cancel()
	}
}

func TestSizesAreBoundedBothWays(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n := startNode(t, newDirectory(pub), nodeOptions{transport: "tls", change: func(c *relay.Config) { c.Limits.Result = 1 << 20 }})
	startHome(t, n.url, n.tls, key, tunnel.HandlerFunc(func(_ context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
		var size int
		if err := json.Unmarshal(c.Args, &size); err != nil {
			return contract.Result{Body: json.RawMessage(`"big"`)}
		}
		return contract.Result{Body: append(append([]byte(`"`), bytes.Repeat([]byte("x"), size-2)...), '"')}
	}), nil)
	n.await(relay.SessionUp)
	result := func(size int) contract.Result {
		return n.call(t.Context(), contract.Call{Args: json.RawMessage(fmt.Sprint(size))}, true)
	}
	if res := result(1 << 20); res.Err != nil || len(res.Body) != 1<<20 {
		t.Errorf("result at the limit: %v", res.Err)
	}
	if res := result(1<<20 + 1); !errors.Is(res.Err, contract.Fail(contract.TooLarge, "")) {
		t.Errorf("result above the limit: %v", res.Err)
	}
	big := json.RawMessage(`"` + strings.Repeat("x", 3<<20) + `"`)
	if res := n.call(t.Context(), contract.Call{Args: big}, false); !errors.Is(res.Err, contract.Fail(contract.TooLarge, "")) {
		t.Errorf("arguments above the limit: %v", res.Err)
	}
	if s := n.hub.Stats(); s.Sessions != 1 || s.Accepted != 1 {
		t.Errorf("the session suffered: %+v", s)
	}
}

func TestManyCallsAtOnceShareABoundedPool(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			n, _, _ := pair(t, transport, echo)
			var wg sync.WaitGroup
			for i := range 64 {
				wg.Go(func() {
					for j := range 8 {
						args := fmt.Sprintf(`{"i":%d,"j":%d,"pad":"%s"}`, i, j, strings.Repeat("x", i*j*25))
						if res := n.call(t.Context(), contract.Call{Args: json.RawMessage(args)}, true); string(res.Body) != args {
							t.Errorf("call %d/%d got %.60s %v", i, j, res.Body, res.Err)
							return
						}
					}
				})
			}
			wg.Wait()
			if s := n.hub.Stats(); s.Streams > relay.DefaultLimits().Streams || s.Calls != 64*8 || s.Lost != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestTooManyWaitingCallsAreRateLimited(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n := startNode(t, newDirectory(pub), nodeOptions{transport: "ws", change: func(c *relay.Config) { c.Limits.Streams, c.Limits.Queue = 2, 1 }})
	h := newBlocking()
	startHome(t, n.url, nil, key, h, nil)
	n.await(relay.SessionUp)
	var answers []<-chan contract.Result
	for range 2 {
		answers = append(answers, slow(n, true))
		receive(t, "the call at home", h.entered)
	}
	answers = append(answers, slow(n, true))
	eventually(t, "the third waits", func() bool { return n.hub.Stats().Queued == 1 })
	if res := n.call(t.Context(), contract.Call{}, true); !errors.Is(res.Err, contract.Fail(contract.RateLimited, "")) || res.Err.RetryAfterS < 1 {
		t.Errorf("fourth call: %v", res.Err)
	}
	close(h.release)
	for _, answer := range answers {
		if res := receive(t, "an answer", answer); res.Err != nil {
			t.Error(res.Err)
		}
	}
}

func TestAPanickingHandlerCostsOnlyItsCall(t *testing.T) {
	t.Parallel()
	n, _, _ := pair(t, "ws", tunnel.HandlerFunc(func(_ context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
		if c.Tool == "bad" {
			panic("secret detail")
		}
		return contract.Result{Body: c.Args}
	}))
	res := n.call(t.Context(), contract.Call{Tool: "bad", RequestID: "r1"}, false)
	if !errors.Is(res.Err, contract.Fail(contract.Internal, "")) || strings.Contains(string(res.Err.Body()), "secret") || res.Err.RequestID != "r1" {
		t.Errorf("%s", res.Err.Body())
	}
	if res := n.call(t.Context(), contract.Call{}, true); res.Err != nil {
		t.Errorf("next call: %v", res.Err)
	}
	if s := n.hub.Stats(); s.Accepted != 1 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAnOfflineHomeIsAnsweredAtOnceWithItsLastSeen(t *testing.T) {
	t.Parallel()
	n, hm, dir := pair(t, "tls", echo)
	hm.stop()
	n.await(relay.SessionDown)
	began := time.Now()
	res := n.call(t.Context(), contract.Call{}, true)
	if !errors.Is(res.Err, contract.Fail(contract.ConnectorOffline, "")) {
		t.Fatalf("%v", res.Err)
	}
	var detail struct {
		LastSeen time.Time `json:"last_seen"`
	}
	if err := json.Unmarshal(res.Err.Detail, &detail); err != nil || time.Since(detail.LastSeen) > time.Minute {
		t.Errorf("detail %s, %v", res.Err.Detail, err)
	}
	if d := time.Since(began); d > 1500*time.Millisecond {
		t.Errorf("took %v", d)
	}
	dir.mu.Lock()
	dir.seen = time.Unix(1_700_000_000, 0)
	dir.mu.Unlock()
	other := n.hub.Call(t.Context(), "tenant-2", instance, contract.Call{Grant: &contract.Grant{}}, true, nil)
	if string(other.Err.Detail) != `{"last_seen":"2023-11-14T22:13:20Z"}` {
		t.Errorf("same instance id of another tenant: %s", other.Err.Detail)
	}
}

func BenchmarkCall200B(b *testing.B) {
	for _, transport := range transports {
		b.Run(transport, func(b *testing.B) {
			n, _, _ := pair(b, transport, echo)
			call := contract.Call{Tool: "block", Action: "get", Args: json.RawMessage(`{"data":"` + strings.Repeat("x", 189) + `"}`),
				Grant: &contract.Grant{V: 1, Tenant: tenant, Instance: instance, Levels: map[string]contract.Level{"20230101120000-abcdefg": contract.Read}}}
			b.ReportAllocs()
			b.Run("one", func(b *testing.B) {
				for b.Loop() {
					if res := n.hub.Call(b.Context(), tenant, instance, call, true, nil); res.Err != nil {
						b.Fatal(res.Err)
					}
				}
			})
			b.Run("sixteen", func(b *testing.B) {
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if res := n.hub.Call(b.Context(), tenant, instance, call, true, nil); res.Err != nil {
							b.Error(res.Err)
							return
						}
					}
				})
			})
		})
	}
}
