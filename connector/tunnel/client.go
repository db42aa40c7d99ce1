package tunnel

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"siyuan-broker/contract/wire"
)

// Phase is what a Client is doing.
type Phase string

// The phases of a Client.
const (
	Idle       Phase = "idle" // Run was not called, or has returned
	Connecting Phase = "connecting"
	Connected  Phase = "connected"
	Waiting    Phase = "waiting" // for the next attempt
)

// State is a snapshot for status pages and health files.
type State struct {
	Phase     Phase
	Since     time.Time // of this phase
	Broker    string
	Node      string // connected: the broker's node
	Epoch     int64
	Transport string        // "tls" or "wss"
	RTT       time.Duration // of the last ping; 0 before the first
	Attempt   int           // failed attempts since the last stable session
	Draining  bool          // connected, but the node asked to move and no other was reached yet
	Next      time.Time     // waiting, or draining: when the next attempt starts
	LastError string        // of the last failed attempt or ended session
	Calls     int           // running now
	Omitted   int           // notebooks, caps and vetoes left out of the report because there are too many
}

// Client keeps one connector connected to its broker.
type Client struct {
	cfg       Config
	base      *url.URL
	audience  string
	slots     chan struct{}  // one per running call, over all sessions
	transfers chan struct{}  // one per running transfer
	sessions  sync.WaitGroup // and their calls; Run waits for them

	mu      sync.Mutex
	state   State
	current *session  // the one that state describes; nil: none is up
	worked  *endpoint // what the last session was reached through
}

// New checks the configuration and makes a Client. Its errors are the owner's
// to correct.
func New(cfg Config) (*Client, error) {
	base, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Client{cfg: cfg, base: base, audience: wire.Audience(base), slots: make(chan struct{}, cfg.MaxCalls), transfers: make(chan struct{}, cfg.MaxTransfers),
		state: State{Phase: Idle, Since: cfg.Clock.Now(), Broker: base.String()}}, nil
}

// State says how the tunnel is doing.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state
	s.Calls = len(c.slots)
	return s
}

func (c *Client) update(change func(*State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.state.Phase
	if change(&c.state); c.state.Phase != before {
		c.state.Since = c.cfg.Clock.Now()
	}
}

// Run keeps the tunnel up until ctx is done (then it returns nil) or the
// credential is revoked (ErrRevoked). It returns when every call and session
// has ended.
func (c *Client) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer func() {
		cancel(nil)
		c.sessions.Wait()
		c.update(func(s *State) { s.Phase, s.Node, s.RTT, s.Draining = Idle, "", 0, false })
	}()
	var old *session // told to drain, still finishing its calls
	for attempt := 0; ; {
		s, err := c.connect(ctx, cancel, &attempt)
		if err != nil {
			if errors.Is(err, ErrRevoked) {
				return ErrRevoked
			}
			return nil
		}
		if old != nil && s.serves(min(c.cfg.Timing.Dial, old.drainWithin/2)) {
			old.moved()
			old = nil
		}
		select {
		case <-s.drain:
			c.cfg.Logger.Info("broker node is stopping; moving", "node", s.welcome.Node)
			old, attempt = s, c.after(s, attempt)
			c.update(func(st *State) { st.Draining = c.current == s })
			// Everybody on that node was told in the same moment.
			_ = c.cfg.Clock.Sleep(ctx, time.Duration(c.cfg.Uniform()*float64(s.drainWithin)/4))
		case <-s.done:
			attempt = c.after(s, attempt)
			c.wait(ctx, s.why, &attempt)
		}
	}
}

// after is where the backoff stands after a session.
func (c *Client) after(s *session, attempt int) int {
	if c.cfg.Clock.Now().Sub(s.began) >= c.cfg.Timing.Stable {
		return 0
	}
	return attempt
}

// connect tries until there is a session or ctx is done, whose cause it
// returns.
func (c *Client) connect(ctx context.Context, cancel context.CancelCauseFunc, attempt *int) (*session, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c.update(func(s *State) {
			if s.Phase != Connected {
				s.Phase = Connecting
			}
		})
		s, err := c.open(ctx, cancel)
		if err == nil {
			c.update(func(st *State) {
				if s.over {
					return // already
				}
				c.current = s
				st.Phase, st.Since, st.Node, st.Epoch = Connected, s.began, s.welcome.Node, s.welcome.Epoch
				st.Transport, st.RTT, st.LastError, st.Next, st.Draining = s.link.Transport, 0, "", time.Time{}, false
			})
			c.cfg.Logger.Info("connected", "broker", c.base.Host, "node", s.welcome.Node, "epoch", s.welcome.Epoch, "transport", s.link.Transport)
			return s, nil
		}
		if revoked(err) {
			cancel(ErrRevoked)
			continue
		}
		c.wait(ctx, err, attempt)
	}
}

// wait sleeps before the next attempt.
func (c *Client) wait(ctx context.Context, why error, attempt *int) {
	if ctx.Err() != nil {
		return
	}
	step := *attempt
	var bye *wire.Reject
	var retryAfter time.Duration
	var later *retryLater
	switch {
	case errors.As(why, &bye):
		retryAfter = time.Duration(bye.RetryAfterS) * time.Second
		if bye.Code == wire.RejectReplaced { // another process has this key: do not take turns in a hurry
			step = 62
		}
	case errors.As(why, &later):
		retryAfter = later.after
	}
	d := c.cfg.Backoff.Delay(step, retryAfter, c.cfg.Uniform)
	*attempt++
	c.cfg.Logger.Warn("not connected", "broker", c.base.Host, "reason", why, "attempt", *attempt, "retry_in", d)
	c.update(func(s *State) {
		s.Attempt, s.LastError, s.Next = *attempt, why.Error(), c.cfg.Clock.Now().Add(d)
		if c.current == nil { // else a draining session still serves
			s.Phase = Waiting
		}
	})
	_ = c.cfg.Clock.Sleep(ctx, d)
}

// ended takes a session out of the state, unless a newer one is in it.
func (c *Client) ended(s *session) {
	c.update(func(st *State) {
		if s.over = true; c.current == s {
			c.current = nil
			st.Phase, st.Node, st.RTT, st.Draining = Waiting, "", 0, false
		}
	})
}

func revoked(err error) bool {
	var bye *wire.Reject
	return errors.As(err, &bye) && bye.Code == wire.RejectRevoked
}
