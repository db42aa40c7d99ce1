package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

const memoryColumns = `instance_id, member_id, version, text, agent_id, request_id, written_at`

func scanMemory(r pgx.CollectableRow) (m tenants.Memory, err error) {
	err = r.Scan(&m.InstanceID, &m.MemberID, &m.Version, &m.Text, &m.AgentID, &m.RequestID, intoTime{&m.WrittenAt})
	return m, err
}

func (t *tx) Memories(ctx context.Context, instance, member tenants.ID) ([]tenants.Memory, error) {
	return list(ctx, t, "agents' memory", scanMemory, `select `+memoryColumns+` from memories
		where tenant_id = $1 and instance_id = $2 and member_id = $3 order by version desc`, t.tenant, instance, member)
}

func (t *tx) MemoryOf(ctx context.Context, instance, member tenants.ID) (tenants.Memory, error) {
	newest, err := list(ctx, t, "agents' memory", scanMemory, `select `+memoryColumns+` from memories
		where tenant_id = $1 and instance_id = $2 and member_id = $3 order by version desc limit 1`, t.tenant, instance, member)
	if err != nil || len(newest) == 0 {
		return tenants.Memory{InstanceID: instance, MemberID: member}, err
	}
	return newest[0], nil
}

func (t *tx) MemoryWritten(ctx context.Context, instance, member, request tenants.ID) (bool, error) {
	found, err := list(ctx, t, "agents' memory", scanMemory, `select `+memoryColumns+` from memories
		where tenant_id = $1 and instance_id = $2 and member_id = $3 and request_id = $4`, t.tenant, instance, member, request)
	return len(found) > 0, err
}

func (t *tx) Remember(ctx context.Context, m tenants.Memory) error {
	if err := t.exec(ctx, "write agents' memory", `insert into memories (tenant_id, `+memoryColumns+`)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`, t.tenant, m.InstanceID, m.MemberID, m.Version, m.Text, m.AgentID, m.RequestID, m.WrittenAt); err != nil {
		return err
	}
	return t.run(ctx, "drop old versions of agents' memory", `delete from memories
		where tenant_id = $1 and instance_id = $2 and member_id = $3 and version <= $4`, t.tenant, m.InstanceID, m.MemberID, m.Version-tenants.MemoryVersions)
}

func (t *tx) Forget(ctx context.Context, instance, member tenants.ID) error {
	return t.run(ctx, "clear agents' memory", `delete from memories
		where tenant_id = $1 and instance_id = $2 and member_id = $3`, t.tenant, instance, member)
}

func (t *tx) RulesFor(ctx context.Context, instance, member tenants.ID) (r tenants.Rules, err error) {
	type row struct {
		all  bool
		text string
	}
	rows, err := list(ctx, t, "rules for agents", func(r pgx.CollectableRow) (v row, err error) {
		err = r.Scan(&v.all, &v.text)
		return v, err
	}, `select member_id is null, text from personal_rules
		where tenant_id = $1 and instance_id = $2 and (member_id = $3 or member_id is null)`, t.tenant, instance, member)
	for _, v := range rows {
		if v.all {
			r.All = v.text
		} else {
			r.Own = v.text
		}
	}
	return r, err
}

func (t *tx) SetRules(ctx context.Context, instance, member tenants.ID, text string) error {
	who := uuid.NullUUID{UUID: member, Valid: member != uuid.Nil}
	if text == "" {
		return t.run(ctx, "clear rules for agents", `delete from personal_rules
			where tenant_id = $1 and instance_id = $2 and member_id is not distinct from $3`, t.tenant, instance, who)
	}
	return t.run(ctx, "set rules for agents", `insert into personal_rules (tenant_id, id, instance_id, member_id, text, written_at)
		values ($1, $2, $3, $4, $5, now())
		on conflict (tenant_id, instance_id, member_id) do update set text = excluded.text, written_at = excluded.written_at`,
		t.tenant, tenants.NewID(), instance, who, text)
}
