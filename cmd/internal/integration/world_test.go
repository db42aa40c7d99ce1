// Package integration tests the whole path in one process: real broker, real
// PostgreSQL, real tunnel, real connector, sample kernel.
package integration

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"siyuan-broker/broker"
	"siyuan-broker/broker/token"
	"siyuan-broker/connector"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// world is one broker on a database of its own.
type world struct {
	t   testing.TB
	url string
	db  *broker.Database
	b   *broker.Broker
	log *syncBuffer
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newWorld(t testing.TB) *world { return newNode(t, pgtest.New(t), "node-1", nil) }

// newNode is one broker on a database that others may share.
func newNode(t testing.TB, db pgtest.DB, id string, change func(*broker.Config), options ...broker.Option) *world {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	w := &world{t: t, url: "http://" + addr, log: &syncBuffer{}}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := broker.Config{
		Listen: addr, DatabaseURL: db.ServiceDSN, DatabaseRecord: db.RecorderDSN, DatabaseDirect: db.ListenDSN,
		MasterKey: base64.StdEncoding.EncodeToString(make([]byte, 32)), Data: t.TempDir(), NodeID: id,
		LogLevel: "debug", LogFormat: "text", CallTimeout: 20 * time.Second, ShutdownTimeout: 5 * time.Second,
		MaxRequestBytes: 4 << 20, MaxResultBytes: 8 << 20, HotLane: true,
	}
	if change != nil {
		change(&c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if w.db, err = broker.OpenDatabase(t.Context(), &c, log); err != nil {
		t.Fatal(err)
	}
	if w.b, err = broker.New(c, w.db, "test", log, options...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("broker: %v", err)
		}
		if err := w.db.Close(context.Background()); err != nil {
			t.Errorf("close database: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", w.log)
		}
	})
	select {
	case <-w.b.Ready():
	case err := <-ended:
		t.Fatalf("broker ended: %v", err)
	}
	return w
}

// tenant is a tenant with one instance and an owner.
type tenant struct {
	w                   *world
	id, owner, instance tenants.ID
}

// tenant creates one. A fixed instance id lets two tenants collide.
func (w *world) tenant(name string, instance tenants.ID) *tenant {
	w.t.Helper()
	ctx := w.t.Context()
	u, err := w.db.CreateUser(ctx, tenants.User{Email: strings.ToLower(name) + "@example.org", Name: name})
	must(w.t, err)
	tn, err := w.db.CreateTenant(ctx, name, u.ID)
	must(w.t, err)
	x := &tenant{w: w, id: tn.ID, owner: u.ID}
	x.change(func(tx tenants.Tx) error {
		in, err := tx.CreateInstance(ctx, tenants.Instance{ID: instance, Name: name, DefaultLevel: contract.ReadWriteDelete, Enabled: true})
		x.instance = in.ID
		return err
	})
	return x
}

func (x *tenant) change(fn func(tx tenants.Tx) error) {
	x.w.t.Helper()
	must(x.w.t, x.w.db.In(x.w.t.Context(), x.id, fn))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// agentToken makes an agent and its token. A fixed id lets two tenants collide.
func (x *tenant) agentToken(id tenants.ID, ceiling contract.Level) (tenants.ID, string) {
	t := x.w.t
	t.Helper()
	agent := tenants.Agent{ID: id, MemberID: x.owner, InstanceID: x.instance, Name: "agent", Origin: tenants.FromToken, Ceiling: ceiling,
		ExpiresAt: time.Now().Add(time.Hour)}
	x.change(func(tx tenants.Tx) (err error) {
		agent, err = tx.CreateAgent(t.Context(), agent)
		return err
	})
	raw, _, err := x.w.b.Issue(token.Request{Tenant: x.id, Member: x.owner, Agent: agent.ID, Life: time.Hour})
	must(t, err)
	return agent.ID, raw
}

// home is a connector with its kernel.
type home struct {
	kernel    *samplekernel.Kernel
	server    *httptest.Server
	connector tenants.ID
	config    connector.Config
	stop      func() error // ends the connector and returns what Run returned
	ended     <-chan error
}

// home starts a kernel and a connector for the tenant and waits for the tunnel.
// front may wrap the kernel's handler.
func (x *tenant) home(front func(http.Handler) http.Handler) *home {
	t := x.w.t
	t.Helper()
	k, err := samplekernel.New(samplekernel.Options{Token: "kernel-token", Rand: &counting{}, IndexLag: -1, DeleteLag: -1, MountLag: -1})
	must(t, err)
	t.Cleanup(func() { _ = k.Close() })
	handler := k.Handler()
	if front != nil {
		handler = front(handler)
	}
	h := &home{kernel: k, server: httptest.NewServer(handler)}
	t.Cleanup(h.server.Close)

	x.connect(h, t.TempDir())
	return h
}

// beside is a second connector of the same SiYuan, with a memory of its own.
func (x *tenant) beside(h *home) *home {
	other := &home{kernel: h.kernel, server: h.server}
	x.connect(other, x.w.t.TempDir())
	return other
}

// connect registers a connector with that data folder and runs it.
func (x *tenant) connect(h *home, data string) {
	t := x.w.t
	t.Helper()
	h.config = connector.Config{Broker: x.w.url, URL: h.server.URL, Token: "kernel-token", Data: data}
	h.config.Complete()
	must(t, os.WriteFile(h.config.Policy, []byte("max_level: rwd\n"), 0o600))
	key, err := connector.LoadKey(h.config.Data)
	must(t, err)
	x.change(func(tx tenants.Tx) error {
		made, err := tx.RegisterConnector(t.Context(), tenants.Connector{InstanceID: x.instance, Name: "test", PublicKey: key.Public().(ed25519.PublicKey)})
		h.connector = made.ID
		return err
	})
	x.run(h)
}

// run starts a home's connector, once more where it was stopped before, and waits
// for the tunnel.
func (x *tenant) run(h *home) {
	t := x.w.t
	t.Helper()
	conn, err := connector.New(h.config, "test", slog.New(slog.NewTextHandler(x.w.log, nil)))
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- conn.Run(ctx); close(ended) }()
	h.ended = ended
	var once sync.Once
	var result error
	stop := func() error {
		once.Do(func() { cancel(); result = <-ended })
		return result
	}
	h.stop = stop
	t.Cleanup(func() { _ = stop() })
	eventually(t, "the connector is up", func() bool { return conn.Connected() && conn.Home().State == contract.HomeReady })
}

// counting is a source of bytes that repeats itself in every world, so that
// two kernels choose equal ids.
type counting struct {
	mu sync.Mutex
	n  uint64
}

func (c *counting) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range p {
		c.n = c.n*6364136223846793005 + 1442695040888963407
		p[i] = byte(c.n >> 56)
	}
	return len(p), nil
}

