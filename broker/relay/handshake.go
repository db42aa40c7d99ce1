package relay

import (
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/link"
)

func reject(code wire.RejectCode, format string, args ...any) *wire.Reject {
	return &wire.Reject{Code: code, Message: fmt.Sprintf(format, args...)}
}

// establish turns a connection into a registered session, or into the bulk
// session of one, and returns what serves it to its end. A connector that fails
// is told why where that helps its owner and nobody else; its connection is left
// for the caller to close.
func (s *Server) establish(l *link.Link) (serve func(), err error) {
	started := s.cfg.Now()
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timing.Handshake)
	defer cancel()
	_ = l.SetDeadline(time.Now().Add(s.cfg.Timing.Handshake)) // a dead connection fails below
	n, b, err := s.greet(ctx, l)
	if err != nil {
		var bye *wire.Reject
		var bad *wire.ProtocolError
		switch {
		case errors.As(err, &bye):
		case errors.As(err, &bad):
			s.hub.n.protocolErrors.Add(1)
			bye = reject(wire.RejectProtocol, "%s", bad.Reason)
		case errors.Is(err, errDirectory):
			bye = reject(wire.RejectInternal, "The broker cannot check this connector now.")
			bye.RetryAfterS = 5
		default:
			return nil, err
		}
		_ = wire.NewWriter(l, wire.HandshakeLimits()).Write(wire.FrameReject, bye, nil) // it may be gone
		return nil, err
	}
	_ = l.SetDeadline(time.Time{})
	if b != nil {
		return b.run, nil
	}
	control, err := n.acceptControl(ctx)
	if err == nil {
		if no := s.hub.register(n, started); no != nil {
			err = no
		}
	}
	if err != nil {
		n.end(err)
		n.tasks.Wait()
		return nil, err
	}
	return func() {
		s.seen(n.rec)
		n.run(control)
		s.hub.forget(n)
		s.seen(n.rec)
	}, nil
}

// greet speaks CHALLENGE, AUTH, WELCOME. It makes a session, or else the bulk
// session of one.
func (s *Server) greet(ctx context.Context, l *link.Link) (*session, *bulk, error) {
	auth, rec, err := s.challenge(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case auth.Kind == wire.KindBulk && auth.Epoch > 0:
		b, err := s.greetBulk(l, rec, auth)
		return nil, b, err
	case auth.Kind != wire.KindCalls: // a probe among them
		return nil, nil, reject(wire.RejectKind, "This broker offers no %q sessions.", clip(string(auth.Kind), maxID))
	}
	epoch, err := s.cfg.Directory.NextEpoch(ctx, rec.Tenant, rec.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: next epoch of %s: %w", errDirectory, rec.ID, err)
	}
	if err := s.welcome(l, auth, epoch.Number); err != nil {
		return nil, nil, err
	}
	n, err := s.newSession(l, rec, epoch, auth)
	return n, nil, err
}

// greetBulk pairs a connection with the session it names, which must be here,
// live and of the same connector. It costs no epoch.
func (s *Server) greetBulk(l *link.Link, rec ConnectorRecord, auth wire.Auth) (*bulk, error) {
	n := s.hub.session(rec.Tenant, rec.Instance)
	elsewhere := reject(wire.RejectElsewhere, "The session that this one belongs to is not on this node.")
	if n == nil || n.rec.ID != rec.ID || n.epoch != auth.Epoch || !n.door.offered {
		return nil, elsewhere
	}
	b := n.newBulk(l)
	if !n.door.attach(b) {
		return nil, elsewhere
	}
	err := s.welcome(l, auth, n.epoch)
	if err == nil {
		err = b.start()
	}
	if err != nil {
		b.gone()
		return nil, err
	}
	return b, nil
}

func (s *Server) welcome(l *link.Link, auth wire.Auth, epoch int64) error {
	t, lim := s.cfg.Timing, s.cfg.Limits
	return wire.NewWriter(l, wire.HandshakeLimits()).Write(wire.FrameWelcome, wire.Welcome{Version: auth.Version, Node: s.cfg.Node, Epoch: epoch,
		MaxFrame: lim.frame().Frame, MaxHeader: lim.Header, MaxResult: lim.Result, MaxCalls: lim.Streams,
		PingIntervalMS: t.PingInterval.Milliseconds(), PingTimeoutMS: t.PingTimeout.Milliseconds(), Bulk: auth.Bulk}, nil)
}

