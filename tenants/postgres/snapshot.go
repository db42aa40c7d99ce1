package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// snapshotSQL reads everything in one statement, and so at one moment: several
// statements of a transaction could see a change in between. It filters nothing
// by state; admission decides what revoked, expired or suspended means.
const snapshotSQL = `
select t.status, t.policy_version, t.rules_version, t.limits, t.settings, now(),
	a.id, a.member_id, a.instance_id, a.name, a.origin, a.client_id, a.ceiling, a.tools,
	a.created_at, a.expires_at, a.last_used_at, a.revoked_at,
	m.role,
	i.id, i.name, i.default_level, i.enabled, i.epoch, i.created_at,
	(select coalesce(jsonb_object_agg(l.notebook_id, l.level), '{}') from notebook_levels l
		where l.tenant_id = a.tenant_id and l.instance_id = a.instance_id),
	(select coalesce(jsonb_object_agg(s.notebook_id, s.level), '{}') from (
		select notebook_id, max(level) as level from shares
		where tenant_id = a.tenant_id and instance_id = a.instance_id
			and (member_id = m.user_id or team_id in (
				select team_id from team_members where tenant_id = a.tenant_id and user_id = m.user_id))
		group by notebook_id) s),
	(select coalesce(jsonb_agg(jsonb_build_object('tool', tool, 'action', action, 'enabled', enabled) order by tool, action), '[]')
		from toggles where tenant_id = a.tenant_id and instance_id = a.instance_id),
	(select coalesce(jsonb_agg(jsonb_build_object('tool', tool, 'action', action, 'mode', mode) order by tool, action), '[]')
		from consents where tenant_id = a.tenant_id and instance_id = a.instance_id),
	(select coalesce(jsonb_agg(switch order by switch), '[]')
		from switches where tenant_id = a.tenant_id and instance_id = a.instance_id),
	(select coalesce(jsonb_agg(jsonb_build_object('id', id, 'name', name, 'icon', icon, 'closed', closed, 'position', position) order by position, id), '[]')
		from notebooks where tenant_id = a.tenant_id and instance_id = a.instance_id),
	c.id, c.name, coalesce(c.epoch, 0), c.last_seen_at, c.policy_effect
from agents a
join tenants t on t.id = a.tenant_id
join instances i on i.tenant_id = a.tenant_id and i.id = a.instance_id
left join memberships m on m.tenant_id = a.tenant_id and m.user_id = a.member_id
left join lateral (
	select id, name, epoch, last_seen_at, policy_effect from connectors
	where tenant_id = a.tenant_id and instance_id = a.instance_id and revoked_at is null
	order by epoch desc, created_at desc limit 1) c on true
where a.tenant_id = $1 and a.id = $2`

func scanSnapshot(r pgx.CollectableRow) (*tenants.Snapshot, error) {
	s := &tenants.Snapshot{}
	c := &tenants.SnapshotConnector{}
	i := &s.Instance
	var role string
	var effect *contract.PolicyEffect
	into := []any{&s.TenantStatus, &s.PolicyVersion, &s.RulesVersion, &s.Limits, &s.Settings, intoTime{&s.LoadedAt}}
	into = append(into, agentTargets(&s.Agent)...)
	into = append(into, intoText{&role},
		&i.ID, &i.Name, intoLevel{&i.DefaultLevel}, &i.Enabled, &i.Epoch, intoTime{&i.CreatedAt},
		&s.Levels, &s.Shares, &s.Toggles, &s.Consents, &s.Switches, &s.Notebooks,
		intoID{&c.ID}, intoText{&c.Name}, &c.Epoch, intoTime{&c.LastSeenAt}, &effect)
	if err := r.Scan(into...); err != nil {
		return nil, err
	}
	s.Member, s.Role = s.Agent.MemberID, tenants.Role(role)
	if c.ID != uuid.Nil {
		c.Effect = effect
		s.Connector = c
	}
	return s, nil
}

// LoadSnapshot reads all that admission needs in one round trip.
func (s *Store) LoadSnapshot(ctx context.Context, tenant, agent tenants.ID) (snap *tenants.Snapshot, err error) {
	err = s.through(ctx, asTenant, tenant.String(), func(b *pgx.Batch) {
		b.Queue(snapshotSQL, tenant, agent).Query(func(rows pgx.Rows) (err error) {
			snap, err = pgx.CollectExactlyOneRow(rows, scanSnapshot)
			return err
		})
	})
	if err != nil {
		return nil, failure(err, "load snapshot of agent %s of tenant %s", agent, tenant)
	}
	snap.TenantID = tenant
	return snap, nil
}