// eventually polls until ok or ten seconds have passed.
// pushed is how long a test waits for what the push or the feed of a change does.
// They take less than two seconds, and more on a busy machine; without them it
// would happen when the snapshot is loaded anew, after 30 s.
const pushed = 15 * time.Second

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	within(t, 30*time.Second, what, ok)
}

func within(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	limit := time.After(d)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-limit:
			t.Fatalf("not within %v: %s", d, what)
		case <-tick.C:
		}
	}
}

// bearer adds a token to every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// agent connects an MCP client.
func (w *world) agent(token, era string) *mcp.ClientSession {
	w.t.Helper()
	transport := &http.Transport{}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(w.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: w.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{token, transport}}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	must(w.t, err)
	w.t.Cleanup(func() {
		_ = s.Close()
		transport.CloseIdleConnections()
	})
	return s
}

// answer is what a tool call came to: its JSON, or the code of its error.
type answer struct {
	body string
	code contract.Code
	err  error // of the protocol
}

func call(ctx context.Context, s *mcp.ClientSession, tool string, args map[string]any) answer {
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return answer{err: err}
	}
	text := r.Content[0].(*mcp.TextContent).Text
	if !r.IsError {
		return answer{body: text}
	}
	var e struct {
		Error struct{ Type, Code string }
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return answer{err: err}
	}
	if e.Error.Code == "" {
		e.Error.Code = e.Error.Type
	}
	return answer{body: text, code: contract.Code(e.Error.Code)}
}

// into calls and decodes, and fails the test where the call fails.
func into[T any](t testing.TB, s *mcp.ClientSession, tool string, args map[string]any) T {
	t.Helper()
	var v T
	a := call(t.Context(), s, tool, args)
	if a.err != nil || a.code != "" {
		t.Fatalf("%s %v: %v %s", tool, args["action"], a.err, a.body)
	}
	must(t, json.Unmarshal([]byte(a.body), &v))
	return v
}

// post sends a raw MCP request and returns status and body.
func (w *world) post(token string, header map[string]string, body string) (*http.Response, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/mcp", strings.NewReader(body))
	must(w.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	must(w.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return resp, string(b)
}
