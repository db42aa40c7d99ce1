package tenants

import (
	"context"
	"time"

	"siyuan-broker/contract"
)

// Store keeps the domain. Its own methods are those that run before a tenant is
// known, that concern the whole installation, or that a hot path needs in one
// round trip; everything else happens inside In.
//
// All methods may return an error of the connection, which callers treat as the
// store being away. Other errors are named at each method.
type Store interface {
	SignInStore

	// In runs fn in one transaction that sees and changes this tenant only. It
	// commits when fn returns nil. A tenant that does not exist is simply empty.
	In(ctx context.Context, tenant ID, fn func(Tx) error) error

	// CreateTenant makes a tenant with its first owner. ErrNotFound when the
	// user does not exist.
	CreateTenant(ctx context.Context, name string, owner ID) (Tenant, error)
	// Tenants lists the installation's tenants after an id, in the order of their
	// ids, at most limit. It is for operators: nothing that serves an agent or a
	// member may call it.
	Tenants(ctx context.Context, after ID, limit int) ([]Tenant, error)

	// CreateUser adds a person; ID and CreatedAt are set by the store.
	// ErrConflict when the address is taken, ErrInvalid when it is none.
	CreateUser(ctx context.Context, u User) (User, error)
	// User and UserByEmail and UserByOIDC return ErrNotFound.
	User(ctx context.Context, id ID) (User, error)
	UserByEmail(ctx context.Context, email string) (User, error)
	UserByOIDC(ctx context.Context, issuer, subject string) (User, error)
	// UpdateUser returns ErrNotFound or ErrConflict.
	UpdateUser(ctx context.Context, id ID, up UserUpdate) (User, error)
	// MembershipsOf lists the tenants a person belongs to, by name.
	MembershipsOf(ctx context.Context, user ID) ([]Membership, error)

	// LoadSnapshot reads all that admission needs in one round trip.
	// ErrNotFound when the tenant has no such agent.
	LoadSnapshot(ctx context.Context, tenant, agent ID) (*Snapshot, error)

	// ConnectorByFingerprint finds the connector that a key belongs to, before
	// its tenant is known. ErrNotFound; a revoked one is returned as such.
	ConnectorByFingerprint(ctx context.Context, fingerprint string) (Connector, error)
	// NextEpoch makes a connector the active one of its instance. ErrRevoked when
	// it, its instance or its tenant is not in force; ErrNotFound.
	NextEpoch(ctx context.Context, tenant, connector ID) (Epoch, error)
	// MarkSeen notes that a connector is alive. It does not touch the policy
	// version.
	MarkSeen(ctx context.Context, tenant, connector ID, at time.Time, address, version string) error
	// TouchAgent notes when an agent was last used, to the minute.
	TouchAgent(ctx context.Context, tenant, agent ID, at time.Time) error

	// Revocations lists the installation's revocations after a sequence number,
	// oldest first, at most limit; from 0 it gives all that still matter.
	Revocations(ctx context.Context, after int64, limit int) ([]Revocation, error)

	// EndSession notes that an agent's session is over; Seq is set by the store.
	// A session may be ended again. ErrNotFound when there is no such tenant.
	EndSession(ctx context.Context, e EndedSession) error
	// EndedSessions lists the installation's ended sessions after a sequence
	// number, in the order of their ends, at most limit; from 0 it gives all whose
	// ids have not expired.
	EndedSessions(ctx context.Context, after int64, limit int) ([]EndedSession, error)

	// SigningKeys returns every key with its private part opened; ErrSealed.
	SigningKeys(ctx context.Context) ([]SigningKey, error)
	// PutSigningKey stores a new key sealed; ErrConflict when the kid exists.
	PutSigningKey(ctx context.Context, k SigningKey) error
	// RetireSigningKey sets when a key stops signing and verifying; ErrNotFound.
	RetireSigningKey(ctx context.Context, kid string, retires, expires time.Time) error
	// DeleteSigningKey removes a key; ErrNotFound.
	DeleteSigningKey(ctx context.Context, kid string) error

	// Setting and SetSetting read and write one JSON value of the installation;
	// ErrNotFound when it was never set.
	Setting(ctx context.Context, key string, into any) error
	SetSetting(ctx context.Context, key string, value any) error

	OAuthStore

	// CopyCalls writes a batch of call records with the recorder's role. The
	// batch is written whole or not at all.
	CopyCalls(ctx context.Context, calls []Call) error

	PairingStore

	// EarnCoins adds the coins of a batch of calls, at most one entry a tenant, in
	// one statement. Tenants that are gone are passed over.
	EarnCoins(ctx context.Context, earned []Earned) error

	// Listen pushes events to fn until ctx ends, reconnecting for ever; it
	// returns ctx.Err(). fn is never called concurrently.
	Listen(ctx context.Context, fn func(Event)) error
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
}

