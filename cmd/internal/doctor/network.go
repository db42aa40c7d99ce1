package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"siyuan-broker/contract/wire"
)

// Network is how probes reach out. The zero value uses the system's resolver,
// roots, proxy variables and clock.
type Network struct {
	Roots *x509.CertPool
	Now   func() time.Time
}

// Time is the present time.
func (n Network) Time() time.Time {
	if n.Now == nil {
		return time.Now()
	}
	return n.Now()
}

// TLS is the configuration of a client.
func (n Network) TLS() *tls.Config {
	return &tls.Config{RootCAs: n.Roots, MinVersion: tls.VersionTLS12, Time: n.Time}
}

// Client asks once, follows no redirect and keeps no connection.
func (n Network) Client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: n.TLS(), DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// Unreachable explains why a connection failed, for people.
func Unreachable(err error) Finding {
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return Bad("check the spelling of the name, and this machine's DNS", "the name %s does not resolve: %s", dns.Name, dns.Err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		now, c := invalid.Detail, invalid.Cert
		return Bad("if this machine's clock is right, renew the certificate", "the certificate is not valid now (it is from %s to %s): %s",
			c.NotBefore.UTC().Format(time.DateOnly), c.NotAfter.UTC().Format(time.DateOnly), now)
	case errors.As(err, &authority):
		return Bad("serve the whole certificate chain; behind a company's or own authority, install its root certificate on this machine", "the certificate is from an authority this machine does not trust")
	case errors.As(err, &name):
		return Bad("use the name the certificate is for, or get one for this name", "the certificate is for another name: %v", name)
	case errors.As(err, &record):
		return Bad("is it an http:// address, or the port of something else?", "it does not speak TLS")
	case errors.Is(err, syscall.ECONNREFUSED):
		return Bad("start it, or correct the port; a firewall may refuse too", "nothing listens there (connection refused)")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Bad("check the network of this machine", "there is no way to that host: %v", plain(err))
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return Bad("a firewall may drop the packets, or the host is down", "no answer in time")
	}
	return Bad("", "%v", plain(err))
}

// plain takes away what url.Error says again.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// expirySoon is when a certificate's end is worth a warning; renewals are
// usually done 30 days before.
const expirySoon = 14 * 24 * time.Hour

// Certificate judges the certificate a server showed. state is nil without TLS.
func (n Network) Certificate(state *tls.ConnectionState) Finding {
	if state == nil || len(state.PeerCertificates) == 0 {
		return Nothing("plain http")
	}
	c := state.PeerCertificates[0]
	left := c.NotAfter.Sub(n.Time())
	f := Good("%s, certificate for %s by %s until %s", tls.VersionName(state.Version), c.Subject.CommonName+names(c), c.Issuer.CommonName, c.NotAfter.UTC().Format(time.DateOnly))
	if left < expirySoon {
		f.Status, f.Next = Warn, fmt.Sprintf("renew the certificate: it ends in %d days", int(left/(24*time.Hour)))
	}
	return f
}

func names(c *x509.Certificate) string {
	if c.Subject.CommonName == "" && len(c.DNSNames) > 0 {
		return c.DNSNames[0]
	}
	return ""
}

// skewMost is where the broker stops accepting a connector's tokens.
const skewMost = wire.TokenSkew

// Skew judges a difference of clocks, positive when this machine is ahead.
// within is how uncertain it is.
func Skew(whose string, ahead, within time.Duration) Finding {
	certain := max(0, ahead.Abs()-within)
	way := "ahead of"
	if ahead < 0 {
		way = "behind"
	}
	text := fmt.Sprintf("this machine's clock is %s %s %s", ahead.Abs().Round(time.Millisecond), way, whose)
	const next = "let both machines keep time by NTP (such as systemd-timesyncd or chrony)"
	switch {
	case certain > skewMost:
		return Bad(next, "%s: tokens are refused beyond %s", text, skewMost)
	case certain > skewMost/4:
		return Doubtful(next, "%s: tokens are refused beyond %s", text, skewMost)
	}
	return Good("%s agrees within %s", whose, (ahead.Abs() + within).Round(time.Millisecond))
}

// Upgrade opens a WebSocket tunnel and waits for the broker's first frame. It
// recognises a proxy that keeps upgrades or bytes back.
func (n Network) Upgrade(ctx context.Context, address string) (net.Conn, wire.Challenge, Finding) {
	var ch wire.Challenge
	conn, resp, err := websocket.Dial(ctx, address, &websocket.DialOptions{
		HTTPClient: n.Client(), Subprotocols: []string{wire.Subprotocol}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, ch, refusedUpgrade(resp, err)
	}
	if conn.Subprotocol() != wire.Subprotocol {
		_ = conn.CloseNow()
		return nil, ch, Bad("is the address that of a siyuan-broker? a proxy must pass Sec-WebSocket-Protocol", "a WebSocket opens, but not one of a siyuan-broker")
	}
	lifetime := context.WithoutCancel(ctx) // deadlines are set on the connection
	c := websocket.NetConn(lifetime, conn, websocket.MessageBinary)
	if until, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(until)
	}
	r := wire.NewReader(c, wire.HandshakeLimits())
	f, err := r.Next()
	if err == nil && f.Type == wire.FrameChallenge {
		err = r.Decode(f, &ch)
	}
	switch {
	case err != nil:
		_ = c.Close()
		return nil, ch, Bad("a proxy in front must pass the bytes of WebSockets as they come (no buffering)", "the WebSocket opens, but the broker's first frame does not arrive: %v", err)
	case f.Type != wire.FrameChallenge:
		_ = c.Close()
		return nil, ch, Bad("", "the broker begins with %s instead of CHALLENGE", f.Type)
	}
	return c, ch, Good("WebSocket opens at %s, tunnel versions %v", address, ch.Versions)
}

func refusedUpgrade(resp *http.Response, err error) Finding {
	if resp == nil {
		return Unreachable(err)
	}
	const pass = "the proxy in front must pass upgrades on /tunnel; nginx: proxy_http_version 1.1, proxy_set_header Upgrade $http_upgrade, proxy_set_header Connection \"upgrade\""
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return Doubtful("try again in a moment", "the broker asks for patience: %s", resp.Status)
	case http.StatusNotFound:
		return Bad("is the address that of a siyuan-broker, with nothing behind the host name?", "nothing is served at the tunnel's path: %s", resp.Status)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return Bad("let the tunnel's path pass without a login of its own", "something in between asks for a login: %s", resp.Status)
	}
	return Bad(pass, "the upgrade to WebSocket does not get through: %s", resp.Status)
}
