package faultproxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Direction is one of the two byte streams of a connection.
type Direction int

// The directions.
const (
	Up   Direction = iota // from the client to the server
	Down                  // from the server to the client
)

// Effect is what happens to the bytes of a direction.
type Effect int

// The effects.
const (
	Pass     Effect = iota
	Drop            // swallowed, and so are closings: a black hole
	Hold            // kept until the rule changes, with backpressure on the sender: a frozen peer
	Reset           // both ends see the connection reset
	Truncate        // both ends see an orderly close, in the middle of whatever was under way
)

// Rule says how a direction behaves. The zero Rule is an ordinary network.
type Rule struct {
	Effect Effect
	After  int64         // bytes that still pass before Effect begins, counted from when the rule was set
	Delay  time.Duration // every byte arrives this much later
	Rate   int           // bytes a second; 0: no bound
	Hide   bool          // closing is not passed on: the other end is left half-open
}

// Rules are those of both directions.
type Rules struct{ Up, Down Rule }

// Both is the same rule in both directions.
func Both(r Rule) Rules { return Rules{r, r} }

// Proxy forwards TCP connections to a target. Its methods may be called at any
// time.
type Proxy struct {
	ln      net.Listener
	running sync.WaitGroup
	ended   chan struct{}
	once    sync.Once

	mu        sync.Mutex
	target    string
	rules     Rules         // of connections to come
	idle      time.Duration // see ForgetIdle
	duplicate bool
	refuse    bool
	conns     []*Conn
}

// Start listens on a loopback port and forwards to target, which Retarget may
// name later.
func Start(target string) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fault proxy: %w", err)
	}
	p := &Proxy{ln: ln, target: target, ended: make(chan struct{})}
	p.running.Go(p.serve)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Close ends all connections and waits until nothing of the proxy is left.
// Calling it again waits for the same.
func (p *Proxy) Close() (err error) {
	p.once.Do(func() {
		err = p.ln.Close()
		close(p.ended)
		for _, c := range p.Conns() {
			c.close()
		}
	})
	p.running.Wait()
	return err
}

// Retarget sends new connections to another address.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Set gives all connections, and those to come, new rules.
func (p *Proxy) Set(r Rules) {
	p.SetNew(r)
	p.SetOpen(r)
}

// SetNew gives connections to come new rules.
func (p *Proxy) SetNew(r Rules) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = r
}

// SetOpen gives the present connections new rules; those to come keep theirs.
func (p *Proxy) SetOpen(r Rules) {
	for _, c := range p.Conns() {
		c.Set(r)
	}
}

// Refuse makes new connections end at once, as if nobody listened.
func (p *Proxy) Refuse(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = yes
}

// Duplicate sends what new clients say to a second connection too, whose
// answers nobody sees.
func (p *Proxy) Duplicate(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.duplicate = yes
}

// ForgetIdle makes new connections black holes once nothing has passed for so
// long, as a NAT table does.
func (p *Proxy) ForgetIdle(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = after
}

// Conns are the connections so far, the oldest first, ended ones too.
func (p *Proxy) Conns() []*Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*Conn(nil), p.conns...)
}

func (p *Proxy) serve() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		p.running.Go(func() { p.forward(client) })
	}
}

// forward connects a client with the target.
func (p *Proxy) forward(client net.Conn) {
	p.mu.Lock()
	target, refuse, duplicate := p.target, p.refuse, p.duplicate
	p.mu.Unlock()
	if refuse {
		reset(client)
		return
	}
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		reset(client)
		return
	}
	var copied io.Writer = io.Discard
	if duplicate {
		if twin, err := net.DialTimeout("tcp", target, 5*time.Second); err == nil {
			copied = twin
			p.running.Go(func() { _, _ = io.Copy(io.Discard, twin) })
			defer twin.Close()
		}
	}
	p.mu.Lock()
	c := newConn(client, server, p.rules, p.idle, copied)
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	select {
	case <-p.ended: // Close may have missed it
		c.close()
	default:
	}
	c.run()
}

// reset closes a connection so that its peer sees an error.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
