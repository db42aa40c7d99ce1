package postgres_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"siyuan-broker/tenants"
)

func purchaseOf(h home, item string, cost int64) tenants.Purchase {
	return tenants.Purchase{AgentID: h.agent, RequestID: tenants.NewID(), ItemID: item, Cost: cost, At: time.Now()}
}

func (f fixture) cat(t *testing.T, tenant tenants.ID) (m tenants.Mascot) {
	t.Helper()
	f.in(t, tenant, func(tx tenants.Tx) (err error) { m, err = tx.Mascot(t.Context()); return err })
	return m
}

func TestCoinsAreEarnedByManyTenantsInOneBatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := f.newHome(t, "a@example.org", home{}), f.newHome(t, "b@example.org", home{})
	at := time.Now().Truncate(time.Millisecond)
	if m := f.cat(t, a.tenant); m != (tenants.Mascot{}) {
		t.Errorf("before the first call: %+v", m)
	}
	for range 2 {
		must(t, f.EarnCoins(t.Context(), []tenants.Earned{
			{Tenant: b.tenant, Coins: 5, Tool: "block", Action: "append", Failed: true, At: at},
			{Tenant: a.tenant, Coins: 2, Tool: "fs", Action: "ls", At: at},
			{Tenant: tenants.NewID(), Coins: 1, At: at},
		}))
	}
	if m := f.cat(t, a.tenant); m.TotalCalls != 4 || m.Balance != 4 || m.Last.Tool != "fs" || m.Last.Status != "success" || m.Last.Seq != 2 || !m.Last.At.Equal(at) {
		t.Errorf("a: %+v", m)
	}
	if m := f.cat(t, b.tenant); m.TotalCalls != 10 || m.Last.Action != "append" || m.Last.Status != "error" || m.Last.Balance != 10 {
		t.Errorf("b: %+v", m)
	}
}

func TestARequestBuysOnceAndNothingIsBoughtOnCredit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	ctx := t.Context()
	buy := func(p tenants.Purchase) (got tenants.Purchase, err error) {
		err = f.In(ctx, h.tenant, func(tx tenants.Tx) (err error) { got, err = tx.Buy(ctx, p); return err })
		return got, err
	}
	if _, err := buy(purchaseOf(h, "milk", 3)); !errors.Is(err, tenants.ErrCoins) {
		t.Errorf("without a coin: %v", err)
	}
	must(t, f.EarnCoins(ctx, []tenants.Earned{{Tenant: h.tenant, Coins: 10, At: time.Now()}}))
	p := purchaseOf(h, "catnip", 5)
	for range 3 {
		if got, err := buy(p); err != nil || got.Balance != 5 || got.TotalCalls != 10 || got.Cost != 5 {
			t.Errorf("%+v %v", got, err)
		}
	}
	other := p
	other.ItemID, other.Cost = "milk", 3
	if _, err := buy(other); !errors.Is(err, tenants.ErrConflict) {
		t.Errorf("the same request with another item: %v", err)
	}
	if m := f.cat(t, h.tenant); m.Balance != 5 || m.Last.ItemID != "catnip" || m.Last.Action != "buy" || m.Last.Seq != 2 {
		t.Errorf("%+v", m)
	}
	must(t, f.EarnCoins(ctx, []tenants.Earned{{Tenant: h.tenant, Coins: 1, Tool: "fs", At: time.Now()}}))
	if m := f.cat(t, h.tenant); m.Last.ItemID != "" || m.Last.Tool != "fs" || m.Balance != 6 {
		t.Errorf("after another call: %+v", m)
	}
	// One request in many copies at once, and many requests at once.
	same := purchaseOf(h, "milk", 3)
	var wg sync.WaitGroup
	var mu sync.Mutex
	bought, refused := 0, 0
	for i := range 12 {
		wg.Go(func() {
			q := same
			if i >= 4 {
				q = purchaseOf(h, "milk", 3)
			}
			_, err := buy(q)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && q != same:
				bought++
			case errors.Is(err, tenants.ErrCoins):
				refused++
			case err != nil:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// Six coins are two purchases of three, whichever they were.
	if m := f.cat(t, h.tenant); m.Balance != 0 || m.TotalCalls != 11 || bought > 2 || bought+refused < 8 {
		t.Errorf("%+v, %d others bought, %d refused", m, bought, refused)
	}
}

func TestOldPurchasesAreForgotten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	ctx := t.Context()
	must(t, f.EarnCoins(ctx, []tenants.Earned{{Tenant: h.tenant, Coins: 20, At: time.Now()}}))
	old := purchaseOf(h, "milk", 3)
	old.At = time.Now().Add(-tenants.PurchasesKept - time.Hour)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must2(t)(tx.Buy(ctx, old))
		must2(t)(tx.Buy(ctx, purchaseOf(h, "milk", 3)))
		got, err := tx.Buy(ctx, old)
		if got.Balance != 11 {
			t.Errorf("the old request left %d coins: it was still known", got.Balance)
		}
		return err
	})
}
