package relay

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"
	"github.com/hashicorp/yamux"
	"go.uber.org/goleak"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// fakeDirectory knows connectors c-1 of tenant-1 and c-2 of tenant-2, both of
// an instance called home.
type fakeDirectory struct {
	key ed25519.PrivateKey

	mu      sync.Mutex
	epoch   int64
	took    Epoch // of the answers, but for the number
	revoked map[string]bool
	lookup  func(id string) error // called without mu
}

func newFakeDirectory(t testing.TB) *fakeDirectory {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &fakeDirectory{key: key, revoked: map[string]bool{}, lookup: func(string) error { return nil }}
}

func (d *fakeDirectory) Connector(_ context.Context, id string) (ConnectorRecord, error) {
	if err := d.lookup(id); err != nil {
		return ConnectorRecord{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := strings.CutPrefix(id, "c-")
	if !ok {
		return ConnectorRecord{}, ErrUnknownConnector
	}
	return ConnectorRecord{Tenant: "tenant-" + n, Instance: "home", ID: id, PublicKey: d.key.Public().(ed25519.PublicKey), Revoked: d.revoked[id]}, nil
}

func (d *fakeDirectory) NextEpoch(context.Context, string, string) (Epoch, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.epoch++
	e := d.took
	e.Number = d.epoch
	return e, nil
}

func (d *fakeDirectory) Status(context.Context, string, string, string, contract.HomeStatus) error {
	return nil
}

func (d *fakeDirectory) Seen(context.Context, string, string, string, time.Time) error { return nil }

func (d *fakeDirectory) LastSeen(context.Context, string, string) (time.Time, error) {
	return time.Time{}, errors.New("database is down")
}

// startServer is a Server behind a WebSocket endpoint; its address is the
// audience.
func startServer(t testing.TB, d *fakeDirectory, change func(*Config)) (*Server, string) {
	t.Helper()
	web := httptest.NewUnstartedServer(nil)
	addr := web.Listener.Addr().String()
	cfg := Config{Node: "n1", Audiences: []string{"siyuan-tunnel:" + addr}, Directory: d, Timing: DefaultTiming(), Limits: DefaultLimits()}
	cfg.Timing.Drain, cfg.Timing.Goodbye = 0, 20*time.Millisecond
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = s
	web.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		web.Close()
	})
	return s, addr
}

// fake is a connector written against docs/PROTOCOL.md, with every step in the
// hands of the test.
type fake struct {
	t       testing.TB
	d       *fakeDirectory
	addr    string
	conn    net.Conn
	r       *wire.Reader
	w       *wire.Writer
	nonce   string
	mux     *yamux.Session
	control *yamux.Stream
}

func dialFake(t testing.TB, d *fakeDirectory, addr string) *fake {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws://"+addr+wire.Path, &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	return greetFake(t, d, addr, websocket.NetConn(context.Background(), ws, websocket.MessageBinary))
}

// greetFake reads the CHALLENGE on a connection.
func greetFake(t testing.TB, d *fakeDirectory, addr string, conn net.Conn) *fake {
	t.Helper()
	f := &fake{t: t, d: d, addr: addr, conn: conn}
	_ = f.conn.SetDeadline(time.Now().Add(patience))
	f.r, f.w = wire.NewReader(f.conn, wire.HandshakeLimits()), wire.NewWriter(f.conn, wire.DefaultLimits())
	var ch wire.Challenge
	f.expect(wire.FrameChallenge, &ch)
	f.nonce = ch.Nonce
	return f
}

func (f *fake) expect(want wire.Type, v any) {
	f.t.Helper()
	fr, err := f.r.Next()
	if err != nil || fr.Type != want {
		f.t.Fatalf("got %v %s (%v), want %v", fr.Type, fr.Header, err, want)
	}
	if err := f.r.Decode(fr, v); err != nil {
		f.t.Fatal(err)
	}
}