// challenge finds out who connects.
func (s *Server) challenge(ctx context.Context, l *link.Link) (auth wire.Auth, rec ConnectorRecord, err error) {
	r, w := wire.NewReader(l, wire.HandshakeLimits()), wire.NewWriter(l, wire.HandshakeLimits())
	raw := make([]byte, wire.NonceSize)
	if _, err := io.ReadFull(s.cfg.Rand, raw); err != nil {
		return auth, rec, fmt.Errorf("make nonce: %w", err)
	}
	nonce := base64.RawURLEncoding.EncodeToString(raw)
	if err := w.Write(wire.FrameChallenge, wire.Challenge{Versions: wire.Versions(), Nonce: nonce}, nil); err != nil {
		return auth, rec, err
	}
	f, err := r.Next()
	if err != nil {
		return auth, rec, fmt.Errorf("await AUTH: %w", err)
	}
	if f.Type != wire.FrameAuth {
		return auth, rec, wire.Violation("%s instead of AUTH", f.Type)
	}
	if err := r.Decode(f, &auth); err != nil {
		return auth, rec, err
	}
	if !slices.Contains(wire.Versions(), auth.Version) {
		return auth, rec, reject(wire.RejectVersion, "This broker speaks versions %v.", wire.Versions())
	}
	rec, err = s.authenticate(ctx, auth.Token, nonce, l.Binding)
	return auth, rec, err
}

var errDirectory = errors.New("directory")

// claims are those of an AUTH token.
type claims struct {
	jwt.RegisteredClaims
	Nonce    string `json:"nonce"`
	Exporter string `json:"tls_exporter,omitempty"` // base64url, on the raw transport
}

// authenticate checks a token against the registered key. Before the signature
// holds, every failure looks the same; after it, the owner is told.
func (s *Server) authenticate(ctx context.Context, token, nonce string, binding []byte) (ConnectorRecord, error) {
	var rec ConnectorRecord
	var dirErr error
	var c claims
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())
	_, err := parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		if t.Header["typ"] != wire.TokenType || kid == "" || len(kid) > maxID || kid != c.Subject {
			return nil, errors.New("header")
		}
		if rec, dirErr = s.cfg.Directory.Connector(ctx, kid); dirErr != nil {
			return nil, dirErr
		}
		if len(rec.PublicKey) != ed25519.PublicKeySize {
			return nil, errors.New("registered key")
		}
		return rec.PublicKey, nil
	})
	switch {
	case dirErr != nil && !errors.Is(dirErr, ErrUnknownConnector):
		return rec, fmt.Errorf("%w: find connector: %w", errDirectory, dirErr)
	case err != nil:
		return rec, fmt.Errorf("%w (%w)", reject(wire.RejectUnauthorized, "The broker does not know this connector or its key."), err)
	case rec.Revoked:
		return rec, reject(wire.RejectRevoked, "This connector was revoked; pair it again.")
	case !same(c.Nonce, nonce):
		return rec, reject(wire.RejectUnauthorized, "The token answers another challenge.")
	case !slices.ContainsFunc(c.Audience, func(a string) bool { return slices.Contains(s.cfg.Audiences, a) }):
		return rec, reject(wire.RejectUnauthorized, "The token is for another broker; check the broker URL.")
	case binding != nil && !same(c.Exporter, base64.RawURLEncoding.EncodeToString(binding)):
		return rec, reject(wire.RejectUnauthorized, "The token is bound to another TLS connection.")
	case c.IssuedAt == nil || s.cfg.Now().Sub(c.IssuedAt.Time).Abs() > wire.TokenSkew:
		return rec, reject(wire.RejectUnauthorized, "The connector's clock is more than %d s off; the broker's is %s.",
			int(wire.TokenSkew.Seconds()), s.cfg.Now().UTC().Format(time.RFC3339))
	case c.ID == "" || len(c.ID) > 2*maxID:
		return rec, reject(wire.RejectUnauthorized, "The token has no usable jti.")
	}
	return rec, s.tokens.use(tokenKey{rec.Tenant, rec.ID, c.ID}, s.cfg.Now())
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

type tokenKey struct{ tenant, connector, jti string }

// tokenLog makes every token single use on this node; on another node its nonce
// is wrong. Entries live as long as their iat could pass.
type tokenLog struct {
	max  int
	mu   sync.Mutex
	used map[tokenKey]time.Time
	per  map[key]int // tokens in used by connector
	next time.Time   // of the next sweep
}

// maxPerConnector keeps one connector that connects in a loop from filling the
// log for all.
const maxPerConnector = 100

func newTokenLog(size int) *tokenLog {
	return &tokenLog{max: size, used: map[tokenKey]time.Time{}, per: map[key]int{}}
}

// use returns nil the first time, a *wire.Reject afterwards or when the log is
// full: forgetting a token early would allow it twice.
func (l *tokenLog) use(k tokenKey, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.After(l.next) || len(l.used) >= l.max {
		for old, at := range l.used {
			if now.Sub(at) > 2*wire.TokenSkew {
				delete(l.used, old)
				l.count(old, -1)
			}
		}
		l.next = now.Add(wire.TokenSkew)
	}
	if _, again := l.used[k]; again {
		return reject(wire.RejectUnauthorized, "The token was used before.")
	}
	if len(l.used) >= l.max || l.per[key{k.tenant, k.connector}] >= maxPerConnector {
		return &wire.Reject{Code: wire.RejectBusy, Message: "Too many connectors are connecting.", RetryAfterS: 30}
	}
	l.used[k] = now
	l.count(k, 1)
	return nil
}

func (l *tokenLog) count(k tokenKey, by int) {
	c := key{k.tenant, k.connector}
	if l.per[c] += by; l.per[c] == 0 {
		delete(l.per, c)
	}
}