// Tx is one tenant's view of the store within a transaction. Where a method
// names an object of the tenant that does not exist it returns ErrNotFound;
// where a name is taken, ErrConflict; where a value is not allowed, ErrInvalid.
type Tx interface {
	TenantTx
	InstanceTx
	PairingTx
	AgentTx
	OAuthTx
	RuleTx
	ApprovalTx
	TransferTx
	MemoryTx
	FeedbackTx
	MascotTx
	RecordTx
}

// TenantTx is the part of Tx about the tenant, its people and teams.
type TenantTx interface {
	Tenant(ctx context.Context) (Tenant, error)
	// UpdateTenant revokes the whole tenant when it suspends or closes it.
	// Leaving Closed is ErrInvalid.
	UpdateTenant(ctx context.Context, up TenantUpdate) (Tenant, error)

	Members(ctx context.Context) ([]Membership, error)
	Member(ctx context.Context, user ID) (Membership, error)
	AddMember(ctx context.Context, user ID, role Role) error
	// SetRole returns ErrLastOwner rather than leave the tenant without one. Open
	// invitations to what the member may no longer grant end.
	SetRole(ctx context.Context, user ID, role Role) error
	// RemoveMember ends a membership with its teams, shares, invitations and agents,
	// and revokes them. ErrLastOwner as above.
	RemoveMember(ctx context.Context, user ID) error
	// HoldMembers makes other transactions that change who belongs to the tenant,
	// or as what, wait for this one: a role that was read stays true.
	HoldMembers(ctx context.Context) error

	// Invitations lists the open ones, the newest first.
	Invitations(ctx context.Context, now time.Time) ([]Invitation, error)
	// Invite stores an invitation with a new id, in place of what its address had.
	// ErrConflict when the person is a member already, ErrTooMany beyond
	// MaxInvitations.
	Invite(ctx context.Context, inv Invitation) (Invitation, error)
	// Withdraw ends an invitation.
	Withdraw(ctx context.Context, invitation ID) error
	// Invitation finds an open one of a tenant in force by its secret, without
	// using it.
	Invitation(ctx context.Context, hash SecretHash, now time.Time) (Invitation, error)
	// AcceptInvitation uses an invitation up and makes the person a member, unless
	// they are one. ErrNotFound also when it is for another address than theirs.
	AcceptInvitation(ctx context.Context, hash SecretHash, user ID, now time.Time) (Invitation, error)

	Teams(ctx context.Context) ([]Team, error)
	// CreateTeam returns ErrTooMany beyond MaxTeams.
	CreateTeam(ctx context.Context, name string) (Team, error)
	RenameTeam(ctx context.Context, team ID, name string) error
	DeleteTeam(ctx context.Context, team ID) error
	AddTeamMember(ctx context.Context, team, user ID) error
	RemoveTeamMember(ctx context.Context, team, user ID) error
}

