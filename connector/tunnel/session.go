package tunnel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/link"
)

var (
	errLinkLost    = errors.New("connection to the broker lost")
	errPingTimeout = errors.New("no sign of life from the broker within the ping timeout")
	errMoved       = errors.New("moved to another node")
)

// session is one connection after WELCOME. Its owner is Client.sessions.
type session struct {
	client  *Client
	way     endpoint
	link    link.Muxed
	mux     *yamux.Session
	welcome wire.Welcome
	limits  wire.Limits
	began   time.Time

	ready       chan struct{} // closed when the broker opened its first call stream: calls come here
	drain       chan struct{} // closed when the broker asks to move
	drainWithin time.Duration // set before drain is closed
	done        chan struct{} // closed when the connection is gone
	why         error         // set before done is closed
	over        bool          // guarded by client.mu; see Client.ended

	ctx     context.Context // of the calls; ends with the session
	stop    context.CancelCauseFunc
	workers sync.WaitGroup // everything but the calls

	grants grants
	bulk   bulkDoor

	controlMu sync.Mutex
	control   *wire.Writer
	controlSt *yamux.Stream

	pingMu sync.Mutex
	pinged uint64    // number of the PING that is waited for; 0: none
	sent   time.Time // when
	ponged chan struct{}
}

// open makes a session by the first way that leads to one. A session that the
// broker ends as revoked calls cancel.
func (c *Client) open(ctx context.Context, cancel context.CancelCauseFunc) (*session, error) {
	ways, err := c.ways(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, way := range ways {
		s, err := c.try(ctx, way)
		if err == nil {
			c.remember(way)
			s.way = way
			s.ctx, s.stop = context.WithCancelCause(ctx)
			c.sessions.Go(func() { s.run(cancel) })
			return s, nil
		}
		errs = append(errs, fmt.Errorf("%s %s: %w", way.transport, way.address, err))
		var bye *wire.Reject
		if errors.As(err, &bye) || ctx.Err() != nil {
			break // another way to the same broker would not help
		}
	}
	return nil, errors.Join(errs...)
}

// try dials and authenticates. A proxy may let a connection through and break
// the protocol on it, so both count.
func (c *Client) try(ctx context.Context, way endpoint) (*session, error) {
	l, err := c.reach(ctx, way)
	if err != nil {
		return nil, err
	}
	giveUp := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer giveUp()
	s, err := c.start(l)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return s, nil
}

func (c *Client) start(l *link.Link) (*session, error) {
	welcome, err := c.greet(l, wire.Auth{Kind: wire.KindCalls, MaxCalls: c.cfg.MaxCalls, Grants: maxGrants, Bulk: true, Safety: true})
	if err != nil {
		return nil, err
	}
	s := &session{client: c, link: link.Mux(l), welcome: welcome, began: c.cfg.Clock.Now(),
		limits: wire.Limits{Frame: min(welcome.MaxFrame, 2*maxResult), Header: welcome.MaxHeader, Depth: 32},
		ready:  make(chan struct{}), drain: make(chan struct{}), done: make(chan struct{}), ponged: make(chan struct{}, 1)}
	if s.mux, err = yamux.Client(s.link, link.Config(link.Window, c.cfg.Timing.mux(), c.cfg.Logger.Debug)); err != nil {
		return nil, fmt.Errorf("start multiplexer: %w", err)
	}
	if s.controlSt, err = s.mux.OpenStream(); err != nil {
		s.link.HangUp(s.mux)
		return nil, fmt.Errorf("open control stream: %w", err)
	}
	s.control = wire.NewWriter(s.controlSt, s.limits)
	if err := s.sendStatus(); err != nil {
		s.link.HangUp(s.mux)
		return nil, err
	}
	return s, nil
}

// run serves the session until its connection is gone.
func (s *session) run(cancel context.CancelCauseFunc) {
	s.workers.Go(s.readControl)
	s.workers.Go(s.accept)
	s.events() // returns when the session is to end
	s.why = context.Cause(s.ctx)
	s.bulk.close()
	s.link.HangUp(s.mux) // which ends the workers
	s.workers.Wait()
	if revoked(s.why) {
		cancel(ErrRevoked)
	}
	s.client.ended(s)
	close(s.done)
}

// serves waits until the broker routes calls here. It is false if the session
// ended before; a broker that opens no stream ahead of need is believed after a
// while.
func (s *session) serves(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-s.ready:
	case <-t.C:
	case <-s.done:
		return false
	}
	return true
}

// events sends pings and status until the session ends.
func (s *session) events() {
	t := s.client.cfg.Timing
	interval, timeout := t.PingInterval, t.PingTimeout
	if ms := time.Duration(s.welcome.PingIntervalMS) * time.Millisecond; ms > 0 {
		interval = max(interval/100, min(interval, ms))
	}
	if ms := time.Duration(s.welcome.PingTimeoutMS) * time.Millisecond; ms > 0 {
		timeout = max(timeout/100, min(timeout, ms))
	}
	ping := time.NewTimer(jittered(interval))
	defer ping.Stop()
	gap := time.NewTimer(0) // until the next status may be sent
	defer gap.Stop()
	changed, pending := s.client.cfg.Status.Changed, false
	var since time.Time // of the PING that is waited for, the first time; zero: none is
	for {
		var due <-chan time.Time
		if pending {
			due = gap.C
		}
		select {
		case <-s.ctx.Done():
			return
		case _, open := <-changed:
			if pending = true; !open {
				changed, pending = nil, false
			}
		case <-due:
			pending = false
			gap.Reset(t.StatusGap)
			s.orDrop(s.sendStatus())
		case <-s.ponged:
			since = time.Time{}
			ping.Reset(jittered(interval))
		case <-ping.C:
			now := time.Now()
			again := !since.IsZero()
			if again && now.Sub(since) >= timeout && s.link.SilentSince(now.Add(-timeout)) {
				s.stop(errPingTimeout)
				return
			}
			if !again {
				since = now
			}
			ping.Reset(timeout / 3) // repeated, because the other end counts our silence too
			s.orDrop(s.ping(now, again))
		}
	}
}

