package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/token"
	"siyuan-broker/tenants"
)

// Request is what is known about one HTTP request once its sender is: the only
// source of identity for everything behind. A legacy session's own context
// still names the token that began the session.
type Request struct {
	Claims   token.Claims
	Snapshot *admission.Snapshot
	Arrived  time.Time
	Session  string // legacy session id, "" in the modern era
	RPCID    string // JSON-RPC id of a single legacy message, in one form; "" if none

	agent    *agentServer
	session  *session // nil in the modern era
	running  *liveRequest
	budget   budget    // of a write that the hot lane looked at
	body     []byte    // of a POST
	messages messages  // in it, once the SDK's lane is taken
	born     uuid.UUID // version 7: of the legacy session
}

type requestKey struct{}

func requestFrom(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// requestOf is the Request of one message, in any era.
func requestOf(extra *mcp.RequestExtra) *Request {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	r, _ := extra.TokenInfo.Extra[extraKey].(*Request)
	return r
}

const extraKey = "request"

// tokenInfo hands the finished identity to the SDK. UserID stays the same when
// a token is refreshed.
func tokenInfo(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	r := requestFrom(ctx)
	if r == nil {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: r.Snapshot.Principal.Key(), Scopes: strings.Fields(r.Claims.Scope), Extra: map[string]any{extraKey: r}}, nil
}

// authenticate finds out who sends the request, and ends it the moment that
// principal is revoked or its agent expires.
//
// The order matters: the request is registered for cutting before the
// revocations and the snapshot are looked at, so that a revocation is met by
// one or the other.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.closed.Load() {
			s.unavailable(w, r, errClosed)
			return
		}
		who := &Request{Arrived: s.cfg.Now()}
		raw, err := bearer(r.Header)
		if err == nil {
			who.Claims, err = s.cfg.Tokens.Verify(r.Context(), raw)
		}
		if err != nil {
			s.refuseToken(w, r, err)
			return
		}
		ctx, running := s.live.track(r.Context(), who.Claims)
		defer running.end()
		if _, err := s.cfg.Tokens.Verify(ctx, raw); err != nil {
			s.refuseToken(w, r, err)
			return
		}
		if who.Snapshot, err = s.cfg.Snapshots.Get(ctx, who.Claims.Tenant, who.Claims.Agent); err != nil {
			s.refuseSnapshot(w, r, err)
			return
		}
		p := who.Snapshot.Principal
		running.on(p.Instance)
		switch reason := who.Snapshot.InForce(who.Arrived); {
		case p.Member != who.Claims.Member || reason.EndsAccess():
			s.challenge(w, r, "The access of this agent has ended: connect it again.")
			return
		case reason != admission.Permitted:
			refuse(w, http.StatusForbidden, codeRefused, reason.Error().Message+" "+reason.Error().Hint)
			return
		}
		if !s.scoped(who.Claims) {
			s.challengeScope(w, r)
			return
		}
		if until := who.Snapshot.Expires(); !until.IsZero() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, until.Sub(who.Arrived))
			defer cancel()
		}
		who.agent, who.running = s.agentFor(who.Snapshot), running
		s.touch(who)
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, requestKey{}, who)))
	})
}

var (
	errNoToken = errors.New("a bearer token is required")
	errClosed  = errors.New("shutting down")
)

// bearer is the token of a request: in the Authorization header, once, and
// nowhere else.
func bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", errNoToken
	}
	fields := strings.Fields(values[0])
	if len(fields) != 2 || !strings.EqualFold(fields[0], "Bearer") {
		return "", errNoToken
	}
	return fields[1], nil
}

func (s *Server) refuseToken(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, errNoToken):
		s.challenge(w, r, "A bearer token is required: sign in.")
	case errors.Is(err, token.ErrInvalid):
		s.cfg.Log.InfoContext(r.Context(), "token refused", "reason", err, "remote", r.RemoteAddr)
		s.challenge(w, r, "The token is not valid here, or no longer: sign in again.")
	default:
		s.unavailable(w, r, err)
	}
}

func (s *Server) refuseSnapshot(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, tenants.ErrNotFound) {
		s.challenge(w, r, "The access of this agent has ended: connect it again.")
		return
	}
	s.unavailable(w, r, err)
}

func (s *Server) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		s.cfg.Log.WarnContext(r.Context(), "request cannot be served now", "error", err)
	}
	w.Header().Set("Retry-After", "5")
	refuse(w, http.StatusServiceUnavailable, codeUnavailable, "The service cannot check who you are at the moment. Try again in a few seconds.")
}

// scoped reports whether a client's token has the scope without which there is
// nothing to do here. Personal tokens are bound to their agent alone.
func (s *Server) scoped(c token.Claims) bool {
	return c.ClientID == "" || len(s.cfg.Scopes) == 0 || slices.Contains(strings.Fields(c.Scope), s.cfg.Scopes[0])
}

// challenge answers 401 and says where to sign in.
func (s *Server) challenge(w http.ResponseWriter, r *http.Request, message string) {
	s.nameWayIn(w, r, "invalid_token")
	refuse(w, http.StatusUnauthorized, codeUnauthorized, message)
}

// challengeScope answers 403 and says which rights to ask for.
func (s *Server) challengeScope(w http.ResponseWriter, r *http.Request) {
	s.nameWayIn(w, r, "insufficient_scope")
	refuse(w, http.StatusForbidden, codeRefused, "The token gives no right to read notes: sign in again and ask for it.")
}

// nameWayIn says what is wrong with a token and how to come by a better one.
func (s *Server) nameWayIn(w http.ResponseWriter, r *http.Request, code string) {
	value := `Bearer error="` + code + `", resource_metadata="` + s.metadataURL(r) + `"`
	if len(s.cfg.Scopes) > 0 {
		value += `, scope="` + strings.Join(s.cfg.Scopes, " ") + `"`
	}
	w.Header().Set("WWW-Authenticate", value)
}