// token signs a valid answer that change may spoil.
func (f *fake) token(connector string, change func(*jwt.Token, jwt.MapClaims)) string {
	f.t.Helper()
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	c := jwt.MapClaims{"sub": connector, "aud": "siyuan-tunnel:" + f.addr, "nonce": f.nonce, "iat": time.Now().Unix(),
		"jti": base64.RawURLEncoding.EncodeToString(id)}
	tok := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	tok.Header["kid"], tok.Header["typ"] = connector, "siyuan-tunnel+jwt"
	var key any = f.d.key
	if change != nil {
		change(tok, c)
		switch tok.Method.Alg() {
		case "none":
			key = jwt.UnsafeAllowNoneSignatureType
		case "HS256":
			key = []byte(f.d.key.Public().(ed25519.PublicKey))
		}
	}
	s, err := tok.SignedString(key)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fake) auth(a wire.Auth) {
	f.t.Helper()
	if err := f.w.Write(wire.FrameAuth, a, nil); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) rejected() wire.Reject {
	f.t.Helper()
	var bye wire.Reject
	f.expect(wire.FrameReject, &bye)
	return bye
}

// connect completes the handshake and opens the control stream with a status.
func (f *fake) connect(connector string) *fake {
	f.t.Helper()
	f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token(connector, nil)})
	return f.start()
}

// start is what follows AUTH.
func (f *fake) start() *fake {
	f.t.Helper()
	f.expect(wire.FrameWelcome, &wire.Welcome{})
	_ = f.conn.SetDeadline(time.Time{})
	cfg := yamux.DefaultConfig()
	cfg.LogOutput, cfg.AcceptBacklog, cfg.EnableKeepAlive = io.Discard, 16, false
	var err error
	if f.mux, err = yamux.Client(f.conn, cfg); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = f.mux.Close() })
	if f.control, err = f.mux.OpenStream(); err != nil {
		f.t.Fatal(err)
	}
	_ = f.control.SetDeadline(time.Now().Add(patience))
	f.r, f.w = wire.NewReader(f.control, wire.DefaultLimits()), wire.NewWriter(f.control, wire.DefaultLimits())
	f.status(`{"state":"ready","policy":{"max_level":"r","digest":"d"},"notebooks":[]}`)
	return f
}

func (f *fake) status(body string) {
	_ = f.w.Write(wire.FrameStatus, nil, []byte(body)) // a bad one may be answered before it is written
}

// accept takes the next call stream and the call on it.
func (f *fake) accept() (*yamux.Stream, wire.Call) {
	f.t.Helper()
	st, err := f.mux.AcceptStream()
	if err != nil {
		f.t.Fatal(err)
	}
	_ = st.SetDeadline(time.Now().Add(patience))
	return st, f.next(st)
}

func (f *fake) next(st *yamux.Stream) wire.Call {
	f.t.Helper()
	r := wire.NewReader(st, wire.DefaultLimits())
	fr, err := r.Next()
	if err != nil || fr.Type != wire.FrameCall {
		f.t.Fatalf("want a CALL, got %v (%v)", fr.Type, err)
	}
	var c wire.Call
	if err := r.Decode(fr, &c); err != nil {
		f.t.Fatal(err)
	}
	return c
}

// await waits until the hub's stats satisfy ok.
func await(t testing.TB, s *Server, what string, ok func(Stats) bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok(s.Hub().Stats()) {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("never happened: %s; %+v", what, s.Hub().Stats())
		}
	}
}

// online waits until n connectors are connected, each with one idle stream.
func online(t testing.TB, s *Server, n int) {
	t.Helper()
	await(t, s, "connectors are online", func(st Stats) bool {
		s.hub.every(func(n *session) {
			if open, busy, _ := n.pool.sizes(); open != 1 || busy != 0 {
				st.Sessions = -1
			}
		})
		return st.Sessions == n
	})
}

func goCall(s *Server, tenant string, idempotent bool) <-chan contract.Result {
	answer := make(chan contract.Result, 1)
	go func() {
		answer <- s.Hub().Call(context.Background(), tenant, "home", contract.Call{Grant: &contract.Grant{}, Args: json.RawMessage(`{}`)}, idempotent, nil)
	}()
	return answer
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
