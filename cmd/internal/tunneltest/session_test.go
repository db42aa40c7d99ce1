package tunneltest

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/relay"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// blocking is a handler whose calls to tool "slow" wait until release is closed
// or their context ends.
type blocking struct {
	entered chan struct{}
	release chan struct{}
}

func newBlocking() *blocking {
	return &blocking{entered: make(chan struct{}, 100), release: make(chan struct{})}
}

func (b *blocking) Handle(ctx context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
	if c.Tool == "slow" {
		b.entered <- struct{}{}
		select {
		case <-b.release:
		case <-ctx.Done():
			return contract.Result{Err: contract.AsError(ctx.Err())}
		}
	}
	return contract.Result{Body: c.Args}
}

func slow(n *node, idempotent bool) <-chan contract.Result {
	answer := make(chan contract.Result, 1)
	go func() {
		answer <- n.call(context.Background(), contract.Call{Tool: "slow", RequestID: "r1"}, idempotent)
	}()
	return answer
}

func TestAConnectorComesBackWhenItsBrokerRestarts(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	dir := newDirectory(pub)
	p := startProxy(t)
	audience := func(c *relay.Config) { c.Audiences = []string{"siyuan-tunnel:" + p.Addr()} }
	first := startNode(t, dir, nodeOptions{transport: "ws", change: audience})
	p.Retarget(first.http.Listener.Addr().String())
	startHome(t, "http://"+p.Addr(), nil, key, echo, nil)
	first.await(relay.SessionUp)
	first.stop()

	second := startNode(t, dir, nodeOptions{transport: "ws", change: audience})
	p.Retarget(second.http.Listener.Addr().String())
	info := second.await(relay.SessionUp)
	if info.Epoch != 2 {
		t.Errorf("epoch %d after one reconnect", info.Epoch)
	}
	if res := second.call(t.Context(), contract.Call{}, true); res.Err != nil {
		t.Error(res.Err)
	}
}

func TestWithoutRawTLSTheConnectorFallsBackToWebSocketAndRemembersIt(t *testing.T) {
	t.Parallel()
	dead, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers, like a middlebox
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	pub, key := keys(t)
	n := startNode(t, newDirectory(pub), nodeOptions{transport: "tls", address: dead.Addr().String()})
	short := func(c *tunnel.Config) { c.Timing.Dial = time.Second }
	hm := startHome(t, n.url, n.tls, key, echo, short)
	n.await(relay.SessionUp)
	eventually(t, "connected by WebSocket", func() bool { return hm.client.State().Transport == "wss" })
	dead.Close()
	n.hub.Fence(tenant, instance, 99)
	n.await(relay.SessionUp)
	eventually(t, "connected again", func() bool { s := hm.client.State(); return s.Epoch == 2 && s.Transport == "wss" })
}

// twins are two connectors with one key, as after cloning a machine.
func twins(t *testing.T, h tunnel.Handler) (n *node, second func() *home) {
	t.Helper()
	pub, key := keys(t)
	n = startNode(t, newDirectory(pub), nodeOptions{transport: "tls"})
	rare := func(c *tunnel.Config) {
		c.Backoff = tunnel.Backoff{Base: time.Millisecond, Cap: time.Hour}
		c.Uniform = func() float64 { return 0.5 }
	}
	startHome(t, n.url, n.tls, key, h, rare)
	n.await(relay.SessionUp)
	return n, func() *home { return startHome(t, n.url, n.tls, key, h, rare) }
}

func TestANewerSessionFencesTheOlderOne(t *testing.T) {
	t.Parallel()
	b := newBlocking()
	n, second := twins(t, b)
	write, read := slow(n, false), slow(n, true)
	receive(t, "a call at home", b.entered)
	receive(t, "a call at home", b.entered)
	second()
	if down := n.await(relay.SessionDown); down.Epoch != 1 {
		t.Errorf("session %d went down", down.Epoch)
	}
	if res := receive(t, "the write's answer", write); !errors.Is(res.Err, contract.Fail(contract.OutcomeUnknown, "")) || res.Err.RequestID != "r1" {
		t.Errorf("write: %v", res.Err)
	}
	receive(t, "the read at the new session", b.entered)
	close(b.release)
	if res := receive(t, "the read's answer", read); res.Err != nil {
		t.Errorf("read was not retried: %v", res.Err)
	}
	if info, _ := n.hub.Session(tenant, instance); info.Epoch != 2 {
		t.Errorf("live epoch %d", info.Epoch)
	}
	if s := n.hub.Stats(); s.Replaced != 1 || s.Retried != 1 || s.Unknown != 1 || s.Sessions != 1 {
		t.Errorf("%+v", s)
	}
}

