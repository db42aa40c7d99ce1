package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/token"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var (
	tenantA  = uuid.MustParse("018f0000-0000-7000-8000-00000000000a")
	tenantB  = uuid.MustParse("018f0000-0000-7000-8000-00000000000b")
	member   = uuid.MustParse("018f0000-0000-7000-8000-0000000000a1")
	agent    = uuid.MustParse("018f0000-0000-7000-8000-0000000000a2")
	agent2   = uuid.MustParse("018f0000-0000-7000-8000-0000000000b2")
	instance = uuid.MustParse("018f0000-0000-7000-8000-0000000000a3")

	catalogue = tools.New()
)

const (
	publicURL = "https://notes.example"
	resource  = "https://notes.example/mcp"
	notebook  = "20240101090000-work001"
)

// store is the part of tenants.Store that is needed, in memory.
type store struct {
	mu      sync.Mutex
	keys    []tenants.SigningKey
	agents  map[[2]tenants.ID]*tenants.Snapshot
	revoked []tenants.Revocation
	version int64
	fail    error
	nodes   []listener
	ended   *MemoryEnded
}

// listener is a node that hears of every change.
type listener struct {
	events chan tenants.Event
	gone   <-chan struct{}
}

func newStore() *store {
	s := &store{agents: map[[2]tenants.ID]*tenants.Snapshot{}, ended: NewMemoryEnded(nil)}
	s.put(facts(tenantA, agent))
	return s
}

func (s *store) SigningKeys(context.Context) ([]tenants.SigningKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys), nil
}

func (s *store) PutSigningKey(_ context.Context, k tenants.SigningKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, k)
	return nil
}

func (s *store) RetireSigningKey(_ context.Context, kid string, retires, expires time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.keys {
		if s.keys[i].KID == kid {
			s.keys[i].RetiresAt, s.keys[i].ExpiresAt = retires, expires
		}
	}
	return nil
}

func (s *store) DeleteSigningKey(_ context.Context, kid string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = slices.DeleteFunc(s.keys, func(k tenants.SigningKey) bool { return k.KID == kid })
	return nil
}

func (s *store) Revocations(_ context.Context, after int64, _ int) ([]tenants.Revocation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.revoked[min(after, int64(len(s.revoked))):]), nil
}

func (s *store) Listen(ctx context.Context, fn func(tenants.Event)) error {
	events := make(chan tenants.Event)
	s.mu.Lock()
	s.nodes = append(s.nodes, listener{events, ctx.Done()})
	s.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-events:
			fn(e)
		}
	}
}

func (s *store) listening() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nodes)
}

// push tells every node, and returns when all have taken it.
func (s *store) push(e tenants.Event) {
	s.mu.Lock()
	nodes := slices.Clone(s.nodes)
	s.mu.Unlock()
	for _, n := range nodes {
		select {
		case n.events <- e:
		case <-n.gone:
		}
	}
}

func (s *store) LoadSnapshot(_ context.Context, tenant, agent tenants.ID) (*tenants.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.agents[[2]tenants.ID{tenant, agent}]
	switch {
	case s.fail != nil:
		return nil, s.fail
	case !ok:
		return nil, tenants.ErrNotFound
	}
	return f, nil
}

// put stores facts without telling anybody; change tells the nodes, as the
// database would, and returns when they have heard.
func (s *store) put(f *tenants.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	f.PolicyVersion, f.RulesVersion = s.version, s.version
	s.agents[[2]tenants.ID{f.TenantID, f.Agent.ID}] = f
}

func (s *store) change(f *tenants.Snapshot) {
	s.put(f)
	s.push(tenants.Event{Policy: f.TenantID, Version: f.PolicyVersion})
	s.push(tenants.Event{}) // taken when the one before has been handled
}

func (s *store) revoke(tenant tenants.ID, kind tenants.RevocationKind, subject string) {
	s.mu.Lock()
	seq := int64(len(s.revoked) + 1)
	s.revoked = append(s.revoked, tenants.Revocation{Seq: seq, TenantID: tenant, Kind: kind, Subject: subject})
	s.mu.Unlock()
	s.push(tenants.Event{Revocation: seq})
}

