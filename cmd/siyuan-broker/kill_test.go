package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker"
	"siyuan-broker/cmd/internal/faultproxy"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// killSeeds is how many times TestNothingIsWrittenTwice kills something; KILL_SEEDS
// sets another number, and KILL_SEED runs one seed alone, or a span such as 190-200.
const killSeeds = 60

// seedsToKill are the seeds that the environment asks for.
func seedsToKill(t *testing.T) (seeds []int) {
	t.Helper()
	first, last := 0, killSeeds-1
	if n, err := strconv.Atoi(os.Getenv("KILL_SEEDS")); err == nil {
		last = n - 1
	}
	if span := os.Getenv("KILL_SEED"); span != "" {
		from, to, many := strings.Cut(span, "-")
		if !many {
			to = from
		}
		var wrong, wrongToo error
		first, wrong = strconv.Atoi(from)
		last, wrongToo = strconv.Atoi(to)
		if wrong != nil || wrongToo != nil || first < 0 || last < first {
			t.Fatalf("KILL_SEED=%q is neither a seed such as 197 nor a span such as 190-200", span)
		}
	}
	for seed := first; seed <= last; seed++ {
		seeds = append(seeds, seed)
	}
	return seeds
}

// killTimeout is the broker's bound for a call, and how long an agent waits.
const killTimeout = 2 * time.Second

// doomed is a home, its broker and its kernel, each a process that can be killed,
// with something in between that can lose what is said.
type doomed struct {
	t       *testing.T
	h       *hosting
	tunnel  *faultproxy.Proxy // between connector and broker
	steps   *stepper          // between connector and kernel
	self    string            // this program, which is also the kernel
	kernel  []string          // environment of the kernel
	mu      sync.Mutex        // a blow falls from a handler
	running map[string]*exec.Cmd
	agent   *mcp.ClientSession
	book    string // notebook that the writes are in
}

func newDoomed(t *testing.T) *doomed {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &doomed{t: t, h: newHosting(t), self: self, running: map[string]*exec.Cmd{}}
	listen, kernel := strings.TrimPrefix(d.h.url, "http://"), freeAddr(t)
	if d.tunnel, err = faultproxy.Start(listen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.tunnel.Close() })
	writes, err := samplekernel.New(samplekernel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writes.Close() })
	d.steps = &stepper{kernel: kernel, writes: writes.Faults()}
	d.steps.arm(moment{})
	front := httptest.NewServer(d.steps)
	t.Cleanup(func() { d.steps.release(); front.CloseClientConnections(); front.Close() })
	d.kernel = append(os.Environ(), "TEST_KERNEL_DIR="+t.TempDir(), "TEST_KERNEL_LISTEN="+kernel)
	public := "http://" + d.tunnel.Addr()
	d.h.env = with(d.h.env, "BROKER_PUBLIC_URLS="+public+","+d.h.url, "BROKER_CALL_TIMEOUT="+killTimeout.String(), "BROKER_CALLS_PER_MINUTE=0")
	d.h.homeEnv = with(d.h.homeEnv, "CONNECTOR_BROKER="+public, "SIYUAN_API_URL="+front.URL, "CONNECTOR_WRITE_SETTLE=1s")
	d.h.run(d.h.broker, d.h.env, "migrate")
	d.start("broker")
	d.h.await(t, "the broker is ready", func() bool {
		cmd := exec.Command(d.h.broker, "health")
		cmd.Env = d.h.env
		return cmd.Run() == nil
	})
	d.register()
	d.start("kernel")
	d.start("connector")
	d.prepare()
	return d
}