func TestAFencedReadWithoutAnotherSessionEndsTunnelReplaced(t *testing.T) {
	t.Parallel()
	b := newBlocking()
	n, _ := twins(t, b)
	read := slow(n, true)
	receive(t, "the call at home", b.entered)
	n.hub.Fence(tenant, instance, 1) // its own epoch: nothing happens
	if _, ok := n.hub.Session(tenant, instance); !ok {
		t.Fatal("a session was fenced by its own epoch")
	}
	n.hub.Fence(tenant, instance, 2) // another node announced a newer one
	if res := receive(t, "the answer", read); !errors.Is(res.Err, contract.Fail(contract.TunnelReplaced, "")) {
		t.Errorf("%v", res.Err)
	}
}

func TestARevokedConnectorIsCutAndItsProcessEnds(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			n, hm, dir := pair(t, transport, echo)
			dir.revoke()
			began := time.Now()
			if n.hub.Cut("tenant-2", connector) {
				t.Fatal("another tenant cut this connector")
			}
			if !n.hub.Cut(tenant, connector) {
				t.Fatal("no session was cut")
			}
			if err := receive(t, "the end of Run", hm.err); !errors.Is(err, tunnel.ErrRevoked) {
				t.Errorf("Run: %v", err)
			}
			n.await(relay.SessionDown)
			if d := time.Since(began); d > 2*time.Second {
				t.Errorf("took %v", d)
			}
			if s := hm.client.State(); s.Phase != tunnel.Idle {
				t.Errorf("state %+v", s)
			}
		})
	}
}

func TestARevokedConnectorIsToldSoWhenItConnects(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	dir := newDirectory(pub)
	dir.revoke()
	n := startNode(t, dir, nodeOptions{transport: "tls"})
	hm := startHome(t, n.url, n.tls, key, echo, nil)
	if err := receive(t, "the end of Run", hm.err); !errors.Is(err, tunnel.ErrRevoked) {
		t.Errorf("Run: %v", err)
	}
}

func TestAFrozenConnectorIsCutInTimeToo(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	dir := newDirectory(pub)
	n, p := behindProxy(t, dir, "ws", nil)
	startHome(t, "http://"+p.Addr(), nil, key, echo, nil)
	n.await(relay.SessionUp)
	p.Set(deadSilence)
	began := time.Now()
	n.hub.Cut(tenant, connector)
	n.await(relay.SessionDown)
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestADrainingNodeKeepsServingUntilItsConnectorsHaveMoved(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	dir := newDirectory(pub)
	p := startProxy(t)
	change := func(c *relay.Config) {
		c.Audiences, c.Timing.Drain = []string{"siyuan-tunnel:" + p.Addr()}, 5*time.Second
	}
	a := startNode(t, dir, nodeOptions{transport: "ws", change: change})
	z := startNode(t, dir, nodeOptions{transport: "ws", change: change})
	b := newBlocking()
	p.Retarget(a.http.Listener.Addr().String())
	hm := startHome(t, "http://"+p.Addr(), nil, key, b, func(c *tunnel.Config) { c.Uniform = func() float64 { return 0 } })
	a.await(relay.SessionUp)
	write := slow(a, false)
	receive(t, "the write at home", b.entered)

	p.Retarget(z.http.Listener.Addr().String())
	stopped := make(chan struct{})
	go func() { a.stop(); close(stopped) }()
	z.await(relay.SessionUp) // before the old session is gone
	if res := z.call(t.Context(), contract.Call{}, true); res.Err != nil {
		t.Errorf("new node: %v", res.Err)
	}
	eventually(t, "the old node takes no new calls", func() bool { _, live := a.hub.Session(tenant, instance); return !live })
	select {
	case <-stopped:
		t.Fatal("the old node did not wait for its write")
	default:
	}
	close(b.release)
	if res := receive(t, "the write's answer", write); res.Err != nil {
		t.Errorf("write during the move: %v", res.Err)
	}
	receive(t, "the old node's end", stopped)
	if s := hm.client.State(); s.Phase != tunnel.Connected || s.Epoch != 2 {
		t.Errorf("state %+v", s)
	}
	if s := a.hub.Stats(); s.Lost != 0 || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
}

func TestStopWaitsForCallsAndThenCutsThem(t *testing.T) {
	t.Parallel()
	b := newBlocking()
	n, _, _ := pair(t, "tls", b)
	write := slow(n, false)
	receive(t, "the write at home", b.entered)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := n.server.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop: %v", err)
	}
	if res := receive(t, "the write's answer", write); !errors.Is(res.Err, contract.Fail(contract.OutcomeUnknown, "")) {
		t.Errorf("%v", res.Err)
	}
}

