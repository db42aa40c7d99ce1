package redisnet

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/cluster/clustertest"
	"siyuan-broker/broker/cluster/clustertest/redistest"
)

// slack is what a busy test machine may add to the budget of 100 ms.
const slack = 3 * time.Second

// within fails the test if f takes longer than limit.
func within(t *testing.T, what string, limit time.Duration, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > limit {
		t.Errorf("%s took %v, want at most %v", what, took, limit)
	}
}

func route(tenant, node string, epoch int64) cluster.Route {
	return cluster.Route{Tenant: tenant, Instance: "home", Node: node, Address: node + ".example:7000", Epoch: epoch}
}

// outage runs the same story over every way Redis can be away.
func outage(t *testing.T, away, back func(*redistest.Server)) {
	server := redistest.New(t)
	nodes := clustertest.Start(t, joinAt(t, server.URL, quick()), "n1", "n2")
	n1, n2 := nodes[0], nodes[1]
	announced := make(chan struct{}, 10)
	stop := n2.Subscribe(func(cluster.Event) { announced <- struct{}{} }, cluster.RouteChanged)
	n1.Announce(route("known", "n1", 5))
	clustertest.Receive(t, announced, "the announcement")
	stop()
	if _, err := n2.Lookup(t.Context(), "known", "home"); err != nil {
		t.Fatalf("an announced route: %v", err)
	}
	lost := make(chan struct{}, 10)
	defer n2.Subscribe(func(e cluster.Event) {
		if e.Kind == cluster.Lost {
			lost <- struct{}{}
		}
	}, cluster.Lost)()

	away(server)
	for _, n := range nodes {
		within(t, "the first look-up of an outage", 100*time.Millisecond+slack, func() {
			if _, err := n.Lookup(t.Context(), "never looked up", "home"); !errors.Is(err, cluster.ErrUnavailable) {
				t.Errorf("look-up: %v", err)
			}
		})
		within(t, "a hundred operations in a known outage", 100*time.Millisecond+slack, func() {
			for range 33 {
				if _, err := n.Lookup(t.Context(), "never looked up", "home"); !errors.Is(err, cluster.ErrUnavailable) {
					t.Fatalf("look-up: %v", err)
				}
				if err := n.Publish(t.Context(), cluster.Event{Kind: cluster.Revoked, Tenant: "t1"}); !errors.Is(err, cluster.ErrUnavailable) {
					t.Fatalf("publish: %v", err)
				}
				n.Allow(t.Context(), cluster.LimitKey{Tenant: "t2"}, 1000, time.Minute)
			}
		})
		if h := n.Health(); h.Shared || !h.LocalLimits || h.LocalAnswers != 33 || h.Outages != 1 {
			t.Errorf("during the outage: %+v", h)
		}
	}
	if got, err := n2.Lookup(t.Context(), "known", "home"); err != nil || got != route("known", "n1", 5) {
		t.Errorf("a route looked up before: %+v, %v", got, err)
	}
	passed := 0
	for range 100 {
		if ok, _ := n1.Allow(t.Context(), cluster.LimitKey{Tenant: "t1"}, 60, time.Minute); ok {
			passed++
		}
	}
	if passed != 30 {
		t.Errorf("%d calls passed alone, want half the limit of 60", passed)
	}
	n2.Announce(route("new", "n2", 1)) // while nobody hears it

	back(server)
	for _, n := range nodes {
		clustertest.Await(t, "redis is back", func() bool { return n.Health().Shared })
	}
	clustertest.Connected(t, nodes...)
	clustertest.Receive(t, lost, "the notice of missed events")
	for _, want := range []cluster.Route{route("known", "n1", 5), route("new", "n2", 1)} {
		for _, n := range nodes {
			clustertest.Await(t, "routes are known again", func() bool { got, err := n.Lookup(t.Context(), want.Tenant, "home"); return err == nil && got == want })
		}
	}
	if ok, _ := n1.Allow(t.Context(), cluster.LimitKey{Tenant: "t1"}, 60, time.Minute); !ok || n1.Health().LocalLimits {
		t.Errorf("limits are not shared again: %v, %+v", ok, n1.Health())
	}
}

func TestEverythingRecoversAfterRedisWasFrozen(t *testing.T) {
	t.Parallel()
	outage(t, (*redistest.Server).Freeze, func(s *redistest.Server) { s.Thaw() })
}

func TestEverythingRecoversAfterRedisWasKilledAndLostItsData(t *testing.T) {
	t.Parallel()
	outage(t, (*redistest.Server).Kill, func(s *redistest.Server) { s.Restart(t) })
}

func TestANodeJoinsWhenRedisComesLater(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	server.Kill()
	join := joinAt(t, server.URL, quick())
	n := join("n1")
	n.Start(t.Context())
	defer n.Stop()
	if n.Health().Shared {
		t.Fatal("a node without Redis says that it has one")
	}
	n.Announce(route("t1", "n1", 1))
	server.Restart(t)
	other := clustertest.Start(t, join, "n2")[0]
	clustertest.Await(t, "the early route is known", func() bool { _, err := other.Lookup(t.Context(), "t1", "home"); return err == nil })
}

