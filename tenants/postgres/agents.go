package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

const agentColumns = `id, member_id, instance_id, name, origin, client_id, ceiling, tools, created_at, expires_at, last_used_at, revoked_at`

func agentTargets(a *tenants.Agent) []any {
	return []any{&a.ID, &a.MemberID, &a.InstanceID, &a.Name, &a.Origin, intoText{&a.ClientID}, intoLevel{&a.Ceiling}, &a.Tools,
		intoTime{&a.CreatedAt}, intoTime{&a.ExpiresAt}, intoTime{&a.LastUsedAt}, intoTime{&a.RevokedAt}}
}

func scanAgent(r pgx.CollectableRow) (a tenants.Agent, err error) {
	err = r.Scan(agentTargets(&a)...)
	return a, err
}

func (t *tx) Agents(ctx context.Context, f tenants.AgentFilter) ([]tenants.Agent, error) {
	return list(ctx, t, "agents", scanAgent, `
		select `+agentColumns+` from agents
		where tenant_id = $1
			and ($2::uuid is null or member_id = $2)
			and ($3::uuid is null or instance_id = $3)
			and ($4::text is null or client_id = $4)
			and ($5 or revoked_at is null)
		order by created_at desc, id desc`,
		t.tenant, idOrNull(f.MemberID), idOrNull(f.InstanceID), textOrNull(f.ClientID), f.IncludeRevoked)
}

func (t *tx) Agent(ctx context.Context, agent tenants.ID) (tenants.Agent, error) {
	return one(ctx, t, "agent "+agent.String(), scanAgent,
		`select `+agentColumns+` from agents where tenant_id = $1 and id = $2`, t.tenant, agent)
}

// CreateAgent inserts from the membership: without one there is no agent.
func (t *tx) CreateAgent(ctx context.Context, a tenants.Agent) (tenants.Agent, error) {
	if a.ID == uuid.Nil {
		a.ID = tenants.NewID()
	}
	return one(ctx, t, "create agent", scanAgent, `
		insert into agents (tenant_id, id, member_id, instance_id, name, origin, client_id, ceiling, tools, expires_at)
		select m.tenant_id, $2::uuid, m.user_id, $4::uuid, $5, $6, $7, $8::access_level, $9::text[], $10::timestamptz
		from memberships m where m.tenant_id = $1 and m.user_id = $3
		for share of m
		returning `+agentColumns,
		t.tenant, a.ID, a.MemberID, a.InstanceID, a.Name, string(a.Origin), textOrNull(a.ClientID), a.Ceiling.String(), a.Tools, timeOrNull(a.ExpiresAt))
}

func (t *tx) UpdateAgent(ctx context.Context, agent tenants.ID, up tenants.AgentUpdate) (tenants.Agent, error) {
	var tools []string
	if up.Tools != nil {
		tools = *up.Tools
	}
	return one(ctx, t, "update agent "+agent.String(), scanAgent, `
		update agents set
			name       = coalesce($3, name),
			ceiling    = coalesce($4::access_level, ceiling),
			tools      = case when $5 then $6::text[] else tools end,
			expires_at = coalesce($7::timestamptz, expires_at)
		where tenant_id = $1 and id = $2
		returning `+agentColumns,
		t.tenant, agent, up.Name, levelOrNull(up.Ceiling), up.Tools != nil, tools, up.ExpiresAt)
}

func (t *tx) RevokeAgent(ctx context.Context, agent tenants.ID) error {
	return t.end(ctx, "agents", tenants.RevokedAgent, agent)
}

func (t *tx) RevokeToken(ctx context.Context, jti string, expires time.Time) error {
	return t.run(ctx, "revoke token", `
		insert into revocations (tenant_id, kind, subject, expires_at) values ($1, 'token', $2, $3)`, t.tenant, jti, expires)
}

// end sets revoked_at in one of the two tables that have it, and tells the feed.
// Ended a second time it does nothing.
func (t *tx) end(ctx context.Context, table string, kind tenants.RevocationKind, id tenants.ID) error {
	var already bool
	what := "revoke " + string(kind) + " " + id.String()
	err := t.db.QueryRow(ctx, `select revoked_at is not null from `+table+` where tenant_id = $1 and id = $2 for update`, t.tenant, id).Scan(&already)
	if err != nil {
		return failure(err, "%s", what)
	}
	if already {
		return nil
	}
	if err := t.exec(ctx, what, `update `+table+` set revoked_at = now() where tenant_id = $1 and id = $2`, t.tenant, id); err != nil {
		return err
	}
	return t.revoke(ctx, kind, id.String())
}

// revoke adds to the feed. What it names is also shown revoked in snapshots, so
// the entry only has to outlive whatever was cached.
func (t *tx) revoke(ctx context.Context, kind tenants.RevocationKind, subject string) error {
	return t.run(ctx, "revoke "+string(kind), `
		insert into revocations (tenant_id, kind, subject, expires_at) values ($1, $2, $3, now() + interval '1 day')`,
		t.tenant, string(kind), subject)
}

// TouchAgent notes when an agent was last used, to the minute.
func (s *Store) TouchAgent(ctx context.Context, tenant, agent tenants.ID, at time.Time) error {
	err := s.through(ctx, asTenant, tenant.String(), func(b *pgx.Batch) {
		b.Queue(`update agents set last_used_at = $3
			where tenant_id = $1 and id = $2 and (last_used_at is null or last_used_at < $3::timestamptz - interval '1 minute')`, tenant, agent, at)
	})
	if err != nil {
		return failure(err, "last use of agent %s", agent)
	}
	return nil
}
