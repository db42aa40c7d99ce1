package home

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"sync"
	"time"

	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// The rhythm of looking after SiYuan.
const (
	retryFirst    = 500 * time.Millisecond // after SiYuan was lost
	retryMost     = 5 * time.Second
	refreshEvery  = 20 * time.Second // notebooks while all is well
	policyEvery   = 2 * time.Second  // the policy file
	sentinelEvery = 2 * time.Second  // at most, where SiYuan drops idle connections
	probeTimeout  = 10 * time.Second
)

// Config is what a Home is made of.
type Config struct {
	URL    string // SiYuan's base URL, as given to the kernel client
	Pin    PinFile
	Policy *policy.Policy
	Log    *slog.Logger
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error) // nil: a net.Dialer
	Folder func(ctx context.Context, addr string) string                     // nil: asks the system who listens
	Tools  func() []contract.HomeTool                                        // that SiYuan offers besides ours, as known now; nil: none
}

// Home knows the state of one SiYuan. Its Dial is the kernel client's only way
// to a connection, so that nothing reaches a kernel that was not verified.
type Home struct {
	cfg    Config
	addr   string
	kernel *siyuan.Client

	recheck chan struct{} // asks Run to look again now; capacity 1
	posted  time.Time     // when the last sentinel was put in place; for Run alone

	mu       sync.Mutex
	status   contract.HomeStatus
	problem  *contract.Error // nil while ready
	verified bool
	guard    *sentinel     // in place; nil where there is none
	changed  chan struct{} // capacity 1: something changed since it was last received from
}

// New makes a Home that considers SiYuan offline until Run has looked. The
// kernel client is to be made with h.Dial and handed over by Watch.
func New(cfg Config) (*Home, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("SiYuan's address %q is not a URL such as http://127.0.0.1:6806", cfg.URL)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{}).DialContext
	}
	if cfg.Folder == nil {
		cfg.Folder = listenerAt
	}
	h := &Home{cfg: cfg, addr: net.JoinHostPort(u.Hostname(), port), recheck: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	h.status = contract.HomeStatus{State: contract.HomeOffline, Policy: cfg.Policy.Effect(nil), Notebooks: []contract.NotebookInfo{}}
	h.problem = h.describe(contract.HomeOffline)
	return h, nil
}

// probing is the key under which the context of a recognition has its sentinel.
// It alone may open connections to a kernel that is not verified yet.
type probing struct{}

var errUnverified = errors.New("SiYuan was restarted or replaced and has to be recognised first")

// Dial opens a connection to SiYuan. After SiYuan went away it refuses until
// Run has recognised who answers now. Who took SiYuan's place while the connection
// was made had to end the sentinel first, so that is looked at afterwards.
func (h *Home) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	guard, recognising := ctx.Value(probing{}).(*sentinel)
	if !recognising {
		h.mu.Lock()
		ok := h.verified
		guard = h.guard
		h.mu.Unlock()
		if !ok {
			return nil, errUnverified
		}
	}
	c, err := h.cfg.Dial(ctx, network, addr)
	if err == nil && !guard.stands() {
		_ = c.Close()
		c, err = nil, errUnverified
	}
	if err != nil && ctx.Err() == nil && !recognising {
		h.Lost()
	}
	return c, err
}

// Watch gives Home the client that was made with its Dial.
func (h *Home) Watch(kernel *siyuan.Client) { h.kernel = kernel }

// Lost tells Home that SiYuan did not answer; it looks again at once.
func (h *Home) Lost() { h.Look() }

// Look makes Home look, and tell what is new, at once rather than at its next turn.
func (h *Home) Look() {
	select {
	case h.recheck <- struct{}{}:
	default: // a look is due already
	}
}

// Status is the present state.
func (h *Home) Status() contract.HomeStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

// Changed is received from when Status is worth reading again. It has one
// receiver.
func (h *Home) Changed() <-chan struct{} { return h.changed }

// Ready is nil while calls can be executed, else why not.
func (h *Home) Ready() *contract.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.problem
}

// Run looks after SiYuan until ctx ends.
func (h *Home) Run(ctx context.Context) {
	wait := retryFirst
	policies := time.NewTicker(policyEvery)
	defer policies.Stop()
	defer func() { h.stand(nil) }()
	for ctx.Err() == nil {
		state := h.look(ctx)
		pause := refreshEvery
		if state == contract.HomeReady {
			wait = retryFirst
			if h.guard == nil {
				pause = sentinelEvery
			}
		} else {
			pause, wait = wait, min(2*wait, retryMost)
		}
		if h.pause(ctx, pause, policies.C) {
			h.stand(nil)
		}
	}
}

// pause returns when it is time to look again. It reports whether the sentinel
// connection ended.
func (h *Home) pause(ctx context.Context, d time.Duration, policies <-chan time.Time) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		case <-h.recheck:
			return false
		case <-h.guard.ended():
			return true
		case <-policies:
			changed, err := h.cfg.Policy.Refresh()
			if err != nil {
				h.cfg.Log.ErrorContext(ctx, "the policy file has a mistake; what it said before stays in force", "error", err)
			}
			if changed {
				return false
			}
		}
	}
}

// stand puts a sentinel in place of the one before; with nil, SiYuan has to be
// recognised again. Only Run calls it.
func (h *Home) stand(next *sentinel) {
	h.mu.Lock()
	before := h.guard
	h.guard = next
	if next == nil {
		h.verified = false
	}
	h.mu.Unlock()
	if before != nil && before != next {
		before.dismiss()
	}
}

