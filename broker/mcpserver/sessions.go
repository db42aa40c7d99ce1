package mcpserver

import (
	"container/list"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/tenants"
)

// errFull means that no session can be opened because too many are at work.
var errFull = errors.New("too many sessions are at work")

// sessionKey starts with the tenant, as all keys do.
type sessionKey struct {
	tenant tenants.ID
	id     string
}

// session is a legacy session that this node holds. It can be dropped at any
// time between requests: its id is enough to go on with it, here or elsewhere.
type session struct {
	key       sessionKey
	ticket    ticket
	agent     *agentServer
	conn      *sessionConn
	transport *sessionTransport
	mcp       *mcp.ServerSession

	// Guarded by the table's lock.
	posts, streams int // requests that run
	used           time.Time
	place          *list.Element // nil: not in the table any more
}

func (s *session) working() bool { return s.posts > 0 || s.conn.busy() }

// sessionTable holds the sessions of this node, within bounds for an agent, a
// tenant and all.
type sessionTable struct {
	perAgent, perTenant, perNode int

	mu      sync.Mutex
	byKey   map[sessionKey]*session
	order   *list.List // of *session, the longest unused first
	agents  map[agentKey]int
	tenants map[tenants.ID]int
	closed  bool
}

func newSessionTable(perAgent, perTenant, perNode int) *sessionTable {
	return &sessionTable{
		perAgent: perAgent, perTenant: perTenant, perNode: perNode,
		byKey: map[sessionKey]*session{}, order: list.New(), agents: map[agentKey]int{}, tenants: map[tenants.ID]int{},
	}
}

// ticketFor is the checked ticket of a session that is held.
func (t *sessionTable) ticketFor(key sessionKey) (ticket, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.byKey[key]
	if !ok {
		return ticket{}, false
	}
	return s.ticket, true
}

// held is a session that this node holds, without using it.
func (t *sessionTable) held(key sessionKey) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byKey[key]; s != nil && !s.conn.closed.Load() {
		return s
	}
	return nil
}

// use returns a session for one request, opened with open where this node does
// not hold it. The lock is held meanwhile, or two requests at once would open
// it twice. The sessions in out had to go and must be closed by the caller.
func (t *sessionTable) use(key sessionKey, agent *agentServer, stream bool, now time.Time, open func() (*session, error)) (s *session, out []*session, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil, errClosed
	}
	s, ok := t.byKey[key]
	if ok && (s.agent != agent || s.conn.closed.Load()) { // its agent's server was dropped and made again
		t.take(s)
		out, ok = append(out, s), false
	}
	if !ok {
		room, err := t.makeRoom(agent.key)
		if out = append(out, room...); err != nil {
			return nil, out, err
		}
		if s, err = open(); err != nil {
			return nil, out, err
		}
		s.place = t.order.PushBack(s)
		t.byKey[key] = s
		t.agents[agent.key]++
		t.tenants[key.tenant]++
	}
	if stream {
		s.streams++
	} else {
		s.posts++
	}
	t.touch(s, now)
	return s, out, nil
}

func (t *sessionTable) touch(s *session, now time.Time) {
	s.used = now
	if s.place != nil {
		t.order.MoveToBack(s.place)
	}
}

// done ends what use began.
func (t *sessionTable) done(s *session, stream bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if stream {
		s.streams--
	} else {
		s.posts--
	}
	t.touch(s, now)
}

// makeRoom drops sessions until one more fits within every bound: the longest
// unused first, before those that hold an open stream. Sessions at work stay.
func (t *sessionTable) makeRoom(for_ agentKey) (out []*session, err error) {
	for _, bound := range []struct {
		full  func() bool
		match func(*session) bool
	}{
		{func() bool { return t.agents[for_] >= t.perAgent }, func(s *session) bool { return s.agent.key == for_ }},
		{func() bool { return t.tenants[for_.tenant] >= t.perTenant }, func(s *session) bool { return s.key.tenant == for_.tenant }},
		{func() bool { return len(t.byKey) >= t.perNode }, func(*session) bool { return true }},
	} {
		for bound.full() {
			s := t.dispensable(bound.match)
			if s == nil {
				return out, errFull
			}
			t.take(s)
			out = append(out, s)
		}
	}
	return out, nil
}

func (t *sessionTable) dispensable(match func(*session) bool) *session {
	var streaming *session
	for e := t.order.Front(); e != nil; e = e.Next() {
		s := e.Value.(*session)
		switch {
		case !match(s) || s.working():
		case s.streams == 0:
			return s
		case streaming == nil:
			streaming = s
		}
	}
	return streaming
}

// take removes a session from the table. The lock is held.
func (t *sessionTable) take(s *session) {
	if s.place == nil {
		return
	}
	t.order.Remove(s.place)
	s.place = nil
	delete(t.byKey, s.key)
	if t.agents[s.agent.key]--; t.agents[s.agent.key] == 0 {
		delete(t.agents, s.agent.key)
	}
	if t.tenants[s.key.tenant]--; t.tenants[s.key.tenant] == 0 {
		delete(t.tenants, s.key.tenant)
	}
}

// remove takes out the sessions that match; the caller closes them.
func (t *sessionTable) remove(match func(*session) bool) (out []*session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.order.Front(); e != nil; {
		s := e.Value.(*session)
		if e = e.Next(); match(s) {
			t.take(s)
			out = append(out, s)
		}
	}
	return out
}

// idle takes out the sessions that nothing used since.
func (t *sessionTable) idle(since time.Time) (out []*session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.order.Front(); e != nil; {
		s := e.Value.(*session)
		if e = e.Next(); !s.used.Before(since) {
			break // the rest were used later
		}
		if s.streams == 0 && !s.working() || s.conn.closed.Load() {
			t.take(s)
			out = append(out, s)
		}
	}
	return out
}

// close takes out all and lets no more in.
func (t *sessionTable) close() []*session {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return t.remove(func(*session) bool { return true })
}

func (t *sessionTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byKey)
}

// closeAll closes sessions that were taken out of the table, without waiting:
// closing one waits for its running calls.
func (s *Server) closeAll(gone []*session) {
	if len(gone) == 0 {
		return
	}
	s.goWork(func() {
		for _, sess := range gone {
			s.live.cut(func(l *liveRequest) bool { return l.session == sess })
			if err := sess.mcp.Close(); err != nil {
				s.cfg.Log.Debug("closing a session", "error", err)
			}
		}
	})
}
