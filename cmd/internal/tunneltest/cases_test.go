package tunneltest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
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

// The cases of user trouble with tunnels, by their ids.

// memory is what the process holds after a collection.
func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Not parallel: it counts goroutines and memory.
func TestT01AHalfOpenConnectionIsTakenOverAtOnce(t *testing.T) {
	for _, transport := range []string{"tls", "ws"} {
		t.Run(transport, func(t *testing.T) {
			pub, key := keys(t)
			n, p := behindProxy(t, newDirectory(pub), transport, nil)
			var hm *home
			before := memory()
			for i := range 50 {
				began := time.Now()
				hm = startHome(t, n.dial, n.tls, key, echo, nil)
				if info := n.await(relay.SessionUp); info.Epoch != int64(i+1) {
					t.Fatalf("epoch %d at connection %d", info.Epoch, i+1)
				}
				if res := n.call(t.Context(), contract.Call{}, true); res.Err != nil {
					t.Fatalf("the first call after takeover %d: %v", i, res.Err)
				}
				if d := time.Since(began); d > 2*time.Second {
					t.Errorf("takeover %d took %v", i, d)
				}
				if i == 49 {
					break
				}
				p.SetOpen(deadSilence) // the old connection neither speaks nor closes
				hm.stop()
			}
			eventually(t, "one session is left", func() bool { return n.hub.Stats().Sessions == 1 })
			conns := p.Conns()
			for i, conn := range conns[:len(conns)-1] {
				receive(t, fmt.Sprintf("the broker's close of connection %d", i), conn.Gone(faultproxy.Down))
			}
			if s := n.hub.Stats(); s.Accepted != 50 || s.Replaced != 49 || s.Streams != 1 || s.MuxStreams != 2 {
				t.Errorf("%+v", s)
			}
			// The proxy keeps five goroutines a connection, both ends together
			// about a dozen for the live session and none for the dead ones.
			eventually(t, "goroutines are flat", func() bool { return runtime.NumGoroutine()-5*len(conns) < 40 })
			hm.stop()
			_ = p.Close()
			eventually(t, "no session is left", func() bool { return n.hub.Stats().Sessions == 0 })
			// The case is a leak of 30 to 50 KB a try.
			var grown int64
			eventually(t, "memory is flat", func() bool { grown = memory() - before; return grown < 50*20<<10 })
			t.Logf("50 takeovers left %d KiB", grown>>10)
		})
	}
}

func TestT02T06BothEndsNoticeADeadLinkAndComeBackWhenItHeals(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"tls", "ws"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			pub, key := keys(t)
			n, p := behindProxy(t, newDirectory(pub), transport, scaledNode)
			b := newBlocking()
			var waits waitLog
			hm := startHome(t, n.dial, n.tls, key, b, func(c *tunnel.Config) {
				scaledHome(c)
				c.Timing.Dial = time.Second
				c.Clock = &waits
			})
			n.await(relay.SessionUp)
			eventually(t, "a measured round trip on both ends", func() bool {
				info, _ := n.hub.Session(tenant, instance)
				return info.RTT > 0 && hm.client.State().RTT > 0
			})
			read := slow(n, true)
			receive(t, "the call at home", b.entered)
			// A busy machine may have cost a session before this one.
			epoch, timeouts := hm.client.State().Epoch, n.hub.Stats().PingTimeouts
			p.Set(deadSilence)
			began := time.Now()
			if res := receive(t, "the answer of the running call", read); !failed(res, contract.ConnectorOffline) {
				t.Errorf("%v", res.Err)
			}
			n.await(relay.SessionDown)
			brokerKnew := time.Since(began)
			eventually(t, "the home notices", func() bool { return hm.client.State().Phase != tunnel.Connected })
			if homeKnew := time.Since(began); max(brokerKnew, homeKnew) > deadLink+scheduler {
				t.Errorf("broker after %v, home after %v, allowed are %v", brokerKnew, homeKnew, deadLink)
			}
			if s := n.hub.Stats(); s.PingTimeouts != timeouts+1 {
				t.Errorf("%+v", s)
			}
			eventually(t, "the outage is there to see", func() bool {
				s := hm.client.State()
				return s.Attempt >= 3 && s.LastError != "" && s.Epoch == epoch
			})
			p.SetNew(faultproxy.Rules{})
			n.await(relay.SessionUp)
			if all := waits.list(); len(all) < 3 || all[0] == all[1] && all[1] == all[2] {
				t.Errorf("waits without jitter: %v", all)
			}
		})
	}
}

