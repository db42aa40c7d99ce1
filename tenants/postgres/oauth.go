package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

const clientColumns = `id, name, redirect_uris, created_at, expires_at`

func scanClient(r pgx.CollectableRow) (c tenants.OAuthClient, err error) {
	err = r.Scan(&c.ID, &c.Name, &c.RedirectURIs, intoTime{&c.CreatedAt}, intoTime{&c.ExpiresAt})
	return c, err
}

// row reads one row of an installation-wide table.
func row[T any](ctx context.Context, s *Store, what string, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	rows, err := s.service.Query(ctx, sql, args...)
	if err == nil {
		var v T
		if v, err = pgx.CollectExactlyOneRow(rows, scan); err == nil {
			return v, nil
		}
	}
	var zero T
	return zero, failure(err, "%s", what)
}

// change runs a statement on an installation-wide table that must touch a row.
func (s *Store) change(ctx context.Context, what, sql string, args ...any) error {
	tag, err := s.service.Exec(ctx, sql, args...)
	if err != nil {
		return failure(err, "%s", what)
	}
	if tag.RowsAffected() == 0 {
		return failure(tenants.ErrNotFound, "%s", what)
	}
	return nil
}

// CreateOAuthClient stores a registration.
func (s *Store) CreateOAuthClient(ctx context.Context, c tenants.OAuthClient) (tenants.OAuthClient, error) {
	if c.RedirectURIs == nil {
		c.RedirectURIs = []string{}
	}
	return row(ctx, s, "register OAuth client", scanClient, `
		insert into oauth_clients (id, name, redirect_uris, expires_at) values ($1, $2, $3::text[], $4::timestamptz)
		returning `+clientColumns, c.ID, c.Name, c.RedirectURIs, timeOrNull(c.ExpiresAt))
}

// OAuthClient finds a registration in force.
func (s *Store) OAuthClient(ctx context.Context, id string) (tenants.OAuthClient, error) {
	return row(ctx, s, "OAuth client", scanClient,
		`select `+clientColumns+` from oauth_clients where id = $1 and (expires_at is null or expires_at > now())`, id)
}

// OAuthClients lists the registrations that never expire.
func (s *Store) OAuthClients(ctx context.Context) ([]tenants.OAuthClient, error) {
	rows, err := s.service.Query(ctx, `select `+clientColumns+` from oauth_clients where expires_at is null order by id`)
	if err != nil {
		return nil, failure(err, "list OAuth clients")
	}
	all, err := pgx.CollectRows(rows, scanClient)
	if err != nil {
		return nil, failure(err, "list OAuth clients")
	}
	return all, nil
}

// KeepOAuthClient moves a registration's end to until, never closer.
func (s *Store) KeepOAuthClient(ctx context.Context, id string, until time.Time) error {
	_, err := s.service.Exec(ctx, `update oauth_clients set expires_at = $2 where id = $1 and expires_at < $2`, id, until)
	if err != nil {
		return failure(err, "keep OAuth client")
	}
	return nil
}

// DeleteOAuthClient removes a registration.
func (s *Store) DeleteOAuthClient(ctx context.Context, id string) error {
	return s.change(ctx, "delete OAuth client "+id, `delete from oauth_clients where id = $1`, id)
}

const denied = "denied" // oauth_devices.answer

const deviceColumns = `hash, user_code, client_id, scope, resource, answer, expires_at`

func deviceTargets(d *tenants.DeviceRequest, answer *string) []any {
	return []any{intoHash{&d.Hash}, &d.UserCode, &d.ClientID, &d.Scope, &d.Resource, intoText{answer}, intoTime{&d.ExpiresAt}}
}

func readAnswer(d *tenants.DeviceRequest, answer string) (err error) {
	switch answer {
	case "":
	case denied:
		d.Denied = true
	default:
		d.TenantID, err = uuid.Parse(answer)
	}
	return err
}

// CreateDeviceRequest stores a waiting device. An expired one gives its user
// code up.
func (s *Store) CreateDeviceRequest(ctx context.Context, d tenants.DeviceRequest) error {
	return s.change(ctx, "device request", `
		with gone as (delete from oauth_devices where user_code = $2 and expires_at < now())
		insert into oauth_devices (hash, user_code, client_id, scope, resource, expires_at) values ($1, $2, $3, $4, $5, $6)`,
		d.Hash[:], d.UserCode, d.ClientID, d.Scope, d.Resource, d.ExpiresAt)
}

// DeviceRequest finds a device that waits for an answer.
func (s *Store) DeviceRequest(ctx context.Context, userCode string) (tenants.DeviceRequest, error) {
	return row(ctx, s, "device request", func(r pgx.CollectableRow) (d tenants.DeviceRequest, err error) {
		var answer string
		if err := r.Scan(deviceTargets(&d, &answer)...); err != nil {
			return d, err
		}
		return d, readAnswer(&d, answer)
	}, `select `+deviceColumns+` from oauth_devices where user_code = $1 and expires_at > now() and answer is null`, userCode)
}

