package tunneltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/cluster/peer"
	"siyuan-broker/broker/relay"
	"siyuan-broker/cmd/internal/faultproxy"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// pattern is n bytes of a block that repeats at no round length.
type pattern struct{ at, n int64 }

var block = func() []byte {
	b := make([]byte, 1_000_003)
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}()

func (p *pattern) Read(b []byte) (int, error) {
	if p.at >= p.n {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), p.n-p.at)]
	n := copy(b, block[p.at%int64(len(block)):])
	p.at += int64(n)
	return n, nil
}

func newSum() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// copier sends back what it gets, or as much as its arguments say.
var copier = tunnel.StreamHandlerFunc(func(_ context.Context, t contract.Transfer, in io.Reader, out contract.BodyWriter) error {
	var args struct {
		Send     int64
		Announce bool
		Sum      bool
	}
	if err := json.Unmarshal(t.Args, &args); err != nil {
		return err
	}
	switch {
	case args.Sum:
		h := newSum()
		if _, err := io.Copy(h, in); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%x", h.Sum(nil))
		return err
	case args.Send > 0:
		if args.Announce {
			if err := out.Announce(args.Send); err != nil {
				return err
			}
		}
		_, err := io.Copy(out, &pattern{n: args.Send})
		return err
	}
	_, err := io.Copy(out, in)
	return err
})

func withStreams(h tunnel.StreamHandler) func(*tunnel.Config) {
	return func(c *tunnel.Config) { c.Streams = h }
}

// streaming is a node with a home that carries out transfers.
func streaming(t *testing.T, transport string, h tunnel.StreamHandler) (*node, *home) {
	t.Helper()
	pub, key := keys(t)
	n := startNode(t, newDirectory(pub), nodeOptions{transport: transport})
	hm := startHome(t, n.url, n.tls, key, echo, withStreams(h))
	n.await(relay.SessionUp)
	return n, hm
}

func (n *node) open(ctx context.Context, args string, size int64) (contract.Stream, error) {
	return n.hub.OpenStream(ctx, tenant, instance, contract.Transfer{Size: size,
		Call: contract.Call{Tool: "file", Action: "copy", RequestID: "r1", Grant: &contract.Grant{}, Args: json.RawMessage(args)}}, false)
}

func (n *node) mustOpen(t *testing.T, args string, size int64) contract.Stream {
	t.Helper()
	s, err := n.open(t.Context(), args, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func code(err error) contract.Code { return contract.CodeOf(err) }

func TestLargeBodiesTravelOverTheirOwnConnection(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			n, _, _ := pair(t, transport, tunnel.HandlerFunc(func(_ context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
				if c.Action == "grow" {
					return contract.Result{Body: json.RawMessage(`"` + strings.Repeat("y", 1<<20) + `"`), Stats: contract.Stats{KernelCalls: 7}}
				}
				return contract.Result{Body: c.Args}
			}))
			if res := n.call(t.Context(), contract.Call{}, true); res.Err != nil || n.hub.Stats().Bulk != 0 {
				t.Fatalf("a small call: %v, %d bulk sessions", res.Err, n.hub.Stats().Bulk)
			}
			// The result is large, then the arguments.
			res := n.call(t.Context(), contract.Call{Action: "grow"}, true)
			if len(res.Body) != 1<<20+2 || res.Stats.KernelCalls != 7 {
				t.Fatalf("%d bytes, %+v, %v", len(res.Body), res.Stats, res.Err)
			}
			if n.hub.Stats().Bulk != 1 {
				t.Error("the result did not open a bulk session")
			}
			args := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if res := n.call(t.Context(), contract.Call{Args: args}, false); !bytes.Equal(res.Body, args) {
						t.Errorf("got %d bytes, %v", len(res.Body), res.Err)
					}
					if res := n.call(t.Context(), contract.Call{Action: "grow"}, false); len(res.Body) != 1<<20+2 {
						t.Errorf("got %d bytes, %v", len(res.Body), res.Err)
					}
				})
			}
			wg.Wait()
			if s := n.hub.Stats(); s.Bulk != 1 || s.Accepted != 1 || s.Lost != 0 || s.ProtocolErrors != 0 {
				t.Errorf("%+v", s)
			}
			if info, _ := n.hub.Session(tenant, instance); info.Epoch != 1 {
				t.Errorf("the bulk session cost an epoch: %d", info.Epoch)
			}
		})
	}
}

