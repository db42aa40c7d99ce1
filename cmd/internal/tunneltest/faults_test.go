package tunneltest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"siyuan-broker/broker/relay"
	"siyuan-broker/cmd/internal/faultproxy"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
)

// soak is set for `make soak`: more seeds, full sizes.
var soak = os.Getenv("SOAK") != ""

// Tests of dead links run at a twelfth of the real durations, so that the 45 s
// within which both ends agree become 3.75 s. What the scheduler of a loaded
// machine adds does not scale.
const (
	scale     = 1.0 / 12
	deadLink  = 45 * time.Second / 12
	scheduler = 3 * time.Second
)

func scaledNode(c *relay.Config) {
	t := relay.DefaultTiming().Scale(scale)
	t.Drain, t.Handshake = c.Timing.Drain, 2*time.Second
	c.Timing = t
}

func scaledHome(c *tunnel.Config) {
	c.Timing = c.Timing.Scale(scale)
	c.Timing.Dial, c.Timing.Handshake, c.Timing.Stable = 5*time.Second, 2*time.Second, time.Hour
}

// fault is one way in which a connection goes wrong. It may be late by some
// bytes, at most as many as the phase moves in a direction.
type fault struct {
	name  string
	kills bool // no connection survives it
	rules func(r *rand.Rand, up, down int64) faultproxy.Rules
}

func faults() []fault {
	type rule = faultproxy.Rule
	type rules = faultproxy.Rules
	late := func(e faultproxy.Effect) func(*rand.Rand, int64) rule {
		return func(r *rand.Rand, reach int64) rule { return rule{Effect: e, After: r.Int64N(reach + 1)} }
	}
	reset, truncate, drop, hold := late(faultproxy.Reset), late(faultproxy.Truncate), late(faultproxy.Drop), late(faultproxy.Hold)
	return []fault{
		{"reset on the way up", true, func(r *rand.Rand, up, _ int64) rules { return rules{Up: reset(r, up)} }},
		{"reset on the way down", true, func(r *rand.Rand, _, down int64) rules { return rules{Down: reset(r, down)} }},
		{"truncated on the way up", true, func(r *rand.Rand, up, _ int64) rules { return rules{Up: truncate(r, up)} }},
		{"truncated on the way down", true, func(r *rand.Rand, _, down int64) rules { return rules{Down: truncate(r, down)} }},
		{"black hole up", true, func(r *rand.Rand, up, _ int64) rules { return rules{Up: drop(r, up)} }},
		{"black hole down", true, func(r *rand.Rand, _, down int64) rules { return rules{Down: drop(r, down)} }},
		{"black hole", true, func(r *rand.Rand, up, down int64) rules { return rules{Up: drop(r, up), Down: drop(r, down)} }},
		{"half-open, the home unheard", true, func(r *rand.Rand, up, _ int64) rules { return rules{Up: drop(r, up), Down: rule{Hide: true}} }},
		{"half-open, the broker unheard", true, func(r *rand.Rand, _, down int64) rules { return rules{Up: rule{Hide: true}, Down: drop(r, down)} }},
		{"frozen up", true, func(r *rand.Rand, up, _ int64) rules { return rules{Up: hold(r, up)} }},
		{"frozen down", true, func(r *rand.Rand, _, down int64) rules { return rules{Down: hold(r, down)} }},
		{"delayed", false, func(r *rand.Rand, _, _ int64) rules {
			return rules{Up: rule{Delay: time.Duration(r.IntN(60)) * time.Millisecond}, Down: rule{Delay: time.Duration(r.IntN(60)) * time.Millisecond}}
		}},
		{"throttled", false, func(r *rand.Rand, _, _ int64) rules { return rules{Up: rule{Rate: 400_000 + r.IntN(800_000)}} }},
		{"healthy", false, func(*rand.Rand, int64, int64) rules { return rules{} }},
	}
}

// resultSize is what stays on the connection that the faults strike.
const resultSize = 120 << 10

// phases are the moments at which a fault strikes.
var phases = []string{"dial", "handshake", "call", "progress", "result", "drain"}

// TestEveryFaultInEveryPhaseEndsWell strikes a connection with every fault in
// every phase of its life while a read and a write are under way, and checks
// what must hold whatever happens.
func TestEveryFaultInEveryPhaseEndsWell(t *testing.T) {
	t.Parallel()
	seeds := []uint64{1}
	if s, err := strconv.ParseUint(os.Getenv("FAULT_SEED"), 10, 64); err == nil { // to see a failure again
		seeds[0] = s
	} else if soak {
		seeds = make([]uint64, 10)
		for i := range seeds {
			seeds[i] = rand.Uint64()
		}
	}
	for i, phase := range phases {
		for j, f := range faults() {
			for k, seed := range seeds {
				for l, transport := range []string{"tls", "ws"} {
					if !soak && (i+j+k+l)%2 == 0 {
						continue // one seed, one transport: enough to notice a break
					}
					t.Run(fmt.Sprintf("%s/%s/%s/%d", phase, f.name, transport, seed), func(t *testing.T) {
						t.Parallel()
						newCell(t, phase, f, transport, seed).run()
					})
				}
			}
		}
	}
}

