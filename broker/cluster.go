package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/cluster/peer"
	"siyuan-broker/broker/cluster/redisnet"
	"siyuan-broker/broker/mcpserver"
	"siyuan-broker/broker/relay"
)

// ensemble is this node's place among the nodes: the shared state, the way to
// the other nodes' tunnels and theirs to ours. A single node has the same parts,
// in process and without peers.
type ensemble struct {
	net    cluster.Net
	relay  *cluster.Relay
	hub    *relay.Hub
	node   cluster.Node
	listen string
	ended  func(cluster.Event)
	server *peer.Server // nil on a single node
	client *peer.Client // nil on a single node
	stops  []func()
}

type ensembleOptions struct {
	Node       string
	RedisURL   string // empty: a single node
	PeerListen string
	PeerPublic string // how the others reach PeerListen; empty: as it is
	MasterKey  []byte
	MaxResult  int
	MaxRequest int // bytes of what an agent sends
	Hub        *relay.Hub
	Log        *slog.Logger

	// Called between start and stop.
	Take  func(ctx context.Context, tenant, subject string, body []byte) bool // what another node offers
	Ended func(cluster.Event)                                                 // a session ended on some node; nil: nobody cares
}

func newEnsemble(o ensembleOptions) (*ensemble, error) {
	e := &ensemble{hub: o.Hub, listen: o.PeerListen, ended: o.Ended, node: cluster.Node{ID: o.Node, Address: o.PeerPublic}}
	if e.node.Address == "" {
		e.node.Address = o.PeerListen
	}
	e.relay = &cluster.Relay{Node: o.Node, Local: tunnels{o.Hub}, Log: o.Log}
	if o.RedisURL == "" {
		e.net = cluster.NewMemory(nil).Node(o.Node, "")
		e.relay.Routes = e.net
		return e, nil
	}
	redis, err := redisnet.Connect(o.RedisURL)
	if err != nil {
		return nil, err
	}
	if e.net, err = redisnet.New(redisnet.Options{Redis: redis, Self: e.node, Log: o.Log.With("part", "cluster")}); err != nil {
		return nil, err
	}
	identity, err := peer.NewIdentity(o.MasterKey)
	if err != nil {
		return nil, err
	}
	options := peer.Options{Node: o.Node, Identity: identity, Log: o.Log.With("part", "peer"), Limits: peer.DefaultLimits()}
	options.Limits.Body = max(o.MaxResult, o.MaxRequest)
	options.Take = o.Take
	if e.server, err = peer.NewServer(tunnels{o.Hub}, options); err != nil {
		return nil, err
	}
	if e.client, err = peer.NewClient(options); err != nil {
		return nil, err
	}
	e.net.OnGone(func(n cluster.Node) { e.client.Drop(n.ID) })
	e.relay.Routes, e.relay.Peers = e.net, e.client
	return e, nil
}

// tunnels is the hub as the cluster sees it.
type tunnels struct{ *relay.Hub }

// Has reports whether an instance has a live tunnel on this node.
func (t tunnels) Has(tenant, instance string) bool {
	_, ok := t.Session(tenant, instance)
	return ok
}

// onSession keeps the routes of this node's tunnels. It does not block.
func (e *ensemble) onSession(ev relay.Event) {
	s := ev.Session
	r := cluster.Route{Tenant: s.Tenant, Instance: s.Instance, Node: e.node.ID, Address: e.node.Address, Epoch: s.Epoch}
	switch ev.Kind {
	case relay.SessionUp:
		e.net.Announce(r)
	case relay.SessionDown:
		e.net.Withdraw(r)
	}
}

