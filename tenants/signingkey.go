package tenants

import "time"

// SigningKey is a key of the installation that signs tokens, session ids and
// request states. Private is clear here and sealed in the store.
type SigningKey struct {
	KID       string
	Alg       string    // JWA name, e.g. "EdDSA", "ES256", "HS256"
	Purpose   string    // e.g. "access", "session", "state"
	Private   []byte    // PKCS #8 for asymmetric keys, raw bytes for symmetric ones
	Public    []byte    // PKIX; nil for symmetric keys
	NotBefore time.Time // signs from here on
	RetiresAt time.Time // signs until here; zero: until replaced
	ExpiresAt time.Time // verifies until here; zero: while it exists
	CreatedAt time.Time
}