func TestRoutesOfANodeThatDiedAreIgnored(t *testing.T) {
	t.Parallel()
	timing := quick()
	timing.NodeTTL = 300 * time.Millisecond
	server := redistest.New(t)
	join := joinAt(t, server.URL, timing)
	alive := clustertest.Start(t, join, "n1")[0]
	dead := join("n2").(*Net)
	dead.Start(t.Context())
	dead.Announce(route("t1", "n2", 1))
	clustertest.Await(t, "the route is known", func() bool { _, err := alive.Lookup(t.Context(), "t1", "home"); return err == nil })

	dead.cancel() // no farewell: Redis keeps what it said
	dead.work.Wait()
	clustertest.Await(t, "the route is ignored", func() bool {
		_, err := alive.Lookup(t.Context(), "t1", "home")
		return errors.Is(err, cluster.ErrNoRoute)
	})
	if all := alive.Nodes(); len(all) != 1 || all[0].ID != "n1" {
		t.Errorf("still listed: %+v", all)
	}
	dead.Stop()
}

func TestTwoProcessesOfOneNameAreNoticed(t *testing.T) {
	t.Parallel()
	join := joinAt(t, redistest.Shared(t).URL, quick())
	first, second := join("n1").(*Net), join("n1").(*Net)
	second.self.Started = first.self.Started.Add(time.Second)
	for _, n := range []*Net{first, second} {
		n.Start(t.Context())
		defer n.Stop()
	}
	clustertest.Await(t, "the older one notices", func() bool { return first.Health().NameTaken && !second.Health().NameTaken })
}

func TestAnUnusedLeaseIsGivenBack(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	timing := quick()
	timing.Exchange = time.Second
	nodes := clustertest.Start(t, joinAt(t, server.URL, timing), "n1", "n2")
	n := nodes[0].(*Net)
	key := cluster.LimitKey{Tenant: "t1", Agent: "a:1", Tool: "x y"}
	n.Allow(t.Context(), key, 6400, 10*time.Second) // leases 100 and uses one
	used := func() int64 {
		var sum int64
		for _, v := range n.rdb.HGetAll(t.Context(), n.limiter.key(key)).Val() {
			sum += number(v)
		}
		return sum
	}
	if got := used(); got < 100 {
		t.Fatalf("%d calls taken, want a lease of 100", got)
	}
	clustertest.Await(t, "the lease is given back", func() bool { return used() == 1 })
}

func TestAWarmCallNeedsNoExchange(t *testing.T) {
	t.Parallel()
	timing := quick()
	timing.Exchange = time.Second
	n := clustertest.Start(t, joinAt(t, redistest.Shared(t).URL, timing), "n1")[0].(*Net)
	n.Announce(route("t1", "n1", 1))
	clustertest.Await(t, "the route is known", func() bool { _, err := n.Lookup(t.Context(), "t1", "home"); return err == nil })
	clustertest.Await(t, "events have settled", func() bool {
		f, ok := n.routes.cache.Get(instanceKey{"t1", "home"})
		_, _ = n.Lookup(t.Context(), "t1", "home")
		return ok && f.changes == n.routes.stripe(instanceKey{"t1", "home"}).Load()
	})
	key := cluster.LimitKey{Tenant: "t1"}
	n.Allow(t.Context(), key, 1_000_000, time.Hour) // leases 256

	var commands counter
	n.rdb.AddHook(&commands)
	for range 50 {
		if _, err := n.Lookup(commands.mine(t), "t1", "home"); err != nil {
			t.Fatal(err)
		}
		if ok, _ := n.Allow(commands.mine(t), key, 1_000_000, time.Hour); !ok {
			t.Fatal("refused")
		}
	}
	if got := commands.n; got != 0 {
		t.Errorf("%d exchanges on the path of fifty warm calls", got)
	}
}

// counter counts commands that run under a caller's context, as opposed to
// upkeep.
type counter struct{ n int }

type mine struct{}

func (c *counter) mine(t *testing.T) context.Context {
	return context.WithValue(t.Context(), mine{}, true)
}

func (c *counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ctx.Value(mine{}) != nil {
			c.n++
		}
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestKeysStartWithTheTenantAndNeverMeet(t *testing.T) {
	t.Parallel()
	n, err := New(Options{Redis: &redis.Options{Addr: "localhost:1"}, Self: cluster.Node{ID: "n1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	if got := n.key("t1", "route", "home"); got != "siyuan-broker:t1:route:home" {
		t.Errorf("%s", got)
	}
	if a, b := n.key("t:1", "limit", "x", "y"), n.key("t", "limit", "1:x", "y"); a == b || !strings.HasPrefix(a, "siyuan-broker:t%3A1:") {
		t.Errorf("%s and %s", a, b)
	}
}

func TestABadURLIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	_, err := Connect("http://user:geheim@host")
	if err == nil || strings.Contains(err.Error(), "geheim") || !strings.Contains(err.Error(), "rediss://") {
		t.Errorf("%v", err)
	}
}
