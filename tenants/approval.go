package tenants

import (
	"context"
	"time"
)

// ApprovalState says what became of an Approval.
type ApprovalState string

// The states of an Approval. An open one is approved or denied by a person, an
// approved one used by its call; the others are final.
const (
	ApprovalOpen     ApprovalState = "open"
	ApprovalApproved ApprovalState = "approved"
	ApprovalDenied   ApprovalState = "denied"
	ApprovalUsed     ApprovalState = "used"
)

// Approval is a call that waits for a person, or that one has answered. It is good
// for exactly this call: of this agent, with these arguments, under these rules.
type Approval struct {
	ID           ID
	InstanceID   ID
	MemberID     ID // whom the agent works for
	AgentID      ID
	RequestID    ID
	Tool         string
	Action       string
	Arguments    [32]byte // digest of their canonical form
	RulesVersion int64
	Preview      []byte // what the person is shown; sealed where it is stored, nil once answered
	State        ApprovalState
	DecidedBy    ID // zero: nobody yet, or a person who is gone
	DecidedAt    time.Time
	CreatedAt    time.Time
	ExpiresAt    time.Time
}

// ApprovalBounds limit how many approvals may be open at once.
type ApprovalBounds struct {
	PerAgent int
	InAll    int // of the tenant
}

// ApprovalTx is the part of Tx about calls that wait for people.
type ApprovalTx interface {
	// OpenApproval stores an open approval. ErrTooMany beyond the bounds,
	// ErrNotFound when the agent or the instance is not there.
	OpenApproval(ctx context.Context, a Approval, bounds ApprovalBounds) error
	// KeepApproval stores an approval that a person gave elsewhere: its state is
	// ApprovalApproved.
	KeepApproval(ctx context.Context, a Approval) error
	// Approval finds one with its preview; ErrNotFound. ErrSealed when the preview
	// cannot be opened.
	Approval(ctx context.Context, id ID) (Approval, error)
	// ApprovalOf finds the newest of an agent's request and holds it for this
	// transaction; ErrNotFound. It comes without its preview.
	ApprovalOf(ctx context.Context, agent, request ID) (Approval, error)
	// OpenApprovals lists what waits at a time, the oldest first, with previews; of
	// one member's agents, or with the zero id of all.
	OpenApprovals(ctx context.Context, member ID, at time.Time, limit int) ([]Approval, error)
	// DecideApproval answers an open approval that has not expired at that time,
	// and forgets its preview; ErrNotFound.
	DecideApproval(ctx context.Context, id, by ID, yes bool, at time.Time) error
	// UseApproval uses an approved one that has not expired at that time up;
	// ErrNotFound. Of several who try at once one succeeds, on all nodes.
	UseApproval(ctx context.Context, id ID, at time.Time) error
	// SpendConfirmation notes that a confirmation was used and reports whether this
	// was the first time, on all nodes.
	SpendConfirmation(ctx context.Context, id ID, expires time.Time) (first bool, err error)
}
