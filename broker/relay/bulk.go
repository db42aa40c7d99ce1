package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/link"
)

// Bounds of a bulk session.
const (
	bulkStreams = 16 // of calls and transfers
	bulkPushes  = 8  // streams on which results arrive
	bulkBuffer  = 32 << 10
)

// errBulkLost is a result that was to come over a bulk session which ended.
var errBulkLost = errors.New("the bulk session ended before the result came")

// bulk is the second connection of a connector, for large bodies: its big window
// makes it fast, and being another one keeps it from standing in the way of
// small calls. It belongs to one session and dies with it. It is speed, not
// behaviour: without it everything travels on the session itself.
type bulk struct {
	n    *session
	link link.Muxed
	mux  *yamux.Session
	pool *pool // streams for large calls and for transfers
	up   chan struct{}
	down chan struct{} // closed when nothing more can arrive

	used atomic.Int64 // when, as an age of the link
	mu   sync.Mutex
	over bool
	work sync.WaitGroup
}

// door is a session's way to its bulk session.
type door struct {
	offered bool // the connector opens one when asked

	mu      sync.Mutex
	ended   bool
	cur     *bulk
	asked   chan struct{} // closed when the attempt under way is over; nil: none is
	again   time.Time     // the next attempt is not before
	number  uint64        // of the latest call whose result may come this way
	results map[uint64]chan []byte
}

// bulk returns the bulk session, and asks the connector for one if there is
// none. Where it does not come it is nil, soon and for a while.
func (n *session) bulk(ctx context.Context) *bulk {
	d := &n.door
	d.mu.Lock()
	b, asked := d.cur, d.asked
	switch {
	case !d.offered || d.ended:
		d.mu.Unlock()
		return nil
	case b == nil && asked == nil && n.cfg.Now().Before(d.again):
		d.mu.Unlock()
		return nil
	case b == nil && asked == nil:
		asked = make(chan struct{})
		d.asked, d.again = asked, n.cfg.Now().Add(n.cfg.Timing.BulkAgain)
		time.AfterFunc(n.cfg.Timing.Bulk, func() { d.settle(asked) })
		n.task(func() {
			if err := n.send(wire.FrameBulk, nil); err != nil {
				n.end(err)
			}
		})
	}
	d.mu.Unlock()
	if b == nil {
		select {
		case <-asked:
		case <-ctx.Done():
			return nil
		}
		if b = d.current(); b == nil {
			return nil
		}
	}
	select {
	case <-b.up:
		b.touch()
		return b
	case <-b.down:
	case <-ctx.Done():
	}
	return nil
}

func (d *door) current() *bulk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cur
}

// settle ends an attempt.
func (d *door) settle(asked chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if asked != nil && d.asked == asked {
		close(asked)
		d.asked = nil
	}
}

// attach makes b the bulk session, unless the session is over.
func (d *door) attach(b *bulk) bool {
	d.mu.Lock()
	old, ended := d.cur, d.ended
	if !ended {
		d.cur, d.again = b, time.Time{}
	}
	d.mu.Unlock()
	if !ended && old != nil {
		old.end()
	}
	return !ended
}

func (d *door) detach(b *bulk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cur == b {
		d.cur = nil
	}
}

// close ends the bulk session for good; it does not wait.
func (d *door) close() {
	d.mu.Lock()
	d.ended = true
	b, asked := d.cur, d.asked
	d.mu.Unlock()
	d.settle(asked)
	if b != nil {
		b.end()
	}
}

// expect gives the call that starts on s a number for its result; 0 where the
// result cannot come over a bulk session.
func (d *door) expect(s *stream) uint64 {
	if !d.offered || s.bulk {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.results == nil {
		d.results = map[uint64]chan []byte{}
	}
	if s.result == nil {
		s.result = make(chan []byte, 1)
	}
	select {
	case <-s.result: // what nobody took
	default:
	}
	d.number++
	d.results[d.number] = s.result
	return d.number
}

func (d *door) forget(number uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.results, number)
}

// arrived takes a result; one that nobody waits for any more is dropped.
func (d *door) arrived(number uint64, body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.results[number] <- body: // a nil channel never takes it
	default:
	}
}

