package tenants

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ID identifies a tenant, user, team, instance, connector, agent, share, call or
// audit entry. Apart from tenants and users an id is unique within its tenant
// only: keys and caches start with the tenant's id.
type ID = uuid.UUID

// NewID makes a time-ordered id (UUIDv7).
func NewID() ID { return uuid.Must(uuid.NewV7()) }

// Status says whether a tenant is served.
type Status string

// The states of a tenant. Closed is final.
const (
	Active    Status = "active"
	Suspended Status = "suspended"
	Closed    Status = "closed"
)

// Tenant is one customer: the owner of instances, members and everything else.
type Tenant struct {
	ID            ID
	Name          string
	Status        Status
	PolicyVersion int64 // grows with every change that a snapshot shows
	RulesVersion  int64 // of them, the last that people decided
	Limits        Limits
	Settings      Settings
	CreatedAt     time.Time
}

// Limits bound what a tenant may use. Zero means the installation's default.
type Limits struct {
	CallsPerMinute  int   `json:"calls_per_minute,omitempty"` // per agent
	ConcurrentCalls int   `json:"concurrent_calls,omitempty"` // per tenant
	WriteBudget     int   `json:"write_budget,omitempty"`     // writes per agent in WriteWindow before a person is asked; NoWriteBudget
	WriteWindow     int   `json:"write_window_s,omitempty"`   // seconds
	ResultBytes     int64 `json:"result_bytes,omitempty"`     // largest inline result
	UploadBytes     int64 `json:"upload_bytes,omitempty"`     // largest uploaded file
	ResultChars     int   `json:"result_chars,omitempty"`     // characters of a read's answer
	MaxInstances    int   `json:"max_instances,omitempty"`    // instances the tenant may create
	MaxAgents       int   `json:"max_agents,omitempty"`       // live agents
	MaxConnectors   int   `json:"max_connectors,omitempty"`   // live connectors
	CallsKeptDays   int   `json:"calls_kept_days,omitempty"`  // how far back the console shows calls
	ConsentMinutes  int   `json:"consent_minutes,omitempty"`  // how long an approval waits
	AgentMaxDays    int   `json:"agent_max_days,omitempty"`   // longest life of a token
}

// What an agent may write before a person is asked: WriteBudget writes in
// WriteWindow where its tenant says nothing else, MostWriteBudget at most.
// NoWriteBudget is a Limits.WriteBudget with which nobody is asked because of many
// writes.
const (
	WriteBudget     = 200
	WriteWindow     = 10 * time.Minute
	MostWriteBudget = 100_000
	NoWriteBudget   = -1
)

// Window is the time in which writes count against the WriteBudget.
func (l Limits) Window() time.Duration {
	if l.WriteWindow > 0 {
		return time.Duration(l.WriteWindow) * time.Second
	}
	return WriteWindow
}

// Settings are a tenant's own choices that are not rights.
type Settings struct {
	StrictWrites    StrictWrites `json:"strict_writes,omitempty"`    // empty means StrictOffered
	SkillsExtension bool         `json:"skills_extension,omitempty"` // offer the Skills extension of MCP
}

// StrictWrites is the tenant's choice about validate-then-write.
type StrictWrites string

// The modes of strict writing.
const (
	StrictOff      StrictWrites = "off"
	StrictOffered  StrictWrites = "offered"
	StrictRequired StrictWrites = "required"
)

// TenantUpdate changes the fields that are not nil.
type TenantUpdate struct {
	Name     *string
	Status   *Status
	Limits   *Limits
	Settings *Settings
}

// User is a person. A person may belong to several tenants; what they may do
// there is the membership's.
type User struct {
	ID           ID
	Email        string // normalised, see NormalizeEmail
	Name         string
	Locale       string // BCP 47, empty for the browser's choice
	PasswordHash string // argon2id in PHC form; empty: no password
	OIDCIssuer   string // empty: not linked to the identity provider
	OIDCSubject  string
	CreatedAt    time.Time
}

// UserUpdate changes the fields that are not nil.
type UserUpdate struct {
	Email        *string
	Name         *string
	Locale       *string
	PasswordHash *string
	OIDCIssuer   *string
	OIDCSubject  *string
}

// NormalizeEmail is the form in which addresses are stored and compared: trimmed
// and lower case. It returns ErrInvalid for what cannot be an address.
func NormalizeEmail(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	local, domain, ok := strings.Cut(s, "@")
	if !ok || local == "" || domain == "" || len(s) > 254 || strings.ContainsAny(s, " \t\r\n<>,;") || strings.Contains(domain, "@") {
		return "", fmt.Errorf("e-mail address %q: %w", s, ErrInvalid)
	}
	return s, nil
}

// Role is what a member is in a tenant.
type Role string

// The roles. Owners and admins see every notebook; a member only what is shared
// with them. Only an owner makes owners.
const (
	Owner  Role = "owner"
	Admin  Role = "admin"
	Member Role = "member"
)

// Valid reports whether r is one of the three roles.
func (r Role) Valid() bool { return r == Owner || r == Admin || r == Member }

// Manages reports whether the role sets levels, toggles and shares, and sees
// every notebook without a share.
func (r Role) Manages() bool { return r == Owner || r == Admin }

// MayGrant reports whether somebody of this role may give others the role to, and
// take it from them.
func (r Role) MayGrant(to Role) bool {
	return r == Owner && to.Valid() || r == Admin && (to == Admin || to == Member)
}

// Membership is a person's place in a tenant. The member's id is the user's id.
type Membership struct {
	TenantID   ID
	TenantName string
	User       User // without secrets: PasswordHash and OIDC fields are empty
	Role       Role
	Since      time.Time
}

// Viewer is the person who is signed in to the console, and the tenant they look
// at.
type Viewer struct {
	ID         ID
	Membership Membership
	Belongs    bool // to a tenant at all
}

// Team is a named group of members that notebooks can be shared with.
type Team struct {
	ID      ID
	Name    string
	Members []ID // user ids, sorted
}

// MaxTeams and MaxInvitations bound how many teams and open invitations a tenant
// has.
const (
	MaxTeams       = 200
	MaxInvitations = 200
)

// Invitation lets the person of one address into a tenant, once. Hash is that of
// its secret, which is kept nowhere.
type Invitation struct {
	ID        ID
	Hash      SecretHash
	Email     string // normalised
	Role      Role
	InvitedBy ID // zero: an operator
	CreatedAt time.Time
	ExpiresAt time.Time
}
