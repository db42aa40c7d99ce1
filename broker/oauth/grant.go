package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"siyuan-broker/broker/token"
	"siyuan-broker/tenants"
)

// issued is the answer of the token endpoint.
type issued struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int64  `json:"expires_in"`
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"`
}

// Every exchange is one transaction of the tenant. It keeps what it does only
// if it comes to an end; what it finds out about a thief is kept too, and told
// as a refusal after it.

// exchange turns a consent into an agent and its first tokens. check says
// whether the consent may be fetched by whoever asks.
func (s *Server) exchange(ctx context.Context, tenant tenants.ID, hash tenants.SecretHash, check func(tenants.OAuthCode) error) (issued, error) {
	var out issued
	var stolen error
	err := s.cfg.Store.In(ctx, tenant, func(tx tenants.Tx) error {
		c, err := tx.OAuthCode(ctx, hash)
		if errors.Is(err, tenants.ErrNotFound) {
			return invalidGrant("The code is not valid, or no longer.")
		}
		if err != nil {
			return err
		}
		if err := check(c); err != nil {
			return err
		}
		now := s.now()
		if !c.UsedAt.IsZero() {
			stolen = invalidGrant("The code was used before. What came of it is revoked.")
			return s.endFamily(ctx, tx, c.Agent.ID, "agent.code_reused")
		}
		if !now.Before(c.ExpiresAt) {
			return invalidGrant("The code has expired. Codes last a minute.")
		}
		if err := roomForAgent(ctx, tx); err != nil {
			return err
		}
		agent, err := tx.CreateAgent(ctx, c.Agent)
		if errors.Is(err, tenants.ErrNotFound) {
			return invalidGrant("The person who agreed is no longer a member.")
		}
		if err != nil {
			return err
		}
		if err := tx.UseOAuthCode(ctx, hash, agent.ID, now); err != nil {
			return err
		}
		if err := audit(ctx, tx, agent.MemberID, "agent.create", agent.ID); err != nil {
			return err
		}
		out, err = s.issue(ctx, tx, tenant, agent, c.Resource)
		return err
	})
	return out, errors.Join(stolen, err)
}

// refresh exchanges a refresh token. One that was exchanged a moment ago still
// works, because processes that share it ask at the same time, and answers get
// lost; afterwards it is a stolen one.
func (s *Server) refresh(ctx context.Context, tenant tenants.ID, hash tenants.SecretHash, check func(tenants.Agent, tenants.RefreshToken) error) (issued, error) {
	var out issued
	var stolen error
	err := s.cfg.Store.In(ctx, tenant, func(tx tenants.Tx) error {
		r, err := tx.RefreshToken(ctx, hash)
		if errors.Is(err, tenants.ErrNotFound) {
			return invalidGrant("The refresh token is not valid, or no longer. Sign in again.")
		}
		if err != nil {
			return err
		}
		agent, err := tx.Agent(ctx, r.AgentID)
		if err != nil {
			return err
		}
		if err := check(agent, r); err != nil {
			return err
		}
		now := s.now()
		switch {
		case !agent.RevokedAt.IsZero():
			return invalidGrant("The access of this agent was taken back. Sign in again.")
		case !agent.ExpiresAt.IsZero() && !now.Before(agent.ExpiresAt), !now.Before(r.ExpiresAt):
			return invalidGrant("The access of this agent has expired. Sign in again.")
		case !r.SpentAt.IsZero() && now.Sub(r.SpentAt) > refreshGrace:
			stolen = invalidGrant("The refresh token was used before. All tokens of its family are revoked. Sign in again.")
			return s.endFamily(ctx, tx, agent.ID, "agent.refresh_reused")
		}
		if ok, after := s.cfg.Limit(ctx, "oauth refresh", tenant.String()+"/"+agent.ID.String(), s.cfg.Limits.RefreshPerAgent, time.Minute); !ok {
			return tooOften(after)
		}
		if err := tx.SpendRefreshToken(ctx, hash, now); err != nil {
			return err
		}
		out, err = s.issue(ctx, tx, tenant, agent, r.Resource)
		return err
	})
	return out, errors.Join(stolen, err)
}

// issue signs an access token for an agent and stores a new refresh token.
func (s *Server) issue(ctx context.Context, tx tenants.Tx, tenant tenants.ID, agent tenants.Agent, resource string) (issued, error) {
	now := s.now()
	life, until := accessLife, now.Add(refreshLife)
	if end := agent.ExpiresAt; !end.IsZero() {
		life = min(life, end.Sub(now).Truncate(time.Second))
		if end.Before(until) {
			until = end
		}
	}
	if life <= 0 {
		return issued{}, invalidGrant("The access of this agent has expired. Sign in again.")
	}
	scope := scopeOf(agent.Ceiling)
	raw, claims, err := s.cfg.Tokens.Issue(token.Request{
		Tenant: tenant, Member: agent.MemberID, Agent: agent.ID, Resource: resource, ClientID: agent.ClientID, Scope: scope, Life: life,
	})
	if err != nil {
		return issued{}, err
	}
	refresh, err := s.secret(refreshPrefix, tenant)
	if err != nil {
		return issued{}, err
	}
	err = tx.PutRefreshToken(ctx, tenants.RefreshToken{Hash: tenants.HashSecret(refresh), AgentID: agent.ID, Resource: resource, Scope: scope, ExpiresAt: until})
	if err != nil {
		return issued{}, err
	}
	return issued{Access: raw, Type: "Bearer", ExpiresIn: int64(claims.ExpiresAt.Sub(claims.IssuedAt) / time.Second), Refresh: refresh, Scope: scope}, nil
}

