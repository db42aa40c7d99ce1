package cluster

import (
	"context"
	"errors"
	"log/slog"

	"siyuan-broker/contract"
)

// What Peers.Call may answer besides a result.
var (
	// ErrElsewhere means that the node answered and has no tunnel of the
	// instance; nothing was sent home.
	ErrElsewhere = errors.New("the node has no tunnel of this instance")
	// ErrUnreachable means that the node could not be reached, or not in time;
	// nothing was sent home.
	ErrUnreachable = errors.New("the node cannot be reached")
	// ErrBroken means that the connection failed, or time ran out, when the call
	// may have been on its way home already.
	ErrBroken = errors.New("the connection to the node broke during the call")
)

// Local is this node's own end of the tunnels; *relay.Hub is one.
type Local interface {
	// Has reports whether the instance has a live tunnel here.
	Has(tenant, instance string) bool
	// Call carries a call home. It answers within ctx, in the public vocabulary,
	// and at once without a tunnel.
	Call(ctx context.Context, tenant, instance string, call contract.Call, idempotent bool, progress func(contract.Progress)) contract.Result
	// OpenStream starts a transfer with the home; see relay.Hub.OpenStream.
	OpenStream(ctx context.Context, tenant, instance string, t contract.Transfer, idempotent bool) (contract.Stream, error)
}

// Peers carries calls to other nodes; *peer.Client does.
type Peers interface {
	// Call has the node of a route carry a call home. Errors are ErrElsewhere,
	// ErrUnreachable or ErrBroken; what the other node answered, failures too, is
	// a result. progress is called from the calling goroutine.
	Call(ctx context.Context, to Route, call contract.Call, idempotent bool, progress func(contract.Progress)) (contract.Result, error)
	// OpenStream has the node of a route start a transfer. Errors are those of
	// Call, or the *contract.Error of the other node.
	OpenStream(ctx context.Context, to Route, t contract.Transfer, idempotent bool) (contract.Stream, error)
}

// Relay carries calls to wherever their home is connected. It is the relay of
// the MCP server in a cluster.
type Relay struct {
	Node   string // id of this node
	Local  Local
	Peers  Peers // nil on a single node: no route leads away from it
	Routes Routes
	Log    *slog.Logger
}

// Call carries one call home over this node's tunnel, or over the node that has
// it, and answers within ctx in the public vocabulary.
//
// A call that did not reach a home, or that only reads, is sent once more where
// the home is by then. A write that may have reached it is never repeated and
// ends outcome_unknown.
func (r *Relay) Call(ctx context.Context, tenant, instance string, call contract.Call, idempotent bool, progress func(contract.Progress)) contract.Result {
	var res contract.Result
	for last := false; ; last = true {
		var again bool
		if res, again = r.attempt(ctx, tenant, instance, call, idempotent, progress); !again || last || ctx.Err() != nil {
			break
		}
	}
	if res.Err != nil && res.Err.RequestID == "" {
		res.Err.RequestID = call.RequestID
	}
	return res
}

// attempt sends the call once; again says that another attempt cannot do the
// same thing twice and may find the home elsewhere.
func (r *Relay) attempt(ctx context.Context, tenant, instance string, call contract.Call, idempotent bool, progress func(contract.Progress)) (res contract.Result, again bool) {
	here := func() (contract.Result, bool) {
		res := r.Local.Call(ctx, tenant, instance, call, idempotent, progress)
		return res, moved(res)
	}
	if r.Local.Has(tenant, instance) {
		return here()
	}
	route, err := r.Routes.Lookup(ctx, tenant, instance)
	switch {
	case errors.Is(err, ErrNoRoute):
		res, _ := here() // it knows when the home was last seen
		return res, false
	case err != nil:
		return r.failed(ctx, err, true, idempotent), false
	case route.Node == r.Node: // the tunnel ended just now
		return r.stale(ctx, route), true
	}
	res, err = r.Peers.Call(ctx, route, call, idempotent, progress)
	switch {
	case err == nil:
		return res, moved(res)
	case errors.Is(err, ErrElsewhere):
		return r.stale(ctx, route), true
	case errors.Is(err, ErrUnreachable):
		return r.failed(ctx, err, true, idempotent), true
	}
	return r.failed(ctx, err, false, idempotent), idempotent
}

// moved reports whether a call failed because its tunnel went away before the
// call was sent, or was a read: it may be open on another node by now. A hub
// answers a write so only while nothing of it was sent, and a home cannot answer
// so at all.
func moved(res contract.Result) bool {
	if res.Err == nil {
		return false
	}
	code := contract.CodeOf(res.Err)
	return code == contract.ConnectorOffline || code == contract.TunnelReplaced
}

// stale drops a route that led to no tunnel, so that the next attempt does not
// find it.
func (r *Relay) stale(ctx context.Context, route Route) contract.Result {
	if err := r.Routes.Forget(ctx, route); err != nil {
		r.Log.Debug("forget stale route", "tenant", route.Tenant, "instance", route.Instance, "node", route.Node, "error", err)
	}
	return contract.Result{Err: contract.Fail(contract.ConnectorOffline, "The connector at home is just connecting elsewhere, or gone.").After(1)}
}

// failed is the answer where the way to the home failed; unsent says that the
// call certainly did not reach it.
func (r *Relay) failed(ctx context.Context, err error, unsent, idempotent bool) contract.Result {
	var e *contract.Error
	switch {
	case !unsent && !idempotent:
		e = contract.Fail(contract.OutcomeUnknown, "The connection to the home broke while the write was under way; it may or may not have happened.")
	case ctx.Err() != nil:
		e = contract.Fail(contract.Timeout, "The home did not answer within the time of the call; nothing was changed.")
	default:
		e = contract.Fail(contract.Offline, "The part of this service that the home is connected to cannot be reached right now; nothing was changed.").After(2)
	}
	return contract.Result{Err: e.WithCause(err)}
}
