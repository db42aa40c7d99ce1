package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/link"
)

// Why a session ended, besides the *wire.Reject values the broker decided on
// and *wire.ProtocolError.
var (
	errLinkLost    = errors.New("connection lost")
	errPingTimeout = errors.New("no sign of life within the ping timeout")
)

// A status costs a query; a connector may send this many at once and then one
// a second.
const statusBurst = 20

// session is one connected connector. Its goroutines are two of yamux, run, and
// short tasks started with task; run waits for all of them.
type session struct {
	hub      *Hub
	cfg      *Config
	log      *slog.Logger
	rec      ConnectorRecord
	epoch    int64
	since    time.Time
	software string
	link     link.Muxed
	mux      *yamux.Session
	pool     *pool
	grants   grants
	safety   bool // the connector knows validated writes and replays
	others   takeover
	door     door
	tasks    sync.WaitGroup

	controlMu sync.Mutex // serialises frames on the control stream
	control   *wire.Writer
	controlSt *yamux.Stream

	mu       sync.Mutex
	why      error // set when ending
	draining bool  // told to move away
	retired  bool  // takes no new calls and ends when it has none
	calls    int
	status   contract.HomeStatus
	omitted  int  // entries of the report that did not fit
	storing  bool // the latest status is not in the Directory yet, and somebody is at it
	reported bool
	rtt      time.Duration
	ping     pinger

	transfers int // running; guarded by hub.mu
}

// pinger is the state of the ping timer: either the next PING is due, or a PONG
// is.
type pinger struct {
	timer   *time.Timer
	n       uint64
	waiting bool
	sent    time.Time // of the PING that is waited for, the first time
}

func (s *Server) newSession(l *link.Link, rec ConnectorRecord, epoch Epoch, auth wire.Auth) (*session, error) {
	log := s.cfg.Logger.With("tenant", rec.Tenant, "instance", rec.Instance, "connector", rec.ID, "epoch", epoch.Number)
	conn := link.Mux(l)
	mux, err := yamux.Server(conn, link.Config(link.Window, s.cfg.Timing.mux(), log.Debug))
	if err != nil {
		return nil, fmt.Errorf("start multiplexer: %w", err)
	}
	n := &session{hub: s.hub, cfg: &s.cfg, log: log, rec: rec, epoch: epoch.Number, others: takeover{at: epoch.OthersUntil, now: epoch.TookOver}, since: s.cfg.Now(),
		software: clip(auth.Software, 100), link: conn, mux: mux}
	n.grants.offer(auth.Grants)
	n.door.offered, n.safety = auth.Bulk, auth.Safety
	streams := s.cfg.Limits.Streams
	if auth.MaxCalls > 0 {
		streams = min(streams, auth.MaxCalls)
	}
	n.pool = &pool{maxOpen: streams, maxQueue: s.cfg.Limits.Queue, open: n.openStream}
	return n, nil
}

// acceptControl waits for the stream that the connector opens first.
func (n *session) acceptControl(ctx context.Context) (*wire.Reader, error) {
	st, err := n.mux.AcceptStreamWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("control stream: %w", err)
	}
	limits := n.cfg.Limits.frame()
	limits.Frame = wire.MaxStatus // no results here
	n.controlSt, n.control = st, wire.NewWriter(st, limits)
	return wire.NewReader(bufio.NewReaderSize(st, 512), limits), nil
}

// run serves the control stream until the session ends, and returns when
// nothing of it is left.
func (n *session) run(r *wire.Reader) {
	n.mu.Lock()
	n.ping.timer = time.AfterFunc(n.nextPing(), func() { n.task(n.tick) })
	n.mu.Unlock()
	n.task(n.warm)
	n.cfg.Events(Event{SessionUp, n.info()})
	n.log.Info("connector connected", "remote", n.link.Remote, "transport", n.link.Transport, "software", n.software)

	n.end(n.serveControl(r))
	n.tasks.Wait()
	n.log.Info("connector gone", "reason", n.reason())
	n.cfg.Events(Event{SessionDown, n.info()})
}