// AnswerDevice keeps a person's decision, the first one.
func (s *Store) AnswerDevice(ctx context.Context, hash tenants.SecretHash, tenant tenants.ID) error {
	answer := denied
	if tenant != uuid.Nil {
		answer = tenant.String()
	}
	return s.change(ctx, "answer device request",
		`update oauth_devices set answer = $2 where hash = $1 and answer is null and expires_at > now()`, hash[:], answer)
}

// PollDevice finds a device by its code and notes when it asked.
func (s *Store) PollDevice(ctx context.Context, hash tenants.SecretHash, at time.Time) (tenants.DeviceRequest, error) {
	return row(ctx, s, "device request", func(r pgx.CollectableRow) (d tenants.DeviceRequest, err error) {
		var answer string
		if err := r.Scan(append(deviceTargets(&d, &answer), intoTime{&d.PolledAt})...); err != nil {
			return d, err
		}
		return d, readAnswer(&d, answer)
	}, `with before as (select hash, polled_at from oauth_devices where hash = $1 for update)
		update oauth_devices o set polled_at = $2 from before where o.hash = before.hash
		returning o.hash, o.user_code, o.client_id, o.scope, o.resource, o.answer, o.expires_at, before.polled_at`, hash[:], at)
}

func (t *tx) PutOAuthCode(ctx context.Context, c tenants.OAuthCode) error {
	return t.run(ctx, "keep consent", `
		insert into oauth_codes (tenant_id, hash, client_id, redirect_uri, challenge, resource, scope,
			member_id, instance_id, name, ceiling, tools, agent_expires_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::access_level, $12::text[], $13::timestamptz, $14)`,
		t.tenant, c.Hash[:], c.ClientID, c.RedirectURI, c.Challenge, c.Resource, c.Scope,
		c.Agent.MemberID, c.Agent.InstanceID, c.Agent.Name, c.Agent.Ceiling.String(), c.Agent.Tools, timeOrNull(c.Agent.ExpiresAt), c.ExpiresAt)
}

func scanCode(r pgx.CollectableRow) (c tenants.OAuthCode, err error) {
	a := &c.Agent
	err = r.Scan(intoHash{&c.Hash}, &c.ClientID, &c.RedirectURI, &c.Challenge, &c.Resource, &c.Scope,
		&a.MemberID, &a.InstanceID, &a.Name, intoLevel{&a.Ceiling}, &a.Tools, intoTime{&a.ExpiresAt},
		intoTime{&c.ExpiresAt}, intoTime{&c.UsedAt}, intoID{&a.ID})
	a.Origin, a.ClientID = tenants.FromOAuth, c.ClientID
	return c, err
}

func (t *tx) OAuthCode(ctx context.Context, hash tenants.SecretHash) (tenants.OAuthCode, error) {
	return one(ctx, t, "consent", scanCode, `
		select hash, client_id, redirect_uri, challenge, resource, scope, member_id, instance_id, name, ceiling, tools, agent_expires_at,
			expires_at, used_at, agent_id
		from oauth_codes where tenant_id = $1 and hash = $2 for update`, t.tenant, hash[:])
}

func (t *tx) UseOAuthCode(ctx context.Context, hash tenants.SecretHash, agent tenants.ID, at time.Time) error {
	return t.exec(ctx, "use consent", `update oauth_codes set used_at = $3, agent_id = $4
		where tenant_id = $1 and hash = $2 and used_at is null`, t.tenant, hash[:], at, agent)
}

func (t *tx) PutRefreshToken(ctx context.Context, r tenants.RefreshToken) error {
	return t.run(ctx, "keep refresh token", `
		insert into oauth_refresh_tokens (tenant_id, hash, agent_id, resource, scope, expires_at) values ($1, $2, $3, $4, $5, $6)`,
		t.tenant, r.Hash[:], r.AgentID, r.Resource, r.Scope, r.ExpiresAt)
}

func (t *tx) RefreshToken(ctx context.Context, hash tenants.SecretHash) (tenants.RefreshToken, error) {
	return one(ctx, t, "refresh token", func(r pgx.CollectableRow) (x tenants.RefreshToken, err error) {
		err = r.Scan(intoHash{&x.Hash}, &x.AgentID, &x.Resource, &x.Scope, intoTime{&x.ExpiresAt}, intoTime{&x.SpentAt})
		return x, err
	}, `select hash, agent_id, resource, scope, expires_at, spent_at
		from oauth_refresh_tokens where tenant_id = $1 and hash = $2 for update`, t.tenant, hash[:])
}

func (t *tx) SpendRefreshToken(ctx context.Context, hash tenants.SecretHash, at time.Time) error {
	return t.exec(ctx, "spend refresh token", `update oauth_refresh_tokens set spent_at = coalesce(spent_at, $3)
		where tenant_id = $1 and hash = $2`, t.tenant, hash[:], at)
}
