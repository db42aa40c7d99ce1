package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestSettingsComeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	s, err := settingsFrom(environment("BENCH_ROUNDS", "9", "BENCH_SECONDS", "1.5", "BENCH_CONNECTORS", "0", "BENCH_ONLY", "calls, idle", "FRPS", "a", "FRPC", "b"))
	if err != nil || s.rounds != 9 || s.cell != 1500*time.Millisecond || s.connectors != 0 || s.frps != "a" || s.frpc != "b" {
		t.Errorf("%+v, %v", s, err)
	}
	if !s.wants(sectionCalls) || !s.wants(sectionIdle) || s.wants(sectionParts) {
		t.Errorf("sections %v", s.sections)
	}
	if s, err := settingsFrom(environment()); err != nil || s.rounds != 3 || s.connectors != 10_000 || !s.wants(sectionParts) {
		t.Errorf("without any: %+v, %v", s, err)
	}
	for _, bad := range [][]string{{"BENCH_ROUNDS", "0"}, {"BENCH_SECONDS", "soon"}, {"BENCH_ONLY", "everything"}, {"FRPS", "a"}} {
		if _, err := settingsFrom(environment(bad...)); err == nil || !strings.Contains(err.Error(), bad[0]) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestQuantilesAndSpreads(t *testing.T) {
	t.Parallel()
	var took []time.Duration
	for i := 100; i > 0; i-- {
		took = append(took, time.Duration(i)*time.Microsecond)
	}
	s := summarise(took, 2*time.Second)
	if s.p50 != 51*time.Microsecond || s.p99 != 100*time.Microsecond || s.rate != 50 || s.calls != 100 {
		t.Errorf("%+v", s)
	}
	if s := summarise(nil, time.Second); s.p50 != 0 || s.rate != 0 {
		t.Errorf("of nothing: %+v", s)
	}
	for _, c := range []struct {
		values []float64
		want   spread
	}{{nil, spread{}}, {[]float64{3}, spread{3, 3, 3}}, {[]float64{5, 1, 3}, spread{3, 1, 5}}, {[]float64{4, 1, 2, 9}, spread{3, 1, 9}}} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

// A round in which everything was four times slower counts like the others.
func TestSubjectsAreComparedRoundByRound(t *testing.T) {
	t.Parallel()
	a := []sample{{rate: 10}, {rate: 40}, {rate: 30}}
	b := []sample{{rate: 20}, {rate: 80}, {rate: 10}}
	got, ok := over(a, b, rate)
	if want := (spread{0.5, 0.5, 3}); !ok || got != want {
		t.Errorf("%v %v, want %v", got, ok, want)
	}
	for _, nothing := range [][]sample{nil, {{rate: 0}}} {
		if _, ok := over(a, nothing, rate); ok {
			t.Errorf("a ratio to %v", nothing)
		}
	}
}

func TestASubjectThatNeverAnsweredIsAnError(t *testing.T) {
	t.Parallel()
	r := results{{200, 1, "one"}: {{calls: 0, failed: 20}, {calls: 3}}, {200, 16, "one"}: {{calls: 5}}}
	if err := r.silent(); err != nil {
		t.Errorf("all have answered: %v", err)
	}
	r[cell{200, 64, "one"}] = []sample{{failed: 20}, {failed: 1}}
	if err := r.silent(); err == nil || !strings.Contains(err.Error(), "one (200 bytes, 64 connections)") || strings.Contains(err.Error(), "16") {
		t.Errorf("%v", err)
	}
}

func TestBenchmarkLinesBecomeMetrics(t *testing.T) {
	t.Parallel()
	m := metrics{}
	m.read(`goos: linux
BenchmarkHotLane/modern/200-2         	    2000	     41250 ns/op	   9.70 MB/s	    6100 B/op	      73 allocs/op
BenchmarkWindow 	       1	        14.3 speed-ratio	 1.25 1MiB-result-RTT
--- BENCH: BenchmarkOther-2
PASS
ok  	siyuan-broker/x	1.2s
`)
	want := metrics{"HotLane/modern/200 ns/op": 41250, "HotLane/modern/200 MB/s": 9.70, "HotLane/modern/200 B/op": 6100, "HotLane/modern/200 allocs/op": 73,
		"Window speed-ratio": 14.3, "Window 1MiB-result-RTT": 1.25}
	if fmt.Sprint(m) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", m, want)
	}
}

func TestAGoalIsMetMissedOrNotMeasured(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]goal{
		"met": atMost("1", "", 0.5, 0.5, true), "missed": atMost("1", "", 0.51, 0.5, true),
		"not measured": atLeast("1", "", math.NaN(), 3, false),
	} {
		if got := g.verdict(); got != want {
			t.Errorf("%+v is %s", g, got)
		}
	}
	if g := atLeast("1", "", 2.9, 3, true); g.verdict() != "missed" || g.wanted != "≥ 3" || g.reached != "2.9" {
		t.Errorf("%+v", g)
	}
}

