package tenants

import (
	"encoding/json"
	"time"
)

// Outcome is how a call ended.
type Outcome string

// The outcomes of a call.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeError   Outcome = "error"
	OutcomeUnknown Outcome = "unknown" // a write whose fate is not known
)

// Call is the record of one tool call: who, what, how long, how big. It has no
// field that could hold note contents, and must not get one.
type Call struct {
	TenantID    ID
	ID          ID
	StartedAt   time.Time
	InstanceID  ID
	MemberID    ID
	AgentID     ID
	ConnectorID ID // zero when no home was reached
	Tool        string
	Action      string
	NotebookID  string // empty when the action has none or it is not known
	RequestID   string // idempotency key of a write
	Outcome     Outcome
	ErrorType   string
	ErrorCode   string
	Legs        Legs
	BytesIn     int64 // arguments
	BytesOut    int64 // result
}

// Legs says where a call's time went. A leg that was not walked is zero.
type Legs struct {
	Total     time.Duration // from the request's last byte to the answer's first
	Admission time.Duration // token, snapshot, decision
	Consent   time.Duration // waiting for a person
	Queue     time.Duration // waiting for a call stream
	Tunnel    time.Duration // on the wire, both ways
	Home      time.Duration // in the connector, without the kernel
	Kernel    time.Duration // in SiYuan
}

// CallFilter selects a tenant's calls, newest first.
type CallFilter struct {
	InstanceID ID
	MemberID   ID
	AgentID    ID
	Tool       string
	Outcome    Outcome
	Before     time.Time // zero: now
	Since      time.Time // zero: as far as kept
	Limit      int       // 1..1000; 0 means 100
}

// AuditEntry is one thing a person or the system did to a tenant. Entries are
// only ever added.
type AuditEntry struct {
	ID        ID
	At        time.Time
	ActorKind string // "member", "agent", "connector", "operator" or "system"
	ActorID   ID     // zero for operator and system
	Verb      string // e.g. "agent.revoke"
	Object    string // kind and id of what it was done to, e.g. "agent:018f…"
	Detail    json.RawMessage
}
