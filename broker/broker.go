package broker

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"siyuan-broker/broker/activity"
	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/approvals"
	"siyuan-broker/broker/consent"
	"siyuan-broker/broker/console"
	"siyuan-broker/broker/feedback"
	"siyuan-broker/broker/levels"
	"siyuan-broker/broker/mascot"
	"siyuan-broker/broker/mcpserver"
	"siyuan-broker/broker/members"
	"siyuan-broker/broker/memory"
	"siyuan-broker/broker/oauth"
	"siyuan-broker/broker/page"
	"siyuan-broker/broker/pairing"
	"siyuan-broker/broker/people"
	"siyuan-broker/broker/recorder"
	"siyuan-broker/broker/relay"
	"siyuan-broker/broker/settings"
	"siyuan-broker/broker/token"
	"siyuan-broker/broker/transfers"
	"siyuan-broker/contract/tools"
	"siyuan-broker/contract/wire"
	"siyuan-broker/tenants"
)

// The rhythm of the broker's own upkeep.
const (
	upkeepEvery  = 6 * time.Hour
	callsKept    = 90 // days of call records
	rotateEvery  = 90 * 24 * time.Hour
	readTimeout  = 30 * time.Second // of request headers
	idleTimeout  = 2 * time.Minute
	upkeepAtOnce = time.Minute // a failed upkeep is tried again after that
)

// Broker is one node. Its parts are wired in New; Run is its life.
type Broker struct {
	cfg Config
	log *slog.Logger
	db  *Database
	now func() time.Time

	version   string
	keys      *token.Keys
	issuer    *token.Issuer
	revoked   *token.Revocations
	snapshots *admission.Cache
	recorder  *recorder.Recorder
	homes     *directory
	tunnel    *relay.Server
	cluster   *ensemble
	mcp       *mcpserver.Server
	pages     *page.Pages
	people    *people.People
	oauth     *oauth.Server
	console   *console.Console
	consent   *consent.Desk
	transfers *transfers.Desk
	approvals *approvals.Pages
	activity  *activity.Pages
	pairing   *pairing.Service
	pairPages *pairing.Pages
	memory    *memory.Page
	feedback  *feedback.Page
	settings  *settings.Page
	members   *members.Page

	tls   *tls.Config
	ready chan struct{} // closed when the listeners are open
	addr  net.Addr
}

// New wires a broker over an open database. The configuration must have been
// validated.
func New(cfg Config, db *Database, version string, log *slog.Logger, change ...Option) (*Broker, error) {
	var o options
	for _, fn := range change {
		fn(&o)
	}
	b := &Broker{cfg: cfg, log: log, db: db, now: time.Now, version: version, ready: make(chan struct{})}
	if err := b.loadTLS(); err != nil {
		return nil, err
	}
	resources, audiences, err := b.names()
	if err != nil {
		return nil, err
	}
	catalogue := tools.New()

	b.keys = token.NewKeys(db, token.KeysOptions{})
	b.issuer = &token.Issuer{URL: b.Issuer(), Keys: b.keys, Now: b.now}
	b.revoked = token.NewRevocations(db, token.RevocationsOptions{Log: log})
	verifier, err := token.NewVerifier(token.VerifierOptions{Issuer: b.Issuer(), Resources: resources, Keys: b.keys, Revoked: b.revoked})
	if err != nil {
		return nil, err
	}
	if b.snapshots, err = admission.NewCache(db, admission.CacheOptions{Catalogue: catalogue}); err != nil {
		return nil, err
	}
	b.recorder = recorder.New(mascot.Earning{Copier: db, Bank: db, Log: log}, recorder.Options{Log: log})

	b.homes = newDirectory(db)
	limits := relay.DefaultLimits()
	limits.Result = cfg.MaxResultBytes
	timing := relay.DefaultTiming()
	if cfg.RedisURL == "" {
		timing.Drain = 0 // a single node: there is nowhere to move to
	} else {
		timing.Fence = fence
	}
	b.tunnel, err = relay.New(relay.Config{
		Node: cfg.NodeID, Audiences: audiences, TLS: b.tunnelTLS(), Directory: b.homes, Events: b.onSession,
		RemoteAddr: cfg.clientIP(), Logger: log, Timing: timing, Limits: limits,
	})
	if err != nil {
		return nil, err
	}

	master, _ := cfg.masterKey() // several nodes have one: checked by Validate
	b.cluster, err = newEnsemble(ensembleOptions{
		Node: cfg.NodeID, RedisURL: cfg.RedisURL, PeerListen: cfg.PeerListen, PeerPublic: cfg.PeerPublic,
		MasterKey: master, MaxResult: cfg.MaxResultBytes, MaxRequest: cfg.MaxRequestBytes, Hub: b.tunnel.Hub(), Log: log,
		Take: b.take, Ended: b.sessionEnded,
	})
	if err != nil {
		return nil, err
	}

	b.newConsent()
	if err := b.newTransfers(catalogue); err != nil {
		return nil, err
	}
	b.mcp, err = mcpserver.New(mcpserver.Config{
		PublicURLs: cfg.PublicURLs, Issuer: b.Issuer(), Catalogue: catalogue, Tokens: verifier, Snapshots: b.snapshots,
		Relay: b.cluster.relay, Limit: b.callLimit(), Recorder: b.recorder,
		Keys: db, Ended: endedSessions{db, b.cluster.net, log}, Peers: b.cluster.peers(), Book: book{db}, Here: b.here(), Own: levels.Changes{Store: db}, Version: version, Origins: cfg.AllowedOrigins, Scopes: oauth.Scopes(), Log: log,
		CallTimeout: cfg.CallTimeout, MaxBody: int64(cfg.MaxRequestBytes), NoHotLane: !cfg.HotLane, Heartbeat: cmp.Or(o.heartbeat, cfg.Heartbeat),
		Budget: b.budget, Consent: b.consent, Transfers: b.transfers,
	})
	if err != nil {
		return nil, err
	}

	if err := b.newPages(); err != nil {
		return nil, err
	}
	if err := b.newOAuth(resources, catalogue, verifier, o); err != nil {
		return nil, err
	}
	if err := b.newPairing(audiences); err != nil {
		return nil, err
	}
	if err := b.newApprovals(); err != nil {
		return nil, err
	}
	if err := b.newActivity(); err != nil {
		return nil, err
	}
	if err := b.newMemory(); err != nil {
		return nil, err
	}
	if err := b.newFeedback(); err != nil {
		return nil, err
	}
	if err := b.newMembers(catalogue); err != nil {
		return nil, err
	}
	if err := b.newSettings(catalogue); err != nil {
		return nil, err
	}

	// A change drops snapshots first and then tells open sessions; a revocation
	// also ends what is open.
	b.snapshots.OnDropped(b.mcp.Changed)
	b.revoked.OnEvent(b.snapshots.Notify)
	b.revoked.OnRevoked(b.snapshots.Revoked)
	b.revoked.OnRevoked(b.mcp.Revoked)
	b.revoked.OnRevoked(b.transfers.Revoked)
	b.revoked.OnRevoked(b.cutTunnels)
	return b, nil
}