// look probes SiYuan once and publishes what it found.
func (h *Home) look(ctx context.Context) contract.HomeState {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// Before SiYuan is recognised: whoever takes its place afterwards has to end
	// this connection first.
	guard := h.guard
	if guard == nil {
		guard = post(ctx, h.cfg.Dial, h.addr)
		// A kernel that drops idle connections at once is not looked at in a loop.
		if time.Since(h.posted) > sentinelEvery {
			h.posted = time.Now()
			h.stand(guard)
		} else if guard != nil {
			defer guard.dismiss()
		}
	}
	ctx = context.WithValue(ctx, probing{}, guard)
	next := contract.HomeStatus{State: contract.HomeReady, Notebooks: []contract.NotebookInfo{}}
	id, state := h.recognise(ctx)
	next.State, next.SiYuanVersion = state, id.Version
	if state == contract.HomeReady {
		list, _, err := h.kernel.Reader().Notebooks(ctx)
		if err != nil {
			next.State = stateOf(err)
		}
		for _, n := range list {
			next.Notebooks = append(next.Notebooks, contract.NotebookInfo{ID: string(n.ID), Name: n.Name, Icon: n.Icon, Closed: n.Closed})
		}
	}
	next.Policy = h.cfg.Policy.Effect(next.Notebooks)
	if h.cfg.Tools != nil {
		next.Policy.Tools = h.cfg.Tools()
	}
	h.publish(ctx, next)
	return next.State
}

// recognise finds out who answers: first without showing the token, then with
// one authenticated call.
func (h *Home) recognise(ctx context.Context) (siyuan.Identity, contract.HomeState) {
	boot, err := h.kernel.BootProgress(ctx)
	if err != nil {
		return siyuan.Identity{}, stateOf(err)
	}
	if !boot.Ready() {
		return siyuan.Identity{}, contract.HomeIndexing
	}
	pin, err := h.cfg.Pin.Load()
	if err != nil {
		h.cfg.Log.ErrorContext(ctx, "the pinned workspace cannot be read", "error", err)
		return siyuan.Identity{}, contract.HomeWrongWorkspace
	}
	folder := h.cfg.Folder(ctx, h.addr)
	if pin != nil && pin.Folder != "" && folder != "" && folder != pin.Folder {
		h.cfg.Log.WarnContext(ctx, "another workspace listens at SiYuan's address; the token was not shown to it", "folder", folder, "pinned", pin.Folder)
		return siyuan.Identity{}, contract.HomeWrongWorkspace
	}
	id, err := h.kernel.Identity(ctx)
	if err != nil {
		return siyuan.Identity{}, stateOf(err)
	}
	found := Pin{System: id.System, Workspace: id.Workspace, Folder: folder}
	switch {
	case pin == nil:
		if err := h.cfg.Pin.Save(found); err != nil {
			h.cfg.Log.ErrorContext(ctx, "the workspace could not be pinned", "error", err)
			return id, contract.HomeWrongWorkspace
		}
		h.cfg.Log.InfoContext(ctx, "pinned this SiYuan workspace", "siyuan", id.Version)
	case pin.System != id.System || pin.Workspace != id.Workspace:
		h.cfg.Log.ErrorContext(ctx, "another workspace answers at SiYuan's address; the API token was shown to it: change the token in SiYuan if you do not trust it, or run `siyuan-connector repin` to accept this workspace")
		return id, contract.HomeWrongWorkspace
	}
	return id, contract.HomeReady
}

// listenerAt is the workspace folder of the process behind a loopback address,
// "" where that is not known.
func listenerAt(ctx context.Context, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(ips) == 0 {
		return ""
	}
	for _, ip := range ips {
		ap, err := netip.ParseAddrPort(net.JoinHostPort(ip.Unmap().String(), port))
		if err == nil && ap.Addr().IsLoopback() {
			if dir := listenerFolder(ap); dir != "" {
				return dir
			}
		}
	}
	return ""
}

func (h *Home) publish(ctx context.Context, next contract.HomeStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.verified = next.State == contract.HomeReady
	h.problem = nil
	if next.State != contract.HomeReady {
		h.problem = h.describe(next.State)
	}
	if reflect.DeepEqual(h.status, next) {
		return
	}
	if h.status.State != next.State {
		h.cfg.Log.InfoContext(ctx, "SiYuan is "+string(next.State), "version", next.SiYuanVersion, "notebooks", len(next.Notebooks))
	}
	h.status = next
	select {
	case h.changed <- struct{}{}:
	default: // the receiver has yet to look; it will see this too
	}
}

// describe is what an agent is told while SiYuan cannot be worked with.
func (h *Home) describe(state contract.HomeState) *contract.Error {
	switch state {
	case contract.HomeUnauthorized:
		return contract.Fail(contract.SiYuanUnauthorized, "SiYuan refuses the connector's API token.")
	case contract.HomeWrongWorkspace:
		return contract.Fail(contract.WrongWorkspace, "Another SiYuan workspace answers at the connector's address.")
	case contract.HomeIndexing:
		return contract.Fail(contract.IndexUnavailable, "SiYuan is starting.")
	}
	return contract.Fail(contract.SiYuanOffline, "The connector is running, but SiYuan does not answer it.")
}

func stateOf(err error) contract.HomeState {
	switch siyuan.KindOf(err) {
	case siyuan.Unauthorized:
		return contract.HomeUnauthorized
	case siyuan.Indexing:
		return contract.HomeIndexing
	}
	return contract.HomeOffline
}
