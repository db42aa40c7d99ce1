package redisnet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mrand "math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"siyuan-broker/broker/cluster"
)

// Timing holds every duration of a Net. Tests make it faster.
type Timing struct {
	Exchange time.Duration // one exchange on a caller's path
	Upkeep   time.Duration // one exchange in the background, a batch of routes for instance
	Beat     time.Duration // between two signs of life of a node
	NodeTTL  time.Duration // silence after which a node counts as gone
	Probe    time.Duration // between two attempts to reach Redis while it is away
	Renew    time.Duration // between two announcements of the same route
	RouteTTL time.Duration // a route that is not announced again
	EndedTTL time.Duration // how long an ended route keeps older epochs away
	Found    time.Duration // a looked up route is asked for again
	Missing  time.Duration // so is one that was not there
	Listen   time.Duration // silence of the subscription before it is tested
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		Exchange: 80 * time.Millisecond, Upkeep: time.Second, Beat: time.Second, NodeTTL: 4 * time.Second,
		Probe: 250 * time.Millisecond, Renew: 10 * time.Second, RouteTTL: 30 * time.Second, EndedTTL: time.Minute,
		Found: 10 * time.Second, Missing: time.Second, Listen: 2 * time.Second,
	}
}

// Options are the choices of a Net. Redis and Self are required; zero values
// elsewhere mean the defaults.
type Options struct {
	Redis         *redis.Options // Connect makes them from a URL
	Self          cluster.Node
	Prefix        string  // of every key; "siyuan-broker" lets one Redis serve other things too
	LocalFraction float64 // part of a limit that each node gives out alone while Redis is away; 0.5
	Log           *slog.Logger
	Now           func() time.Time
	Timing        Timing
}

// Connect reads a redis://, rediss:// or unix:// URL.
func Connect(rawURL string) (*redis.Options, error) {
	o, err := redis.ParseURL(rawURL)
	if err != nil { // its text may repeat the password
		return nil, errors.New("redis_url: not a URL such as rediss://user:password@host:6379/0")
	}
	return o, nil
}

// Net is one node's connection to the others through Redis.
type Net struct {
	*routes
	*limiter
	*bus
	*nodes

	rdb         *redis.Client
	self        cluster.Node
	incarnation string // tells this process from another of the same id
	prefix      string
	log         *slog.Logger
	now         func() time.Time
	timing      Timing

	away    atomic.Bool
	since   atomic.Int64 // unix nanoseconds of the last change of away
	outages atomic.Int64
	probe   chan struct{} // one pending wake-up is enough

	mu     sync.Mutex
	cancel context.CancelFunc
	ended  bool
	work   sync.WaitGroup
}

var _ cluster.Net = (*Net)(nil)

