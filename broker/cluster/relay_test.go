package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/contract"
)

// local answers like a hub: from its tunnels, else connector_offline.
type local struct {
	has   bool
	calls int
	call  func(n int) contract.Result
}

func (l *local) Has(string, string) bool { return l.has }

func (l *local) Call(context.Context, string, string, contract.Call, bool, func(contract.Progress)) contract.Result {
	l.calls++
	if l.call == nil {
		return contract.Result{Err: contract.Fail(contract.ConnectorOffline, "not here")}
	}
	return l.call(l.calls)
}

// OpenStream answers like Call; what is good is no stream at all.
func (l *local) OpenStream(ctx context.Context, tenant, instance string, t contract.Transfer, idempotent bool) (contract.Stream, error) {
	if res := l.Call(ctx, tenant, instance, t.Call, idempotent, nil); res.Err != nil {
		return nil, res.Err
	}
	return nil, nil
}

type peers struct {
	calls []string // nodes
	call  func(to cluster.Route) (contract.Result, error)
}

func (p *peers) OpenStream(ctx context.Context, to cluster.Route, t contract.Transfer, idempotent bool) (contract.Stream, error) {
	res, err := p.Call(ctx, to, t.Call, idempotent, nil)
	if err == nil && res.Err != nil {
		err = res.Err
	}
	return nil, err
}

func (p *peers) Call(_ context.Context, to cluster.Route, _ contract.Call, _ bool, _ func(contract.Progress)) (contract.Result, error) {
	p.calls = append(p.calls, to.Node)
	return p.call(to)
}

var good = contract.Result{Body: []byte(`{"ok":true}`)}

func failedWith(code contract.Code) contract.Result {
	return contract.Result{Err: contract.Fail(code, "as told")}
}

func TestRelaying(t *testing.T) {
	t.Parallel()
	broken := func(cluster.Route) (contract.Result, error) {
		return contract.Result{}, fmt.Errorf("n2: %w", cluster.ErrBroken)
	}
	for name, c := range map[string]struct {
		write  bool
		local  local
		routes []cluster.Route // announced in turn, each when the one before is forgotten or called
		lookup error
		peer   func(to cluster.Route) (contract.Result, error)
		want   contract.Code // "": the good result
		asked  int           // calls of peers
		home   int           // calls of local
	}{
		"a home on this node is not looked up": {local: local{has: true, call: func(int) contract.Result { return good }}, lookup: errors.New("never asked"), home: 1},
		"a home elsewhere is called there":     {routes: routes("n2"), peer: answer(good), asked: 1},
		"what the home says is passed on":      {routes: routes("n2"), peer: answer(failedWith(contract.NotFound)), want: contract.NotFound, asked: 1},
		"a home nowhere is offline":            {want: contract.ConnectorOffline, home: 1},
		"a known outage is no offline home":    {lookup: cluster.ErrUnavailable, want: contract.Offline},

		"a read follows a home that moved":        {routes: routes("n2", "n3"), peer: only("n3", cluster.ErrElsewhere), asked: 2},
		"a write follows a home that moved":       {write: true, routes: routes("n2", "n3"), peer: only("n3", cluster.ErrElsewhere), asked: 2},
		"a home that moves for ever is offline":   {routes: routes("n2", "n3", "n4"), peer: only("n9", cluster.ErrElsewhere), want: contract.ConnectorOffline, asked: 2},
		"a stale route to this node is forgotten": {routes: routes("n1", "n2"), peer: answer(good), asked: 1},

		"an unreachable node is tried once more":      {write: true, routes: routes("n2"), peer: fails(cluster.ErrUnreachable), want: contract.Offline, asked: 2},
		"a read whose link broke is tried once more":  {routes: routes("n2"), peer: broken, want: contract.Offline, asked: 2},
		"a write whose link broke is never repeated":  {write: true, routes: routes("n2"), peer: broken, want: contract.OutcomeUnknown, asked: 1},
		"a read whose tunnel was replaced goes again": {routes: routes("n2"), peer: answer(failedWith(contract.TunnelReplaced)), want: contract.TunnelReplaced, asked: 2},
		"a write that a hub did not send goes again":  {write: true, routes: routes("n2"), peer: answer(failedWith(contract.ConnectorOffline)), want: contract.ConnectorOffline, asked: 2},
		"an unknown outcome stays unknown":            {routes: routes("n2"), peer: answer(failedWith(contract.OutcomeUnknown)), want: contract.OutcomeUnknown, asked: 1},
		"a read follows a tunnel that left this node": {local: local{has: true, call: func(int) contract.Result { return failedWith(contract.TunnelReplaced) }}, want: contract.TunnelReplaced, home: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, forStream := &peers{call: c.peer}, c.local
			r := &cluster.Relay{Node: "n1", Local: &c.local, Peers: p, Routes: &book{routes: c.routes, err: c.lookup}, Log: slog.New(slog.DiscardHandler)}
			res := r.Call(t.Context(), "t1", "home", contract.Call{RequestID: "r-1", Grant: &contract.Grant{}}, !c.write, nil)
			if got := contract.CodeOf(asError(res.Err)); got != c.want || c.want == "" && string(res.Body) != string(good.Body) {
				t.Errorf("got %v %s, want %q", res.Err, res.Body, c.want)
			}
			if res.Err != nil && res.Err.RequestID != "r-1" {
				t.Errorf("error names request %q", res.Err.RequestID)
			}
			if len(p.calls) != c.asked || c.local.calls != c.home {
				t.Errorf("asked nodes %v and this one %d times, want %d and %d", p.calls, c.local.calls, c.asked, c.home)
			}

			// A transfer that has not begun goes the same ways.
			p.calls, r.Local, r.Routes = nil, &forStream, &book{routes: c.routes, err: c.lookup}
			_, err := r.OpenStream(t.Context(), "t1", "home", contract.Transfer{Call: contract.Call{RequestID: "r-1", Grant: &contract.Grant{}}}, !c.write)
			if got := contract.CodeOf(err); got != c.want {
				t.Errorf("transfer: got %v, want %q", err, c.want)
			}
			if e, ok := errors.AsType[*contract.Error](err); ok && e.RequestID != "r-1" {
				t.Errorf("transfer: error names request %q", e.RequestID)
			}
			if len(p.calls) != c.asked || forStream.calls != c.home {
				t.Errorf("transfer: asked nodes %v and this one %d times, want %d and %d", p.calls, forStream.calls, c.asked, c.home)
			}
		})
	}
}

func TestACallWithoutTimeLeftIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, idempotent := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		p := &peers{call: func(cluster.Route) (contract.Result, error) {
			cancel()
			return contract.Result{}, fmt.Errorf("%w: %w", cluster.ErrBroken, context.Canceled)
		}}
		r := &cluster.Relay{Node: "n1", Local: &local{}, Peers: p, Routes: &book{routes: routes("n2")}, Log: slog.New(slog.DiscardHandler)}
		want := contract.OutcomeUnknown
		if idempotent {
			want = contract.Timeout
		}
		if res := r.Call(ctx, "t1", "home", contract.Call{}, idempotent, nil); contract.CodeOf(res.Err) != want || len(p.calls) != 1 {
			t.Errorf("read %v: %v after %d attempts, want %s after one", idempotent, res.Err, len(p.calls), want)
		}
	}
}

// asError avoids an interface that holds a nil pointer.
func asError(e *contract.Error) error {
	if e == nil {
		return nil
	}
	return e
}

func answer(r contract.Result) func(cluster.Route) (contract.Result, error) {
	return func(cluster.Route) (contract.Result, error) { return r, nil }
}

func fails(err error) func(cluster.Route) (contract.Result, error) {
	return func(cluster.Route) (contract.Result, error) { return contract.Result{}, err }
}

func only(node string, err error) func(cluster.Route) (contract.Result, error) {
	return func(to cluster.Route) (contract.Result, error) {
		if to.Node == node {
			return good, nil
		}
		return contract.Result{}, err
	}
}

func routes(nodes ...string) []cluster.Route {
	var all []cluster.Route
	for i, n := range nodes {
		all = append(all, cluster.Route{Tenant: "t1", Instance: "home", Node: n, Epoch: int64(i + 1)})
	}
	return all
}

// book is a Routes whose next route shows when the first is forgotten.
type book struct {
	cluster.Routes
	routes []cluster.Route
	err    error
}

func (b *book) Lookup(context.Context, string, string) (cluster.Route, error) {
	switch {
	case b.err != nil:
		return cluster.Route{}, b.err
	case len(b.routes) == 0:
		return cluster.Route{}, cluster.ErrNoRoute
	}
	return b.routes[0], nil
}

func (b *book) Forget(_ context.Context, r cluster.Route) error {
	if len(b.routes) > 0 && b.routes[0] == r {
		b.routes = b.routes[1:]
	}
	return nil
}
