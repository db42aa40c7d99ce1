package pairing

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"siyuan-broker/contract/wire"
	"siyuan-broker/tenants"
)

// Store is the part of tenants.Store that pairing uses.
type Store interface {
	tenants.PairingStore
	In(ctx context.Context, tenant tenants.ID, fn func(tenants.Tx) error) error
	ConnectorByFingerprint(ctx context.Context, fingerprint string) (tenants.Connector, error)
	MembershipsOf(ctx context.Context, user tenants.ID) ([]tenants.Membership, error)
}

// Limits bound what strangers and members may cause.
type Limits struct {
	Open       tenants.PairingBounds // pairings that wait for a person
	Pair       int                   // requests in a minute from one origin that begin a pairing
	PairAll    int                   // and from all
	Poll       int                   // polls and withdrawals in a minute from one origin
	Guess      int                   // codes a person may type in GuessWindow
	GuessAll   int                   // and all persons together
	Instances  int                   // of a tenant, where it has no limit of its own
	Connectors int                   // in force, of a tenant likewise
}

// DefaultLimits is what production uses. A code is one of 20^8: with 5,000 open
// pairings and all guesses used, a stranger's code is hit once in a month of
// trying, and that machine then shows a tenant its owner does not know.
func DefaultLimits() Limits {
	return Limits{Open: tenants.PairingBounds{PerOrigin: 20, InAll: 5000}, Pair: 20, PairAll: 600, Poll: 600,
		Guess: 20, GuessAll: 1000, Instances: 50, Connectors: 100}
}

// GuessWindow is the time over which typed codes are counted.
const GuessWindow = 10 * time.Minute

// Config is everything a Service needs; zero values mean the defaults where one
// is named.
type Config struct {
	Store     Store
	Audiences []string                                            // wire.Audience of every public URL
	Base      func(*http.Request) string                          // the public URL a request came by
	Tunnel    func(base string) wire.Endpoint                     // how tunnels are reached from there
	Address   func(*http.Request) string                          // where a request comes from, an IP address
	Connected func(ctx context.Context, c tenants.Connector) bool // is this connector's tunnel up, on any node
	Allow     func(ctx context.Context, key string, limit int, window time.Duration) (ok bool, retryAfter time.Duration)
	Life      time.Duration // of a pairing that waits; 0: 10 minutes
	Interval  time.Duration // between polls; 0: 5 seconds
	Limits    Limits        // zero: DefaultLimits
	Log       *slog.Logger
	Now       func() time.Time // nil: time.Now
	Rand      io.Reader        // nil: crypto/rand
}

// Service pairs connectors.
type Service struct{ Config }

// New completes a configuration.
func New(c Config) (*Service, error) {
	if c.Store == nil || len(c.Audiences) == 0 || c.Base == nil || c.Tunnel == nil || c.Address == nil || c.Connected == nil || c.Allow == nil {
		return nil, errors.New("pairing: Store, Audiences, Base, Tunnel, Address, Connected and Allow must be set")
	}
	if c.Life == 0 {
		c.Life = 10 * time.Minute
	}
	if c.Interval == 0 {
		c.Interval = 5 * time.Second
	}
	if c.Limits == (Limits{}) {
		c.Limits = DefaultLimits()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	return &Service{c}, nil
}
