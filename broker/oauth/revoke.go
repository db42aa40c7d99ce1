package oauth

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"siyuan-broker/broker/token"
	"siyuan-broker/tenants"
)

// ServeRevoke takes a token back at its client's wish (RFC 7009): with a refresh
// token the agent and everything of it, with an access token that one. What is
// no token of ours is revoked already.
func (s *Server) ServeRevoke(w http.ResponseWriter, r *http.Request) {
	if !s.open(w, r, http.MethodPost) {
		return
	}
	if err := s.revokeToken(w, r); err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, struct{}{})
}

func (s *Server) revokeToken(w http.ResponseWriter, r *http.Request) error {
	if err := s.limit(r, "token", s.address(r), s.cfg.Limits.TokenPerAddress, time.Minute); err != nil {
		return err
	}
	v, err := form(w, r)
	if err != nil {
		return err
	}
	client, err := clientID(r, v)
	if err != nil {
		return err
	}
	raw := v.Get("token")
	switch {
	case raw == "":
		return refuse("invalid_request", "token is missing.")
	case strings.HasPrefix(raw, refreshPrefix):
		err = s.revokeByRefresh(r.Context(), client, raw)
	default:
		err = s.revokeAccess(r.Context(), client, raw)
	}
	if err != nil {
		return err
	}
	if err := s.cfg.FanOut(); err != nil {
		// It is revoked, but other nodes may not know in time: a client that
		// must be sure asks again.
		s.log.ErrorContext(r.Context(), "a token was revoked, but other nodes may not hear of it", "error", err)
		return tryLater()
	}
	return nil
}

func (s *Server) revokeByRefresh(ctx context.Context, client, raw string) error {
	tenant, ok := tenantOf(refreshPrefix, raw)
	if !ok {
		return nil
	}
	return s.cfg.Store.In(ctx, tenant, func(tx tenants.Tx) error {
		t, err := tx.RefreshToken(ctx, tenants.HashSecret(raw))
		if errors.Is(err, tenants.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		agent, err := tx.Agent(ctx, t.AgentID)
		if err != nil {
			return err
		}
		if agent.ClientID != client {
			return refuse("invalid_request", "The token was given to another client.")
		}
		if !agent.RevokedAt.IsZero() {
			return nil
		}
		if err := tx.RevokeAgent(ctx, agent.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "agent", ActorID: agent.ID, Verb: "agent.revoke", Object: "agent:" + agent.ID.String()})
	})
}

func (s *Server) revokeAccess(ctx context.Context, client, raw string) error {
	c, err := s.cfg.Verifier.Verify(ctx, raw)
	if errors.Is(err, token.ErrInvalid) {
		return nil
	}
	if err != nil {
		return err
	}
	if c.ClientID != client {
		return refuse("invalid_request", "The token was given to another client.")
	}
	return s.cfg.Store.In(ctx, c.Tenant, func(tx tenants.Tx) error { return tx.RevokeToken(ctx, c.ID, c.ExpiresAt) })
}
