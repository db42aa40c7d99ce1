package consent

import (
	"context"
	"time"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/tenants"

	"github.com/google/uuid"
)

// Watch hears of decisions about one approval, on any node, from the moment it is
// made: who watches first and then looks misses none.
type Watch struct {
	d     *Desk
	key   waitKey
	woken chan struct{} // one wake-up is enough
}

// Watch begins to hear about an approval, until End. It reports false where too
// many calls wait already.
func (d *Desk) Watch(tenant, approval tenants.ID) (*Watch, bool) {
	w := &Watch{d: d, key: waitKey{tenant, approval}, woken: make(chan struct{}, 1)}
	return w, d.join(w.key, w.woken)
}

// Wait returns when a decision may have been made since the Watch was, or since
// the Wait before; else after most, or when ctx ends, or when it is time to look
// all the same.
func (w *Watch) Wait(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(min(most, lookAgain))
	defer timer.Stop()
	select {
	case <-w.woken:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// End ends it; once, and only where Watch reported true.
func (w *Watch) End() { w.d.leave(w.key, w.woken) }

func (d *Desk) join(key waitKey, woken chan struct{}) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inAll >= waitsInAll || d.tenants[key.tenant] >= waitsPerTenant {
		return false
	}
	if d.waits[key] == nil {
		d.waits[key] = map[chan struct{}]bool{}
	}
	d.waits[key][woken] = true
	d.tenants[key.tenant]++
	d.inAll++
	return true
}

func (d *Desk) leave(key waitKey, woken chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waits[key], woken)
	if len(d.waits[key]) == 0 {
		delete(d.waits, key)
	}
	if d.tenants[key.tenant]--; d.tenants[key.tenant] == 0 {
		delete(d.tenants, key.tenant)
	}
	d.inAll--
}

// heard wakes the calls that wait for what an event is about; after a gap, all.
func (d *Desk) heard(e cluster.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.Kind == cluster.Lost {
		for key := range d.waits {
			d.wake(key)
		}
		return
	}
	tenant, err := uuid.Parse(e.Tenant)
	if err != nil {
		return
	}
	if approval, err := uuid.Parse(e.Subject); err == nil {
		d.wake(waitKey{tenant, approval})
	}
}

func (d *Desk) wake(key waitKey) {
	for woken := range d.waits[key] {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}
