package tenants

import (
	"time"

	"siyuan-broker/contract"
)

// AgentOrigin says how an agent was let in.
type AgentOrigin string

// The ways an agent comes to its rights.
const (
	FromToken AgentOrigin = "token" // a personal token made in the console or on the command line
	FromOAuth AgentOrigin = "oauth" // a consent given to an OAuth client
)

// Agent is a grant a principal acts through: one member's permission for one
// program, on one instance, never above the ceiling. It outlives the membership
// as a record, revoked.
type Agent struct {
	ID         ID
	MemberID   ID // the user it acts for
	InstanceID ID
	Name       string
	Origin     AgentOrigin
	ClientID   string // OAuth client, empty for tokens
	Ceiling    contract.Level
	Tools      []string // tools it is limited to; nil for all
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: no end
	LastUsedAt time.Time // zero: never
	RevokedAt  time.Time // zero while in force
}

// AgentUpdate changes the fields that are not nil.
type AgentUpdate struct {
	Name      *string
	Ceiling   *contract.Level
	Tools     *[]string // a pointer to nil lifts the limitation
	ExpiresAt *time.Time
}

// AgentFilter selects agents; zero fields do not restrict.
type AgentFilter struct {
	MemberID       ID
	InstanceID     ID
	ClientID       string
	IncludeRevoked bool
}