func (n *session) serveControl(r *wire.Reader) error {
	allowance, refilled := statusBurst, time.Now()
	for {
		f, err := r.Next()
		if err != nil {
			return streamError(err)
		}
		switch f.Type {
		case wire.FramePing:
			var p wire.Ping
			if err := r.Decode(f, &p); err != nil {
				return err
			}
			if err := n.send(wire.FramePong, p); err != nil {
				return err
			}
		case wire.FramePong:
			var p wire.Ping
			if err := r.Decode(f, &p); err != nil {
				return err
			}
			n.pong(p.N)
		case wire.FrameStatus:
			if again := int(time.Since(refilled) / time.Second); again > 0 {
				allowance, refilled = min(statusBurst, allowance+again), time.Now()
			}
			if allowance--; allowance < 0 {
				return wire.Violation("more than %d status frames at once", statusBurst)
			}
			var head wire.Status
			if err := r.Decode(f, &head); err != nil {
				return err
			}
			if err := n.takeStatus(head, f.Body); err != nil {
				return err
			}
		case wire.FrameDrain: // it has moved; see retire
			n.retire()
		default:
			return wire.Violation("%s on the control stream", f.Type)
		}
	}
}

func streamError(err error) error {
	var bad *wire.ProtocolError
	if errors.As(err, &bad) {
		return err
	}
	return fmt.Errorf("%w: %w", errLinkLost, err)
}

// takeStatus keeps what a connector reports. What is too much of it is left out
// and counted; only a report that is not one ends the session.
func (n *session) takeStatus(head wire.Status, body []byte) error {
	if err := wire.CheckJSON(body, 32); err != nil {
		return wire.Violation("status: %v", err)
	}
	var st contract.HomeStatus
	if err := json.Unmarshal(body, &st); err != nil {
		return wire.Violation("status: %v", err)
	}
	omitted := max(0, head.Omitted) + checkStatus(&st, n.cfg.Limits.Notebooks)
	if omitted > 0 {
		n.log.Warn("status left out notebooks, caps or vetoes", "omitted", omitted)
	}
	n.mu.Lock()
	n.status, n.omitted = st, omitted
	storing := n.storing
	n.storing = true
	n.mu.Unlock()
	if !storing && !n.storeStatus() {
		n.task(n.keepStoring)
	}
	return nil
}

// storeStatus stores the latest status, and only then calls it reported: who
// sees it reported finds it in the Directory too. It returns false when the
// Directory did not take it.
func (n *session) storeStatus() bool {
	for {
		st := n.info().Status
		ctx, cancel := context.WithTimeout(context.Background(), n.cfg.Timing.Directory)
		err := n.cfg.Directory.Status(ctx, n.rec.Tenant, n.rec.Instance, n.rec.ID, st)
		cancel()
		if err != nil {
			n.log.Warn("store status", "error", err)
			return false
		}
		n.mu.Lock()
		newer := !reflect.DeepEqual(st, n.status)
		n.reported, n.storing = true, newer
		n.mu.Unlock()
		n.cfg.Events(Event{StatusChanged, n.info()})
		if !newer {
			return true
		}
	}
}

// keepStoring tries again until the Directory is back or the session ends.
func (n *session) keepStoring() {
	for {
		timer := time.NewTimer(n.cfg.Timing.Directory)
		select {
		case <-n.mux.CloseChan():
			timer.Stop()
			return
		case <-timer.C:
		}
		if n.storeStatus() {
			return
		}
	}
}

// send puts a frame without body on the control stream.
func (n *session) send(t wire.Type, header any) error {
	n.controlMu.Lock()
	defer n.controlMu.Unlock()
	_ = n.controlSt.SetWriteDeadline(time.Now().Add(n.cfg.Timing.Write)) // fails never
	if err := n.control.Write(t, header, nil); err != nil {
		return fmt.Errorf("%w: %w", errLinkLost, err)
	}
	return nil
}

// task runs f in a goroutine that run waits for. It does nothing, and says so,
// once the session has ended.
func (n *session) task(f func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.why != nil {
		return false
	}
	n.tasks.Go(f)
	return true
}

// nextPing is drawn so that many connectors do not fall into step.
func (n *session) nextPing() time.Duration {
	i := n.cfg.Timing.PingInterval
	return i - time.Duration(rand.Int64N(int64(i/4)+1))
}

// tick is the ping timer: it sends the next PING, or judges the silence after
// the last one. Bytes of any kind are a sign of life: behind megabytes of
// results a PONG may be late.
func (n *session) tick() {
	now, timeout := time.Now(), n.cfg.Timing.PingTimeout
	n.mu.Lock()
	again := n.ping.waiting
	if again && now.Sub(n.ping.sent) >= timeout && n.link.SilentSince(now.Add(-timeout)) {
		n.mu.Unlock()
		n.end(errPingTimeout)
		return
	}
	if !again {
		n.ping.n++
		n.ping.waiting, n.ping.sent = true, now
	}
	p := wire.Ping{N: n.ping.n}
	n.ping.timer.Reset(timeout / 3) // repeated, because the other end counts our silence too
	n.mu.Unlock()
	if !again {
		for _, unused := range n.pool.reap() {
			_ = unused.st.Close() // half-closed; the connector closes its end
		}
	}
	if err := n.send(wire.FramePing, p); err != nil {
		n.end(err)
	}
}