// facts are an owner's agent that may read and write.
func facts(tenant, agent tenants.ID) *tenants.Snapshot {
	return &tenants.Snapshot{
		TenantID: tenant, TenantStatus: tenants.Active,
		Agent:  tenants.Agent{ID: agent, MemberID: member, InstanceID: instance, Name: "agent", Ceiling: contract.ReadWriteDelete},
		Member: member, Role: tenants.Owner,
		Instance:  tenants.Instance{ID: instance, DefaultLevel: contract.ReadWriteDelete, Enabled: true},
		Connector: &tenants.SnapshotConnector{ID: tenants.NewID(), Effect: &contract.PolicyEffect{MaxLevel: contract.ReadWriteDelete}},
	}
}

// home is a Relay that answers from a function.
type home struct {
	mu     sync.Mutex
	calls  []relayed
	answer func(ctx context.Context, r relayed) contract.Result
}

type relayed struct {
	tenant, instance string
	call             contract.Call
	idempotent       bool
	progress         func(contract.Progress)
}

var _ Relay = (*home)(nil)

func (h *home) Call(ctx context.Context, tenant, instance string, call contract.Call, idempotent bool, progress func(contract.Progress)) contract.Result {
	r := relayed{tenant, instance, call, idempotent, progress}
	h.mu.Lock()
	h.calls = append(h.calls, r)
	answer := h.answer
	h.mu.Unlock()
	if answer == nil {
		return contract.Result{Body: json.RawMessage(`{"done":true}`)}
	}
	return answer(ctx, r)
}

func (h *home) will(answer func(ctx context.Context, r relayed) contract.Result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

func (h *home) received() []relayed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// last is the newest call that reached the home.
func (h *home) last(t testing.TB) relayed {
	t.Helper()
	calls := h.received()
	if len(calls) == 0 {
		t.Fatal("no call reached the home")
	}
	return calls[len(calls)-1]
}

// records is a Recorder in memory.
type records struct {
	mu  sync.Mutex
	all []tenants.Call
}

func (r *records) Record(c tenants.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, c)
}

func (r *records) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

func (r *records) since(n int) []tenants.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all[n:])
}

func (r *records) last(t testing.TB) tenants.Call {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		t.Fatal("nothing was recorded")
	}
	return r.all[len(r.all)-1]
}

// rig is one node: the real token and admission parts around the server, with
// store and home in memory.
type rig struct {
	store    *store // nil on another backend
	home     *home
	records  *records
	issuer   *token.Issuer
	keys     *token.Keys
	cache    *admission.Cache
	server   *Server
	url      string // of /mcp
	http     *http.Client
	handlers http.Handler
	stop     func()
}

func newRig(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	return newStore().node(t, change)
}

// node starts one more node on a store.
func (s *store) node(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	before := s.listening()
	r := newRigOn(t, s, func(c *Config) {
		c.Ended = s.ended
		if change != nil {
			change(c)
		}
	})
	r.store = s
	await(t, "the node's start", func() bool { return s.listening() > before })
	return r
}

// backend is the part of tenants.Store that a rig needs.
type backend interface {
	token.KeyStore
	token.Feed
	admission.Loader
}

