package tunnel

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/link"
)

// endpoint is one way into the tunnel.
type endpoint struct {
	transport string // "tls" or "wss"
	address   string // host:port, or a WebSocket URL
}

// retryLater is an HTTP answer that asks for patience.
type retryLater struct {
	status string
	after  time.Duration
}

// Error is the status line.
func (r *retryLater) Error() string { return "broker answers " + r.status }

// ways lists what to try: what worked last time, else what the broker's
// discovery document offers, raw TLS first. What worked is forgotten here and
// remembered when it works again.
func (c *Client) ways(ctx context.Context) ([]endpoint, error) {
	c.mu.Lock()
	worked := c.worked
	c.worked = nil
	c.mu.Unlock()
	if worked != nil {
		return []endpoint{*worked}, nil
	}
	return c.discover(ctx)
}

func (c *Client) remember(way endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.worked = &way
}

func (c *Client) reach(ctx context.Context, way endpoint) (*link.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timing.Dial)
	defer cancel()
	if way.transport == "tls" {
		return c.dialTLS(ctx, way.address)
	}
	return c.dialWebSocket(ctx, way.address)
}

// discover asks the broker for its endpoints. A broker without the document
// still has its WebSocket.
func (c *Client) discover(ctx context.Context) ([]endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timing.Dial)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath(wire.WellKnownPath).String(), nil)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	transport, _ := c.transport()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	defer resp.Body.Close()
	if later := patienceOf(resp, c.cfg.Clock.Now()); later != nil {
		return nil, later
	}
	var doc wire.Discovery
	if resp.StatusCode == http.StatusOK {
		if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&doc); err != nil {
			doc = wire.Discovery{}
		} else if _, ok := wire.Negotiate(doc.Versions, wire.Versions()); !ok && len(doc.Versions) > 0 {
			return nil, fmt.Errorf("broker speaks tunnel versions %v, this connector %v; update the older one", doc.Versions, wire.Versions())
		}
	}
	return c.offered(doc), nil
}

func (c *Client) offered(doc wire.Discovery) []endpoint {
	var ways []endpoint
	if doc.Tunnel.TLS != "" {
		ways = append(ways, endpoint{"tls", doc.Tunnel.TLS})
	}
	ws := *c.base.JoinPath(wire.Path)
	ws.Scheme = map[string]string{"http": "ws", "https": "wss"}[c.base.Scheme]
	if u, err := url.Parse(doc.Tunnel.WSS); err == nil && u.Host != "" && (u.Scheme == "wss" || u.Scheme == "ws" && loopback(u.Hostname())) {
		ws = *u
	}
	return append(ways, endpoint{"wss", ws.String()})
}

// patienceOf is set if the answer asks to come back later.
func patienceOf(resp *http.Response, now time.Time) *retryLater {
	if resp.StatusCode != http.StatusServiceUnavailable && resp.StatusCode != http.StatusTooManyRequests {
		return nil
	}
	later := &retryLater{status: resp.Status}
	value := resp.Header.Get("Retry-After")
	if s, err := strconv.Atoi(value); err == nil {
		later.after = time.Duration(min(max(s, 0), int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		later.after = max(0, at.Sub(now))
	}
	return later
}

func (c *Client) tlsConfig() *tls.Config {
	if c.cfg.TLS == nil {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return c.cfg.TLS.Clone()
}

// transport is for one request; it resolves and dials anew. raw is the TCP
// connection it made last.
func (c *Client) transport() (t *http.Transport, raw *atomic.Pointer[net.Conn]) {
	raw = new(atomic.Pointer[net.Conn])
	return &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: c.tlsConfig(),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := c.cfg.Dialer.DialContext(ctx, network, address)
			if err == nil {
				raw.Store(&conn)
			}
			return conn, err
		},
	}, raw
}

func (c *Client) dialTLS(ctx context.Context, address string) (*link.Link, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	raw, err := c.cfg.Dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	cfg := c.tlsConfig()
	cfg.MinVersion, cfg.NextProtos = tls.VersionTLS13, []string{wire.ALPN}
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	conn := tls.Client(raw, cfg)
	l := link.New(conn, raw, "tls", nil)
	if err = conn.HandshakeContext(ctx); err == nil {
		state := conn.ConnectionState()
		if state.NegotiatedProtocol != wire.ALPN {
			err = fmt.Errorf("server does not speak %s", wire.ALPN)
		} else {
			l.Binding, err = state.ExportKeyingMaterial(wire.ExporterLabel, nil, wire.ExporterSize)
		}
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func (c *Client) dialWebSocket(ctx context.Context, address string) (*link.Link, error) {
	transport, raw := c.transport()
	conn, resp, err := websocket.Dial(ctx, address, &websocket.DialOptions{
		HTTPClient:      &http.Client{Transport: transport},
		Subprotocols:    []string{wire.Subprotocol},
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		transport.CloseIdleConnections()
		if resp != nil {
			if later := patienceOf(resp, c.cfg.Clock.Now()); later != nil {
				return nil, later
			}
		}
		return nil, err
	}
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := link.New(websocket.NetConn(lifetime, conn, websocket.MessageBinary), *raw.Load(), "wss", cancel)
	if conn.Subprotocol() != wire.Subprotocol {
		_ = l.Close()
		return nil, fmt.Errorf("server does not speak %s", wire.Subprotocol)
	}
	return l, nil
}
