package token

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/tenants"
)

func TestVerifyReturnsWhatWasIssued(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	raw, want := r.issue(t)
	for _, when := range []string{"cold", "cached"} {
		got, err := r.verifier.Verify(t.Context(), raw)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if !got.IssuedAt.Equal(want.IssuedAt) || !got.ExpiresAt.Equal(want.ExpiresAt) {
			t.Errorf("%s: times %v..%v, want %v..%v", when, got.IssuedAt, got.ExpiresAt, want.IssuedAt, want.ExpiresAt)
		}
		got.IssuedAt, got.ExpiresAt = want.IssuedAt, want.ExpiresAt
		if got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
}

func TestIssuedTokenHasTheWireFormOfRFC9068(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	raw, c := r.issue(t)
	parts := strings.Split(raw, ".")
	var header, payload map[string]any
	for i, into := range []*map[string]any{&header, &payload} {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatal(err)
		}
	}
	if header["alg"] != "EdDSA" || header["typ"] != "at+jwt" || header["kid"] != r.store.keys[0].KID || len(header) != 3 {
		t.Errorf("header %v", header)
	}
	want := map[string]any{
		"iss": testIssuer, "aud": []any{testResource}, "sub": member.String(), "client_id": "client", "scope": "notes",
		"tenant": tenantA.String(), "agent": agent.String(), "jti": c.ID,
		"iat": float64(1772366400), "exp": float64(1772367000), // 2026-03-01T12:00:00Z and ten minutes later
	}
	for k, v := range want {
		if got, _ := json.Marshal(payload[k]); string(got) != string(mustJSON(t, v)) {
			t.Errorf("%s = %s, want %v", k, got, v)
		}
	}
	if len(payload) != len(want) {
		t.Errorf("payload has other fields too: %v", payload)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// forge signs a token of the rig's shape after change has been at it.
func (r *rig) forge(t *testing.T, method jwt.SigningMethod, key any, change func(header, claims map[string]any)) string {
	t.Helper()
	now := r.clock.now()
	claims := jwt.MapClaims{
		"iss": testIssuer, "aud": testResource, "sub": member.String(), "tenant": tenantA.String(), "agent": agent.String(),
		"jti": "j", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	}
	tok := jwt.NewWithClaims(method, claims)
	tok.Header["typ"], tok.Header["kid"] = Type, r.store.keys[0].KID
	if change != nil {
		change(tok.Header, claims)
	}
	raw, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (r *rig) private(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	k, err := x509.ParsePKCS8PrivateKey(r.store.keys[0].Private)
	if err != nil {
		t.Fatal(err)
	}
	return k.(ed25519.PrivateKey)
}

func TestForgeryIsAcceptedUnchanged(t *testing.T) { // or the test below would prove nothing
	t.Parallel()
	r := newRig(t)
	if _, err := r.verifier.Verify(t.Context(), r.forge(t, jwt.SigningMethodEdDSA, r.private(t), nil)); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyRefusesForgeries(t *testing.T) {
	t.Parallel()
	set := func(m, k string, v any) func(h, c map[string]any) {
		return func(h, c map[string]any) {
			into := c
			if m == "header" {
				into = h
			}
			if v == nil {
				delete(into, k)
			} else {
				into[k] = v
			}
		}
	}
	for name, change := range map[string]func(h, c map[string]any){
		"typ JWT":                   set("header", "typ", "JWT"),
		"typ in other case":         set("header", "typ", "AT+JWT"),
		"typ with media prefix":     set("header", "typ", "application/at+jwt"),
		"typ missing":               set("header", "typ", nil),
		"kid of nobody":             set("header", "kid", "unknown"),
		"kid a path":                set("header", "kid", "../../etc/passwd"),
		"kid a URL":                 set("header", "kid", "https://evil.example/jwks"),
		"kid a number":              set("header", "kid", 1),
		"kid missing":               set("header", "kid", nil),
		"jku":                       set("header", "jku", "https://evil.example/jwks"),
		"jwk":                       set("header", "jwk", map[string]any{"kty": "OKP"}),
		"crit":                      set("header", "crit", []string{"exp"}),
		"another issuer":            set("claims", "iss", "https://other.example"),
		"issuer with slash":         set("claims", "iss", testIssuer+"/"),
		"no issuer":                 set("claims", "iss", nil),
		"another installation":      set("claims", "aud", "https://other.example/mcp"),
		"the tunnel":                set("claims", "aud", "https://notes.example/tunnel"),
		"a longer path":             set("claims", "aud", testResource+"/x"),
		"no audience":               set("claims", "aud", nil),
		"two audiences":             set("claims", "aud", []string{testResource, "https://other.example/mcp"}),
		"expired":                   set("claims", "exp", newClock().now().Add(-6*time.Second).Unix()),
		"no expiry":                 set("claims", "exp", nil),
		"not yet":                   set("claims", "nbf", newClock().now().Add(time.Minute).Unix()),
		"issued in the future":      set("claims", "iat", newClock().now().Add(time.Minute).Unix()),
		"no issue time":             set("claims", "iat", nil),
		"no jti":                    set("claims", "jti", nil),
		"no tenant":                 set("claims", "tenant", nil),
		"tenant not an id":          set("claims", "tenant", "a"),
		"tenant zero":               set("claims", "tenant", "00000000-0000-0000-0000-000000000000"),
		"tenant in another form":    set("claims", "tenant", "{"+tenantA.String()+"}"),
		"no agent":                  set("claims", "agent", nil),
		"no subject":                set("claims", "sub", nil),
		"expiry of the wrong type":  set("claims", "exp", "tomorrow"),
		"audience of the wrong typ": set("claims", "aud", 7),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if _, err := r.verifier.Verify(t.Context(), r.forge(t, jwt.SigningMethodEdDSA, r.private(t), change)); !errors.Is(err, ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
		})
	}
}

func TestVerifyPinsTheAlgorithm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	public := r.private(t).Public().(ed25519.PublicKey)
	_, foreign, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"alg none":                          r.forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"HS256 keyed with the public key":   r.forge(t, jwt.SigningMethodHS256, []byte(public), nil),
		"HS256 keyed with the public PKIX":  r.forge(t, jwt.SigningMethodHS256, r.store.keys[0].Public, nil),
		"HS256 keyed with the JWKS":         r.forge(t, jwt.SigningMethodHS256, r.keys.JWKS(), nil),
		"a foreign key under our kid":       r.forge(t, jwt.SigningMethodEdDSA, foreign, nil),
		"EdDSA signature with alg in lower": r.forge(t, jwt.SigningMethodEdDSA, r.private(t), func(h, _ map[string]any) { h["alg"] = "eddsa" }),
	} {
		if _, err := r.verifier.Verify(t.Context(), raw); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
}

func TestVerifyRefusesMangledTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	raw, _ := r.issue(t)
	dot := strings.LastIndex(raw, ".")
	for name, bad := range map[string]string{
		"empty": "", "words": "not a token", "two parts": raw[:dot], "no signature": raw[:dot+1], "four parts": raw + ".x",
		"padding": raw + "=", "space": raw + " ", "longer than 4 KiB": raw + strings.Repeat("A", 4096),
		"another payload": strings.Join([]string{raw[:strings.Index(raw, ".")], base64.RawURLEncoding.EncodeToString([]byte(`{}`)), raw[dot+1:]}, "."),
	} {
		if _, err := r.verifier.Verify(t.Context(), bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
}

func TestAudienceIsComparedWithoutTrailingSlash(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, aud := range []string{testResource, testResource + "/", "HTTPS://Notes.Example/mcp"} {
		raw := r.forge(t, jwt.SigningMethodEdDSA, r.private(t), func(_, c map[string]any) { c["aud"] = aud })
		if c, err := r.verifier.Verify(t.Context(), raw); err != nil || c.Audience != testResource {
			t.Errorf("%s: audience %q, %v", aud, c.Audience, err)
		}
	}
}

func TestCachedTokenDiesAtItsExpiry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	raw, _ := r.issue(t) // ten minutes
	if _, err := r.verifier.Verify(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	r.clock.advance(10*time.Minute + leeway - time.Second)
	if _, err := r.verifier.Verify(t.Context(), raw); err != nil {
		t.Errorf("within the leeway: %v", err)
	}
	r.clock.advance(2 * time.Second)
	if _, err := r.verifier.Verify(t.Context(), raw); !errors.Is(err, ErrInvalid) {
		t.Errorf("after the leeway: got %v, want ErrInvalid", err)
	}
	if r.verifier.cache.Len() != 0 {
		t.Errorf("%d entries left in the cache", r.verifier.cache.Len())
	}
}

func TestTokenCacheIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v, err := NewVerifier(VerifierOptions{Issuer: testIssuer, Resources: []string{testResource}, Keys: r.keys, Revoked: r.revoked, Now: r.clock.now, CacheSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		raw, _ := r.issue(t)
		if _, err := v.Verify(t.Context(), raw); err != nil {
			t.Fatal(err)
		}
	}
	if v.cache.Len() != 2 {
		t.Errorf("%d entries, want 2", v.cache.Len())
	}
}

func TestRevocationIsCheckedOnCachedTokensToo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind    tenants.RevocationKind
		tenant  tenants.ID
		subject func(Claims) string
		refused bool
	}{
		"the token":                {tenants.RevokedToken, tenantA, func(c Claims) string { return c.ID }, true},
		"its agent":                {tenants.RevokedAgent, tenantA, func(c Claims) string { return c.Agent.String() }, true},
		"equal jti, other tenant":  {tenants.RevokedToken, tenantB, func(c Claims) string { return c.ID }, false},
		"equal agent, other owner": {tenants.RevokedAgent, tenantB, func(c Claims) string { return c.Agent.String() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			raw, claims := r.issue(t)
			if _, err := r.verifier.Verify(t.Context(), raw); err != nil {
				t.Fatal(err)
			}
			r.feed.revoke(c.tenant, c.kind, c.subject(claims), r.clock.now().Add(time.Hour))
			r.revoked.poll(t.Context())
			_, err := r.verifier.Verify(t.Context(), raw)
			if c.refused && (!errors.Is(err, ErrRevoked) || !errors.Is(err, ErrInvalid)) || !c.refused && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNothingIsTrustedBeforeRevocationsAreKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	raw, _ := r.issue(t)
	v, err := NewVerifier(VerifierOptions{Issuer: testIssuer, Resources: []string{testResource}, Keys: r.keys, Revoked: NewRevocations(newFeed(), RevocationsOptions{}), Now: r.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), raw); !errors.Is(err, ErrNotReady) || errors.Is(err, ErrInvalid) {
		t.Errorf("got %v, want ErrNotReady", err)
	}
}

func FuzzVerifyAcceptsOnlyWhatWasIssued(f *testing.F) {
	r := &rig{clock: newClock(), store: &memoryKeys{}, feed: newFeed()}
	r.keys = NewKeys(r.store, KeysOptions{Now: r.clock.now})
	if err := r.keys.Load(f.Context()); err != nil {
		f.Fatal(err)
	}
	r.revoked = NewRevocations(r.feed, RevocationsOptions{Now: r.clock.now})
	r.revoked.poll(f.Context())
	r.issuer = &Issuer{URL: testIssuer, Keys: r.keys, Now: r.clock.now}
	v, err := NewVerifier(VerifierOptions{Issuer: testIssuer, Resources: []string{testResource}, Keys: r.keys, Revoked: r.revoked, Now: r.clock.now})
	if err != nil {
		f.Fatal(err)
	}
	good, _, err := r.issuer.Issue(Request{Tenant: tenantA, Member: member, Agent: agent, Resource: testResource, Life: time.Minute})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("a.b.c")
	f.Add("")
	f.Fuzz(func(t *testing.T, raw string) {
		if _, err := v.Verify(t.Context(), raw); err == nil && raw != good {
			t.Errorf("accepted %q", raw)
		}
	})
}

func BenchmarkVerifyWarm(b *testing.B) {
	clock, store := newClock(), &memoryKeys{}
	keys := NewKeys(store, KeysOptions{Now: clock.now})
	if err := keys.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	revoked := NewRevocations(newFeed(), RevocationsOptions{Now: clock.now})
	revoked.poll(b.Context())
	v, err := NewVerifier(VerifierOptions{Issuer: testIssuer, Resources: []string{testResource}, Keys: keys, Revoked: revoked, Now: clock.now})
	if err != nil {
		b.Fatal(err)
	}
	raw, _, err := (&Issuer{URL: testIssuer, Keys: keys, Now: clock.now}).Issue(Request{Tenant: tenantA, Member: member, Agent: agent, Resource: testResource, Life: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := v.Verify(b.Context(), raw); err != nil {
			b.Fatal(err)
		}
	}
}
