package tenants

import (
	"time"

	"siyuan-broker/contract"
)

// Snapshot is everything admission needs to know about one agent, read at one
// moment in one statement. It holds facts, not decisions: revoked, expired and
// suspended states are shown, not filtered. It is immutable once loaded; share
// it freely, change nothing in it.
type Snapshot struct {
	TenantID      ID
	TenantStatus  Status
	PolicyVersion int64 // grows with every change that is shown here
	RulesVersion  int64 // the policy version at which what people decide last changed: not by a notebook at home, nor by a new agent
	Limits        Limits
	Settings      Settings

	Agent    Agent
	Member   ID
	Role     Role // empty: no longer a member
	Instance Instance

	Levels    map[string]contract.Level // tenant level by notebook; others have Instance.DefaultLevel
	Shares    map[string]contract.Level // the member's highest share by notebook, direct or through teams
	Toggles   []Toggle
	Consents  []Consent
	Switches  []contract.Switch // switched on for the instance
	Notebooks []Notebook        // as last reported, in sidebar order

	Connector *SnapshotConnector // the active or last active one; nil when none is paired
	LoadedAt  time.Time          // by the database's clock
}

// SnapshotConnector is the part of the instance's newest connector that decides
// and explains.
type SnapshotConnector struct {
	ID         ID
	Name       string
	Epoch      int64
	LastSeenAt time.Time
	Effect     *contract.PolicyEffect // nil until reported
}
