package relay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/hashicorp/yamux"

	"siyuan-broker/contract/wire"
)

// link is a connector's connection, whatever it runs over. Its Close drops the
// TCP connection at once: TLS and WebSocket would first say goodbye for up to
// five seconds to a peer that may be frozen.
type link struct {
	net.Conn
	raw       net.Conn // the TCP connection
	cancel    context.CancelFunc
	transport string // "tls" or "wss"
	remote    string
	binding   []byte // TLS exporter, if TLS ends here
	born      time.Time
	heard     atomic.Int64 // when bytes last arrived, nanoseconds after born
}

// Read notes that the peer is alive.
func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.heard.Store(int64(time.Since(l.born)))
	}
	return n, err
}

// silentSince reports whether nothing arrived after t. It compares monotonic
// times: a wall clock that is set back is no reason to drop everybody.
func (l *link) silentSince(t time.Time) bool { return l.heard.Load() < int64(t.Sub(l.born)) }

// Close drops the connection.
func (l *link) Close() error {
	l.cancel()
	return l.raw.Close()
}

// muxConn is a link as the multiplexer writes to it.
type muxConn struct {
	*link
	out *wire.Coalescer
}

// Write queues b.
func (m muxConn) Write(b []byte) (int, error) { return m.out.Write(b) }

// Close drops the connection. It must not wait for anything: between the moments
// at which yamux begins and ends to close, every reader of a stream spins.
func (m muxConn) Close() error {
	m.out.Stop()
	return m.link.Close()
}

// hangUp closes a session so that its readers have no time to spin: yamux is
// left to find its connection closed, which it does in one go. It returns when
// nothing of the session is left but the owners of its streams.
func (m muxConn) hangUp(mux *yamux.Session) {
	_ = m.Close() // there is nobody left who could use the error
	<-mux.CloseChan()
	_ = mux.Close() // waits for the one under way
	_ = m.out.Close()
}

func tlsLink(c *tls.Conn) *link {
	return &link{Conn: c, raw: c.NetConn(), cancel: func() {}, transport: "tls", remote: c.RemoteAddr().String(), born: time.Now()}
}

// webSocketLink upgrades a request. On error the response has been written.
func webSocketLink(w http.ResponseWriter, r *http.Request, subprotocol string) (*link, error) {
	capture := &hijackCapture{ResponseWriter: w}
	c, err := websocket.Accept(capture, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("upgrade: %w", err)
	}
	raw := capture.conn
	if t, ok := raw.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	if c.Subprotocol() != subprotocol {
		_ = raw.Close()
		return nil, fmt.Errorf("upgrade: client does not offer subprotocol %s", subprotocol)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	return &link{Conn: websocket.NetConn(ctx, c, websocket.MessageBinary), raw: raw, cancel: cancel,
		transport: "wss", remote: r.RemoteAddr, born: time.Now()}, nil
}

// hijackCapture keeps the connection that the WebSocket library takes over.
type hijackCapture struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack takes the connection from the server and remembers it.
func (h *hijackCapture) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}

func muxConfig(t Timing, log *slog.Logger) *yamux.Config {
	return &yamux.Config{
		AcceptBacklog:          16,
		EnableKeepAlive:        false, // both ends ping on the control stream
		KeepAliveInterval:      t.PingInterval,
		ConnectionWriteTimeout: t.Write,
		MaxStreamWindowSize:    256 << 10,
		StreamOpenTimeout:      t.StreamOpen,
		StreamCloseTimeout:     t.StreamClose,
		LogOutput:              muxLog{log},
	}
}

// muxLog turns yamux's lines into debug records: what matters is reported by
// the session itself.
type muxLog struct{ log *slog.Logger }

// Write takes one line.
func (m muxLog) Write(b []byte) (int, error) {
	m.log.Debug("yamux", "line", string(bytes.TrimSpace(b)))
	return len(b), nil
}
