package tunnel

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/contract/wire"
)

func TestConfigurationMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*Config)
		say   string
	}{
		"plain http abroad":      {func(c *Config) { c.BrokerURL = "http://notes.example.com" }, "use https"},
		"http to a private host": {func(c *Config) { c.BrokerURL = "http://192.168.1.2:8080" }, "use https"},
		"http to a trick name":   {func(c *Config) { c.BrokerURL = "http://127.0.0.1.example.com" }, "use https"},
		"no scheme":              {func(c *Config) { c.BrokerURL = "notes.example.com" }, "want https"},
		"not paired":             {func(c *Config) { c.Key = nil }, "pair this connector"},
		"no handler":             {func(c *Config) { c.Handler = nil }, "Handler"},
	} {
		cfg := config(t, "https://notes.example.com", echo)
		c.spoil(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, url := range []string{"http://127.0.0.1:80", "http://[::1]:9", "http://localhost", "https://notes.example.com/"} {
		if _, err := New(config(t, url, echo)); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestBackoffIsFullyJitteredAndCapped(t *testing.T) {
	t.Parallel()
	b := Backoff{Base: time.Second, Cap: time.Minute}
	at := func(u float64) func() float64 { return func() float64 { return u } }
	for _, c := range []struct {
		attempt    int
		retryAfter time.Duration
		u          float64
		want       time.Duration
	}{
		{0, 0, 0, 0},
		{0, 0, 0.5, 500 * time.Millisecond},
		{1, 0, 0.5, time.Second},
		{5, 0, 0.5, 16 * time.Second},
		{6, 0, 0.5, 30 * time.Second}, // 64 s is above the cap
		{1_000_000, 0, 0.5, 30 * time.Second},
		{0, 20 * time.Second, 0, 20 * time.Second},
		{0, 20 * time.Second, 0.5, 25 * time.Second}, // drawn from half of what was asked for
		{6, 20 * time.Second, 0.5, 50 * time.Second},
		{0, 24 * time.Hour, 0, 10 * time.Minute},
		{0, -time.Hour, 0, 0},
	} {
		if got := b.Delay(c.attempt, c.retryAfter, at(c.u)); got != c.want {
			t.Errorf("attempt %d, retry after %v, %v: %v, want %v", c.attempt, c.retryAfter, c.u, got, c.want)
		}
	}
}

func TestTheOfferOfTheBrokerDecidesWhatIsTried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base string
		doc  wire.Endpoint
		want []endpoint
	}{
		"nothing offered": {"https://b.example", wire.Endpoint{}, []endpoint{{"wss", "wss://b.example/tunnel"}}},
		"both":            {"https://b.example", wire.Endpoint{TLS: "t.example:7443", WSS: "wss://w.example/x"}, []endpoint{{"tls", "t.example:7443"}, {"wss", "wss://w.example/x"}}},
		"plain ws abroad": {"https://b.example", wire.Endpoint{WSS: "ws://b.example/tunnel"}, []endpoint{{"wss", "wss://b.example/tunnel"}}},
		"another scheme":  {"https://b.example", wire.Endpoint{WSS: "file:///etc/passwd"}, []endpoint{{"wss", "wss://b.example/tunnel"}}},
		"loopback":        {"http://127.0.0.1:1", wire.Endpoint{}, []endpoint{{"wss", "ws://127.0.0.1:1/tunnel"}}},
		"base path":       {"https://b.example/base/", wire.Endpoint{}, []endpoint{{"wss", "wss://b.example/base/tunnel"}}},
	} {
		client, err := New(config(t, c.base, echo))
		if err != nil {
			t.Fatal(err)
		}
		got := client.offered(wire.Discovery{Tunnel: c.doc})
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", name, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}

func TestRetryAfterComesInSecondsOrAsADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "999999999": 10 * time.Minute,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0} {
		resp := &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {value}}}
		if got := patienceOf(resp, now); got == nil || got.after != want {
			t.Errorf("%q: %+v", value, got)
		}
	}
	if got := patienceOf(&http.Response{StatusCode: 404, Header: http.Header{"Retry-After": {"7"}}}, now); got != nil {
		t.Errorf("404: %+v", got)
	}
}

type countingDialer struct {
	n    atomic.Int64
	fail int64 // how many dials fail first
	real net.Dialer
}

func (d *countingDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.n.Add(1) <= d.fail {
		return nil, &net.DNSError{Err: "no such host", Name: address}
	}
	return d.real.DialContext(ctx, network, address)
}

func TestTheFirstDialMayFailAndEveryDialResolvesAnew(t *testing.T) {
	t.Parallel()
	b := startFake(t)
	cfg := config(t, b.url, echo)
	d, clock := &countingDialer{fail: 3}, &fakeClock{slept: make(chan time.Duration)}
	cfg.Dialer, cfg.Clock = d, clock
	cfg.Backoff, cfg.Uniform = Backoff{Base: time.Second, Cap: 3 * time.Second}, func() float64 { return 0.5 }
	c, _ := run(t, cfg)
	for _, want := range []time.Duration{500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		if got := receive(t, clock.slept); got != want {
			t.Errorf("slept %v, want %v", got, want)
		}
	}
	p := b.session()
	eventually(t, "connected", func() bool { return c.State().Phase == Connected })
	if n := d.n.Load(); n != 5 { // three failures, discovery, WebSocket
		t.Errorf("%d dials", n)
	}
	_ = p.mux.Close()
	receive(t, clock.slept)
	b.session()
	if n := d.n.Load(); n != 6 { // what worked is dialled without discovery
		t.Errorf("%d dials after the reconnect", n)
	}
}

