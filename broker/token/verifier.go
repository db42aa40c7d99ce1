package token

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"
)

// maxToken is the largest token that is looked at, in bytes. Ours have about
// 700; the bound keeps a hostile header from being decoded.
const maxToken = 4096

// leeway is the clock difference allowed between nodes.
const leeway = 5 * time.Second

// cachedTokens bounds the cache of verified tokens (about 400 bytes each).
const cachedTokens = 16384

// VerifierOptions are what a Verifier accepts tokens for.
type VerifierOptions struct {
	Issuer    string   // iss, byte for byte
	Resources []string // the URLs of /mcp under every public URL
	Keys      *Keys
	Revoked   *Revocations
	Now       func() time.Time // nil means time.Now
	CacheSize int              // 0 means 16384
}

// Verifier checks access tokens. A warm check costs one SHA-256 and two map
// look-ups; revocation is looked up every time.
type Verifier struct {
	issuer    string
	resources []string
	keys      *Keys
	revoked   *Revocations
	now       func() time.Time
	parser    *jwt.Parser
	cache     *lru.Cache[[sha256.Size]byte, Claims]
}

// NewVerifier makes a Verifier.
func NewVerifier(o VerifierOptions) (*Verifier, error) {
	if o.Issuer == "" || len(o.Resources) == 0 || o.Keys == nil || o.Revoked == nil {
		return nil, errors.New("token verifier: issuer, resources, keys and revocations are required")
	}
	v := &Verifier{issuer: o.Issuer, keys: o.Keys, revoked: o.Revoked, now: o.Now}
	if v.now == nil {
		v.now = time.Now
	}
	for _, r := range o.Resources {
		v.resources = append(v.resources, CanonicalResource(r))
	}
	if o.CacheSize == 0 {
		o.CacheSize = cachedTokens
	}
	cache, err := lru.New[[sha256.Size]byte, Claims](o.CacheSize)
	if err != nil {
		return nil, fmt.Errorf("token cache of %d entries: %w", o.CacheSize, err)
	}
	v.cache = cache
	v.parser = jwt.NewParser(
		jwt.WithValidMethods([]string{alg}), jwt.WithIssuer(o.Issuer), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithLeeway(leeway), jwt.WithTimeFunc(v.now), jwt.WithStrictDecoding(),
	)
	return v, nil
}

// Verify returns what a token in force says; ErrInvalid, ErrRevoked or
// ErrNotReady otherwise.
func (v *Verifier) Verify(ctx context.Context, raw string) (Claims, error) {
	if len(raw) == 0 || len(raw) > maxToken {
		return Claims{}, fmt.Errorf("%w: %d bytes", ErrInvalid, len(raw))
	}
	if !v.revoked.loaded() {
		return Claims{}, ErrNotReady
	}
	sum := sha256.Sum256([]byte(raw))
	c, ok := v.cache.Get(sum)
	if ok && !v.now().Before(c.ExpiresAt.Add(leeway)) {
		v.cache.Remove(sum)
		ok = false
	}
	if !ok {
		var err error
		if c, err = v.parse(ctx, raw); err != nil {
			return Claims{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		v.cache.Add(sum, c)
	}
	if v.revoked.RevokedClaims(c) {
		v.cache.Remove(sum)
		return Claims{}, ErrRevoked
	}
	return c, nil
}

func (v *Verifier) parse(ctx context.Context, raw string) (Claims, error) {
	var w wireClaims
	_, err := v.parser.ParseWithClaims(raw, &w, func(t *jwt.Token) (any, error) {
		kid, err := checkHeader(t.Header)
		if err != nil {
			return nil, err
		}
		k, err := v.keys.verifying(ctx, kid, v.now())
		if err != nil {
			return nil, err
		}
		return k.public, nil
	})
	if err != nil {
		return Claims{}, err
	}
	c, err := w.claims()
	if err != nil {
		return Claims{}, err
	}
	if len(w.Audience) != 1 || !slices.Contains(v.resources, CanonicalResource(w.Audience[0])) {
		return Claims{}, errors.New("issued for another resource")
	}
	c.Audience = CanonicalResource(w.Audience[0])
	return c, nil
}

// checkHeader demands exactly the three fields we write. Everything else a
// header may carry (jku, jwk, x5u, crit, …) only serves to make a verifier
// trust or fetch something.
func checkHeader(h map[string]any) (kid string, err error) {
	if h["typ"] != Type {
		return "", errors.New("not an access token")
	}
	kid, _ = h["kid"].(string)
	if !plainName(kid) {
		return "", errors.New("kid is not a name of ours")
	}
	if len(h) != 3 { // with alg, which the parser has checked
		return "", errors.New("unexpected header fields")
	}
	return kid, nil
}

// plainName reports whether s could be one of our kids: base64url characters,
// nothing that a path, a URL or a query would need.
func plainName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}
