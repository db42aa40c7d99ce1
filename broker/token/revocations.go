package token

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"siyuan-broker/tenants"
)

const (
	pollEvery   = time.Second // the certain way; pushes are only faster
	pollTimeout = 5 * time.Second
	pollBatch   = 1000
	sweepEvery  = time.Minute
	staleAfter  = 10 * time.Second
)

// Feed is the part of tenants.Store that Revocations needs.
type Feed interface {
	Revocations(ctx context.Context, after int64, limit int) ([]tenants.Revocation, error)
	Listen(ctx context.Context, fn func(tenants.Event)) error
}

// RevocationsOptions are the choices of Revocations. Zero values take the
// defaults.
type RevocationsOptions struct {
	Log        *slog.Logger
	Now        func() time.Time
	PollEvery  time.Duration // 1 s
	StaleAfter time.Duration // 10 s; Ready fails after so long without a successful poll
}

// Revocations is this node's copy of the installation's revocation feed. It
// polls each second and at once when the store pushes, keeps every entry until
// it is of no use, and tells its hooks about each new one.
type Revocations struct {
	feed       Feed
	log        *slog.Logger
	now        func() time.Time
	pollEvery  time.Duration
	staleAfter time.Duration

	onRevoked []func(tenants.Revocation)
	onEvent   []func(tenants.Event)

	mu    sync.RWMutex
	set   map[subject]time.Time // until when the entry matters; bounded by the feed's own expiry
	seq   int64
	swept time.Time
	last  atomic.Int64 // unix nanoseconds of the last successful poll; 0: none yet

	wake   chan struct{} // one pending wake-up is enough
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// subject is what was taken back. Tenant first: ids are unique within a tenant
// only.
type subject struct {
	tenant tenants.ID
	kind   tenants.RevocationKind
	id     string
}

// NewRevocations makes a copy that is empty, and therefore not ready, until
// Start.
func NewRevocations(feed Feed, o RevocationsOptions) *Revocations {
	r := &Revocations{
		feed: feed, log: o.Log, now: o.Now, pollEvery: o.PollEvery, staleAfter: o.StaleAfter,
		set: map[subject]time.Time{}, wake: make(chan struct{}, 1),
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.pollEvery == 0 {
		r.pollEvery = pollEvery
	}
	if r.staleAfter == 0 {
		r.staleAfter = staleAfter
	}
	return r
}

// OnRevoked adds a hook that is called once for every entry, in order, from one
// goroutine. It must not block: it runs before the next poll. Add hooks before
// Start. Entries found by the first poll are old and reported too.
func (r *Revocations) OnRevoked(fn func(tenants.Revocation)) { r.onRevoked = append(r.onRevoked, fn) }

// OnEvent adds a hook for the store's pushes, of which a node listens once.
// Same rules as OnRevoked, and not concurrent with itself.
func (r *Revocations) OnEvent(fn func(tenants.Event)) { r.onEvent = append(r.onEvent, fn) }

// Start polls once, then keeps polling and listening until Stop. A store that
// is away is no error: Ready says so, and polling goes on.
func (r *Revocations) Start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.poll(ctx)
	r.done.Add(2)
	go func() {
		defer r.done.Done()
		r.run(ctx)
	}()
	go func() {
		defer r.done.Done()
		if err := r.feed.Listen(ctx, r.notify); err != nil && ctx.Err() == nil {
			r.log.Error("listening for changes ended; polling goes on", "error", err)
		}
	}()
}

// Stop ends polling and listening and waits for both. It may be called twice,
// and without Start.
func (r *Revocations) Stop() {
	if r.cancel != nil {
		r.cancel()
	}
	r.done.Wait()
}

// Ready says why revocations cannot be trusted to be fresh; nil when they are.
// Tokens known to be good go on being served meanwhile.
func (r *Revocations) Ready() error {
	last := r.last.Load()
	if last == 0 {
		return ErrNotReady
	}
	if age := r.now().Sub(time.Unix(0, last)); age > r.staleAfter {
		return fmt.Errorf("revocations were last read %s ago: check the database", age.Round(time.Second))
	}
	return nil
}

func (r *Revocations) loaded() bool { return r.last.Load() != 0 }

// Revoked reports whether the feed holds an entry for a subject. Members,
// tenants and instances can come back: for them the feed is the signal to drop
// what is cached and cut what is open, and the snapshot is the truth.
func (r *Revocations) Revoked(tenant tenants.ID, kind tenants.RevocationKind, id string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ok := r.set[subject{tenant, kind, id}]
	return ok
}

// RevokedClaims reports whether a token may no longer be used: it or its agent
// was taken back, which is final for both.
func (r *Revocations) RevokedClaims(c Claims) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if _, ok := r.set[subject{c.Tenant, tenants.RevokedToken, c.ID}]; ok {
		return true
	}
	_, ok := r.set[subject{c.Tenant, tenants.RevokedAgent, c.Agent.String()}]
	return ok
}

// notify receives the store's pushes.
func (r *Revocations) notify(e tenants.Event) {
	if e.Revocation != 0 || e.Lost {
		select {
		case r.wake <- struct{}{}:
		default: // a poll is due anyway
		}
	}
	for _, fn := range r.onEvent {
		fn(e)
	}
}

func (r *Revocations) run(ctx context.Context) {
	tick := time.NewTicker(r.pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.wake:
		}
		r.poll(ctx)
	}
}

// poll reads everything new and drops what has become useless.
func (r *Revocations) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	for {
		batch, err := r.feed.Revocations(ctx, r.seq, pollBatch)
		if err != nil {
			if ctx.Err() != context.Canceled {
				r.log.Warn("revocations could not be read", "after", r.seq, "error", err)
			}
			return
		}
		r.add(batch)
		if len(batch) < pollBatch {
			break
		}
	}
	r.last.Store(r.now().UnixNano())
	r.sweep()
}

func (r *Revocations) add(batch []tenants.Revocation) {
	r.mu.Lock()
	for _, e := range batch {
		r.set[subject{e.TenantID, e.Kind, e.Subject}] = e.ExpiresAt
		r.seq = max(r.seq, e.Seq)
	}
	r.mu.Unlock()
	for _, e := range batch {
		for _, fn := range r.onRevoked {
			fn(e)
		}
	}
}

func (r *Revocations) sweep() {
	now := r.now()
	if now.Sub(r.swept) < sweepEvery {
		return
	}
	r.swept = now
	r.mu.Lock()
	defer r.mu.Unlock()
	for s, until := range r.set {
		if !until.IsZero() && now.After(until) {
			delete(r.set, s)
		}
	}
}
