package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// What a warm call of the hot lane may allocate, from the token to the answer,
// with a relay in memory. What net/http and the tunnel need comes on top.
const (
	mallocsMax = 113
	bytesMax   = 12 << 10
)

// repeated sends the same request again and again, allocating nothing itself.
type repeated struct {
	handler http.Handler
	request *http.Request
	body    io.ReadCloser
	reader  *bytes.Reader
	text    []byte
	w       sink
}

// sink is a http.ResponseWriter that keeps nothing but status and size.
type sink struct {
	header       http.Header
	status, size int
}

func (s *sink) Header() http.Header { return s.header }
func (s *sink) WriteHeader(n int)   { s.status = n }
func (s *sink) Write(b []byte) (int, error) {
	s.size += len(b)
	return len(b), nil
}
func (s *sink) Flush() {}

func newRepeated(tb testing.TB, handler http.Handler, body string, header map[string]string) *repeated {
	tb.Helper()
	r := &repeated{handler: handler, text: []byte(body), reader: bytes.NewReader(nil), w: sink{header: http.Header{}}}
	r.request = httptest.NewRequestWithContext(tb.Context(), "POST", resource, strings.NewReader(body))
	r.request.Header.Set("Content-Type", "application/json")
	r.request.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		r.request.Header.Set(k, v)
	}
	r.body = io.NopCloser(r.reader)
	return r
}

func (r *repeated) send(tb testing.TB) {
	r.reader.Reset(r.text)
	r.request.Body = r.body
	clear(r.w.header)
	r.w.status, r.w.size = http.StatusOK, 0
	r.handler.ServeHTTP(&r.w, r.request)
	if r.w.status != http.StatusOK || r.w.size == 0 {
		tb.Fatalf("status %d, %d bytes", r.w.status, r.w.size)
	}
}

// silent is a relay that answers the same and remembers nothing.
type silent struct{ body json.RawMessage }

func (s silent) Call(context.Context, string, string, contract.Call, bool, func(contract.Progress)) contract.Result {
	return contract.Result{Body: s.body}
}

var discard = &fixed{}

// sized are lanes to a home whose results have about so many bytes, and
// arguments of as many.
func sized(tb testing.TB, size int) (l *lanes, arguments string) {
	tb.Helper()
	line := `A line of a note, as long as they are, with a \"word\" in quotes.\n`
	text := strings.Repeat(line, 1+size/len(line))[:size/len(line)*len(line)]
	l = newLanes(tb, func(c *Config) {
		c.Relay, c.Recorder = silent{json.RawMessage(`{"id":"` + notebook + `","markdown":"` + text + `"}`)}, discard
	})
	return l, `{"action":"create","notebook":"` + notebook + `","path":"/New","markdown":"` + text + `"}`
}

func documentCall(tb testing.TB, l *lanes, lane http.Handler, era, args string) *repeated {
	tb.Helper()
	body := strings.NewReplacer(`"notebook"`, `"document"`, `{"action":"list"}`, args).Replace(plainCall(era))
	header := l.header(era)
	if era == "modern" {
		header["Mcp-Name"] = "document"
	}
	return newRepeated(tb, lane, body, header)
}

// Not beside other tests: it counts what the process allocates.
func TestAHotCallAllocatesLittle(t *testing.T) {
	l, args := sized(t, 200)
	for _, era := range []string{"modern", "legacy"} {
		call := documentCall(t, l, l.hot.handlers, era, args)
		for range 10 {
			call.send(t)
		}
		const calls = 500
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			call.send(t)
		}
		runtime.ReadMemStats(&after)
		mallocs, size := (after.Mallocs-before.Mallocs)/calls, (after.TotalAlloc-before.TotalAlloc)/calls
		t.Logf("%s: %d mallocs, %d bytes", era, mallocs, size)
		if float64(mallocs) > mallocsMax*(1+raceShare) || float64(size) > bytesMax*(1+raceShare) {
			t.Errorf("%s: %d mallocs and %d bytes a call, want at most %d and %d", era, mallocs, size, mallocsMax, bytesMax)
		}
		if call.w.header.Get("Content-Length") == "" {
			t.Errorf("%s: the call did not take the hot lane", era)
		}
	}
}

// counted counts everything that would be a round trip to the database or to
// other nodes. The background of a node may make some; a call may not.
type counted struct {
	*store
	trips atomic.Int64
}

func (c *counted) SigningKeys(ctx context.Context) ([]tenants.SigningKey, error) {
	c.trips.Add(1)
	return c.store.SigningKeys(ctx)
}

func (c *counted) LoadSnapshot(ctx context.Context, tenant, agent tenants.ID) (*tenants.Snapshot, error) {
	c.trips.Add(1)
	return c.store.LoadSnapshot(ctx, tenant, agent)
}

func (c *counted) Deliver(context.Context, Directed) (bool, error) {
	c.trips.Add(1)
	return false, nil
}

func TestAWarmCallAsksNobody(t *testing.T) {
	t.Parallel()
	from := &counted{store: newStore()}
	r := newRigOn(t, from, func(c *Config) { c.Peers, c.Keys = from, from })
	raw, _ := r.token(t, tenantA, agent)
	id := r.session(t, raw)
	for era, header := range map[string]map[string]string{"modern": modernHeader(raw, "tools/call", "notebook"), "legacy": legacyHeader(raw, id)} {
		call := func() {
			if w := r.send(t, "POST", "/mcp", plainCall(era), header); w.Code != http.StatusOK || !tookHotLane(w) {
				t.Fatalf("%s: %d %s", era, w.Code, w.Body)
			}
		}
		call()
		warm := from.trips.Load()
		if warm == 0 {
			t.Error("nothing was counted that must have been asked once")
		}
		for range 100 {
			call()
		}
		if trips := from.trips.Load() - warm; trips != 0 {
			t.Errorf("%s: 100 warm calls made %d round trips", era, trips)
		}
	}
}

// The two lanes in one run: compare them with each other only.
func BenchmarkHotLane(b *testing.B) {
	benchmarkLane(b, func(l *lanes) http.Handler { return l.hot.handlers })
}
func BenchmarkSDKLane(b *testing.B) {
	benchmarkLane(b, func(l *lanes) http.Handler { return l.sdk.handlers })
}

func benchmarkLane(b *testing.B, lane func(*lanes) http.Handler) {
	b.Helper()
	for _, era := range []string{"modern", "legacy"} {
		for _, size := range []int{200, 16 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d", era, size), func(b *testing.B) {
				l, args := sized(b, size)
				call := documentCall(b, l, lane(l), era, args)
				b.ReportAllocs()
				b.SetBytes(int64(2 * size))
				for b.Loop() {
					call.send(b)
				}
			})
		}
	}
}