func newRigOn(t testing.TB, from backend, change func(*Config)) *rig {
	t.Helper()
	r := &rig{home: &home{}, records: &records{}}
	r.keys = token.NewKeys(from, token.KeysOptions{})
	if err := r.keys.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.issuer = &token.Issuer{URL: publicURL, Keys: r.keys, Now: time.Now}
	revoked := token.NewRevocations(from, token.RevocationsOptions{})
	verifier, err := token.NewVerifier(token.VerifierOptions{Issuer: publicURL, Resources: []string{resource}, Keys: r.keys, Revoked: revoked})
	if err != nil {
		t.Fatal(err)
	}
	if r.cache, err = admission.NewCache(from, admission.CacheOptions{Catalogue: catalogue}); err != nil {
		t.Fatal(err)
	}
	c := Config{
		PublicURLs: []string{publicURL}, Issuer: publicURL, Catalogue: catalogue, Tokens: verifier, Snapshots: r.cache,
		Relay: r.home, Recorder: r.records, Keys: from, Scopes: []string{"notes"}, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	if r.server, err = New(c); err != nil {
		t.Fatal(err)
	}
	r.cache.OnDropped(r.server.Changed)
	revoked.OnEvent(r.cache.Notify)
	revoked.OnRevoked(r.cache.Revoked)
	revoked.OnRevoked(r.server.Revoked)
	revoked.Start(t.Context())
	r.server.Start(t.Context())

	mux := http.NewServeMux()
	mux.Handle("/mcp", r.server)
	mux.Handle("/mcp/", r.server)
	mux.HandleFunc(MetadataPath, r.server.ServeMetadata)
	mux.HandleFunc(MetadataPath+"/", r.server.ServeMetadata)
	r.handlers = mux
	web := httptest.NewServer(mux)
	transport := &http.Transport{}
	r.url, r.http = web.URL+"/mcp", &http.Client{Transport: transport}
	r.stop = sync.OnceFunc(func() {
		r.server.Close()
		revoked.Stop()
		transport.CloseIdleConnections()
		web.Close()
	})
	t.Cleanup(r.stop)
	return r
}

func (r *rig) token(t testing.TB, tenant, agent tenants.ID) (string, token.Claims) {
	t.Helper()
	raw, c, err := r.issuer.Issue(token.Request{Tenant: tenant, Member: member, Agent: agent, Resource: resource, Scope: "notes", Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return raw, c
}

// bearerTransport adds a token to every request, and may change them.
type bearerTransport struct {
	base http.RoundTripper
	mu   sync.Mutex
	raw  string
	edit func(*http.Request)
}

func (b *bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	b.mu.Lock()
	r.Header.Set("Authorization", "Bearer "+b.raw)
	edit := b.edit
	b.mu.Unlock()
	if edit != nil {
		edit(r)
	}
	return b.base.RoundTrip(r)
}

func (b *bearerTransport) refresh(raw string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.raw = raw
}

// eras are the protocol versions that are served.
var eras = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}

func forEachEra(t *testing.T, test func(t *testing.T, era string)) {
	t.Helper()
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			test(t, era)
		})
	}
}

// client connects the SDK's own client.
func (r *rig) client(t *testing.T, era string, tenant, agent tenants.ID, o *mcp.ClientOptions) (*mcp.ClientSession, *bearerTransport) {
	t.Helper()
	raw, _ := r.token(t, tenant, agent)
	bearer := &bearerTransport{base: r.http.Transport, raw: raw}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.url, HTTPClient: &http.Client{Transport: bearer}, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, bearer
}

// answer is the one text of a result, decoded.
func answer(t *testing.T, res *mcp.CallToolResult) map[string]any {
	t.Helper()
	if len(res.Content) != 1 || res.StructuredContent != nil {
		t.Fatalf("content %v, structured %v: want one text", res.Content, res.StructuredContent)
	}
	text, ok := res.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("content is a %T", res.Content[0])
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(text.Text), &v); err != nil {
		t.Fatalf("%q: %v", text.Text, err)
	}
	return v
}

// failure is the error of a result in the public vocabulary.
func failure(t *testing.T, res *mcp.CallToolResult) *contract.Error {
	t.Helper()
	if !res.IsError {
		t.Fatalf("the call succeeded: %v", answer(t, res))
	}
	raw, err := json.Marshal(answer(t, res)["error"])
	if err != nil {
		t.Fatal(err)
	}
	e := &contract.Error{}
	if err := json.Unmarshal(raw, e); err != nil {
		t.Fatal(err)
	}
	return e
}

func call(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	return res
}

func listed(t *testing.T, s *mcp.ClientSession) map[string]*mcp.Tool {
	t.Helper()
	res, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatalf("list tools: %v", err)
	}
	m := map[string]*mcp.Tool{}
	for _, tool := range res.Tools {
		m[tool.Name] = tool
	}
	return m
}

// within fails the test when done is not closed soon; what it waits for happens
// in milliseconds.
func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s did not happen", what)
	}
}

// fixed are Tokens, Snapshots and a Recorder for one principal, without cost.
type fixed struct {
	claims   token.Claims
	snapshot *admission.Snapshot
}

func (f *fixed) Verify(context.Context, string) (token.Claims, error) { return f.claims, nil }
func (f *fixed) Get(context.Context, tenants.ID, tenants.ID) (*admission.Snapshot, error) {
	return f.snapshot, nil
}
func (f *fixed) Record(tenants.Call) {}