func TestStatusChangesReachTheDirectoryAndTheHub(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	dir := newDirectory(pub)
	n := startNode(t, dir, nodeOptions{transport: "ws"})
	changed := make(chan struct{}, 1)
	states := make(chan contract.HomeState, 10)
	states <- contract.HomeOffline
	states <- contract.HomeReady
	startHome(t, n.url, nil, key, echo, func(c *tunnel.Config) {
		c.Timing.StatusGap = time.Millisecond
		c.Status = tunnel.Status{Changed: changed, Current: func() contract.HomeStatus {
			return contract.HomeStatus{State: <-states, SiYuanVersion: "3.7.3", Policy: contract.PolicyEffect{MaxLevel: contract.Read, Digest: "d"},
				Notebooks: []contract.NotebookInfo{{ID: "nb", Name: "Work"}}}
		}}
	})
	if s := receive(t, "first status", dir.statuses); s.State != contract.HomeOffline {
		t.Errorf("%+v", s)
	}
	changed <- struct{}{}
	want := contract.HomeStatus{State: contract.HomeReady, SiYuanVersion: "3.7.3", Policy: contract.PolicyEffect{MaxLevel: contract.Read, Digest: "d"}, Notebooks: []contract.NotebookInfo{{ID: "nb", Name: "Work"}}}
	s := receive(t, "second status", dir.statuses)
	got, _ := json.Marshal(s)
	expect, _ := json.Marshal(want)
	if string(got) != string(expect) {
		t.Errorf("%s", got)
	}
	n.await(relay.StatusChanged)
	if info, ok := n.hub.Session(tenant, instance); !ok || !info.Reported || info.Status.State != contract.HomeReady {
		t.Errorf("%+v", info)
	}
}

func TestWrongCredentialsAreRefusedAndRetried(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	_, otherKey := keys(t)
	for name, c := range map[string]struct {
		key    ed25519.PrivateKey
		change func(*tunnel.Config)
		node   func(*relay.Config)
		say    string
	}{
		"wrong key":         {key: otherKey, say: "does not know this connector"},
		"unknown connector": {key: key, change: func(c *tunnel.Config) { c.ConnectorID = "nobody" }, say: "does not know this connector"},
		"clock behind":      {key: key, node: func(c *relay.Config) { c.Now = func() time.Time { return time.Now().Add(62 * time.Second) } }, say: "clock"},
		"clock ahead":       {key: key, node: func(c *relay.Config) { c.Now = func() time.Time { return time.Now().Add(-62 * time.Second) } }, say: "clock"},
		"other broker":      {key: key, node: func(c *relay.Config) { c.Audiences = []string{"siyuan-tunnel:elsewhere.example"} }, say: "another broker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, newDirectory(pub), nodeOptions{transport: "tls", change: c.node})
			hm := startHome(t, n.url, n.tls, c.key, echo, c.change)
			eventually(t, "a second attempt", func() bool { return hm.client.State().Attempt >= 2 })
			s := hm.client.State()
			if s.Phase == tunnel.Connected || !strings.Contains(s.LastError, string(wire.RejectUnauthorized)) || !strings.Contains(s.LastError, c.say) {
				t.Errorf("%+v", s)
			}
			eventually(t, "both were counted", func() bool { return n.hub.Stats().Rejected >= 2 })
			if len(n.hub.Sessions()) != 0 {
				t.Errorf("%+v", n.hub.Sessions())
			}
		})
	}
}

func TestAClockThatIsAMinuteOffIsAccepted(t *testing.T) {
	t.Parallel()
	pub, key := keys(t)
	n := startNode(t, newDirectory(pub), nodeOptions{transport: "tls", change: func(c *relay.Config) {
		c.Now = func() time.Time { return time.Now().Add(55 * time.Second) }
	}})
	startHome(t, n.url, n.tls, key, echo, nil)
	n.await(relay.SessionUp)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	_, key := keys(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "77")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(srv.Close)
	hm := startHome(t, srv.URL, nil, key, echo, func(c *tunnel.Config) { c.Uniform = func() float64 { return 0 } })
	eventually(t, "the first failure", func() bool { return hm.client.State().Phase == tunnel.Waiting })
	s := hm.client.State()
	if wait := s.Next.Sub(s.Since); wait < 76*time.Second || wait > 78*time.Second {
		t.Errorf("waits %v, %s", wait, s.LastError)
	}
}