// Issuer is the issuer identifier of the broker's tokens.
func (b *Broker) Issuer() string { return b.cfg.PublicURLs[0] }

// names are the resource URLs of tokens and the audiences of tunnels, one per
// public URL.
func (b *Broker) names() (resources, audiences []string, err error) {
	for _, raw := range b.cfg.PublicURLs {
		u, err := url.Parse(raw)
		if err != nil {
			return nil, nil, fmt.Errorf("public URL %q: %w", raw, err)
		}
		resources = append(resources, mcpserver.Resource(raw))
		audiences = append(audiences, wire.Audience(u))
	}
	return resources, audiences, nil
}

func (b *Broker) loadTLS() error {
	if !b.cfg.TLS() {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(b.cfg.TLSCert, b.cfg.TLSKey)
	if err != nil {
		return fmt.Errorf("tls_cert and tls_key: %w", err)
	}
	b.tls = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	return nil
}

func (b *Broker) tunnelTLS() *tls.Config {
	if b.cfg.TunnelListen == "" {
		return nil
	}
	return b.tls
}

// cutTunnels ends the tunnel of a revoked connector, and all tunnels of a
// revoked instance or tenant.
func (b *Broker) cutTunnels(r tenants.Revocation) {
	hub := b.tunnel.Hub()
	tenant := r.TenantID.String()
	switch r.Kind {
	case tenants.RevokedConnector:
		hub.Cut(tenant, r.Subject)
	case tenants.RevokedInstance, tenants.RevokedTenant:
		for _, s := range hub.Sessions() {
			if s.Tenant == tenant && (r.Kind == tenants.RevokedTenant || s.Instance == r.Subject) {
				hub.Cut(tenant, s.Connector)
			}
		}
	}
}

// onSession follows tunnels: what a home reports decides what agents see.
func (b *Broker) onSession(e relay.Event) {
	b.cluster.onSession(e)
	switch e.Kind {
	case relay.SessionDown:
		b.homes.forget(e.Session)
	default:
		b.homes.noted(e.Session)
	}
}

// Issue makes an access token for an agent.
func (b *Broker) Issue(r token.Request) (string, token.Claims, error) {
	r.Resource = b.cfg.Resource()
	return b.issuer.Issue(r)
}

// Ready is closed when the broker answers; Addr is set by then.
func (b *Broker) Ready() <-chan struct{} { return b.ready }

// Addr is the address of the HTTP listener, once Ready.
func (b *Broker) Addr() net.Addr { return b.addr }

// Run serves until ctx ends or a listener or the broker's own database fails,
// then stops in order: no new calls, calls in flight, tunnels, records.
func (b *Broker) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := b.keys.Load(ctx); err != nil {
		return fmt.Errorf("signing keys: %w", err)
	}
	if err := b.db.Maintain(ctx, b.now(), callsKept); err != nil {
		return fmt.Errorf("prepare call records: %w", err)
	}
	listener, err := net.Listen("tcp", b.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w; is another program using %s?", err, b.cfg.Listen)
	}
	b.addr = listener.Addr()
	if b.tls != nil {
		listener = tls.NewListener(listener, b.tls)
	}
	var raw net.Listener
	if b.cfg.TunnelListen != "" {
		if raw, err = net.Listen("tcp", b.cfg.TunnelListen); err != nil {
			return errors.Join(fmt.Errorf("tunnel_listen: %w", err), listener.Close())
		}
	}
	peers, err := b.cluster.start(ctx)
	if err != nil {
		b.cluster.stop(ctx)
		if raw != nil {
			err = errors.Join(err, raw.Close())
		}
		return errors.Join(err, listener.Close())
	}

	b.revoked.Start(ctx)
	b.recorder.Start()
	b.consent.Start()
	b.mcp.Start(ctx)
	server := &http.Server{
		Handler: b.routes(), ReadHeaderTimeout: readTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(b.log.Handler(), slog.LevelDebug),
	}
	var work sync.WaitGroup
	serve := func(name string, run func() error) {
		work.Go(func() {
			if err := run(); err != nil && !errors.Is(err, http.ErrServerClosed) {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	serve("http", func() error { return server.Serve(listener) })
	if raw != nil {
		serve("tunnel", func() error { return b.tunnel.Serve(raw) })
	}
	if peers != nil {
		serve("peers", peers)
	}
	work.Go(func() { b.upkeep(ctx) })
	close(b.ready)
	b.log.Info("broker is up", "listen", b.addr.String(), "urls", b.cfg.PublicURLs, "node", b.cfg.NodeID, "version", b.version)

	select {
	case <-ctx.Done():
	case <-b.db.Lost():
		cancel(errors.New("the broker's own PostgreSQL ended by itself; its last words are in the log above"))
	}
	cause := context.Cause(ctx)
	cancel(nil)
	b.stop(server)
	work.Wait()
	if errors.Is(cause, context.Canceled) {
		return nil
	}
	return cause
}

func (b *Broker) stop(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.ShutdownTimeout)
	defer cancel()
	b.log.Info("broker is stopping")
	shut := make(chan error, 1)
	go func() { shut <- server.Shutdown(ctx) }() // closes the listener at once; received below
	if err := b.tunnel.Stop(ctx); err != nil {
		b.log.Warn("tunnels did not end in time", "error", err)
	}
	b.mcp.Close() // open streams would block Shutdown
	if err := <-shut; err != nil {
		b.log.Warn("requests did not end in time", "error", err)
		_ = server.Close()
	}
	b.consent.Stop()
	b.cluster.stop(ctx)
	b.revoked.Stop()
	b.snapshots.Wait()
	b.recorder.Stop()
}

// upkeep makes and drops partitions and rotates signing keys.
func (b *Broker) upkeep(ctx context.Context) {
	wait := upkeepEvery
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		err := b.db.Maintain(ctx, b.now(), callsKept)
		if err == nil {
			err = b.rotateKeys(ctx)
		}
		wait = upkeepEvery
		if err != nil && ctx.Err() == nil {
			b.log.Error("upkeep failed; trying again soon", "error", err)
			wait = upkeepAtOnce
		}
	}
}

// rotateKeys makes a new signing key when the newest is old. The ones before
// it verify until their last token has expired.
func (b *Broker) rotateKeys(ctx context.Context) error {
	keys, err := b.db.SigningKeys(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Purpose == token.Purpose && b.now().Sub(k.NotBefore) < rotateEvery {
			return nil
		}
	}
	return b.keys.Rotate(ctx)
}

// tunnelEndpoint tells how connectors reach the tunnel by one public URL.
func (b *Broker) tunnelEndpoint(base string) wire.Endpoint {
	e := wire.Endpoint{WSS: "ws" + strings.TrimPrefix(base, "http") + "/tunnel"}
	if b.cfg.TunnelListen == "" {
		return e
	}
	e.TLS = b.cfg.TunnelPublic
	if e.TLS == "" {
		u, err := url.Parse(base)
		_, port, portErr := net.SplitHostPort(b.cfg.TunnelListen)
		if err == nil && portErr == nil {
			e.TLS = net.JoinHostPort(u.Hostname(), port)
		}
	}
	return e
}

// Reported says whether an instance's home is connected and what it said about
// its SiYuan and its policy is known to admission.
func (b *Broker) Reported(tenant, instance tenants.ID) bool {
	s, ok := b.tunnel.Hub().Session(tenant.String(), instance.String())
	return ok && s.Reported
}