func TestABulkSessionThatCannotBeHadCostsSpeedOnly(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n, p := behindProxy(t, newDirectory(pub), "ws", func(c *relay.Config) { c.Timing.Bulk = 50 * time.Millisecond })
	startHome(t, n.dial, nil, key, echo, func(c *tunnel.Config) { c.Timing.Bulk, c.Streams = 50*time.Millisecond, copier })
	n.await(relay.SessionUp)
	p.SetNew(faultproxy.Both(faultproxy.Rule{Effect: faultproxy.Drop}))
	args := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	for range 3 {
		if res := n.call(t.Context(), contract.Call{Args: args}, false); !bytes.Equal(res.Body, args) {
			t.Errorf("got %d bytes, %v", len(res.Body), res.Err)
		}
	}
	s := n.mustOpen(t, `{"send":1000000}`, 0)
	if got, err := io.ReadAll(s); len(got) != 1_000_000 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if s := n.hub.Stats(); s.Bulk != 0 || s.Accepted != 1 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
}

func TestABulkSessionDiesWithItsSessionAndWhenItIsNotUsed(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n := startNode(t, newDirectory(pub), nodeOptions{transport: "tls", change: func(c *relay.Config) {
		c.Timing.PingInterval, c.Timing.BulkIdle = 20*time.Millisecond, 50*time.Millisecond
	}})
	hm := startHome(t, n.url, n.tls, key, echo, nil)
	n.await(relay.SessionUp)
	args := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	for range 2 {
		if res := n.call(t.Context(), contract.Call{Args: args}, true); res.Err != nil {
			t.Fatal(res.Err)
		}
		eventually(t, "the unused one is closed", func() bool { return n.hub.Stats().Bulk == 0 })
	}
	if s := n.hub.Stats(); s.Sessions != 1 || s.Accepted != 1 {
		t.Errorf("%+v", s)
	}
	if res := n.call(t.Context(), contract.Call{Args: args}, true); res.Err != nil {
		t.Fatal(res.Err)
	}
	hm.stop()
	n.await(relay.SessionDown)
	eventually(t, "nothing is left", func() bool { s := n.hub.Stats(); return s.Sessions == 0 && s.Bulk == 0 })
}