// waitLog is a clock that remembers what it was asked to wait.
type waitLog struct {
	mu    sync.Mutex
	waits []time.Duration
}

func (*waitLog) Now() time.Time { return time.Now() }

func (w *waitLog) Sleep(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	w.waits = append(w.waits, d)
	w.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *waitLog) list() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Duration(nil), w.waits...)
}

// resolver is a dialer whose DNS is in the hands of the test.
type resolver struct {
	mu      sync.Mutex
	address string // what every name resolves to; "" while DNS is down
	from    net.IP // local address to dial from
	asked   int
}

func (r *resolver) set(address string, from net.IP) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.address, r.from = address, from
}

func (r *resolver) DialContext(ctx context.Context, network, name string) (net.Conn, error) {
	r.mu.Lock()
	r.asked++
	address, from := r.address, r.from
	r.mu.Unlock()
	if address == "" {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	d := net.Dialer{}
	if from != nil {
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	return d.DialContext(ctx, network, address)
}

func TestT04ADeadResolverIsRetriedForEverAndItsNewAnswerFollowed(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	dir := newDirectory(pub)
	named := func(c *relay.Config) { c.Audiences = []string{"siyuan-tunnel:localhost:1"} }
	first := startNode(t, dir, nodeOptions{transport: "ws", change: named})
	second := startNode(t, dir, nodeOptions{transport: "ws", change: named})
	dns := &resolver{}
	hm := startHome(t, "http://localhost:1", nil, key, echo, func(c *tunnel.Config) {
		c.Dialer, c.Backoff = dns, tunnel.Backoff{Base: time.Millisecond, Cap: 5 * time.Millisecond}
	})
	eventually(t, "twenty attempts", func() bool { return hm.client.State().Attempt >= 20 })
	select {
	case err := <-hm.err:
		t.Fatalf("gave up: %v", err)
	default:
	}
	if s := hm.client.State(); !strings.Contains(s.LastError, "no such host") {
		t.Errorf("%+v", s)
	}
	dns.set(first.tunnelAddr("ws"), nil)
	first.await(relay.SessionUp)
	dns.set(second.tunnelAddr("ws"), nil)
	first.stop()
	second.await(relay.SessionUp)
}

func TestAHomeThatChangesItsAddressTakesItsSessionAlong(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs more than one loopback address")
	}
	pub, key := keys(t)
	n := startNode(t, newDirectory(pub), nodeOptions{transport: "ws", change: scaledNode})
	p := startProxy(t)
	p.Retarget(n.tunnelAddr("ws"))
	// The first network drops everything without a word, the second is direct.
	dns := &resolver{address: p.Addr()}
	startHome(t, n.url, nil, key, echo, func(c *tunnel.Config) { scaledHome(c); c.Dialer = dns })
	n.await(relay.SessionUp)
	dns.set(n.tunnelAddr("ws"), net.IPv4(127, 0, 0, 2))
	p.Set(deadSilence)
	if info := n.await(relay.SessionUp); info.Epoch != 2 || !strings.HasPrefix(info.Remote, "127.0.0.2:") {
		t.Errorf("%+v", info)
	}
	if res := n.call(t.Context(), contract.Call{}, true); res.Err != nil {
		t.Error(res.Err)
	}
}

func TestT10AThousandOneSidedCancelsLeaveNoStream(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n := startNode(t, newDirectory(pub), nodeOptions{transport: "tls", change: func(c *relay.Config) { c.Timing.PingInterval = 200 * time.Millisecond }})
	var cancelled atomic.Int64
	hm := startHome(t, n.url, n.tls, key, tunnel.HandlerFunc(func(ctx context.Context, _ contract.Call, _ func(contract.Progress)) contract.Result {
		<-ctx.Done()
		cancelled.Add(1)
		return contract.Result{}
	}), nil)
	n.await(relay.SessionUp)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
				n.call(ctx, contract.Call{}, true)
				cancel()
			}
		})
	}
	wg.Wait()
	eventually(t, "only the control stream and a warm one are left", func() bool {
		s := n.hub.Stats()
		return s.Streams <= 1 && s.MuxStreams <= 2 && s.Queued == 0 && hm.client.State().Calls == 0
	})
	if info, ok := n.hub.Session(tenant, instance); !ok || info.Epoch != 1 || info.Calls != 0 {
		t.Errorf("%+v", info)
	}
}

