package tenants

import "time"

// Bounds of what agents remember and are told, in characters and versions.
const (
	MaxMemory      = 32000
	MaxRules       = 16000
	MemoryVersions = 20
)

// Memory is what the agents of one member remember of one workspace, as one of
// its versions has it. Versions count from 1; the zero Memory is that of agents
// that never wrote any.
type Memory struct {
	InstanceID ID
	MemberID   ID
	Version    int64
	Text       string
	AgentID    ID // who wrote it
	RequestID  ID // of the call that wrote it
	WrittenAt  time.Time
}

// Rules are what people want of agents in a workspace.
type Rules struct {
	All string // from the tenant's owners, for everybody's agents
	Own string // from the member the agents work for
}
