package tenants

import "errors"

// Errors of the store. They are wrapped with what was being done to what;
// compare with errors.Is.
var (
	// ErrNotFound means that nothing of that id exists for this tenant. Another
	// tenant's object is not found either.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that something with that name, address or key exists.
	ErrConflict = errors.New("already exists")
	// ErrInvalid means that a value is outside what the schema allows.
	ErrInvalid = errors.New("invalid value")
	// ErrLastOwner means that the change would leave a tenant without an owner.
	ErrLastOwner = errors.New("a tenant needs at least one owner: make somebody else owner first")
	// ErrRevoked means that the agent, connector or its tenant was taken back.
	ErrRevoked = errors.New("revoked")
	// ErrTooMany means that a bound on how many there may be is reached.
	ErrTooMany = errors.New("too many")
	// ErrCoins means that something costs more coins than there are.
	ErrCoins = errors.New("too few coins")
	// ErrSealed means that a stored secret cannot be opened with the master key
	// in use.
	ErrSealed = errors.New("stored secret cannot be opened: the master key is not the one it was sealed with")
)