func TestOnlyRevocationEndsRun(t *testing.T) {
	t.Parallel()
	b := startFake(t)
	cfg := config(t, b.url, echo)
	clock := &fakeClock{slept: make(chan time.Duration)}
	cfg.Clock, cfg.Uniform = clock, func() float64 { return 0.5 }
	cfg.Backoff = Backoff{Base: time.Second, Cap: time.Hour}
	c, ended := run(t, cfg)
	for i, code := range []wire.RejectCode{wire.RejectUnauthorized, wire.RejectVersion, wire.RejectDraining, wire.RejectProtocol, "from the future"} {
		conn, _ := b.next()
		_ = wire.NewWriter(conn, wire.HandshakeLimits()).Write(wire.FrameReject, wire.Reject{Code: code, RetryAfterS: 7}, nil)
		if got, want := receive(t, clock.slept), 7*time.Second+max(3500*time.Millisecond, time.Second<<i)/2; got != want {
			t.Errorf("%s: slept %v, want %v", code, got, want)
		}
		if s := c.State(); s.Phase != Waiting && s.Phase != Connecting || !strings.Contains(s.LastError, string(code)) {
			t.Errorf("%+v", s)
		}
	}
	conn, _ := b.next()
	_ = wire.NewWriter(conn, wire.HandshakeLimits()).Write(wire.FrameReject, wire.Reject{Code: wire.RejectReplaced}, nil)
	if got := receive(t, clock.slept); got != 30*time.Minute {
		t.Errorf("replaced: slept %v", got)
	}
	p := b.session()
	_ = p.w.Write(wire.FrameReject, wire.Reject{Code: wire.RejectRevoked}, nil) // the session may end before it is told that it was sent
	if err := receive(t, ended); !errors.Is(err, ErrRevoked) {
		t.Errorf("%v", err)
	}
	if s := c.State(); s.Phase != Idle {
		t.Errorf("%+v", s)
	}
}

func TestTheTokenSaysWhatTheProtocolAsksFor(t *testing.T) {
	t.Parallel()
	b := startFake(t)
	cfg := config(t, b.url, echo)
	cfg.Software, cfg.MaxCalls = "siyuan-connector/9", 5
	run(t, cfg)
	_, a := b.next()
	if a.Version != 1 || a.Kind != wire.KindCalls || a.Software != "siyuan-connector/9" || a.MaxCalls != 5 {
		t.Errorf("%+v", a)
	}
	tok, err := jwt.Parse(a.Token, func(*jwt.Token) (any, error) { return cfg.Key.Public(), nil }, jwt.WithValidMethods([]string{"EdDSA"}))
	if err != nil {
		t.Fatal(err)
	}
	c := tok.Claims.(jwt.MapClaims)
	jti, _ := base64.RawURLEncoding.DecodeString(c["jti"].(string))
	aud, _ := c.GetAudience()
	iat, _ := c.GetIssuedAt()
	if tok.Header["typ"] != "siyuan-tunnel+jwt" || tok.Header["kid"] != "c-1" || c["sub"] != "c-1" || len(jti) != 16 ||
		len(aud) != 1 || aud[0] != "siyuan-tunnel:"+strings.TrimPrefix(b.url, "http://") || time.Since(iat.Time).Abs() > 5*time.Second ||
		c["nonce"] != base64.RawURLEncoding.EncodeToString(make([]byte, 32)) || c["tls_exporter"] != nil {
		t.Errorf("%v %v", tok.Header, c)
	}
}

func TestABrokerThatBreaksTheHandshakeIsTriedAgain(t *testing.T) {
	t.Parallel()
	nonce := base64.RawURLEncoding.EncodeToString(make([]byte, wire.NonceSize))
	for name, do := range map[string]func(*fakeBroker, net.Conn, *wire.Writer){
		"no common version": func(_ *fakeBroker, _ net.Conn, w *wire.Writer) {
			_ = w.Write(wire.FrameChallenge, wire.Challenge{Versions: []int{9}, Nonce: nonce}, nil)
		},
		"short nonce": func(_ *fakeBroker, _ net.Conn, w *wire.Writer) {
			_ = w.Write(wire.FrameChallenge, wire.Challenge{Versions: []int{1}, Nonce: "AAAA"}, nil)
		},
		"welcome at once": func(_ *fakeBroker, _ net.Conn, w *wire.Writer) { _ = w.Write(wire.FrameWelcome, welcome(), nil) },
		"a web page":      func(_ *fakeBroker, c net.Conn, _ *wire.Writer) { _, _ = c.Write([]byte("<!DOCTYPE html><html>")) },
		"hangs up":        func(_ *fakeBroker, c net.Conn, _ *wire.Writer) { _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startFake(t)
			c, _ := run(t, config(t, b.url, echo))
			conn := receive(t, b.conns)
			do(b, conn, wire.NewWriter(conn, wire.HandshakeLimits()))
			b.session()
			eventually(t, "connected", func() bool { return c.State().Phase == Connected })
		})
	}
}
