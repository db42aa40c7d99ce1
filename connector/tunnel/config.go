package tunnel

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire/link"
)

// Handler executes calls. It is called concurrently, at most Config.MaxCalls
// times, and must return soon after ctx is done; what a write does then is its
// own decision. progress may be called until Handle returns.
type Handler interface {
	Handle(ctx context.Context, call contract.Call, progress func(contract.Progress)) contract.Result
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(ctx context.Context, call contract.Call, progress func(contract.Progress)) contract.Result

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, call contract.Call, progress func(contract.Progress)) contract.Result {
	return f(ctx, call, progress)
}

// Status is where the report about SiYuan comes from. Current must not block;
// a receive on Changed means that it is worth sending again.
type Status struct {
	Current func() contract.HomeStatus
	Changed <-chan struct{} // nil: it never changes
}

// Dialer opens TCP connections; *net.Dialer is one.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Clock tells the time and waits between attempts to connect.
type Clock interface {
	Now() time.Time
	// Sleep returns early with the context's cause when ctx is done.
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Backoff says how long to wait before the next attempt.
type Backoff struct {
	Base time.Duration // bound of the first wait; doubles with each attempt
	Cap  time.Duration // bound of all waits
}

// maxRetryAfter bounds what a broker may ask for.
const maxRetryAfter = 10 * time.Minute

// Delay is drawn evenly from zero to the bound of the attempt (counted from 0),
// so that connectors which lost the same broker do not come back together. A
// wait the broker asked for comes on top, and half of it widens the draw: it
// was told to all of them in the same moment.
func (b Backoff) Delay(attempt int, retryAfter time.Duration, uniform func() float64) time.Duration {
	retryAfter = max(0, min(retryAfter, maxRetryAfter))
	bound := min(float64(b.Cap), float64(b.Base)*math.Pow(2, float64(min(attempt, 62))))
	return retryAfter + time.Duration(uniform()*max(bound, float64(retryAfter/2)))
}

// Timing holds the durations of a session. The broker's ping values apply where
// they are shorter.
type Timing struct {
	Dial         time.Duration // discovery, TCP, TLS, WebSocket: each
	Handshake    time.Duration // CHALLENGE to WELCOME
	PingInterval time.Duration // at most; each one is drawn from its upper quarter
	PingTimeout  time.Duration // silence after a PING that means death
	Write        time.Duration // one multiplexer write; a slow link is not a dead one, pings find that
	StreamOpen   time.Duration
	StreamClose  time.Duration
	StatusGap    time.Duration // least time between two status reports
	Stable       time.Duration // a session that lived this long resets the backoff
	MaxCall      time.Duration // for a call without or with a longer deadline
	Bulk         time.Duration // how long a result waits for a bulk session before it does without
	BulkAgain    time.Duration // and for how long others do then
	BulkWrite    time.Duration // sign of life on a bulk session, where an answer waits behind megabytes
	StreamIdle   time.Duration // a transfer in which nothing moves is given up
}

// mux is what the multiplexer of calls goes by.
func (t Timing) mux() link.Timing {
	return link.Timing{Ping: t.PingInterval, Write: t.Write, StreamOpen: t.StreamOpen, StreamClose: t.StreamClose}
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		Dial: 10 * time.Second, Handshake: 10 * time.Second, PingInterval: 18 * time.Second, PingTimeout: 12 * time.Second,
		Write: 30 * time.Second, StreamOpen: time.Minute, StreamClose: 5 * time.Second,
		StatusGap: time.Second, Stable: 30 * time.Second, MaxCall: 10 * time.Minute,
		Bulk: 3 * time.Second, BulkAgain: time.Minute, BulkWrite: time.Minute, StreamIdle: time.Minute,
	}
}

// Scale multiplies every duration; for tests.
func (t Timing) Scale(f float64) Timing {
	for _, d := range []*time.Duration{&t.Dial, &t.Handshake, &t.PingInterval, &t.PingTimeout, &t.Write,
		&t.StreamOpen, &t.StreamClose, &t.StatusGap, &t.Stable, &t.MaxCall,
		&t.Bulk, &t.BulkAgain, &t.BulkWrite, &t.StreamIdle} {
		*d = time.Duration(float64(*d) * f)
	}
	return t
}

// Config is everything a Client needs. BrokerURL, ConnectorID, Key, Handler and
// Status are required; zero values elsewhere mean the defaults.
type Config struct {
	BrokerURL   string // as its owner typed it; http only for loopback
	ConnectorID string
	Key         ed25519.PrivateKey
	Handler     Handler
	Status      Status
	Software    string // name and version, shown to people
	MaxCalls    int    // calls run at once; default 64

	Streams      StreamHandler // nil: no transfers
	MaxTransfers int           // run at once; default 16

	TLS     *tls.Config
	Dialer  Dialer
	Clock   Clock
	Rand    io.Reader      // token ids
	Uniform func() float64 // jitter, from [0, 1)
	Logger  *slog.Logger
	Backoff Backoff
	Timing  Timing
}

// ErrRevoked means that the broker will never accept this connector again; the
// process should exit with code 77.
var ErrRevoked = errors.New("this connector was revoked by its tenant; pair it again")

func (c *Config) complete() (*url.URL, error) {
	base, err := url.Parse(strings.TrimSuffix(c.BrokerURL, "/"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("broker URL: %w", err)
	case base.Host == "" || base.Scheme != "https" && base.Scheme != "http":
		return nil, fmt.Errorf("broker URL %q: want https://host", c.BrokerURL)
	case base.Scheme == "http" && !loopback(base.Hostname()):
		return nil, fmt.Errorf("broker URL %q: http is for loopback addresses only; use https", c.BrokerURL)
	case c.ConnectorID == "" || len(c.Key) != ed25519.PrivateKeySize:
		return nil, errors.New("connector id and key must be set; pair this connector first")
	case c.Handler == nil || c.Status.Current == nil:
		return nil, errors.New("tunnel: Handler and Status must be set")
	}
	if c.MaxCalls == 0 {
		c.MaxCalls = 64
	}
	if c.MaxTransfers == 0 {
		c.MaxTransfers = 16
	}
	if c.Dialer == nil {
		c.Dialer = &net.Dialer{} // resolves anew each time
	}
	if c.Clock == nil {
		c.Clock = systemClock{}
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Uniform == nil {
		c.Uniform = mathrand.Float64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Backoff == (Backoff{}) {
		c.Backoff = Backoff{Base: time.Second, Cap: time.Minute}
	}
	if c.Timing == (Timing{}) {
		c.Timing = DefaultTiming()
	}
	return base, nil
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
