package redisnet

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"siyuan-broker/broker/cluster"
)

const (
	leasesMax = 65536
	leasePart = 64  // a lease is this part of the limit
	leaseMax  = 256 // calls
	lowPart   = 5   // under this part of the limit no calls are leased ahead
	givesMax  = 256 // leases given back in one exchange

	exactBelow = 20                    // smaller limits are never leased ahead: calls are rare, and one held elsewhere would be missed
	reclaim    = 50 * time.Millisecond // for other nodes to give back, before the first call is refused
	recheck    = 10                    // times in a slice that a used up counter is looked at again: calls may have been given back
)

// A counter is a hash: number of the slice -> calls taken in it, by Redis's
// clock. See cluster.Slices.

// takeScript takes up to ARGV[1] calls and returns {taken, left, milliseconds
// until more are free, slice}. ARGV: want, limit, slice length in ms, slices.
var takeScript = redis.NewScript(`
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local want, limit, length, slices = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local current = math.floor(now / length)
local used, oldest = 0, current
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local slice, n = tonumber(all[i]), tonumber(all[i + 1])
  if slice < current - slices or slice > current then
    redis.call('HDEL', KEYS[1], all[i])
  elseif n > 0 then
    used = used + n
    oldest = math.min(oldest, slice)
  end
end
local take = math.max(0, math.min(want, limit - used))
if take > 0 then
  redis.call('HINCRBY', KEYS[1], current, take)
  redis.call('PEXPIRE', KEYS[1], length * (slices + 1))
end
return {take, limit - used - take, (oldest + slices + 1) * length - now, current}`)

// giveScript returns calls that were taken in a slice. ARGV: slice, calls.
var giveScript = redis.NewScript(`
local used = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if used > 0 then redis.call('HINCRBY', KEYS[1], ARGV[1], -math.min(used, tonumber(ARGV[2]))) end
return 0`)

// limiter counts in Redis and leases a few calls ahead, so that a warm call
// needs no exchange. Every call that passes was taken from Redis before; so no
// more pass than the limit, over all nodes. Fewer could, where a node holds a
// lease that it does not need: leases are small, end after one slice of the
// window, and when a counter runs low every node gives its own back and takes
// one call at a time.
type limiter struct {
	net      *Net
	fraction float64
	local    *cluster.LocalLimiter // while Redis is away
	alone    atomic.Int64          // decisions of local

	mu     sync.Mutex
	leases *lru.Cache[cluster.LimitKey, *lease] // an evicted one's calls are lost until their window ends
	held   map[*lease]struct{}                  // those that may hold calls
	ended  bool
	takes  sync.WaitGroup
}

// lease is this node's share of one counter.
type lease struct {
	key     cluster.LimitKey
	limit   int
	slice   time.Duration
	size    int
	mu      sync.Mutex
	have    int
	number  int64     // Redis's slice that have was taken in
	until   time.Time // have is given back then
	low     bool      // the counter is nearly used up
	refused bool      // and was used up since it was not low
	full    time.Time // nothing is left; asked again then
	free    time.Time // when more is expected
	waiters int
	take    *take // under way
}

// take is one exchange that several calls may wait for.
type take struct {
	done chan struct{}
	err  error // read after done
}

func newLimiter(n *Net, fraction float64) *limiter {
	c, _ := lru.New[cluster.LimitKey, *lease](leasesMax) // fails only for a size below one
	l := &limiter{net: n, fraction: fraction, local: cluster.NewLocalLimiter(n.now), leases: c, held: map[*lease]struct{}{}}
	n.bus.Subscribe(l.lowElsewhere, cluster.LimitLow) // ends with the bus
	return l
}

// Allow is cluster.Limiter.Allow.
func (l *limiter) Allow(ctx context.Context, key cluster.LimitKey, limit int, window time.Duration) (bool, time.Duration) {
	if limit < 1 || window <= 0 {
		return true, 0
	}
	s := l.lease(key, limit, cluster.Slice(window))
	for !l.net.away.Load() {
		ok, retry, wait := l.try(s)
		if wait == nil {
			return ok, retry
		}
		select {
		case <-wait.done:
		case <-ctx.Done():
			s.leave()
			return false, time.Second
		}
		s.leave()
		if wait.err != nil {
			break
		}
	}
	l.alone.Add(1)
	own := max(1, int(float64(limit)*l.fraction))
	return l.local.Allow(ctx, key, own, window)
}

