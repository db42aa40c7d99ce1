package redisnet

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"siyuan-broker/broker/cluster"
)

const (
	routeCacheMax = 16384
	routeStripes  = 256
	routeBatch    = 256   // announcements in one exchange
	endedMax      = 20000 // withdrawals kept over an outage; a lost one ends by its time
)

// A route is a hash: e epoch, n node, a address, s state. The states: live;
// suspect, which its own epoch may revive; ended, which keeps older epochs and
// late renewals of its own away until it expires.

// announceScript returns {1, whether anything changed}, or {0, the newer epoch}.
// ARGV: epoch, node, address, ttl, channel, event.
var announceScript = redis.NewScript(`
local old = redis.call('HMGET', KEYS[1], 'e', 'n', 'a', 's')
local e, mine = tonumber(old[1] or '-1'), tonumber(ARGV[1])
if e > mine or (e == mine and old[4] == 'ended') then return {0, old[1]} end
local same = e == mine and old[2] == ARGV[2] and old[3] == ARGV[3] and old[4] == 'live'
if not same then
  redis.call('HSET', KEYS[1], 'e', ARGV[1], 'n', ARGV[2], 'a', ARGV[3], 's', 'live')
  redis.call('PUBLISH', ARGV[5], ARGV[6])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {1, same and '0' or '1'}`)

// endScript gives a route the state in ARGV[2] unless a newer epoch stands or it
// has ended. ARGV: epoch, state, ttl, channel, event.
var endScript = redis.NewScript(`
local old = redis.call('HMGET', KEYS[1], 'e', 's')
local e, mine = tonumber(old[1] or '-1'), tonumber(ARGV[1])
if e > mine or (e == mine and old[2] == 'ended') then return {0, old[1]} end
if ARGV[2] == 'suspect' and e < mine then return {0, '-1'} end
redis.call('HSET', KEYS[1], 'e', ARGV[1], 'n', '', 'a', '', 's', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', ARGV[4], ARGV[5])
return {1, '1'}`)

type instanceKey struct{ tenant, instance string }

// routes keeps what this node announces, and a cache of what it looked up.
type routes struct {
	net *Net

	mu    sync.Mutex
	owned map[instanceKey]*owned // bounded by this node's tunnels and endedMax
	ended int
	wake  chan struct{} // one pending wake-up is enough

	cache   *lru.Cache[instanceKey, found]
	changes [routeStripes]atomic.Uint64 // counted by events, so that a look-up knows it was overtaken
}

// owned is what Redis should know about one instance from this node.
type owned struct {
	route cluster.Route
	ended bool
	dirty bool // Redis does not know yet
}

type found struct {
	route   cluster.Route // zero: there was none
	at      time.Time
	changes uint64
}

func newRoutes(n *Net) *routes {
	c, _ := lru.New[instanceKey, found](routeCacheMax) // fails only for a size below one
	return &routes{net: n, owned: map[instanceKey]*owned{}, wake: make(chan struct{}, 1), cache: c}
}

// changed makes what is cached about an event's subject old.
func (r *routes) changed(e cluster.Event) {
	switch e.Kind {
	case cluster.Lost:
		for i := range r.changes {
			r.changes[i].Add(1)
		}
	case cluster.RouteChanged:
		r.stripe(instanceKey{e.Tenant, e.Subject}).Add(1)
	}
}

func (r *routes) stripe(k instanceKey) *atomic.Uint64 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(k.instance) {
		h = (h ^ uint32(k.instance[i])) * 16777619
	}
	return &r.changes[h%routeStripes]
}

// Announce is cluster.Routes.Announce.
func (r *routes) Announce(route cluster.Route) { r.want(route, false) }

// Withdraw is cluster.Routes.Withdraw.
func (r *routes) Withdraw(route cluster.Route) { r.want(route, true) }

func (r *routes) want(route cluster.Route, ended bool) {
	k := instanceKey{route.Tenant, route.Instance}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.owned[k]
	if old != nil && old.route.Epoch > route.Epoch && !ended {
		r.net.deliver(changed(old.route))
	}
	if old != nil && (old.route.Epoch > route.Epoch || old.ended && old.route.Epoch == route.Epoch) {
		return // the end of a session that this node has replaced itself
	}
	if ended && r.ended >= endedMax {
		delete(r.owned, k)
		return
	}
	if old != nil && old.ended {
		r.ended--
	}
	if ended {
		r.ended++
	}
	r.owned[k] = &owned{route: route, ended: ended, dirty: true}
	r.poke()
}

func (r *routes) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// announceAll tells Redis everything again.
func (r *routes) announceAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.owned {
		o.dirty = true
	}
	r.poke()
}

// keep brings Redis to what this node wants, and renews it.
func (r *routes) keep(ctx context.Context) {
	renew := time.NewTicker(r.net.timing.Renew)
	defer renew.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-renew.C:
			r.announceAll()
		case <-r.wake:
			r.flush(ctx)
		}
	}
}

// flush sends what is dirty. After a failure it stays so until Redis is back,
// which announces everything.
func (r *routes) flush(ctx context.Context) {
	for {
		batch := r.dirty()
		if len(batch) == 0 {
			return
		}
		answers := make([]*redis.Cmd, len(batch))
		err := r.net.within(ctx, r.net.timing.Upkeep, func(ctx context.Context) error {
			return r.send(ctx, batch, answers)
		})
		if err != nil {
			return
		}
		for i, o := range batch {
			r.settle(o, answers[i])
		}
	}
}

func (r *routes) dirty() []*owned {
	r.mu.Lock()
	defer r.mu.Unlock()
	var batch []*owned
	for _, o := range r.owned {
		if o.dirty {
			if batch = append(batch, o); len(batch) == routeBatch {
				break
			}
		}
	}
	return batch
}