// InstanceTx is the part of Tx about workspaces and the connectors that serve
// them.
type InstanceTx interface {
	Instances(ctx context.Context) ([]Instance, error)
	Instance(ctx context.Context, instance ID) (Instance, error)
	// CreateInstance uses in.ID, or makes one when it is zero.
	CreateInstance(ctx context.Context, in Instance) (Instance, error)
	// UpdateInstance revokes the instance when it disables it.
	UpdateInstance(ctx context.Context, instance ID, up InstanceUpdate) (Instance, error)

	Notebooks(ctx context.Context, instance ID) ([]Notebook, error)
	// ReplaceNotebooks takes the connector's list as the whole truth. Levels and
	// shares of notebooks that went away stay, for when they come back.
	ReplaceNotebooks(ctx context.Context, instance ID, list []Notebook) error

	Connectors(ctx context.Context, instance ID) ([]Connector, error) // uuid.Nil: of all instances
	Connector(ctx context.Context, connector ID) (Connector, error)
	// RegisterConnector stores c with its fingerprint. ErrConflict when the key
	// is known in the installation; ErrInvalid when it is no Ed25519 key.
	RegisterConnector(ctx context.Context, c Connector) (Connector, error)
	SetPolicyEffect(ctx context.Context, connector ID, effect contract.PolicyEffect) error
	RevokeConnector(ctx context.Context, connector ID) error
}

// AgentTx is the part of Tx about agents and revocation.
type AgentTx interface {
	Agents(ctx context.Context, f AgentFilter) ([]Agent, error)
	Agent(ctx context.Context, agent ID) (Agent, error)
	// CreateAgent uses a.ID, or makes one when it is zero. ErrNotFound when the
	// member or the instance does not exist.
	CreateAgent(ctx context.Context, a Agent) (Agent, error)
	UpdateAgent(ctx context.Context, agent ID, up AgentUpdate) (Agent, error)
	// RevokeAgent is final; revoking twice changes nothing.
	RevokeAgent(ctx context.Context, agent ID) error
	// RevokeToken revokes one access token by its jti until it expires.
	RevokeToken(ctx context.Context, jti string, expires time.Time) error
}

// OAuthStore is the part of Store about OAuth clients and waiting devices, which
// belong to no tenant.
type OAuthStore interface {
	// CreateOAuthClient stores a registration; ErrConflict, ErrInvalid.
	CreateOAuthClient(ctx context.Context, c OAuthClient) (OAuthClient, error)
	// OAuthClient finds a registration in force; ErrNotFound.
	OAuthClient(ctx context.Context, id string) (OAuthClient, error)
	// OAuthClients lists the registrations that never expire, by id.
	OAuthClients(ctx context.Context) ([]OAuthClient, error)
	// KeepOAuthClient moves a registration's end to until, never closer. It does
	// nothing where there is none.
	KeepOAuthClient(ctx context.Context, id string, until time.Time) error
	// DeleteOAuthClient removes a registration; ErrNotFound. Agents that came by
	// it stay.
	DeleteOAuthClient(ctx context.Context, id string) error

	// CreateDeviceRequest stores a waiting device; ErrConflict where the user
	// code is in use.
	CreateDeviceRequest(ctx context.Context, d DeviceRequest) error
	// DeviceRequest finds an unexpired device that nobody has answered yet by its
	// user code; ErrNotFound.
	DeviceRequest(ctx context.Context, userCode string) (DeviceRequest, error)
	// AnswerDevice keeps a person's decision: the tenant that the grant is in, or
	// the zero id for no. Only the first counts; ErrNotFound for the others.
	AnswerDevice(ctx context.Context, hash SecretHash, tenant ID) error
	// PollDevice finds a device by its code and notes when it asked; PolledAt of
	// the answer is the time before. ErrNotFound.
	PollDevice(ctx context.Context, hash SecretHash, at time.Time) (DeviceRequest, error)
}

// OAuthTx is the part of Tx about consents and refresh tokens.
type OAuthTx interface {
	// PutOAuthCode stores a consent. ErrNotFound when the member or the instance
	// does not exist.
	PutOAuthCode(ctx context.Context, c OAuthCode) error
	// OAuthCode finds a consent and holds it for this transaction; ErrNotFound.
	OAuthCode(ctx context.Context, hash SecretHash) (OAuthCode, error)
	// UseOAuthCode notes which agent a consent became.
	UseOAuthCode(ctx context.Context, hash SecretHash, agent ID, at time.Time) error
	// PutRefreshToken stores a token of an agent.
	PutRefreshToken(ctx context.Context, r RefreshToken) error
	// RefreshToken finds a token and holds it for this transaction; ErrNotFound.
	RefreshToken(ctx context.Context, hash SecretHash) (RefreshToken, error)
	// SpendRefreshToken notes the first exchange of a token; later ones change
	// nothing.
	SpendRefreshToken(ctx context.Context, hash SecretHash, at time.Time) error
}

