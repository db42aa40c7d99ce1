package token

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"siyuan-broker/tenants"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryKeys is a KeyStore in memory.
type memoryKeys struct {
	mu    sync.Mutex
	keys  []tenants.SigningKey
	reads int
	fail  error
}

var _ KeyStore = (*memoryKeys)(nil)

func (m *memoryKeys) SigningKeys(context.Context) ([]tenants.SigningKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	return slices.Clone(m.keys), m.fail
}

func (m *memoryKeys) PutSigningKey(_ context.Context, k tenants.SigningKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys = append(m.keys, k)
	return nil
}

func (m *memoryKeys) RetireSigningKey(_ context.Context, kid string, retires, expires time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.keys {
		if m.keys[i].KID == kid {
			m.keys[i].RetiresAt, m.keys[i].ExpiresAt = retires, expires
			return nil
		}
	}
	return tenants.ErrNotFound
}

func (m *memoryKeys) DeleteSigningKey(_ context.Context, kid string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys = slices.DeleteFunc(m.keys, func(k tenants.SigningKey) bool { return k.KID == kid })
	return nil
}

// memoryFeed is a Feed in memory.
type memoryFeed struct {
	mu     sync.Mutex
	list   []tenants.Revocation
	fail   error
	pushes chan tenants.Event
}

var _ Feed = (*memoryFeed)(nil)

func newFeed() *memoryFeed { return &memoryFeed{pushes: make(chan tenants.Event)} }

func (f *memoryFeed) Revocations(_ context.Context, after int64, limit int) ([]tenants.Revocation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	var out []tenants.Revocation
	for _, r := range f.list {
		if r.Seq > after && len(out) < limit {
			out = append(out, r)
		}
	}
	return out, nil
}

func (f *memoryFeed) Listen(ctx context.Context, fn func(tenants.Event)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-f.pushes:
			fn(e)
		}
	}
}

func (f *memoryFeed) revoke(tenant tenants.ID, kind tenants.RevocationKind, subject string, expires time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, tenants.Revocation{Seq: int64(len(f.list) + 1), TenantID: tenant, Kind: kind, Subject: subject, ExpiresAt: expires})
}

func (f *memoryFeed) setFail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// clock is a settable time.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

const (
	testIssuer   = "https://notes.example"
	testResource = "https://notes.example/mcp"
)

// rig is an issuer and a verifier of one installation.
type rig struct {
	clock    *clock
	store    *memoryKeys
	feed     *memoryFeed
	keys     *Keys
	revoked  *Revocations
	issuer   *Issuer
	verifier *Verifier
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{clock: newClock(), store: &memoryKeys{}, feed: newFeed()}
	r.keys = NewKeys(r.store, KeysOptions{Now: r.clock.now, Longest: 24 * time.Hour})
	if err := r.keys.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.revoked = NewRevocations(r.feed, RevocationsOptions{Now: r.clock.now})
	r.revoked.poll(t.Context())
	r.issuer = &Issuer{URL: testIssuer, Keys: r.keys, Now: r.clock.now}
	var err error
	r.verifier, err = NewVerifier(VerifierOptions{Issuer: testIssuer, Resources: []string{testResource}, Keys: r.keys, Revoked: r.revoked, Now: r.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var (
	tenantA = uuid.MustParse("018f0000-0000-7000-8000-00000000000a")
	tenantB = uuid.MustParse("018f0000-0000-7000-8000-00000000000b")
	member  = uuid.MustParse("018f0000-0000-7000-8000-0000000000a1")
	agent   = uuid.MustParse("018f0000-0000-7000-8000-0000000000a2")
)

func (r *rig) issue(t *testing.T) (string, Claims) {
	t.Helper()
	raw, c, err := r.issuer.Issue(Request{Tenant: tenantA, Member: member, Agent: agent, Resource: testResource, ClientID: "client", Scope: "notes", Life: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return raw, c
}
