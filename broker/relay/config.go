package relay

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/link"
)

// ConnectorRecord is what the broker knows about a registered connector.
type ConnectorRecord struct {
	Tenant    string
	Instance  string
	ID        string // random, chosen at registration, unique over all tenants
	PublicKey ed25519.PublicKey
	Revoked   bool
}

// Epoch is what a Directory answers to a connector that becomes the active one of
// its instance.
type Epoch struct {
	Number   int64 // greater than all drawn before for the instance
	TookOver bool  // the one before was drawn by another connector
	// OthersUntil is until when another connector of the instance may have been sent
	// calls, as far as the store knows; zero if there never was one.
	OthersUntil time.Time
}

// ErrUnknownConnector is what a Directory answers for an id it does not have.
var ErrUnknownConnector = errors.New("unknown connector")

// Directory is the store of connectors. Its methods are called when a connector
// comes, goes or reports, never on the path of a call.
type Directory interface {
	// Connector finds a connector by the id in its token. A revoked one is
	// found too, so that it can be told; ErrUnknownConnector otherwise.
	Connector(ctx context.Context, connectorID string) (ConnectorRecord, error)
	// NextEpoch makes this connector the active one of its instance, on all nodes.
	NextEpoch(ctx context.Context, tenant, connector string) (Epoch, error)
	// Status stores what a connector reports about its home.
	Status(ctx context.Context, tenant, instance, connector string, s contract.HomeStatus) error
	// Seen notes that a connector came or went.
	Seen(ctx context.Context, tenant, instance, connector string, at time.Time) error
	// LastSeen is the latest Seen or Status of an instance; zero if never.
	LastSeen(ctx context.Context, tenant, instance string) (time.Time, error)
}

// Timing holds every duration of a session. Both ends notice a dead link within
// PingInterval + 2 PingTimeout of its last byte, which the defaults keep under
// 45 s.
type Timing struct {
	Handshake    time.Duration // from accept to the control stream
	PingInterval time.Duration // at most; each one is drawn from its upper quarter
	PingTimeout  time.Duration // silence after a PING that means death
	Write        time.Duration // one multiplexer write; a slow link is not a dead one, pings find that
	StreamOpen   time.Duration // yamux: acknowledgement of a new stream
	StreamClose  time.Duration // yamux: a half-closed stream is forgotten
	Goodbye      time.Duration // for a last REJECT to leave
	Drain        time.Duration // how long Stop lets connectors move away; 0 on a single node
	ReplyMargin  time.Duration // the home gets this much less than the caller has, so that its answer arrives
	MaxCall      time.Duration // for a call without deadline
	Directory    time.Duration // one query of the Directory
	Bulk         time.Duration // how long to wait for a bulk session before doing without
	BulkAgain    time.Duration // and for how long then
	BulkIdle     time.Duration // an unused bulk session is closed
	BulkWrite    time.Duration // sign of life on a bulk session, where an answer waits behind megabytes
	StreamIdle   time.Duration // a transfer in which nothing moves is given up
	Fence        time.Duration // after a takeover, until other nodes have stopped sending to the connector before; 0 on a single node
}

// mux is what the multiplexer of calls goes by.
func (t Timing) mux() link.Timing {
	return link.Timing{Ping: t.PingInterval, Write: t.Write, StreamOpen: t.StreamOpen, StreamClose: t.StreamClose}
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		Handshake: 10 * time.Second, PingInterval: 18 * time.Second, PingTimeout: 12 * time.Second,
		Write: 30 * time.Second, StreamOpen: time.Minute, StreamClose: 5 * time.Second,
		Goodbye: 500 * time.Millisecond, Drain: 10 * time.Second, ReplyMargin: 100 * time.Millisecond,
		MaxCall: 10 * time.Minute, Directory: 5 * time.Second,
		Bulk: 3 * time.Second, BulkAgain: time.Minute, BulkIdle: 30 * time.Second, BulkWrite: time.Minute, StreamIdle: time.Minute,
	}
}

// Scale multiplies every duration; tests use it to see in milliseconds what
// takes seconds outside.
func (t Timing) Scale(f float64) Timing {
	for _, d := range []*time.Duration{&t.Handshake, &t.PingInterval, &t.PingTimeout, &t.Write, &t.StreamOpen,
		&t.StreamClose, &t.Goodbye, &t.Drain, &t.ReplyMargin, &t.MaxCall, &t.Directory,
		&t.Bulk, &t.BulkAgain, &t.BulkIdle, &t.BulkWrite, &t.StreamIdle, &t.Fence} {
		*d = time.Duration(float64(*d) * f)
	}
	return t
}

// Limits bound what one connector, one tenant and the whole node may hold.
type Limits struct {
	Result     int // bytes of a result or of arguments
	Header     int // bytes of a frame header
	Depth      int // nesting of a result
	Streams    int // calls running at once on a connector
	Queue      int // calls waiting for a stream of a connector; more are rate_limited
	Sessions   int // live sessions on this node
	PerTenant  int // live sessions of one tenant on this node
	Handshakes int // connections that have not yet proven who they are
	Notebooks  int // in a status
	Tokens     int // token ids remembered against replay

	Transfers       int // running at once with a connector; more are rate_limited
	TenantTransfers int // of one tenant on this node
}

// DefaultLimits is what production uses.
func DefaultLimits() Limits {
	return Limits{Result: 8 << 20, Header: 256 << 10, Depth: 256, Streams: 64, Queue: 256,
		Sessions: 20_000, PerTenant: 200, Handshakes: 1024, Notebooks: 5_000, Tokens: 100_000,
		Transfers: 16, TenantTransfers: 64}
}

func (l Limits) frame() wire.Limits {
	return wire.Limits{Frame: l.Result + l.Header + 64, Header: l.Header, Depth: 32}
}

// EventKind says what happened to a session.
type EventKind string

// The kinds of Event.
const (
	SessionUp     EventKind = "up"
	SessionDown   EventKind = "down"
	StatusChanged EventKind = "status"
)

// Event tells the rest of the broker about a session: routes are published and
// snapshots dropped on it.
type Event struct {
	Kind    EventKind
	Session SessionInfo
}

// Config is everything a Server needs. Directory, Node and Audiences are
// required; zero values elsewhere mean the defaults.
type Config struct {
	Node      string
	Audiences []string    // wire.Audience of every public URL
	TLS       *tls.Config // for Serve; nil if only WebSocket is offered
	Directory Directory
	Events    func(Event) // called without locks, must not block; nil: nobody listens
	// RemoteAddr is where a WebSocket comes from, for people to see; behind a
	// trusted proxy that is not the peer. nil: r.RemoteAddr.
	RemoteAddr func(r *http.Request) string
	Logger     *slog.Logger
	Now        func() time.Time
	Rand       io.Reader
	Timing     Timing
	Limits     Limits
}

func (c *Config) complete() error {
	if c.Directory == nil || c.Node == "" || len(c.Audiences) == 0 {
		return fmt.Errorf("relay: Directory, Node and Audiences must be set")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Events == nil {
		c.Events = func(Event) {}
	}
	if c.RemoteAddr == nil {
		c.RemoteAddr = func(r *http.Request) string { return r.RemoteAddr }
	}
	if c.Timing == (Timing{}) {
		c.Timing = DefaultTiming()
	}
	if c.Limits == (Limits{}) {
		c.Limits = DefaultLimits()
	}
	return nil
}