// RuleTx is the part of Tx about what may be done where.
type RuleTx interface {
	Toggles(ctx context.Context, instance ID) ([]Toggle, error)
	SetToggle(ctx context.Context, instance ID, t Toggle) error
	ClearToggle(ctx context.Context, instance ID, tool, action string) error // back to the catalogue's default

	Consents(ctx context.Context, instance ID) ([]Consent, error)
	SetConsent(ctx context.Context, instance ID, c Consent) error

	Levels(ctx context.Context, instance ID) (map[string]contract.Level, error)
	SetLevel(ctx context.Context, instance ID, notebook string, level contract.Level) error
	ClearLevel(ctx context.Context, instance ID, notebook string) error // back to the instance's default

	Switches(ctx context.Context, instance ID) ([]contract.Switch, error) // those switched on
	SetSwitch(ctx context.Context, instance ID, s contract.Switch, on bool) error

	Shares(ctx context.Context, f ShareFilter) ([]Share, error)
	// Share gives or changes a share: the same notebook and receiver keep one
	// share with the newest level.
	Share(ctx context.Context, s Share) (Share, error)
	Unshare(ctx context.Context, share ID) error
}

// MemoryTx is the part of Tx about what agents remember, and what people want of
// them. It does not touch the policy version.
type MemoryTx interface {
	// MemoryOf is the newest version; the zero one where there is none.
	MemoryOf(ctx context.Context, instance, member ID) (Memory, error)
	// Memories lists the kept versions, the newest first.
	Memories(ctx context.Context, instance, member ID) ([]Memory, error)
	// MemoryWritten reports whether a kept version was written by that request.
	MemoryWritten(ctx context.Context, instance, member, request ID) (bool, error)
	// Remember adds a version, whose number must be the newest one's plus one, and
	// drops the oldest beyond MemoryVersions. ErrConflict when somebody else wrote
	// that version; ErrInvalid when the text is too long.
	Remember(ctx context.Context, m Memory) error
	// Forget drops all versions.
	Forget(ctx context.Context, instance, member ID) error
	// RulesFor are the rules that the agents of a member work under.
	RulesFor(ctx context.Context, instance, member ID) (Rules, error)
	// SetRules changes the rules for a member's agents, or for everybody's where
	// member is the zero id; "" removes them.
	SetRules(ctx context.Context, instance, member ID, text string) error
}

// FeedbackTx is the part of Tx about what agents said about this service.
type FeedbackTx interface {
	// AddFeedback keeps f, and drops the oldest beyond MaxFeedback. A request that
	// was kept before is not kept again: that one is returned. ErrTooMany when the
	// tenant's agents sent as many as they may since the given time; ErrInvalid when
	// a text is too long or cannot be stored.
	AddFeedback(ctx context.Context, f Feedback, since time.Time) (Feedback, error)
	// Feedback lists what is kept, the newest first.
	Feedback(ctx context.Context, limit int) ([]Feedback, error)
	// DeleteFeedback returns ErrNotFound.
	DeleteFeedback(ctx context.Context, id ID) error
}

// MascotTx is the part of Tx about the cat and its coins.
type MascotTx interface {
	// Mascot is the tenant's; the zero one before the first call.
	Mascot(ctx context.Context) (Mascot, error)
	// Buy takes the price from the balance, once for each request of an agent. A
	// request that bought before gets that purchase; with another item it is
	// ErrConflict. ErrCoins when there are too few.
	Buy(ctx context.Context, p Purchase) (Purchase, error)
}

// RecordTx is the part of Tx about what happened.
type RecordTx interface {
	Calls(ctx context.Context, f CallFilter) ([]Call, error)
	// Audit adds an entry; ID and At are set by the store when zero.
	Audit(ctx context.Context, e AuditEntry) error
	AuditLog(ctx context.Context, before time.Time, limit int) ([]AuditEntry, error)
}
