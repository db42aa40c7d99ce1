package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"siyuan-broker/tenants"
)

const (
	choresMax    = 256
	choreTimeout = 5 * time.Second
	touchEvery   = time.Minute      // of one agent
	auditEvery   = 10 * time.Second // of one agent; the rest is in the log
	sweepEvery   = time.Minute
	rotateLook   = 6 * time.Hour
)

// Book keeps what happened to agents; the store does, see tenants.Store.
type Book interface {
	// TouchAgent notes when an agent was last used.
	TouchAgent(ctx context.Context, tenant, agent tenants.ID, at time.Time) error
	// Audit adds an entry to a tenant's audit log.
	Audit(ctx context.Context, tenant tenants.ID, e tenants.AuditEntry) error
}

// unread is the Book where none is kept.
type unread struct{}

func (unread) TouchAgent(context.Context, tenants.ID, tenants.ID, time.Time) error { return nil }
func (unread) Audit(context.Context, tenants.ID, tenants.AuditEntry) error         { return nil }

// chore is work that no request waits for.
type chore struct {
	what string
	do   func(context.Context) error
}

// later queues a chore; a full queue loses it.
func (s *Server) later(c chore) bool {
	select {
	case s.chores <- c:
		return true
	default:
		s.cfg.Log.Warn("too much to note down; lost", "what", c.what)
		return false
	}
}

// doChores works off the queue and looks after sessions and keys, until ctx
// ends and the queue is empty.
func (s *Server) doChores(ctx context.Context) {
	sweep := time.NewTicker(min(sweepEvery, max(s.cfg.SessionIdle/2, time.Millisecond)))
	defer sweep.Stop()
	rotate := time.NewTicker(rotateLook)
	defer rotate.Stop()
	for {
		select {
		case c := <-s.chores:
			s.doChore(c)
		case <-sweep.C:
			s.sweep()
		case <-rotate.C:
			s.doChore(chore{"rotate the keys of session ids", s.tickets.rotate})
		case <-ctx.Done():
			for {
				select {
				case c := <-s.chores:
					s.doChore(c)
				default:
					return
				}
			}
		}
	}
}

func (s *Server) doChore(c chore) {
	ctx, cancel := context.WithTimeout(context.Background(), choreTimeout)
	defer cancel()
	if err := c.do(ctx); err != nil {
		s.cfg.Log.Warn("could not be noted down", "what", c.what, "error", err)
	}
}

// sweep drops what is of no use any more.
func (s *Server) sweep() {
	now := s.cfg.Now()
	s.closeAll(s.sessions.idle(now.Add(-s.cfg.SessionIdle)))
	s.ended.sweep(now)
}

// touch notes that an agent was used.
func (s *Server) touch(who *Request) {
	last, now := who.agent.touched.Load(), who.Arrived.UnixNano()
	if now-last < int64(touchEvery) || !who.agent.touched.CompareAndSwap(last, now) {
		return
	}
	key, at := who.agent.key, who.Arrived
	s.later(chore{"last use of an agent", func(ctx context.Context) error { return s.cfg.Book.TouchAgent(ctx, key.tenant, key.agent, at) }})
}

// auditForeign notes that somebody used a session id that was made for another.
// Each tenant learns only about its own agent.
func (s *Server) auditForeign(r *http.Request, who *Request, of ticket) {
	s.cfg.Log.WarnContext(r.Context(), "a session id of another agent was presented",
		"tenant", who.Claims.Tenant, "agent", who.Claims.Agent, "of_tenant", of.tenant, "of_agent", of.agent, "session", of.id, "remote", r.RemoteAddr)
	last, now := who.agent.audited.Load(), who.Arrived.UnixNano()
	if now-last < int64(auditEvery) || !who.agent.audited.CompareAndSwap(last, now) {
		return
	}
	detail, err := json.Marshal(map[string]string{"method": r.Method, "remote": r.RemoteAddr})
	if err != nil { // strings always marshal
		detail = nil
	}
	entry := tenants.AuditEntry{At: who.Arrived, ActorKind: "agent", ActorID: who.Claims.Agent, Verb: "session.foreign", Detail: detail}
	sender := entry
	sender.Object = "session"
	if of.tenant == who.Claims.Tenant {
		sender.Object = "session:" + of.id.String()
	} else {
		owner := entry
		owner.ActorKind, owner.ActorID, owner.Object, owner.Detail = "system", tenants.ID{}, "session:"+of.id.String(), nil
		s.note(of.tenant, owner)
	}
	s.note(who.Claims.Tenant, sender)
}

func (s *Server) note(tenant tenants.ID, e tenants.AuditEntry) {
	s.later(chore{"audit " + e.Verb, func(ctx context.Context) error { return s.cfg.Book.Audit(ctx, tenant, e) }})
}
