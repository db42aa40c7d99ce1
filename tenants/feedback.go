package tenants

import "time"

// Bounds of what agents say about this service.
const (
	MaxFeedback     = 500 // kept of a tenant
	FeedbackPerHour = 20  // taken of a tenant
)

// Feedback is what an agent said about this service. Every text in it is the
// agent's.
type Feedback struct {
	ID          ID        `json:"id"`
	InstanceID  ID        `json:"instance_id"`
	MemberID    ID        `json:"member_id"`
	AgentID     ID        `json:"agent_id"`
	RequestID   ID        `json:"request_id"` // of the call that sent it
	Description string    `json:"description"`
	Impact      string    `json:"impact,omitempty"`
	Suggestion  string    `json:"suggestion,omitempty"`
	Agent       string    `json:"agent,omitempty"`  // as it calls itself
	Source      string    `json:"source,omitempty"` // the channel, as it calls it
	WrittenAt   time.Time `json:"written_at"`
}
