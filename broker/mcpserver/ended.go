package mcpserver

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/tenants"
)

const (
	pollEnded    = time.Second
	endedTimeout = 5 * time.Second
	endedPerPage = 1000
	// endedPerAgent bounds the ended sessions kept one by one for an agent.
	endedPerAgent = 256
	// endedInMemory bounds MemoryEnded.
	endedInMemory = 1 << 16
)

// Ended is a session that its client ended.
type Ended struct {
	Tenant, Agent tenants.ID
	Session       uuid.UUID // version 7: when it began
	Expires       time.Time // of its id; the entry is of no use after
}

// EndedSessions is the list of ended sessions that all nodes share. Ids outlive
// the sessions they name, so an ended one has to be remembered by every node
// until its id expires.
type EndedSessions interface {
	// End adds a session.
	End(ctx context.Context, e Ended) error
	// After lists what was added after a cursor, in that order, at most limit,
	// and returns the cursor to go on with. The first cursor is "".
	After(ctx context.Context, cursor string, limit int) ([]Ended, string, error)
}

// MemoryEnded is the list of the nodes of one process.
type MemoryEnded struct {
	now func() time.Time

	mu    sync.Mutex
	first int // number of the first entry
	list  []Ended
}

// NewMemoryEnded makes an empty list; now may be nil. When it is full its oldest
// entries go, which only nodes that start later can miss.
func NewMemoryEnded(now func() time.Time) *MemoryEnded {
	if now == nil {
		now = time.Now
	}
	return &MemoryEnded{now: now}
}

// End implements EndedSessions.
func (m *MemoryEnded) End(_ context.Context, e Ended) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := 0
	for gone < len(m.list) && (m.now().After(m.list[gone].Expires) || len(m.list)-gone >= endedInMemory) {
		gone++
	}
	m.first += gone
	m.list = append(m.list[gone:], e)
	return nil
}

// After implements EndedSessions.
func (m *MemoryEnded) After(_ context.Context, cursor string, limit int) ([]Ended, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := strconv.Atoi(cursor)
	if err != nil {
		at = 0
	}
	rest := m.list[min(max(at-m.first, 0), len(m.list)):]
	rest = rest[:min(limit, len(rest))]
	return slices.Clone(rest), strconv.Itoa(max(at, m.first) + len(rest)), nil
}

// endedSet is what this node knows of ended sessions. Of an agent that ends very
// many it keeps the newest one by one, and takes everything that began before
// them for ended: that can cost an old session, and never revives one.
type endedSet struct {
	mu     sync.Mutex
	agents map[agentKey]*endedOf // at most those that ended a session within sessionLife
}

type endedOf struct {
	sessions map[uuid.UUID]time.Time // until when it matters
	floor    time.Time               // what began by then has ended
	until    time.Time               // when all of it stops to matter
}

func newEndedSet() *endedSet { return &endedSet{agents: map[agentKey]*endedOf{}} }

func (s *endedSet) add(e Ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := agentKey{e.Tenant, e.Agent}
	of := s.agents[key]
	if of == nil {
		of = &endedOf{sessions: map[uuid.UUID]time.Time{}}
		s.agents[key] = of
	}
	of.sessions[e.Session] = e.Expires
	if e.Expires.After(of.until) {
		of.until = e.Expires
	}
	if len(of.sessions) > endedPerAgent {
		of.compress()
	}
}

// compress forgets the older half and remembers its youngest birth instead.
func (o *endedOf) compress() {
	ids := make([]uuid.UUID, 0, len(o.sessions))
	for id := range o.sessions {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) // by time
	for _, id := range ids[:len(ids)/2] {
		began := time.Unix(id.Time().UnixTime())
		if began.After(o.floor) {
			o.floor = began
		}
		delete(o.sessions, id)
	}
}

func (s *endedSet) has(t *ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.agents[t.owner()]
	if of == nil {
		return false
	}
	_, ended := of.sessions[t.id]
	return ended || !t.began().After(of.floor)
}

func (s *endedSet) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, of := range s.agents {
		if now.After(of.until) {
			delete(s.agents, key)
		}
	}
}

// followEnded learns of sessions that ended on other nodes.
func (s *Server) followEnded(ctx context.Context, cursor string) {
	tick := time.NewTicker(pollEnded)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		cursor = s.readEnded(ctx, cursor)
	}
}

func (s *Server) readEnded(ctx context.Context, cursor string) string {
	ctx, cancel := context.WithTimeout(ctx, endedTimeout)
	defer cancel()
	for {
		page, next, err := s.cfg.Ended.After(ctx, cursor, endedPerPage)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "the list of ended sessions could not be read", "error", err)
			}
			return cursor
		}
		for _, e := range page {
			s.SessionEnded(e)
		}
		if cursor = next; len(page) < endedPerPage {
			return cursor
		}
	}
}

// SessionEnded ends a session on this node. The server polls EndedSessions
// itself; whoever hears of an end sooner may call this. It does not block.
func (s *Server) SessionEnded(e Ended) {
	s.ended.add(e)
	gone := s.sessions.remove(func(sess *session) bool {
		return sess.ticket.tenant == e.Tenant && sess.ticket.agent == e.Agent && sess.ticket.id == e.Session
	})
	s.closeAll(gone)
}
