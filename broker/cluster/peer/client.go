package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// Client carries calls to other nodes, over one connection to each, which is
// made by the first call that needs it.
type Client struct {
	o   Options
	tls *tls.Config

	mu     sync.Mutex
	closed bool
	peers  map[string]*neighbour // by node id
	work   sync.WaitGroup
	ctx    context.Context // of dialing
	cancel context.CancelFunc
}

var _ cluster.Peers = (*Client)(nil)

// neighbour is one other node.
type neighbour struct {
	c       *Client
	node    string
	address string
	calls   chan struct{} // a token for every running call
	queued  atomic.Int64

	transfers chan struct{} // a token for every running transfer

	mu       sync.Mutex
	dropped  bool
	carries  bool           // the node takes STREAM
	mux      *yamux.Session // nil while not connected
	idle     []*stream
	dialing  chan struct{} // closed when the attempt under way is over
	err      error         // of the last attempt
	failedAt time.Time
}

// stream is a persistent call stream of one link.
type stream struct {
	mux  *yamux.Session
	st   *yamux.Stream
	r    *wire.Reader
	w    *wire.Writer
	last uint64 // id of the latest call
}

// NewClient makes a Client without connections.
func NewClient(o Options) (*Client, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	c := &Client{o: o, tls: o.Identity.config(), peers: map[string]*neighbour{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Call is cluster.Peers.Call.
func (c *Client) Call(ctx context.Context, to cluster.Route, call contract.Call, idempotent bool, progress func(contract.Progress)) (contract.Result, error) {
	if call.Grant == nil { // the other node would take us for broken
		return contract.Result{}, fmt.Errorf("%w: call without grant", cluster.ErrUnreachable)
	}
	h := callHeader{Tenant: to.Tenant, Instance: to.Instance, Idempotent: idempotent}
	var args []byte
	h.Call, args = wire.CallOf(0, call)
	return c.send(ctx, to.Node, to.Address, h, args, progress)
}

// Offer asks a node whether it takes something, such as an answer that one of
// its calls waits for. Errors are ErrUnreachable where it was not asked, and
// ErrBroken where it may have taken it.
func (c *Client) Offer(ctx context.Context, to cluster.Node, tenant, subject string, body []byte) (taken bool, err error) {
	h := callHeader{Tenant: tenant, Subject: subject,
		Call: wire.Call{Server: offerServer, Method: offerMethod, Grant: &contract.Grant{}}} // no CALL goes without a grant; this one allows nothing
	res, err := c.send(ctx, to.ID, to.Address, h, body, nil)
	switch {
	case errors.Is(err, cluster.ErrElsewhere):
		return false, nil
	case err != nil:
		return false, err
	case res.Err != nil && contract.CodeOf(res.Err) == contract.Timeout:
		return false, fmt.Errorf("node %s: %w: %w", to.ID, cluster.ErrBroken, res.Err)
	case res.Err != nil:
		return false, unreachable(to.ID, res.Err) // too many calls wait, or the body is too large
	}
	return true, nil
}

// send has a node run a call; the id in the header is set here.
func (c *Client) send(ctx context.Context, node, address string, h callHeader, args []byte, progress func(contract.Progress)) (contract.Result, error) {
	n, err := c.neighbour(node, address)
	if err != nil {
		return contract.Result{}, err
	}
	if n.queued.Add(1) > int64(c.o.Limits.Calls+c.o.Limits.Queue) {
		n.queued.Add(-1)
		return contract.Result{Err: contract.Fail(contract.RateLimited, "Too many calls are waiting for the node that the home is connected to.").After(1)}, nil
	}
	defer n.queued.Add(-1)
	select {
	case n.calls <- struct{}{}:
		defer func() { <-n.calls }()
	case <-ctx.Done():
		return contract.Result{}, unreachable(node, ctx.Err())
	}
	s, err := n.stream(ctx)
	if err != nil {
		return contract.Result{}, unreachable(node, err)
	}
	s.last++
	h.ID = s.last
	return n.exchange(ctx, s, h, args, progress)
}

func unreachable(node string, err error) error {
	return fmt.Errorf("node %s: %w: %w", node, cluster.ErrUnreachable, err)
}

func (c *Client) neighbour(node, address string) (*neighbour, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, unreachable(node, net.ErrClosed)
	}
	n := c.peers[node]
	if n != nil && n.address == address {
		return n, nil
	}
	if n == nil && len(c.peers) >= c.o.Limits.Peers {
		return nil, unreachable(node, errors.New("connected to too many nodes"))
	}
	if n != nil { // it came back somewhere else
		c.work.Go(n.drop)
	}
	n = &neighbour{c: c, node: node, address: address, calls: make(chan struct{}, c.o.Limits.Calls), transfers: make(chan struct{}, c.o.Limits.Transfers)}
	c.peers[node] = n
	return n, nil
}

// Drop ends the connection to a node that is gone; calls on it fail at once.
func (c *Client) Drop(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.peers[node]; n != nil {
		delete(c.peers, node)
		c.work.Go(n.drop)
	}
}

// Close ends every connection and waits. Running calls fail.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	for id, n := range c.peers {
		delete(c.peers, id)
		c.work.Go(n.drop)
	}
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
}