// New makes a Net. It connects in Start.
func New(o Options) (*Net, error) {
	if o.Redis == nil || o.Self.ID == "" {
		return nil, errors.New("redis: Redis and Self.ID are required")
	}
	n := &Net{self: o.Self, incarnation: rand.Text(), prefix: o.Prefix, log: o.Log, now: o.Now, timing: o.Timing, probe: make(chan struct{}, 1)}
	if n.prefix == "" {
		n.prefix = "siyuan-broker"
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if n.now == nil {
		n.now = time.Now
	}
	if n.timing == (Timing{}) {
		n.timing = DefaultTiming()
	}
	if n.self.Started.IsZero() {
		n.self.Started = n.now()
	}
	if o.LocalFraction <= 0 || o.LocalFraction > 1 {
		o.LocalFraction = 0.5
	}
	opts := *o.Redis
	opts.MaxRetries = -1 // a retry would spend the budget of its caller twice
	opts.ContextTimeoutEnabled = true
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = n.timing.Upkeep, n.timing.Upkeep, n.timing.Upkeep
	opts.DialerRetries = 1
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	logging.Disable() // one for the whole process, and it repeats what our callers report
	opts.ClientName, opts.DisableIdentity = "siyuan-broker", true
	n.rdb = redis.NewClient(&opts)
	n.since.Store(n.now().UnixNano())
	n.away.Store(true) // until the first beat

	n.nodes = &nodes{net: n, beating: make(chan struct{}, 1)}
	n.bus = &bus{net: n, fanout: cluster.NewFanout()}
	n.routes = newRoutes(n)
	n.limiter = newLimiter(n, o.LocalFraction)
	return n, nil
}

// Start is cluster.Net.Start.
func (n *Net) Start(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cancel != nil || n.ended {
		return
	}
	ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	n.beat(ctx)
	n.work.Go(func() { n.keepAlive(ctx) })
	n.work.Go(func() { n.bus.listen(ctx) })
	n.work.Go(func() { n.routes.keep(ctx) })
	n.work.Go(func() { n.limiter.sweep(ctx) })
}

// Stop is cluster.Net.Stop.
func (n *Net) Stop() {
	n.mu.Lock()
	first := !n.ended
	n.ended = true
	cancel := n.cancel
	n.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	n.work.Wait()
	n.limiter.wait()
	if !first {
		return
	}
	if cancel != nil {
		ctx, done := context.WithTimeout(context.Background(), n.timing.Upkeep)
		n.routes.leave(ctx)
		n.nodes.leave(ctx)
		done()
	}
	n.fanout.Close()
	_ = n.rdb.Close() // says only that it was closed before
}

// deliver hands an event to this node's subscribers. Whoever hears of a change
// finds the old route forgotten already.
func (n *Net) deliver(e cluster.Event) {
	n.routes.changed(e)
	n.fanout.Deliver(e)
}

// keepAlive beats, and while Redis is away asks for it.
func (n *Net) keepAlive(ctx context.Context) {
	for {
		wait := n.timing.Beat
		if n.away.Load() {
			wait = n.timing.Probe/2 + time.Duration(mrand.Int64N(int64(n.timing.Probe)))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-n.probe: // an exchange just failed: is it Redis, or was it only slow?
		case <-timer.C:
		}
		timer.Stop()
		n.beat(ctx)
	}
}

func (n *Net) beat(ctx context.Context) {
	fresh, err := n.nodes.beat(ctx)
	if err != nil {
		n.lost(err)
		return
	}
	if n.away.CompareAndSwap(true, false) {
		n.since.Store(n.now().UnixNano())
		n.log.Info("redis answers")
		fresh = true
	}
	n.bus.confess(ctx)
	if fresh {
		n.routes.announceAll() // what Redis knew of this node may be gone
	}
}

// lost notes an outage.
func (n *Net) lost(err error) {
	if n.away.CompareAndSwap(false, true) {
		n.since.Store(n.now().UnixNano())
		n.outages.Add(1)
		n.log.Warn("redis does not answer; this node goes on alone", "error", err)
		select {
		case n.probe <- struct{}{}:
		default:
		}
	}
}

// do runs one exchange on a caller's path. Its errors are the caller's own
// context's, or cluster.ErrUnavailable.
func (n *Net) do(ctx context.Context, exchange func(context.Context) error) error {
	return n.within(ctx, n.timing.Exchange, exchange)
}

func (n *Net) within(ctx context.Context, budget time.Duration, exchange func(context.Context) error) error {
	if n.away.Load() {
		return cluster.ErrUnavailable
	}
	bounded, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	err := exchange(bounded)
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if !refusal(err) {
		n.lost(err)
	}
	return fmt.Errorf("%w: %w", cluster.ErrUnavailable, err)
}

// refusal reports whether Redis answered and would not do what was asked: it is
// there, and what is wrong is one key or one of our commands.
func refusal(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && (strings.HasPrefix(reply.Error(), "ERR ") || strings.HasPrefix(reply.Error(), "WRONGTYPE "))
}

// Health is cluster.Net.Health.
func (n *Net) Health() cluster.Health {
	away := n.away.Load()
	return cluster.Health{Shared: !away, Since: time.Unix(0, n.since.Load()), LocalLimits: away, LocalAnswers: n.limiter.alone.Load(),
		Outages: n.outages.Load(), Gaps: n.bus.gaps.Load(), NameTaken: n.nodes.taken.Load()}
}

// key names a value of a tenant. Its parts are escaped, so that no two names
// meet.
func (n *Net) key(tenant, what string, rest ...string) string {
	var b strings.Builder
	_, _ = io.WriteString(&b, n.prefix+":"+url.QueryEscape(tenant)+":"+what)
	for _, r := range rest {
		b.WriteString(":" + url.QueryEscape(r))
	}
	return b.String()
}
