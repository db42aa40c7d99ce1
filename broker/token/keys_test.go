package token

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"siyuan-broker/tenants"
)

func TestFirstLoadMakesAKeyAndLaterOnesKeepIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	again := NewKeys(r.store, KeysOptions{Now: r.clock.now})
	if err := again.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.store.keys) != 1 {
		t.Errorf("%d keys, want 1", len(r.store.keys))
	}
}

func TestRotationSignsWithTheNewKeyAndVerifiesWithTheOld(t *testing.T) {
	t.Parallel()
	r := newRig(t) // tokens live 24 h at most
	first := r.store.keys[0].KID
	old, _ := r.issue(t)
	if err := r.keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k, err := r.keys.signing(r.clock.now()); err != nil || k.kid != first {
		t.Errorf("before the minute is over another key signs: %v, %v", k, err)
	}
	r.clock.advance(rotateLead)
	if k, err := r.keys.signing(r.clock.now()); err != nil || k.kid == first {
		t.Errorf("after the minute the old key still signs: %v, %v", k, err)
	}
	if _, err := r.verifier.Verify(t.Context(), old); err != nil {
		t.Errorf("old token: %v", err)
	}
	fresh, _ := r.issue(t)
	if _, err := r.verifier.Verify(t.Context(), fresh); err != nil {
		t.Errorf("new token: %v", err)
	}
	// The longest token of the old key ends 24 h after the takeover.
	if got, want := r.store.keys[0].ExpiresAt, newClock().now().Add(rotateLead+24*time.Hour); !got.Equal(want) {
		t.Errorf("old key verifies until %v, want %v", got, want)
	}
	r.clock.advance(24*time.Hour + time.Second)
	if err := r.keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, k := range r.store.keys {
		if k.KID == first {
			t.Error("the expired key was not deleted")
		}
	}
}

func TestAKeyMadeOnAnotherNodeIsFoundAtItsFirstUse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := NewKeys(r.store, KeysOptions{Now: r.clock.now, Longest: 24 * time.Hour})
	if err := other.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.clock.advance(rotateLead)
	raw, _, err := (&Issuer{URL: testIssuer, Keys: other, Now: r.clock.now}).Issue(Request{Tenant: tenantA, Member: member, Agent: agent, Resource: testResource, Life: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.verifier.Verify(t.Context(), raw); err != nil {
		t.Error(err)
	}
}

func TestUnknownKidsAskTheStoreOnceASecond(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.clock.advance(time.Second)
	before := r.store.reads
	for range 50 {
		if _, err := r.keys.verifying(t.Context(), "unknown", r.clock.now()); err == nil {
			t.Fatal("found")
		}
	}
	if r.store.reads != before+1 {
		t.Errorf("%d reads, want 1", r.store.reads-before)
	}
	r.store.fail = errors.New("away")
	r.clock.advance(time.Second)
	for range 50 {
		if _, err := r.keys.verifying(t.Context(), "unknown", r.clock.now()); err == nil {
			t.Fatal("found")
		}
	}
	if r.store.reads != before+2 {
		t.Errorf("%d reads while the store fails, want 1", r.store.reads-before-1)
	}
}

func TestKeysOfOtherPurposesDoNotVerifyTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	raw, _ := r.issue(t)
	r.store.keys[0].Purpose = "session"
	fresh := NewKeys(r.store, KeysOptions{Now: r.clock.now})
	if err := fresh.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(VerifierOptions{Issuer: testIssuer, Resources: []string{testResource}, Keys: fresh, Revoked: r.revoked, Now: r.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), raw); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

func TestJWKSHoldsThePublicHalfOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r.keys.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/oauth/jwks", nil))
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &set); err != nil {
		t.Fatal(err)
	}
	if len(set.Keys) != 2 {
		t.Fatalf("%d keys, want the old and the coming one", len(set.Keys))
	}
	for _, k := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k["x"])
		if err != nil || tenants.Fingerprint(x) != k["kid"] || k["kty"] != "OKP" || k["crv"] != "Ed25519" || k["alg"] != "EdDSA" || k["use"] != "sig" || len(k) != 6 {
			t.Errorf("key %v", k)
		}
	}
	if w.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Error("browsers cannot read it")
	}
	w = httptest.NewRecorder()
	r.keys.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/oauth/jwks", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestIssueRefusesWhatCouldNotBeVerifiedToItsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	good := Request{Tenant: tenantA, Member: member, Agent: agent, Resource: testResource, Life: time.Minute}
	for name, change := range map[string]func(*Request){
		"longer than keys are kept": func(q *Request) { q.Life = 24*time.Hour + time.Second },
		"no life":                   func(q *Request) { q.Life = 0 },
		"no tenant":                 func(q *Request) { q.Tenant = tenants.ID{} },
		"no member":                 func(q *Request) { q.Member = tenants.ID{} },
		"no agent":                  func(q *Request) { q.Agent = tenants.ID{} },
		"no resource":               func(q *Request) { q.Resource = "" },
	} {
		q := good
		change(&q)
		if _, _, err := r.issuer.Issue(q); err == nil {
			t.Errorf("%s: issued", name)
		}
	}
}
