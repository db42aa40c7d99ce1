package tunnel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/transfer"
)

// maxDepth bounds the nesting of arguments.
const maxDepth = 128

// callStream is a call stream of the broker: one call at a time, many after
// each other.
type callStream struct {
	s    *session
	st   *yamux.Stream
	r    *wire.Reader
	bulk bool // it is one of the bulk session

	served  *transfer.Served // the latest transfer
	refused bool             // or there was one that was not begun

	writing sync.Mutex // held while a frame is written, which may block; taken before mu
	w       *wire.Writer

	mu      sync.Mutex
	running uint64             // id of the running call; 0: none
	cancel  context.CancelFunc // of the running call
}

// serveStream reads calls until the stream ends, is cancelled or breaks the
// protocol. The running call, if any, is cancelled then and goes on without a
// listener until its handler returns.
func (s *session) serveStream(st *yamux.Stream, bulk bool) {
	buffer := 2048
	if bulk {
		buffer = bulkBuffer
	}
	c := &callStream{s: s, st: st, r: wire.NewReader(bufio.NewReaderSize(st, buffer), s.limits), w: wire.NewWriter(st, s.limits), bulk: bulk}
	err := c.read()
	c.finish(0)
	_ = st.Close()
	var bad *wire.ProtocolError
	if errors.As(err, &bad) {
		s.stop(err)
	}
}

func (c *callStream) read() error {
	for {
		f, err := c.r.Next()
		if err != nil {
			return err
		}
		switch f.Type {
		case wire.FrameCall:
			if err := c.begin(f); err != nil {
				return err
			}
		case wire.FrameStream:
			if err := c.beginTransfer(f); err != nil {
				return err
			}
		case wire.FrameData, wire.FrameEnd:
			if err := c.piece(f); err != nil {
				return err
			}
		case wire.FrameCancel: // the broker closes the stream next
			return io.EOF
		default:
			return wire.Violation("%s on a call stream", f.Type)
		}
	}
}

// begin starts a call.
func (c *callStream) begin(f wire.Frame) error {
	var h wire.Call
	if err := c.r.Decode(f, &h); err != nil {
		return err
	}
	switch {
	case h.ID == 0:
		return wire.Violation("CALL without id")
	case c.busy():
		return wire.Violation("CALL %d while another call runs", h.ID)
	case !c.s.grants.resolve(&h, len(f.Header)):
		return c.write(wire.FrameGrantUnknown, wire.GrantUnknown{ID: h.ID, Digest: h.GrantDigest}, nil)
	}
	c.served, c.refused = nil, false
	if len(f.Body) > wire.MaxData {
		c.st.Shrink()
	}
	if err := wire.CheckJSON(f.Body, maxDepth); err != nil {
		return c.refuse(h.ID, contract.Fail(contract.InvalidArguments, "The arguments are not usable: %v.", err))
	}
	select {
	case c.s.client.slots <- struct{}{}:
	default:
		return c.refuse(h.ID, contract.Fail(contract.RateLimited, "The connector is running as many calls as it may.").After(1))
	}
	limit := c.s.client.cfg.Timing.MaxCall
	if left := time.Duration(min(h.TimeLeftMS, limit.Milliseconds())) * time.Millisecond; left > 0 {
		limit = left
	}
	ctx, cancel := context.WithTimeout(c.s.ctx, limit)
	c.mu.Lock()
	c.running, c.cancel = h.ID, cancel
	c.mu.Unlock()
	c.s.client.sessions.Go(func() {
		defer cancel()
		c.run(ctx, h, f.Body)
	})
	return nil
}

func (c *callStream) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running != 0
}

func (c *callStream) refuse(id uint64, e *contract.Error) error {
	return c.write(wire.FrameError, wire.Error{ID: id, Error: e}, nil)
}

// run executes a call, gives its slot back and sends its end.
func (c *callStream) run(ctx context.Context, h wire.Call, args []byte) {
	res := c.handle(ctx, h.Contract(args), func(p contract.Progress) { c.progress(h.ID, p) })
	<-c.s.client.slots // before the answer: the next call may follow it at once
	if limit := c.s.welcome.MaxResult; res.Err == nil && len(res.Body) > limit {
		res = contract.Result{Stats: res.Stats, Err: contract.Fail(contract.TooLarge, "The result has %d bytes; %d are allowed.", len(res.Body), limit)}
	}
	head := wire.Result{ID: h.ID, Stats: res.Stats}
	if res.Err == nil && c.pushed(ctx, h.Bulk, res.Body) {
		head.Bulk, res.Body = true, nil
	}
	if !c.finish(h.ID) || c.s.ctx.Err() != nil {
		return // nobody waits any more
	}
	var err error
	if res.Err != nil {
		err = c.write(wire.FrameError, wire.Error{ID: h.ID, Error: res.Err, Stats: res.Stats}, nil)
	} else {
		err = c.write(wire.FrameResult, head, res.Body)
	}
	if errors.Is(err, wire.ErrTooLarge) {
		err = c.refuse(h.ID, contract.Internalf(err, "answer to call %d", h.ID))
	}
	if err != nil {
		_ = c.st.Close() // the broker must not wait for an answer that cannot come
	}
}

// pushed sends a large result over the bulk session, if the broker takes it there
// and there is one.
func (c *callStream) pushed(ctx context.Context, number uint64, body []byte) bool {
	if number == 0 || c.bulk || len(body) <= wire.Inline || !c.s.welcome.Bulk {
		return false
	}
	b := c.s.bulkFor(ctx)
	return b != nil && b.push(ctx, number, body) == nil
}

// progress sends a step of a call that is still running; one that comes after
// its handler returned is dropped.
func (c *callStream) progress(id uint64, p contract.Progress) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	running := c.running == id
	c.mu.Unlock()
	if !running {
		return
	}
	if err := c.w.Write(wire.FrameProgress, wire.Progress{ID: id, Progress: p}, nil); err != nil && !errors.Is(err, wire.ErrTooLarge) {
		_ = c.st.Close() // half a frame may be out: nothing may follow it
	}
}

// handle calls the handler; a panic costs only this call.
func (c *callStream) handle(ctx context.Context, call contract.Call, progress func(contract.Progress)) (res contract.Result) {
	defer func() {
		if p := recover(); p != nil {
			c.s.client.cfg.Logger.Error("handler panicked", "tool", call.Tool, "action", call.Action,
				"request_id", call.RequestID, "panic", p, "stack", string(debug.Stack()))
			res = contract.Result{Err: contract.Internalf(fmt.Errorf("panic: %v", p), "%s.%s", call.Tool, call.Action)}
		}
	}()
	return c.s.client.cfg.Handler.Handle(ctx, call, progress)
}

// finish marks the call as over before its answer is written, so that the next
// CALL, which may follow the answer at once, is welcome. It reports whether the
// call was still running; id 0 ends and cancels any.
func (c *callStream) finish(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == 0 || id != 0 && c.running != id {
		return false
	}
	if id == 0 {
		c.cancel()
	}
	c.running = 0
	return true
}

func (c *callStream) write(t wire.Type, header any, body []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.w.Write(t, header, body)
}
