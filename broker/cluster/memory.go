package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Memory is a cluster inside one process: one node in production, several in
// tests. Make one with NewMemory.
type Memory struct {
	now   func() time.Time
	limit *LocalLimiter

	mu     sync.Mutex
	routes map[instanceKey]Route // bounded by the tunnels of the nodes
	nodes  map[string]*member
}

// instanceKey names an instance, tenant first.
type instanceKey struct{ tenant, instance string }

// NewMemory makes a cluster without nodes; now is nil for the real clock.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, limit: NewLocalLimiter(now), routes: map[instanceKey]Route{}, nodes: map[string]*member{}}
}

// Node makes a node, which takes part between Start and Stop.
func (m *Memory) Node(id, address string) Net {
	return &member{Memory: m, self: Node{ID: id, Address: address, Started: m.now()}, fanout: NewFanout()}
}

// member is one node of a Memory.
type member struct {
	*Memory
	self   Node
	fanout *Fanout
	onGone []func(Node)
}

func (n *member) Start(context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[n.self.ID] = n
}

func (n *member) Stop() {
	for _, fn := range n.leave() {
		fn(n.self)
	}
	n.fanout.Close()
}

// leave takes the node out with its routes and returns the hooks of the others.
func (n *member) leave() (hooks []func(Node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nodes[n.self.ID] != n {
		return nil
	}
	delete(n.nodes, n.self.ID)
	for k, r := range n.routes {
		if r.Node == n.self.ID {
			delete(n.routes, k)
			n.tell(changed(r))
		}
	}
	for _, other := range n.nodes {
		hooks = append(hooks, other.onGone...)
	}
	return hooks
}

func (n *member) Health() Health { return Health{Shared: true, Since: n.self.Started} }

func changed(r Route) Event {
	return Event{Kind: RouteChanged, Tenant: r.Tenant, Subject: r.Instance, Epoch: r.Epoch, Node: r.Node}
}

func (n *member) Announce(r Route) {
	k := instanceKey{r.Tenant, r.Instance}
	n.mu.Lock()
	defer n.mu.Unlock()
	old, ok := n.routes[k]
	switch {
	case ok && old.Epoch > r.Epoch:
		n.fanout.Deliver(changed(old))
	case old != r:
		n.routes[k] = r
		n.tell(changed(r))
	}
}

func (n *member) Withdraw(r Route) {
	k := instanceKey{r.Tenant, r.Instance}
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, ok := n.routes[k]; ok && old.Epoch == r.Epoch {
		delete(n.routes, k)
		n.tell(changed(r))
	}
}

func (n *member) Forget(_ context.Context, r Route) error {
	n.Withdraw(r)
	return nil
}

func (n *member) Lookup(_ context.Context, tenant, instance string) (Route, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.routes[instanceKey{tenant, instance}]
	if !ok || n.nodes[r.Node] == nil {
		return Route{}, ErrNoRoute
	}
	return r, nil
}

func (n *member) Allow(ctx context.Context, key LimitKey, limit int, window time.Duration) (bool, time.Duration) {
	return n.limit.Allow(ctx, key, limit, window)
}

func (n *member) Publish(_ context.Context, e Event) error {
	if len(e.Data) > MaxEventData {
		return ErrTooLarge
	}
	e.Node = n.self.ID
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell(e)
	return nil
}

// tell is called with mu held, which keeps events in the order of what they
// tell about; queues do not block.
func (m *Memory) tell(e Event) {
	for _, n := range m.nodes {
		if e.To == "" || e.To == n.self.ID {
			n.fanout.Deliver(e)
		}
	}
}

func (n *member) Subscribe(fn func(Event), kinds ...Kind) func() {
	return n.fanout.Subscribe(fn, kinds...)
}

func (n *member) Nodes() []Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]Node, 0, len(n.nodes))
	for _, other := range n.nodes {
		all = append(all, other.self)
	}
	slices.SortFunc(all, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (n *member) OnGone(fn func(Node)) { n.onGone = append(n.onGone, fn) }
