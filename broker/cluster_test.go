package broker

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"
	"github.com/hashicorp/yamux"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/cluster/clustertest"
	"siyuan-broker/broker/cluster/clustertest/redistest"
	"siyuan-broker/broker/relay"
	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// shelf is the one store of all nodes: a single connector, c-1 of t1's home.
type shelf struct {
	key   ed25519.PrivateKey
	epoch atomic.Int64
}

func (d *shelf) Connector(context.Context, string) (relay.ConnectorRecord, error) {
	return relay.ConnectorRecord{Tenant: "t1", Instance: "home", ID: "c-1", PublicKey: d.key.Public().(ed25519.PublicKey)}, nil
}
func (d *shelf) NextEpoch(context.Context, string, string) (relay.Epoch, error) {
	return relay.Epoch{Number: d.epoch.Add(1)}, nil
}
func (d *shelf) Status(context.Context, string, string, string, contract.HomeStatus) error {
	return nil
}
func (d *shelf) Seen(context.Context, string, string, string, time.Time) error { return nil }
func (d *shelf) LastSeen(context.Context, string, string) (time.Time, error) {
	return time.Time{}, nil
}

// member is a node: a tunnel endpoint and its place among the others.
type member struct {
	*ensemble
	addr string // of the tunnel endpoint
}

