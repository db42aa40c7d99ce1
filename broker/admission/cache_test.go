package admission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func newTestCache(t *testing.T, l Loader, size int) *Cache {
	t.Helper()
	c, err := NewCache(l, CacheOptions{Catalogue: catalogue, Size: size})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get(t *testing.T, c *Cache, tenant tenants.ID) *Snapshot {
	t.Helper()
	s, err := c.Get(t.Context(), tenant, agent)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func of(tenant tenants.ID, name string) *tenants.Snapshot {
	f := facts()
	f.TenantID, f.Agent.Name = tenant, name
	return f
}

func TestASnapshotIsLoadedOnceIn30Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(facts())
		c := newTestCache(t, l, 0)
		get(t, c, tenantA)
		time.Sleep(30*time.Second - time.Nanosecond)
		get(t, c, tenantA)
		if l.count() != 1 {
			t.Errorf("%d loads within the TTL", l.count())
		}
		time.Sleep(time.Nanosecond)
		get(t, c, tenantA)
		if l.count() != 2 {
			t.Errorf("%d loads after the TTL, want 2", l.count())
		}
	})
}

func TestEqualAgentIDsOfTwoTenantsAreTwoPrincipals(t *testing.T) {
	t.Parallel()
	c := newTestCache(t, newLoader(of(tenantA, "of A"), of(tenantB, "of B")), 0)
	for range 2 {
		if a, b := get(t, c, tenantA), get(t, c, tenantB); a.Principal.AgentName != "of A" || b.Principal.AgentName != "of B" {
			t.Fatalf("A got %q, B got %q", a.Principal.AgentName, b.Principal.AgentName)
		}
	}
}

func TestASnapshotOfAnotherTenantIsNotBelieved(t *testing.T) {
	t.Parallel()
	l := newLoader()
	l.known[[2]tenants.ID{tenantA, agent}] = of(tenantB, "of B")
	if s, err := newTestCache(t, l, 0).Get(t.Context(), tenantA, agent); err == nil {
		t.Errorf("got %+v", s.Principal)
	}
}

func TestConcurrentLoadsAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(facts())
		l.gate, l.read = make(chan struct{}), make(chan struct{}, 1)
		c := newTestCache(t, l, 0)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { get(t, c, tenantA) })
		}
		synctest.Wait()
		close(l.gate)
		wg.Wait()
		if l.count() != 1 {
			t.Errorf("%d loads for 50 callers", l.count())
		}
	})
}

func TestACallerThatLeavesDoesNotSpoilTheLoadForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(facts())
		l.gate, l.read = make(chan struct{}), make(chan struct{}, 1)
		c := newTestCache(t, l, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Get(ctx, tenantA, agent); !errors.Is(err, context.Canceled) {
				t.Errorf("the one that left: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() { get(t, c, tenantA) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(l.gate)
		wg.Wait()
		c.Wait()
	})
}

func TestAChangeDropsItsTenantAndTellsTheHooks(t *testing.T) {
	t.Parallel()
	for name, push := range map[string]func(*Cache){
		"policy push":  func(c *Cache) { c.Notify(tenants.Event{Policy: tenantA, Version: 8}) },
		"agent":        func(c *Cache) { c.Revoked(tenants.Revocation{TenantID: tenantA, Kind: tenants.RevokedAgent}) },
		"share":        func(c *Cache) { c.Revoked(tenants.Revocation{TenantID: tenantA, Kind: tenants.RevokedShare}) },
		"whole tenant": func(c *Cache) { c.Revoked(tenants.Revocation{TenantID: tenantA, Kind: tenants.RevokedTenant}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoader(of(tenantA, "before"), of(tenantB, "other"))
			c := newTestCache(t, l, 0)
			var told []tenants.ID
			c.OnDropped(func(id tenants.ID) { told = append(told, id) })
			get(t, c, tenantA)
			get(t, c, tenantB)
			l.put(of(tenantA, "after"))
			push(c)
			if got := get(t, c, tenantA).Principal.AgentName; got != "after" {
				t.Errorf("got the snapshot of %s", got)
			}
			get(t, c, tenantB)
			if l.count() != 3 {
				t.Errorf("%d loads, want 3: the other tenant keeps its own", l.count())
			}
			if len(told) != 1 || told[0] != tenantA {
				t.Errorf("hooks heard of %v", told)
			}
		})
	}
}

func TestALoadThatAChangeOvertookIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(of(tenantA, "before"))
		l.gate, l.read = make(chan struct{}), make(chan struct{}, 2)
		c := newTestCache(t, l, 0)
		var wg sync.WaitGroup
		wg.Go(func() { get(t, c, tenantA) }) // has read "before" and waits
		synctest.Wait()
		l.put(of(tenantA, "after"))
		c.Drop(tenantA)
		close(l.gate)
		wg.Wait()
		if got := get(t, c, tenantA).Principal.AgentName; got != "after" {
			t.Errorf("used the snapshot of %s", got)
		}
	})
}

func TestAStoreThatIsAwayLeavesWhatIsKnownForItsTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(facts())
		c := newTestCache(t, l, 0)
		get(t, c, tenantA)
		l.setFail(errors.New("connection refused"))
		c.Notify(tenants.Event{Lost: true}) // everything is doubtful, but nothing newer can be had
		time.Sleep(29 * time.Second)
		get(t, c, tenantA)
		time.Sleep(time.Second)
		if _, err := c.Get(t.Context(), tenantA, agent); !errors.Is(err, ErrUnavailable) {
			t.Errorf("after the TTL: %v, want ErrUnavailable", err)
		}
		l.setFail(nil)
		get(t, c, tenantA)
	})
}

func TestLostPushesMakeEverySnapshotLoadAgain(t *testing.T) {
	t.Parallel()
	l := newLoader(of(tenantA, "before"))
	c := newTestCache(t, l, 0)
	var told []tenants.ID
	c.OnDropped(func(id tenants.ID) { told = append(told, id) })
	get(t, c, tenantA)
	l.put(of(tenantA, "after"))
	c.Notify(tenants.Event{Lost: true})
	if got := get(t, c, tenantA).Principal.AgentName; got != "after" {
		t.Errorf("got the snapshot of %s", got)
	}
	get(t, c, tenantA)
	if l.count() != 2 {
		t.Errorf("%d loads, want 2", l.count())
	}
	if len(told) != 1 || told[0] != (tenants.ID{}) {
		t.Errorf("hooks heard of %v, want the zero id", told)
	}
}

func TestAnAgentThatIsGoneIsNotServedFromMemory(t *testing.T) {
	t.Parallel()
	l := newLoader(facts())
	c := newTestCache(t, l, 0)
	get(t, c, tenantA)
	l.setFail(tenants.ErrNotFound)
	c.Notify(tenants.Event{Lost: true})
	if _, err := c.Get(t.Context(), tenantA, agent); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	l := newLoader()
	c := newTestCache(t, l, 3)
	for range 10 {
		f := facts()
		f.Agent.ID = tenants.NewID()
		l.put(f)
		if _, err := c.Get(t.Context(), tenantA, f.Agent.ID); err != nil {
			t.Fatal(err)
		}
	}
	if c.entries.Len() != 3 {
		t.Errorf("%d entries, want 3", c.entries.Len())
	}
}

func TestGetIsSafeAgainstConcurrentChanges(t *testing.T) {
	t.Parallel()
	l := newLoader(of(tenantA, "x"), of(tenantB, "y"))
	c := newTestCache(t, l, 0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if s := get(t, c, tenantB); s.Granted(work) != contract.ReadWriteDelete || s.Grant(time.Now()) == nil {
					t.Error("torn snapshot")
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				c.Drop(tenantB)
			}
		})
	}
	wg.Wait()
}