// lease finds or makes this node's share of a counter.
func (l *limiter) lease(key cluster.LimitKey, limit int, slice time.Duration) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.leases.Get(key)
	if !ok || s.limit != limit || s.slice != slice {
		s = &lease{key: key, limit: limit, slice: slice, size: min(max(1, limit/leasePart), leaseMax), low: limit < exactBelow}
		l.leases.Add(key, s)
	}
	return s
}

// try decides from the lease, or returns the exchange to wait for.
func (l *limiter) try(s *lease) (ok bool, retry time.Duration, wait *take) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.net.now()
	switch {
	case s.have > 0 && now.Before(s.until):
		s.have--
		if !s.low && s.have <= s.size/2 && s.take == nil {
			l.start(s, s.size) // ahead of need; nobody waits
		}
		return true, 0, nil
	case now.Before(s.full):
		return false, max(time.Millisecond, s.free.Sub(now)), nil
	}
	s.waiters++
	if s.take == nil {
		want := s.waiters
		if !s.low {
			want = max(want, s.size)
		}
		return false, 0, l.start(s, want)
	}
	return false, 0, s.take
}

func (s *lease) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters--
}

// start takes calls in the background; s.mu is held. Calls that the lease still
// holds from an earlier slice are given back with it.
func (l *limiter) start(s *lease, want int) *take {
	t := &take{done: make(chan struct{})}
	old, number := 0, s.number
	if !l.net.now().Before(s.until) {
		old, s.have = s.have, 0
	}
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		t.err = errEnded
		close(t.done)
		return t
	}
	l.takes.Add(1)
	l.held[s] = struct{}{}
	l.mu.Unlock()
	s.take = t
	go func() { // Stop waits for it
		defer l.takes.Done()
		l.run(s, t, want, old, number)
	}()
	return t
}

var errEnded = errors.New("the limiter has stopped")

func (l *limiter) run(s *lease, t *take, want, old int, number int64) {
	if old > 0 {
		l.give(context.Background(), []given{{s, number, old}})
	}
	var got taken
	got, t.err = l.exchange(s, want)
	if t.err == nil && got.calls == 0 && s.firstRefusal() {
		// Other nodes give back what they leased ahead; it is worth a moment.
		pause := time.NewTimer(reclaim)
		<-pause.C
		got, t.err = l.exchange(s, want)
	}
	s.mu.Lock()
	s.take = nil
	var excess given
	if t.err == nil {
		excess = s.add(got, l.net.now())
	}
	s.mu.Unlock()
	close(t.done)
	if excess.calls > 0 {
		l.give(context.Background(), []given{excess})
	}
}

// taken is Redis's answer to a take.
type taken struct {
	calls, left int
	free        time.Duration // until more are free
	number      int64         // of the slice
}

// exchange takes calls from Redis. The first answer that says that few are left
// is told to the other nodes.
func (l *limiter) exchange(s *lease, want int) (taken, error) {
	var got []int64
	err := l.net.do(context.Background(), func(ctx context.Context) (err error) {
		got, err = takeScript.Run(ctx, l.net.rdb, []string{l.key(s.key)}, want, s.limit, s.slice.Milliseconds(), cluster.Slices).Int64Slice()
		return err
	})
	if err != nil {
		return taken{}, err
	}
	if len(got) != 4 {
		return taken{}, fmt.Errorf("%w: answer of %d values", cluster.ErrUnavailable, len(got))
	}
	t := taken{int(got[0]), int(got[1]), time.Duration(got[2]) * time.Millisecond, got[3]}
	low := s.limit < exactBelow || t.left < s.limit/lowPart
	s.mu.Lock()
	turned := low && !s.low
	s.low = low
	if !low {
		s.refused = false
	}
	s.mu.Unlock()
	if turned {
		_ = l.net.Publish(context.Background(), cluster.Event{Kind: cluster.LimitLow, Tenant: s.key.Tenant, Subject: subject(s.key)}) // lost: fewer pass
	}
	return t, nil
}

