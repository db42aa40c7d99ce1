package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/mcpserver"
	"siyuan-broker/tenants"
)

const (
	offerTimeout = 3 * time.Second // of one message, to all nodes
	offersMax    = 64              // messages on offer at once; few beside the calls a link carries
)

// endedSessions is mcpserver.EndedSessions over the store. The bus tells the
// other nodes at once what they would find there a second later.
type endedSessions struct {
	store tenants.Store
	bus   cluster.Bus
	log   *slog.Logger
}

// End adds a session.
func (s endedSessions) End(ctx context.Context, e mcpserver.Ended) error {
	err := s.store.EndSession(ctx, tenants.EndedSession{TenantID: e.Tenant, AgentID: e.Agent, SessionID: e.Session, ExpiresAt: e.Expires})
	if err != nil {
		return err
	}
	data, err := json.Marshal(sessionEnd{e.Agent, e.Expires})
	if err == nil {
		err = s.bus.Publish(ctx, cluster.Event{Kind: cluster.SessionEnded, Tenant: e.Tenant.String(), Subject: e.Session.String(), Data: data})
	}
	if err != nil {
		s.log.DebugContext(ctx, "other nodes will read that a session ended", "tenant", e.Tenant, "error", err)
	}
	return nil
}

// After lists what was added after a cursor, which is a sequence number.
func (s endedSessions) After(ctx context.Context, cursor string, limit int) ([]mcpserver.Ended, string, error) {
	seq := int64(0)
	if cursor != "" {
		var err error
		if seq, err = strconv.ParseInt(cursor, 10, 64); err != nil {
			return nil, "", fmt.Errorf("cursor of ended sessions: %w", err)
		}
	}
	page, err := s.store.EndedSessions(ctx, seq, limit)
	if err != nil {
		return nil, "", err
	}
	ended := make([]mcpserver.Ended, len(page))
	for i, e := range page {
		ended[i] = mcpserver.Ended{Tenant: e.TenantID, Agent: e.AgentID, Session: e.SessionID, Expires: e.ExpiresAt}
		seq = e.Seq
	}
	return ended, strconv.FormatInt(seq, 10), nil
}

// sessionEnd is the data of a SessionEnded event.
type sessionEnd struct {
	Agent   tenants.ID `json:"agent"`
	Expires time.Time  `json:"expires"`
}

// sessionEnded takes the event of another node.
func (b *Broker) sessionEnded(ev cluster.Event) {
	if ev.Kind != cluster.SessionEnded || ev.Node == b.cfg.NodeID {
		return
	}
	var data sessionEnd
	tenant, err := uuid.Parse(ev.Tenant)
	session, serr := uuid.Parse(ev.Subject)
	if err = errors.Join(err, serr, json.Unmarshal(ev.Data, &data)); err != nil {
		b.log.Warn("an event about a session cannot be read", "node", ev.Node, "error", err)
		return
	}
	b.mcp.SessionEnded(mcpserver.Ended{Tenant: tenant, Agent: data.Agent, Session: session, Expires: data.Expires})
}

// take answers another node's offer.
func (b *Broker) take(ctx context.Context, tenant, session string, message []byte) bool {
	id, err := uuid.Parse(tenant)
	return err == nil && b.mcp.Take(ctx, mcpserver.Directed{Tenant: id, Session: session, Message: message})
}

// offers is mcpserver.Peers over the links between nodes.
type offers struct {
	self  string
	nodes interface{ Nodes() []cluster.Node }
	link  interface {
		Offer(ctx context.Context, to cluster.Node, tenant, subject string, body []byte) (bool, error)
	}
	slots chan struct{} // offersMax tokens
}

// peers are the other nodes as the MCP server sees them; nil on a single node.
func (e *ensemble) peers() mcpserver.Peers {
	if e.client == nil {
		return nil
	}
	return &offers{self: e.node.ID, nodes: e.net, link: e.client, slots: make(chan struct{}, offersMax)}
}

// Deliver offers a message to all other nodes at once until one takes it. It
// fails where none did and not all could be asked.
func (o *offers) Deliver(ctx context.Context, d mcpserver.Directed) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, offerTimeout)
	defer cancel()
	select {
	case o.slots <- struct{}{}:
		defer func() { <-o.slots }()
	case <-ctx.Done():
		return false, fmt.Errorf("too many messages are on offer to other nodes: %w", ctx.Err())
	}
	var (
		asked  sync.WaitGroup
		mu     sync.Mutex
		taken  bool
		failed error
	)
	for _, n := range o.nodes.Nodes() {
		if n.ID == o.self {
			continue
		}
		asked.Go(func() {
			ok, err := o.link.Offer(ctx, n, d.Tenant.String(), d.Session, d.Message)
			mu.Lock()
			defer mu.Unlock()
			if ok {
				taken = true
				cancel() // the others do not have it
			}
			failed = errors.Join(failed, err)
		})
	}
	asked.Wait()
	if taken {
		return true, nil
	}
	return false, failed
}