func startMember(t *testing.T, id, redisURL string, d *shelf) *member {
	t.Helper()
	web := httptest.NewUnstartedServer(nil)
	m := &member{addr: web.Listener.Addr().String()}
	cfg := relay.Config{Node: id, Audiences: []string{"siyuan-tunnel:" + m.addr}, Directory: d, Timing: relay.DefaultTiming(),
		Events: func(e relay.Event) { m.onSession(e) }}
	cfg.Timing.Drain = time.Second
	tunnel, err := relay.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.ensemble, err = newEnsemble(ensembleOptions{Node: id, RedisURL: redisURL, PeerListen: freeAddr(t), MasterKey: bytes.Repeat([]byte{7}, 32),
		MaxResult: 8 << 20, Hub: tunnel.Hub(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	serve, err := m.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serve() }()
	web.Config.Handler = tunnel
	web.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = tunnel.Stop(ctx)
		m.stop(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return m
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// connect is a home that answers every call with its arguments and the node it
// is connected to, until the tunnel ends.
func connect(t *testing.T, d *shelf, m *member, name string) {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), "ws://"+m.addr+wire.Path, &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	conn := websocket.NetConn(context.Background(), ws, websocket.MessageBinary)
	r, w := wire.NewReader(conn, wire.HandshakeLimits()), wire.NewWriter(conn, wire.DefaultLimits())
	var ch wire.Challenge
	f, err := r.Next()
	if err != nil || r.Decode(f, &ch) != nil {
		t.Fatalf("challenge: %v", err)
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	tok := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"sub": "c-1", "aud": "siyuan-tunnel:" + m.addr, "nonce": ch.Nonce,
		"iat": time.Now().Unix(), "jti": base64.RawURLEncoding.EncodeToString(id)})
	tok.Header["kid"], tok.Header["typ"] = "c-1", wire.TokenType
	signed, err := tok.SignedString(d.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(wire.FrameAuth, wire.Auth{Version: 1, Kind: wire.KindCalls, Token: signed}, nil); err != nil {
		t.Fatal(err)
	}
	if f, err := r.Next(); err != nil || f.Type != wire.FrameWelcome {
		t.Fatalf("%v %s: %v", f.Type, f.Header, err)
	}
	mux, err := yamux.Client(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mux.Close() })
	control, err := mux.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.NewWriter(control, wire.DefaultLimits()).Write(wire.FrameStatus, nil, []byte(`{"state":"ready","policy":{"max_level":"r"},"notebooks":[]}`)); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the multiplexer
		for {
			st, err := mux.AcceptStream()
			if err != nil {
				return
			}
			go answerCalls(st, name)
		}
	}()
}

func answerCalls(st *yamux.Stream, name string) {
	r, w := wire.NewReader(st, wire.DefaultLimits()), wire.NewWriter(st, wire.DefaultLimits())
	for {
		f, err := r.Next()
		var c wire.Call
		if err != nil || f.Type != wire.FrameCall || r.Decode(f, &c) != nil {
			_ = st.Close()
			return
		}
		_ = w.Write(wire.FrameResult, wire.Result{ID: c.ID}, []byte(`"`+name+`"`))
	}
}

func (m *member) ask(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	res := m.relay.Call(ctx, "t1", "home", contract.Call{Grant: &contract.Grant{}, Args: json.RawMessage(`{}`)}, true, nil)
	if res.Err != nil {
		return string(contract.CodeOf(res.Err))
	}
	return strings.Trim(string(res.Body), `"`)
}

func TestACallReachesAHomeOnAnotherNodeAndFollowsIt(t *testing.T) {
	redis := redistest.New(t)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	d := &shelf{key: key}
	n1, n2 := startMember(t, "n1", redis.URL, d), startMember(t, "n2", redis.URL, d)
	clustertest.Connected(t, n1.net, n2.net)
	if got := n2.ask(t); got != string(contract.ConnectorOffline) {
		t.Fatalf("without a home: %s", got)
	}
	announced := make(chan struct{}, 10)
	stop := n2.net.Subscribe(func(cluster.Event) { announced <- struct{}{} }, cluster.RouteChanged)
	connect(t, d, n1, "at n1")
	clustertest.Receive(t, announced, "the announcement")
	stop()
	for _, n := range []*member{n1, n2} {
		clustertest.Await(t, "the home on n1 answers", func() bool { return n.ask(t) == "at n1" })
	}

	// Without Redis, a home on the same node answers on; one looked up before too.
	redis.Kill()
	for _, n := range []*member{n1, n2} {
		if got := n.ask(t); got != "at n1" {
			t.Errorf("without Redis: %s", got)
		}
	}
	redis.Restart(t)
	for _, n := range []*member{n1, n2} {
		clustertest.Await(t, "Redis is back", func() bool { return n.net.Health().Shared })
	}
	clustertest.Connected(t, n1.net, n2.net)

	connect(t, d, n2, "at n2") // the same connector, a newer epoch
	for _, n := range []*member{n1, n2} {
		clustertest.Await(t, "calls follow it to n2", func() bool { return n.ask(t) == "at n2" })
	}
	clustertest.Await(t, "the older session is fenced", func() bool { _, ok := n1.hub.Session("t1", "home"); return !ok })
}

func TestSettingsOfSeveralNodesAreChecked(t *testing.T) {
	t.Parallel()
	const redis, db = "redis://localhost/0", "postgres://a@b/c"
	for name, c := range map[string]struct{ redis, listen, public, db, want string }{
		"a single node":            {},
		"peers without redis":      {listen: "10.0.0.1:7443", want: "set redis_url too"},
		"no listener":              {redis: redis, db: db, want: "peer_listen: needed"},
		"everything":               {redis: redis, db: db, listen: ":7443", public: "n1.internal:7443"},
		"a listener that is named": {redis: redis, db: db, listen: "10.0.0.1:7443"},
		"nobody knows where":       {redis: redis, db: db, listen: "0.0.0.0:7443", want: "peer_public"},
		"nobody knows where, v6":   {redis: redis, db: db, listen: "[::]:7443", want: "peer_public"},
		"public without port":      {redis: redis, db: db, listen: ":7443", public: "n1.internal", want: "not host:port"},
		"redis is no URL":          {redis: "localhost:6379:secret", db: db, listen: "10.0.0.1:7443", want: "redis_url"},
		"a database each":          {redis: redis, listen: "10.0.0.1:7443", want: "database_url"},
	} {
		err := validatePeers(c.redis, c.listen, c.public, c.db)
		if c.want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
