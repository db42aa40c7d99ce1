package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// world is a kernel with its notes and an executor for each way to be kept out
// of a notebook.
type world struct {
	name   string
	saved  string // a copy of the workspace as it was before anything was asked
	api    *kernelAPI
	kernel *samplekernel.Kernel // nil when the kernel is a real SiYuan
	client *siyuan.Client
	dice   []*dice // what the kernel and the guard draw ids from
	clock  *clock
	notes  *notes
	logs   *lines
	exec   map[string]*tools.Executor // by viewer
}

// worldEpoch is when every sample world begins.
var worldEpoch = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// newWorld starts a sample kernel in a workspace folder.
func newWorld(t testing.TB, name, dir string) *world {
	t.Helper()
	w := &world{name: name, clock: &clock{now: worldEpoch}, dice: []*dice{{}, {}}, logs: &lines{}}
	for _, d := range w.dice {
		d.seed(0)
	}
	k, err := samplekernel.New(samplekernel.Options{
		Dir: dir, IndexLag: -1, DeleteLag: -1, MountLag: -1, Clock: w.clock.Now, Rand: w.dice[0], Token: "sample",
	})
	check(t, err)
	t.Cleanup(func() { check(t, k.Close()) })
	server := httptest.NewServer(k.Handler())
	t.Cleanup(server.Close)
	w.kernel = k
	w.connect(t, server.URL, k.Token())
	return w
}

func (w *world) connect(t testing.TB, url, token string) {
	t.Helper()
	w.api = &kernelAPI{url: url, token: token, before: func() { w.clock.advance(time.Second) }}
	var err error
	w.client, err = siyuan.New(siyuan.Config{BaseURL: url, Token: siyuan.NewToken(token)})
	check(t, err)
	t.Cleanup(w.client.Close)
}

// bind makes the executors, after the notes are there. Without bindings they
// have all handlers.
func (w *world) bind(t testing.TB, bindings ...tools.Binding) {
	t.Helper()
	w.exec = map[string]*tools.Executor{}
	for _, v := range viewers() {
		w.exec[v.name] = w.executor(t, v.policy(t, w.notes), bindings...)
	}
}

func (w *world) executor(t testing.TB, p *policy.Policy, bindings ...tools.Binding) *tools.Executor {
	t.Helper()
	if bindings == nil {
		bindings = handlers.All()
	}
	log := w.logs.logger()
	e, err := tools.New(tools.Config{
		Guard:  guard.New(w.client.Reader(), w.client.Writer(), guard.Options{Now: w.clock.Now, Random: w.dice[1], Logger: log, Secret: []byte("equal in all worlds")}),
		Policy: p, Catalogue: catalogue.AtHome(), Now: func() time.Time { return worldEpoch }, Logger: log,
	}, bindings...)
	check(t, err)
	return e
}

// ask is one call to be made in every world.
type ask struct {
	viewer viewer
	action *catalogue.Action
	method string // "" for the call itself
	args   json.RawMessage
	n      int // the time and the ids drawn: alike in all worlds, unlike those of other calls
}

// outcome is everything a call lets anybody see.
type outcome struct {
	Body     string
	Err      string
	Stats    contract.Stats
	Progress []contract.Progress
	Log      string

	code contract.Code // "" for success
}

func (w *world) call(a ask) outcome {
	for i, d := range w.dice {
		d.seed(uint64(len(w.dice)*a.n + i)) // each its own, or guard and kernel draw the same ids
	}
	w.clock.set(worldEpoch.Add(time.Hour + time.Duration(a.n)*time.Second))
	w.logs.take()
	var o outcome
	r := w.exec[a.viewer.name].Handle(context.Background(), contract.Call{
		Method: a.method, Tool: a.action.Tool, Action: a.action.Name, RequestID: "req-proof", Grant: a.viewer.grant(w.notes), Args: a.args,
	}, func(p contract.Progress) { o.Progress = append(o.Progress, p) })
	// Each world has a folder of its own, which says nothing about notes.
	o.Body, o.Stats, o.Log = strings.ReplaceAll(string(r.Body), w.kernel.Dir(), "/workspace"), r.Stats, w.logs.take()
	o.Stats.KernelUS, o.Stats.TotalUS = 0, 0
	if r.Err != nil {
		o.Err, o.code = string(r.Err.Body()), contract.CodeOf(r.Err)
	}
	return o
}

// viewer is a caller from whom the notebook Hidden is kept in one of the ways
// there are.
type viewer struct {
	name   string
	grant  func(n *notes) *contract.Grant
	policy func(t testing.TB, n *notes) *policy.Policy
}

func viewers() []viewer {
	grant := func(standard contract.Level, levels map[string]contract.Level, switches ...contract.Switch) *contract.Grant {
		return &contract.Grant{V: contract.GrantVersion, Tenant: "t", Instance: "i", Default: standard, Levels: levels, Switches: switches, Exp: 1 << 40}
	}
	free := func(testing.TB, *notes) *policy.Policy { return policy.Fixed(contract.ReadWriteDelete) }
	return []viewer{
		{"member with shares", func(n *notes) *contract.Grant {
			return grant(contract.None, map[string]contract.Level{n.desk: contract.ReadWriteDelete, n.diary: contract.Read, n.shut: contract.ReadWrite})
		}, free},
		{"owner, notebook set to none", func(n *notes) *contract.Grant {
			return grant(contract.Read, map[string]contract.Level{n.hidden: contract.None, n.desk: contract.ReadWriteDelete}, contract.Switches()...)
		}, free},
		{"owner, notebook vetoed at home", func(n *notes) *contract.Grant {
			return grant(contract.ReadWriteDelete, map[string]contract.Level{n.diary: contract.Read}, contract.Switches()...)
		}, func(t testing.TB, n *notes) *policy.Policy {
			return policyFile(t, map[string]contract.Level{n.hidden: contract.None})
		}},
	}
}

// policyFile is a home policy that caps some notebooks.
func policyFile(t testing.TB, caps map[string]contract.Level) *policy.Policy {
	t.Helper()
	text := "max_level: rwd\nnotebooks:\n"
	for id, l := range caps {
		text += "  " + id + ": " + l.String() + "\n"
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	check(t, os.WriteFile(path, []byte(text), 0o600))
	p, err := policy.Load(path)
	check(t, err)
	return p
}

// clock is time that passes only when told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// dice is a random source that can be set back, so that two worlds draw the
// same ids for the same call.
type dice struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

var _ io.Reader = (*dice)(nil)

func (d *dice) seed(n uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var key [32]byte
	for i := range 8 {
		key[i] = byte(n >> (8 * i))
	}
	d.src = rand.NewChaCha8(key)
}

func (d *dice) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.src.Read(p)
}

// lines collects log lines without their times. What durations are in them the
// executor takes from a clock that stands still.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.buf.String()
	l.buf.Reset()
	return s
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "stack" {
			return slog.Attr{}
		}
		return a
	}}))
}

// hash gives a seed for a text.
func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		io.WriteString(h, p+"\x00") //nolint:errcheck // a hash never fails
	}
	return h.Sum64()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