func TestGoalsComeFromTheCellsTheyName(t *testing.T) {
	t.Parallel()
	r := report{calls: results{}, opponent: throughFRP}
	at := func(name string, p time.Duration, rate float64) {
		r.calls[cell{200, 16, name}] = []sample{{p50: p, p99: 2 * p, rate: rate, cpu: map[string]time.Duration{"broker": 60, "echo": 30}}}
	}
	at(throughFRP, 1000, 100)
	at(ours, 200, 500)
	at(floor, 10, 9000)
	found := map[string]goal{}
	for _, g := range r.goals() {
		found[g.what] = g
	}
	for what, reached := range map[string]string{
		"p50: broker ÷ frp + SDK server, 16 connections":               "0.2",
		"p99: broker ÷ frp + SDK server, 16 connections":               "0.2",
		"throughput: broker ÷ frp + SDK server, 16 connections":        "5",
		"CPU of the broker a call ÷ echo floor, 16 connections":        "2",
		"p50: broker ÷ frp + SDK server, 64 connections":               "–",
		"p50: broker, 1 kernel call ÷ frp + SDK server, 1 connections": "–",
	} {
		if g, ok := found[what]; !ok || g.reached != reached {
			t.Errorf("%s: %+v, want %s", what, g, reached)
		}
	}
}

func TestArgumentsHaveTheirSize(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		var v struct{ Action, Notebook, Path, Markdown string }
		text := argumentsOf(size)
		if err := json.Unmarshal([]byte(text), &v); err != nil || len(text) != size || v.Action != "create" || v.Markdown == "" {
			t.Errorf("%d: %d bytes, %v", size, len(text), err)
		}
	}
}

// echoMCP answers like an MCP server and counts what it got.
func echoMCP(t *testing.T, calls *atomic.Int64, answer func(n int64) string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		var m struct {
			ID     *int64
			Method string
			Params struct{ Name string }
		}
		if err := json.Unmarshal(body, &m); err != nil {
			t.Errorf("%v in %s", err, body)
		}
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "s1")
		case "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
			return
		case "tools/call":
			if r.Header.Get("Authorization") != "Bearer secret" || m.Params.Name != "block" ||
				r.Header.Get("Mcp-Session-Id") == "" && r.Header.Get("Mcp-Name") != "block" {
				t.Errorf("%v %s", r.Header, body)
			}
			_, _ = io.WriteString(w, answer(calls.Add(1)))
			return
		default:
			t.Errorf("method %q", m.Method)
		}
		_, _ = io.WriteString(w, `{"result":{}}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestTheLoadSpeaksBothErasAndCountsFailures(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]mode{"modern": modern, "legacy": legacy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			s := echoMCP(t, &calls, func(n int64) string {
				if n%4 == 0 {
					return `{"result":{"content":[],"isError":true}}`
				}
				return `{"result":{"content":[]}}`
			})
			got := load(t.Context(), &target{url: s.URL + "/mcp", token: "secret", mode: m, tool: "block", arguments: `{}`}, 3, 0, 50*time.Millisecond, nil)
			if got.calls+got.failed != int(calls.Load()) || got.calls == 0 || got.failed == 0 || got.failure == nil || got.p50 <= 0 || got.p99 < got.p50 {
				t.Errorf("%+v of %d calls", got, calls.Load())
			}
		})
	}
}

func TestALoadOnNothingFails(t *testing.T) {
	t.Parallel()
	got := load(t.Context(), &target{url: "http://127.0.0.1:1/", mode: plain, arguments: `{}`}, 1, time.Millisecond, time.Millisecond, nil)
	if got.failure == nil || got.calls != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAFrozenKernelRepeatsItself(t *testing.T) {
	t.Parallel()
	asked := 0
	m := &memory{known: map[string]*remembered{}, kernel: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprintf(w, "%d %s", asked, body)
	})}
	post := func(path, body string) string {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
		return fmt.Sprint(w.Code, " ", w.Body)
	}
	for _, step := range []struct{ path, body, want string }{
		{"/api/a", "x", "418 1 x"}, {"/api/a", "x", "418 2 x"}, {echoPath, "y", "200 y"}, {freezePath, "", "200 "},
		{"/api/a", "x", "418 3 x"}, {"/api/a", "x", "418 3 x"}, {"/api/a", "z", "418 4 z"}, {"/api/b", "x", "418 5 x"}, {"/api/a", "x", "418 3 x"},
	} {
		if got := post(step.path, step.body); got != step.want {
			t.Errorf("%s %q: %q, want %q", step.path, step.body, got, step.want)
		}
	}
}

func TestAProcessThatEndsIsAnErrorWithItsLog(t *testing.T) {
	t.Parallel()
	p, err := start("sh", "sh", []string{"WORD=hello"}, "-c", "echo ready; read line; echo \"\\\"$line $WORD\\\"\"; echo broken >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if l, err := p.line(t.Context()); l != "ready" || err != nil {
		t.Fatal(l, err)
	}
	var said string
	if err := p.ask(t.Context(), "count", &said); err != nil || said != "count hello" {
		t.Fatal(said, err)
	}
	<-p.ended
	if err := p.failure(); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%v", err)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheCertificateIsTrusted(t *testing.T) {
	t.Parallel()
	f := &certificateFolder{t.TempDir()}
	if err := f.make(); err != nil {
		t.Fatal(err)
	}
	roots, err := f.roots()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := f.listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(ln) }()
	defer s.Close()
	got := load(t.Context(), &target{url: "https://" + ln.Addr().String() + "/", mode: plain, arguments: `{"a":1}`, roots: roots}, 2, 0, 20*time.Millisecond, nil)
	if got.failure != nil || got.calls == 0 {
		t.Errorf("%+v", got)
	}
}
