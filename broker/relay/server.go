package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/link"
)

// Server accepts connectors. Serve takes the raw TLS listener, ServeHTTP the
// WebSocket endpoint; their sessions are in Hub.
type Server struct {
	cfg    Config
	hub    *Hub
	tokens *tokenLog
	tls    *tls.Config // nil: no raw transport

	ctx    context.Context // of the handshakes; ends when Stop begins
	cancel context.CancelFunc
	slots  chan struct{} // one per handshake under way

	mu        sync.Mutex
	stopping  bool
	listeners []net.Listener
	running   sync.WaitGroup // Serve loops and connections
}

// New makes a Server and its Hub. Nothing runs until Serve or ServeHTTP.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, tokens: newTokenLog(cfg.Limits.Tokens), slots: make(chan struct{}, cfg.Limits.Handshakes)}
	s.hub = newHub(&s.cfg)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if cfg.TLS != nil {
		s.tls = cfg.TLS.Clone()
		s.tls.MinVersion = tls.VersionTLS13
		s.tls.NextProtos = []string{wire.ALPN}
	}
	return s, nil
}

// Hub is where the sessions of this server are.
func (s *Server) Hub() *Hub { return s.hub }

// begin registers one more goroutine unless the server is stopping.
func (s *Server) begin(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	if ln != nil {
		s.listeners = append(s.listeners, ln)
	}
	s.running.Add(1)
	return true
}

// Serve accepts raw TLS connections from ln, which it closes, until Stop. The
// error is nil after Stop.
func (s *Server) Serve(ln net.Listener) error {
	if s.tls == nil {
		return errors.Join(errors.New("relay: a raw listener needs Config.TLS"), ln.Close())
	}
	if !s.begin(ln) {
		return ln.Close()
	}
	defer s.running.Done()
	defer ln.Close()
	for {
		conn, err := ln.Accept()
		switch {
		case err == nil:
			if !s.begin(nil) {
				return conn.Close()
			}
			go func() {
				defer s.running.Done()
				s.raw(conn)
			}()
		case s.isStopping():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept connectors: %w", err)
		default: // out of descriptors, or a connection that died in the queue
			s.cfg.Logger.Warn("accept connector", "error", err)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-s.ctx.Done():
			}
		}
	}
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// raw does the TLS handshake of one connection and serves it.
func (s *Server) raw(conn net.Conn) {
	release, ok := s.slot()
	if !ok {
		_ = conn.Close()
		return
	}
	c := tls.Server(conn, s.tls)
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timing.Handshake)
	err := c.HandshakeContext(ctx)
	cancel()
	state := c.ConnectionState()
	if err == nil && state.NegotiatedProtocol != wire.ALPN {
		err = fmt.Errorf("client does not speak %s", wire.ALPN)
	}
	l := link.New(c, c.NetConn(), "tls", nil)
	l.Remote = conn.RemoteAddr().String()
	if err == nil {
		l.Binding, err = state.ExportKeyingMaterial(wire.ExporterLabel, nil, wire.ExporterSize)
	}
	if err != nil {
		release()
		_ = conn.Close()
		s.hub.n.rejected.Add(1)
		s.cfg.Logger.Debug("TLS handshake with connector", "remote", l.Remote, "error", err)
		return
	}
	s.serve(l, release)
}

// ServeHTTP is the WebSocket endpoint, to be mounted at wire.Path without any
// middleware that buffers or times out. It returns once the connection is taken
// over; Stop waits for its end.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.begin(nil) {
		unavailable(w, "This node is stopping.", 1)
		return
	}
	defer s.running.Done()
	release, ok := s.slot()
	if !ok {
		unavailable(w, "Too many connectors are connecting.", 5)
		return
	}
	l, err := webSocketLink(w, r, wire.Subprotocol)
	if err != nil {
		release()
		s.hub.n.rejected.Add(1)
		s.cfg.Logger.Debug("WebSocket handshake with connector", "remote", r.RemoteAddr, "error", err)
		return
	}
	l.Remote = clip(s.cfg.RemoteAddr(r), maxID)
	s.serve(l, release)
}

func unavailable(w http.ResponseWriter, why string, seconds int) {
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	http.Error(w, why, http.StatusServiceUnavailable)
}

// slot bounds the connections that have not proven who they are.
func (s *Server) slot() (release func(), ok bool) {
	select {
	case s.slots <- struct{}{}:
		return sync.OnceFunc(func() { <-s.slots }), true
	default:
		return nil, false
	}
}

// serve admits one connection and leaves it to a goroutine of its own, which
// Stop waits for: the one that made the handshake has a deep stack, and behind
// net/http buffers too, that a connector would keep while it idles.
func (s *Server) serve(l *link.Link, release func()) {
	giveUp := context.AfterFunc(s.ctx, func() { _ = l.Close() })
	run, err := s.establish(l)
	giveUp()
	release()
	if err != nil {
		s.hub.n.rejected.Add(1)
		s.cfg.Logger.Info("connector not admitted", "remote", l.Remote, "error", err)
		_ = l.Close()
		return
	}
	s.running.Add(1) // the caller is counted still
	go func() {
		defer s.running.Done()
		defer l.Close()
		run()
	}()
}

func (s *Server) seen(rec ConnectorRecord) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timing.Directory)
	defer cancel()
	if err := s.cfg.Directory.Seen(ctx, rec.Tenant, rec.Instance, rec.ID, s.cfg.Now()); err != nil {
		s.cfg.Logger.Warn("note connector as seen", "connector", rec.ID, "error", err)
	}
}

// Stop drains: no new connectors, those here are asked to move and get
// Timing.Drain for it, calls in flight finish. It returns when everything is
// closed; once ctx is done, what is left is cut off. Calling it again waits for
// the same.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	first := !s.stopping
	s.stopping = true
	for _, ln := range s.listeners {
		_ = ln.Close()
	}
	s.mu.Unlock()
	s.cancel()
	gone := make(chan struct{})
	go func() { // ends when the last connection does, which Stop waits for
		s.running.Wait()
		close(gone)
	}()
	if first && s.cfg.Timing.Drain > 0 {
		s.hub.every(func(n *session) { n.drain(s.cfg.Timing.Drain) })
		wait(ctx, gone, s.cfg.Timing.Drain)
	}
	s.hub.every((*session).retire)
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	s.hub.every(func(n *session) { n.end(drained()) })
	<-gone
	return fmt.Errorf("stop relay: calls were cut off: %w", ctx.Err())
}

func wait(ctx context.Context, gone <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-gone:
	case <-ctx.Done():
	case <-t.C:
	}
}

// Discovery is the tunnel part of the document at wire.WellKnownPath: tlsAddr is
// the public host:port of the raw listener or "", wssURL that of wire.Path.
func Discovery(issuer, tlsAddr, wssURL string) wire.Discovery {
	return wire.Discovery{Issuer: issuer, Versions: slices.Clone(wire.Versions()), Tunnel: wire.Endpoint{TLS: tlsAddr, WSS: wssURL}}
}