func (n *neighbour) drop() {
	n.mu.Lock()
	n.dropped = true
	mux := n.mux
	n.mux, n.idle = nil, nil
	n.mu.Unlock()
	if mux != nil {
		_ = mux.Close()
	}
}

// link returns a live connection, waiting for the attempt under way.
func (n *neighbour) link(ctx context.Context) (*yamux.Session, error) {
	n.mu.Lock()
	if n.mux != nil && n.mux.IsClosed() {
		n.mux, n.idle = nil, nil
	}
	switch {
	case n.dropped:
		n.mu.Unlock()
		return nil, net.ErrClosed
	case n.mux != nil:
		defer n.mu.Unlock()
		return n.mux, nil
	case n.dialing == nil && n.err != nil && n.c.o.Now().Sub(n.failedAt) < n.c.o.Timing.Again:
		defer n.mu.Unlock()
		return nil, n.err
	case n.dialing == nil && !n.startDial():
		n.mu.Unlock()
		return nil, net.ErrClosed
	}
	attempt := n.dialing
	n.mu.Unlock()
	select {
	case <-attempt:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mux == nil {
		return nil, n.err
	}
	return n.mux, nil
}

// startDial begins an attempt that no call owns, since others wait for it too;
// n.mu is held.
func (n *neighbour) startDial() bool {
	if n.c.ctx.Err() != nil {
		return false
	}
	n.dialing = make(chan struct{})
	n.c.work.Add(1) // with ctx alive, before Close waits: Close drops us under n.mu first
	go func() {
		defer n.c.work.Done()
		mux, carries, err := n.dial()
		n.mu.Lock()
		if n.dropped && mux != nil {
			defer mux.Close()
			mux, err = nil, net.ErrClosed
		}
		n.mux, n.carries, n.err, n.failedAt = mux, carries, err, n.c.o.Now()
		close(n.dialing)
		n.dialing = nil
		n.mu.Unlock()
	}()
	return true
}

// dial connects; carries says that the node takes STREAM.
func (n *neighbour) dial() (mux *yamux.Session, carries bool, err error) {
	o := &n.c.o
	ctx, cancel := context.WithTimeout(n.c.ctx, o.Timing.Dial)
	defer cancel()
	conn, err := o.Dial(ctx, n.address)
	if err != nil {
		return nil, false, fmt.Errorf("dial: %w", err)
	}
	secure := tls.Client(conn, n.c.tls)
	if carries, err = meet(ctx, secure, n.node); err != nil {
		_ = conn.Close()
		o.Log.Warn("no connection to node", "node", n.node, "address", n.address, "error", err)
		return nil, false, err
	}
	mux, err = multiplex(secure, false, o.Timing, o.Log)
	if err != nil {
		_ = conn.Close()
	}
	return mux, carries, err
}

// stream takes an idle stream or opens one.
func (n *neighbour) stream(ctx context.Context) (*stream, error) {
	mux, err := n.link(ctx)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	if i := len(n.idle) - 1; i >= 0 && n.idle[i].mux == mux {
		s := n.idle[i]
		n.idle = n.idle[:i]
		n.mu.Unlock()
		return s, nil
	}
	n.mu.Unlock()
	// Below the backlog, which Limits.Calls and the speed of the other end keep,
	// this only queues a frame.
	st, err := mux.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	l := n.c.o.Limits.frame()
	return &stream{mux: mux, st: st, r: wire.NewReader(bufio.NewReaderSize(st, 4096), l), w: wire.NewWriter(st, l)}, nil
}

// put keeps a stream that is between two calls.
func (n *neighbour) put(s *stream) {
	n.mu.Lock()
	keep := n.mux == s.mux
	if keep {
		n.idle = append(n.idle, s)
	}
	n.mu.Unlock()
	if !keep {
		_ = s.st.Close()
	}
}

// exchange sends the call and waits for its end. The stream is kept only after a
// complete answer.
func (n *neighbour) exchange(ctx context.Context, s *stream, h callHeader, args []byte, progress func(contract.Progress)) (contract.Result, error) {
	if deadline, ok := ctx.Deadline(); ok {
		h.TimeLeftMS = max(1, time.Until(deadline).Milliseconds())
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = s.st.SetDeadline(time.Unix(1, 0)) // wakes the blocked read or write
	})
	err := s.w.Write(wire.FrameCall, h, args)
	whole := err == nil
	var res contract.Result
	switch {
	case errors.Is(err, wire.ErrTooLarge):
		res, err = contract.Result{Err: contract.Fail(contract.TooLarge, "The arguments are larger than %d bytes.", n.c.o.Limits.Body).WithCause(err)}, nil
	case err == nil:
		res, err = s.answer(progress)
	}
	poisoned := !stop()
	if poisoned {
		<-interrupted
	}
	if (err == nil || errors.Is(err, cluster.ErrElsewhere)) && !poisoned {
		if len(res.Body) > 64<<10 {
			s.st.Shrink()
		}
		n.put(s)
		return res, err
	}
	n.discard(s, whole && err != nil)
	switch {
	case err == nil || errors.Is(err, cluster.ErrElsewhere):
		return res, err
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	return contract.Result{}, fmt.Errorf("node %s: %w: %w", n.node, cluster.ErrBroken, err)
}

// discard closes a stream that must not be used again, after a CANCEL where the
// other node may still be at work. The caller does not wait for it.
func (n *neighbour) discard(s *stream, cancel bool) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	if n.c.closed {
		return // the link goes with everything on it
	}
	n.c.work.Go(func() {
		if cancel {
			_ = s.st.SetWriteDeadline(time.Now().Add(n.c.o.Timing.Write))
			_ = s.w.Write(wire.FrameCancel, wire.Cancel{ID: s.last}, nil) // closing says the same, only less clearly
		}
		_ = s.st.Close()
	})
}