// firstRefusal reports whether this is the first time since calls were plenty
// that none is left, and others may hold some.
func (s *lease) firstRefusal() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.refused && s.limit >= exactBelow
	s.refused = true
	return first
}

// add puts calls into the lease and returns those it should not keep; s.mu is
// held.
func (s *lease) add(got taken, now time.Time) (excess given) {
	if got.calls == 0 {
		s.free = now.Add(got.free)
		s.full = now.Add(min(got.free, max(s.slice/recheck, 5*time.Millisecond)))
		return given{}
	}
	if s.have == 0 { // else the lease keeps the age of its older part, which is given back sooner
		s.number, s.until = got.number, now.Add(s.slice)
	}
	s.have += got.calls
	if over := s.have - s.waiters; s.low && over > 0 {
		excess = given{s, s.number, over}
		s.have -= over
	}
	return excess
}

func (l *limiter) key(k cluster.LimitKey) string {
	return l.net.key(k.Tenant, "limit", k.Agent, k.Tool)
}

func subject(k cluster.LimitKey) string {
	return url.QueryEscape(k.Agent) + "/" + url.QueryEscape(k.Tool)
}

// lowElsewhere gives back what this node leased of a counter that another node
// has found nearly used up.
func (l *limiter) lowElsewhere(e cluster.Event) {
	agent, tool, ok := strings.Cut(e.Subject, "/")
	if e.Kind != cluster.LimitLow || !ok || e.Node == l.net.self.ID {
		return
	}
	k := cluster.LimitKey{Tenant: e.Tenant}
	k.Agent, _ = url.QueryUnescape(agent) // what we escaped ourselves
	k.Tool, _ = url.QueryUnescape(tool)
	l.mu.Lock()
	s, ok := l.leases.Peek(k)
	l.mu.Unlock()
	if !ok {
		return
	}
	s.mu.Lock()
	s.low = true
	g := s.empty()
	s.mu.Unlock()
	if g.calls > 0 {
		l.give(context.Background(), []given{g})
	}
}

// given is what goes back to a counter.
type given struct {
	lease  *lease
	number int64
	calls  int
}

// empty takes everything out of a lease; s.mu is held.
func (s *lease) empty() given {
	g := given{s, s.number, s.have}
	s.have = 0
	return g
}

// give returns calls. If that fails they are missing until their window ends.
func (l *limiter) give(ctx context.Context, all []given) {
	for len(all) > 0 {
		batch := all[:min(len(all), givesMax)]
		all = all[len(batch):]
		_ = l.net.within(ctx, l.net.timing.Upkeep, func(ctx context.Context) error {
			_, err := l.net.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				for _, g := range batch {
					giveScript.Eval(ctx, p, []string{l.key(g.lease.key)}, g.number, g.calls)
				}
				return nil
			})
			return err
		})
	}
}

// sweep gives back what was not used in time, and all of it at the end.
func (l *limiter) sweep(ctx context.Context) {
	tick := time.NewTicker(l.net.timing.Beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.giveBack(context.WithoutCancel(ctx), true)
			return
		case <-tick.C:
			l.giveBack(ctx, false)
		}
	}
}

func (l *limiter) giveBack(ctx context.Context, everything bool) {
	l.mu.Lock()
	l.ended = l.ended || everything
	held := make([]*lease, 0, len(l.held))
	for s := range l.held {
		held = append(held, s)
	}
	l.mu.Unlock()
	now := l.net.now()
	var all []given
	for _, s := range held {
		s.mu.Lock()
		if s.have > 0 && (everything || !now.Before(s.until)) {
			all = append(all, s.empty())
		}
		if s.have == 0 && s.take == nil {
			l.mu.Lock()
			delete(l.held, s)
			l.mu.Unlock()
		}
		s.mu.Unlock()
	}
	l.give(ctx, all)
}

// wait returns when no exchange is under way.
func (l *limiter) wait() { l.takes.Wait() }
