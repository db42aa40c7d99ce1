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
			if !two.Wait(t.Context(), tenant, approval, time.Minute) {
				t.Error("it did not wait")
			}
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
				if ok := d.Wait(ctx, tenants.NewID(), tenants.NewID(), c.most); !ok || time.Since(began) != c.want {
					t.Errorf("%v after %v, want %v", ok, time.Since(began), c.want)
				}
			})
		})
	}
}

func TestOneTenantCannotTakeAllPlacesToWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _ := waiter(t, cluster.NewMemory(nil), "one")
		busy, quiet := tenants.NewID(), tenants.NewID()
		refused := make(chan bool, 100)
		for range 100 { // received below
			go func() { refused <- !d.Wait(t.Context(), busy, tenants.NewID(), time.Second) }()
		}
		synctest.Wait()
		if len(refused) != 36 { // 64 wait
			t.Errorf("%d of 100 were refused, want 36", len(refused))
		}
		if !d.Wait(t.Context(), quiet, tenants.NewID(), 0) {
			t.Error("another tenant is refused")
		}
		for range 100 {
			<-refused
		}
		if !d.Wait(t.Context(), busy, tenants.NewID(), 0) {
			t.Error("a place is lost after the waits")
		}
	})
}
