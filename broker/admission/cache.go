package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

const (
	snapshotTTL  = 30 * time.Second
	snapshotsMax = 16384
	loadTimeout  = 5 * time.Second
	stripes      = 1024
)

// ErrUnavailable means that a snapshot had to be loaded and the store did not
// answer. Callers say 503 and name a time to come back.
var ErrUnavailable = errors.New("the store does not answer")

// Loader is the part of tenants.Store that the Cache needs.
type Loader interface {
	LoadSnapshot(ctx context.Context, tenant, agent tenants.ID) (*tenants.Snapshot, error)
}

// CacheOptions are the choices of a Cache. Zero values take the defaults.
type CacheOptions struct {
	Catalogue *tools.Catalogue // required
	Now       func() time.Time
	TTL       time.Duration // 30 s: the net under the pushes, and how long a store may be away
	Size      int           // 16384 snapshots; the least recently used one goes
}

// Cache holds snapshots in memory. A change drops them by tenant; loads of the
// same principal are merged; a load that a change overtook is not used again.
type Cache struct {
	store     Loader
	catalogue *tools.Catalogue
	now       func() time.Time
	ttl       time.Duration

	entries *lru.Cache[cacheKey, entry]
	flights singleflight.Group
	loads   sync.WaitGroup

	// A tenant's stripe counts its changes, and those of the few tenants that
	// share it: an entry of an older count is dropped. So dropping a tenant
	// needs no walk, and a load knows that it was overtaken.
	changes [stripes]atomic.Uint64
	doubts  atomic.Uint64 // counts the times pushes were lost

	mu        sync.Mutex
	onDropped []func(tenants.ID)
}

type cacheKey struct{ tenant, agent tenants.ID }

type entry struct {
	snapshot *Snapshot
	until    time.Time
	changes  uint64
	doubts   uint64
}

// NewCache makes an empty Cache.
func NewCache(store Loader, o CacheOptions) (*Cache, error) {
	if o.Catalogue == nil {
		return nil, errors.New("snapshot cache: a catalogue is required")
	}
	c := &Cache{store: store, catalogue: o.Catalogue, now: o.Now, ttl: o.TTL}
	if c.now == nil {
		c.now = time.Now
	}
	if c.ttl == 0 {
		c.ttl = snapshotTTL
	}
	if o.Size == 0 {
		o.Size = snapshotsMax
	}
	var err error
	if c.entries, err = lru.New[cacheKey, entry](o.Size); err != nil {
		return nil, fmt.Errorf("snapshot cache of %d entries: %w", o.Size, err)
	}
	return c, nil
}

// Get returns the snapshot of an agent, loading it where there is no fresh one.
// tenants.ErrNotFound when the tenant has no such agent; ErrUnavailable when
// the store does not answer and nothing younger than the TTL is at hand.
func (c *Cache) Get(ctx context.Context, tenant, agent tenants.ID) (*Snapshot, error) {
	key := cacheKey{tenant, agent}
	changes, doubts := c.stripe(tenant).Load(), c.doubts.Load()
	e, ok := c.entries.Get(key)
	usable := ok && e.changes == changes && c.now().Before(e.until)
	if usable && e.doubts == doubts {
		return e.snapshot, nil
	}
	s, err := c.load(ctx, key, changes, doubts)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, tenants.ErrNotFound):
		return nil, err
	case usable:
		return e.snapshot, nil // the store is away: what is known serves until its time is over
	}
	return nil, err
}

// InPlace is the snapshot of a person in the place of an agent whose access has
// ended, see CompileInPlace. It is loaded anew and not kept.
func (c *Cache) InPlace(ctx context.Context, tenant, agent, person tenants.ID, role tenants.Role) (*Snapshot, error) {
	t, err := c.store.LoadSnapshot(ctx, tenant, agent)
	if err != nil {
		return nil, fmt.Errorf("load snapshot of agent %s: %w", agent, err)
	}
	return CompileInPlace(t, person, role, c.catalogue), nil
}

// load merges the loads of one principal since its tenant's last change. The
// store's answer is waited for without the caller, who may go away.
func (c *Cache) load(ctx context.Context, key cacheKey, changes, doubts uint64) (*Snapshot, error) {
	flight := fmt.Sprintf("%s/%s/%d", key.tenant, key.agent, changes)
	result := c.flights.DoChan(flight, func() (any, error) {
		c.loads.Add(1)
		defer c.loads.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		started := c.now()
		t, err := c.store.LoadSnapshot(ctx, key.tenant, key.agent)
		switch {
		case errors.Is(err, tenants.ErrNotFound):
			return nil, fmt.Errorf("load snapshot of agent %s: %w", key.agent, err)
		case err != nil:
			return nil, fmt.Errorf("load snapshot of agent %s: %w: %w", key.agent, ErrUnavailable, err)
		case t.TenantID != key.tenant || t.Agent.ID != key.agent:
			return nil, fmt.Errorf("load snapshot of agent %s: the store answered for another agent", key.agent)
		}
		s := Compile(t, c.catalogue)
		// Under the count it began with: overtaken by a change, it is no entry.
		c.entries.Add(key, entry{s, started.Add(c.ttl), changes, doubts})
		return s, nil
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("load snapshot of agent %s: %w", key.agent, ctx.Err())
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*Snapshot), nil
	}
}

func (c *Cache) stripe(tenant tenants.ID) *atomic.Uint64 {
	// The last bytes of a UUIDv7 are random.
	return &c.changes[(int(tenant[14])<<8|int(tenant[15]))%stripes]
}

// Drop forgets what is known about a tenant and tells the hooks.
func (c *Cache) Drop(tenant tenants.ID) {
	c.stripe(tenant).Add(1)
	c.tell(tenant)
}

func (c *Cache) tell(tenant tenants.ID) {
	c.mu.Lock()
	hooks := c.onDropped
	c.mu.Unlock()
	for _, fn := range hooks {
		fn(tenant)
	}
}

// OnDropped adds a hook for dropped tenants, so that open sessions learn of
// changes; the zero id means that any tenant may have changed. It must not
// block.
func (c *Cache) OnDropped(fn func(tenant tenants.ID)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onDropped = append(c.onDropped, fn)
}

// Notify reacts to a push of the store: a changed policy drops its tenant; lost
// pushes make every snapshot doubtful, so that it is loaded anew if the store
// answers.
func (c *Cache) Notify(e tenants.Event) {
	if e.Lost {
		c.doubts.Add(1)
		c.tell(tenants.ID{})
	}
	if e.Policy != (tenants.ID{}) {
		c.Drop(e.Policy)
	}
}

// Revoked reacts to an entry of the revocation feed: whatever was taken back,
// the tenant's snapshots may show it.
func (c *Cache) Revoked(r tenants.Revocation) {
	if r.Kind != tenants.RevokedToken {
		c.Drop(r.TenantID)
	}
}

// Wait returns when no load is running; call it after the last Get.
func (c *Cache) Wait() { c.loads.Wait() }
