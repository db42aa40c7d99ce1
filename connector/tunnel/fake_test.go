package tunnel

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/hashicorp/yamux"
	"go.uber.org/goleak"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// fakeBroker hands every WebSocket connection to the test.
type fakeBroker struct {
	t     testing.TB
	url   string
	conns chan net.Conn
}

func startFake(t testing.TB) *fakeBroker {
	t.Helper()
	b := &fakeBroker{t: t, conns: make(chan net.Conn, 100)}
	ended := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc(wire.Path, func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{wire.Subprotocol}})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		c := websocket.NetConn(context.Background(), ws, websocket.MessageBinary)
		_ = c.SetDeadline(time.Now().Add(patience))
		b.conns <- c
		<-ended
	})
	srv := httptest.NewServer(mux)
	b.url = srv.URL
	t.Cleanup(func() { close(ended); srv.Close() })
	return b
}

// next is the next connection, after CHALLENGE and AUTH.
func (b *fakeBroker) next() (net.Conn, wire.Auth) {
	b.t.Helper()
	c := receive(b.t, b.conns)
	w := wire.NewWriter(c, wire.HandshakeLimits())
	nonce := base64.RawURLEncoding.EncodeToString(make([]byte, wire.NonceSize))
	if err := w.Write(wire.FrameChallenge, wire.Challenge{Versions: []int{1, 2}, Nonce: nonce}, nil); err != nil {
		b.t.Fatal(err)
	}
	r := wire.NewReader(c, wire.HandshakeLimits())
	f, err := r.Next()
	if err != nil || f.Type != wire.FrameAuth {
		b.t.Fatalf("%v %v", f.Type, err)
	}
	var a wire.Auth
	if err := r.Decode(f, &a); err != nil {
		b.t.Fatal(err)
	}
	return c, a
}

// peer is an established session seen from the broker.
type peer struct {
	t       testing.TB
	conn    net.Conn // below the multiplexer
	mux     *yamux.Session
	control net.Conn
	r       *wire.Reader
	w       *wire.Writer
}

func welcome() wire.Welcome {
	return wire.Welcome{Version: 1, Node: "n", Epoch: 1, MaxFrame: 1 << 20, MaxHeader: 64 << 10, MaxResult: 1 << 19, MaxCalls: 8}
}

func (b *fakeBroker) session() *peer {
	b.t.Helper()
	c, _ := b.next()
	if err := wire.NewWriter(c, wire.HandshakeLimits()).Write(wire.FrameWelcome, welcome(), nil); err != nil {
		b.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Time{})
	cfg := yamux.DefaultConfig()
	cfg.LogOutput, cfg.EnableKeepAlive = io.Discard, false
	mux, err := yamux.Server(c, cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = mux.Close() })
	control, err := mux.Accept()
	if err != nil {
		b.t.Fatal(err)
	}
	p := &peer{t: b.t, conn: c, mux: mux, control: control, r: wire.NewReader(control, wire.DefaultLimits()), w: wire.NewWriter(control, wire.DefaultLimits())}
	_ = control.SetDeadline(time.Now().Add(patience))
	if f, err := p.r.Next(); err != nil || f.Type != wire.FrameStatus {
		b.t.Fatalf("first on the control stream: %v %v", f.Type, err)
	}
	return p
}

// open opens a call stream.
func (p *peer) open() *caller {
	p.t.Helper()
	st, err := p.mux.OpenStream()
	if err != nil {
		p.t.Fatal(err)
	}
	_ = st.SetDeadline(time.Now().Add(patience))
	l := wire.Limits{Frame: 64 << 20, Header: 8 << 20, Depth: 100}
	return &caller{t: p.t, st: st, r: wire.NewReader(st, l), w: wire.NewWriter(st, l)}
}

func (p *peer) gone() bool {
	select {
	case <-p.mux.CloseChan():
		return true
	case <-time.After(patience):
		return false
	}
}

type caller struct {
	t  testing.TB
	st *yamux.Stream
	r  *wire.Reader
	w  *wire.Writer
}

func (c *caller) send(h wire.Call, args string) {
	c.t.Helper()
	if err := c.w.Write(wire.FrameCall, h, []byte(args)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) expect(want wire.Type, v any) wire.Frame {
	c.t.Helper()
	f, err := c.r.Next()
	if err != nil || f.Type != want {
		c.t.Fatalf("got %v %s (%v), want %v", f.Type, f.Header, err, want)
	}
	if err := c.r.Decode(f, v); err != nil {
		c.t.Fatal(err)
	}
	return f
}

func (c *caller) expectError(code contract.Code) *contract.Error {
	c.t.Helper()
	var e wire.Error
	c.expect(wire.FrameError, &e)
	if contract.CodeOf(e.Error) != code {
		c.t.Fatalf("%v, want %s", e.Error, code)
	}
	return e.Error
}

// fakeClock does not sleep; it reports how long it was asked to.
type fakeClock struct {
	slept chan time.Duration
}

func (*fakeClock) Now() time.Time { return time.Now() }

func (f *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case f.slept <- d:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func config(t testing.TB, url string, h Handler) Config {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Config{BrokerURL: url, ConnectorID: "c-1", Key: key, Handler: h, Timing: DefaultTiming(),
		Status:  Status{Current: func() contract.HomeStatus { return contract.HomeStatus{State: contract.HomeReady} }},
		Backoff: Backoff{Base: time.Millisecond, Cap: 10 * time.Millisecond}}
}

func run(t testing.TB, cfg Config) (*Client, <-chan error) {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended, done := make(chan error, 1), make(chan struct{})
	go func() { defer close(done); ended <- c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return c, ended
}

func receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("never happened: %s", what)
		}
	}
}

var echo = HandlerFunc(func(_ context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
	return contract.Result{Body: c.Args}
})
