package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

// previewName is what a sealed preview is bound to, so that one cannot be passed
// off as another.
func (t *tx) previewName(id tenants.ID) string {
	return "approval " + t.tenant.String() + "/" + id.String()
}

// OpenApproval stores an open approval within the bounds. The tenant's lock makes
// the count true for those who open one at the same time.
func (t *tx) OpenApproval(ctx context.Context, a tenants.Approval, bounds tenants.ApprovalBounds) error {
	if err := t.run(ctx, "lock approvals", `select pg_advisory_xact_lock(hashtextextended('siyuan approvals ' || $1::text, 0))`, t.tenant); err != nil {
		return err
	}
	counts, err := one(ctx, t, "count approvals", func(r pgx.CollectableRow) (n [2]int, err error) {
		err = r.Scan(&n[0], &n[1])
		return n, err
	}, `select count(*) filter (where agent_id = $2), count(*) from approvals where tenant_id = $1 and state = 'open' and expires_at > $3`, t.tenant, a.AgentID, a.CreatedAt)
	if err != nil {
		return err
	}
	if counts[0] >= bounds.PerAgent || counts[1] >= bounds.InAll {
		return failure(tenants.ErrTooMany, "open approval")
	}
	a.State = tenants.ApprovalOpen
	return t.putApproval(ctx, a, t.box.seal(t.previewName(a.ID), a.Preview))
}

// KeepApproval stores an approval that was given elsewhere.
func (t *tx) KeepApproval(ctx context.Context, a tenants.Approval) error {
	a.State = tenants.ApprovalApproved
	return t.putApproval(ctx, a, nil)
}

func (t *tx) putApproval(ctx context.Context, a tenants.Approval, sealed []byte) error {
	return t.run(ctx, "store approval", `
		insert into approvals (tenant_id, id, instance_id, member_id, agent_id, request_id, tool, action, arguments, rules_version,
			preview, state, decided_by, decided_at, created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		t.tenant, a.ID, a.InstanceID, a.MemberID, a.AgentID, a.RequestID, a.Tool, a.Action, a.Arguments[:], a.RulesVersion,
		sealed, string(a.State), idOrNull(a.DecidedBy), timeOrNull(a.DecidedAt), a.CreatedAt, a.ExpiresAt)
}

const approvalColumns = `id, instance_id, member_id, agent_id, request_id, tool, action, arguments, rules_version, preview, state, decided_by, decided_at, created_at, expires_at`

func scanApproval(r pgx.CollectableRow) (a tenants.Approval, err error) {
	var digest []byte
	err = r.Scan(&a.ID, &a.InstanceID, &a.MemberID, &a.AgentID, &a.RequestID, &a.Tool, &a.Action, &digest, &a.RulesVersion, &a.Preview, &a.State,
		intoID{&a.DecidedBy}, intoTime{&a.DecidedAt}, intoTime{&a.CreatedAt}, intoTime{&a.ExpiresAt})
	copy(a.Arguments[:], digest)
	return a, err
}

// unseal opens the preview of an approval that waits.
func (t *tx) unseal(a *tenants.Approval) (err error) {
	if a.Preview != nil {
		a.Preview, err = t.box.open(t.previewName(a.ID), a.Preview)
	}
	return err
}

func (t *tx) Approval(ctx context.Context, id tenants.ID) (tenants.Approval, error) {
	a, err := one(ctx, t, "approval "+id.String(), scanApproval, `select `+approvalColumns+` from approvals where tenant_id = $1 and id = $2`, t.tenant, id)
	if err != nil {
		return a, err
	}
	return a, t.unseal(&a)
}

func (t *tx) ApprovalOf(ctx context.Context, agent, request tenants.ID) (tenants.Approval, error) {
	a, err := one(ctx, t, "approval of a request", scanApproval, `select `+approvalColumns+` from approvals
		where tenant_id = $1 and agent_id = $2 and request_id = $3 order by created_at desc, id desc limit 1 for update`, t.tenant, agent, request)
	a.Preview = nil
	return a, err
}

// OpenApprovals lists what waits. A preview that cannot be opened any more is
// left out rather than the whole list.
func (t *tx) OpenApprovals(ctx context.Context, member tenants.ID, at time.Time, limit int) ([]tenants.Approval, error) {
	all, err := list(ctx, t, "open approvals", scanApproval, `select `+approvalColumns+` from approvals
		where tenant_id = $1 and state = 'open' and expires_at > $2 and ($3::uuid is null or member_id = $3)
		order by created_at, id limit $4`, t.tenant, at, idOrNull(member), page(limit))
	for i := range all {
		if t.unseal(&all[i]) != nil {
			all[i].Preview = nil
		}
	}
	return all, err
}

func (t *tx) DecideApproval(ctx context.Context, id, by tenants.ID, yes bool, at time.Time) error {
	state := tenants.ApprovalDenied
	if yes {
		state = tenants.ApprovalApproved
	}
	return t.exec(ctx, "decide approval "+id.String(), `update approvals set state = $3, preview = null, decided_by = $4, decided_at = $5
		where tenant_id = $1 and id = $2 and state = 'open' and expires_at > $5`, t.tenant, id, string(state), idOrNull(by), at)
}

func (t *tx) UseApproval(ctx context.Context, id tenants.ID, at time.Time) error {
	return t.exec(ctx, "use approval "+id.String(), `update approvals set state = 'used'
		where tenant_id = $1 and id = $2 and state = 'approved' and expires_at > $3`, t.tenant, id, at)
}

func (t *tx) SpendConfirmation(ctx context.Context, id tenants.ID, expires time.Time) (first bool, err error) {
	if id == uuid.Nil {
		return false, failure(tenants.ErrInvalid, "spend confirmation")
	}
	tag, err := t.db.Exec(ctx, `insert into spent_confirmations (tenant_id, id, expires_at) values ($1, $2, $3) on conflict do nothing`, t.tenant, id, expires)
	if err != nil {
		return false, failure(err, "spend confirmation")
	}
	return tag.RowsAffected() == 1, nil
}