func TestATransferGoesBothWaysAndItsStreamIsUsedAgain(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"tls", "ws"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			n, _ := streaming(t, transport, copier)
			for i, size := range []int64{0, 1, wire.MaxData, 3*wire.MaxData + 7, 5 << 20} {
				announced := size
				if i%2 == 1 {
					announced = contract.UnknownSize
				}
				s := n.mustOpen(t, `{}`, announced)
				go func() {
					if size > 0 {
						if _, err := io.Copy(s, &pattern{n: size}); err != nil {
							t.Error(err)
						}
					}
					if err := s.CloseWrite(); err != nil {
						t.Error(err)
					}
				}()
				got, want := newSum(), newSum()
				if _, err := io.Copy(got, s); err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
				_, _ = io.Copy(want, &pattern{n: size})
				if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
					t.Errorf("%d bytes came back changed", size)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			for _, announce := range []bool{true, false} {
				s := n.mustOpen(t, fmt.Sprintf(`{"send":300000,"announce":%t}`, announce), 0)
				got, err := io.ReadAll(s)
				want := map[bool]int64{true: 300_000, false: contract.UnknownSize}[announce]
				if len(got) != 300_000 || err != nil || s.Size() != want {
					t.Errorf("%d bytes of %d, %v", len(got), s.Size(), err)
				}
			}
			if s := n.hub.Stats(); s.Bulk != 1 || s.ProtocolErrors != 0 || s.Transfers != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestATransferThatFailsAtHomeSaysWhy(t *testing.T) {
	t.Parallel()
	n, _ := streaming(t, "ws", tunnel.StreamHandlerFunc(func(_ context.Context, tr contract.Transfer, in io.Reader, out contract.BodyWriter) error {
		switch string(tr.Args) {
		case `"early"`:
			return contract.Fail(contract.NotFound, "No such asset.").WithDetail(map[string]int{"x": 1})
		case `"late"`:
			if _, err := io.CopyN(out, &pattern{n: 100_000}, 100_000); err != nil {
				return err
			}
			return contract.Fail(contract.SiYuanOffline, "It went away.")
		case `"panic"`:
			panic("oops")
		case `"short"`:
			if err := out.Announce(10); err != nil {
				return err
			}
			_, err := out.Write([]byte("123"))
			return err
		case `"enough"`: // the rest is not needed
			_, err := out.Write([]byte("ok"))
			return err
		}
		_, err := io.Copy(out, in)
		return err
	}))
	for args, want := range map[string]contract.Code{`"early"`: contract.NotFound, `"late"`: contract.SiYuanOffline,
		`"panic"`: contract.Internal, `"short"`: contract.Internal, `"enough"`: ""} {
		s := n.mustOpen(t, args, contract.UnknownSize)
		// More than any window holds: the writer must learn that nobody reads.
		wrote := make(chan error, 1)
		go func() {
			_, err := io.Copy(s, &pattern{n: 64 << 20})
			wrote <- err
		}()
		got, err := io.ReadAll(s)
		writeErr := receive(t, "the writer", wrote)
		if code(err) != want {
			t.Errorf("%s: read ends with %v, want %s", args, err, want)
		}
		if args == `"late"` && len(got) != 100_000 || args == `"enough"` && string(got) != "ok" {
			t.Errorf("%s: got %d bytes", args, len(got))
		}
		var e *contract.Error
		if writeErr == nil || !errors.As(writeErr, &e) {
			t.Errorf("%s: write ends with %v", args, writeErr)
		}
		if want == contract.NotFound && (string(e.Detail) != `{"x":1}` || e.Message != "No such asset.") {
			t.Errorf("%+v", e)
		}
		_ = s.Close()
	}
	wrong := n.mustOpen(t, `{}`, 10)
	if _, err := wrong.Write(make([]byte, 11)); code(err) != contract.InvalidValue {
		t.Errorf("more than announced: %v", err)
	}
	less := n.mustOpen(t, `{}`, 10)
	_, _ = less.Write(make([]byte, 9))
	if err := less.CloseWrite(); code(err) != contract.InvalidValue {
		t.Errorf("less than announced: %v", err)
	}
	eventually(t, "all are over", func() bool { return n.hub.Stats().Transfers == 0 })
	if s := n.hub.Stats(); s.Accepted != 1 || s.ProtocolErrors != 0 {
		t.Errorf("%+v", s)
	}
	if res := n.call(t.Context(), contract.Call{Args: json.RawMessage(`1`)}, true); string(res.Body) != `1` {
		t.Errorf("afterwards: %v", res.Err)
	}
}

func TestATransferIsGivenUpByEitherEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 10)
	n, hm := streaming(t, "tls", tunnel.StreamHandlerFunc(func(ctx context.Context, tr contract.Transfer, in io.Reader, out contract.BodyWriter) error {
		if string(tr.Args) == `"read"` {
			_, err := io.Copy(io.Discard, in)
			ended <- err
			return err
		}
		_, err := io.Copy(out, &pattern{n: 1 << 40})
		ended <- err
		return err
	}))
	for _, args := range []string{`"read"`, `"write"`} {
		s := n.mustOpen(t, args, contract.UnknownSize)
		if args == `"write"` {
			if _, err := io.ReadFull(s, make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
		}
		_ = s.Close()
		if err := receive(t, "the handler's end", ended); err == nil {
			t.Errorf("%s: the handler was not told", args)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s, err := n.open(ctx, args, contract.UnknownSize)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := io.Copy(io.Discard, s); code(err) != contract.OutcomeUnknown {
			t.Errorf("%s: %v", args, err)
		}
		if err := receive(t, "the handler's end", ended); err == nil {
			t.Errorf("%s: the handler was not told", args)
		}
		_ = s.Close()
	}
	s := n.mustOpen(t, `"write"`, 0)
	if _, err := io.ReadFull(s, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	hm.stop()
	if _, err := io.Copy(io.Discard, s); code(err) != contract.OutcomeUnknown {
		t.Errorf("the home left: %v", err)
	}
	eventually(t, "all are over", func() bool { return n.hub.Stats().Transfers == 0 })
	eventually(t, "the home is away", func() bool {
		s, err := n.open(t.Context(), `{}`, 0)
		if err == nil {
			_ = s.Close()
		}
		return code(err) == contract.ConnectorOffline
	})
}

func TestATransferThatStandsStillIsGivenUp(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n := startNode(t, newDirectory(pub), nodeOptions{transport: "ws", change: func(c *relay.Config) { c.Timing.StreamIdle = 50 * time.Millisecond }})
	told := make(chan struct{}, 1)
	startHome(t, n.url, n.tls, key, echo, withStreams(tunnel.StreamHandlerFunc(func(ctx context.Context, _ contract.Transfer, _ io.Reader, _ contract.BodyWriter) error {
		<-ctx.Done()
		told <- struct{}{}
		return nil
	})))
	n.await(relay.SessionUp)
	s := n.mustOpen(t, `{}`, 0)
	if _, err := s.Read(make([]byte, 1)); code(err) != contract.OutcomeUnknown {
		t.Errorf("%v", err)
	}
	receive(t, "the home's end", told)
}

func TestTransfersAreLimitedPerHomeAndPerTenant(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*relay.Config, *tunnel.Config){
		"by the broker for a home":   func(r *relay.Config, _ *tunnel.Config) { r.Limits.Transfers = 2 },
		"by the broker for a tenant": func(r *relay.Config, _ *tunnel.Config) { r.Limits.TenantTransfers = 2 },
		"by the home":                func(_ *relay.Config, c *tunnel.Config) { c.MaxTransfers = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pub, key := keys(t)
			hc := tunnel.Config{}
			n := startNode(t, newDirectory(pub), nodeOptions{transport: "ws", change: func(c *relay.Config) { change(c, &hc) }})
			startHome(t, n.url, n.tls, key, echo, func(c *tunnel.Config) { c.Streams, c.MaxTransfers = copier, hc.MaxTransfers })
			n.await(relay.SessionUp)
			var open []contract.Stream
			for range 2 {
				s := n.mustOpen(t, `{}`, contract.UnknownSize)
				if _, err := s.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Read(make([]byte, 1)); err != nil { // it runs
					t.Fatal(err)
				}
				open = append(open, s)
			}
			third := func() error {
				s, err := n.open(t.Context(), `{}`, 0)
				if err != nil {
					return err
				}
				defer s.Close()
				_, err = io.ReadAll(s)
				return err
			}
			if err := third(); code(err) != contract.RateLimited {
				t.Errorf("the third: %v", err)
			}
			_ = open[0].Close()
			eventually(t, "there is room again", func() bool { return third() == nil })
		})
	}
}

func TestAHomeWithoutTransfersSaysSo(t *testing.T) {
	t.Parallel()
	n, _ := streaming(t, "ws", nil)
	s := n.mustOpen(t, `{}`, contract.UnknownSize)
	_, _ = s.Write(make([]byte, 100_000))
	if _, err := io.ReadAll(s); code(err) != contract.Unsupported {
		t.Errorf("%v", err)
	}
}

// Not parallel: it measures the heap.
func TestAQuarterOfAGigabyteTakesConstantMemory(t *testing.T) {
	const size = 256 << 20
	n, _ := streaming(t, "tls", copier)
	var peak atomic.Uint64
	stop := watchHeap(&peak)
	up := n.mustOpen(t, `{"sum":true}`, size)
	want := newSum()
	if _, err := io.Copy(up, io.TeeReader(&pattern{n: size}, want)); err != nil {
		t.Fatal(err)
	}
	if err := up.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	sum, err := io.ReadAll(up)
	if hex := fmt.Sprintf("%x", want.Sum(nil)); string(sum) != hex {
		t.Errorf("up: %s, %v; want %s", sum, err, hex)
	}
	down := n.mustOpen(t, fmt.Sprintf(`{"send":%d,"announce":true}`, size), 0)
	got := newSum()
	if copied, err := io.Copy(got, down); copied != size || err != nil || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Errorf("down: %d bytes, %v", copied, err)
	}
	stop()
	t.Logf("heap in use at most %d MiB", peak.Load()>>20)
	if limit := uint64(96 << 20); peak.Load() > limit {
		t.Errorf("the heap grew to %d MiB, allowed are %d", peak.Load()>>20, limit>>20)
	}
}

