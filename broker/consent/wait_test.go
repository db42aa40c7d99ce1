package consent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/consent"
	"siyuan-broker/tenants"
)

// waiter is a desk on a node of its own, without a store: waiting needs none.
func waiter(t *testing.T, both *cluster.Memory, id string) (*consent.Desk, cluster.Net) {
	n := both.Node(id, "")
	n.Start(t.Context())
	d := consent.New(consent.Config{Bus: n})
	d.Start()
	t.Cleanup(func() {
		d.Stop()
		n.Stop()
	})
	return d, n
}

// The clock of the bubble moves only while everything is idle, so a wait that
// took no time was woken.
func TestADecisionOnOneNodeWakesTheCallOnAnotherAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		both := cluster.NewMemory(nil)
		_, one := waiter(t, both, "one")
		two, _ := waiter(t, both, "two")
		tenant, approval := tenants.NewID(), tenants.NewID()
		began, ended := time.Now(), make(chan time.Time, 1)
		go func() { // received below
			w, ok := two.Watch(tenant, approval)
			if !ok {
				t.Error("it did not wait")
				return
			}
			defer w.End()
			w.Wait(t.Context(), time.Minute)
			ended <- time.Now()
		}()
		decided := func(tenant, approval string) {
			synctest.Wait()
			must(t, one.Publish(t.Context(), cluster.Event{Kind: cluster.ApprovalDecided, Tenant: tenant, Subject: approval}))
			synctest.Wait()
		}
		decided(tenant.String(), tenants.NewID().String())
		decided(tenants.NewID().String(), approval.String())
		decided("nonsense", approval.String())
		if len(ended) != 0 {
			t.Fatal("it was woken by what does not concern it")
		}
		decided(tenant.String(), approval.String())
		if at := <-ended; !at.Equal(began) {
			t.Errorf("it was told only after %v", at.Sub(began))
		}
	})
}

func TestAWaitLooksAgainByItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ most, within, want time.Duration }{
		"nothing comes":       {time.Minute, time.Hour, 5 * time.Second},
		"less was asked for":  {2 * time.Second, time.Hour, 2 * time.Second},
		"the client is gone":  {time.Minute, time.Second, time.Second},
		"there is no time":    {0, time.Hour, 0},
		"it is over already":  {-time.Second, time.Hour, 0},
		"both end just there": {time.Second, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, _ := waiter(t, cluster.NewMemory(nil), "one")
				ctx, cancel := context.WithTimeout(t.Context(), c.within)
				defer cancel()
				began := time.Now()
				w, _ := d.Watch(tenants.NewID(), tenants.NewID())
				defer w.End()
				if w.Wait(ctx, c.most); time.Since(began) != c.want {
					t.Errorf("after %v, want %v", time.Since(began), c.want)
				}
			})
		})
	}
}

// What is decided after the watch began and before it waits, as while the caller
// looks into the store, wakes it all the same; once.
func TestADecisionBeforeTheWaitIsNotMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		both := cluster.NewMemory(nil)
		_, one := waiter(t, both, "one")
		two, _ := waiter(t, both, "two")
		tenant, approval := tenants.NewID(), tenants.NewID()
		w, _ := two.Watch(tenant, approval)
		defer w.End()
		must(t, one.Publish(t.Context(), cluster.Event{Kind: cluster.ApprovalDecided, Tenant: tenant.String(), Subject: approval.String()}))
		synctest.Wait()
		for _, want := range []time.Duration{0, 5 * time.Second} {
			began := time.Now()
			if w.Wait(t.Context(), time.Minute); time.Since(began) != want {
				t.Errorf("it was told after %v, want %v", time.Since(began), want)
			}
		}
	})
}

func TestOneTenantCannotTakeAllPlacesToWait(t *testing.T) {
	t.Parallel()
	d, _ := waiter(t, cluster.NewMemory(nil), "one")
	busy, quiet := tenants.NewID(), tenants.NewID()
	var waiting []*consent.Watch
	for range 100 {
		if w, ok := d.Watch(busy, tenants.NewID()); ok {
			waiting = append(waiting, w)
		}
	}
	if len(waiting) != 64 {
		t.Errorf("%d of 100 wait, want 64", len(waiting))
	}
	w, ok := d.Watch(quiet, tenants.NewID())
	if !ok {
		t.Fatal("another tenant is refused")
	}
	w.End()
	for _, w := range waiting {
		w.End()
	}
	if w, ok = d.Watch(busy, tenants.NewID()); !ok {
		t.Fatal("a place is lost after the waits")
	}
	w.End()
}
