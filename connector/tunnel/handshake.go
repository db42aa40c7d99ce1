package tunnel

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/link"
)

// claims are those of an AUTH token.
type claims struct {
	jwt.RegisteredClaims
	Nonce    string `json:"nonce"`
	Exporter string `json:"tls_exporter,omitempty"` // base64url, on the raw transport
}

// token signs the answer to a challenge. It is good for one connection to one
// broker within a minute.
func (c *Client) token(nonce string, binding []byte) (string, error) {
	id := make([]byte, 16)
	if _, err := io.ReadFull(c.cfg.Rand, id); err != nil {
		return "", fmt.Errorf("make token id: %w", err)
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject:  c.cfg.ConnectorID,
			Audience: jwt.ClaimStrings{c.audience},
			IssuedAt: jwt.NewNumericDate(c.cfg.Clock.Now()),
			ID:       base64.RawURLEncoding.EncodeToString(id),
		},
		Nonce:    nonce,
		Exporter: base64.RawURLEncoding.EncodeToString(binding),
	})
	t.Header["typ"] = wire.TokenType
	t.Header["kid"] = c.cfg.ConnectorID
	signed, err := t.SignedString(c.cfg.Key)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return signed, nil
}

// greet answers the broker's challenge with auth, completed by version, token and
// software. A *wire.Reject is its refusal.
func (c *Client) greet(l *link.Link, auth wire.Auth) (wire.Welcome, error) {
	var welcome wire.Welcome
	_ = l.SetDeadline(time.Now().Add(c.cfg.Timing.Handshake)) // a dead connection fails below
	r, w := wire.NewReader(l, wire.HandshakeLimits()), wire.NewWriter(l, wire.HandshakeLimits())
	var ch wire.Challenge
	if err := expect(r, wire.FrameChallenge, &ch); err != nil {
		return welcome, err
	}
	version, ok := wire.Negotiate(ch.Versions, wire.Versions())
	if !ok {
		return welcome, fmt.Errorf("broker speaks tunnel versions %v, this connector %v; update the older one", ch.Versions, wire.Versions())
	}
	if raw, err := base64.RawURLEncoding.DecodeString(ch.Nonce); err != nil || len(raw) < wire.NonceSize {
		return welcome, wire.Violation("nonce too short")
	}
	token, err := c.token(ch.Nonce, l.Binding)
	if err != nil {
		return welcome, err
	}
	auth.Version, auth.Token, auth.Software = version, token, c.cfg.Software
	if err := w.Write(wire.FrameAuth, auth, nil); err != nil {
		return welcome, err
	}
	if err := expect(r, wire.FrameWelcome, &welcome); err != nil {
		return welcome, err
	}
	if welcome.Version != version {
		return welcome, wire.Violation("WELCOME in version %d after AUTH in %d", welcome.Version, version)
	}
	if welcome.MaxFrame <= 0 || welcome.MaxHeader <= 0 || welcome.MaxResult <= 0 || welcome.MaxResult > maxResult {
		return welcome, wire.Violation("WELCOME without usable limits")
	}
	return welcome, l.SetDeadline(time.Time{})
}

// maxResult is what this end would ever hold for one answer.
const maxResult = 64 << 20

func expect(r *wire.Reader, want wire.Type, v any) error {
	f, err := r.Next()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("broker closed the connection: %w", io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("await %s: %w", want, err)
	}
	if f.Type == wire.FrameReject {
		var bye wire.Reject
		if err := r.Decode(f, &bye); err != nil {
			return err
		}
		return &bye
	}
	if f.Type != want {
		return wire.Violation("%s instead of %s", f.Type, want)
	}
	return r.Decode(f, v)
}
