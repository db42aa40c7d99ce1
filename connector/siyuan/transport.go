package siyuan

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// answer is one whole HTTP response.
type answer struct {
	status      int
	contentType string
	session     string // of SiYuan's MCP endpoint
	body        []byte
}

// payload is a request body that can be sent again, or the beginning of one.
type payload struct {
	contentType string
	bytes       []byte
	more        int64 // bytes of the body that follow these
}

// dial opens a connection to the kernel, within Timeouts.Connect.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeouts.Connect)
	defer cancel()
	port := c.base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[c.base.Scheme]
	}
	conn, err := c.cfg.Dial(ctx, "tcp", net.JoinHostPort(c.base.Hostname(), port))
	if err != nil || c.base.Scheme == "http" {
		return conn, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.cfg.TLS != nil {
		cfg = c.cfg.TLS.Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = c.base.Hostname()
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secure, nil
}

// roundTrip makes one attempt. unsent reports that the kernel has provably not
// seen the request.
func (c *Client) roundTrip(ctx context.Context, k call, p payload) (a answer, unsent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout(k))
	defer cancel()
	request, err := c.request(k, p)
	if err != nil {
		return answer{}, true, err
	}
	began := c.cfg.Clock.Now()
	defer func() {
		took := c.cfg.Clock.Now().Sub(began)
		count(ctx, took, k.write)
		c.cfg.Logger.DebugContext(ctx, "kernel call", "endpoint", k.path, "status", a.status,
			"bytes", len(a.body), "took", took, "failed", err != nil)
	}()
	a, unsent, err = c.http.do(ctx, request, k.write)
	switch {
	case errors.Is(err, errTooLarge):
		return answer{}, false, &Error{Kind: TooLarge, Endpoint: k.path, Status: a.status,
			Err: fmt.Errorf("answer exceeds %d bytes", c.cfg.MaxResponseBytes)}
	case err != nil:
		return answer{}, unsent, c.transportError(ctx, k, err)
	}
	return a, false, nil
}

// request is a whole request as it is sent.
func (c *Client) request(k call, p payload) ([]byte, error) {
	method, path := http.MethodPost, c.base.Path+"/api/"+k.path
	switch {
	case k.flags&download != 0:
		method, path = http.MethodGet, c.base.Path+k.path
	case k.flags&outside != 0:
		path = c.base.Path + k.path
	}
	var token string
	if k.flags&public == 0 && !c.cfg.Token.IsZero() {
		token = c.cfg.Token.reveal()
	}
	if strings.ContainsFunc(token+p.contentType+k.session, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, badArgument(k.path, "a header would contain control characters")
	}
	b := make([]byte, 0, 256+len(path)+len(token)+len(p.bytes))
	b = append(b, method+" "+(&url.URL{Path: path}).EscapedPath()+" HTTP/1.1\r\nHost: "+c.base.Host+"\r\nUser-Agent: siyuan-connector\r\n"...)
	if method == http.MethodPost {
		b = append(b, "Content-Type: "+p.contentType+"\r\nContent-Length: "...)
		b = append(strconv.AppendInt(b, int64(len(p.bytes))+p.more, 10), "\r\n"...)
	}
	if k.session != "" {
		b = append(b, "Mcp-Session-Id: "+k.session+"\r\n"...)
	}
	if token != "" {
		b = append(b, "Authorization: Token "+token+"\r\n"...)
	}
	b = append(b, "\r\n"...)
	if method == http.MethodPost {
		b = append(b, p.bytes...)
	}
	return b, nil
}

func (c *Client) timeout(k call) time.Duration {
	switch {
	case k.flags&slow != 0:
		return c.cfg.Timeouts.Slow
	case k.write:
		return c.cfg.Timeouts.Write
	}
	return c.cfg.Timeouts.Read
}

// transportError tells a caller that gave up from a kernel that is slow and
// from one that is gone. Dialling has a deadline of its own, which ctx does not
// show: nobody home is Offline, too.
func (c *Client) transportError(ctx context.Context, k call, err error) error {
	kind := Offline
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		kind = Canceled
	case ctx.Err() != nil:
		kind = Timeout
	}
	return &Error{Kind: kind, Endpoint: k.path, Err: err}
}
