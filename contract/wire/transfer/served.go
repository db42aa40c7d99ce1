package transfer

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// Handler carries out a transfer. It reads what is sent until io.EOF, writes the
// answer and returns; an *contract.Error reaches the other end as it is. It
// returns soon after ctx is done.
type Handler func(ctx context.Context, in io.Reader, out contract.BodyWriter) error

// Serving is what a Served needs.
type Serving struct {
	Send func(t wire.Type, header any, body []byte) error // writes a frame; safe beside other writers
	ID   uint64
	Size int64         // that the other end announced
	Idle time.Duration // without a frame either way the transfer is given up
}

// Served is the end that carries a transfer out. The reader of its stream gives
// it the frames that arrive; Run is the other half.
type Served struct {
	o      Serving
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer
	in     *io.PipeReader
	feed   *io.PipeWriter
	body   wire.BodyReader

	mu    sync.Mutex
	whole bool // everything sent to us has arrived
}

// ErrCancelled is the cause of the context of a transfer that the other end gave
// up.
var ErrCancelled = errors.New("the other end gave the transfer up")

// Serve makes a Served.
func Serve(ctx context.Context, o Serving) *Served {
	s := &Served{o: o, body: wire.BodyReader{ID: o.ID, Size: o.Size}}
	s.in, s.feed = io.Pipe()
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.idle = time.AfterFunc(o.Idle, func() { s.give(ErrIdle) })
	context.AfterFunc(s.ctx, func() { _ = s.feed.CloseWithError(context.Cause(s.ctx)) })
	return s
}

func (s *Served) give(why error) { s.cancel(why) }

// Cancel ends the transfer because the other end wants it no more, or is gone.
func (s *Served) Cancel() { s.give(ErrCancelled) }

// Take hands a DATA or END frame on and waits until the handler has read it. Its
// error is a *wire.ProtocolError.
func (s *Served) Take(r *wire.Reader, f wire.Frame) error {
	s.idle.Reset(s.o.Idle)
	if f.Type == wire.FrameEnd {
		if _, err := s.body.End(r, f); err != nil {
			return err
		}
		s.mu.Lock()
		s.whole = true
		s.mu.Unlock()
		_ = s.feed.Close()
		return nil
	}
	if err := s.body.Data(r, f); err != nil {
		return err
	}
	_, _ = s.feed.Write(f.Body) // fails once nobody reads any more
	s.idle.Reset(s.o.Idle)
	return nil
}

// Run calls the handler and sends how it ended, except to an end that gave the
// transfer up. An error means that this could not be said; the stream is to be
// closed then. Otherwise the other end closes it, or uses it again: its reader
// goes on.
func (s *Served) Run(h Handler) error {
	out := &wire.BodyWriter{ID: s.o.ID, Send: func(t wire.Type, header any, body []byte) error {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		s.idle.Reset(s.o.Idle)
		return s.o.Send(t, header, body)
	}}
	err := h(s.ctx, s.in, out)
	_ = s.in.CloseWithError(io.ErrClosedPipe) // the rest is taken and dropped
	s.mu.Lock()
	whole := s.whole
	s.mu.Unlock()
	cause := context.Cause(s.ctx)
	if cause == nil && err == nil {
		err = out.End(!whole)
	}
	s.idle.Stop()
	defer s.cancel(nil)
	switch {
	case errors.Is(cause, ErrCancelled), cause == nil && err == nil:
		return nil
	case cause != nil:
		err = expired(cause)
	}
	return s.o.Send(wire.FrameError, wire.Error{ID: s.o.ID, Error: contract.AsError(err)}, nil)
}

func expired(cause error) error {
	if errors.Is(cause, ErrIdle) || errors.Is(cause, context.DeadlineExceeded) {
		return contract.Fail(contract.Timeout, "The transfer took longer than it may, or stood still too long.").WithCause(cause)
	}
	return contract.Fail(contract.OutcomeUnknown, "The home broke the transfer off.").WithCause(cause)
}
