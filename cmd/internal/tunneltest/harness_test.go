package tunneltest

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"siyuan-broker/broker/relay"
	"siyuan-broker/cmd/internal/faultproxy"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// TestMain lets many tests wait at once, whatever the number of processors, and
// checks that they left neither goroutines nor file descriptors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "24"); err != nil {
		panic(err)
	}
	before := descriptors()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		for name, what := range descriptors() {
			if _, known := before[name]; !known && code == 0 && strings.HasPrefix(what, "socket:") {
				fmt.Fprintf(os.Stderr, "file descriptor %s is left open: %s\n", name, what)
				code = 1
			}
		}
		os.Exit(code)
	}))
}

// descriptors are the open ones and what they are; none where the system does
// not tell.
func descriptors() map[string]string {
	all := map[string]string{}
	open, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range open {
		if what, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			all[fd.Name()] = what
		}
	}
	return all
}

const (
	tenant    = "tenant-1"
	instance  = "instance-1"
	connector = "connector-1"
	patience  = 30 * time.Second // a test that waits this long has failed
)

// directory is a relay.Directory in memory, shared by the nodes of a test.
type directory struct {
	mu       sync.Mutex
	records  map[string]relay.ConnectorRecord
	epoch    int64
	seen     time.Time
	statuses chan contract.HomeStatus
}

var _ relay.Directory = (*directory)(nil)

func newDirectory(pub ed25519.PublicKey) *directory {
	return &directory{records: map[string]relay.ConnectorRecord{
		connector: {Tenant: tenant, Instance: instance, ID: connector, PublicKey: pub}}, statuses: make(chan contract.HomeStatus, 1000)}
}

func (d *directory) Connector(_ context.Context, id string) (relay.ConnectorRecord, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.records[id]
	if !ok {
		return r, relay.ErrUnknownConnector
	}
	return r, nil
}

func (d *directory) NextEpoch(context.Context, string, string) (relay.Epoch, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.epoch++
	return relay.Epoch{Number: d.epoch}, nil
}

func (d *directory) Status(_ context.Context, _, _, _ string, s contract.HomeStatus) error {
	select {
	case d.statuses <- s:
	default:
	}
	return nil
}

func (d *directory) Seen(_ context.Context, _, _, _ string, at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = at
	return nil
}

func (d *directory) LastSeen(context.Context, string, string) (time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen, nil
}

func (d *directory) revoke() {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.records[connector]
	r.Revoked = true
	d.records[connector] = r
}

// node is one broker node with both transports.
type node struct {
	t       testing.TB
	server  *relay.Server
	hub     *relay.Hub
	url     string
	dial    string // the broker URL for a home behind the proxy
	events  chan relay.Event
	cert    *tls.Config // of this server
	tls     *tls.Config // for clients
	http    *httptest.Server
	rawAddr string // of the raw listener
	done    chan struct{}
	once    sync.Once
}

type nodeOptions struct {
	transport string                          // "tls", "wss", "ws"
	address   string                          // of the raw listener as clients see it; "" for its own
	like      *node                           // has the same certificate
	far       func(string) string             // where clients find the raw listener of an address
	rawOnly   bool                            // offers no WebSocket to fall back on
	listen    func(net.Listener) net.Listener // wraps the raw listener
	change    func(*relay.Config)
}

func startNode(t testing.TB, dir relay.Directory, o nodeOptions) *node {
	t.Helper()
	n := &node{t: t, events: make(chan relay.Event, 10_000), done: make(chan struct{})}
	if o.like != nil {
		n.cert, n.tls = o.like.cert, o.like.tls
	} else {
		n.cert, n.tls = certificates(t)
	}
	mux := http.NewServeMux()
	n.http = httptest.NewUnstartedServer(mux)
	n.http.Config.ReadHeaderTimeout, n.http.Config.IdleTimeout = time.Second, time.Second
	n.http.Config.ErrorLog = slog.NewLogLogger(logger(t).Handler(), slog.LevelDebug)
	if o.transport == "ws" {
		n.http.Start()
	} else {
		n.http.TLS = n.cert
		n.http.StartTLS()
	}
	n.url = n.http.URL
	t.Cleanup(n.http.Close) // later than stop: discovery is served to the last, as by a load balancer
	base := n.http.Listener.Addr().String()
	cfg := relay.Config{Node: "node-" + base, Audiences: []string{"siyuan-tunnel:" + base}, Directory: dir,
		Events: func(e relay.Event) { n.events <- e }, Logger: logger(t), Limits: relay.DefaultLimits(), Timing: relay.DefaultTiming()}
	cfg.Timing.Drain = 0
	if o.transport == "tls" {
		cfg.TLS = n.cert
	}
	if o.change != nil {
		o.change(&cfg)
	}
	var err error
	if n.server, err = relay.New(cfg); err != nil {
		t.Fatal(err)
	}
	n.hub = n.server.Hub()
	tlsAddr := ""
	if o.transport == "tls" {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n.rawAddr = ln.Addr().String()
		if o.listen != nil {
			ln = o.listen(ln)
		}
		if o.far != nil {
			o.address = o.far(n.rawAddr)
		}
		if tlsAddr = o.address; tlsAddr == "" {
			tlsAddr = ln.Addr().String()
		}
		go func() {
			defer close(n.done)
			if err := n.server.Serve(ln); err != nil {
				t.Errorf("serve: %v", err)
			}
		}()
	} else {
		close(n.done)
	}
	if !o.rawOnly {
		mux.Handle(wire.Path, n.server)
	}
	mux.HandleFunc(wire.WellKnownPath, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(relay.Discovery(n.url, tlsAddr, ""))
	})
	t.Cleanup(func() { n.stop() })
	return n
}

