package mcpserver

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/token"
	"siyuan-broker/tenants"
)

// benchServer is a server without tokens and store around a home that answers
// at once.
func benchServer(b *testing.B) (*Server, *fixed) {
	b.Helper()
	f := &fixed{claims: token.Claims{ID: "j", Tenant: tenantA, Member: member, Agent: agent, ExpiresAt: time.Now().Add(time.Hour)}}
	f.snapshot = admission.Compile(facts(tenantA, agent), catalogue)
	s, err := New(Config{PublicURLs: []string{publicURL}, Issuer: publicURL, Catalogue: catalogue, Tokens: f, Snapshots: f, Relay: &home{}, Recorder: f})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s, f
}

func BenchmarkModernCall(b *testing.B) {
	s, _ := benchServer(b)
	b.ReportAllocs()
	for b.Loop() {
		req := httptest.NewRequestWithContext(b.Context(), "POST", "https://notes.example/mcp", strings.NewReader(callList))
		for k, v := range modernHeader("x", "tools/call", "notebook") {
			req.Header.Set(k, v)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, req); w.Code != http.StatusOK {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}

// BenchmarkInvoke is what a call costs without HTTP and MCP around it.
func BenchmarkInvoke(b *testing.B) {
	s, f := benchServer(b)
	who := &Request{Claims: f.claims, Snapshot: f.snapshot, Arrived: time.Now()}
	args := []byte(`{"action":"list"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, failed := s.Invoke(b.Context(), who, "notebook", args, nil); failed {
			b.Fatal("failed")
		}
	}
}

// BenchmarkAgent is the cost of an agent's first request, and what stays in
// memory for it.
func BenchmarkAgent(b *testing.B) {
	s, _ := benchServer(b)
	s.agents.Resize(1 << 20)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ReportAllocs()
	for b.Loop() {
		s.agentFor(admission.Compile(facts(tenantA, tenants.NewID()), catalogue))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(s.agents.Len()), "heap-B/agent")
}
