// Package oidctest is a small OpenID provider for tests: real discovery, keys,
// codes, PKCE and tokens over real HTTP, and one person who always agrees.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The client that is registered at every Provider.
const (
	ClientID     = "siyuan-broker"
	ClientSecret = "an example secret"
)

// Provider is an OpenID provider. Its fields may be changed between sign-ins.
type Provider struct {
	URL string

	mu     sync.Mutex
	claims jwt.MapClaims         // of the person
	spoil  func(c jwt.MapClaims) // changes an ID token before it is signed
	forge  *ecdsa.PrivateKey     // signs in place of key
	key    *ecdsa.PrivateKey
	codes  map[string]url.Values // what was asked with each code
	now    func() time.Time
}

// Start runs a provider until the test ends.
func Start(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{key: key, codes: map[string]url.Values{}, now: now, claims: jwt.MapClaims{"sub": "7"}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Be makes the person somebody else: the claims of their ID tokens.
func (p *Provider) Be(claims jwt.MapClaims) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

// Spoil changes every ID token before it is signed; nil: no more.
func (p *Provider) Spoil(fn func(jwt.MapClaims)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoil = fn
}

// Forge signs with a key that the provider does not publish, or no longer.
func (p *Provider) Forge(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forge = nil
	if on {
		p.forge, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // fails only without randomness
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the test notices an answer that is missing
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	raw, err := p.key.PublicKey.Bytes() // 0x04, X, Y
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b := base64.RawURLEncoding
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{
		"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig", "x": b.EncodeToString(raw[1:33]), "y": b.EncodeToString(raw[33:]),
	}}})
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "" || q.Get("state") == "" {
		http.Error(w, "the request lacks something: "+q.Encode(), http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = q
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	} else {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	}
	asked, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != ClientID || secret != ClientSecret:
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	case !ok, r.PostFormValue("redirect_uri") != asked.Get("redirect_uri"), base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge"):
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	now := p.now()
	claims := jwt.MapClaims{"iss": p.URL, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": asked.Get("nonce")}
	for k, v := range p.claims {
		claims[k] = v
	}
	if p.spoil != nil {
		p.spoil(claims)
	}
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	t.Header["kid"] = "1"
	key := p.key
	if p.forge != nil {
		key = p.forge
	}
	signed, err := t.SignedString(key)
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"error": "server_error"})
		return
	}
	answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300, "id_token": signed})
}
