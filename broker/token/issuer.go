package token

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/tenants"
)

// Type is the typ header of access tokens (RFC 9068). ID tokens, request states
// and connector proofs carry other types, so none passes for another.
const Type = "at+jwt"

// Issuer signs access tokens.
type Issuer struct {
	URL  string // iss; the installation's issuer identifier, byte for byte
	Keys *Keys
	Now  func() time.Time
	Rand io.Reader // for token ids; nil means crypto/rand
}

// Request says what a token is to say.
type Request struct {
	Tenant, Member, Agent tenants.ID
	Resource              string // the URL the token opens; becomes aud
	ClientID              string // OAuth client; empty for personal tokens
	Scope                 string
	Life                  time.Duration // at most Keys.Longest
}

// Issue signs a new token and returns it with what it says. It fails when no
// key may sign now or when the life is longer than keys are kept for.
func (i *Issuer) Issue(req Request) (string, Claims, error) {
	if req.Life <= 0 || req.Life > i.Keys.longest {
		return "", Claims{}, fmt.Errorf("issue token for %s: a life of %s is outside (0, %s]", req.Agent, req.Life, i.Keys.longest)
	}
	if req.Tenant == (tenants.ID{}) || req.Member == (tenants.ID{}) || req.Agent == (tenants.ID{}) || req.Resource == "" {
		return "", Claims{}, errors.New("issue token: tenant, member, agent and resource are required")
	}
	now := i.Now().Truncate(time.Second) // the precision of NumericDate
	key, err := i.Keys.signing(i.Now())
	if err != nil {
		return "", Claims{}, fmt.Errorf("issue token for %s: %w", req.Agent, err)
	}
	jti, err := randomID(i.Rand)
	if err != nil {
		return "", Claims{}, fmt.Errorf("issue token for %s: %w", req.Agent, err)
	}
	c := Claims{
		ID: jti, Audience: CanonicalResource(req.Resource), ClientID: req.ClientID, Scope: req.Scope,
		Tenant: req.Tenant, Member: req.Member, Agent: req.Agent,
		IssuedAt: now, ExpiresAt: now.Add(req.Life),
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, &wireClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: i.URL, Subject: c.Member.String(), Audience: jwt.ClaimStrings{c.Audience}, ID: c.ID,
			IssuedAt: jwt.NewNumericDate(c.IssuedAt), ExpiresAt: jwt.NewNumericDate(c.ExpiresAt),
		},
		ClientID: c.ClientID, Scope: c.Scope, Tenant: c.Tenant.String(), Agent: c.Agent.String(),
	})
	t.Header["typ"], t.Header["kid"] = Type, key.kid
	raw, err := t.SignedString(key.private)
	if err != nil {
		return "", Claims{}, fmt.Errorf("sign token for %s: %w", req.Agent, err)
	}
	return raw, c, nil
}

func randomID(r io.Reader) (string, error) {
	if r == nil {
		r = rand.Reader
	}
	b := make([]byte, 16)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", fmt.Errorf("random id: %w", err)
	}
	return fmt.Sprintf("%x", b), nil
}
