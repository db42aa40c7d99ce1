package pairing

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// fixture is a service on a database of its own, with a clock that stands until
// it is moved.
type fixture struct {
	*Service
	t     testing.TB
	store *postgres.Store

	mu      sync.Mutex
	now     time.Time
	address string         // where requests come from
	counts  map[string]int // by limited key, without windows
}

var start = time.Unix(1_800_000_000, 0).UTC() // of the goldens

func newFixture(t testing.TB) *fixture {
	t.Helper()
	db := pgtest.New(t)
	store, err := postgres.Open(t.Context(), postgres.Options{ServiceDSN: db.ServiceDSN, RecorderDSN: db.RecorderDSN, ListenDSN: db.ListenDSN, MasterKey: make([]byte, 32), MaxConns: 4})
	must(t, err)
	t.Cleanup(store.Close)
	f := &fixture{t: t, store: store, now: start, address: "203.0.113.7", counts: map[string]int{}}
	f.Service, err = New(Config{
		Store: store, Audiences: []string{"siyuan-tunnel:notes.example"},
		Base: func(*http.Request) string { return "https://notes.example" },
		Tunnel: func(base string) wire.Endpoint {
			return wire.Endpoint{WSS: "wss" + strings.TrimPrefix(base, "https") + "/tunnel"}
		},
		Address: func(*http.Request) string { return f.at().address }, Connected: func(context.Context, tenants.Connector) bool { return false },
		Allow: f.allowed, Now: func() time.Time { return f.at().now },
	})
	must(t, err)
	return f
}

type moment struct {
	now     time.Time
	address string
}

func (f *fixture) at() moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return moment{f.now, f.address}
}

