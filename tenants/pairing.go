package tenants

import (
	"context"
	"crypto/ed25519"
	"time"
)

// PairingState says what became of a pairing.
type PairingState string

// The states of a Pairing. Only an open one can change.
const (
	PairingOpen     PairingState = "open"
	PairingApproved PairingState = "approved"
	PairingDenied   PairingState = "denied"
)

// Pairing is a machine that asks to be let in. It belongs to no tenant: that is
// what a person decides.
type Pairing struct {
	ID          ID
	Key         ed25519.PublicKey
	Fingerprint string
	Name        string // the machine's own word, as are OS and Version
	OS          string
	Version     string
	Address     string // where the request came from
	Origin      string // Address, or the network it is counted by
	State       PairingState
	Interval    time.Duration // between polls; grows when the machine polls too soon
	ClaimedBy   ID            // the person who typed the code last; zero: nobody yet
	CreatedAt   time.Time
	ExpiresAt   time.Time
}

// PairingBounds limit how many pairings may be open at once.
type PairingBounds struct {
	PerOrigin int
	InAll     int
}

// PairingStore keeps pairings. Their codes are stored hashed: the device code
// by SHA-256, the short user code under a key that follows from the master key.
type PairingStore interface {
	// OpenPairing stores a pairing; an open one of the same key ends, and those
	// that expired an hour ago are forgotten. ErrTooMany beyond the bounds;
	// ErrConflict when the user code is in use.
	OpenPairing(ctx context.Context, p Pairing, deviceCode, userCode string, bounds PairingBounds) error
	// PollPairing returns the pairing of a device code, expired or not, and
	// notes the poll. It is too soon when less than the interval has passed since
	// the last one; the interval has then grown by slower. ErrNotFound.
	PollPairing(ctx context.Context, deviceCode string, at time.Time, slower time.Duration) (p Pairing, tooSoon bool, err error)
	// ClaimPairing notes that a person typed the code of an open pairing.
	// ErrNotFound when there is none, or it has expired.
	ClaimPairing(ctx context.Context, userCode string, person ID, at time.Time) (Pairing, error)
	// ClaimedPairing returns a pairing to the person who claimed it last;
	// ErrNotFound to everybody else.
	ClaimedPairing(ctx context.Context, id, person ID) (Pairing, error)
	// DenyPairing ends an open pairing of that person; ErrNotFound.
	DenyPairing(ctx context.Context, id, person ID, at time.Time) error
}

// PairingTx is the part of Tx that lets a machine in.
type PairingTx interface {
	// ApprovePairing ends an open pairing that this person claimed. The caller
	// registers the connector in the same transaction. ErrNotFound.
	ApprovePairing(ctx context.Context, id, person ID, at time.Time) (Pairing, error)
}
