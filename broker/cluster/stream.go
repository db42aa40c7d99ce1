package cluster

import (
	"context"
	"errors"

	"siyuan-broker/contract"
)

// OpenStream starts a transfer with a home over this node's tunnel, or over the
// node that has it; see relay.Hub.OpenStream. Errors are *contract.Error. One
// that certainly did not reach the home is tried once more where the home is by
// then; what has begun is never repeated.
func (r *Relay) OpenStream(ctx context.Context, tenant, instance string, t contract.Transfer, idempotent bool) (contract.Stream, error) {
	for last := false; ; last = true {
		s, err, again := r.openStream(ctx, tenant, instance, t, idempotent)
		if err == nil {
			return s, nil
		}
		if !again || last || ctx.Err() != nil {
			if err.RequestID == "" {
				err.RequestID = t.RequestID
			}
			return nil, err
		}
	}
}

// openStream tries once; again says that another attempt cannot do the same
// thing twice and may find the home elsewhere.
func (r *Relay) openStream(ctx context.Context, tenant, instance string, t contract.Transfer, idempotent bool) (s contract.Stream, e *contract.Error, again bool) {
	here := func() (contract.Stream, *contract.Error, bool) {
		s, err := r.Local.OpenStream(ctx, tenant, instance, t, idempotent)
		if err != nil {
			e := contract.AsError(err)
			return nil, e, moved(contract.Result{Err: e})
		}
		return s, nil, false
	}
	if r.Local.Has(tenant, instance) {
		return here()
	}
	route, err := r.Routes.Lookup(ctx, tenant, instance)
	switch {
	case errors.Is(err, ErrNoRoute):
		s, e, _ = here() // it knows when the home was last seen
		return s, e, false
	case err != nil:
		return nil, r.failed(ctx, err, true, idempotent).Err, false
	case route.Node == r.Node: // the tunnel ended just now
		return nil, r.stale(ctx, route).Err, true
	}
	s, err = r.Peers.OpenStream(ctx, route, t, idempotent)
	switch {
	case err == nil:
		return s, nil, false
	case errors.As(err, &e):
		return nil, e, moved(contract.Result{Err: e})
	case errors.Is(err, ErrElsewhere):
		return nil, r.stale(ctx, route).Err, true
	}
	unsent := errors.Is(err, ErrUnreachable)
	return nil, r.failed(ctx, err, unsent, idempotent).Err, unsent || idempotent
}