func TestT11AFrozenReaderEndsTheCallOnBothEnds(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"tls", "ws"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			pub, key := keys(t)
			n, p := behindProxy(t, newDirectory(pub), transport, scaledNode)
			bench := newWorkbench(5<<20, 0)
			bench.working = func(context.Context, contract.Call, bool) {
				p.SetOpen(faultproxy.Rules{Up: faultproxy.Rule{Effect: faultproxy.Hold, After: 1 << 20}})
				p.SetNew(deadSilence) // no second connection for the result
			}
			hm := startHome(t, n.dial, n.tls, key, bench, scaledHome)
			n.await(relay.SessionUp)
			began := time.Now()
			res := n.call(t.Context(), contract.Call{Tool: "write", RequestID: "w"}, false)
			if !failed(res, contract.OutcomeUnknown) || res.Err.RequestID != "w" {
				t.Errorf("%v", res.Err)
			}
			eventually(t, "the home gave it up too", func() bool {
				s := hm.client.State()
				return s.Calls == 0 && (s.Phase != tunnel.Connected || s.Epoch > 1)
			})
			// The transfers of this package's other tests take their share of the
			// processor, and a result is given up in steps: what matters is that it ends.
			if d := time.Since(began); d > 4*deadLink+scheduler {
				t.Errorf("took %v, allowed are %v", d, 4*deadLink)
			}
			eventually(t, "the stream is gone", func() bool { s := n.hub.Stats(); return s.MuxStreams <= 2 && s.Sessions <= 1 })
			if arrived, effects := bench.counts("w"); arrived != 1 || effects != 1 {
				t.Errorf("sent %d times, executed %d times", arrived, effects)
			}
		})
	}
}

// forgetful is a directory that does not answer when a home was last seen.
type forgetful struct{ *directory }

func (forgetful) LastSeen(ctx context.Context, _, _ string) (time.Time, error) {
	<-ctx.Done()
	return time.Time{}, ctx.Err()
}

func TestT15AnOfflineHomeIsAnsweredSoonEvenWithoutADatabase(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n := startNode(t, forgetful{newDirectory(pub)}, nodeOptions{transport: "ws"})
	hm := startHome(t, n.url, nil, key, echo, nil)
	n.await(relay.SessionUp)
	hm.stop()
	n.await(relay.SessionDown)
	began := time.Now()
	res := n.call(t.Context(), contract.Call{RequestID: "r"}, true)
	if d := time.Since(began); d > 1500*time.Millisecond {
		t.Errorf("took %v", d)
	}
	if !failed(res, contract.ConnectorOffline) || !strings.Contains(string(res.Err.Detail), "last_seen") {
		t.Errorf("%s", res.Err.Body())
	}
}

func TestT16AnIdleTunnelSurvivesAForgetfulNAT(t *testing.T) {
	t.Parallel()
	const idle = 60 * time.Second / 15
	pub, key := keys(t)
	n, p := behindProxy(t, newDirectory(pub), "tls", func(c *relay.Config) {
		d := relay.DefaultTiming()
		c.Timing.PingInterval = d.PingInterval / 15
	})
	p.ForgetIdle(idle)
	startHome(t, n.dial, n.tls, key, echo, func(c *tunnel.Config) { c.Timing.Dial = patience })
	n.await(relay.SessionUp)
	quiet := time.NewTimer(idle + idle/2) // no call meanwhile; this is what the test is about
	defer quiet.Stop()
	<-quiet.C
	if res := n.call(t.Context(), contract.Call{}, true); res.Err != nil {
		t.Errorf("the first call after the pause: %v", res.Err)
	}
	if s := n.hub.Stats(); s.Accepted != 1 || s.Retried != 0 {
		t.Errorf("%+v", s)
	}
}

func TestT19AWriteWhoseAnswerIsLostIsNeverDoneTwice(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"tls", "ws"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			pub, key := keys(t)
			n, p := behindProxy(t, newDirectory(pub), transport, nil)
			bench := newWorkbench(10, 0)
			bench.working = func(ctx context.Context, _ contract.Call, effect bool) {
				if effect { // done, and the link dies before the answer
					p.SetOpen(faultproxy.Both(faultproxy.Rule{Effect: faultproxy.Reset}))
				}
			}
			startHome(t, n.dial, n.tls, key, bench, nil)
			n.await(relay.SessionUp)
			write := contract.Call{Tool: "write", RequestID: "01890a5d-ac96-774b-bcce-b302099a8057"}
			res := n.call(t.Context(), write, false)
			if !failed(res, contract.OutcomeUnknown) || res.Err.RequestID != write.RequestID || res.Err.Retry != contract.RetrySame {
				t.Fatalf("%v", res.Err)
			}
			n.await(relay.SessionUp)
			if res := n.call(t.Context(), write, false); res.Err != nil || len(res.Body) != 12 {
				t.Errorf("the repeat: %s %v", res.Body, res.Err)
			}
			if arrived, effects := bench.counts(write.RequestID); arrived != 2 || effects != 1 {
				t.Errorf("sent %d times, executed %d times", arrived, effects)
			}
		})
	}
}

