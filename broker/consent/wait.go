package consent

import (
	"context"
	"time"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/tenants"

	"github.com/google/uuid"
)

// Wait returns when a decision about an approval may have been made, on any node,
// or after d or when ctx ends. It reports false at once where too many wait
// already.
func (d *Desk) Wait(ctx context.Context, tenant, approval tenants.ID, most time.Duration) bool {
	key := waitKey{tenant, approval}
	woken := make(chan struct{}, 1) // one wake-up is enough
	if !d.join(key, woken) {
		return false
	}
	defer d.leave(key, woken)
	timer := time.NewTimer(min(most, lookAgain))
	defer timer.Stop()
	select {
	case <-woken:
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

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
