package home

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// sentinel is one idle connection to SiYuan. Its end is the earliest sign that the
// kernel went away, and comes before another one can take its place. A nil
// sentinel stands for ever: there is nothing to go by.
type sentinel struct {
	conn net.Conn
	over chan struct{}      // closed at its end
	asks chan chan struct{} // whoever wants to know whether it stands
	one  sync.Mutex         // asks at a time
}

// post connects a sentinel; nil where nobody answers.
func post(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), addr string) *sentinel {
	c, err := dial(ctx, "tcp", addr)
	if err != nil {
		return nil
	}
	s := &sentinel{conn: c, over: make(chan struct{}), asks: make(chan chan struct{})}
	go s.watch() // ends with the connection, which dismiss closes
	return s
}

// aMoment is enough to read an end that has arrived already.
const aMoment = time.Millisecond

func (s *sentinel) watch() {
	defer close(s.over)
	defer func() { _ = s.conn.Close() }()
	var b [1]byte
	for {
		_, err := s.conn.Read(b[:])
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		answer := <-s.asks
		// The deadline cut a read short that may not have seen the end yet.
		if s.conn.SetReadDeadline(time.Now().Add(aMoment)) != nil {
			return
		}
		if _, err := s.conn.Read(b[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if s.conn.SetReadDeadline(time.Time{}) != nil {
			return
		}
		close(answer)
	}
}

// stands reports whether the connection is up at this moment, and not only as far
// as has been noticed.
func (s *sentinel) stands() bool {
	if s == nil {
		return true
	}
	s.one.Lock()
	defer s.one.Unlock()
	answer := make(chan struct{})
	if s.conn.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	select {
	case s.asks <- answer:
	case <-s.over:
		return false
	}
	select {
	case <-answer:
		return true
	case <-s.over:
		return false
	}
}

// ended is closed at the sentinel's end.
func (s *sentinel) ended() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.over
}

// dismiss ends the sentinel, and returns when it has.
func (s *sentinel) dismiss() {
	_ = s.conn.Close()
	<-s.over
}