func TestT20ACallMayReportProgressForLongerThanAnyTimeout(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n := startNode(t, newDirectory(pub), nodeOptions{transport: "ws", change: func(c *relay.Config) {
		d := c.Timing
		scaledNode(c)
		c.Timing.MaxCall, c.Timing.PingTimeout = d.MaxCall, d.PingTimeout // they may be as long
	}})
	const steps, step = 75, 100 * time.Millisecond // 90 s at a twelfth
	startHome(t, n.url, nil, key, tunnel.HandlerFunc(func(ctx context.Context, _ contract.Call, progress func(contract.Progress)) contract.Result {
		tick := time.NewTicker(step)
		defer tick.Stop()
		for i := range steps {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return contract.Result{Err: contract.AsError(ctx.Err())}
			}
			progress(contract.Progress{Done: float64(i + 1), Total: steps})
		}
		return contract.Result{Body: json.RawMessage(`"done"`)}
	}), func(c *tunnel.Config) {
		d := c.Timing
		scaledHome(c)
		c.Timing.MaxCall, c.Timing.PingTimeout = d.MaxCall, d.PingTimeout
	})
	n.await(relay.SessionUp)
	heard := 0
	res := n.hub.Call(t.Context(), tenant, instance, contract.Call{Grant: &contract.Grant{}, Args: json.RawMessage(`{}`)}, false, func(contract.Progress) { heard++ })
	if res.Err != nil || heard != steps {
		t.Errorf("%d steps, %v", heard, res.Err)
	}
}

func TestT21AfterEveryRebootTheHomeIsOnlineByItself(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	dir := newDirectory(pub)
	p := startProxy(t)
	start := func() *node {
		n := startNode(t, dir, nodeOptions{transport: "ws", change: func(c *relay.Config) { c.Audiences = []string{"siyuan-tunnel:" + p.Addr()} }})
		p.Retarget(n.tunnelAddr("ws"))
		return n
	}
	n := start()
	for i := range 10 { // the home's machine, then the broker's
		hm := startHome(t, "http://"+p.Addr(), nil, key, echo, nil)
		n.await(relay.SessionUp)
		p.SetOpen(deadSilence) // power off: nobody says goodbye
		hm.stop()
		if i%2 == 0 {
			n.stop()
			n = start()
		}
	}
	startHome(t, "http://"+p.Addr(), nil, key, echo, nil)
	n.await(relay.SessionUp)
	if res := n.call(t.Context(), contract.Call{}, true); res.Err != nil {
		t.Error(res.Err)
	}
}

// shiftedClock is the system's, some time off.
type shiftedClock struct {
	waitLog
	by atomic.Int64
}

func (c *shiftedClock) Now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

func TestAJumpOfTheClockCostsNoSession(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	broker, home := &shiftedClock{}, &shiftedClock{}
	n, p := behindProxy(t, newDirectory(pub), "ws", func(c *relay.Config) {
		c.Timing.PingInterval = 50 * time.Millisecond
		c.Now = broker.Now
	})
	hm := startHome(t, n.dial, nil, key, echo, func(c *tunnel.Config) { c.Clock = home })
	n.await(relay.SessionUp)
	for _, by := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour} {
		broker.by.Store(int64(by))
		home.by.Store(int64(-by))
		conn := p.Conns()[len(p.Conns())-1]
		pings := conn.Passed(faultproxy.Down)
		eventually(t, "pings go on", func() bool { return conn.Passed(faultproxy.Down) > pings+100 })
		if res := n.call(t.Context(), contract.Call{}, true); res.Err != nil {
			t.Errorf("by %v: %v", by, res.Err)
		}
	}
	if s := n.hub.Stats(); s.Accepted != 1 {
		t.Errorf("%+v", s)
	}
	// A new session needs clocks that agree; until then the owner is told.
	p.SetOpen(faultproxy.Both(faultproxy.Rule{Effect: faultproxy.Reset}))
	eventually(t, "the owner is told", func() bool { return strings.Contains(hm.client.State().LastError, "clock") })
	home.by.Store(broker.by.Load())
	n.await(relay.SessionUp)
}