// await waits for the result of the call on s, which the connector says to have
// sent over the bulk session.
func (d *door) await(ctx context.Context, s *stream) ([]byte, error) {
	if b := d.current(); b != nil {
		select {
		case body := <-s.result:
			return body, nil
		case <-b.down:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case body := <-s.result: // all that could arrive has
		return body, nil
	default:
		return nil, errBulkLost
	}
}

func (n *session) newBulk(l *link.Link) *bulk {
	b := &bulk{n: n, link: link.Mux(l), up: make(chan struct{}), down: make(chan struct{})}
	b.pool = &pool{maxOpen: bulkStreams, maxQueue: n.cfg.Limits.Queue, open: func() { b.task(b.addStream) }}
	return b
}

// start begins to multiplex, behind WELCOME, unless the session ended meanwhile.
func (b *bulk) start() error {
	t := b.n.cfg.Timing.mux()
	t.Write = b.n.cfg.Timing.BulkWrite
	mux, err := yamux.Server(b.link, link.Config(link.BulkWindow, t, b.n.log.Debug))
	if err != nil {
		return fmt.Errorf("start multiplexer: %w", err)
	}
	b.mu.Lock()
	over := b.over
	if !over {
		b.mux = mux
	}
	b.mu.Unlock()
	if over {
		_ = mux.Close()
		return errBulkLost
	}
	b.touch()
	close(b.up)
	b.n.door.mu.Lock()
	asked := b.n.door.asked
	b.n.door.mu.Unlock()
	b.n.door.settle(asked)
	return nil
}

// run serves the bulk session until it ends and nothing of it is left.
func (b *bulk) run() {
	b.n.log.Debug("bulk session is up", "remote", b.link.Remote, "transport", b.link.Transport)
	b.task(b.watch)
	if b.pool.first() {
		b.task(b.addStream)
	}
	slots := make(chan struct{}, bulkPushes)
	for {
		st, err := b.mux.AcceptStream()
		if err != nil {
			break
		}
		select {
		case slots <- struct{}{}:
		case <-b.mux.CloseChan():
			continue
		}
		b.task(func() {
			defer func() { <-slots }()
			b.receive(st)
		})
	}
	b.gone()
}

// gone ends and waits.
func (b *bulk) gone() {
	b.end()
	b.work.Wait()
	b.n.door.detach(b)
	close(b.down)
}

// task runs f in a goroutine that gone waits for, unless the bulk session is
// over.
func (b *bulk) task(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.work.Go(f)
	}
}

// end closes the bulk session; it does not wait.
func (b *bulk) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	b.over = true
	b.work.Go(func() {
		b.pool.close()
		if b.mux == nil {
			_ = b.link.Close()
			return
		}
		b.link.HangUp(b.mux)
	})
}

func (b *bulk) addStream() {
	st, err := b.mux.OpenStream()
	if err != nil {
		b.end()
		return
	}
	s := newStream(st, b.n.cfg.Limits.frame(), bulkBuffer)
	s.pool, s.bulk = b.pool, true
	b.pool.add(s)
}

// receive takes the results that the connector sends on a stream.
func (b *bulk) receive(st *yamux.Stream) {
	defer st.Close()
	r := wire.NewReader(bufio.NewReaderSize(st, bulkBuffer), b.n.cfg.Limits.frame())
	for {
		f, err := r.Next()
		var head wire.Result
		if err == nil && f.Type != wire.FrameResult {
			err = wire.Violation("%s where results arrive", f.Type)
		}
		if err == nil {
			err = r.Decode(f, &head)
		}
		if err == nil && len(f.Body) > b.n.cfg.Limits.Result {
			err = wire.Violation("result of %d bytes, allowed are %d", len(f.Body), b.n.cfg.Limits.Result)
		}
		if err != nil {
			var bad *wire.ProtocolError
			if errors.As(err, &bad) {
				b.n.end(err)
			}
			return
		}
		b.touch()
		b.n.door.arrived(head.ID, f.Body)
		st.Shrink()
	}
}

func (b *bulk) touch() { b.used.Store(int64(b.link.Age())) }

// watch ends the bulk session when it is dead, or was not used for a while and
// no call runs that may use it.
func (b *bulk) watch() {
	t := b.n.cfg.Timing
	tick := time.NewTicker(t.PingInterval)
	defer tick.Stop()
	for {
		select {
		case <-b.mux.CloseChan():
			return
		case <-tick.C:
		}
		_, busy, _ := b.pool.sizes()
		b.n.mu.Lock()
		calls := b.n.calls
		b.n.mu.Unlock()
		if busy == 0 && calls == 0 && b.link.Age()-time.Duration(b.used.Load()) > t.BulkIdle {
			b.end()
			return
		}
		began := time.Now()
		if !b.link.SilentSince(began.Add(-t.PingInterval)) {
			continue
		}
		if _, err := b.mux.Ping(); err != nil && b.link.SilentSince(began) {
			b.end()
			return
		}
	}
}
