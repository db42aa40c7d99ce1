package pair

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/contract/wire"
)

// Client talks to one broker with one key. Zero values of the last four fields
// mean the defaults.
type Client struct {
	Broker *url.URL // see ParseBroker
	Key    ed25519.PrivateKey

	HTTP  *http.Client
	Now   func() time.Time
	Rand  io.Reader
	Sleep func(ctx context.Context, d time.Duration) error
}

// requestTimeout bounds one request; the answers are small.
const requestTimeout = 20 * time.Second

// ParseBroker reads the address of a broker as a person types it.
func ParseBroker(s string) (*url.URL, error) {
	if s = strings.TrimSpace(s); !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(strings.TrimRight(s, "/"))
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q is not a broker's address; it looks like https://notes.example", s)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("%s would send everything in the clear; plain http is for this machine only. Use https://%s", s, u.Host)
	}
	return u, nil
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Machine is what a machine says about itself to the person who decides.
type Machine struct{ Name, OS, Version string }

// Offer is a pairing that waits for a person.
type Offer struct {
	UserCode string
	Page     string        // where to type it
	Life     time.Duration // from now
	device   string
	interval time.Duration
}

// AlreadyError means that the broker has this key in force.
type AlreadyError struct{ Place wire.Paired }

// Error says where the key belongs.
func (e *AlreadyError) Error() string {
	return fmt.Sprintf("this machine is paired already, with %s, %s", Printable(e.Place.TenantName), Printable(e.Place.InstanceName))
}

// Ways a pairing can end without success. They are what the person should read.
var (
	ErrExpired = errors.New("the code has expired before anybody approved it; run pair again for a new one")
	ErrDenied  = errors.New("the request was turned down in the browser; nothing was paired")
	ErrUnknown = errors.New("the broker knows no connector with this key")
)

// Check makes sure that the address is a broker that can pair.
func (c *Client) Check(ctx context.Context) error {
	body, status, header, err := c.send(ctx, http.MethodGet, wire.WellKnownPath, nil)
	if err != nil {
		return err
	}
	var doc wire.Discovery
	switch {
	case status >= 300 && status < 400:
		return fmt.Errorf("%s sends on to %s; use that address if it is the broker's", c.Broker, header.Get("Location"))
	case status >= 500 || status == http.StatusTooManyRequests:
		return fmt.Errorf("%s answers %d %s; it may be starting, or a proxy in front of it finds no broker. Try again in a moment", c.Broker, status, http.StatusText(status))
	case status != http.StatusOK || json.Unmarshal(body, &doc) != nil || len(doc.Versions) == 0:
		return fmt.Errorf("%s is not a siyuan-broker (%s answers %d); check the address", c.Broker, wire.WellKnownPath, status)
	case len(doc.Pairing) == 0:
		return fmt.Errorf("the broker at %s is too old to pair; its operator can register the key by hand: siyuan-broker connector add --key \"$(siyuan-connector key)\"", c.Broker)
	case !slices.Contains(doc.Pairing, wire.PairVersion):
		return fmt.Errorf("the broker at %s pairs in versions %v, this connector in %d; update the older one", c.Broker, doc.Pairing, wire.PairVersion)
	}
	return nil
}

// Begin asks to be let in. *AlreadyError when that has happened before.
func (c *Client) Begin(ctx context.Context, m Machine) (Offer, error) {
	proof, err := c.proof(wire.ActPair, "")
	if err != nil {
		return Offer{}, err
	}
	var a wire.PairAnswer
	public := c.Key.Public().(ed25519.PublicKey)
	err = c.post(ctx, wire.PairPath, wire.PairRequest{PublicKey: wire.NewJWK(public), Name: m.Name, OS: m.OS, Version: m.Version, Proof: proof}, &a)
	if err != nil {
		return Offer{}, err
	}
	page, err := url.Parse(a.VerificationURI)
	if err != nil || page.Host == "" || page.Scheme != "https" && page.Scheme != "http" || a.DeviceCode == "" || !plain(a.UserCode) || !plain(a.VerificationURI) {
		return Offer{}, fmt.Errorf("%s began a pairing that cannot be used; is its public URL configured?", c.Broker)
	}
	return Offer{UserCode: a.UserCode, Page: a.VerificationURI, device: a.DeviceCode,
		Life:     time.Duration(min(max(a.ExpiresIn, 1), 3600)) * time.Second,
		interval: time.Duration(min(max(a.Interval, 1), 60)) * time.Second}, nil
}

// plain reports whether text of the broker is fit for a terminal.
func plain(s string) bool {
	for _, r := range s {
		if r <= ' ' || r >= 0x7f {
			return false
		}
	}
	return s != "" && len(s) < 500
}