// cell is one entry of the table.
type cell struct {
	t         *testing.T
	phase     string
	fault     fault
	transport string
	rand      *rand.Rand

	bench  *workbench
	proxy  *faultproxy.Proxy
	node   *node
	next   *node // where to go in the phase "drain"
	home   *home
	struck chan struct{}
	strike func()
	failed bool // the write was reported as certainly not done
}

func newCell(t *testing.T, phase string, f fault, transport string, seed uint64) *cell {
	c := &cell{t: t, phase: phase, fault: f, transport: transport, rand: rand.New(rand.NewPCG(seed, uint64(len(phase)+len(f.name)))),
		bench: newWorkbench(resultSize, 3), struck: make(chan struct{})}
	// How late a fault may be: anywhere in what the phase still moves.
	reach := map[string][2]int64{"dial": {1500, 2500}, "handshake": {400, 200}, "call": {600, 600}, "progress": {200, 20},
		"result": {resultSize, 20}, "drain": {300, 300}}[phase]
	rules := f.rules(c.rand, reach[0], reach[1])
	c.strike = sync.OnceFunc(func() {
		if phase == "dial" {
			c.proxy.SetNew(rules)
		} else {
			c.proxy.SetOpen(rules)
		}
		close(c.struck)
	})
	return c
}

// hooked strikes while the broker looks up who is connecting.
type hooked struct {
	*directory
	lookup func()
}

func (h hooked) Connector(ctx context.Context, id string) (relay.ConnectorRecord, error) {
	h.lookup()
	return h.directory.Connector(ctx, id)
}

func (c *cell) run() {
	t := c.t
	pub, key := keys(t)
	dir := hooked{newDirectory(pub), func() {}}
	if c.phase == "handshake" {
		dir.lookup = c.strike
	}
	c.node, c.proxy = behindProxy(t, dir, c.transport, c.nodeTiming)
	c.bench.working = func(context.Context, contract.Call, bool) {
		if c.phase == "result" {
			c.strike()
		}
	}
	if c.phase == "dial" {
		c.strike()
	}
	c.home = startHome(t, c.node.dial, c.node.tls, key, c.bench, func(cfg *tunnel.Config) {
		if c.fault.kills {
			scaledHome(cfg)
		}
		if c.phase == "dial" {
			cfg.Timing.Dial = time.Second
		}
	})
	switch c.phase {
	case "dial": // the fault strikes the first connection, or the first two
		eventually(t, "a connection", func() bool { return len(c.proxy.Conns()) > c.rand.IntN(2) || c.node.hub.Has(tenant, instance) })
		c.proxy.SetNew(faultproxy.Rules{})
	default:
		c.node.await(relay.SessionUp)
	}
	if c.phase == "drain" {
		c.drain(dir)
	}
	began := time.Now()
	answers := c.calls()
	if c.fault.kills && c.phase != "dial" && c.phase != "handshake" {
		c.bothEndsAgree(began)
	}
	for kind, answer := range answers {
		c.checkAnswer(kind, receive(t, "the answer to a "+kind, answer))
	}
	c.recovers()
	c.home.stop()
	c.checkExecutions()
	c.nothingIsLeft()
}

// nodeTiming scales down what has to be waited for. A link that is only slow
// keeps its real times: nothing must happen to it.
func (c *cell) nodeTiming(cfg *relay.Config) {
	if cfg.Timing.Drain = time.Second; c.fault.kills {
		scaledNode(cfg)
	}
}

// drain makes the node go while its connector moves through the fault.
func (c *cell) drain(dir relay.Directory) {
	c.next = startNode(c.t, dir, nodeOptions{transport: c.transport, like: c.node, rawOnly: c.transport == "tls", change: func(cfg *relay.Config) {
		c.nodeTiming(cfg)
		cfg.Audiences = []string{"siyuan-tunnel:" + strings.TrimPrefix(strings.TrimPrefix(c.node.dial, "http://"), "https://")}
	}})
	c.proxy.Retarget(c.next.tunnelAddr(c.transport))
}

