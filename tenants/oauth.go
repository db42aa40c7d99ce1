package tenants

import (
	"crypto/sha256"
	"time"
)

// SecretHash is how codes and tokens are kept: the SHA-256 of one. They are
// random and long, so a plain hash is enough.
type SecretHash [sha256.Size]byte

// HashSecret hashes a code or token.
func HashSecret(s string) SecretHash { return sha256.Sum256([]byte(s)) }

// OAuthClient is a program that registered itself, or that the operator
// registered. It belongs to the installation and has no rights of its own.
type OAuthClient struct {
	ID           string
	Name         string // what it calls itself; nobody has checked it
	RedirectURIs []string
	CreatedAt    time.Time
	ExpiresAt    time.Time // zero: never
}

// OAuthCode is what a person agreed to give a client, until the client fetches
// it. Agent is the agent that is made then: member, instance, name, ceiling,
// tools and end.
type OAuthCode struct {
	Hash        SecretHash
	ClientID    string
	RedirectURI string // as the client asked, empty for a device
	Challenge   string // PKCE, S256; empty for a device
	Resource    string // canonical
	Scope       string // space separated
	Agent       Agent
	ExpiresAt   time.Time
	UsedAt      time.Time // zero: not yet; Agent.ID is set then
}

// RefreshToken is one of the refresh tokens of an agent.
type RefreshToken struct {
	Hash      SecretHash
	AgentID   ID
	Resource  string
	Scope     string
	ExpiresAt time.Time
	SpentAt   time.Time // when it was first exchanged; zero: not yet
}

// DeviceRequest is a device that shows a code and waits for a person.
type DeviceRequest struct {
	Hash      SecretHash // of the device code
	UserCode  string     // eight letters, without the dash
	ClientID  string
	Scope     string
	Resource  string
	Denied    bool
	TenantID  ID // where the OAuthCode of the same hash is, once a person agreed
	ExpiresAt time.Time
	PolledAt  time.Time // zero: never
}

// Answered reports whether a person has decided.
func (d DeviceRequest) Answered() bool { return d.Denied || d.TenantID != (ID{}) }