func (f *fixture) later(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

func (f *fixture) from(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.address = address
}

// allowed counts without end: every window of these tests is one.
func (f *fixture) allowed(_ context.Context, key string, limit int, window time.Duration) (bool, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[key]++
	return f.counts[key] <= limit, window / 2
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// household is a tenant with an instance.
type household struct{ id, owner, instance tenants.ID }

func (f *fixture) household(name string) household {
	f.t.Helper()
	ctx := f.t.Context()
	u := f.person(name + "@example.org")
	tn, err := f.store.CreateTenant(ctx, name, u)
	must(f.t, err)
	h := household{id: tn.ID, owner: u}
	f.in(h, func(tx tenants.Tx) error {
		in, err := tx.CreateInstance(ctx, tenants.Instance{Name: "Notes of " + name, DefaultLevel: contract.Read})
		h.instance = in.ID
		return err
	})
	return h
}

func (f *fixture) person(email string) tenants.ID {
	f.t.Helper()
	u, err := f.store.CreateUser(f.t.Context(), tenants.User{Email: strings.ToLower(email), Name: email})
	must(f.t, err)
	return u.ID
}

func (f *fixture) member(h household, email string, role tenants.Role) tenants.ID {
	f.t.Helper()
	id := f.person(email)
	f.in(h, func(tx tenants.Tx) error { return tx.AddMember(f.t.Context(), id, role) })
	return id
}

func (f *fixture) in(h household, fn func(tenants.Tx) error) {
	f.t.Helper()
	must(f.t, f.store.In(f.t.Context(), h.id, fn))
}

// machine is a connector written against docs/PROTOCOL.md: its proofs are made
// by hand, so that they can be wrong in every way.
type machine struct {
	f      *fixture
	key    ed25519.PrivateKey
	device string
	jti    int
}

func (f *fixture) machine() *machine {
	_, key, err := ed25519.GenerateKey(nil)
	must(f.t, err)
	return &machine{f: f, key: key}
}

func (m *machine) public() ed25519.PublicKey { return m.key.Public().(ed25519.PublicKey) }

func (m *machine) fingerprint() string { return tenants.Fingerprint(m.public()) }

type object = map[string]any

// proof is a right one, but for what is put into header and claims: a nil takes
// a field away.
func (m *machine) proof(act string, header, claims object) string {
	m.jti++
	h := object{"alg": "EdDSA", "typ": "siyuan-pair+jwt", "kid": m.fingerprint()}
	c := object{"sub": m.fingerprint(), "aud": "siyuan-tunnel:notes.example", "iat": m.f.at().now.Unix(), "jti": strings.Repeat("x", m.jti%100+1), "act": act}
	if act == "token" {
		c["device_code"] = m.device
	}
	for _, x := range []struct{ into, from object }{{h, header}, {c, claims}} {
		for k, v := range x.from {
			if x.into[k] = v; v == nil {
				delete(x.into, k)
			}
		}
	}
	enc := base64.RawURLEncoding
	hb, _ := json.Marshal(h)
	cb, _ := json.Marshal(c)
	signed := enc.EncodeToString(hb) + "." + enc.EncodeToString(cb)
	return signed + "." + enc.EncodeToString(ed25519.Sign(m.key, []byte(signed)))
}

// send posts to one of the three endpoints.
func (f *fixture) send(path, contentType, body string) (status int, header http.Header, answer object, raw string) {
	f.t.Helper()
	h := map[string]http.HandlerFunc{wire.PairPath: f.Pair(), wire.PairTokenPath: f.Token(), wire.UnpairPath: f.Unpair()}[path]
	r := httptest.NewRequestWithContext(f.t.Context(), http.MethodPost, "https://notes.example"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	h(w, r)
	b, _ := io.ReadAll(w.Body)
	if err := json.Unmarshal(b, &answer); err != nil {
		f.t.Fatalf("%s answers %q", path, b)
	}
	return w.Code, w.Header(), answer, strings.TrimSpace(string(b))
}

func (f *fixture) post(path string, v any) (int, object) {
	b, err := json.Marshal(v)
	must(f.t, err)
	status, _, answer, _ := f.send(path, "application/json", string(b))
	return status, answer
}

func (m *machine) begin(more object) (int, object) {
	q := object{"public_key": wire.NewJWK(m.public()), "name": "desk", "os": "linux/amd64", "version": "siyuan-connector 1.0.0", "proof": m.proof("pair", nil, nil)}
	for k, v := range more {
		q[k] = v
	}
	return m.f.post(wire.PairPath, q)
}

// open begins a pairing that must succeed, and returns the code.
func (m *machine) open() string {
	m.f.t.Helper()
	status, a := m.begin(nil)
	if status != 200 {
		m.f.t.Fatalf("pair answers %d %v", status, a)
	}
	m.device = a["device_code"].(string)
	return a["user_code"].(string)
}

func (m *machine) poll() (int, object) {
	return m.f.post(wire.PairTokenPath, object{"proof": m.proof("token", nil, nil)})
}

func (m *machine) unpair() (int, object) {
	return m.f.post(wire.UnpairPath, object{"proof": m.proof("unpair", nil, nil)})
}

// claim is what a person does who types the code.
func (f *fixture) claim(person tenants.ID, code string) tenants.Pairing {
	f.t.Helper()
	p, err := f.Claim(f.t.Context(), person, code)
	must(f.t, err)
	return p
}

// pair lets a new machine in.
func (f *fixture) pair(h household) (*machine, tenants.Connector) {
	f.t.Helper()
	m := f.machine()
	c, err := f.Approve(f.t.Context(), h.owner, f.claim(h.owner, m.open()).ID, Place{Tenant: h.id, Instance: h.instance}, true)
	must(f.t, err)
	return m, c
}

func (f *fixture) audits(h household) (verbs []string, last tenants.AuditEntry) {
	f.t.Helper()
	f.in(h, func(tx tenants.Tx) error {
		all, err := tx.AuditLog(f.t.Context(), time.Now().Add(time.Hour), 100)
		for _, e := range all {
			verbs = append(verbs, e.Verb)
		}
		if len(all) > 0 {
			last = all[0]
		}
		return err
	})
	return verbs, last
}

var nobody = uuid.Nil