// register makes a tenant whose agent may do everything.
func (d *doomed) register() {
	made := d.h.json("tenant", "create", "--name", "Home", "--email", "you@example.org")
	ids := []string{"--tenant", made["tenant"], "--instance", made["instance"]}
	d.h.json(append([]string{"connector", "add", "--key", d.h.run(d.h.connector, d.h.homeEnv, "key")}, ids...)...)
	agent := d.h.json(append([]string{"token", "create", "--name", "laptop", "--level", "rwd"}, ids...)...)
	d.h.run(d.h.broker, d.h.env, append([]string{"tenant", "level", "--level", "rwd"}, ids...)...)
	d.h.run(d.h.broker, d.h.env, append([]string{"tenant", "switch", "--name", "workspace"}, ids...)...)
	// The same call is sent until it is decided, far more often than an agent may.
	d.h.run(d.h.broker, d.h.env, "tenant", "writes", "--tenant", made["tenant"], "--off")
	c := broker.Config{DatabaseURL: d.setting("DATABASE_URL"), DatabaseRecord: d.setting("DATABASE_RECORDER_URL"), DatabaseDirect: d.setting("DATABASE_DIRECT_URL"),
		MasterKey: d.setting("BROKER_MASTER_KEY")}
	db, err := broker.OpenDatabase(d.t.Context(), &c, slog.New(slog.DiscardHandler))
	d.check(err)
	instance, err := uuid.Parse(made["instance"])
	d.check(err)
	tenant, err := uuid.Parse(made["tenant"])
	d.check(err)
	d.check(db.In(d.t.Context(), tenant, func(tx tenants.Tx) error {
		for _, tool := range catalogue.New().Tools() {
			for _, a := range tool.Actions {
				if !a.Kind.Mutates() {
					continue
				}
				if err := tx.SetToggle(d.t.Context(), instance, tenants.Toggle{Tool: a.Tool, Action: a.Name, Enabled: true}); err != nil {
					return err
				}
				if !a.Dangerous {
					continue
				}
				if err := tx.SetConsent(d.t.Context(), instance, tenants.Consent{Tool: a.Tool, Action: a.Name, Mode: tenants.ConsentAllow}); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	d.check(db.Close(context.Background()))
	data := d.homeSetting("CONNECTOR_DATA")
	d.check(os.WriteFile(filepath.Join(data, "policy.yaml"), []byte("max_level: rwd\n"), 0o600))
	d.agent = (&client{url: d.h.url + "/mcp", token: agent["token"]}).connect(d.t)
}

func (d *doomed) setting(name string) string     { return lookup(d.h.env, name) }
func (d *doomed) homeSetting(name string) string { return lookup(d.h.homeEnv, name) }

func lookup(env []string, name string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

func (d *doomed) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *doomed) start(who string) {
	d.t.Helper()
	var cmd *exec.Cmd
	switch who {
	case "broker":
		cmd = d.h.start(d.h.broker, d.h.env, "serve")
	case "connector":
		cmd = d.h.start(d.h.connector, d.h.homeEnv, "run")
	case "kernel":
		cmd = d.h.start(d.self, d.kernel)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running[who] = cmd
}

func (d *doomed) process(who string) *exec.Cmd {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running[who]
}

func (d *doomed) signal(who string, sig os.Signal) {
	d.t.Helper()
	d.check(d.process(who).Process.Signal(sig))
}

// kill is SIGKILL.
func (d *doomed) kill(who string) {
	cmd := d.process(who)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// tell is what a call came to: its answer, or the code of its error, or neither
// when no answer came.
type tell struct {
	body   map[string]any
	code   contract.Code
	detail map[string]any
}

func (d *doomed) call(args map[string]any) tell {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout+time.Second)
	defer cancel()
	args = cloneArgs(args)
	tool := args["tool"].(string)
	delete(args, "tool")
	r, err := d.agent.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil || len(r.Content) != 1 {
		return tell{}
	}
	var out struct {
		Error *struct {
			Type, Code string
			Detail     map[string]any
		} `json:"error"`
	}
	text := []byte(r.Content[0].(*mcp.TextContent).Text)
	var body map[string]any
	if json.Unmarshal(text, &out) != nil || json.Unmarshal(text, &body) != nil {
		d.t.Fatalf("answer %s", text)
	}
	if out.Error == nil {
		return tell{body: body}
	}
	code := out.Error.Code
	if code == "" {
		code = out.Error.Type
	}
	return tell{code: contract.Code(code), detail: out.Error.Detail}
}

func (d *doomed) key() string {
	d.t.Helper()
	key, err := uuid.NewV7()
	d.check(err)
	return key.String()
}

func cloneArgs(args map[string]any) map[string]any {
	out := make(map[string]any, len(args))
	for k, v := range args {
		out[k] = v
	}
	return out
}

// sure calls until it succeeds, under one request id: on a busy machine also a
// call that nothing disturbs may take longer than its caller waits.
func (d *doomed) sure(args map[string]any) map[string]any {
	d.t.Helper()
	args = cloneArgs(args)
	args["requestId"] = d.key()
	var last tell
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); {
		if last = d.call(args); last.body != nil {
			return last.body
		}
		if last.code != "" && !again(last.code) {
			break
		}
		time.Sleep(20 * time.Millisecond) // until what was killed is back
	}
	d.t.Fatalf("%v: %+v", args, last)
	return nil
}

// again: the answer says that nothing was done, or that it is not known.
func again(c contract.Code) bool {
	return slices.Contains([]contract.Code{
		contract.OutcomeUnknown, contract.ConnectorOffline, contract.SiYuanOffline, contract.Offline, contract.TunnelReplaced, contract.Timeout,
		contract.IndexUnavailable, contract.RateLimited, contract.SyncInProgress,
	}, c)
}

func (d *doomed) prepare() {
	d.t.Helper()
	d.h.await(d.t, "the broker knows what the home allows", func() bool {
		return d.call(map[string]any{"tool": "notebook", "action": "remove", "notebook": "20240101090000-missing"}).code == contract.NotFound
	})
	made := d.sure(map[string]any{"tool": "notebook", "action": "create", "name": "Doomed"})
	d.book = notebookOf(made)
}

// fates are what happens at a moment, and how things are put right after it.
var fates = []struct {
	name   string
	at     func(d *doomed, m *moment)
	mended func(d *doomed)
}{
	{"connector killed", func(d *doomed, m *moment) { m.happen, m.lose = func() { d.kill("connector") }, !m.after }, func(d *doomed) { d.start("connector") }},
	{"kernel killed", func(d *doomed, m *moment) { m.happen, m.lose = func() { d.kill("kernel") }, true }, func(d *doomed) { d.start("kernel") }},
	{"kernel silent", func(_ *doomed, m *moment) { m.happen, m.hold = func() {}, true }, func(d *doomed) { d.steps.release() }},
	{"kernel stopped", func(d *doomed, m *moment) { m.happen, m.after = func() { d.signal("kernel", syscall.SIGSTOP) }, false }, func(d *doomed) { d.signal("kernel", syscall.SIGCONT) }},
	{"broker killed", func(d *doomed, m *moment) { m.happen = func() { d.kill("broker") } }, func(d *doomed) { d.start("broker") }},
	{"tunnel reset", func(d *doomed, m *moment) {
		m.happen = func() { d.tunnel.SetOpen(faultproxy.Both(faultproxy.Rule{Effect: faultproxy.Reset})) }
	}, func(*doomed) {}},
	{"tunnel silent", func(d *doomed, m *moment) {
		m.happen = func() { d.tunnel.SetOpen(faultproxy.Both(faultproxy.Rule{Effect: faultproxy.Drop})) }
	}, func(d *doomed) { d.tunnel.SetOpen(faultproxy.Both(faultproxy.Rule{Effect: faultproxy.Reset})) }},
}

// TestNothingIsWrittenTwice kills and silences connector, kernel, broker and
// tunnel at every step of every kind of write. Whatever happens: no kernel write
// is carried out twice, what the agent is told is true, and the same call sent
// again tells how it ended.
func TestNothingIsWrittenTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	seeds := seedsToKill(t)
	const worlds = 6 // they mostly wait
	for w := range min(worlds, len(seeds)) {
		t.Run(fmt.Sprint("world ", w), func(t *testing.T) {
			t.Parallel()
			d := newDoomed(t)
			usual := map[string]run{}
			for i := w; i < len(seeds); i += worlds {
				d.try(seeds[i], usual)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// run is what an undisturbed call of a deed does.
type run struct {
	requests int
	writes   map[string]int
}

// try is one seed. Deeds and fates go round so that every pair comes up; the
// moment within the call is drawn.
func (d *doomed) try(seed int, usual map[string]run) {
	d.t.Helper()
	deed, fate := deeds[seed%len(deeds)], fates[(seed/len(deeds)+seed)%len(fates)]
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	want, ok := usual[deed.name]
	if !ok {
		want = d.undisturbed(deed.args, fmt.Sprintf("dry%d", seed))
		usual[deed.name] = want
	}
	args := deed.args(d, fmt.Sprintf("s%d", seed))
	args["requestId"] = d.key()
	m := moment{n: 1 + rng.IntN(want.requests), after: rng.IntN(2) == 1}
	fate.at(d, &m)
	name := fmt.Sprintf("seed %d: %s, %s at request %d of %d (after=%t)", seed, deed.name, fate.name, m.n, want.requests, m.after)

	d.steps.arm(m)
	first := d.call(args)
	then, struck := d.steps.disarm()
	lies := liesFirst(first, then, want)
	if struck {
		fate.mended(d)
	}
	last := d.retry(args)
	d.steps.release()
	_, writes := d.steps.seen()
	for _, lie := range append(lies, liesLast(last, writes, want)...) {
		d.t.Errorf("%s: %s", name, lie)
	}
	d.steps.arm(moment{})
}

// undisturbed finds out what a deed does in one call.
func (d *doomed) undisturbed(args func(d *doomed, n string) map[string]any, name string) run {
	d.t.Helper()
	var last tell
	for i := range 20 {
		a := args(d, fmt.Sprintf("%s-%d", name, i))
		d.steps.arm(moment{})
		if last = d.call(a); last.body != nil {
			n, writes := d.steps.seen()
			return run{n, writes}
		}
	}
	d.t.Fatalf("%s: %+v", name, last)
	return run{}
}

// retry sends the same call until its outcome is told.
func (d *doomed) retry(args map[string]any) (last tell) {
	limit := time.After(50 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if last = d.call(args); last.body != nil || last.code != "" && !again(last.code) {
			return last
		}
		select {
		case <-limit:
			return last
		case <-tick.C:
		}
	}
}

// liesFirst holds the first answer against what had been carried out when it
// came.
func liesFirst(a tell, writes map[string]int, want run) []string {
	switch {
	case a.body == nil && a.code == "", a.code == contract.OutcomeUnknown: // claims nothing
	case a.body != nil:
		if !equalCounts(writes, want.writes) {
			return []string{fmt.Sprintf("answered success after %v of %v", writes, want.writes)}
		}
	case len(writes) > 0:
		return []string{fmt.Sprintf("answered %s, which says that nothing happened, after %v", a.code, writes)}
	}
	return nil
}

// liesLast holds the final answer against everything that was carried out.
func liesLast(a tell, writes map[string]int, want run) (lies []string) {
	total := 0
	for path, n := range writes {
		total += n
		if n > want.writes[path] && !slices.Contains(killRepeatable, path) {
			lies = append(lies, fmt.Sprintf("%s was carried out %d times, want at most %d", path, n, want.writes[path]))
		}
	}
	switch {
	case a.body != nil:
		if !equalCounts(writes, want.writes) {
			lies = append(lies, fmt.Sprintf("the retry says success, carried out is %v of %v", writes, want.writes))
		}
	case a.code == contract.PartlyDone:
		if done, _ := a.detail["done"].([]any); len(done) != total {
			lies = append(lies, fmt.Sprintf("the retry says that %v happened, carried out is %v", done, writes))
		}
	default:
		lies = append(lies, fmt.Sprintf("the retry ends with %q %v after %v", a.code, a.detail, writes))
	}
	return lies
}

func TestADoubleWriteAndAFalseAnswerAreSeen(t *testing.T) {
	t.Parallel()
	success, once, twice := tell{body: map[string]any{}}, map[string]int{"block/appendBlock": 1}, map[string]int{"block/appendBlock": 2}
	partly := tell{code: contract.PartlyDone, detail: map[string]any{"done": []any{"step"}}}
	want := run{writes: once}
	for _, c := range []struct {
		name        string
		first       bool
		a           tell
		writes      map[string]int
		wantAnyLies bool
	}{
		{"success", false, success, once, false},
		{"written twice", false, success, twice, true},
		{"success without a write", false, success, nil, true},
		{"partly done", false, partly, once, false},
		{"partly done, and nothing was", false, partly, nil, true},
		{"no end", false, tell{code: contract.OutcomeUnknown}, once, true},
		{"unknown at first", true, tell{code: contract.OutcomeUnknown}, once, false},
		{"no answer at first", true, tell{}, once, false},
		{"offline after a write", true, tell{code: contract.SiYuanOffline}, once, true},
		{"offline", true, tell{code: contract.SiYuanOffline}, nil, false},
		{"success at first without a write", true, success, nil, true},
	} {
		judge := liesLast
		if c.first {
			judge = liesFirst
		}
		if lies := judge(c.a, c.writes, want); (len(lies) > 0) != c.wantAnyLies {
			t.Errorf("%s: %v", c.name, lies)
		}
	}
}

func equalCounts(a, b map[string]int) bool {
	if len(a) != len(b) {
		return false
	}
	for k, n := range a {
		if b[k] != n && !slices.Contains(killRepeatable, k) {
			return false
		}
	}
	return true
}
