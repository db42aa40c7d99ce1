package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

const tenantColumns = `id, name, status, policy_version, rules_version, limits, settings, created_at`

func scanTenant(r pgx.CollectableRow) (t tenants.Tenant, err error) {
	err = r.Scan(&t.ID, &t.Name, &t.Status, &t.PolicyVersion, &t.RulesVersion, &t.Limits, &t.Settings, intoTime{&t.CreatedAt})
	return t, err
}

const userColumns = `id, email, name, locale, password_hash, oidc_issuer, oidc_subject, created_at`

func scanUser(r pgx.CollectableRow) (u tenants.User, err error) {
	err = r.Scan(&u.ID, &u.Email, &u.Name, &u.Locale, intoText{&u.PasswordHash},
		intoText{&u.OIDCIssuer}, intoText{&u.OIDCSubject}, intoTime{&u.CreatedAt})
	return u, err
}

// CreateTenant makes a tenant with its first owner.
func (s *Store) CreateTenant(ctx context.Context, name string, owner tenants.ID) (tenants.Tenant, error) {
	id := tenants.NewID()
	var made tenants.Tenant
	err := s.In(ctx, id, func(in tenants.Tx) (err error) {
		t := in.(*tx)
		if err := t.run(ctx, "create tenant", `insert into tenants (id, name) values ($1, $2)`, id, name); err != nil {
			return err
		}
		if err := t.AddMember(ctx, owner, tenants.Owner); err != nil {
			return err
		}
		made, err = t.Tenant(ctx)
		return err
	})
	return made, err
}

// Tenants lists the installation's tenants by id, for operators.
func (s *Store) Tenants(ctx context.Context, after tenants.ID, limit int) ([]tenants.Tenant, error) {
	rows, err := s.service.Query(ctx, `select `+tenantColumns+` from tenant_directory($1, $2)`, after, page(limit))
	if err != nil {
		return nil, failure(err, "list tenants")
	}
	all, err := pgx.CollectRows(rows, scanTenant)
	if err != nil {
		return nil, failure(err, "list tenants")
	}
	return all, nil
}

func (s *Store) user(ctx context.Context, what, sql string, args ...any) (tenants.User, error) {
	rows, err := s.service.Query(ctx, sql, args...)
	if err != nil {
		return tenants.User{}, failure(err, "%s", what)
	}
	u, err := pgx.CollectExactlyOneRow(rows, scanUser)
	if err != nil {
		return tenants.User{}, failure(err, "%s", what)
	}
	return u, nil
}

// CreateUser adds a person.
func (s *Store) CreateUser(ctx context.Context, u tenants.User) (tenants.User, error) {
	email, err := tenants.NormalizeEmail(u.Email)
	if err != nil {
		return tenants.User{}, err
	}
	u.Email = email
	return s.user(ctx, "create user "+email, insertUser, userValues(u)...)
}

const insertUser = `
	insert into users (id, email, name, locale, password_hash, oidc_issuer, oidc_subject)
	values ($1, $2, $3, $4, $5, $6, $7)
	returning ` + userColumns

// userValues are the arguments of insertUser, with a new id.
func userValues(u tenants.User) []any {
	return []any{tenants.NewID(), u.Email, u.Name, u.Locale, textOrNull(u.PasswordHash), textOrNull(u.OIDCIssuer), textOrNull(u.OIDCSubject)}
}

// User finds a person by id.
func (s *Store) User(ctx context.Context, id tenants.ID) (tenants.User, error) {
	return s.user(ctx, "user "+id.String(), `select `+userColumns+` from users where id = $1`, id)
}

// UserByEmail finds a person by address, in any spelling of it.
func (s *Store) UserByEmail(ctx context.Context, email string) (tenants.User, error) {
	normal, err := tenants.NormalizeEmail(email)
	if err != nil {
		return tenants.User{}, fmt.Errorf("user %q: %w", email, tenants.ErrNotFound)
	}
	return s.user(ctx, "user "+normal, `select `+userColumns+` from users where email = $1`, normal)
}

