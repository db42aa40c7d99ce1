package relay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// key names an instance or a connector; every map here starts with the tenant.
type key struct{ tenant, id string }

// SessionInfo is a snapshot of one live session for the console.
type SessionInfo struct {
	Tenant, Instance, Connector string
	Epoch                       int64
	Since                       time.Time
	RTT                         time.Duration // of the last ping; 0 before the first
	Remote                      string        // address the connector came from
	Transport                   string        // "tls" or "wss"
	Software                    string        // as the connector calls itself
	Draining                    bool
	Calls                       int // running now
	Streams                     int // open call streams
	Status                      contract.HomeStatus
	Omitted                     int  // notebooks, caps and vetoes that Status would have besides
	Reported                    bool // whether Status was received yet
}

// Stats are the counters and gauges of a Hub since its start.
type Stats struct {
	Sessions, Streams, Queued                 int // now
	Bulk, Transfers                           int // now: bulk sessions and transfers
	MuxStreams                                int // now, as the multiplexers count: control streams and half-closed ones too
	Accepted, Rejected, Replaced, Cut         int64
	PingTimeouts, ProtocolErrors              int64
	Calls, Retried, Lost, Unknown, Overloaded int64
}

type counters struct {
	accepted, rejected, replaced, cut         atomic.Int64
	pingTimeouts, protocolErrors              atomic.Int64
	calls, retried, lost, unknown, overloaded atomic.Int64
}

// Hub holds the live session of every instance connected to this node and
// carries calls to it.
type Hub struct {
	cfg *Config
	n   counters

	mu        sync.Mutex
	live      map[key]*session      // by instance; the newest epoch
	all       map[*session]struct{} // also replaced ones that are still closing
	perTenant map[string]int        // sizes of all
	cuts      map[key]time.Time     // connectors cut within the last handshake time
	lastSeen  map[key]time.Time     // by instance; bounded by lastSeenMax
	transfers map[string]int        // running, by tenant
}

const lastSeenMax = 10_000

var errNoGrant = errors.New("call without grant")

func newHub(cfg *Config) *Hub {
	return &Hub{cfg: cfg, live: map[key]*session{}, all: map[*session]struct{}{},
		perTenant: map[string]int{}, cuts: map[key]time.Time{}, lastSeen: map[key]time.Time{}, transfers: map[string]int{}}
}

// Call carries one call to the connector of an instance and returns its answer.
// It never hangs past ctx, and without a session it answers connector_offline
// at once. progress may be nil; it is called from the calling goroutine.
//
// idempotent says that the call only reads: if its link dies it is sent once
// more where a live session exists. A write that may have reached the home is
// never repeated and ends outcome_unknown: connector_offline and tunnel_replaced
// in answer to a write mean that it certainly did not reach the home.
func (h *Hub) Call(ctx context.Context, tenant, instance string, call contract.Call, idempotent bool, progress func(contract.Progress)) contract.Result {
	h.n.calls.Add(1)
	if call.Grant == nil { // the home would refuse it, and drop us
		return named(contract.Result{Err: contract.Internalf(errNoGrant, "%s.%s", call.Tool, call.Action)}, call.RequestID)
	}
	if _, bound := ctx.Deadline(); !bound {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.cfg.Timing.MaxCall)
		defer cancel()
	}
	var broken *broken
	for range 2 {
		s := h.session(tenant, instance)
		if s == nil {
			break
		}
		if broken != nil {
			h.n.retried.Add(1)
		}
		var res contract.Result
		if res, broken = s.call(ctx, call, idempotent, progress); broken == nil {
			return named(res, call.RequestID)
		}
		if broken.sent && !idempotent {
			break
		}
	}
	if broken == nil {
		return named(contract.Result{Err: h.offline(ctx, tenant, instance)}, call.RequestID)
	}
	h.n.lost.Add(1)
	if broken.sent && !idempotent {
		h.n.unknown.Add(1)
	}
	return named(contract.Result{Err: broken.public(idempotent)}, call.RequestID)
}

func named(r contract.Result, requestID string) contract.Result {
	if r.Err != nil && r.Err.RequestID == "" {
		r.Err.RequestID = requestID
	}
	return r
}

func (h *Hub) session(tenant, instance string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live[key{tenant, instance}]
}

func (h *Hub) offline(ctx context.Context, tenant, instance string) *contract.Error {
	e := contract.Fail(contract.ConnectorOffline, "The connector at home is not connected.")
	if at := h.LastSeen(ctx, tenant, instance); !at.IsZero() {
		e = e.WithDetail(map[string]string{"last_seen": at.UTC().Format(time.RFC3339)})
	}
	return e
}

// LastSeen is when the connector of an instance was last known to be alive:
// now for a live session, else what the Directory says (another node may have
// seen it later), else, if that does not answer in time, what this node saw.
// Zero if never.
func (h *Hub) LastSeen(ctx context.Context, tenant, instance string) time.Time {
	k := key{tenant, instance}
	h.mu.Lock()
	_, alive := h.live[k]
	here := h.lastSeen[k]
	h.mu.Unlock()
	if alive {
		return h.cfg.Now()
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timing.Directory/10)
	defer cancel()
	at, err := h.cfg.Directory.LastSeen(ctx, tenant, instance)
	if err != nil {
		h.cfg.Logger.Warn("last seen of an offline instance", "tenant", tenant, "instance", instance, "error", err)
	}
	if here.After(at) {
		return here
	}
	return at
}

