package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/transfer"
)

// frameOpened answers a STREAM that goes on to its home; the transfer follows.
const frameOpened wire.Type = 0x31

// streamHeader is the header of a STREAM between nodes.
type streamHeader struct {
	Tenant     string `json:"tenant"`
	Instance   string `json:"instance"`
	Idempotent bool   `json:"idempotent,omitempty"`
	wire.Stream
}

// opened is the header of frameOpened.
type opened struct {
	ID uint64 `json:"id"`
}

var errNoStreams = errors.New("the node is of an older version that carries no transfers")

// OpenStream is cluster.Peers.OpenStream.
func (c *Client) OpenStream(ctx context.Context, to cluster.Route, t contract.Transfer, idempotent bool) (contract.Stream, error) {
	if t.Grant == nil { // the other node would take us for broken
		return nil, fmt.Errorf("%w: transfer without grant", cluster.ErrUnreachable)
	}
	n, err := c.neighbour(to.Node, to.Address)
	if err != nil {
		return nil, err
	}
	select {
	case n.transfers <- struct{}{}:
	default:
		return nil, contract.Fail(contract.RateLimited, "Too many transfers with the node that the home is connected to are running.").After(5)
	}
	s, err := n.open(ctx, to, t, idempotent)
	if err != nil {
		<-n.transfers
		return nil, err
	}
	return s, nil
}

// open sends the STREAM and waits until the other node has passed it on.
func (n *neighbour) open(ctx context.Context, to cluster.Route, t contract.Transfer, idempotent bool) (contract.Stream, error) {
	s, err := n.stream(ctx)
	if err != nil {
		return nil, unreachable(n.node, err)
	}
	n.mu.Lock()
	old := !n.carries
	n.mu.Unlock()
	if old {
		n.put(s)
		return nil, unreachable(n.node, errNoStreams)
	}
	s.last++
	h := streamHeader{Tenant: to.Tenant, Instance: to.Instance, Idempotent: idempotent}
	var args []byte
	h.Stream, args = wire.StreamOf(s.last, t)
	if deadline, ok := ctx.Deadline(); ok {
		h.TimeLeftMS = max(1, time.Until(deadline).Milliseconds())
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = s.st.SetDeadline(time.Unix(1, 0)) // wakes the blocked read or write
	})
	err = s.w.Write(wire.FrameStream, h, args)
	tooLarge := errors.Is(err, wire.ErrTooLarge)
	if err == nil {
		err = s.opened()
	}
	poisoned := !stop()
	if poisoned {
		<-woken
	}
	var e *contract.Error
	switch {
	case poisoned && err == nil:
		err = fmt.Errorf("node %s: %w: %w", n.node, cluster.ErrBroken, ctx.Err())
	case err == nil:
		return n.begin(ctx, s, t, idempotent)
	case tooLarge:
		err = contract.Fail(contract.TooLarge, "The arguments are larger than %d bytes.", n.c.o.Limits.Body).WithCause(err)
	}
	settled := !poisoned && (tooLarge || errors.Is(err, cluster.ErrElsewhere) || errors.As(err, &e))
	if settled {
		n.put(s)
		return nil, err
	}
	n.discard(s, false)
	return nil, fmt.Errorf("node %s: %w: %w", n.node, cluster.ErrBroken, err)
}

// opened reads the answer to a STREAM.
func (s *stream) opened() error {
	f, err := s.r.Next()
	if err != nil {
		return err
	}
	switch f.Type {
	case frameOpened:
		var o opened
		return s.decode(f, &o, &o.ID)
	case frameElsewhere:
		var e elsewhere
		if err := s.decode(f, &e, &e.ID); err != nil {
			return err
		}
		return cluster.ErrElsewhere
	case wire.FrameError:
		var e wire.Error
		if err := s.decode(f, &e, &e.ID); err != nil {
			return err
		}
		if e.Error != nil {
			return e.Error
		}
	}
	return wire.Violation("%s in answer to a STREAM", f.Type)
}

// begin makes the stream of a transfer that the other node has opened.
func (n *neighbour) begin(ctx context.Context, s *stream, t contract.Transfer, idempotent bool) (contract.Stream, error) {
	c := transfer.Open(ctx, transfer.Opening{
		Conn: s.st, Reader: s.r, Writer: s.w, ID: s.last, Size: t.Size, Idle: n.c.o.Timing.StreamIdle,
		Explain: func(err error) *contract.Error { return explain(ctx, err, idempotent) },
		Release: func(clean, cancel bool) {
			if clean {
				s.st.Shrink()
				n.put(s)
			} else {
				n.discard(s, cancel)
			}
			<-n.transfers
		},
	})
	n.c.mu.Lock()
	closed := n.c.closed
	if !closed {
		n.c.work.Go(c.Run)
	}
	n.c.mu.Unlock()
	if closed {
		c.Run() // the link is gone, and so is this
	}
	if t.Size == 0 {
		_ = c.CloseWrite() // if it fails, so does the first Read
	}
	return c, nil
}