// endFamily revokes an agent whose code or token turned up in two hands.
func (s *Server) endFamily(ctx context.Context, tx tenants.Tx, agent tenants.ID, verb string) error {
	s.log.WarnContext(ctx, "an agent was revoked because a secret of it was used twice", "agent", agent, "verb", verb)
	if err := tx.RevokeAgent(ctx, agent); err != nil {
		return err
	}
	return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "system", Verb: verb, Object: "agent:" + agent.String()})
}

func audit(ctx context.Context, tx tenants.Tx, member tenants.ID, verb string, agent tenants.ID) error {
	return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "member", ActorID: member, Verb: verb, Object: "agent:" + agent.String()})
}

// errTooManyAgents means that the tenant has as many agents as it may have.
var errTooManyAgents = refuse("access_denied", "This tenant has as many agents as it may have. Revoke one that is not needed.")

// roomForAgent checks the tenant's limit.
func roomForAgent(ctx context.Context, tx tenants.Tx) error {
	t, err := tx.Tenant(ctx)
	if err != nil || t.Limits.MaxAgents == 0 {
		return err
	}
	all, err := tx.Agents(ctx, tenants.AgentFilter{})
	if err == nil && len(all) >= t.Limits.MaxAgents {
		return errTooManyAgents
	}
	return err
}

func invalidGrant(description string) *refusal { return refuse("invalid_grant", "%s", description) }

// ServeToken answers the token endpoint.
func (s *Server) ServeToken(w http.ResponseWriter, r *http.Request) {
	if !s.open(w, r, http.MethodPost) {
		return
	}
	out, err := s.token(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, out)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) (issued, error) {
	if err := s.limit(r, "token", s.address(r), s.cfg.Limits.TokenPerAddress, time.Minute); err != nil {
		return issued{}, err
	}
	v, err := form(w, r)
	if err != nil {
		return issued{}, err
	}
	client, err := clientID(r, v)
	if err != nil {
		return issued{}, err
	}
	if err := s.known(r.Context(), client); err != nil {
		return issued{}, err
	}
	var out issued
	switch v.Get("grant_type") {
	case grantCode:
		out, err = s.tokenByCode(r.Context(), client, v)
	case grantRefresh:
		out, err = s.tokenByRefresh(r.Context(), client, v)
	case grantDevice:
		out, err = s.tokenByDevice(r.Context(), client, v)
	default:
		err = refuse("unsupported_grant_type", "Use authorization_code, refresh_token or %s.", grantDevice)
	}
	if err == nil {
		s.used(r.Context(), client)
	}
	return out, err
}

func (s *Server) tokenByCode(ctx context.Context, client string, v url.Values) (issued, error) {
	code, verifier := v.Get("code"), v.Get("code_verifier")
	tenant, ok := tenantOf(codePrefix, code)
	if !ok {
		return issued{}, invalidGrant("The code is not valid, or no longer.")
	}
	return s.exchange(ctx, tenant, tenants.HashSecret(code), func(c tenants.OAuthCode) error {
		switch {
		case c.ClientID != client:
			return invalidGrant("The code was given to another client.")
		case v.Has("redirect_uri") && v.Get("redirect_uri") != c.RedirectURI:
			return invalidGrant("redirect_uri is not the one the code was sent to.")
		case !verifies(verifier, c.Challenge):
			return invalidGrant("code_verifier does not fit the code_challenge.")
		}
		return s.sameResource(v["resource"], c.Resource)
	})
}

func (s *Server) tokenByRefresh(ctx context.Context, client string, v url.Values) (issued, error) {
	secret := v.Get("refresh_token")
	tenant, ok := tenantOf(refreshPrefix, secret)
	if !ok {
		return issued{}, invalidGrant("The refresh token is not valid, or no longer. Sign in again.")
	}
	return s.refresh(ctx, tenant, tenants.HashSecret(secret), func(a tenants.Agent, r tenants.RefreshToken) error {
		if a.ClientID != client {
			return invalidGrant("The refresh token was given to another client.")
		}
		return s.sameResource(v["resource"], r.Resource)
	})
}

// sameResource checks the resource of a token request against that of the
// grant; it may be left out.
func (s *Server) sameResource(named []string, granted string) error {
	if len(named) == 0 {
		return nil
	}
	if asked, ok := s.resource(named); !ok || asked != granted {
		return refuse("invalid_target", "resource is not the one that was agreed to.")
	}
	return nil
}

// verifies checks a PKCE verifier (RFC 7636, S256). A grant without a challenge
// has no verifier that fits.
func verifies(verifier, challenge string) bool {
	if len(verifier) < 43 || len(verifier) > 128 || challenge == "" {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// isChallenge reports whether s can be an S256 challenge.
func isChallenge(s string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == sha256.Size
}

// newCode stores a consent and returns the code that fetches it.
func (s *Server) newCode(ctx context.Context, tenant tenants.ID, c tenants.OAuthCode) (string, error) {
	code, err := s.secret(codePrefix, tenant)
	if err != nil {
		return "", err
	}
	c.Hash, c.ExpiresAt = tenants.HashSecret(code), s.now().Add(codeLife)
	if err := s.cfg.Store.In(ctx, tenant, func(tx tenants.Tx) error { return tx.PutOAuthCode(ctx, c) }); err != nil {
		return "", fmt.Errorf("keep consent: %w", err)
	}
	return code, nil
}
