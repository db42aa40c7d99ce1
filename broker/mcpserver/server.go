package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/tenants"
)

// modernEra is the first protocol version without sessions.
const modernEra = "2026-07-28"

// Server answers /mcp. Make it with New, connect Changed and Revoked, Start it,
// and Close it before the HTTP server is shut down: open streams would block
// that.
type Server struct {
	cfg       Config
	addresses []address
	origins   map[string]bool

	chain                 http.Handler // everything behind the checks on the request itself
	sdk                   http.Handler // the SDK's lane, behind its own idea of identity
	modernSSE, modernJSON http.Handler
	modernHead            string // how every result begins in the era without sessions

	agents   *lru.Cache[agentKey, *agentServer]
	agentsMu sync.Mutex // held to get or create
	profiles *lru.Cache[[sha256.Size]byte, *profile]

	sessions *sessionTable
	tickets  *ticketKeys
	ended    *endedSet
	chores   chan chore

	live    live
	changes changes
	cancel  context.CancelFunc
	closed  atomic.Bool

	workMu  sync.Mutex
	work    sync.WaitGroup // the workers and sessions being closed
	stopped bool           // nothing is added to work any more
}

// New makes a Server.
func New(c Config) (*Server, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: c, origins: map[string]bool{},
		sessions: newSessionTable(c.MaxSessions, c.MaxTenantSessions, c.MaxNodeSessions),
		tickets:  newTicketKeys(c.Keys, c.Now), ended: newEndedSet(), chores: make(chan chore, choresMax),
		live: newLive(), changes: newChanges(),
	}
	for _, u := range c.PublicURLs {
		a, err := parseAddress(u)
		if err != nil {
			return nil, err
		}
		s.addresses = append(s.addresses, a)
		s.origins[a.origin] = true
	}
	for _, o := range c.Origins {
		s.origins[o] = true
	}
	var err error
	if s.agents, err = lru.NewWithEvict(c.MaxAgents, func(_ agentKey, a *agentServer) { s.closeSessions(a) }); err != nil {
		return nil, fmt.Errorf("cache of %d agents: %w", c.MaxAgents, err)
	}
	if s.profiles, err = lru.New[[sha256.Size]byte, *profile](profilesMax); err != nil {
		return nil, fmt.Errorf("cache of profiles: %w", err)
	}
	name, err := json.Marshal(s.implementation())
	if err != nil {
		return nil, fmt.Errorf("name of this server: %w", err)
	}
	s.modernHead = `"_meta":{"` + mcp.MetaKeyServerInfo + `":` + string(name) + `},`
	s.mount()
	return s, nil
}

// mount builds the SDK's handlers of the era without sessions; serveLegacy is
// the other. They get no logger: what the SDK logs about messages could quote
// them. Two are needed: progress needs a stream, where everything else is
// better off as plain JSON.
func (s *Server) mount() {
	get := func(r *http.Request) *mcp.Server {
		if who := requestFrom(r.Context()); who != nil {
			return who.agent.mcp
		}
		return nil
	}
	// Host is checked here already, against the public URLs.
	modern := mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true,
		MaxRequestBodyBytes: s.cfg.MaxBody,
	}
	s.modernSSE = mcp.NewStreamableHTTPHandler(get, &modern)
	asJSON := modern
	asJSON.JSONResponse = true
	s.modernJSON = mcp.NewStreamableHTTPHandler(get, &asJSON)
	// The SDK takes the caller's identity only from its own middleware.
	s.sdk = auth.RequireBearerToken(tokenInfo, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(
		http.HandlerFunc(s.serveSDK))
	s.chain = s.authenticate(http.HandlerFunc(s.dispatch))
}

// Start begins to follow changes for open sessions. It returns when the ended
// sessions are known, or cannot be read now.
func (s *Server) Start(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	cursor := s.readEnded(ctx, "")
	s.goWork(func() { s.followEnded(ctx, cursor) })
	s.goWork(func() { s.followChanges(ctx) })
	s.goWork(func() { s.doChores(ctx) })
}

// goWork runs what Close waits for. After that it runs in the caller.
func (s *Server) goWork(f func()) {
	s.workMu.Lock()
	stopped := s.stopped
	if !stopped {
		s.work.Go(f)
	}
	s.workMu.Unlock()
	if stopped {
		f()
	}
}

// Close refuses new requests, cuts every open request and session and waits for
// what it started. It may be called twice, and without Start.
func (s *Server) Close() {
	s.closed.Store(true)
	if s.cancel != nil {
		s.cancel()
	}
	s.live.cut(func(*liveRequest) bool { return true })
	s.closeAll(s.sessions.close())
	s.agents.Purge()
	s.workMu.Lock()
	s.stopped = true
	s.workMu.Unlock()
	s.work.Wait()
}

// Sessions is the number of legacy sessions in memory.
func (s *Server) Sessions() int { return s.sessions.len() }

// dispatch chooses the lane.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	who := requestFrom(r.Context())
	if who == nil {
		refuse(w, http.StatusInternalServerError, codeInternal, "The request has no principal.")
		return
	}
	if !s.readBody(w, r, who) {
		return
	}
	if !s.cfg.NoHotLane && s.serveHot(w, r, who) {
		return
	}
	if s.readMessages(w, who) {
		s.sdk.ServeHTTP(w, r)
	}
}

// serveSDK chooses the handler by era. A request without a version is an
// initialize or an old client.
func (s *Server) serveSDK(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Mcp-Protocol-Version") < modernEra {
		s.serveLegacy(w, r, requestFrom(r.Context()))
		return
	}
	decodeName(r.Header)
	switch r.Header.Get("Mcp-Method") {
	case "tools/call", "subscriptions/listen":
		s.serveStream(w, r, s.modernSSE)
	default:
		s.modernJSON.ServeHTTP(w, r)
	}
}

// Revoked cuts what a revocation ends: running requests and streams of the
// principal, and its sessions. It does not block. Snapshots must be dropped
// before it is called, or a request admitted in between would not be cut.
func (s *Server) Revoked(r tenants.Revocation) {
	s.live.cut(func(l *liveRequest) bool { return l.revokedBy(r) })
	if r.Kind == tenants.RevokedToken {
		return // the agent's other tokens go on
	}
	for _, a := range s.agents.Values() {
		if a.revokedBy(r) {
			s.agents.Remove(a.key)
		}
	}
}
