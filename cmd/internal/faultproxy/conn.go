package faultproxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	chunkSize = 16 << 10
	backlog   = 16 // chunks on their way in one direction
	slices    = 50 // per second, of a throttled direction
)

// Conn is one forwarded connection.
type Conn struct {
	ends   [2]net.Conn // the receiving end of Up is the server, of Down the client
	copied io.Writer
	idle   time.Duration

	closed  chan struct{} // both ends were closed by us
	once    sync.Once
	gone    [2]chan struct{} // see Gone
	passed  [2]atomic.Int64
	touched atomic.Int64 // when bytes last passed, nanoseconds after born
	born    time.Time

	mu      sync.Mutex
	rules   [2]Rule
	changed chan struct{} // closed when rules change
}

func newConn(client, server net.Conn, r Rules, idle time.Duration, copied io.Writer) *Conn {
	return &Conn{ends: [2]net.Conn{Up: server, Down: client}, copied: copied, idle: idle, closed: make(chan struct{}),
		gone: [2]chan struct{}{make(chan struct{}), make(chan struct{})}, born: time.Now(),
		rules: [2]Rule{r.Up, r.Down}, changed: make(chan struct{})}
}

// Set gives the connection new rules; After counts from now.
func (c *Conn) Set(r Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = [2]Rule{r.Up, r.Down}
	close(c.changed)
	c.changed = make(chan struct{})
}

// Passed is how many bytes arrived at the end of a direction.
func (c *Conn) Passed(d Direction) int64 { return c.passed[d].Load() }

// Gone is closed once the sending end of a direction has closed it, or the proxy
// has: Down for the server, Up for the client. A held direction does not notice.
func (c *Conn) Gone(d Direction) <-chan struct{} { return c.gone[d] }

func (c *Conn) close() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.ends[Up].Close()
		_ = c.ends[Down].Close()
	})
}

func (c *Conn) reset() {
	c.once.Do(func() {
		close(c.closed)
		reset(c.ends[Up])
		reset(c.ends[Down])
	})
}

// run forwards until both directions have ended.
func (c *Conn) run() {
	var both sync.WaitGroup
	for _, d := range []Direction{Up, Down} {
		queue := make(chan chunk, backlog)
		both.Go(func() { c.read(d, queue) })
		both.Go(func() { c.write(d, queue) })
	}
	both.Wait()
	c.close()
}

// chunk is what was read at once, or why nothing more will be.
type chunk struct {
	data []byte
	at   time.Time
	err  error
}

// read takes what the sending end of d says.
func (c *Conn) read(d Direction, queue chan<- chunk) {
	defer close(queue)
	defer close(c.gone[d])
	src := c.ends[1-d]
	for {
		buf := make([]byte, chunkSize)
		n, err := src.Read(buf)
		for _, k := range []chunk{{data: buf[:n], at: time.Now()}, {at: time.Now(), err: err}} {
			if len(k.data) == 0 && k.err == nil {
				continue
			}
			select {
			case queue <- k:
			case <-c.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// write delivers chunks by the rules of the moment.
func (c *Conn) write(d Direction, queue <-chan chunk) {
	first := c.passed[d].Load() // where After of the current rule counts from
	rule, changed := c.rule(d)
	for k := range queue {
		for {
			select {
			case <-changed:
				rule, changed = c.rule(d)
				first = c.passed[d].Load()
			default:
			}
			rest, ok := c.deliver(d, k, rule, first, changed)
			if !ok {
				return
			}
			if k.data = rest; len(rest) == 0 {
				break
			}
		}
	}
}

func (c *Conn) rule(d Direction) (Rule, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rules[d], c.changed
}

// deliver handles a chunk until it is done or the rule changes; rest is what is
// left of it. It returns false when the direction has ended.
func (c *Conn) deliver(d Direction, k chunk, r Rule, first int64, changed <-chan struct{}) (rest []byte, ok bool) {
	if !c.sleep(time.Until(k.at.Add(r.Delay)), changed) {
		return k.data, !c.isClosed()
	}
	dead := c.idle > 0 && time.Since(c.born)-time.Duration(c.touched.Load()) > c.idle
	if k.err != nil {
		if r.Hide || dead || r.Effect == Drop || r.Effect == Hold {
			<-c.closed // the other end must not learn of it, and neither by our closing both
			return nil, false
		}
		c.passClosing(d, k.err)
		return nil, false
	}
	if dead {
		return nil, true
	}
	free := int64(len(k.data))
	if r.Effect != Pass {
		free = max(0, min(free, first+r.After-c.passed[d].Load()))
	}
	if free == 0 {
		return c.suffer(k.data, r.Effect, changed)
	}
	if r.Rate > 0 {
		free = min(free, int64(max(1, r.Rate/slices)))
	}
	n, err := c.ends[d].Write(k.data[:free])
	c.passed[d].Add(int64(n))
	c.touched.Store(int64(time.Since(c.born)))
	if d == Up {
		_, _ = c.copied.Write(k.data[:n])
	}
	if err != nil { // the receiver is gone
		if r.Hide {
			<-c.closed
		} else {
			c.reset()
		}
		return nil, false
	}
	if r.Rate > 0 && !c.sleep(time.Duration(n)*time.Second/time.Duration(r.Rate), nil) {
		return nil, false
	}
	return k.data[n:], true
}

// suffer is what an effect does to bytes.
func (c *Conn) suffer(data []byte, e Effect, changed <-chan struct{}) (rest []byte, ok bool) {
	switch e {
	case Drop:
		return nil, true
	case Hold:
		select {
		case <-changed:
			return data, true
		case <-c.closed:
			return nil, false
		}
	case Truncate:
		c.close()
	default:
		c.reset()
	}
	return nil, false
}

// passClosing tells the receiving end of d that the sending end has closed.
func (c *Conn) passClosing(d Direction, why error) {
	if !errors.Is(why, io.EOF) {
		c.reset()
		return
	}
	if t, ok := c.ends[d].(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}

// sleep is false if the rule changed or the connection ended meanwhile.
func (c *Conn) sleep(d time.Duration, changed <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-changed:
	case <-c.closed:
	}
	return false
}

func (c *Conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}
