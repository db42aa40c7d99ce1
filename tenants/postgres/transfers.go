package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

// transferName is what sealed arguments are bound to.
func (t *tx) transferName(id tenants.ID) string {
	return "transfer " + t.tenant.String() + "/" + id.String()
}

// PutTransfer stores a one-time URL within the bounds. The tenant's lock makes the
// count true for those who store one at the same time.
func (t *tx) PutTransfer(ctx context.Context, x tenants.Transfer, bounds tenants.TransferBounds) error {
	if err := t.run(ctx, "lock transfers", `select pg_advisory_xact_lock(hashtextextended('siyuan transfers ' || $1::text, 0))`, t.tenant); err != nil {
		return err
	}
	counts, err := one(ctx, t, "count transfers", func(r pgx.CollectableRow) (n [2]int, err error) {
		err = r.Scan(&n[0], &n[1])
		return n, err
	}, `select count(*) filter (where agent_id = $2), count(*) from transfers
		where tenant_id = $1 and used_at is null and expires_at > $3 and not (agent_id = $2 and request_id = $4)`, t.tenant, x.AgentID, x.CreatedAt, x.RequestID)
	if err != nil {
		return err
	}
	if counts[0] >= bounds.PerAgent || counts[1] >= bounds.InAll {
		return failure(tenants.ErrTooMany, "store transfer")
	}
	return t.run(ctx, "store transfer", `
		insert into transfers (tenant_id, id, secret_hash, instance_id, member_id, agent_id, request_id, tool, action, upward, arguments, max_bytes, created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		on conflict (tenant_id, agent_id, request_id) do update set id = excluded.id, secret_hash = excluded.secret_hash, instance_id = excluded.instance_id,
			tool = excluded.tool, action = excluded.action, upward = excluded.upward, arguments = excluded.arguments, max_bytes = excluded.max_bytes,
			expires_at = excluded.expires_at, used_at = null`,
		t.tenant, x.ID, x.SecretHash[:], x.InstanceID, x.MemberID, x.AgentID, x.RequestID, x.Tool, x.Action, x.Upward,
		t.box.seal(t.transferName(x.ID), x.Arguments), x.MaxBytes, x.CreatedAt, x.ExpiresAt)
}

const transferColumns = `id, secret_hash, instance_id, member_id, agent_id, request_id, tool, action, upward, arguments, max_bytes, created_at, expires_at, used_at`

func scanTransfer(r pgx.CollectableRow) (x tenants.Transfer, err error) {
	var hash []byte
	err = r.Scan(&x.ID, &hash, &x.InstanceID, &x.MemberID, &x.AgentID, &x.RequestID, &x.Tool, &x.Action, &x.Upward, &x.Arguments, &x.MaxBytes,
		intoTime{&x.CreatedAt}, intoTime{&x.ExpiresAt}, intoTime{&x.UsedAt})
	copy(x.SecretHash[:], hash)
	return x, err
}

func (t *tx) openTransfer(x tenants.Transfer, err error) (tenants.Transfer, error) {
	if err == nil {
		x.Arguments, err = t.box.open(t.transferName(x.ID), x.Arguments)
	}
	return x, err
}

func (t *tx) Transfer(ctx context.Context, secretHash tenants.SecretHash) (tenants.Transfer, error) {
	return t.openTransfer(one(ctx, t, "transfer", scanTransfer,
		`select `+transferColumns+` from transfers where tenant_id = $1 and secret_hash = $2`, t.tenant, secretHash[:]))
}

func (t *tx) TransferOf(ctx context.Context, agent, request tenants.ID) (tenants.Transfer, error) {
	return t.openTransfer(one(ctx, t, "transfer of a request", scanTransfer,
		`select `+transferColumns+` from transfers where tenant_id = $1 and agent_id = $2 and request_id = $3`, t.tenant, agent, request))
}

func (t *tx) UseTransfer(ctx context.Context, secretHash tenants.SecretHash, at time.Time) error {
	return t.exec(ctx, "use transfer", `update transfers set used_at = $3
		where tenant_id = $1 and secret_hash = $2 and used_at is null and expires_at > $3`, t.tenant, secretHash[:], at)
}

func (t *tx) FreeTransfer(ctx context.Context, secretHash tenants.SecretHash) error {
	return t.exec(ctx, "free transfer", `update transfers set used_at = null
		where tenant_id = $1 and secret_hash = $2 and used_at is not null`, t.tenant, secretHash[:])
}
