package tenants

import "time"

// EndedSession is an agent's session that was ended before its id expired. Seq
// grows in commit order, as that of a Revocation does.
type EndedSession struct {
	Seq       int64
	TenantID  ID
	AgentID   ID
	SessionID ID        // the number inside the session's id, version 7; not the id itself
	ExpiresAt time.Time // of the session's id; after this the entry may be dropped
}
