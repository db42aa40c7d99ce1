package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/tenants"
)

// serveLegacy serves the eras with sessions, in place of the SDK's handler,
// which knows only sessions of its own process.
func (s *Server) serveLegacy(w http.ResponseWriter, r *http.Request, who *Request) {
	if v := r.Header.Get("Mcp-Protocol-Version"); v != "" && !slices.Contains(legacyEras, v) {
		refuse(w, http.StatusBadRequest, codeRefused, "This Mcp-Protocol-Version is not known. Known are "+modernEra+", "+strings.Join(legacyEras, ", ")+".")
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.legacyPost(w, r, who)
	case http.MethodGet:
		s.legacyGet(w, r, who)
	case http.MethodDelete:
		s.legacyDelete(w, r, who)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE, OPTIONS")
		refuse(w, http.StatusMethodNotAllowed, codeRefused, "This method is not answered here.")
	}
}

func (s *Server) legacyPost(w http.ResponseWriter, r *http.Request, who *Request) {
	if json, events := accepts(r.Header); !json || !events {
		refuse(w, http.StatusNotAcceptable, codeRefused, "Accept must name both application/json and text/event-stream.")
		return
	}
	m, single := who.messages, who.messages.single()
	if single != nil && single.Method == methodInitialize && single.IsCall() {
		s.begin(w, r, who, single) // whatever session it comes with is history
		return
	}
	if single != nil && r.Header.Get("Mcp-Session-Id") == "" && r.Header.Get("Mcp-Protocol-Version") == "" && hasMeta(single) {
		s.modernJSON.ServeHTTP(w, r) // a modern request without its header: the SDK says so
		return
	}
	key, t, ok := s.sessionOf(w, r, who)
	if !ok {
		return
	}
	if m.batch && t.era > lastBatchEra {
		refuse(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "Batches are not part of this protocol version: send one message a request.")
		return
	}
	directed, others := m.split()
	taken := false
	for i, msg := range directed.all {
		one, err := s.direct(r.Context(), key, msg, directed.raw[i])
		if err != nil {
			s.unavailable(w, r, err)
			return
		}
		taken = taken || one
	}
	switch {
	case len(others.all) > 0:
		s.inSession(w, r, who, key, t, others)
	case taken:
		w.WriteHeader(http.StatusAccepted)
	default:
		refuse(w, http.StatusNotFound, codeNoSession, "Session not found: nothing waits for this message.")
	}
}

// begin answers initialize with a new session.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, who *Request, m *jsonrpc.Request) {
	var params struct {
		Version      string                 `json:"protocolVersion"`
		Capabilities mcp.ClientCapabilities `json:"capabilities"`
	}
	_ = json.Unmarshal(m.Params, &params) // what is wrong with it, the SDK says
	t := ticket{
		id: tenants.NewID(), tenant: who.Claims.Tenant, member: who.Claims.Member, agent: who.Claims.Agent,
		era: legacyEras[0], expires: who.Arrived.Add(sessionLife),
	}
	if slices.Contains(legacyEras, params.Version) {
		t.era = params.Version
	}
	if e := params.Capabilities.Elicitation; e != nil {
		t.form, t.url = e.Form != nil || e.URL == nil, e.URL != nil
	}
	id, err := s.tickets.seal(r.Context(), t)
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	key := sessionKey{t.tenant, id}
	sess, ok := s.use(w, r, key, who, false, func() (*session, error) { return connect(key, t, who.agent, nil) })
	if !ok {
		return
	}
	s.serveStream(w, r, sess.transport)
	s.sessions.done(sess, false, s.cfg.Now())
	if sess.mcp.InitializeParams() == nil { // refused
		s.closeAll(s.sessions.remove(func(x *session) bool { return x == sess }))
	}
}

// inSession has a session answer messages.
func (s *Server) inSession(w http.ResponseWriter, r *http.Request, who *Request, key sessionKey, t ticket, m messages) {
	who.Session, who.born = key.id, t.id
	if one := m.single(); one != nil {
		who.RPCID = rpcID(one)
	}
	sess, ok := s.use(w, r, key, who, false, func() (*session, error) { return connect(key, t, who.agent, restored(t)) })
	if !ok {
		return
	}
	defer func() { s.sessions.done(sess, false, s.cfg.Now()) }()
	setBody(r, m.body())
	if m.hasCall() {
		s.serveStream(w, r, sess.transport)
		return
	}
	sess.transport.ServeHTTP(w, r)
}

// legacyGet keeps a stream open for what the server says by itself.
func (s *Server) legacyGet(w http.ResponseWriter, r *http.Request, who *Request) {
	if _, events := accepts(r.Header); !events {
		refuse(w, http.StatusNotAcceptable, codeRefused, "Accept must name text/event-stream.")
		return
	}
	key, t, ok := s.sessionOf(w, r, who)
	if !ok {
		return
	}
	who.Session = key.id
	sess, ok := s.use(w, r, key, who, true, func() (*session, error) { return connect(key, t, who.agent, restored(t)) })
	if !ok {
		return
	}
	defer func() { s.sessions.done(sess, true, s.cfg.Now()) }()
	ctx, cancel := context.WithTimeout(r.Context(), t.expires.Sub(who.Arrived))
	defer cancel()
	s.serveStream(w, r.WithContext(ctx), sess.transport)
}

