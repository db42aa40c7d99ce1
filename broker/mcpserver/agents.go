package mcpserver

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/tenants"
)

// profilesMax bounds the profiles kept, about 200 KB each.
const profilesMax = 256

// listTTL is how long clients may keep a list without asking; a change is
// pushed to those that listen.
const listTTL = 30_000 // milliseconds

type agentKey struct{ tenant, agent tenants.ID }

// agentServer is the SDK server of one agent, with exactly its lists. One each,
// because the SDK can tell only all sessions of a server that a list changed,
// and because revoking an agent means closing its sessions and no others.
type agentServer struct {
	key       agentKey
	principal admission.Principal
	mcp       *mcp.Server

	touched, audited atomic.Int64           // when it was last noted down, in Unix nanoseconds
	meta             atomic.Pointer[[]byte] // see knowsMeta

	mu       sync.Mutex
	snapshot *admission.Snapshot // the lists are those of
	shown    shown
}

func (a *agentServer) revokedBy(r tenants.Revocation) bool {
	return ends(r, a.principal.Tenant, a.principal.Member, a.principal.Agent, a.principal.Instance)
}

// agentFor returns the server of a principal, showing what the given snapshot
// lets them use.
func (s *Server) agentFor(snap *admission.Snapshot) *agentServer {
	p := snap.Principal
	key := agentKey{p.Tenant, p.Agent}
	s.agentsMu.Lock()
	a, ok := s.agents.Get(key)
	if !ok {
		a = &agentServer{key: key, principal: p, mcp: s.newServer()}
		s.agents.Add(key, a)
	}
	s.agentsMu.Unlock()
	s.show(a, snap)
	return a
}

func (s *Server) implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: "siyuan-broker", Title: "SiYuan notes", Version: s.cfg.Version}
}

func (s *Server) newServer() *mcp.Server {
	srv := s.cfg.build(s.implementation(), &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{ListChanged: true}, Prompts: &mcp.PromptCapabilities{ListChanged: true},
		},
		CompletionHandler: s.completion,
		SetCacheable:      cacheable,
	})
	srv.AddReceivingMiddleware(s.bound, s.answerUnlisted, s.withSkills, s.introduce)
	s.addSkills(srv)
	return srv
}

// introduce puts into the answers that begin a connection what depends on who
// asks: the instructions, and an extension that the tenant has on.
func (s *Server) introduce(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		who := requestOf(req.GetExtra())
		if err != nil || who == nil {
			return result, err
		}
		var caps *mcp.ServerCapabilities
		switch r := result.(type) {
		case *mcp.InitializeResult:
			r.Instructions, caps = s.profileOf(who.Snapshot).instructions, r.Capabilities
		case *mcp.DiscoverResult:
			r.Instructions, caps = s.profileOf(who.Snapshot).instructions, r.Capabilities
		}
		if caps != nil && who.Snapshot.Settings.SkillsExtension {
			caps.AddExtension(skillsExtension, nil)
		}
		return result, nil
	}
}

// cacheable says how long clients may keep an answer. The default scope is
// "public", which would let a proxy share one tenant's list with another. What
// comes from notes is read anew.
func cacheable(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	c.CacheScope, c.TTLMs = "private", listTTL
	if read, ok := req.(*mcp.ReadResourceRequest); ok {
		if _, live := disclosure.CallAt(read.Params.URI); live {
			c.TTLMs = 0
		}
	}
}

// show makes a server's lists those of a snapshot, unless a newer one was shown
// already: requests overtake each other. The SDK tells open sessions when that
// changes anything.
func (s *Server) show(a *agentServer, snap *admission.Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.snapshot == snap || a.snapshot != nil && snap.PolicyVersion < a.snapshot.PolicyVersion {
		return
	}
	a.snapshot = snap
	s.showProfile(a.mcp, &a.shown, s.profileOf(snap))
}

// changes collects the tenants whose open sessions have to be looked at.
type changes struct {
	mu      *sync.Mutex
	tenants map[tenants.ID]bool // at most changesMax, then the zero id stands for all
	wake    chan struct{}       // one pending wake-up is enough
}

const changesMax = 1024

func newChanges() changes {
	return changes{&sync.Mutex{}, map[tenants.ID]bool{}, make(chan struct{}, 1)}
}

// Changed notes that the rights in a tenant may have changed, or with the zero
// id in any. Open sessions are told soon after. It does not block.
func (s *Server) Changed(tenant tenants.ID) {
	s.changes.mu.Lock()
	if len(s.changes.tenants) >= changesMax {
		tenant = tenants.ID{}
	}
	s.changes.tenants[tenant] = true
	s.changes.mu.Unlock()
	select {
	case s.changes.wake <- struct{}{}:
	default:
	}
}

func (s *Server) followChanges(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changes.wake:
		}
		s.changes.mu.Lock()
		changed := maps.Clone(s.changes.tenants)
		clear(s.changes.tenants)
		s.changes.mu.Unlock()
		for _, a := range s.agents.Values() {
			if ctx.Err() == nil && (changed[a.key.tenant] || changed[tenants.ID{}]) && a.inUse() {
				s.refresh(ctx, a)
			}
		}
	}
}

func (a *agentServer) inUse() bool {
	for range a.mcp.Sessions() {
		return true
	}
	return false
}

// refresh shows an open session's agent what it may use now. When that cannot
// be learned, its next request will.
func (s *Server) refresh(ctx context.Context, a *agentServer) {
	snap, err := s.cfg.Snapshots.Get(ctx, a.key.tenant, a.key.agent)
	switch {
	case err != nil:
		s.cfg.Log.WarnContext(ctx, "open sessions were not told of a change", "tenant", a.key.tenant, "agent", a.key.agent, "error", err)
	case snap.InForce(s.cfg.Now()) != admission.Permitted:
		s.agents.Remove(a.key)
	default:
		s.show(a, snap)
	}
}

// closeSessions ends an agent's sessions without waiting: closing one waits for
// its running calls.
func (s *Server) closeSessions(a *agentServer) {
	s.sessions.remove(func(x *session) bool { return x.agent == a }) // closed below with the modern ones
	sessions := slices.Collect(a.mcp.Sessions())
	if len(sessions) == 0 {
		return
	}
	s.live.cut(func(l *liveRequest) bool { return l.claims.Tenant == a.key.tenant && l.claims.Agent == a.key.agent })
	s.goWork(func() {
		for _, ss := range sessions {
			if err := ss.Close(); err != nil {
				s.cfg.Log.Debug("closing a session", "error", err)
			}
		}
	})
}