// explain is what the caller learns about a transfer that broke between nodes.
func explain(ctx context.Context, err error, idempotent bool) *contract.Error {
	switch {
	case errors.Is(err, wire.ErrBodySize):
		return contract.Fail(contract.InvalidValue, "The body has not the announced size.").WithCause(err)
	case errors.Is(err, transfer.ErrClosed):
		return contract.Fail(contract.Timeout, "The transfer was given up.").WithHint("Start it again.").WithCause(err)
	case !idempotent:
		return contract.Fail(contract.OutcomeUnknown, "The transfer broke off while it was under way; it may or may not have happened.").WithCause(err)
	case ctx.Err() != nil, errors.Is(err, transfer.ErrIdle):
		return contract.Fail(contract.Timeout, "The transfer took longer than it may, or stood still too long; nothing was changed.").WithCause(err)
	}
	return contract.Fail(contract.Offline, "The connection to the part of this service that holds the home broke; nothing was changed.").After(2).WithCause(err)
}

// startTransfer passes a STREAM on to its home. The frames that arrive meanwhile
// go to the Served.
func (s *Server) startTransfer(st *yamux.Stream, w *wire.Writer, h streamHeader, args []byte) (*running, *transfer.Served) {
	left := maxTransfer
	if h.TimeLeftMS > 0 {
		left = time.Duration(min(h.TimeLeftMS, maxTransfer.Milliseconds())) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(s.ctx, left)
	t := h.Transfer(args)
	served := transfer.Serve(ctx, transfer.Serving{ID: h.ID, Size: t.Size, Idle: s.o.Timing.StreamIdle,
		Send: func(typ wire.Type, header any, body []byte) error {
			_ = st.SetWriteDeadline(time.Now().Add(s.o.Timing.StreamIdle)) // fails never
			return w.Write(typ, header, body)
		}})
	r := &running{cancel: func() { served.Cancel(); cancel() }, done: make(chan struct{})}
	s.mu.Lock()
	stopping := s.stopping
	if !stopping {
		s.calls.Add(1)
	}
	s.mu.Unlock()
	go func() { // serveStream waits for it, and so does Stop
		defer close(r.done)
		defer r.cancel()
		if stopping {
			s.write(st, w, frameElsewhere, elsewhere{h.ID}, nil)
			return
		}
		defer s.calls.Done()
		s.transfer(ctx, st, w, h, t, served)
	}()
	return r, served
}

// maxTransfer bounds the time of a transfer.
const maxTransfer = 24 * time.Hour

func (s *Server) transfer(ctx context.Context, st *yamux.Stream, w *wire.Writer, h streamHeader, t contract.Transfer, served *transfer.Served) {
	if !s.local.Has(h.Tenant, h.Instance) {
		s.write(st, w, frameElsewhere, elsewhere{h.ID}, nil)
		return
	}
	home, err := s.local.OpenStream(ctx, h.Tenant, h.Instance, t, h.Idempotent)
	if err != nil {
		s.write(st, w, wire.FrameError, wire.Error{ID: h.ID, Error: contract.AsError(err)}, nil)
		return
	}
	defer home.Close()
	if !s.write(st, w, frameOpened, opened{h.ID}, nil) {
		return
	}
	var up sync.WaitGroup
	defer up.Wait() // ends when Run does, which closes what it reads from
	err = served.Run(func(ctx context.Context, in io.Reader, out contract.BodyWriter) error {
		stop := context.AfterFunc(ctx, func() { _ = home.Close() })
		defer stop()
		up.Go(func() {
			if _, err := io.Copy(home, in); err == nil {
				_ = home.CloseWrite()
			}
		})
		return answerFrom(home, out)
	})
	if err != nil {
		_ = st.Close()
	}
}

// answerFrom copies what a home sends, with its size where it is known.
func answerFrom(home contract.Stream, out contract.BodyWriter) error {
	buf := make([]byte, 32<<10)
	n, err := home.Read(buf)
	if size := home.Size(); size >= 0 && n > 0 {
		if err := out.Announce(size); err != nil {
			return err
		}
	}
	for {
		if n > 0 {
			if _, err := out.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		n, err = home.Read(buf)
	}
}