// Await asks until a person has decided, the code has expired (ErrExpired) or
// ctx is done. What passes by itself (a network that is away, a broker that
// restarts) is waited for.
func (c *Client) Await(ctx context.Context, o Offer) (wire.Paired, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Life, ErrExpired)
	defer cancel()
	for {
		if err := c.sleep(ctx, o.interval); err != nil {
			return wire.Paired{}, err
		}
		proof, err := c.proof(wire.ActToken, o.device)
		if err != nil {
			return wire.Paired{}, err
		}
		var p wire.Paired
		err = c.post(ctx, wire.PairTokenPath, wire.ProofRequest{Proof: proof}, &p)
		var no *Refusal
		switch {
		case err == nil:
			return p, nil
		case context.Cause(ctx) != nil:
			return wire.Paired{}, context.Cause(ctx)
		case errors.As(err, &no) && no.Code == wire.PairPending:
		case errors.As(err, &no) && no.Code == wire.PairSlow:
			o.interval += wire.PairSlowDown
		case errors.As(err, &no) && !no.Passes():
			return wire.Paired{}, err
		default: // RFC 8628, 3.5: back off on what passes
			o.interval = min(2*o.interval, time.Minute)
			if no != nil {
				o.interval = max(o.interval, min(no.RetryAfter, time.Minute))
			}
		}
	}
}

// Unpair takes this connector's access back. ErrUnknown when the broker knows
// no such key.
func (c *Client) Unpair(ctx context.Context) error {
	proof, err := c.proof(wire.ActUnpair, "")
	if err != nil {
		return err
	}
	return c.post(ctx, wire.UnpairPath, wire.ProofRequest{Proof: proof}, &struct{}{})
}

func (c *Client) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	if c.Sleep != nil {
		return c.Sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// claims makes a wire.Proof signable.
type claims struct{ wire.Proof }

func (claims) GetExpirationTime() (*jwt.NumericDate, error) { return nil, nil }
func (claims) GetIssuedAt() (*jwt.NumericDate, error)       { return nil, nil }
func (claims) GetNotBefore() (*jwt.NumericDate, error)      { return nil, nil }
func (claims) GetIssuer() (string, error)                   { return "", nil }
func (claims) GetSubject() (string, error)                  { return "", nil }
func (claims) GetAudience() (jwt.ClaimStrings, error)       { return nil, nil }

// proof signs one request to this broker.
func (c *Client) proof(act, device string) (string, error) {
	random := c.Rand
	if random == nil {
		random = rand.Reader
	}
	id := make([]byte, 16)
	if _, err := io.ReadFull(random, id); err != nil {
		return "", fmt.Errorf("make proof id: %w", err)
	}
	kid := Fingerprint(c.Key.Public().(ed25519.PublicKey))
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{wire.Proof{Subject: kid, Audience: wire.Audience(c.Broker),
		IssuedAt: c.now().Unix(), ID: base64.RawURLEncoding.EncodeToString(id), Act: act, DeviceCode: device}})
	t.Header["typ"], t.Header["kid"] = wire.ProofType, kid
	signed, err := t.SignedString(c.Key)
	if err != nil {
		return "", fmt.Errorf("sign proof: %w", err)
	}
	return signed, nil
}

// Fingerprint names a key, on the wire and to people: the RFC 7638 thumbprint
// of its JWK.
func Fingerprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(key) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// post sends a request and reads the answer into v, or a *Refusal.
func (c *Client) post(ctx context.Context, path string, q, v any) error {
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	body, status, header, err := c.send(ctx, http.MethodPost, path, b)
	if err != nil {
		return err
	}
	if status == http.StatusOK {
		if err := json.Unmarshal(body, v); err != nil {
			return fmt.Errorf("%s%s answers something else than a broker: %w", c.Broker, path, err)
		}
		return nil
	}
	no := &Refusal{Broker: c.Broker.String(), Status: status, now: c.now()}
	_ = json.Unmarshal(body, &no.PairError) // a proxy's answer has no code
	if s, err := strconv.Atoi(header.Get("Retry-After")); err == nil {
		no.RetryAfter = time.Duration(min(max(s, 0), 3600)) * time.Second
	}
	if no.Code == wire.PairAlready && no.Paired != nil {
		return &AlreadyError{*no.Paired}
	}
	return no
}

func (c *Client) send(ctx context.Context, method, path string, body []byte) (answer []byte, status int, header http.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.Broker.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, 0, nil, unreachable(c.Broker, err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, wire.PairBodyMax))
	if err != nil {
		return nil, 0, nil, unreachable(c.Broker, err)
	}
	return answer, resp.StatusCode, resp.Header, nil
}