// UserByOIDC finds a person by the identity provider's subject.
func (s *Store) UserByOIDC(ctx context.Context, issuer, subject string) (tenants.User, error) {
	return s.user(ctx, "user of "+issuer, `select `+userColumns+` from users where oidc_issuer = $1 and oidc_subject = $2`, issuer, subject)
}

// UpdateUser changes a person; an empty hash, issuer or subject removes it.
func (s *Store) UpdateUser(ctx context.Context, id tenants.ID, up tenants.UserUpdate) (tenants.User, error) {
	if up.Email != nil {
		email, err := tenants.NormalizeEmail(*up.Email)
		if err != nil {
			return tenants.User{}, err
		}
		up.Email = &email
	}
	return s.user(ctx, "update user "+id.String(), `
		update users set
			email         = coalesce($2, email),
			name          = coalesce($3, name),
			locale        = coalesce($4, locale),
			password_hash = nullif(coalesce($5, password_hash), ''),
			oidc_issuer   = nullif(coalesce($6, oidc_issuer), ''),
			oidc_subject  = nullif(coalesce($7, oidc_subject), '')
		where id = $1
		returning `+userColumns,
		id, up.Email, up.Name, up.Locale, up.PasswordHash, up.OIDCIssuer, up.OIDCSubject)
}

// membershipColumns leave a person's secrets out.
const membershipColumns = `m.tenant_id, t.name, u.id, u.email, u.name, u.locale, u.created_at, m.role, m.created_at`

func scanMembership(r pgx.CollectableRow) (m tenants.Membership, err error) {
	err = r.Scan(&m.TenantID, &m.TenantName, &m.User.ID, &m.User.Email, &m.User.Name, &m.User.Locale,
		intoTime{&m.User.CreatedAt}, &m.Role, intoTime{&m.Since})
	return m, err
}

// MembershipsOf lists the tenants a person belongs to.
func (s *Store) MembershipsOf(ctx context.Context, user tenants.ID) (all []tenants.Membership, err error) {
	err = s.through(ctx, asPerson, user.String(), func(b *pgx.Batch) {
		b.Queue(`select `+membershipColumns+`
			from memberships m join tenants t on t.id = m.tenant_id join users u on u.id = m.user_id
			where m.user_id = $1 order by t.name, t.id`, user).Query(func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, scanMembership)
			return err
		})
	})
	if err != nil {
		return nil, failure(err, "memberships of user %s", user)
	}
	return all, nil
}

func (t *tx) Tenant(ctx context.Context) (tenants.Tenant, error) {
	return one(ctx, t, "tenant", scanTenant, `select `+tenantColumns+` from tenants where id = $1`, t.tenant)
}

func (t *tx) UpdateTenant(ctx context.Context, up tenants.TenantUpdate) (tenants.Tenant, error) {
	before, err := one(ctx, t, "tenant", scanTenant, `select `+tenantColumns+` from tenants where id = $1 for update`, t.tenant)
	if err != nil {
		return tenants.Tenant{}, err
	}
	stops := up.Status != nil && *up.Status != tenants.Active && *up.Status != before.Status
	if before.Status == tenants.Closed && up.Status != nil && *up.Status != tenants.Closed {
		return tenants.Tenant{}, fmt.Errorf("a closed tenant stays closed: %w", tenants.ErrInvalid)
	}
	after, err := one(ctx, t, "update tenant", scanTenant, `
		update tenants set
			name     = coalesce($2, name),
			status   = coalesce($3, status),
			limits   = coalesce($4::jsonb, limits),
			settings = coalesce($5::jsonb, settings)
		where id = $1
		returning `+tenantColumns,
		t.tenant, up.Name, (*string)(up.Status), jsonOrNull(up.Limits), jsonOrNull(up.Settings))
	if err != nil || !stops {
		return after, err
	}
	return after, t.revoke(ctx, tenants.RevokedTenant, t.tenant.String())
}

const membershipsOfTenant = `select ` + membershipColumns + `
	from memberships m join tenants t on t.id = m.tenant_id join users u on u.id = m.user_id
	where m.tenant_id = $1`

