package tenants

import (
	"context"
	"time"
)

// ConsoleSession is one browser in which a person is signed in. Hash is the
// SHA-256 of what the browser's cookie holds.
type ConsoleSession struct {
	Hash      []byte
	UserID    ID
	Shown     ID     // tenant the person looks at; zero: their first
	Address   string // from which it began
	Browser   string // as the browser calls itself
	CreatedAt time.Time
	SeenAt    time.Time
	ExpiresAt time.Time // whatever happens
}

// LinkKind is what a one-time link is good for.
type LinkKind string

// The kinds of links.
const (
	LinkOperator LinkKind = "operator" // makes the first person of an empty installation
	LinkInvite   LinkKind = "invite"   // signs up with the address it is bound to
	LinkReset    LinkKind = "reset"    // sets a new password
	LinkSignIn   LinkKind = "signin"   // signs in
)

// Link is a link that works once. Hash is the SHA-256 of its secret part.
type Link struct {
	Hash      []byte
	Kind      LinkKind
	Email     string // of an invitation
	UserID    ID     // of a reset or a sign-in
	ExpiresAt time.Time
}

// SignUp is a new person with a tenant of their own.
type SignUp struct {
	User   User
	Tenant string // its name
	// Link is the hash of the link that allows it; nil where anybody may sign up.
	Link []byte
	Now  time.Time
}

// SignInStore is the part of Store about how people get in. It belongs to the
// installation: a person exists before their tenants do.
type SignInStore interface {
	// BeginConsoleSession stores a new session. A person keeps the newest 50.
	BeginConsoleSession(ctx context.Context, s ConsoleSession) error
	// ConsoleSession finds a session that has not expired and was seen after
	// idleSince, with its person. ErrNotFound.
	ConsoleSession(ctx context.Context, hash []byte, now, idleSince time.Time) (ConsoleSession, User, error)
	// TouchConsoleSession notes that a session was used.
	TouchConsoleSession(ctx context.Context, hash []byte, at time.Time) error
	// ShowTenant sets what a session looks at. Whether its person belongs there
	// is for the reader to check, each time.
	ShowTenant(ctx context.Context, hash []byte, tenant ID) error
	// EndConsoleSession ends one session, EndConsoleSessions all of a person but
	// one (nil: all). None to end is no error.
	EndConsoleSession(ctx context.Context, hash []byte) error
	EndConsoleSessions(ctx context.Context, user ID, but []byte) error

	// RememberDevice notes that a person signed in in a browser; they keep the
	// newest 20. DeviceKnown reports whether they did.
	RememberDevice(ctx context.Context, user ID, hash []byte, at time.Time) error
	DeviceKnown(ctx context.Context, user ID, hash []byte) (bool, error)

	// PutLink stores a link. A newer one takes the place of what the same person,
	// address or (for the operator) installation had of its kind.
	PutLink(ctx context.Context, l Link) error
	// Link finds a link that has not expired; ErrNotFound.
	Link(ctx context.Context, hash []byte, now time.Time) (Link, error)
	// TakeLink uses a link of a kind up; ErrNotFound when it was used or expired.
	TakeLink(ctx context.Context, hash []byte, kind LinkKind, now time.Time) (Link, error)
	// ResetPassword uses a reset link up, sets the password and ends all sessions
	// of its person, or does nothing. ErrNotFound when the link was used or
	// expired.
	ResetPassword(ctx context.Context, hash []byte, passwordHash string, now time.Time) (User, error)
	// SignUp makes a person and their tenant and uses the link up, or does
	// nothing. ErrNotFound when the link was used, expired or does not fit the
	// address; ErrConflict when the address is taken, or for an operator's link
	// when somebody is there already.
	SignUp(ctx context.Context, s SignUp) (User, error)

	// Users lists the installation's people after an address, in the order of
	// their addresses, at most limit. It is for operators.
	Users(ctx context.Context, after string, limit int) ([]User, error)
}