// start joins the cluster. The returned function serves the other nodes until
// stop; nil on a single node.
func (e *ensemble) start(ctx context.Context) (serve func() error, err error) {
	if e.server != nil {
		ln, err := net.Listen("tcp", e.listen)
		if err != nil {
			return nil, fmt.Errorf("peer_listen: %w", err)
		}
		serve = func() error { return e.server.Serve(ln) }
	}
	// A newer session elsewhere ends ours, wherever it connected.
	e.stops = append(e.stops, e.net.Subscribe(func(ev cluster.Event) {
		if ev.Kind == cluster.RouteChanged {
			e.hub.Fence(ev.Tenant, ev.Subject, ev.Epoch)
		}
	}, cluster.RouteChanged))
	if e.ended != nil {
		e.stops = append(e.stops, e.net.Subscribe(e.ended, cluster.SessionEnded))
	}
	e.net.Start(ctx)
	return serve, nil
}

// stop leaves the cluster, once the tunnels are closed and no request runs that
// could need another node. Other nodes' calls may finish until ctx is done.
func (e *ensemble) stop(ctx context.Context) {
	for _, stop := range e.stops {
		stop()
	}
	e.net.Stop() // first, so that nobody calls us any more
	if e.server != nil {
		e.server.Stop(ctx)
		e.client.Close()
	}
}

// fence is how long after a takeover another node may still send calls to the
// connector before. It is told at once where Redis works.
const fence = 2 * time.Second

// perMinute are calls per minute over all nodes; 0 is any number.
type perMinute struct {
	agent  int // of one agent, where its tenant has no limit of its own
	tool   int // of one agent on one tool
	tenant int // of all agents of a tenant
}

// limit counts calls on all nodes. A call that one limit refuses has used up the
// limits asked before it, the narrowest first, so that it costs others nothing.
func (e *ensemble) limit(l perMinute) mcpserver.Limit {
	return func(ctx context.Context, tenant, agent, tool string, own int) (string, time.Duration) {
		if own == 0 {
			own = l.agent
		}
		for _, x := range []struct {
			what  string
			key   cluster.LimitKey
			limit int
		}{
			{"this agent on this tool", cluster.LimitKey{Tenant: tenant, Agent: agent, Tool: tool}, l.tool},
			{"this agent", cluster.LimitKey{Tenant: tenant, Agent: agent}, own},
			{"this tenant", cluster.LimitKey{Tenant: tenant}, l.tenant},
		} {
			if ok, after := e.net.Allow(ctx, x.key, x.limit, time.Minute); !ok {
				return x.what, after
			}
		}
		return "", 0
	}
}

// callLimit is the limit of this installation, for whoever calls.
func (b *Broker) callLimit() mcpserver.Limit {
	return b.cluster.limit(perMinute{b.cfg.CallsPerMinute, b.cfg.ToolPerMinute, b.cfg.TenantPerMinute})
}

// validatePeers checks the settings of a node among others.
func validatePeers(redisURL, listen, public, databaseURL string) error {
	var bad []error
	if redisURL == "" {
		if listen != "" || public != "" {
			bad = append(bad, errors.New("peer_listen and peer_public: they are for several nodes; set redis_url too, or leave them out"))
		}
		return errors.Join(bad...)
	}
	if _, err := redisnet.Connect(redisURL); err != nil {
		bad = append(bad, err)
	}
	if databaseURL == "" {
		bad = append(bad, errors.New("redis_url: several nodes need one database; set database_url too"))
	}
	host, _, err := net.SplitHostPort(listen)
	switch {
	case listen == "":
		bad = append(bad, errors.New("peer_listen: needed with redis_url, such as 10.0.0.5:7443; the other nodes reach this one's tunnels there"))
	case err != nil:
		bad = append(bad, fmt.Errorf("peer_listen: %q is not host:port", listen))
	case public == "" && (host == "" || net.ParseIP(host).IsUnspecified()):
		bad = append(bad, fmt.Errorf("peer_public: %s does not say how the other nodes reach this one; name host:port", listen))
	}
	if public != "" {
		host, port, err := net.SplitHostPort(public)
		if n, numberErr := strconv.Atoi(port); err != nil || host == "" || numberErr != nil || n < 1 || n > 65535 {
			bad = append(bad, fmt.Errorf("peer_public: %q is not host:port", public))
		}
	}
	return errors.Join(bad...)
}