func (n *node) stop() {
	n.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.server.Stop(ctx); err != nil {
			n.t.Errorf("stop: %v", err)
		}
		<-n.done
	})
}

// await returns the next event of a kind.
func (n *node) await(kind relay.EventKind) relay.SessionInfo {
	n.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case e := <-n.events:
			if e.Kind == kind {
				return e.Session
			}
		case <-limit:
			n.t.Fatalf("no %s event", kind)
		}
	}
}

func (n *node) call(ctx context.Context, call contract.Call, idempotent bool) contract.Result {
	if call.Grant == nil {
		call.Grant = &contract.Grant{V: 1, Tenant: tenant, Instance: instance}
	}
	if call.Args == nil {
		call.Args = json.RawMessage(`{}`)
	}
	return n.hub.Call(ctx, tenant, instance, call, idempotent, nil)
}

// home is a running connector.
type home struct {
	client *tunnel.Client
	err    chan error // what Run returned
	stop   func()
}

func startHome(t testing.TB, url string, tlsConfig *tls.Config, key ed25519.PrivateKey, h tunnel.Handler, change func(*tunnel.Config)) *home {
	t.Helper()
	cfg := tunnel.Config{BrokerURL: url, ConnectorID: connector, Key: key, Handler: h, TLS: tlsConfig, Software: "test/1", Logger: logger(t),
		Status:  tunnel.Status{Current: func() contract.HomeStatus { return contract.HomeStatus{State: contract.HomeReady} }},
		Timing:  tunnel.DefaultTiming(),
		Backoff: tunnel.Backoff{Base: 10 * time.Millisecond, Cap: 50 * time.Millisecond}}
	if change != nil {
		change(&cfg)
	}
	c, err := tunnel.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h2 := &home{client: c, err: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h2.err <- c.Run(ctx)
	}()
	h2.stop = func() { cancel(); <-done }
	t.Cleanup(h2.stop)
	return h2
}

// pair is one node with one connected home.
func pair(t testing.TB, transport string, h tunnel.Handler) (*node, *home, *directory) {
	t.Helper()
	pub, key := keys(t)
	dir := newDirectory(pub)
	n := startNode(t, dir, nodeOptions{transport: transport})
	hm := startHome(t, n.url, n.tls, key, h, nil)
	n.await(relay.SessionUp)
	return n, hm, dir
}

func keys(t testing.TB) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pub, key
}

// certificates makes a test CA and a server certificate for 127.0.0.1.
func certificates(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	must(err)
	ca, err = x509.ParseCertificate(caDER)
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	must(err)
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: roots}
}

func logger(t testing.TB) *slog.Logger {
	if os.Getenv("TUNNEL_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("test", t.Name())
}

// receive takes a value from a channel or fails.
func receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// failed reports whether a call ended with one of the codes.
func failed(res contract.Result, codes ...contract.Code) bool {
	return res.Err != nil && slices.Contains(codes, contract.CodeOf(res.Err))
}

// eventually polls a condition that has no channel to wait on.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("never happened: %s", what)
		}
	}
}

var echo = tunnel.HandlerFunc(func(_ context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
	return contract.Result{Body: c.Args, Stats: contract.Stats{KernelCalls: 1}}
})

// deadSilence is a link on which nothing passes and nothing closes.
var deadSilence = faultproxy.Both(faultproxy.Rule{Effect: faultproxy.Drop})

func startProxy(t testing.TB) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.Start("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// behindProxy is a node whose tunnel runs through a proxy. On "tls" discovery is
// direct, and there is no WebSocket to fall back on.
func behindProxy(t testing.TB, dir relay.Directory, transport string, change func(*relay.Config)) (*node, *faultproxy.Proxy) {
	t.Helper()
	p := startProxy(t)
	n := startNode(t, dir, nodeOptions{transport: transport, address: p.Addr(), rawOnly: transport == "tls", change: func(c *relay.Config) {
		if transport != "tls" {
			c.Audiences = []string{"siyuan-tunnel:" + p.Addr()}
		}
		if change != nil {
			change(c)
		}
	}})
	n.dial = n.url
	if transport != "tls" {
		n.dial = "http://" + p.Addr()
	}
	p.Retarget(n.tunnelAddr(transport))
	return n, p
}

// tunnelAddr is where a transport's connections arrive.
func (n *node) tunnelAddr(transport string) string {
	if transport == "tls" {
		return n.rawAddr
	}
	return n.http.Listener.Addr().String()
}
