package transfers

import (
	"context"
	"errors"
	"sync"

	"siyuan-broker/tenants"
)

var errRevoked = errors.New("access was revoked while the transfer ran")

// live knows every running transfer, so that a revocation can end it. Its size is
// bounded by what the relay carries.
type live struct {
	mu  *sync.Mutex
	all map[*running]struct{}
}

type running struct {
	tenant, member, agent, instance tenants.ID
	cancel                          context.CancelCauseFunc
}

func newLive() live { return live{&sync.Mutex{}, map[*running]struct{}{}} }

// track gives a context that ends when the one a transfer is for is revoked.
func (l live) track(ctx context.Context, tenant tenants.ID, t tenants.Transfer) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &running{tenant, t.MemberID, t.AgentID, t.InstanceID, cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[r] = struct{}{}
	return ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, r)
		cancel(nil)
	}
}

func (r *running) revokedBy(rev tenants.Revocation) bool {
	if rev.TenantID != r.tenant {
		return false
	}
	switch rev.Kind {
	case tenants.RevokedTenant:
		return true
	case tenants.RevokedMember:
		return rev.Subject == r.member.String()
	case tenants.RevokedAgent:
		return rev.Subject == r.agent.String()
	case tenants.RevokedInstance:
		return rev.Subject == r.instance.String()
	}
	return false
}

// Revoked ends the transfers of who was revoked.
func (d *Desk) Revoked(rev tenants.Revocation) {
	d.live.mu.Lock()
	defer d.live.mu.Unlock()
	for r := range d.live.all {
		if r.revokedBy(rev) {
			r.cancel(errRevoked)
		}
	}
}

// Close ends all transfers: a node that stops does not wait for them.
func (d *Desk) Close() {
	d.live.mu.Lock()
	defer d.live.mu.Unlock()
	for r := range d.live.all {
		r.cancel(context.Canceled)
	}
}