// orDrop closes the connection after a failed write. Why the session ended is
// for readControl to say: a REJECT may be waiting there.
func (s *session) orDrop(err error) {
	if err != nil {
		s.client.cfg.Logger.Debug("write to broker", "error", err)
		s.link.HangUp(s.mux)
	}
}

// jittered is drawn so that many connectors do not fall into step.
func jittered(d time.Duration) time.Duration { return d - time.Duration(rand.Int64N(int64(d/4)+1)) }

// ping sends a PING, or the last one again.
func (s *session) ping(now time.Time, again bool) error {
	s.pingMu.Lock()
	if !again {
		s.pinged++
		s.sent = now
	}
	n := s.pinged
	s.pingMu.Unlock()
	return s.send(wire.FramePing, wire.Ping{N: n}, nil)
}

func (s *session) pong(n uint64) {
	s.pingMu.Lock()
	fresh, rtt := n == s.pinged && !s.sent.IsZero(), time.Since(s.sent)
	s.sent = time.Time{}
	s.pingMu.Unlock()
	if !fresh {
		return
	}
	s.client.update(func(st *State) {
		if s.client.current == s {
			st.RTT = rtt
		}
	})
	select {
	case s.ponged <- struct{}{}:
	default:
	}
}

// send puts a frame on the control stream.
func (s *session) send(t wire.Type, header any, body []byte) error {
	s.controlMu.Lock()
	defer s.controlMu.Unlock()
	_ = s.controlSt.SetWriteDeadline(time.Now().Add(s.client.cfg.Timing.Write)) // fails never
	if err := s.control.Write(t, header, body); err != nil {
		return fmt.Errorf("%w: %w", errLinkLost, err)
	}
	return nil
}

func (s *session) sendStatus() error {
	head, body, err := wire.FitStatus(s.client.cfg.Status.Current())
	if err != nil {
		return err
	}
	if head.Omitted > 0 {
		s.client.cfg.Logger.Warn("too many notebooks to report all; the last ones have the default level at the broker", "omitted", head.Omitted)
	}
	s.client.update(func(st *State) { st.Omitted = head.Omitted })
	return s.send(wire.FrameStatus, head, body)
}

// readControl serves what the broker says about the session itself.
func (s *session) readControl() {
	r := wire.NewReader(bufio.NewReaderSize(s.controlSt, 1024), s.limits)
	for {
		f, err := r.Next()
		if err == nil {
			err = s.controlFrame(r, f)
		}
		if err != nil {
			var bye *wire.Reject
			var bad *wire.ProtocolError
			if !errors.As(err, &bye) && !errors.As(err, &bad) {
				err = fmt.Errorf("%w: %w", errLinkLost, err)
			}
			s.stop(err)
			return
		}
	}
}

func (s *session) controlFrame(r *wire.Reader, f wire.Frame) error {
	switch f.Type {
	case wire.FramePing:
		var p wire.Ping
		if err := r.Decode(f, &p); err != nil {
			return err
		}
		return s.send(wire.FramePong, p, nil)
	case wire.FramePong:
		var p wire.Ping
		if err := r.Decode(f, &p); err != nil {
			return err
		}
		s.pong(p.N)
		return nil
	case wire.FrameDrain:
		var d wire.Drain
		if err := r.Decode(f, &d); err != nil {
			return err
		}
		select {
		case <-s.drain:
		default:
			s.drainWithin = time.Duration(max(0, min(d.WithinMS, time.Hour.Milliseconds()))) * time.Millisecond
			close(s.drain)
		}
		return nil
	case wire.FrameBulk:
		s.openBulk(true)
		return nil
	case wire.FrameReject:
		var bye wire.Reject
		if err := r.Decode(f, &bye); err != nil {
			return err
		}
		return &bye
	}
	return wire.Violation("%s on the control stream", f.Type)
}

// moved tells the broker that a newer session is up: it sends no more calls
// here and closes the session once the running ones are answered.
func (s *session) moved() {
	s.client.sessions.Go(func() {
		s.orDrop(s.send(wire.FrameDrain, wire.Drain{}, nil))
		t := time.NewTimer(max(s.drainWithin, s.client.cfg.Timing.Dial)) // the broker may not keep its word
		defer t.Stop()
		select {
		case <-s.done:
		case <-t.C:
			s.stop(errMoved)
		}
	})
}

// accept takes the call streams that the broker opens. It waits at twice the
// number agreed on: streams that are closing still count.
func (s *session) accept() {
	s.orDrop(s.acceptFrom(s.mux, false, sync.OnceFunc(func() { close(s.ready) })))
}

// acceptFrom takes streams until one cannot be acknowledged, for which the broker
// would wait in vain, or the session ends.
func (s *session) acceptFrom(mux *yamux.Session, bulk bool, ready func()) error {
	open := make(chan struct{}, 2*s.client.cfg.MaxCalls)
	for {
		st, err := mux.AcceptStream()
		if err != nil {
			return err
		}
		ready()
		select {
		case open <- struct{}{}:
		case <-s.ctx.Done():
			return nil
		}
		s.workers.Go(func() {
			defer func() { <-open }()
			s.serveStream(st, bulk)
		})
	}
}
