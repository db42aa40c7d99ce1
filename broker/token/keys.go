package token

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"siyuan-broker/tenants"
)

// Purpose is the purpose under which the store keeps keys of access tokens.
const Purpose = "access"

// alg is the only algorithm; it is pinned to every key.
const alg = "EdDSA"

// rotateLead is the time between the birth of a key and its first signature, so
// that other nodes and cached JWKS documents know it by then.
const rotateLead = time.Minute

// reloadEvery bounds how often an unknown kid may make us ask the store.
const reloadEvery = time.Second

// KeyStore is the part of tenants.Store that Keys needs.
type KeyStore interface {
	SigningKeys(ctx context.Context) ([]tenants.SigningKey, error)
	PutSigningKey(ctx context.Context, k tenants.SigningKey) error
	RetireSigningKey(ctx context.Context, kid string, retires, expires time.Time) error
	DeleteSigningKey(ctx context.Context, kid string) error
}

// KeysOptions are the choices of Keys. Zero values take the defaults.
type KeysOptions struct {
	Longest time.Duration // longest life of a token; 400 days, a personal token of a year and some
	Now     func() time.Time
	Rand    io.Reader
}

// Keys are the installation's token keys: one signs, the others verify until
// the last token they signed has expired.
type Keys struct {
	store   KeyStore
	longest time.Duration
	now     func() time.Time
	rand    io.Reader

	ring     atomic.Pointer[ring]
	mu       sync.Mutex // held while loading
	loadedAt time.Time
}

// ring is an immutable set of keys, newest first.
type ring struct{ keys []*key }

type key struct {
	kid                          string
	private                      ed25519.PrivateKey
	public                       ed25519.PublicKey
	notBefore, retires, verifies time.Time // zero retires and verifies: no end
}

// NewKeys returns keys that know nothing until Load.
func NewKeys(store KeyStore, o KeysOptions) *Keys {
	k := &Keys{store: store, longest: o.Longest, now: o.Now, rand: o.Rand}
	if k.longest == 0 {
		k.longest = 400 * 24 * time.Hour
	}
	if k.now == nil {
		k.now = time.Now
	}
	if k.rand == nil {
		k.rand = rand.Reader
	}
	k.ring.Store(&ring{})
	return k
}

// Load reads the keys and creates the first one where there is none that signs.
func (k *Keys) Load(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.load(ctx); err != nil {
		return err
	}
	if _, err := k.signing(k.now()); err == nil {
		return nil
	}
	if err := k.create(ctx, k.now()); err != nil {
		return err
	}
	return k.load(ctx)
}

// Rotate creates a key that signs a minute from now, retires the ones before it
// and removes those whose last token has expired. Other nodes meet the new key
// at its first use; calling it on two nodes at once makes two keys, which is
// harmless.
func (k *Keys) Rotate(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.load(ctx); err != nil {
		return err
	}
	now := k.now()
	takesOver := now.Add(rotateLead)
	if err := k.create(ctx, takesOver); err != nil {
		return err
	}
	for _, old := range k.ring.Load().keys {
		switch {
		case !old.verifies.IsZero() && now.After(old.verifies):
			if err := k.store.DeleteSigningKey(ctx, old.kid); err != nil && !errors.Is(err, tenants.ErrNotFound) {
				return fmt.Errorf("delete expired signing key %s: %w", old.kid, err)
			}
		case old.retires.IsZero():
			if err := k.store.RetireSigningKey(ctx, old.kid, takesOver, takesOver.Add(k.longest)); err != nil {
				return fmt.Errorf("retire signing key %s: %w", old.kid, err)
			}
		}
	}
	return k.load(ctx)
}

