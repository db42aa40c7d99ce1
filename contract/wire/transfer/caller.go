package transfer

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// Conn is the stream a transfer runs on. A deadline in the past must end a Read
// or Write that is under way.
type Conn interface{ SetDeadline(time.Time) error }

// Opening is what a Caller needs, after its STREAM frame was written.
type Opening struct {
	Conn   Conn
	Reader *wire.Reader
	Writer *wire.Writer
	ID     uint64
	Size   int64         // of the body that is to be sent
	Idle   time.Duration // without a frame either way the transfer is given up
	// Explain turns what ended the transfer, other than the other end's ERROR,
	// into what the reader learns.
	Explain func(error) *contract.Error
	// Check bounds an ERROR from the other end; nil takes it as it is.
	Check func(*contract.Error) *contract.Error
	// Release is called once, when nothing uses the stream any more. Clean: it is
	// between two calls. Otherwise it is to be closed, after a CANCEL if cancel
	// says that one can still be written.
	Release func(clean, cancel bool)
}

// What ends a transfer at the caller's end; Explain sees them.
var (
	ErrIdle   = errors.New("nothing moved within the idle time")
	ErrClosed = errors.New("the transfer was given up")
)

// Caller is the end of a transfer that asked for it, a contract.Stream.
type Caller struct {
	o    Opening
	in   *io.PipeReader
	pump *io.PipeWriter
	size atomic.Int64
	idle *time.Timer
	stop func() bool   // of the context's hook
	done chan struct{} // closed when Run is over

	writing sync.Mutex // held while a frame is written
	body    wire.BodyWriter
	ended   bool // our END is written
	partial bool // a frame may be half out

	mu  sync.Mutex
	err error // the first failure
}

var _ contract.Stream = (*Caller)(nil)

// Open makes a Caller; its Run must be started in a goroutine. The transfer ends
// with ctx.
func Open(ctx context.Context, o Opening) *Caller {
	c := &Caller{o: o, done: make(chan struct{})}
	c.in, c.pump = io.Pipe()
	c.size.Store(contract.UnknownSize)
	c.body = wire.BodyWriter{ID: o.ID, Send: c.send}
	c.body.Expect(o.Size)
	c.idle = time.AfterFunc(o.Idle, func() { c.fail(ErrIdle) })
	c.stop = context.AfterFunc(ctx, func() { c.fail(context.Cause(ctx)) })
	return c
}

// fail ends the transfer for a reason, unless there was one before, and returns
// what the caller is to be told.
func (c *Caller) fail(why error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		var e *contract.Error
		if c.err = why; why != io.EOF && !errors.As(why, &e) {
			c.err = c.o.Explain(why)
		}
		_ = c.o.Conn.SetDeadline(time.Unix(1, 0)) // wakes whoever reads or writes
		_ = c.pump.CloseWithError(c.err)
	}
	return c.err
}

func (c *Caller) send(t wire.Type, header any, body []byte) error {
	c.idle.Reset(c.o.Idle)
	err := c.o.Writer.Write(t, header, body)
	c.partial = c.partial || err != nil && !errors.Is(err, wire.ErrTooLarge)
	return err
}

// Write is contract.Stream.
func (c *Caller) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended || c.over() {
		return 0, c.refused()
	}
	n, err := c.body.Write(p)
	if err != nil {
		return n, c.fail(err)
	}
	return n, nil
}

func (c *Caller) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// refused is why nothing can be written.
func (c *Caller) refused() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil || c.err == io.EOF {
		return contract.Fail(contract.Unsupported, "The other end completed the transfer without taking all that was sent.")
	}
	return c.err
}

// CloseWrite is contract.Stream.
func (c *Caller) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	switch {
	case c.ended:
		return nil
	case c.over():
		return c.refused()
	}
	c.ended = true
	if err := c.body.End(false); err != nil {
		return c.fail(err)
	}
	return nil
}

// Read is contract.Stream.
func (c *Caller) Read(p []byte) (int, error) { return c.in.Read(p) }

// Size is contract.Stream.
func (c *Caller) Size() int64 { return c.size.Load() }

// Close is contract.Stream. It returns when the stream is released.
func (c *Caller) Close() error {
	_ = c.in.CloseWithError(ErrClosed)
	_ = c.fail(ErrClosed)
	<-c.done
	return nil
}

// Run takes what the other end sends until the transfer is over, and releases
// the stream.
func (c *Caller) Run() {
	defer close(c.done)
	clean, err := c.take()
	c.idle.Stop()
	if !c.stop() {
		clean = false // the deadline is poisoned, or about to be
	}
	if clean {
		c.writing.Lock()
		if clean = c.ended && !c.over(); clean {
			c.mu.Lock()
			c.err = io.EOF
			c.mu.Unlock()
			_ = c.pump.Close()
		}
		c.writing.Unlock()
	}
	if !clean {
		if err == nil {
			err = io.EOF
		}
		_ = c.fail(err)
	}
	c.writing.Lock() // a Write under way has returned
	partial := c.partial
	c.writing.Unlock()
	c.o.Release(clean, !clean && !partial && err != io.EOF)
}

// take hands on frames until one ends the transfer; clean says that the stream
// may be used again, if our side is at its end too.
func (c *Caller) take() (clean bool, err error) {
	in := wire.BodyReader{ID: c.o.ID, Size: contract.UnknownSize}
	for {
		f, err := c.o.Reader.Next()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // io.EOF is a transfer that is complete
		}
		if err != nil {
			return false, err
		}
		c.idle.Reset(c.o.Idle)
		switch f.Type {
		case wire.FrameData:
			if err := in.Data(c.o.Reader, f); err != nil {
				return false, err
			}
			c.size.Store(in.Size)
			if _, err := c.pump.Write(f.Body); err != nil {
				return false, err
			}
		case wire.FrameEnd:
			e, err := in.End(c.o.Reader, f)
			if err != nil {
				return false, err
			}
			return !e.Close, nil
		case wire.FrameError:
			var e wire.Error
			if err := c.o.Reader.Decode(f, &e); err != nil {
				return false, err
			}
			if e.ID != c.o.ID {
				return false, wire.Violation("ERROR for %d while transfer %d runs", e.ID, c.o.ID)
			}
			if c.o.Check != nil {
				e.Error = c.o.Check(e.Error)
			}
			if e.Error == nil {
				return false, wire.Violation("ERROR without error")
			}
			return false, e.Error
		default:
			return false, wire.Violation("%s in a transfer", f.Type)
		}
	}
}
