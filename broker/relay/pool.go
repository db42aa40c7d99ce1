package relay

import (
	"bufio"
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/yamux"

	"siyuan-broker/contract/wire"
)

// stream is a persistent call stream; one call at a time uses it.
type stream struct {
	st   *yamux.Stream
	r    *wire.Reader
	w    *wire.Writer
	last uint64 // id of the latest call
	pool *pool  // it belongs to

	bulk   bool        // it is one of the bulk session
	result chan []byte // where the bulk session delivers; nil until the first call
}

func newStream(st *yamux.Stream, l wire.Limits, buffer int) *stream {
	return &stream{st: st, r: wire.NewReader(bufio.NewReaderSize(st, buffer), l), w: wire.NewWriter(st, l)}
}

var (
	errPoolClosed = errors.New("session ended")
	errQueueFull  = errors.New("too many calls are waiting for this connector")
)

// pool hands out call streams. Streams are opened by open, which runs outside
// of any call because yamux blocks there without a context; calls wait for the
// pool instead, in order, at most maxQueue of them.
type pool struct {
	open     func() // starts opening one stream, which ends in add, or in close
	maxOpen  int
	maxQueue int

	mu      sync.Mutex
	closed  bool
	idle    []*stream // the most recently used last
	count   int       // open or opening
	opening int
	low     int // fewest idle streams since the last reap
	waiting []chan *stream
}

// get takes a stream, waiting for one if all are busy. Errors: errPoolClosed,
// errQueueFull, or the context's.
func (p *pool) get(ctx context.Context) (*stream, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errPoolClosed
	}
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.low = min(p.low, n-1)
		p.mu.Unlock()
		return s, nil
	}
	p.low = 0
	if len(p.waiting) >= p.maxQueue {
		p.mu.Unlock()
		return nil, errQueueFull
	}
	turn := make(chan *stream, 1)
	p.waiting = append(p.waiting, turn)
	more := p.grow()
	p.mu.Unlock()
	if more {
		p.open()
	}
	select {
	case s, ok := <-turn:
		if !ok {
			return nil, errPoolClosed
		}
		return s, nil
	case <-ctx.Done():
		p.leave(turn)
		return nil, ctx.Err()
	}
}

// grow reserves one more stream if somebody waits for whom none is being opened
// yet, and there may be one; called with mu held.
func (p *pool) grow() bool {
	if p.closed || p.count >= p.maxOpen || p.opening >= len(p.waiting) {
		return false
	}
	p.count++
	p.opening++
	return true
}

// first reserves a stream if there is none yet.
func (p *pool) first() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.count > 0 {
		return false
	}
	p.count++
	p.opening++
	return true
}

// add brings a new stream.
func (p *pool) add(s *stream) {
	p.mu.Lock()
	p.opening--
	p.mu.Unlock()
	p.put(s)
}

// leave gives up a place in the queue; a stream that was handed over in the
// same moment goes to the next.
func (p *pool) leave(turn chan *stream) {
	p.mu.Lock()
	for i, t := range p.waiting {
		if t == turn {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	select {
	case s, ok := <-turn:
		if ok {
			p.put(s)
		}
	default:
	}
}

// put returns a stream that is between two calls.
func (p *pool) put(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
	case len(p.waiting) > 0:
		p.waiting[0] <- s
		p.waiting = p.waiting[1:]
	default:
		p.idle = append(p.idle, s)
	}
}

// drop tells the pool that a stream is gone, and replaces it if calls wait.
func (p *pool) drop() {
	p.mu.Lock()
	p.count--
	more := len(p.waiting) > 0 && p.grow()
	p.mu.Unlock()
	if more {
		p.open()
	}
}

// reap returns the streams that nobody has needed since the last reap, except
// one that is kept warm.
func (p *pool) reap() []*stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := max(0, min(p.low, len(p.idle))-1)
	unused := append([]*stream(nil), p.idle[:n]...)
	p.idle = append([]*stream(nil), p.idle[n:]...)
	p.count -= n
	p.low = len(p.idle)
	return unused
}

// close fails everyone who waits. The streams end with their session.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, turn := range p.waiting {
		close(turn)
	}
	p.waiting = nil
}

func (p *pool) sizes() (open, busy, queued int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count, p.count - len(p.idle), len(p.waiting)
}
