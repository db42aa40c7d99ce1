// Package link is an open connection of the tunnel as both of its ends hold it:
// it notices when the peer falls silent, joins small writes, and ends without
// waiting for a peer that may be frozen. It must not dial, listen, or know what
// is said.
package link

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/contract/wire"
)

// Conn is the part of net.Conn that both ends need.
type Conn interface {
	io.ReadWriteCloser
	SetDeadline(t time.Time) error
}

// Link is one connection, whatever it runs over. Fields that its maker sets are
// not changed once it is multiplexed.
type Link struct {
	Conn
	Transport string // "tls" or "wss"
	Remote    string // the peer's address, for people
	Binding   []byte // TLS exporter, if TLS ends here and not at a proxy

	raw    io.Closer // the TCP connection
	cancel func()
	born   time.Time
	heard  atomic.Int64 // when bytes last arrived, nanoseconds after born
}

// New holds conn, which runs over the TCP connection raw. Close calls cancel, if
// it is not nil, before it drops raw.
func New(conn Conn, raw io.Closer, transport string, cancel func()) *Link {
	if cancel == nil {
		cancel = func() {}
	}
	return &Link{Conn: conn, raw: raw, cancel: cancel, Transport: transport, born: time.Now()}
}

// Read notes that the peer is alive.
func (l *Link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.heard.Store(int64(time.Since(l.born)))
	}
	return n, err
}

// Age is how long the link is held already.
func (l *Link) Age() time.Duration { return time.Since(l.born) }

// SilentSince reports whether nothing arrived after t. It compares monotonic
// times: a wall clock that is set back is no reason to give up a connection.
func (l *Link) SilentSince(t time.Time) bool { return l.heard.Load() < int64(t.Sub(l.born)) }

// Close drops the TCP connection at once: TLS and WebSocket would first say
// goodbye for up to five seconds to a peer that may be frozen.
func (l *Link) Close() error {
	l.cancel()
	return l.raw.Close()
}

// Muxed is a Link as the multiplexer writes to it.
type Muxed struct {
	*Link
	out *wire.Coalescer
}

// Mux prepares l for a multiplexer.
func Mux(l *Link) Muxed { return Muxed{l, wire.NewCoalescer(l)} }

// Write queues b.
func (m Muxed) Write(b []byte) (int, error) { return m.out.Write(b) }

// Close drops the connection. It must not wait for anything: between the moments
// at which yamux begins and ends to close, every reader of a stream spins.
func (m Muxed) Close() error {
	m.out.Stop()
	return m.Link.Close()
}

// HangUp closes a session so that its readers have no time to spin: yamux is
// left to find its connection closed, which it does in one go. It returns when
// nothing of the session is left but the owners of its streams.
func (m Muxed) HangUp(mux *yamux.Session) {
	_ = m.Close() // there is nobody left who could use the error
	<-mux.CloseChan()
	_ = mux.Close() // waits for the one under way
	_ = m.out.Close()
}

// Receive windows of one stream, in bytes.
const (
	Window     = 256 << 10 // for calls
	BulkWindow = 4 << 20   // for transfers: what is under way at 100 MB/s over 40 ms
)

// Timing of a multiplexer.
type Timing struct {
	Ping        time.Duration // yamux wants one, though it does not ping
	Write       time.Duration // one write to the connection
	StreamOpen  time.Duration // acknowledgement of a new stream
	StreamClose time.Duration // a half-closed stream is forgotten
}

// Config is how both ends set up yamux, with a logger's Debug. Its own pings are off: both ends ping on
// the control stream, and forgive a late answer while bytes flow.
func Config(window uint32, t Timing, debug func(msg string, args ...any)) *yamux.Config {
	return &yamux.Config{
		AcceptBacklog:          16,
		EnableKeepAlive:        false,
		KeepAliveInterval:      t.Ping,
		ConnectionWriteTimeout: t.Write,
		MaxStreamWindowSize:    window,
		StreamOpenTimeout:      t.StreamOpen,
		StreamCloseTimeout:     t.StreamClose,
		LogOutput:              lines(debug),
	}
}

// lines turns yamux's lines into debug records: what matters is reported by the
// session itself.
type lines func(msg string, args ...any)

// Write takes one line.
func (l lines) Write(b []byte) (int, error) {
	l("yamux", "line", string(bytes.TrimSpace(b)))
	return len(b), nil
}
