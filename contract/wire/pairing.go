package wire

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"time"
)

// Names of pairing: how a connector's key becomes known to a broker. The shape
// is that of RFC 8628, with a signature by the connector's key in every request.
const (
	PairPath       = "/tunnel/pair"       // POST PairRequest: begins a pairing
	PairTokenPath  = "/tunnel/pair/token" // POST ProofRequest with a device code: asks what became of it
	UnpairPath     = "/tunnel/unpair"     // POST ProofRequest: the connector revokes itself
	ProofType      = "siyuan-pair+jwt"    // typ header of a proof; no proof passes for an AUTH token, nor the reverse
	PairVersion    = 1                    // of this exchange, in Discovery
	PairBodyMax    = 8 << 10              // bytes of a request or an answer
	PairSlowDown   = 5 * time.Second      // by how much slow_down raises the interval (RFC 8628, 3.5)
	maxProofFields = 128                  // bytes of a jti or device code
)

// The acts a proof can be for; one is no good for another.
const (
	ActPair   = "pair"
	ActToken  = "token"
	ActUnpair = "unpair"
)

// JWK is an Ed25519 public key (RFC 8037).
type JWK struct {
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	X   string `json:"x"` // base64url without padding
}

// NewJWK is the JWK of a key.
func NewJWK(key ed25519.PublicKey) JWK {
	return JWK{Kty: "OKP", Crv: "Ed25519", X: base64.RawURLEncoding.EncodeToString(key)}
}

// Key is the public key, or an error when the JWK is for no Ed25519 key.
func (k JWK) Key() (ed25519.PublicKey, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(k.X)
	if err != nil || k.Kty != "OKP" || k.Crv != "Ed25519" || len(b) != ed25519.PublicKeySize {
		return nil, errors.New("not an Ed25519 key as a JWK")
	}
	return b, nil
}

// Proof are the claims of the JWT a connector signs for one request.
type Proof struct {
	Subject    string `json:"sub"` // RFC 7638 thumbprint of the key, also the header's kid
	Audience   string `json:"aud"` // Audience of the URL the owner typed
	IssuedAt   int64  `json:"iat"` // seconds
	ID         string `json:"jti"`
	Act        string `json:"act"`
	DeviceCode string `json:"device_code,omitempty"` // for ActToken
}

// Valid reports whether the fields are of usable size.
func (p Proof) Valid() bool {
	return p.ID != "" && len(p.ID) <= maxProofFields && len(p.DeviceCode) <= maxProofFields
}

// PairRequest begins a pairing. Name, OS and Version are the machine's own word,
// shown to the person who approves as such.
type PairRequest struct {
	PublicKey JWK    `json:"public_key"`
	Name      string `json:"name"`
	OS        string `json:"os"`
	Version   string `json:"version"`
	Proof     string `json:"proof"` // JWT, ActPair: nobody pairs a key that is not theirs
}

// ProofRequest is the body of the requests that need nothing but a proof.
type ProofRequest struct {
	Proof string `json:"proof"`
}

// PairAnswer are the fields of RFC 8628, 3.2. Both addresses lead to a page
// that asks for the code: one that came with the link would let a person approve
// a machine they never looked at.
type PairAnswer struct {
	DeviceCode              string `json:"device_code"`
	UserCode                string `json:"user_code"`
	VerificationURI         string `json:"verification_uri"`
	VerificationURIComplete string `json:"verification_uri_complete"`
	ExpiresIn               int    `json:"expires_in"` // seconds
	Interval                int    `json:"interval"`   // seconds
}

// Paired is what an approved connector learns about its place.
type Paired struct {
	ConnectorID  string   `json:"connector_id"`
	TenantID     string   `json:"tenant_id"`
	TenantName   string   `json:"tenant_name"`
	InstanceID   string   `json:"instance_id"`
	InstanceName string   `json:"instance_name"`
	Tunnel       Endpoint `json:"tunnel"`
}

// PairCode says why a pairing request was not fulfilled.
type PairCode string

// The codes of a PairError. The first four are RFC 8628's.
const (
	PairPending       PairCode = "authorization_pending" // ask again after the interval
	PairSlow          PairCode = "slow_down"             // the same, and the interval grows by PairSlowDown
	PairExpired       PairCode = "expired_token"         // begin anew
	PairDenied        PairCode = "access_denied"         // a person said no, or took it back
	PairInvalid       PairCode = "invalid_request"
	PairBadProof      PairCode = "invalid_proof"
	PairClock         PairCode = "clock_skew"     // BrokerTime says what the broker's clock shows
	PairAudience      PairCode = "wrong_audience" // the proof is for another address
	PairAlready       PairCode = "already_paired" // Paired says with what
	PairUnknown       PairCode = "unknown_connector"
	PairUnavailable   PairCode = "temporarily_unavailable" // Retry-After says when
	PairInternalError PairCode = "server_error"
)

// PairError is the body of every answer that is not a success.
type PairError struct {
	Code        PairCode `json:"error"`
	Description string   `json:"error_description,omitempty"` // for people
	BrokerTime  int64    `json:"broker_time,omitempty"`       // seconds, with PairClock
	Paired      *Paired  `json:"paired,omitempty"`            // with PairAlready
}
