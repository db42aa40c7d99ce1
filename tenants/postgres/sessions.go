package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

// EndSession notes that an agent's session is over.
func (s *Store) EndSession(ctx context.Context, e tenants.EndedSession) error {
	err := s.through(ctx, asTenant, e.TenantID.String(), func(b *pgx.Batch) {
		b.Queue(`insert into ended_sessions (tenant_id, session_id, agent_id, expires_at) values ($1, $2, $3, $4)
			on conflict do nothing`, e.TenantID, e.SessionID, e.AgentID, e.ExpiresAt)
	})
	if err != nil {
		return failure(err, "end session %s of tenant %s", e.SessionID, e.TenantID)
	}
	return nil
}

// EndedSessions lists the installation's ended sessions after a sequence number.
func (s *Store) EndedSessions(ctx context.Context, after int64, limit int) ([]tenants.EndedSession, error) {
	rows, err := s.service.Query(ctx, `select seq, tenant_id, agent_id, session_id, expires_at from ended_session_feed($1, $2)`, after, page(limit))
	if err != nil {
		return nil, failure(err, "ended sessions after %d", after)
	}
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (e tenants.EndedSession, err error) {
		err = r.Scan(&e.Seq, &e.TenantID, &e.AgentID, &e.SessionID, intoTime{&e.ExpiresAt})
		return e, err
	})
	if err != nil {
		return nil, failure(err, "ended sessions after %d", after)
	}
	return all, nil
}
