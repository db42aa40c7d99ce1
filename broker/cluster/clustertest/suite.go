// Package clustertest holds every cluster.Net to the same behaviour. It is for
// tests only and knows no implementation.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/broker/cluster"
)

// Patience is how long a test waits for what must happen.
const Patience = 30 * time.Second

// Join makes a node of one cluster; the suite starts and stops it.
type Join func(id string) cluster.Net

// Run runs the suite. open makes a new, empty cluster for each test.
func Run(t *testing.T, open func(t *testing.T) Join) {
	for name, test := range map[string]func(*testing.T, Join){
		"every node sees a route":                               everyNodeSeesARoute,
		"an older epoch neither replaces nor removes a newer":   newerEpochStands,
		"a newer epoch takes over":                              newerEpochTakesOver,
		"a withdrawn route is gone everywhere":                  withdrawnIsGone,
		"a forgotten route comes back when announced again":     forgottenComesBack,
		"tenants have their own routes":                         routesPerTenant,
		"the routes of a node that leaves are gone":             leavingTakesRoutes,
		"three nodes pass exactly the limit":                    exactLimit,
		"an uneven load never passes more than the limit":       unevenLimit,
		"a limit is per tenant, agent and tool":                 limitsPerKey,
		"calls are free again after the window":                 windowPasses,
		"events arrive everywhere in the order of their sender": eventsInOrder,
		"a subscriber gets only its kinds":                      kindsAreFiltered,
		"an event for one node reaches no other":                eventForOne,
		"a slow subscriber loses events and is told":            slowSubscriber,
		"an event that is too large is refused":                 largeEvent,
		"nodes know each other":                                 nodesKnowEachOther,
		"stop is safe twice and without start":                  stopTwice,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// Await polls until ok or fails the test.
func Await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(Patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("never happened: %s", what)
		}
	}
}

