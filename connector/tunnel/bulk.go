package tunnel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/link"
)

// Bounds of a bulk session.
const (
	bulkPushes = 4 // streams for results
	bulkBuffer = 32 << 10
)

// bulkDoor is a session's way to its bulk session, the second connection for
// large bodies. It is speed, not behaviour: without it everything travels on the
// session itself.
type bulkDoor struct {
	mu      sync.Mutex
	over    bool // the session ends
	cur     *bulk
	opening chan struct{} // closed when the attempt under way is over; nil: none is
	again   time.Time     // no attempt of our own before
}

// bulk is a live bulk session.
type bulk struct {
	s    *session
	link link.Muxed
	mux  *yamux.Session
	idle chan *pushStream
	made chan struct{} // a token for every stream for results
}

// pushStream is a persistent stream on which results go to the broker.
type pushStream struct {
	st *yamux.Stream
	w  *wire.Writer
}

// openBulk starts to open the bulk session unless it is there or under way, and
// returns what there is to wait for, if anything. Unasked it does not try again
// soon after a failure.
func (s *session) openBulk(asked bool) (cur *bulk, opening chan struct{}) {
	d := &s.bulk
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.over, d.cur == nil && d.opening == nil && !asked && time.Now().Before(d.again):
		return nil, nil
	case d.cur != nil || d.opening != nil:
		return d.cur, d.opening
	}
	d.opening = make(chan struct{})
	d.again = time.Now().Add(s.client.cfg.Timing.BulkAgain)
	s.workers.Go(s.serveBulk)
	return nil, d.opening
}

// bulkFor waits a little for a bulk session; nil if there is none.
func (s *session) bulkFor(ctx context.Context) *bulk {
	cur, opening := s.openBulk(false)
	if opening == nil {
		return cur
	}
	t := time.NewTimer(s.client.cfg.Timing.Bulk)
	defer t.Stop()
	select {
	case <-opening:
	case <-ctx.Done():
		return nil
	case <-t.C:
		return nil
	}
	s.bulk.mu.Lock()
	defer s.bulk.mu.Unlock()
	return s.bulk.cur
}

// close ends the bulk session for good; its goroutines are the session's
// workers.
func (d *bulkDoor) close() {
	d.mu.Lock()
	d.over = true
	cur := d.cur
	d.mu.Unlock()
	if cur != nil {
		cur.link.HangUp(cur.mux)
	}
}

// serveBulk opens the bulk session and serves it to its end.
func (s *session) serveBulk() {
	b, err := s.dialBulk()
	s.bulk.mu.Lock()
	if err == nil && s.bulk.over {
		err = context.Cause(s.ctx)
	}
	if err == nil {
		s.bulk.cur, s.bulk.again = b, time.Time{}
	}
	close(s.bulk.opening)
	s.bulk.opening = nil
	s.bulk.mu.Unlock()
	if err != nil {
		s.client.cfg.Logger.Info("no second connection for large bodies; they share the first", "reason", err)
		if b != nil {
			b.link.HangUp(b.mux)
		}
		return
	}
	s.client.cfg.Logger.Debug("bulk session is up", "transport", b.link.Transport)
	s.workers.Go(b.watch)
	s.acceptFrom(b.mux, true, func() {})
	s.bulk.mu.Lock()
	s.bulk.cur = nil
	s.bulk.mu.Unlock()
	b.link.HangUp(b.mux)
}

// dialBulk connects by the way that led to the session.
func (s *session) dialBulk() (*bulk, error) {
	c := s.client
	l, err := c.reach(s.ctx, s.way)
	if err != nil {
		return nil, err
	}
	giveUp := context.AfterFunc(s.ctx, func() { _ = l.Close() })
	defer giveUp()
	if _, err := c.greet(l, wire.Auth{Kind: wire.KindBulk, Epoch: s.welcome.Epoch}); err != nil {
		_ = l.Close()
		return nil, err
	}
	b := &bulk{s: s, link: link.Mux(l), idle: make(chan *pushStream, bulkPushes), made: make(chan struct{}, bulkPushes)}
	t := c.cfg.Timing.mux()
	t.Write = c.cfg.Timing.BulkWrite
	if b.mux, err = yamux.Client(b.link, link.Config(link.BulkWindow, t, c.cfg.Logger.Debug)); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("start multiplexer: %w", err)
	}
	b.made <- struct{}{} // the first one has its window by the time it is needed
	p, err := b.open()
	if err != nil {
		b.link.HangUp(b.mux)
		return nil, err
	}
	b.idle <- p
	return b, nil
}

// open opens a stream for results, which never waits: there are fewer than the
// broker takes unseen.
func (b *bulk) open() (*pushStream, error) {
	st, err := b.mux.OpenStream()
	if err != nil {
		<-b.made
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return &pushStream{st, wire.NewWriter(st, b.s.limits)}, nil
}

// push sends a result under the number of its call. An error means that it must
// go another way.
func (b *bulk) push(ctx context.Context, number uint64, body []byte) error {
	var p *pushStream
	var err error
	select {
	case p = <-b.idle:
	default:
		select {
		case p = <-b.idle:
		case b.made <- struct{}{}:
			p, err = b.open()
		case <-b.mux.CloseChan():
			return errLinkLost
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.st.SetWriteDeadline(time.Unix(1, 0)) })
	err = p.w.Write(wire.FrameResult, wire.Result{ID: number}, body)
	if !stop() || err != nil { // poisoned, or half a frame may be out
		_ = p.st.Close()
		<-b.made
		return err
	}
	b.idle <- p
	return nil
}

// watch drops the connection when it is dead. The broker closes it when it is
// not used.
func (b *bulk) watch() {
	interval := b.s.client.cfg.Timing.PingInterval
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-b.mux.CloseChan():
			return
		case <-tick.C:
		}
		began := time.Now()
		if !b.link.SilentSince(began.Add(-interval)) {
			continue
		}
		if _, err := b.mux.Ping(); err != nil && b.link.SilentSince(began) {
			b.link.HangUp(b.mux)
			return
		}
	}
}
