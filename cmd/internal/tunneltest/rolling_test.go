package tunneltest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/broker/relay"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
)

// fleet is the nodes of a cluster as its router sees them: a call goes to the
// node that has the home, and a call that certainly did not reach it once more.
type fleet struct {
	mu    sync.Mutex
	nodes []*node
}

func (f *fleet) add(n *node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes = append(f.nodes, n)
}

func (f *fleet) owner() *node {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range slices.Backward(f.nodes) {
		if n.hub.Has(tenant, instance) {
			return n
		}
	}
	return nil
}

func (f *fleet) call(ctx context.Context, call contract.Call, idempotent bool) contract.Result {
	res := contract.Result{Err: contract.Fail(contract.ConnectorOffline, "No node has the home.")}
	for range 2 {
		n := f.owner()
		if n == nil {
			break
		}
		res = n.call(ctx, call, idempotent)
		if !failed(res, contract.ConnectorOffline, contract.TunnelReplaced) {
			break
		}
	}
	return res
}

func TestRollingAClusterUnderLoadFailsNoCall(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"tls", "ws"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			pub, key := keys(t)
			dir := newDirectory(pub)
			p := startProxy(t)
			var cluster fleet
			var first *node
			start := func() *node {
				n := startNode(t, dir, nodeOptions{transport: transport, address: p.Addr(), like: first, rawOnly: transport == "tls", change: func(c *relay.Config) {
					c.Timing.Drain = 10 * time.Second
					switch { // all answer to the name that the home knows
					case transport != "tls":
						c.Audiences = []string{"siyuan-tunnel:" + p.Addr()}
					case first != nil:
						c.Audiences = []string{"siyuan-tunnel:" + first.http.Listener.Addr().String()}
					}
				}})
				p.Retarget(n.tunnelAddr(transport))
				cluster.add(n)
				return n
			}
			bench := newWorkbench(500, 1)
			bench.working = func(context.Context, contract.Call, bool) {
				d := time.NewTimer(time.Duration(rand.IntN(20)) * time.Millisecond)
				defer d.Stop()
				<-d.C
			}
			first = start()
			url := first.url
			if transport != "tls" {
				url = "http://" + p.Addr()
			}
			hm := startHome(t, url, first.tls, key, bench, func(c *tunnel.Config) { c.Uniform = func() float64 { return rand.Float64() / 20 } })
			first.await(relay.SessionUp)

			stop := make(chan struct{})
			var load sync.WaitGroup
			var reads, writes, unknown atomic.Int64
			for caller := range 8 {
				load.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						id := fmt.Sprintf("%d-%d", caller, i)
						kind := []string{"read", "write"}[i%2]
						res := cluster.call(t.Context(), contract.Call{Tool: kind, RequestID: id, Args: json.RawMessage(`{}`)}, kind == "read")
						arrived, effects := bench.counts(id)
						switch {
						case kind == "read" && res.Err != nil:
							t.Errorf("read %s: %v", id, res.Err)
						case kind == "read":
							reads.Add(1)
						case failed(res, contract.OutcomeUnknown):
							unknown.Add(1)
						case res.Err != nil || effects != 1 || arrived != 1:
							t.Errorf("write %s arrived %d times, executed %d times, %v", id, arrived, effects, res.Err)
						default:
							writes.Add(1)
						}
					}
				})
			}
			node, rolls := first, 4
			if soak {
				rolls = 40
			}
			for range rolls {
				next := start()
				node.stop() // drains
				if s := node.hub.Stats(); s.Sessions != 0 || s.MuxStreams != 0 || s.Lost != 0 {
					t.Errorf("%+v", s)
				}
				next.await(relay.SessionUp)
				node = next
			}
			close(stop)
			load.Wait()
			hm.stop() // before the last node, which would wait for it to move
			if reads.Load() == 0 || writes.Load() == 0 || unknown.Load() != 0 {
				t.Errorf("%d reads, %d writes, %d of unknown outcome", reads.Load(), writes.Load(), unknown.Load())
			}
		})
	}
}
