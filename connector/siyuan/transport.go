package siyuan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// Idle connections are few, because the kernel is next door, and short-lived,
// because it comes and goes.
const (
	maxIdleConns    = 8
	idleConnTimeout = 30 * time.Second
	maxHeaderBytes  = 64 << 10
)

func (c *Client) transport() *http.Transport {
	return &http.Transport{
		Proxy: nil,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeouts.Connect)
			defer cancel()
			return c.cfg.Dial(ctx, network, addr)
		},
		TLSClientConfig:        c.cfg.TLS,
		TLSHandshakeTimeout:    c.cfg.Timeouts.Connect,
		MaxIdleConnsPerHost:    maxIdleConns,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		// The size bound counts what is on the wire; a compressed answer could
		// grow behind it.
		DisableCompression: true,
	}
}

// answer is one whole HTTP response.
type answer struct {
	status      int
	contentType string
	body        []byte
}

// payload is a request body that can be sent again.
type payload struct {
	contentType string
	bytes       []byte
}

// roundTrip makes one attempt. unsent reports that the kernel has provably not
// seen the request. Redirects are not followed (a RoundTripper does not), so
// the token goes nowhere but to the configured host.
func (c *Client) roundTrip(ctx context.Context, k call, p payload) (a answer, unsent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout(k))
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := c.request(ctx, k, p)
	if err != nil {
		return answer{}, true, err
	}
	rt := c.reads
	if k.write {
		rt = c.writes
	}
	began := c.cfg.Clock.Now()
	defer func() {
		took := c.cfg.Clock.Now().Sub(began)
		count(ctx, took, k.write)
		c.cfg.Logger.DebugContext(ctx, "kernel call", "endpoint", k.path, "status", a.status,
			"bytes", len(a.body), "took", took, "failed", err != nil)
	}()
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return answer{}, !connected.Load(), c.transportError(ctx, k, err)
	}
	defer func() { _ = resp.Body.Close() }()
	a = answer{status: resp.StatusCode, contentType: resp.Header.Get("Content-Type")}
	limit := c.cfg.MaxResponseBytes
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return answer{}, false, c.transportError(ctx, k, err)
	case int64(len(a.body)) > limit:
		return answer{}, false, &Error{Kind: TooLarge, Endpoint: k.path, Status: a.status,
			Err: fmt.Errorf("answer exceeds %d bytes", limit)}
	}
	return a, false, nil
}

func (c *Client) request(ctx context.Context, k call, p payload) (*http.Request, error) {
	u := *c.base
	u.Path += "/api/" + k.path
	method, body := http.MethodPost, io.Reader(bytes.NewReader(p.bytes))
	if k.flags&download != 0 {
		u.Path = c.base.Path + k.path
		method, body = http.MethodGet, http.NoBody
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, badArgument(k.path, "build request: %w", err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", p.contentType)
	}
	if k.flags&public == 0 && !c.cfg.Token.IsZero() {
		req.Header.Set("Authorization", "Token "+c.cfg.Token.reveal())
	}
	return req, nil
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
