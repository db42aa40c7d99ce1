package wire

import (
	"io"
	"sync"
)

const (
	maxPending = 256 << 10 // what a Coalescer holds before its writers wait
	idleKeep   = 8 << 10   // larger buffers are not kept while nothing is written
)

// Coalescer joins the writes that arrive while another one is under way into
// the next one. The multiplexer makes two small writes per frame; under load
// this turns many of them into one TLS record and one system call. Its
// goroutine exists only while there is something to write.
//
// A Write has only been accepted when it returns; a failure is reported by the
// following ones.
type Coalescer struct {
	w io.Writer

	mu      sync.Mutex
	room    sync.Cond
	pending []byte
	spare   []byte // the buffer that was written last
	flying  bool
	err     error
	flight  sync.WaitGroup
}

// NewCoalescer writes to w, which must not be written to by anybody else.
func NewCoalescer(w io.Writer) *Coalescer {
	c := &Coalescer{w: w}
	c.room.L = &c.mu
	return c
}

// Write takes b. It blocks while more than 256 KiB wait.
func (c *Coalescer) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > maxPending && c.err == nil {
		c.room.Wait()
	}
	if c.err != nil {
		return 0, c.err
	}
	c.pending = append(c.pending, b...)
	if !c.flying {
		c.flying = true
		c.flight.Go(c.flush)
	}
	return len(b), nil
}

func (c *Coalescer) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > 0 && c.err == nil {
		out := c.pending
		c.pending = c.spare[:0]
		c.mu.Unlock()
		_, err := c.w.Write(out)
		c.mu.Lock()
		if c.spare = out; cap(out) > keep {
			c.spare = nil
		}
		if err != nil && c.err == nil {
			c.err = err
		}
		c.room.Broadcast()
	}
	c.flying = false
	if cap(c.spare) > idleKeep {
		c.spare = nil
	}
	if cap(c.pending) > idleKeep && len(c.pending) == 0 {
		c.pending = nil
	}
}

// Stop fails all further writes. What still waits is lost.
func (c *Coalescer) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = io.ErrClosedPipe
	}
	c.room.Broadcast()
}

// Close stops and waits for the write under way, which ends once the writer
// below is closed: close that first.
func (c *Coalescer) Close() error {
	c.Stop()
	c.flight.Wait()
	return nil
}
