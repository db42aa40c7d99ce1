package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"siyuan-broker/tenants"
)

var callColumns = []string{"tenant_id", "id", "started_at", "instance_id", "member_id", "agent_id", "connector_id",
	"tool", "action", "notebook_id", "request_id", "outcome", "error_type", "error_code",
	"total_us", "admission_us", "consent_us", "queue_us", "tunnel_us", "home_us", "kernel_us", "bytes_in", "bytes_out"}

// CopyCalls writes a batch of call records with the recorder's role.
func (s *Store) CopyCalls(ctx context.Context, calls []tenants.Call) error {
	rows := pgx.CopyFromSlice(len(calls), func(i int) ([]any, error) {
		c := &calls[i]
		l := c.Legs
		return []any{binaryID(c.TenantID), binaryID(c.ID), c.StartedAt, binaryID(c.InstanceID), binaryID(c.MemberID), binaryID(c.AgentID), binaryIDOrNull(c.ConnectorID),
			c.Tool, c.Action, textOrNull(c.NotebookID), textOrNull(c.RequestID), string(c.Outcome), textOrNull(c.ErrorType), textOrNull(c.ErrorCode),
			l.Total.Microseconds(), l.Admission.Microseconds(), l.Consent.Microseconds(), l.Queue.Microseconds(),
			l.Tunnel.Microseconds(), l.Home.Microseconds(), l.Kernel.Microseconds(), c.BytesIn, c.BytesOut}, nil
	})
	if _, err := s.recorder.CopyFrom(ctx, pgx.Identifier{"calls"}, callColumns, rows); err != nil {
		return failure(err, "record %d calls", len(calls))
	}
	return nil
}

// binaryID is an id in the form that needs no search for how to encode it: pgx
// takes an ID for a text first, which costs a record more than its other columns
// together.
func binaryID(id tenants.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func binaryIDOrNull(id tenants.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: id != uuid.Nil} }

func scanCall(r pgx.CollectableRow) (c tenants.Call, err error) {
	var us [7]int64
	err = r.Scan(&c.TenantID, &c.ID, intoTime{&c.StartedAt}, &c.InstanceID, &c.MemberID, &c.AgentID, intoID{&c.ConnectorID},
		&c.Tool, &c.Action, intoText{&c.NotebookID}, intoText{&c.RequestID}, &c.Outcome, intoText{&c.ErrorType}, intoText{&c.ErrorCode},
		&us[0], &us[1], &us[2], &us[3], &us[4], &us[5], &us[6], &c.BytesIn, &c.BytesOut)
	l := &c.Legs
	for i, leg := range []*time.Duration{&l.Total, &l.Admission, &l.Consent, &l.Queue, &l.Tunnel, &l.Home, &l.Kernel} {
		*leg = time.Duration(us[i]) * time.Microsecond
	}
	return c, err
}

const (
	usualPage   = 100
	largestPage = 1000
)

// page bounds how many rows a list may ask for.
func page(limit int) int {
	if limit <= 0 {
		return usualPage
	}
	return min(limit, largestPage)
}

func (t *tx) Calls(ctx context.Context, f tenants.CallFilter) ([]tenants.Call, error) {
	return list(ctx, t, "calls", scanCall, `
		select tenant_id, id, started_at, instance_id, member_id, agent_id, connector_id,
			tool, action, notebook_id, request_id, outcome, error_type, error_code,
			total_us, admission_us, consent_us, queue_us, tunnel_us, home_us, kernel_us, bytes_in, bytes_out
		from calls
		where tenant_id = $1
			and ($2::uuid is null or instance_id = $2)
			and ($3::uuid is null or member_id = $3)
			and ($4::uuid is null or agent_id = $4)
			and ($5::text is null or tool = $5)
			and ($6::text is null or outcome = $6)
			and started_at < coalesce($7::timestamptz, 'infinity')
			and started_at >= coalesce($8::timestamptz, '-infinity')
		order by started_at desc, id desc limit $9`,
		t.tenant, idOrNull(f.InstanceID), idOrNull(f.MemberID), idOrNull(f.AgentID), textOrNull(f.Tool), textOrNull(string(f.Outcome)),
		timeOrNull(f.Before), timeOrNull(f.Since), page(f.Limit))
}

