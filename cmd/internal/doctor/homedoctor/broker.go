package homedoctor

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/connector"
	"siyuan-broker/contract/wire"
)

// proxied is the proxy by which the broker is reached; nil: directly.
func (d *Doctor) proxied() *url.URL {
	req, err := http.NewRequest(http.MethodGet, d.Config.Broker, nil)
	if err != nil {
		return nil
	}
	proxy, err := http.ProxyFromEnvironment(req)
	if err != nil {
		return nil
	}
	return proxy
}

// peer is who is dialled: the broker, or the proxy before it.
func (d *Doctor) peer() string {
	if proxy := d.proxied(); proxy != nil {
		return hostPort(proxy.String())
	}
	return hostPort(d.Config.Broker)
}

func (d *Doctor) brokerName(ctx context.Context) doctor.Finding {
	host, _, err := net.SplitHostPort(d.peer())
	if err != nil {
		return doctor.Misconfigured("", "%v", err)
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return doctor.Unreachable(err)
	}
	return doctor.Good("%s is %s", host, strings.Join(addresses, ", "))
}

func (d *Doctor) brokerPort(ctx context.Context) doctor.Finding {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.peer())
	if err != nil {
		f := doctor.Unreachable(err)
		f.Found = d.peer() + ": " + f.Found
		return f
	}
	_ = c.Close()
	if d.proxied() != nil {
		return doctor.Good("the proxy %s of the environment is open", d.peer())
	}
	return doctor.Good("%s is open", d.peer())
}

func (d *Doctor) brokerTLS(ctx context.Context) doctor.Finding {
	if !strings.HasPrefix(d.Config.Broker, "https:") {
		return doctor.Nothing("plain http, for this machine only")
	}
	if d.proxied() != nil {
		return doctor.Nothing("behind a proxy; discovery checks it")
	}
	c, err := (&tls.Dialer{Config: d.Network.TLS()}).DialContext(ctx, "tcp", d.peer())
	if err != nil {
		return doctor.Unreachable(err)
	}
	defer c.Close()
	state := c.(*tls.Conn).ConnectionState()
	return d.Network.Certificate(&state)
}

// ask fetches the discovery document.
func (d *Doctor) ask(ctx context.Context) (doc wire.Discovery, resp *http.Response, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Config.Broker+wire.WellKnownPath, nil)
	if err != nil {
		return doc, nil, err
	}
	resp, err = d.Network.Client().Do(req)
	if err != nil {
		return doc, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return doc, resp, nil
	}
	return doc, resp, json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&doc)
}

func (d *Doctor) discovery(ctx context.Context) doctor.Finding {
	doc, resp, err := d.ask(ctx)
	const next = "is CONNECTOR_BROKER the address of a siyuan-broker, and does a proxy in front of it pass every path?"
	switch {
	case resp == nil:
		return doctor.Unreachable(err)
	case resp.StatusCode >= 500:
		return doctor.Bad("tell the broker's operator", "the broker is not available: %s", resp.Status)
	case err != nil || resp.StatusCode != http.StatusOK || len(doc.Versions) == 0:
		return doctor.Bad(next, "%s%s answers %s, but not as a broker does", d.Config.Broker, wire.WellKnownPath, resp.Status)
	}
	if _, ok := wire.Negotiate(doc.Versions, wire.Versions()); !ok {
		return doctor.Bad("update the older one", "the broker speaks tunnel versions %v, this connector %v", doc.Versions, wire.Versions())
	}
	return doctor.Good("a siyuan-broker, tunnel versions %v", doc.Versions)
}

// clock compares with the Date header, which has whole seconds.
func (d *Doctor) clock(ctx context.Context) doctor.Finding {
	began := d.Network.Time()
	_, resp, err := d.ask(ctx)
	if resp == nil {
		return doctor.Unreachable(err)
	}
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return doctor.Nothing("the broker does not tell its time")
	}
	half := d.Network.Time().Sub(began) / 2
	return doctor.Skew("the broker's", began.Add(half).Sub(at.Add(time.Second/2)), half+time.Second/2)
}

func (d *Doctor) upgrade(ctx context.Context) (net.Conn, wire.Challenge, doctor.Finding) {
	return d.Network.Upgrade(ctx, "ws"+strings.TrimPrefix(d.Config.Broker, "http")+wire.Path)
}

func (d *Doctor) tunnel(ctx context.Context) doctor.Finding {
	c, _, f := d.upgrade(ctx)
	if c != nil {
		_ = c.Close()
	}
	return f
}

// credential proves the key to the broker without becoming the active
// connector: it sends a probe, which every broker refuses, but only after the key was
// accepted.
func (d *Doctor) credential(ctx context.Context) doctor.Finding {
	private, err := connector.LoadKey(d.Config.Data)
	if err != nil {
		return doctor.Bad("", "%v", err)
	}
	c, ch, f := d.upgrade(ctx)
	if c == nil {
		return f
	}
	defer c.Close()
	began := d.Network.Time()
	bye, err := d.prove(c, ch, private)
	took := d.Network.Time().Sub(began).Round(100 * time.Microsecond)
	id := connector.Fingerprint(private.Public().(ed25519.PublicKey))
	switch {
	case err != nil:
		return doctor.Bad("", "the handshake breaks off: %v", err)
	case bye == nil, bye.Code == wire.RejectKind:
		return doctor.Good("the broker knows this connector; it answered in %s", took)
	case bye.Code == wire.RejectRevoked:
		return doctor.Bad("pair it again: delete "+connector.KeyFile+" and register the new key", "this connector was revoked")
	case bye.Code == wire.RejectUnauthorized:
		return doctor.Bad("register the key `siyuan-connector key` prints (siyuan-broker connector add); it has the fingerprint "+id, "%s", bye.Message)
	}
	return doctor.Doubtful("try again in a moment", "the broker does not decide now: %s: %s", bye.Code, bye.Message)
}

type claims struct {
	jwt.RegisteredClaims
	Nonce string `json:"nonce"`
}

// prove answers the challenge. It returns the broker's refusal, nil after a
// welcome.
func (d *Doctor) prove(c net.Conn, ch wire.Challenge, private ed25519.PrivateKey) (*wire.Reject, error) {
	base, err := url.Parse(d.Config.Broker)
	if err != nil {
		return nil, err
	}
	version, ok := wire.Negotiate(ch.Versions, wire.Versions())
	if !ok {
		return nil, fmt.Errorf("no common tunnel version in %v", ch.Versions)
	}
	id := connector.Fingerprint(private.Public().(ed25519.PublicKey))
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{jwt.RegisteredClaims{
		Subject: id, Audience: jwt.ClaimStrings{wire.Audience(base)}, IssuedAt: jwt.NewNumericDate(d.Network.Time()), ID: rand.Text(),
	}, ch.Nonce})
	t.Header["typ"], t.Header["kid"] = wire.TokenType, id
	signed, err := t.SignedString(private)
	if err != nil {
		return nil, err
	}
	auth := wire.Auth{Version: version, Kind: wire.KindProbe, Token: signed, Software: "siyuan-connector doctor"}
	if err := wire.NewWriter(c, wire.HandshakeLimits()).Write(wire.FrameAuth, auth, nil); err != nil {
		return nil, err
	}
	r := wire.NewReader(c, wire.HandshakeLimits())
	f, err := r.Next()
	if err != nil {
		return nil, err
	}
	switch f.Type {
	case wire.FrameWelcome:
		return nil, nil
	case wire.FrameReject:
		var bye wire.Reject
		return &bye, r.Decode(f, &bye)
	}
	return nil, errors.New("the broker answers " + f.Type.String())
}