// send runs a batch in one exchange, and once more if Redis has not got the
// scripts.
func (r *routes) send(ctx context.Context, batch []*owned, answers []*redis.Cmd) error {
	for loaded := false; ; loaded = true {
		_, err := r.net.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, o := range batch {
				var err error
				if answers[i], err = r.queue(ctx, p, o); err != nil {
					return err
				}
			}
			return nil
		})
		switch {
		case err == nil || refusal(err): // of one route; settle sees which
			return nil
		case loaded || !strings.HasPrefix(err.Error(), "NOSCRIPT "):
			return err
		}
		for _, s := range []*redis.Script{announceScript, endScript} {
			if err := s.Load(ctx, r.net.rdb).Err(); err != nil {
				return err
			}
		}
	}
}

func (r *routes) queue(ctx context.Context, p redis.Pipeliner, o *owned) (*redis.Cmd, error) {
	payload, err := r.net.bus.encode(changed(o.route))
	if err != nil {
		return nil, err
	}
	keys, t, channel := []string{r.key(o.route)}, r.net.timing, r.net.bus.everyone()
	if o.ended {
		return endScript.EvalSha(ctx, p, keys, o.route.Epoch, "ended", t.EndedTTL.Milliseconds(), channel, payload), nil
	}
	return announceScript.EvalSha(ctx, p, keys, o.route.Epoch, o.route.Node, o.route.Address, t.RouteTTL.Milliseconds(), channel, payload), nil
}

func (r *routes) key(route cluster.Route) string {
	return r.net.key(route.Tenant, "route", route.Instance)
}

func changed(route cluster.Route) cluster.Event {
	return cluster.Event{Kind: cluster.RouteChanged, Tenant: route.Tenant, Subject: route.Instance, Epoch: route.Epoch, Node: route.Node}
}

// settle notes Redis's answer about one route.
func (r *routes) settle(o *owned, answer *redis.Cmd) {
	list, err := answer.Slice()
	if err != nil || len(list) != 2 {
		r.net.log.Warn("announce route", "tenant", o.route.Tenant, "instance", o.route.Instance, "error", err)
		list = []any{int64(1), "0"} // the next renewal tries again
	}
	k := instanceKey{o.route.Tenant, o.route.Instance}
	accepted, second := number(list[0]) == 1, number(list[1])
	r.mu.Lock()
	o.dirty = false
	if r.owned[k] == o && (o.ended || !accepted) {
		delete(r.owned, k)
		if o.ended {
			r.ended--
		}
	}
	r.mu.Unlock()
	e := changed(o.route)
	switch {
	case accepted && second == 1:
		r.net.deliver(e)
	case !accepted && !o.ended: // fenced by a session elsewhere
		e.Epoch, e.Node = second, ""
		r.net.deliver(e)
	}
}

// Lookup is cluster.Routes.Lookup.
func (r *routes) Lookup(ctx context.Context, tenant, instance string) (cluster.Route, error) {
	k := instanceKey{tenant, instance}
	changes := r.stripe(k).Load()
	f, ok := r.cache.Get(k)
	ttl := r.net.timing.Found
	if f.route == (cluster.Route{}) {
		ttl = r.net.timing.Missing
	}
	age := r.net.now().Sub(f.at)
	if !ok || f.changes != changes || age > ttl {
		fresh, err := r.ask(ctx, k, changes)
		switch {
		case err == nil:
			f = fresh
		case ok && f.changes == changes && age < r.net.timing.RouteTTL && errors.Is(err, cluster.ErrUnavailable):
			// The node it points to will say whether it is still true.
		default:
			return cluster.Route{}, err
		}
	}
	if f.route == (cluster.Route{}) || !r.net.nodes.live(ctx, f.route.Node) {
		return cluster.Route{}, cluster.ErrNoRoute
	}
	return f.route, nil
}

// ask reads a route; changes is the count it is cached under.
func (r *routes) ask(ctx context.Context, k instanceKey, changes uint64) (found, error) {
	f := found{at: r.net.now(), changes: changes}
	err := r.net.do(ctx, func(ctx context.Context) error {
		v, err := r.net.rdb.HMGet(ctx, r.net.key(k.tenant, "route", k.instance), "e", "n", "a", "s").Result()
		if err != nil || len(v) != 4 || v[3] != "live" {
			return err
		}
		f.route = cluster.Route{Tenant: k.tenant, Instance: k.instance}
		f.route.Node, _ = v[1].(string)
		f.route.Address, _ = v[2].(string)
		epoch, _ := v[0].(string)
		f.route.Epoch, err = strconv.ParseInt(epoch, 10, 64)
		return err
	})
	if err != nil {
		return found{}, err
	}
	r.cache.Add(k, f)
	return f, nil
}

// Forget is cluster.Routes.Forget.
func (r *routes) Forget(ctx context.Context, route cluster.Route) error {
	r.stripe(instanceKey{route.Tenant, route.Instance}).Add(1)
	payload, err := r.net.bus.encode(changed(route))
	if err != nil {
		return err
	}
	return r.net.do(ctx, func(ctx context.Context) error {
		return endScript.Run(ctx, r.net.rdb, []string{r.key(route)}, route.Epoch, "suspect", r.net.timing.EndedTTL.Milliseconds(), r.net.bus.everyone(), payload).Err()
	})
}

// leave withdraws everything that is still announced.
func (r *routes) leave(ctx context.Context) {
	r.mu.Lock()
	for _, o := range r.owned {
		o.ended, o.dirty = true, true
	}
	r.mu.Unlock()
	r.flush(ctx)
}