// legacyDelete ends a session on every node.
func (s *Server) legacyDelete(w http.ResponseWriter, r *http.Request, who *Request) {
	_, t, ok := s.sessionOf(w, r, who)
	if !ok {
		return
	}
	e := Ended{t.tenant, t.agent, t.id, t.expires}
	if err := s.cfg.Ended.End(r.Context(), e); err != nil {
		s.unavailable(w, r, err)
		return
	}
	s.SessionEnded(e)
	w.WriteHeader(http.StatusNoContent)
}

// sessionOf finds out which session a request belongs to, or refuses it.
func (s *Server) sessionOf(w http.ResponseWriter, r *http.Request, who *Request) (sessionKey, ticket, bool) {
	key := sessionKey{who.Claims.Tenant, r.Header.Get("Mcp-Session-Id")}
	if key.id == "" {
		refuse(w, http.StatusBadRequest, codeRefused, "An Mcp-Session-Id is required: send initialize first.")
		return key, ticket{}, false
	}
	t, err := s.ticketOf(r.Context(), key)
	switch {
	case err == nil && (t.tenant != who.Claims.Tenant || t.member != who.Claims.Member || t.agent != who.Claims.Agent):
		s.auditForeign(r, who, t)
		err = errNoSession
	case err != nil && !errors.Is(err, errNoSession):
		s.unavailable(w, r, err)
		return key, ticket{}, false
	}
	if err != nil {
		s.cfg.Log.InfoContext(r.Context(), "no such session", "tenant", who.Claims.Tenant, "agent", who.Claims.Agent, "remote", r.RemoteAddr)
		refuse(w, http.StatusNotFound, codeNoSession, "Session not found: initialize again.")
		return key, ticket{}, false
	}
	return key, t, true
}

// ticketOf is what a session id says if it is in force: ours, not expired, not
// ended. Whose it is, the caller has to check.
func (s *Server) ticketOf(ctx context.Context, key sessionKey) (ticket, error) {
	t, ok := s.sessions.ticketFor(key)
	if !ok {
		var err error
		if t, err = s.tickets.open(ctx, key.id); err != nil {
			return ticket{}, err
		}
	}
	if !s.cfg.Now().Before(t.expires) || s.ended.has(&t) {
		return ticket{}, errNoSession
	}
	return t, nil
}

// use takes a session from the table for a request, opening it where needed, or
// refuses. Whatever ends the session from then on ends the request.
func (s *Server) use(w http.ResponseWriter, r *http.Request, key sessionKey, who *Request, stream bool, open func() (*session, error)) (*session, bool) {
	sess, gone, err := s.sessions.use(key, who.agent, stream, s.cfg.Now(), open)
	s.closeAll(gone)
	switch {
	case errors.Is(err, errFull):
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusTooManyRequests, codeUnavailable, "Too many sessions are at work at once. End some, or try again in a few seconds.")
		return nil, false
	case err != nil:
		s.unavailable(w, r, err)
		return nil, false
	}
	who.session = sess
	who.running.in(sess)
	if s.ended.has(&sess.ticket) { // ended in the meantime
		s.sessions.done(sess, stream, s.cfg.Now())
		s.closeAll(s.sessions.remove(func(x *session) bool { return x == sess }))
		refuse(w, http.StatusNotFound, codeNoSession, "Session not found: initialize again.")
		return nil, false
	}
	return sess, true
}

// connect opens a session on an agent's server; without a state it awaits
// initialize.
func connect(key sessionKey, t ticket, agent *agentServer, state *mcp.ServerSessionState) (*session, error) {
	conn := newSessionConn()
	transport := &sessionTransport{&mcp.StreamableServerTransport{SessionID: key.id}, conn}
	// No request's context: a session must not know the token that opened it.
	ss, err := agent.mcp.Connect(context.Background(), transport, &mcp.ServerSessionOptions{State: state})
	if err != nil {
		return nil, err
	}
	return &session{key: key, ticket: t, agent: agent, conn: conn, transport: transport, mcp: ss}, nil
}

// restored is the state of a session as its id tells it.
func restored(t ticket) *mcp.ServerSessionState {
	caps := &mcp.ClientCapabilities{}
	if t.form || t.url {
		caps.Elicitation = &mcp.ElicitationCapabilities{}
	}
	if t.form {
		caps.Elicitation.Form = &mcp.FormElicitationCapabilities{}
	}
	if t.url {
		caps.Elicitation.URL = &mcp.URLElicitationCapabilities{}
	}
	return &mcp.ServerSessionState{
		InitializeParams:          &mcp.InitializeParams{ProtocolVersion: t.era, Capabilities: caps, ClientInfo: &mcp.Implementation{}},
		InitializedParams:         &mcp.InitializedParams{},
		NegotiatedProtocolVersion: t.era,
		LogLevel:                  "info",
	}
}

// accepts reports what the Accept headers of a request allow.
func accepts(h http.Header) (json, events bool) {
	for value := range strings.SplitSeq(strings.Join(h.Values("Accept"), ","), ",") {
		media, params, err := mime.ParseMediaType(value)
		if err != nil || cmp.Or(params["q"], "1") == "0" {
			continue
		}
		json = json || media == "application/json" || media == "application/*" || media == "*/*"
		events = events || media == "text/event-stream" || media == "text/*" || media == "*/*"
	}
	return json, events
}
