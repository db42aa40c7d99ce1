package cluster

import (
	"context"
	"errors"
	"time"
)

// What the parts of a cluster may answer besides success.
var (
	// ErrNoRoute means that no live node announces the instance.
	ErrNoRoute = errors.New("no node holds this instance")
	// ErrUnavailable means that the shared state cannot be reached right now. It
	// is returned within the budget of one exchange, and at once while the
	// outage is known.
	ErrUnavailable = errors.New("the shared state of the nodes cannot be reached")
	// ErrTooLarge means that an event carries more than MaxEventData.
	ErrTooLarge = errors.New("event larger than allowed")
)

// Route says where the live tunnel of an instance ends.
type Route struct {
	Tenant, Instance string
	Node             string // id of the node
	Address          string // host:port of its peer listener
	Epoch            int64  // of the session; the newest of an instance counts
}

// Routes maps instances to nodes. Of two routes of one instance the one with
// the greater epoch stands: a smaller epoch neither replaces nor removes it.
type Routes interface {
	// Announce makes r known to every node and keeps it known until Withdraw,
	// also over an outage. It does not block. Where a newer epoch is known
	// already, r is dropped and this node's subscribers get a RouteChanged with
	// that epoch.
	Announce(r Route)
	// Withdraw ends what Announce began, because the session ended. It does not
	// block.
	Withdraw(r Route)
	// Lookup finds the route of an instance on a node that is alive. It seldom
	// needs an exchange: answers are kept until an event says otherwise.
	// ErrNoRoute, ErrUnavailable, or the context's error.
	Lookup(ctx context.Context, tenant, instance string) (Route, error)
	// Forget drops a route whose node said that the instance is not there; a
	// newer one stays, and so does this one if its node announces it again.
	Forget(ctx context.Context, r Route) error
}

// LimitKey names a counter. Agent and Tool are empty for the wider ones.
type LimitKey struct{ Tenant, Agent, Tool string }

// Limiter counts calls over all nodes.
type Limiter interface {
	// Allow takes one of limit calls in any window of that length. When none is
	// left it says after how long it is worth asking again. A limit below one
	// means that there is none. It always answers: while the shared counter is
	// away, from a smaller limit of this node's own.
	Allow(ctx context.Context, key LimitKey, limit int, window time.Duration) (ok bool, retryAfter time.Duration)
}

// Kind says what an Event is about.
type Kind string

// The kinds of Event.
const (
	Lost          Kind = "lost"           // events were missed: whatever was cached may be old
	Revoked       Kind = "revoked"        // Tenant: something was taken back, read the feed now
	PolicyChanged Kind = "policy_changed" // Tenant: its rules changed
	RouteChanged  Kind = "route_changed"  // Tenant, Subject: the instance; Epoch: sessions before it are over
	SessionEnded  Kind = "session_ended"  // Tenant, Subject: id of an MCP session
	Envelope      Kind = "envelope"       // Tenant, Data: for one subsystem of the node in To
	// ApprovalDecided: Tenant, Subject: id of the approval that a person answered.
	ApprovalDecided Kind = "approval_decided"
	LimitLow        Kind = "limit_low" // Tenant, Subject: a counter is nearly used up
)

// MaxEventData is the size of an Event's Data, in bytes.
const MaxEventData = 64 << 10

// Event is a small message to the nodes.
type Event struct {
	Kind    Kind   `json:"kind"`
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"`
	Epoch   int64  `json:"epoch,omitempty"`
	Node    string `json:"node,omitempty"` // the sender; filled in by Publish
	To      string `json:"to,omitempty"`   // the only node that gets it; empty: all
	Data    []byte `json:"data,omitempty"`
}

// Bus carries events to every node, the sender included, at most once. The
// events of one sender arrive in their order.
type Bus interface {
	// Publish sends an event. Subscribers of this node get it even when the
	// others cannot be reached, which ErrUnavailable tells. ErrTooLarge.
	Publish(ctx context.Context, e Event) error
	// Subscribe calls fn for every event of the given kinds (none given: all),
	// one at a time. Lost comes whatever the kinds, after a gap and before the
	// events that follow it; a subscriber that falls too far behind makes a gap
	// of its own. The returned function ends it and waits for fn, so fn must
	// not call it.
	Subscribe(fn func(Event), kinds ...Kind) (stop func())
}

// Node is one broker process.
type Node struct {
	ID      string
	Address string // host:port of its peer listener
	Started time.Time
}

// Nodes knows who is there. A node that stops without a word is gone after
// seconds.
type Nodes interface {
	// Nodes lists the live nodes, this one included, by id.
	Nodes() []Node
	// OnGone adds a hook for nodes that went away. It must not block. Add hooks
	// before Start.
	OnGone(fn func(Node))
}

// Health says how well a node is connected to the others.
type Health struct {
	Shared       bool      // the shared state answers; always, for a single node
	Since        time.Time // of the last change of Shared
	LocalLimits  bool      // limits are this node's own and smaller, because the shared ones are away
	LocalAnswers int64     // decisions made that way so far
	Outages      int64
	Gaps         int64 // times events were missed
	NameTaken    bool  // another process uses the id of this node
}

// Net is a node's share of the cluster.
type Net interface {
	Routes
	Limiter
	Bus
	Nodes
	// Start joins the cluster. An outage is no error: the node joins later.
	Start(ctx context.Context)
	// Stop leaves it, withdrawing what was announced, and waits for everything
	// this node started. It may be called twice, and without Start.
	Stop()
	// Health is the state now.
	Health() Health
}