// answer reads frames until one ends the call.
func (s *stream) answer(progress func(contract.Progress)) (contract.Result, error) {
	for {
		f, err := s.r.Next()
		if err != nil {
			return contract.Result{}, err
		}
		switch f.Type {
		case wire.FrameProgress:
			var p wire.Progress
			if err := s.decode(f, &p, &p.ID); err != nil {
				return contract.Result{}, err
			}
			if progress != nil {
				progress(p.Progress)
			}
		case wire.FrameResult:
			var r wire.Result
			if err := s.decode(f, &r, &r.ID); err != nil {
				return contract.Result{}, err
			}
			return contract.Result{Body: f.Body, Stats: r.Stats}, nil
		case wire.FrameError:
			var e wire.Error
			if err := s.decode(f, &e, &e.ID); err != nil {
				return contract.Result{}, err
			}
			if e.Error == nil {
				return contract.Result{}, wire.Violation("ERROR without error")
			}
			return contract.Result{Err: e.Error, Stats: e.Stats}, nil
		case frameElsewhere:
			var e elsewhere
			if err := s.decode(f, &e, &e.ID); err != nil {
				return contract.Result{}, err
			}
			return contract.Result{}, cluster.ErrElsewhere
		default:
			return contract.Result{}, wire.Violation("%s in answer to a call", f.Type)
		}
	}
}

// decode reads a header and checks that it answers the current call.
func (s *stream) decode(f wire.Frame, v any, id *uint64) error {
	if err := s.r.Decode(f, v); err != nil {
		return err
	}
	if *id != s.last {
		return wire.Violation("%s for call %d while call %d runs", f.Type, *id, s.last)
	}
	return nil
}
