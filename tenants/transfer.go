package tenants

import (
	"context"
	"time"
)

// Transfer is a one-time URL by which a file comes or goes, for one call of one
// agent.
type Transfer struct {
	ID         ID
	SecretHash SecretHash // of the URL's random part
	InstanceID ID
	MemberID   ID // whom the agent works for
	AgentID    ID
	RequestID  ID // of the call that got the URL
	Tool       string
	Action     string
	Upward     bool   // the file goes home
	Arguments  []byte // the call's, settled, with what the URL's user is told; sealed where it is stored
	MaxBytes   int64
	CreatedAt  time.Time // of the first URL of the call
	ExpiresAt  time.Time
	UsedAt     time.Time // zero: not yet
}

// TransferBounds limit how many URLs may be unused at once.
type TransferBounds struct {
	PerAgent int
	InAll    int // of the tenant
}

// TransferTx is the part of Tx about one-time URLs.
type TransferTx interface {
	// PutTransfer stores a URL. It takes the place of an earlier one of the same
	// agent's request, which is good no more; CreatedAt stays that of the first.
	// ErrTooMany beyond the bounds, ErrNotFound when the agent or the instance is
	// not there.
	PutTransfer(ctx context.Context, t Transfer, bounds TransferBounds) error
	// Transfer finds the URL with a hash; ErrNotFound. ErrSealed when its arguments
	// cannot be opened.
	Transfer(ctx context.Context, secretHash SecretHash) (Transfer, error)
	// TransferOf finds that of an agent's request; ErrNotFound, ErrSealed.
	TransferOf(ctx context.Context, agent, request ID) (Transfer, error)
	// UseTransfer uses the URL with a hash up, if it is unused and has not expired at
	// that time; else ErrNotFound. Of several who try at once one succeeds, on all
	// nodes.
	UseTransfer(ctx context.Context, secretHash SecretHash, at time.Time) error
	// FreeTransfer takes a use back that came to nothing; ErrNotFound when the URL
	// was replaced meanwhile.
	FreeTransfer(ctx context.Context, secretHash SecretHash) error
}
