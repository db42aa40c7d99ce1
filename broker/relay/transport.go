package relay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
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
	binding   []byte       // TLS exporter, if TLS ends here
	heard     atomic.Int64 // when bytes last arrived, unix nanoseconds
}

// Read notes that the peer is alive.
func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

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

// Close drops the connection and waits for the writer.
func (m muxConn) Close() error { return errors.Join(m.link.Close(), m.out.Close()) }

func tlsLink(c *tls.Conn) *link {
	return &link{Conn: c, raw: c.NetConn(), cancel: func() {}, transport: "tls", remote: c.RemoteAddr().String()}
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
		transport: "wss", remote: r.RemoteAddr}, nil
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
		EnableKeepAlive:        false, // the connector does it; both ends ping on the control stream
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