func (t *tx) Members(ctx context.Context) ([]tenants.Membership, error) {
	return list(ctx, t, "members", scanMembership, membershipsOfTenant+` order by u.email`, t.tenant)
}

func (t *tx) Member(ctx context.Context, user tenants.ID) (tenants.Membership, error) {
	return one(ctx, t, "member "+user.String(), scanMembership, membershipsOfTenant+` and m.user_id = $2`, t.tenant, user)
}

func (t *tx) AddMember(ctx context.Context, user tenants.ID, role tenants.Role) error {
	return t.run(ctx, "add member "+user.String(),
		`insert into memberships (tenant_id, user_id, role) values ($1, $2, $3)`, t.tenant, user, string(role))
}

func (t *tx) SetRole(ctx context.Context, user tenants.ID, role tenants.Role) error {
	err := t.exec(ctx, "role of member "+user.String(),
		`update memberships set role = $3 where tenant_id = $1 and user_id = $2`, t.tenant, user, string(role))
	if err != nil {
		return err
	}
	return t.endInvitations(ctx, user, role)
}

func (t *tx) RemoveMember(ctx context.Context, user tenants.ID) error {
	err := t.exec(ctx, "remove member "+user.String(),
		`delete from memberships where tenant_id = $1 and user_id = $2`, t.tenant, user)
	if err != nil {
		return err
	}
	err = t.run(ctx, "revoke the agents of member "+user.String(),
		`update agents set revoked_at = now() where tenant_id = $1 and member_id = $2 and revoked_at is null`, t.tenant, user)
	if err != nil {
		return err
	}
	return t.revoke(ctx, tenants.RevokedMember, user.String())
}

func scanTeam(r pgx.CollectableRow) (team tenants.Team, err error) {
	var members []uuid.UUID
	err = r.Scan(&team.ID, &team.Name, &members)
	team.Members = members
	return team, err
}

func (t *tx) Teams(ctx context.Context) ([]tenants.Team, error) {
	return list(ctx, t, "teams", scanTeam, `
		select id, name, array(select user_id from team_members m
			where m.tenant_id = teams.tenant_id and m.team_id = teams.id order by user_id)
		from teams where tenant_id = $1 order by name`, t.tenant)
}

func (t *tx) CreateTeam(ctx context.Context, name string) (tenants.Team, error) {
	team := tenants.Team{ID: tenants.NewID(), Name: name}
	if err := t.HoldMembers(ctx); err != nil {
		return team, err
	}
	have, err := t.Teams(ctx)
	if err != nil {
		return team, err
	}
	if len(have) >= tenants.MaxTeams {
		return team, fmt.Errorf("create team: %d are there: %w", len(have), tenants.ErrTooMany)
	}
	return team, t.run(ctx, "create team", `insert into teams (tenant_id, id, name) values ($1, $2, $3)`, t.tenant, team.ID, name)
}

func (t *tx) RenameTeam(ctx context.Context, team tenants.ID, name string) error {
	return t.exec(ctx, "rename team "+team.String(),
		`update teams set name = $3 where tenant_id = $1 and id = $2`, t.tenant, team, name)
}

func (t *tx) DeleteTeam(ctx context.Context, team tenants.ID) error {
	err := t.exec(ctx, "delete team "+team.String(), `delete from teams where tenant_id = $1 and id = $2`, t.tenant, team)
	if err != nil {
		return err
	}
	return t.revoke(ctx, tenants.RevokedShare, team.String())
}

func (t *tx) AddTeamMember(ctx context.Context, team, user tenants.ID) error {
	return t.run(ctx, "add to team "+team.String(),
		`insert into team_members (tenant_id, team_id, user_id) values ($1, $2, $3) on conflict do nothing`, t.tenant, team, user)
}

func (t *tx) RemoveTeamMember(ctx context.Context, team, user tenants.ID) error {
	err := t.exec(ctx, "remove from team "+team.String(),
		`delete from team_members where tenant_id = $1 and team_id = $2 and user_id = $3`, t.tenant, team, user)
	if err != nil {
		return err
	}
	return t.revoke(ctx, tenants.RevokedShare, team.String())
}
