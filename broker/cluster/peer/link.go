package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/contract/wire"
)

// version of the protocol between nodes. During a rolling update neighbours
// differ, so it changes only with a reason.
const version = 1

// frameElsewhere answers a CALL whose home has no tunnel on the node. It is none
// of the tunnel's own types.
const frameElsewhere wire.Type = 0x30

// welcome is the first frame, from the node that was called. It says that the
// caller was believed, and who answers: addresses are reused.
type welcome struct {
	Version int    `json:"version"`
	Node    string `json:"node"`
	Streams bool   `json:"streams,omitempty"` // it takes STREAM
}

// callHeader is the header of a CALL between nodes. A call is for an instance,
// unless it is an offer: that has a subject instead.
type callHeader struct {
	Tenant     string `json:"tenant"`
	Instance   string `json:"instance"`
	Subject    string `json:"subject,omitempty"`
	Idempotent bool   `json:"idempotent,omitempty"`
	wire.Call
}

// The names of an offer. Nodes that do not know it find no instance and answer
// frameElsewhere, which is a no.
const (
	offerServer = "broker"
	offerMethod = "offer"
)

func (h *callHeader) offer() bool {
	return h.Instance == "" && h.Server == offerServer && h.Method == offerMethod
}

// elsewhere is the header of frameElsewhere.
type elsewhere struct {
	ID uint64 `json:"id"`
}

// Timing holds every duration of the connections between nodes.
type Timing struct {
	Dial    time.Duration // TCP, TLS and WELCOME together
	Again   time.Duration // no new attempt so soon after a failed one
	Write   time.Duration // one frame; also how long a ping may take
	Ping    time.Duration // between two pings
	Close   time.Duration // a half-closed stream is forgotten
	MaxCall time.Duration // for a call without deadline

	StreamIdle time.Duration // a transfer in which nothing moves is given up
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{Dial: 2 * time.Second, Again: 500 * time.Millisecond, Write: 5 * time.Second, Ping: 3 * time.Second,
		Close: 5 * time.Second, MaxCall: 10 * time.Minute, StreamIdle: time.Minute}
}

// Limits bound what nodes may ask of each other.
type Limits struct {
	Body   int // bytes of arguments or of a result
	Header int // bytes of a frame header, a full grant for instance
	Calls  int // running at once between two nodes, in each direction
	Queue  int // waiting for that; more are rate_limited
	Peers  int // nodes

	Transfers int // running at once with a node; more are rate_limited
}

// DefaultLimits is what production uses.
func DefaultLimits() Limits {
	return Limits{Body: 8 << 20, Header: 320 << 10, Calls: 512, Queue: 2048, Peers: 128, Transfers: 128}
}

func (l Limits) frame() wire.Limits {
	return wire.Limits{Frame: l.Body + l.Header + 64, Header: l.Header, Depth: 64}
}

// muxConn puts the coalescer under the multiplexer. Close drops the TCP
// connection first: TLS would wait for a peer that may be frozen.
type muxConn struct {
	*tls.Conn
	out *wire.Coalescer
}

func (m muxConn) Write(b []byte) (int, error) { return m.out.Write(b) }

func (m muxConn) Close() error { return errors.Join(m.NetConn().Close(), m.out.Close()) }

func multiplex(conn *tls.Conn, server bool, t Timing, log *slog.Logger) (*yamux.Session, error) {
	cfg := &yamux.Config{
		AcceptBacklog: 256, EnableKeepAlive: true, KeepAliveInterval: t.Ping, ConnectionWriteTimeout: t.Write,
		MaxStreamWindowSize: 1 << 20, StreamOpenTimeout: t.Write, StreamCloseTimeout: t.Close, LogOutput: muxLog{log},
	}
	make := yamux.Client
	if server {
		make = yamux.Server
	}
	mux, err := make(muxConn{conn, wire.NewCoalescer(conn)}, cfg)
	if err != nil {
		return nil, fmt.Errorf("start multiplexer: %w", err)
	}
	return mux, nil
}

type muxLog struct{ log *slog.Logger }

func (m muxLog) Write(b []byte) (int, error) {
	m.log.Debug("yamux", "line", string(bytes.TrimSpace(b)))
	return len(b), nil
}

// greet is the called node's side before the multiplexer.
func greet(ctx context.Context, conn *tls.Conn, node string, t Timing) error {
	_ = conn.SetDeadline(time.Now().Add(t.Dial))
	if err := conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	if err := wire.NewWriter(conn, wire.HandshakeLimits()).Write(wire.FrameWelcome, welcome{version, node, true}, nil); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// meet is the calling node's side. It reports whether the other one takes STREAM.
func meet(ctx context.Context, conn *tls.Conn, node string) (streams bool, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		return false, fmt.Errorf("TLS: %w", err)
	}
	r := wire.NewReader(conn, wire.HandshakeLimits())
	f, err := r.Next()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errStranger
		}
		return false, fmt.Errorf("no welcome: %w", err)
	}
	var w welcome
	if err := r.Decode(f, &w); err != nil {
		return false, err
	}
	switch {
	case f.Type != wire.FrameWelcome || w.Version != version:
		return false, wire.Violation("%s of version %d, this is version %d", f.Type, w.Version, version)
	case w.Node != node:
		return false, fmt.Errorf("node %q answers at the address of %q", w.Node, node)
	}
	return w.Streams, conn.SetDeadline(time.Time{})
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}
