package token

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"siyuan-broker/tenants"
)

// Errors of Verify. Callers answer ErrInvalid and ErrRevoked with 401 and
// ErrNotReady with 503.
var (
	// ErrInvalid means that the string is no token of ours for this resource, or
	// no longer one. The wrapped text names the reason and never the token.
	ErrInvalid = errors.New("invalid token")
	// ErrRevoked means that the token or its agent was taken back. It is an
	// ErrInvalid too.
	ErrRevoked = fmt.Errorf("%w: revoked", ErrInvalid)
	// ErrNotReady means that revocations could not be read yet since the start,
	// so that no token can be trusted.
	ErrNotReady = errors.New("revocations are not known yet")
)

// Claims are what a verified token says.
type Claims struct {
	ID        string // jti
	Audience  string // canonical, see CanonicalResource
	ClientID  string
	Scope     string // space separated
	Tenant    tenants.ID
	Member    tenants.ID // sub
	Agent     tenants.ID // the grant the token was issued under
	IssuedAt  time.Time
	ExpiresAt time.Time
}

// wireClaims is the JSON of the payload.
type wireClaims struct {
	jwt.RegisteredClaims
	ClientID string `json:"client_id,omitempty"`
	Scope    string `json:"scope,omitempty"`
	Tenant   string `json:"tenant"`
	Agent    string `json:"agent"`
}

func (w *wireClaims) claims() (Claims, error) {
	c := Claims{ID: w.RegisteredClaims.ID, ClientID: w.ClientID, Scope: w.Scope}
	if c.ID == "" || w.IssuedAt == nil || w.ExpiresAt == nil {
		return Claims{}, errors.New("jti, iat and exp are required")
	}
	c.IssuedAt, c.ExpiresAt = w.IssuedAt.Time, w.ExpiresAt.Time
	for _, id := range []struct {
		name, text string
		into       *tenants.ID
	}{{"tenant", w.Tenant, &c.Tenant}, {"sub", w.Subject, &c.Member}, {"agent", w.Agent, &c.Agent}} {
		v, err := uuid.Parse(id.text)
		if err != nil || v == uuid.Nil || v.String() != id.text {
			return Claims{}, fmt.Errorf("%s is not an id", id.name)
		}
		*id.into = v
	}
	return c, nil
}