// Receive takes from a channel or fails the test.
func Receive[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(Patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// Start starts nodes that stop with the test, and waits until each hears the
// others.
func Start(t testing.TB, join Join, ids ...string) []cluster.Net {
	t.Helper()
	nodes := make([]cluster.Net, len(ids))
	for i, id := range ids {
		nodes[i] = join(id)
		nodes[i].Start(t.Context())
		t.Cleanup(nodes[i].Stop)
	}
	Connected(t, nodes...)
	return nodes
}

// Connected waits until every node hears every other.
func Connected(t testing.TB, nodes ...cluster.Net) {
	t.Helper()
	for i, n := range nodes {
		var mu sync.Mutex
		heard := map[string]bool{}
		stop := n.Subscribe(func(e cluster.Event) {
			mu.Lock()
			defer mu.Unlock()
			heard[e.Subject] = true
		}, cluster.SessionEnded)
		Await(t, "the nodes hear each other", func() bool {
			all := true
			for j, other := range nodes {
				probe := fmt.Sprintf("probe-%d-%d", i, j)
				mu.Lock()
				ok := heard[probe]
				mu.Unlock()
				if !ok {
					all = false
					_ = other.Publish(t.Context(), cluster.Event{Kind: cluster.SessionEnded, Tenant: "suite", Subject: probe})
				}
			}
			return all
		})
		stop()
	}
}

// Route is a route of tenant t1's home.
func Route(node string, epoch int64) cluster.Route {
	return cluster.Route{Tenant: "t1", Instance: "home", Node: node, Address: node + ".example:7000", Epoch: epoch}
}

func sees(t testing.TB, n cluster.Net, want cluster.Route) func() bool {
	return func() bool {
		got, err := n.Lookup(t.Context(), want.Tenant, want.Instance)
		return err == nil && got == want
	}
}

func seesNone(t testing.TB, n cluster.Net, tenant, instance string) func() bool {
	return func() bool {
		_, err := n.Lookup(t.Context(), tenant, instance)
		return errors.Is(err, cluster.ErrNoRoute)
	}
}

func everyNodeSeesARoute(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2")
	for _, each := range n {
		if _, err := each.Lookup(t.Context(), "t1", "home"); !errors.Is(err, cluster.ErrNoRoute) {
			t.Fatalf("before: %v", err)
		}
	}
	n[0].Announce(Route("n1", 7))
	for _, each := range n {
		Await(t, "the route is known", sees(t, each, Route("n1", 7)))
	}
}

func newerEpochStands(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2")
	fenced := make(chan cluster.Event, 100)
	defer n[1].Subscribe(func(e cluster.Event) { fenced <- e }, cluster.RouteChanged)()
	n[0].Announce(Route("n1", 5))
	Await(t, "epoch 5 is known", sees(t, n[1], Route("n1", 5)))
	Receive(t, fenced, "the announcement")

	n[1].Announce(Route("n2", 4))
	if e := Receive(t, fenced, "the fence"); e.Tenant != "t1" || e.Subject != "home" || e.Epoch != 5 {
		t.Errorf("the older session's node was told %+v", e)
	}
	n[1].Withdraw(Route("n2", 4))
	if err := n[1].Forget(t.Context(), Route("n2", 4)); err != nil {
		t.Fatal(err)
	}
	n[1].Announce(cluster.Route{Tenant: "t1", Instance: "other", Node: "n2", Epoch: 1}) // sent after the withdrawal
	Await(t, "what follows is known", func() bool { _, err := n[0].Lookup(t.Context(), "t1", "other"); return err == nil })
	for i, each := range n {
		if !sees(t, each, Route("n1", 5))() {
			t.Errorf("node %d lost the newer route", i+1)
		}
	}
}

func newerEpochTakesOver(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2")
	n[0].Announce(Route("n1", 5))
	for _, each := range n {
		Await(t, "epoch 5 is known", sees(t, each, Route("n1", 5)))
	}
	told := make(chan cluster.Event, 100)
	defer n[0].Subscribe(func(e cluster.Event) { told <- e }, cluster.RouteChanged)()
	n[1].Announce(Route("n2", 6))
	if e := Receive(t, told, "the new epoch"); e.Epoch != 6 || e.Node != "n2" || e.Tenant != "t1" || e.Subject != "home" {
		t.Errorf("the older session's node was told %+v", e)
	}
	for _, each := range n {
		Await(t, "epoch 6 is known", sees(t, each, Route("n2", 6)))
	}
	n[0].Withdraw(Route("n1", 5)) // as the fenced session ends
	n[0].Announce(cluster.Route{Tenant: "t1", Instance: "other", Node: "n1", Epoch: 1})
	Await(t, "what follows is known", func() bool { _, err := n[1].Lookup(t.Context(), "t1", "other"); return err == nil })
	if !sees(t, n[1], Route("n2", 6))() {
		t.Error("the end of the older session removed the newer route")
	}
}

func withdrawnIsGone(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2")
	n[0].Announce(Route("n1", 5))
	for _, each := range n {
		Await(t, "the route is known", sees(t, each, Route("n1", 5)))
	}
	n[0].Withdraw(Route("n1", 5))
	for _, each := range n {
		Await(t, "the route is gone", seesNone(t, each, "t1", "home"))
	}
}

func forgottenComesBack(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2")
	n[0].Announce(Route("n1", 5))
	for _, each := range n {
		Await(t, "the route is known", sees(t, each, Route("n1", 5)))
	}
	if err := n[1].Forget(t.Context(), Route("n1", 5)); err != nil {
		t.Fatal(err)
	}
	for _, each := range n {
		Await(t, "the route is gone", seesNone(t, each, "t1", "home"))
	}
	n[0].Announce(Route("n1", 5))
	for _, each := range n {
		Await(t, "the route is back", sees(t, each, Route("n1", 5)))
	}
}

func routesPerTenant(t *testing.T, join Join) {
	n := Start(t, join, "n1")
	a, b := Route("n1", 5), Route("n1", 9)
	a.Tenant, a.Instance = "t:1", "x"
	b.Tenant, b.Instance = "t", "1:x"
	n[0].Announce(a)
	n[0].Announce(b)
	Await(t, "one tenant's route", sees(t, n[0], a))
	Await(t, "the other's", sees(t, n[0], b))
	n[0].Withdraw(a)
	Await(t, "one is gone", seesNone(t, n[0], a.Tenant, a.Instance))
	if !sees(t, n[0], b)() {
		t.Error("another tenant's route went with it")
	}
}

func leavingTakesRoutes(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2")
	n[0].Announce(Route("n1", 5))
	Await(t, "the route is known", sees(t, n[1], Route("n1", 5)))
	n[0].Stop()
	Await(t, "the route is gone", seesNone(t, n[1], "t1", "home"))
}

func exactLimit(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2", "n3")
	key := cluster.LimitKey{Tenant: "t1", Agent: "a1"}
	var passed, retry atomic.Int64
	var calls sync.WaitGroup
	for _, each := range n {
		calls.Go(func() {
			for range 60 {
				switch ok, after := each.Allow(t.Context(), key, 60, time.Minute); {
				case ok:
					passed.Add(1)
				case after <= 0 || after > 66*time.Second: // a window and one of its ten parts
					retry.Store(int64(after))
				}
			}
		})
	}
	calls.Wait()
	if passed.Load() != 60 || retry.Load() != 0 {
		t.Errorf("%d of 180 calls passed, want 60; strange retry after %v", passed.Load(), time.Duration(retry.Load()))
	}
}

func unevenLimit(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2", "n3")
	key := cluster.LimitKey{Tenant: "t1", Agent: "a1", Tool: "block"}
	passed := 0
	for i, count := range []int{100, 20, 700} {
		for range count {
			if ok, _ := n[i].Allow(t.Context(), key, 640, time.Minute); ok {
				passed++
			}
		}
	}
	if passed > 640 || passed < 640-2*10 { // a lease is a sixty-fourth, and two nodes stopped asking
		t.Errorf("%d of 820 calls passed, want at most 640 and hardly less", passed)
	}
}

func limitsPerKey(t *testing.T, join Join) {
	n := Start(t, join, "n1")
	for _, key := range []cluster.LimitKey{{Tenant: "t1"}, {Tenant: "t2"}, {Tenant: "t1", Agent: "a"}, {Tenant: "t1", Tool: "a"}, {Tenant: "t1", Agent: "a", Tool: "b"}} {
		first, _ := n[0].Allow(t.Context(), key, 1, time.Minute)
		second, _ := n[0].Allow(t.Context(), key, 1, time.Minute)
		if !first || second {
			t.Errorf("%+v: passed %v and %v, want one call of two", key, first, second)
		}
	}
	for range 3 {
		if ok, _ := n[0].Allow(t.Context(), cluster.LimitKey{Tenant: "t1"}, 0, time.Minute); !ok {
			t.Error("no limit refused a call")
		}
	}
}

func windowPasses(t *testing.T, join Join) {
	n := Start(t, join, "n1")
	key := cluster.LimitKey{Tenant: "t1"}
	const window = 300 * time.Millisecond
	begin := time.Now()
	for range 3 {
		n[0].Allow(t.Context(), key, 3, window)
	}
	Await(t, "a call passes again", func() bool { ok, _ := n[0].Allow(t.Context(), key, 3, window); return ok })
	if took := time.Since(begin); took < window {
		t.Errorf("four calls within %v passed a limit of three in %v", took, window)
	}
}

func eventsInOrder(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2")
	const count = 200
	var got [2]chan int64
	for i, each := range n {
		got[i] = make(chan int64, count+10)
		defer each.Subscribe(func(e cluster.Event) {
			if e.Kind == cluster.PolicyChanged && e.Node == "n1" && e.Tenant == "t1" && string(e.Data) == "x" {
				got[i] <- e.Epoch
			}
		}, cluster.PolicyChanged)()
	}
	for i := range int64(count) {
		if err := n[0].Publish(t.Context(), cluster.Event{Kind: cluster.PolicyChanged, Tenant: "t1", Epoch: i, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		for want := range int64(count) {
			if e := Receive(t, got[i], "an event"); e != want {
				t.Fatalf("node %d got event %d, want %d", i+1, e, want)
			}
		}
	}
}

func kindsAreFiltered(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2") // two, so that the first subscription is known to stand
	got := make(chan cluster.Kind, 10)
	defer n[0].Subscribe(func(e cluster.Event) { got <- e.Kind }, cluster.Revoked, cluster.Envelope)()
	for _, k := range []cluster.Kind{cluster.PolicyChanged, cluster.Revoked, cluster.SessionEnded, cluster.Envelope} {
		if err := n[0].Publish(t.Context(), cluster.Event{Kind: k, Tenant: "t1"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []cluster.Kind{cluster.Revoked, cluster.Envelope} {
		if k := Receive(t, got, "an event"); k != want {
			t.Errorf("got %s, want %s", k, want)
		}
	}
}

func eventForOne(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2", "n3")
	var got [3]chan string
	for i, each := range n {
		got[i] = make(chan string, 10)
		defer each.Subscribe(func(e cluster.Event) { got[i] <- e.Subject }, cluster.Envelope)()
	}
	for _, e := range []cluster.Event{{To: "n2", Subject: "for n2"}, {To: "n1", Subject: "for n1"}, {Subject: "for all"}} {
		e.Kind, e.Tenant = cluster.Envelope, "t1"
		if err := n[0].Publish(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range [][]string{{"for n1", "for all"}, {"for n2", "for all"}, {"for all"}} {
		seen := map[string]bool{}
		for range want {
			seen[Receive(t, got[i], "an event")] = true
		}
		for _, w := range want {
			if !seen[w] {
				t.Errorf("node %d got %v, want %v", i+1, seen, want)
			}
		}
	}
}

func slowSubscriber(t *testing.T, join Join) {
	n := Start(t, join, "n1", "n2") // two, so that the first subscription is known to stand
	hold, entered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	lost, last := make(chan struct{}, 10), make(chan struct{})
	defer n[0].Subscribe(func(e cluster.Event) {
		once.Do(func() { close(entered) })
		<-hold
		switch {
		case e.Kind == cluster.Lost:
			lost <- struct{}{}
		case e.Subject == "last":
			close(last)
		}
	}, cluster.Revoked)()
	begin := time.Now()
	for range 3000 {
		_ = n[0].Publish(t.Context(), cluster.Event{Kind: cluster.Revoked, Tenant: "t1"})
	}
	<-entered
	_ = n[0].Publish(t.Context(), cluster.Event{Kind: cluster.Revoked, Tenant: "t1", Subject: "last"})
	if took := time.Since(begin); took > Patience {
		t.Errorf("publishing waited %v for a subscriber", took)
	}
	close(hold)
	Receive(t, lost, "the notice of a gap")
	Receive(t, last, "what came after the gap")
}

func largeEvent(t *testing.T, join Join) {
	n := Start(t, join, "n1")
	err := n[0].Publish(t.Context(), cluster.Event{Kind: cluster.Envelope, Tenant: "t1", Data: []byte(strings.Repeat("x", cluster.MaxEventData+1))})
	if !errors.Is(err, cluster.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func nodesKnowEachOther(t *testing.T, join Join) {
	a, b := join("n1"), join("n2")
	gone := make(chan cluster.Node, 10)
	a.OnGone(func(n cluster.Node) { gone <- n })
	for _, n := range []cluster.Net{a, b} {
		n.Start(t.Context())
		t.Cleanup(n.Stop)
	}
	for _, n := range []cluster.Net{a, b} {
		Await(t, "both nodes are listed", func() bool {
			all := n.Nodes()
			return len(all) == 2 && all[0].ID == "n1" && all[1].ID == "n2" && all[1].Address == "n2.example:7000" && !all[1].Started.IsZero()
		})
	}
	b.Stop()
	if n := Receive(t, gone, "the other node's end"); n.ID != "n2" {
		t.Errorf("%+v is gone", n)
	}
	if all := a.Nodes(); len(all) != 1 || all[0].ID != "n1" {
		t.Errorf("left over: %+v", all)
	}
}

func stopTwice(t *testing.T, join Join) {
	join("never started").Stop()
	n := join("n1")
	n.Start(context.Background())
	n.Stop()
	n.Stop()
}