func (n *session) pong(number uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ping.waiting || number != n.ping.n || n.why != nil {
		return
	}
	n.rtt, n.ping.waiting = time.Since(n.ping.sent), false
	n.ping.timer.Reset(n.nextPing())
}

// warm opens one stream, so that the first call finds it.
func (n *session) warm() {
	if n.pool.first() {
		n.addStream()
	}
}

func (n *session) openStream() { n.task(n.addStream) }

func (n *session) addStream() {
	st, err := n.mux.OpenStream()
	if err != nil {
		n.end(fmt.Errorf("%w: open stream: %w", errLinkLost, err)) // the pool ends with it
		return
	}
	s := newStream(st, n.cfg.Limits.frame(), 1024)
	s.pool = n.pool
	n.pool.add(s)
}

// enter counts a call in; it is refused once the session takes no more.
func (n *session) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.why != nil || n.retired {
		return false
	}
	n.calls++
	return true
}

func (n *session) leave() {
	n.mu.Lock()
	n.calls--
	last := n.retired && n.calls == 0
	n.mu.Unlock()
	if last {
		n.end(drained())
	}
}

func drained() *wire.Reject {
	return &wire.Reject{Code: wire.RejectDraining, Message: "This node is stopping; connect again."}
}

// drain asks the connector to move.
func (n *session) drain(within time.Duration) {
	n.mu.Lock()
	n.draining = true
	n.mu.Unlock()
	n.task(func() {
		if err := n.send(wire.FrameDrain, wire.Drain{WithinMS: within.Milliseconds()}); err != nil {
			n.end(err)
		}
	})
}

// retire lets the running calls finish and takes no new ones.
func (n *session) retire() {
	n.hub.unroute(n)
	n.mu.Lock()
	n.retired = true
	now := n.calls == 0
	n.mu.Unlock()
	if now {
		n.end(drained())
	}
}

// replaced makes way for a newer session of the instance.
func (n *session) replaced() {
	n.mu.Lock()
	draining := n.draining
	n.mu.Unlock()
	if draining {
		n.retire()
		return
	}
	n.end(&wire.Reject{Code: wire.RejectReplaced, Message: "A newer session of this instance is connected."})
}

// end closes the session for the given reason; only the first call counts. It
// returns at once; run returns when everything is closed.
func (n *session) end(why error) {
	n.mu.Lock()
	if n.why != nil {
		n.mu.Unlock()
		return
	}
	n.why = why
	if n.ping.timer != nil {
		n.ping.timer.Stop()
	}
	n.tasks.Go(n.teardown)
	n.mu.Unlock()
	n.hub.unroute(n)
	n.pool.close()
	n.door.close()
}

// teardown tells the connector why, if there is anything to tell and it
// listens, and drops the connection. Running calls end by that.
func (n *session) teardown() {
	var bye *wire.Reject
	var bad *wire.ProtocolError
	switch why := n.reason(); {
	case errors.As(why, &bad):
		n.hub.n.protocolErrors.Add(1)
		n.log.Warn("connector broke the protocol", "error", bad)
		bye = &wire.Reject{Code: wire.RejectProtocol, Message: bad.Reason}
	case errors.Is(why, errPingTimeout):
		n.hub.n.pingTimeouts.Add(1)
	default:
		errors.As(why, &bye)
	}
	if bye != nil && n.control != nil {
		sent := make(chan struct{})
		go func() { // ends at the latest when the multiplexer closes below
			defer close(sent)
			_ = n.send(wire.FrameReject, bye) // best effort
		}()
		defer func() { <-sent }()
		grace := time.NewTimer(n.cfg.Timing.Goodbye)
		defer grace.Stop()
		select { // a connector that reads it hangs up; closing first could destroy it on its way
		case <-n.mux.CloseChan():
		case <-grace.C:
		}
	}
	n.link.HangUp(n.mux)
}

func (n *session) reason() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.why
}

func (n *session) info() SessionInfo {
	open, _, _ := n.pool.sizes()
	n.mu.Lock()
	defer n.mu.Unlock()
	return SessionInfo{Tenant: n.rec.Tenant, Instance: n.rec.Instance, Connector: n.rec.ID, Epoch: n.epoch,
		Since: n.since, RTT: n.rtt, Remote: n.link.Remote, Transport: n.link.Transport, Software: n.software,
		Draining: n.draining, Calls: n.calls, Streams: open, Status: n.status, Omitted: n.omitted, Reported: n.reported}
}
