package tunneltest

import (
	"context"
	"encoding/json"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"siyuan-broker/broker/relay"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
)

// countingConn counts the writes that reach the system, on either end.
type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(b []byte) (int, error) { c.writes.Add(1); return c.Conn.Write(b) }

type countingListener struct {
	net.Listener
	writes *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, l.writes}, err
}

type countingDialer struct{ writes *atomic.Int64 }

func (d countingDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return countingConn{c, d.writes}, err
}

// counted is a node with a home, and the writes that either end has made.
func counted(t testing.TB, h tunnel.Handler) (n *node, broker, connector *atomic.Int64) {
	t.Helper()
	pub, key := keys(t)
	broker, connector = new(atomic.Int64), new(atomic.Int64)
	n = startNode(t, newDirectory(pub), nodeOptions{transport: "tls",
		listen: func(ln net.Listener) net.Listener { return countingListener{ln, broker} }})
	startHome(t, n.url, n.tls, key, h, func(c *tunnel.Config) { c.Dialer = countingDialer{connector} })
	n.await(relay.SessionUp)
	return n, broker, connector
}

// together runs calls on each of a number of callers.
func together(t testing.TB, n *node, callers, calls int, args json.RawMessage) {
	t.Helper()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range calls {
				if res := n.call(t.Context(), contract.Call{Args: args}, true); res.Err != nil {
					t.Error(res.Err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Not parallel: how many frames share a write depends on who else computes.
func TestSixteenCallersShareTheirWrites(t *testing.T) {
	n, broker, connector := counted(t, echo)
	args := json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)
	together(t, n, 16, 20, args) // streams are open
	const calls = 16 * 500
	b0, c0 := broker.Load(), connector.Load()
	together(t, n, 16, calls/16, args)
	perCall := [2]float64{float64(broker.Load()-b0) / calls, float64(connector.Load()-c0) / calls}
	t.Logf("writes per call: broker %.3f, connector %.3f", perCall[0], perCall[1])
	if perCall[0] > 0.5 || perCall[1] > 0.5 {
		t.Errorf("writes per call: broker %.3f, connector %.3f; allowed are 0.5", perCall[0], perCall[1])
	}
}

// Not parallel: it counts goroutines.
func TestAnIdleConnectorCostsThreeGoroutinesAtTheBroker(t *testing.T) {
	n, _, _ := pair(t, "tls", echo)
	if res := n.call(t.Context(), contract.Call{}, true); res.Err != nil {
		t.Fatal(res.Err)
	}
	eventually(t, "three are left", func() bool { return brokersGoroutines() == 3 })
}

// brokersGoroutines are those that serve the one connector: the relay's own, and
// half of the multiplexers', whose other half is the connector's.
func brokersGoroutines() int {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	relays, muxes := 0, 0
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		switch {
		case strings.Contains(g, "created by github.com/hashicorp/yamux."):
			muxes++
		case strings.Contains(g, "broker/relay.(*session)"), strings.Contains(g, "broker/relay.(*link)"), strings.Contains(g, "broker/relay.(*bulk)"):
			relays++
		}
	}
	return relays + muxes/2
}
