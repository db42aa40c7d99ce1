package tenants

import (
	"time"

	"siyuan-broker/contract"
)

// Toggle switches one action of an instance on or off, against the catalogue's
// default.
type Toggle struct {
	Tool    string `json:"tool"`
	Action  string `json:"action"`
	Enabled bool   `json:"enabled"`
}

// ConsentMode says how a person agrees to a dangerous action.
type ConsentMode string

// The consent modes of ARCHITECTURE section 6.
const (
	ConsentAsk     ConsentMode = "ask"
	ConsentConsole ConsentMode = "console"
	ConsentPreview ConsentMode = "preview"
	ConsentAllow   ConsentMode = "allow"
	ConsentDeny    ConsentMode = "deny"
)

// Consent is an instance's choice for one action; without it ConsentAsk holds.
type Consent struct {
	Tool   string      `json:"tool"`
	Action string      `json:"action"`
	Mode   ConsentMode `json:"mode"`
}

// Share lets one member, or every member of one team, into a notebook. Exactly
// one of MemberID and TeamID is set.
type Share struct {
	ID         ID
	InstanceID ID
	NotebookID string
	MemberID   ID
	TeamID     ID
	Level      contract.Level // r, rw or rwd
	CreatedBy  ID
	CreatedAt  time.Time
}

// ShareFilter selects shares; zero fields do not restrict.
type ShareFilter struct {
	InstanceID ID
	NotebookID string
	MemberID   ID
	TeamID     ID
}
