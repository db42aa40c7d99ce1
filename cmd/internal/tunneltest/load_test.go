package tunneltest

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/broker/relay"
	"siyuan-broker/cmd/internal/faultproxy"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
)

// Not parallel: it measures the heap.
func TestT13LargeBodiesBothWaysStallNobody(t *testing.T) {
	size, transports := 1<<20, []string{"tls"}
	if soak {
		size, transports = 4<<20, []string{"tls", "ws"}
	}
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			stuck := make(chan struct{})
			n, _, _ := pair(t, transport, tunnel.HandlerFunc(func(_ context.Context, c contract.Call, progress func(contract.Progress)) contract.Result {
				if c.Tool == "chatty" { // more than a stream's window holds
					for range 100 {
						progress(contract.Progress{Message: strings.Repeat("x", 8<<10)})
					}
				}
				return contract.Result{Body: c.Args}
			}))
			slowReader := make(chan contract.Result, 1)
			entered := make(chan struct{})
			go func() {
				once := sync.OnceFunc(func() { close(entered) })
				slowReader <- n.hub.Call(context.Background(), tenant, instance, contract.Call{Tool: "chatty", Grant: &contract.Grant{}, Args: json.RawMessage(`{}`)},
					true, func(contract.Progress) { once(); <-stuck })
			}()
			receive(t, "the slow reader", entered)
			var peak atomic.Uint64
			stop := watchHeap(&peak)
			var wg sync.WaitGroup
			args := json.RawMessage(`"` + strings.Repeat("x", size) + `"`)
			for range 32 {
				wg.Go(func() {
					if res := n.call(t.Context(), contract.Call{Args: args}, true); len(res.Body) != len(args) {
						t.Errorf("got %d bytes, %v", len(res.Body), res.Err)
					}
				})
			}
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			small := 0
			for running := true; running; small++ {
				if res := n.call(t.Context(), contract.Call{Args: json.RawMessage(`1`)}, true); res.Err != nil {
					t.Errorf("small call %d: %v", small, res.Err)
				}
				select {
				case <-done:
					running = false
				default:
				}
			}
			stop()
			if small < 5 {
				t.Errorf("only %d small calls went through meanwhile", small)
			}
			close(stuck)
			if res := receive(t, "the slow reader's answer", slowReader); res.Err != nil {
				t.Error(res.Err)
			}
			// Per call: arguments and result, both once more while they grow, and
			// all of it twice before the collector runs.
			if limit := uint64(32*size*8 + 64<<20); peak.Load() > limit {
				t.Errorf("the heap grew to %d MiB, allowed are %d", peak.Load()>>20, limit>>20)
			}
			if s := n.hub.Stats(); s.Accepted != 1 || s.Lost != 0 || s.PingTimeouts != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// watchHeap keeps the largest heap until stop is called.
func watchHeap(peak *atomic.Uint64) (stop func()) {
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapInuse))
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended); <-gone }
}

func TestASlowLinkIsNotADeadOne(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	third := func(c *relay.Config) { c.Timing = relay.DefaultTiming().Scale(1.0 / 3) }
	n, p := behindProxy(t, newDirectory(pub), "ws", third)
	startHome(t, n.dial, nil, key, newWorkbench(256<<10, 0), func(c *tunnel.Config) { c.Timing = c.Timing.Scale(1.0 / 3) })
	n.await(relay.SessionUp)
	// 6 MiB at 600 kB/s: ten seconds, more than twice the ping timeout.
	p.SetOpen(faultproxy.Rules{Up: faultproxy.Rule{Rate: 600_000}})
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			if res := n.call(t.Context(), contract.Call{Tool: "read"}, true); res.Err != nil {
				t.Error(res.Err)
			}
		})
	}
	wg.Wait()
	if s := n.hub.Stats(); s.Accepted != 1 || s.PingTimeouts != 0 || s.Retried != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAMomentsFreezeMayCostACallButNeverItsSession(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n, p := behindProxy(t, newDirectory(pub), "tls", nil)
	warm := newBlocking()
	startHome(t, n.dial, n.tls, key, tunnel.HandlerFunc(func(ctx context.Context, c contract.Call, progress func(contract.Progress)) contract.Result {
		warm.Handle(ctx, c, progress)
		if c.Tool == "chatty" { // together more than sockets hold
			for range 4 {
				progress(contract.Progress{Message: strings.Repeat("x", 200<<10)})
			}
		}
		return contract.Result{Body: json.RawMessage(`"done"`)}
	}), func(c *tunnel.Config) { c.Timing.Write = 200 * time.Millisecond })
	n.await(relay.SessionUp)
	var streams sync.WaitGroup // a stream for each, opened before
	for range 64 {
		streams.Go(func() { n.call(t.Context(), contract.Call{Tool: "slow"}, true) })
	}
	for range 64 {
		receive(t, "a call at home", warm.entered)
	}
	close(warm.release)
	streams.Wait()
	freeze := sync.OnceFunc(func() {
		p.SetOpen(faultproxy.Rules{Up: faultproxy.Rule{Effect: faultproxy.Hold}})
		time.AfterFunc(time.Second, func() { p.SetOpen(faultproxy.Rules{}) })
	})
	var lost atomic.Int64
	var calls sync.WaitGroup
	for range 64 {
		calls.Go(func() {
			res := n.hub.Call(t.Context(), tenant, instance, contract.Call{Tool: "chatty", Grant: &contract.Grant{}, Args: json.RawMessage(`{}`)}, false,
				func(contract.Progress) { freeze() })
			if failed(res, contract.OutcomeUnknown) {
				lost.Add(1)
			} else if res.Err != nil {
				t.Error(res.Err)
			}
		})
	}
	calls.Wait()
	if lost.Load() == 0 {
		t.Error("the freeze cost nothing; the test shows nothing")
	}
	for range 3 {
		if res := n.call(t.Context(), contract.Call{}, true); string(res.Body) != `"done"` {
			t.Errorf("afterwards: %s %v", res.Body, res.Err)
		}
	}
	if s := n.hub.Stats(); s.Accepted != 1 || s.ProtocolErrors != 0 || s.Sessions != 1 {
		t.Errorf("%+v", s)
	}
}
