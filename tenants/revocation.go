package tenants

import "time"

// RevocationKind says what was taken back.
type RevocationKind string

// The kinds of revocation. Subject is the id of the object; for RevokedToken it
// is the jti of one access token, and for RevokedTenant the tenant's id.
const (
	RevokedToken     RevocationKind = "token"
	RevokedAgent     RevocationKind = "agent"
	RevokedMember    RevocationKind = "member"
	RevokedConnector RevocationKind = "connector"
	RevokedInstance  RevocationKind = "instance"
	RevokedShare     RevocationKind = "share"
	RevokedTenant    RevocationKind = "tenant"
)

// Revocation is one entry of the installation-wide feed that every node polls.
// Seq grows in commit order: a reader that has seen N misses nothing by asking
// for what came after N.
type Revocation struct {
	Seq       int64
	TenantID  ID
	Kind      RevocationKind
	Subject   string
	At        time.Time
	ExpiresAt time.Time // after this the entry is of no use and may be dropped
}

// Event is a push about a change, sent when its transaction commits. It makes
// reactions fast; polling Revocations makes them certain. Exactly one of the two
// uses is set.
type Event struct {
	Policy     ID    // tenant whose policy version changed
	Version    int64 // its new policy version
	Revocation int64 // newest sequence number of the revocation feed
	Lost       bool  // the connection was lost for a while: forget everything cached
}