// remember keeps lastSeen bounded by dropping any one entry: it only stands in
// for the Directory. Called with mu held.
func (h *Hub) remember(k key, at time.Time) {
	if len(h.lastSeen) >= lastSeenMax {
		for old := range h.lastSeen {
			delete(h.lastSeen, old)
			break
		}
	}
	h.lastSeen[k] = at
}

// Sessions is a snapshot of the live sessions, in no order.
func (h *Hub) Sessions() []SessionInfo {
	h.mu.Lock()
	live := make([]*session, 0, len(h.live))
	for _, s := range h.live {
		live = append(live, s)
	}
	h.mu.Unlock()
	infos := make([]SessionInfo, len(live))
	for i, s := range live {
		infos[i] = s.info()
	}
	return infos
}

// Has reports whether an instance has a live session here, also while that
// drains.
func (h *Hub) Has(tenant, instance string) bool { return h.session(tenant, instance) != nil }

// Session is the live session of an instance, if it has one on this node.
func (h *Hub) Session(tenant, instance string) (SessionInfo, bool) {
	s := h.session(tenant, instance)
	if s == nil {
		return SessionInfo{}, false
	}
	return s.info(), true
}

// Cut ends every session of a connector at once and tells it that its
// credential is revoked. A handshake under way fails too. It reports whether
// there was a session here.
func (h *Hub) Cut(tenant, connector string) bool {
	now := h.cfg.Now()
	h.mu.Lock()
	for k, at := range h.cuts {
		if now.Sub(at) > 2*h.cfg.Timing.Handshake {
			delete(h.cuts, k)
		}
	}
	h.cuts[key{tenant, connector}] = now
	var found []*session
	for s := range h.all {
		if s.rec.Tenant == tenant && s.rec.ID == connector {
			found = append(found, s)
		}
	}
	h.mu.Unlock()
	for _, s := range found {
		s.end(&wire.Reject{Code: wire.RejectRevoked, Message: "This connector was revoked; pair it again."})
	}
	h.n.cut.Add(int64(len(found)))
	return len(found) > 0
}

// Fence ends the session of an instance if its epoch is older than the given
// one, which another node announced. A draining session may finish its calls.
func (h *Hub) Fence(tenant, instance string, epoch int64) {
	if s := h.session(tenant, instance); s != nil && s.epoch < epoch {
		s.replaced()
	}
}

// register makes s the live session of its instance unless something newer is
// there. started is when its handshake began.
func (h *Hub) register(s *session, started time.Time) *wire.Reject {
	k := key{s.rec.Tenant, s.rec.Instance}
	h.mu.Lock()
	old := h.live[k]
	at, cut := h.cuts[key{s.rec.Tenant, s.rec.ID}]
	var no *wire.Reject
	switch {
	case cut && !at.Before(started):
		no = &wire.Reject{Code: wire.RejectRevoked, Message: "This connector was revoked; pair it again."}
	case old != nil && old.epoch >= s.epoch:
		no = &wire.Reject{Code: wire.RejectReplaced, Message: "A newer session of this instance is connected."}
	case old == nil && h.full(s.rec.Tenant), len(h.all) >= 2*h.cfg.Limits.Sessions:
		no = &wire.Reject{Code: wire.RejectBusy, Message: "Too many connectors.", RetryAfterS: 30}
	default:
		s.others.begin(h.cfg.Now().Add(h.cfg.Timing.Fence)) // nothing is sent to the one before from here on
		h.live[k] = s
		h.all[s] = struct{}{}
		h.perTenant[s.rec.Tenant]++
	}
	h.mu.Unlock()
	if no != nil {
		return no
	}
	h.n.accepted.Add(1)
	if old != nil {
		h.n.replaced.Add(1)
		old.replaced()
	}
	return nil
}

func (h *Hub) full(tenant string) bool {
	return len(h.live) >= h.cfg.Limits.Sessions || h.perTenant[tenant] >= h.cfg.Limits.PerTenant
}

// unroute takes a session out of the way of new calls; it reports whether it
// was still the live one.
func (h *Hub) unroute(s *session) bool {
	k := key{s.rec.Tenant, s.rec.Instance}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live[k] != s {
		return false
	}
	delete(h.live, k)
	h.remember(k, h.cfg.Now())
	return true
}

// forget drops a session that is completely closed.
func (h *Hub) forget(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.all[s]; !ok {
		return
	}
	delete(h.all, s)
	if h.perTenant[s.rec.Tenant]--; h.perTenant[s.rec.Tenant] == 0 {
		delete(h.perTenant, s.rec.Tenant)
	}
}

func (h *Hub) every(do func(*session)) {
	h.mu.Lock()
	all := make([]*session, 0, len(h.all))
	for s := range h.all {
		all = append(all, s)
	}
	h.mu.Unlock()
	for _, s := range all {
		do(s)
	}
}

// Stats reads the counters.
func (h *Hub) Stats() Stats {
	st := Stats{Accepted: h.n.accepted.Load(), Rejected: h.n.rejected.Load(), Replaced: h.n.replaced.Load(), Cut: h.n.cut.Load(),
		PingTimeouts: h.n.pingTimeouts.Load(), ProtocolErrors: h.n.protocolErrors.Load(),
		Calls: h.n.calls.Load(), Retried: h.n.retried.Load(), Lost: h.n.lost.Load(), Unknown: h.n.unknown.Load(), Overloaded: h.n.overloaded.Load()}
	h.every(func(s *session) {
		st.Sessions++
		open, _, queued := s.pool.sizes()
		st.Streams += open
		st.Queued += queued
		st.MuxStreams += s.mux.NumStreams()
		if s.door.current() != nil {
			st.Bulk++
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.transfers {
		st.Transfers += n
	}
	return st
}
