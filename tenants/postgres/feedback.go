package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

const feedbackColumns = `id, instance_id, member_id, agent_id, request_id, description, impact, suggestion, agent, source, written_at`

func scanFeedback(r pgx.CollectableRow) (f tenants.Feedback, err error) {
	err = r.Scan(&f.ID, &f.InstanceID, &f.MemberID, &f.AgentID, &f.RequestID, &f.Description, &f.Impact, &f.Suggestion, &f.Agent, &f.Source, intoTime{&f.WrittenAt})
	return f, err
}

// AddFeedback counts under the tenant's lock, so that the bound holds for those
// who send at the same time.
func (t *tx) AddFeedback(ctx context.Context, f tenants.Feedback, since time.Time) (tenants.Feedback, error) {
	if err := t.run(ctx, "lock feedback", `select pg_advisory_xact_lock(hashtextextended('siyuan feedback ' || $1::text, 0))`, t.tenant); err != nil {
		return f, err
	}
	before, err := list(ctx, t, "feedback of a request", scanFeedback, `select `+feedbackColumns+` from feedback
		where tenant_id = $1 and agent_id = $2 and request_id = $3`, t.tenant, f.AgentID, f.RequestID)
	if err != nil {
		return f, err
	}
	if len(before) > 0 {
		return before[0], nil
	}
	sent, err := one(ctx, t, "count feedback", pgx.RowTo[int], `select count(*) from feedback where tenant_id = $1 and written_at > $2`, t.tenant, since)
	if err != nil {
		return f, err
	}
	if sent >= tenants.FeedbackPerHour {
		return f, failure(tenants.ErrTooMany, "add feedback")
	}
	if err := t.run(ctx, "add feedback", `insert into feedback (tenant_id, `+feedbackColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		t.tenant, f.ID, f.InstanceID, f.MemberID, f.AgentID, f.RequestID, f.Description, f.Impact, f.Suggestion, f.Agent, f.Source, f.WrittenAt); err != nil {
		return f, err
	}
	return f, t.run(ctx, "drop old feedback", `delete from feedback where tenant_id = $1 and id in (
		select id from feedback where tenant_id = $1 order by written_at desc, id desc offset $2)`, t.tenant, tenants.MaxFeedback)
}

func (t *tx) Feedback(ctx context.Context, limit int) ([]tenants.Feedback, error) {
	return list(ctx, t, "feedback", scanFeedback, `select `+feedbackColumns+` from feedback
		where tenant_id = $1 order by written_at desc, id desc limit $2`, t.tenant, limit)
}

func (t *tx) DeleteFeedback(ctx context.Context, id tenants.ID) error {
	return t.exec(ctx, "delete feedback "+id.String(), `delete from feedback where tenant_id = $1 and id = $2`, t.tenant, id)
}
