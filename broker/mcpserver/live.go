package mcpserver

import (
	"context"
	"errors"
	"sync"

	"siyuan-broker/broker/token"
	"siyuan-broker/tenants"
)

var errRevoked = errors.New("access was revoked while the request ran")

// live knows every running request and call, so that a revocation can end them.
// Its size is bounded by what the HTTP server accepts.
type live struct {
	mu  *sync.Mutex
	all map[*liveRequest]struct{}
}

type liveRequest struct {
	claims   token.Claims
	instance tenants.ID // zero while not known: then any instance of the tenant matches
	session  *session   // legacy session it runs in, if any: this one, not another of the same id that takes its place
	cancel   context.CancelCauseFunc
	table    live
}

func newLive() live { return live{&sync.Mutex{}, map[*liveRequest]struct{}{}} }

// track gives a context that ends when the principal is revoked. The caller
// must call end.
func (l live) track(ctx context.Context, c token.Claims) (context.Context, *liveRequest) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &liveRequest{claims: c, cancel: cancel, table: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[r] = struct{}{}
	return ctx, r
}

// cut ends all requests that match.
func (l live) cut(match func(*liveRequest) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.all {
		if match(r) {
			r.cancel(errRevoked)
		}
	}
}

func (r *liveRequest) on(instance tenants.ID) {
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	r.instance = instance
}

func (r *liveRequest) in(session *session) {
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	r.session = session
}

// stop ends what runs, as the caller wished.
func (r *liveRequest) stop() { r.cancel(context.Canceled) }

func (r *liveRequest) end() {
	r.table.mu.Lock()
	delete(r.table.all, r)
	r.table.mu.Unlock()
	r.cancel(context.Canceled)
}

// revokedBy reports whether a revocation ends the request. The table's lock is
// held.
func (r *liveRequest) revokedBy(rev tenants.Revocation) bool {
	if rev.Kind == tenants.RevokedToken {
		return rev.TenantID == r.claims.Tenant && rev.Subject == r.claims.ID
	}
	return ends(rev, r.claims.Tenant, r.claims.Member, r.claims.Agent, r.instance)
}

// ends reports whether a revocation takes back a principal as a whole. Shares
// and connectors do not: snapshots and tunnels tell.
func ends(rev tenants.Revocation, tenant, member, agent, instance tenants.ID) bool {
	if rev.TenantID != tenant {
		return false
	}
	switch rev.Kind {
	case tenants.RevokedTenant:
		return true
	case tenants.RevokedMember:
		return rev.Subject == member.String()
	case tenants.RevokedAgent:
		return rev.Subject == agent.String()
	case tenants.RevokedInstance:
		return instance == tenants.ID{} || rev.Subject == instance.String()
	}
	return false
}
