package tenants

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"siyuan-broker/contract"
)

// Instance is one SiYuan workspace of a tenant.
type Instance struct {
	ID           ID
	Name         string
	DefaultLevel contract.Level // tenant level of notebooks without an entry in the matrix
	Enabled      bool
	Epoch        int64 // of the newest tunnel session; 0 before the first
	CreatedAt    time.Time
}

// InstanceUpdate changes the fields that are not nil.
type InstanceUpdate struct {
	Name         *string
	DefaultLevel *contract.Level
	Enabled      *bool
}

// Notebook is what the broker knows of a notebook: nothing of its contents.
type Notebook struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Icon     string `json:"icon"`
	Closed   bool   `json:"closed"`
	Position int    `json:"position"` // order in SiYuan's sidebar
}

// Connector is the home half of one instance, known by the public half of a key
// made at home.
type Connector struct {
	ID          ID
	TenantID    ID
	InstanceID  ID
	Name        string // host name given at pairing
	OS          string
	Version     string
	PublicKey   ed25519.PublicKey
	Fingerprint string                 // see Fingerprint; unique in the installation
	Epoch       int64                  // of its newest session; the greatest epoch of an instance is the active connector
	Effect      *contract.PolicyEffect // nil until the connector reported it
	PairedBy    ID                     // user id
	CreatedAt   time.Time
	LastSeenAt  time.Time // zero before the first session
	LastAddress string
	RevokedAt   time.Time // zero while in force
}

// Epoch is the right of a connector to be the active one of its instance.
type Epoch struct {
	Number   int64 // greater than any before
	TookOver bool  // the one before was another connector's
	// OthersUntil is until when another connector of the instance may have been sent
	// calls, as far as is known; zero if there never was one.
	OthersUntil time.Time
}

// Fingerprint is the RFC 7638 thumbprint of the key as a JWK: 43 characters of
// base64url. Pairing shows it, the connector names it as kid.
func Fingerprint(key ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(key)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
