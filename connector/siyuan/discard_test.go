package siyuan

import (
	"context"
	"net"
	"slices"
	"testing"
)

// lingering notes what is asked of the system before a connection is closed.
type lingering struct {
	net.Conn
	asked []int
}

func (l *lingering) SetLinger(sec int) error { l.asked = append(l.asked, sec); return nil }

func TestARequestThatWasGivenUpIsNotDeliveredLater(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	conn := &lingering{Conn: ours}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := &http1{dial: func(context.Context) (net.Conn, error) { return conn, nil }, limit: 1 << 10}
	if _, unsent, err := h.do(ctx, []byte("POST /api/block/appendBlock HTTP/1.1\r\n\r\n"), true); err == nil || unsent {
		t.Errorf("unsent=%t, %v", unsent, err)
	}
	if !slices.Equal(conn.asked, []int{0}) {
		t.Errorf("linger %v, want 0 once", conn.asked)
	}
}