// calls starts a read and a write, in the phase "drain" also the end of the
// node.
func (c *cell) calls() map[string]<-chan contract.Result {
	if c.phase == "call" || c.phase == "drain" {
		c.strike()
	}
	answers := map[string]<-chan contract.Result{}
	for _, kind := range []string{"read", "write"} {
		answer := make(chan contract.Result, 1)
		answers[kind] = answer
		go func() { answer <- c.call(c.node, kind, kind) }()
	}
	if c.phase == "drain" {
		stopped := make(chan struct{})
		go func() { c.node.stop(); close(stopped) }()
		c.t.Cleanup(func() { <-stopped })
	}
	return answers
}

func (c *cell) call(n *node, kind, requestID string) contract.Result {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	args := json.RawMessage(`{"pad":"` + strings.Repeat("x", 2000) + `"}`)
	call := contract.Call{Tool: kind, RequestID: requestID, Grant: &contract.Grant{V: 1, Tenant: tenant, Instance: instance}, Args: args}
	return n.hub.Call(ctx, tenant, instance, call, kind == "read", func(contract.Progress) {
		if c.phase == "progress" {
			c.strike()
		}
	})
}

// bothEndsAgree waits until neither end counts the first session as alive.
func (c *cell) bothEndsAgree(began time.Time) {
	c.t.Helper()
	select {
	case <-c.struck:
	case <-time.After(patience):
		c.t.Fatal("the fault never struck")
	}
	eventually(c.t, "the broker gives the session up", func() bool {
		info, live := c.node.hub.Session(tenant, instance)
		return !live || info.Epoch > 1
	})
	broker := time.Since(began)
	eventually(c.t, "the home gives the session up", func() bool {
		s := c.home.client.State()
		return s.Phase != tunnel.Connected || s.Epoch > 1
	})
	if home := time.Since(began); max(broker, home) > deadLink+scheduler {
		c.t.Errorf("broker after %v, home after %v, allowed are %v", broker, home, deadLink)
	}
}

// checkAnswer: a call ends with a result or with an error of the contract that
// fits what may have happened.
func (c *cell) checkAnswer(kind string, res contract.Result) {
	c.t.Helper()
	if res.Err == nil {
		if want := resultSize + 2; len(res.Body) != want {
			c.t.Errorf("%s: a result of %d bytes, want %d", kind, len(res.Body), want)
		}
		return
	}
	allowed := []contract.Code{contract.ConnectorOffline, contract.TunnelReplaced}
	if kind == "write" {
		allowed = append(allowed, contract.OutcomeUnknown)
	}
	if !slices.Contains(allowed, contract.CodeOf(res.Err)) || res.Err.RequestID != kind {
		c.t.Errorf("%s: %s", kind, res.Err.Body())
	}
	if !c.fault.kills && c.phase != "dial" {
		c.t.Errorf("%s failed on a link that was only slow: %v", kind, res.Err)
	}
	c.failed = c.failed || kind == "write" && contract.CodeOf(res.Err) != contract.OutcomeUnknown
}

// recovers: without anybody's help calls work again.
func (c *cell) recovers() {
	c.t.Helper()
	n := c.node
	if c.next != nil {
		n = c.next
	}
	calls := 0
	eventually(c.t, "a call works again", func() bool {
		calls++
		return c.call(n, "read", fmt.Sprint("later ", calls)).Err == nil
	})
}

// checkExecutions: writes at most once, reads at most twice, nothing late.
func (c *cell) checkExecutions() {
	c.t.Helper()
	if arrived, effects := c.bench.counts("write"); arrived > 1 {
		c.t.Errorf("the write was sent %d times", arrived)
	} else if c.failed && effects > 0 {
		c.t.Error("the write was executed and reported as certainly not")
	}
	if arrived, _ := c.bench.counts("read"); arrived > 2 {
		c.t.Errorf("the read was sent %d times", arrived)
	}
}

// nothingIsLeft: both ends closed their TCP connections and all gauges are zero.
func (c *cell) nothingIsLeft() {
	c.t.Helper()
	c.node.stop()
	nodes := []*node{c.node}
	if c.next != nil {
		c.next.stop()
		nodes = append(nodes, c.next)
	}
	for _, n := range nodes {
		if s := n.hub.Stats(); s.Sessions != 0 || s.Streams != 0 || s.MuxStreams != 0 || s.Queued != 0 {
			c.t.Errorf("%+v", s)
		}
	}
	if s := c.home.client.State(); s.Calls != 0 || s.Phase != tunnel.Idle {
		c.t.Errorf("%+v", s)
	}
	c.proxy.SetOpen(faultproxy.Both(faultproxy.Rule{Effect: faultproxy.Drop})) // lets a held direction see its end
	for i, conn := range c.proxy.Conns() {
		receive(c.t, fmt.Sprintf("the home's end of connection %d", i), conn.Gone(faultproxy.Up))
		receive(c.t, fmt.Sprintf("the broker's end of connection %d", i), conn.Gone(faultproxy.Down))
	}
}