// load replaces the ring. Keys of other purposes or algorithms are not ours; an
// unreadable one of ours is an error, for it may have signed live tokens.
func (k *Keys) load(ctx context.Context) error {
	stored, err := k.store.SigningKeys(ctx)
	if err != nil {
		return fmt.Errorf("load signing keys: %w", err)
	}
	r := &ring{}
	for _, s := range stored {
		if s.Purpose != Purpose || s.Alg != alg {
			continue
		}
		private, err := x509.ParsePKCS8PrivateKey(s.Private)
		if err != nil {
			return fmt.Errorf("signing key %s: not a PKCS #8 key", s.KID) // the cause could quote key bytes
		}
		ed, ok := private.(ed25519.PrivateKey)
		if !ok {
			return fmt.Errorf("signing key %s: not an Ed25519 key", s.KID)
		}
		r.keys = append(r.keys, &key{
			kid: s.KID, private: ed, public: ed.Public().(ed25519.PublicKey),
			notBefore: s.NotBefore, retires: s.RetiresAt, verifies: s.ExpiresAt,
		})
	}
	slices.SortFunc(r.keys, func(a, b *key) int {
		if c := b.notBefore.Compare(a.notBefore); c != 0 {
			return c
		}
		if a.kid < b.kid {
			return -1
		}
		return 1
	})
	k.ring.Store(r)
	k.loadedAt = k.now()
	return nil
}

func (k *Keys) create(ctx context.Context, notBefore time.Time) error {
	public, private, err := ed25519.GenerateKey(k.rand)
	if err != nil {
		return fmt.Errorf("make signing key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("encode signing key: %w", err)
	}
	spki, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return fmt.Errorf("encode signing key: %w", err)
	}
	err = k.store.PutSigningKey(ctx, tenants.SigningKey{
		KID: tenants.Fingerprint(public), Alg: alg, Purpose: Purpose, Private: der, Public: spki,
		NotBefore: notBefore, CreatedAt: k.now(),
	})
	if err != nil {
		return fmt.Errorf("store signing key: %w", err)
	}
	return nil
}

// signing is the newest key that may sign at now.
func (k *Keys) signing(now time.Time) (*key, error) {
	for _, c := range k.ring.Load().keys {
		if !now.Before(c.notBefore) && (c.retires.IsZero() || now.Before(c.retires)) {
			return c, nil
		}
	}
	return nil, errors.New("no signing key is in force: load the keys first")
}

// verifying finds the key of a kid. An unknown one may be another node's new
// key, so the store is asked again, at most once a second.
func (k *Keys) verifying(ctx context.Context, kid string, now time.Time) (*key, error) {
	if c := k.find(kid); c != nil {
		return c, c.verifiesAt(now)
	}
	k.mu.Lock()
	if k.find(kid) == nil && k.now().Sub(k.loadedAt) >= reloadEvery {
		k.loadedAt = k.now() // also when it fails: hostile kids must not hammer a store that is away
		if err := k.load(ctx); err != nil {
			k.mu.Unlock()
			return nil, errors.New("the signing key is not known")
		}
	}
	k.mu.Unlock()
	if c := k.find(kid); c != nil {
		return c, c.verifiesAt(now)
	}
	return nil, errors.New("the signing key is not known")
}

func (k *Keys) find(kid string) *key {
	for _, c := range k.ring.Load().keys {
		if c.kid == kid {
			return c
		}
	}
	return nil
}

func (c *key) verifiesAt(now time.Time) error {
	if !c.verifies.IsZero() && now.After(c.verifies) {
		return errors.New("the signing key is no longer in force")
	}
	return nil
}

// jwk is the public half of a key as RFC 8037 writes it.
type jwk struct {
	KTY string `json:"kty"`
	CRV string `json:"crv"`
	X   string `json:"x"`
	KID string `json:"kid"`
	Alg string `json:"alg"`
	Use string `json:"use"`
}

// JWKS is the JSON document of every key that signs, will sign or verifies.
func (k *Keys) JWKS() []byte {
	set := struct {
		Keys []jwk `json:"keys"`
	}{[]jwk{}}
	now := k.now()
	for _, c := range k.ring.Load().keys {
		if c.verifiesAt(now) == nil {
			set.Keys = append(set.Keys, jwk{"OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(c.public), c.kid, alg, "sig"})
		}
	}
	b, err := json.Marshal(set)
	if err != nil { // strings always marshal
		return []byte(`{"keys":[]}`)
	}
	return b
}

// ServeHTTP answers GET with the JWKS document, readable from any origin.
func (k *Keys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if r.Method == http.MethodOptions {
		w.Header().Set("Access-Control-Allow-Methods", "GET, OPTIONS")
		w.Header().Set("Access-Control-Allow-Headers", "Content-Type, Mcp-Protocol-Version")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "Only GET is answered here.", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "public, max-age=60") // no longer than rotateLead
	_, _ = w.Write(k.JWKS())                              // a reader that went away is no concern of ours
}