func TestATransferReachesAHomeOnAnotherNode(t *testing.T) {
	t.Parallel()
	n, _ := streaming(t, "tls", copier)
	relayed := acrossNodes(t, n)
	s, err := relayed.OpenStream(t.Context(), tenant, instance, contract.Transfer{Size: 20 << 20,
		Call: contract.Call{Grant: &contract.Grant{}, Args: json.RawMessage(`{}`)}}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go func() {
		if _, err := io.Copy(s, &pattern{n: 20 << 20}); err != nil {
			t.Error(err)
		}
		_ = s.CloseWrite()
	}()
	got, want := newSum(), newSum()
	_, _ = io.Copy(want, &pattern{n: 20 << 20})
	if copied, err := io.Copy(got, s); err != nil || got.Sum32() != want.Sum32() {
		t.Errorf("%d bytes, %v", copied, err)
	}
	fails, err := relayed.OpenStream(t.Context(), tenant, instance, contract.Transfer{
		Call: contract.Call{Grant: &contract.Grant{}, Args: json.RawMessage(`"not an object"`)}}, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(fails); code(err) != contract.Internal {
		t.Errorf("%v", err)
	}
	_ = fails.Close()
	eventually(t, "all are over", func() bool { return n.hub.Stats().Transfers == 0 })
}

// acrossNodes is the relay of a second node, which has no tunnels of its own.
func acrossNodes(t *testing.T, n *node) *cluster.Relay {
	t.Helper()
	id, err := peer.NewIdentity(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	server, err := peer.NewServer(n.hub, peer.Options{Node: "n2", Identity: id})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	client, err := peer.NewClient(peer.Options{Node: "n1", Identity: id})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Stop(context.Background())
		if err := receive(t, "the peer listener's end", served); err != nil {
			t.Error(err)
		}
	})
	other := startNode(t, newDirectory(nil), nodeOptions{transport: "ws"})
	return &cluster.Relay{Node: "n1", Local: other.hub, Peers: client, Log: logger(t),
		Routes: oneRoute{route: cluster.Route{Tenant: tenant, Instance: instance, Node: "n2", Address: ln.Addr().String(), Epoch: 1}}}
}

// oneRoute leads to one node.
type oneRoute struct {
	cluster.Routes
	route cluster.Route
}

func (o oneRoute) Lookup(context.Context, string, string) (cluster.Route, error) { return o.route, nil }

func TestABulkSessionThatFreezesCostsTimeOnly(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n, p := behindProxy(t, newDirectory(pub), "tls", nil)
	bench := newWorkbench(5<<20, 0)
	bench.working = func(context.Context, contract.Call, bool) {
		p.SetNew(faultproxy.Rules{Up: faultproxy.Rule{Effect: faultproxy.Hold, After: 1 << 20}})
	}
	startHome(t, n.dial, n.tls, key, bench, func(c *tunnel.Config) {
		c.Timing.PingInterval, c.Timing.BulkWrite = 100*time.Millisecond, 200*time.Millisecond
	})
	n.await(relay.SessionUp)
	res := n.call(t.Context(), contract.Call{Tool: "write", RequestID: "w"}, false)
	if res.Err != nil || len(res.Body) != 5<<20+2 {
		t.Errorf("%d bytes, %v", len(res.Body), res.Err)
	}
	if arrived, effects := bench.counts("w"); arrived != 1 || effects != 1 {
		t.Errorf("sent %d times, executed %d times", arrived, effects)
	}
	if s := n.hub.Stats(); s.Accepted != 1 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
}
