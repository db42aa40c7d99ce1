package wire

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"
	"time"
)

// gate is a writer that waits for permission and keeps what it was given.
type gate struct {
	entered, pass chan struct{}

	mu     sync.Mutex
	writes [][]byte
	err    error
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 1000), pass: make(chan struct{})} }

func (g *gate) Write(b []byte) (int, error) {
	g.entered <- struct{}{}
	<-g.pass
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, bytes.Clone(b))
	return len(b), g.err
}

func TestWritesDuringAWriteBecomeOne(t *testing.T) {
	t.Parallel()
	g := newGate()
	c := NewCoalescer(g)
	write := func(s string) {
		if n, err := io.WriteString(c, s); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	write("a")
	<-g.entered
	write("b")
	write("c")
	write("d")
	close(g.pass)
	<-g.entered
	_ = c.Close() // waits for the write under way
	if len(g.writes) != 2 || string(g.writes[0]) != "a" || string(g.writes[1]) != "bcd" {
		t.Errorf("%q", g.writes)
	}
	if _, err := c.Write([]byte("e")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAWriterWaitsWhileTooMuchIsPending(t *testing.T) {
	t.Parallel()
	g := newGate()
	c := NewCoalescer(g)
	_, _ = c.Write([]byte("a"))
	<-g.entered
	_, _ = c.Write(make([]byte, maxPending+1))
	done := make(chan error)
	go func() { _, err := c.Write([]byte("b")); done <- err }()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(g.pass)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if cap(c.spare) > idleKeep || cap(c.pending) > idleKeep {
		t.Errorf("keeps %d and %d bytes", cap(c.spare), cap(c.pending))
	}
}

func TestAFailedWriteIsReportedByTheNextAndFreesThoseWhoWait(t *testing.T) {
	t.Parallel()
	g := newGate()
	g.err = errors.New("reset")
	c := NewCoalescer(g)
	_, _ = c.Write(make([]byte, 1))
	<-g.entered
	_, _ = c.Write(make([]byte, maxPending+1))
	done := make(chan error)
	go func() { _, err := c.Write([]byte("b")); done <- err }()
	close(g.pass)
	if err := <-done; err == nil || err.Error() != "reset" {
		t.Errorf("%v", err)
	}
	_ = c.Close()
}

func TestConcurrentWritesArriveWholeAndInOrderPerWriter(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := NewCoalescer(&out)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 500 {
				_, _ = c.Write([]byte{byte(i), byte(j), byte(j >> 8)})
			}
		})
	}
	wg.Wait()
	c.flight.Wait()
	next := [8]int{}
	for b := out.Bytes(); len(b) > 0; b = b[3:] {
		if got := int(b[1]) | int(b[2])<<8; got != next[b[0]] {
			t.Fatalf("writer %d: %d after %d", b[0], got, next[b[0]]-1)
		}
		next[b[0]]++
	}
	if next != [8]int{500, 500, 500, 500, 500, 500, 500, 500} {
		t.Errorf("%v", next)
	}
}