func (t *tx) Audit(ctx context.Context, e tenants.AuditEntry) error {
	if e.ID == uuid.Nil {
		e.ID = tenants.NewID()
	}
	if e.Detail == nil {
		e.Detail = json.RawMessage(`{}`)
	}
	return t.run(ctx, "audit "+e.Verb, `
		insert into audit (tenant_id, id, at, actor_kind, actor_id, verb, object, detail)
		values ($1, $2, coalesce($3::timestamptz, now()), $4, $5, $6, $7, $8::jsonb)`,
		t.tenant, e.ID, timeOrNull(e.At), e.ActorKind, idOrNull(e.ActorID), e.Verb, e.Object, string(e.Detail))
}

func (t *tx) AuditLog(ctx context.Context, before time.Time, limit int) ([]tenants.AuditEntry, error) {
	return list(ctx, t, "audit log", func(r pgx.CollectableRow) (e tenants.AuditEntry, err error) {
		err = r.Scan(&e.ID, intoTime{&e.At}, &e.ActorKind, intoID{&e.ActorID}, &e.Verb, &e.Object, &e.Detail)
		return e, err
	}, `select id, at, actor_kind, actor_id, verb, object, detail from audit
		where tenant_id = $1 and at < coalesce($2::timestamptz, 'infinity')
		order by at desc, id desc limit $3`, t.tenant, timeOrNull(before), page(limit))
}

// Revocations lists the installation's revocations after a sequence number.
func (s *Store) Revocations(ctx context.Context, after int64, limit int) ([]tenants.Revocation, error) {
	rows, err := s.service.Query(ctx, `select seq, tenant_id, kind, subject, at, expires_at from revocation_feed($1, $2)`, after, page(limit))
	if err != nil {
		return nil, failure(err, "revocations after %d", after)
	}
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (v tenants.Revocation, err error) {
		err = r.Scan(&v.Seq, &v.TenantID, &v.Kind, &v.Subject, intoTime{&v.At}, intoTime{&v.ExpiresAt})
		return v, err
	})
	if err != nil {
		return nil, failure(err, "revocations after %d", after)
	}
	return all, nil
}

// Days of partitions made ahead: how long Maintain may fail before calls are
// lost.
const daysAhead = 7

// Maintain makes the partitions for the days around now, drops those of calls
// older than keepDays, and forgets revocations, ended sessions, approvals and what
// lets agents sign in where it has expired. Run it at start, before the first call is recorded, and every few
// hours.
func (s *Store) Maintain(ctx context.Context, now time.Time, keepDays int) error {
	day := now.UTC().Truncate(24 * time.Hour)
	if _, err := s.service.Exec(ctx, `select make_call_partitions($1::date, $2)`, dateOf(day.AddDate(0, 0, -1)), daysAhead+2); err != nil {
		return failure(err, "make partitions of calls")
	}
	if keepDays < 1 {
		return fmt.Errorf("keep calls for %d days: %w", keepDays, tenants.ErrInvalid)
	}
	if _, err := s.service.Exec(ctx, `select drop_call_partitions($1::date)`, dateOf(day.AddDate(0, 0, -keepDays))); err != nil {
		return failure(err, "drop old partitions of calls")
	}
	if _, err := s.service.Exec(ctx, `select purge_revocations()`); err != nil {
		return failure(err, "purge revocations")
	}
	if _, err := s.service.Exec(ctx, `select purge_ended_sessions()`); err != nil {
		return failure(err, "purge ended sessions")
	}
	for _, table := range []string{"console_sessions", "one_time_links"} {
		if _, err := s.service.Exec(ctx, `delete from `+table+` where expires_at <= $1`, now); err != nil {
			return failure(err, "purge %s", table)
		}
	}
	if _, err := s.service.Exec(ctx, `select purge_approvals()`); err != nil {
		return failure(err, "purge approvals")
	}
	if _, err := s.service.Exec(ctx, `select purge_transfers()`); err != nil {
		return failure(err, "purge transfers")
	}
	if _, err := s.service.Exec(ctx, `select purge_invitations()`); err != nil {
		return failure(err, "purge invitations")
	}
	if _, err := s.service.Exec(ctx, `select purge_oauth()`); err != nil {
		return failure(err, "purge OAuth codes, tokens, devices and clients")
	}
	return nil
}

func dateOf(t time.Time) string { return t.Format(time.DateOnly) }
