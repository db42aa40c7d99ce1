package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"siyuan-broker/contract"
)

func TestSilentStreamsAreKeptAlive(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *Config) { c.Heartbeat = 20 * time.Millisecond })
			finish := make(chan struct{})
			r.home.will(func(ctx context.Context, _ relayed) contract.Result {
				select {
				case <-finish:
				case <-ctx.Done():
				}
				return contract.Result{Body: json.RawMessage(`{"done":true}`)}
			})
			raw, _ := r.token(t, tenantA, agent)
			listen, call := (*wire)(nil), (*wire)(nil)
			if era >= modernEra {
				listen = r.open(t, "POST", `{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`, modernHeader(raw, "subscriptions/listen", ""))
				call = r.open(t, "POST", callList, modernHeader(raw, "tools/call", "notebook"))
			} else {
				id := r.session(t, raw)
				listen = r.open(t, "GET", "", legacyHeader(raw, id))
				call = r.open(t, "POST", legacyCall("1"), legacyHeader(raw, id))
			}
			for name, w := range map[string]*wire{"the stream": listen, "the call": call} {
				if w.resp.StatusCode != 200 || !strings.HasPrefix(w.resp.Header.Get("Content-Type"), "text/event-stream") || w.resp.Header.Get("X-Accel-Buffering") != "no" {
					t.Errorf("%s: %d %v", name, w.resp.StatusCode, w.resp.Header)
				}
				for range 4 {
					if w.comment() == "" {
						t.Fatalf("%s ended", name)
					}
				}
			}
			close(finish)
			if got := text(t, call.next(t)); !strings.Contains(got, `"done":true`) {
				t.Errorf("%s", got)
			}
		})
	}
}

func TestPromptAnswersCarryNoComment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"modern": r.send(t, "POST", "/mcp", callList, modernHeader(raw, "tools/call", "notebook")),
		"legacy": r.send(t, "POST", "/mcp", legacyCall("1"), legacyHeader(raw, r.session(t, raw))),
	} {
		if strings.Contains(w.Body.String(), ":ping") || strings.HasPrefix(w.Body.String(), ":") {
			t.Errorf("%s: %s", name, w.Body)
		}
	}
}

// stream runs serve behind a streamWriter.
func stream(t *testing.T, every time.Duration, serve func(w http.ResponseWriter, beat func())) *httptest.ResponseRecorder {
	t.Helper()
	s := &Server{cfg: Config{Heartbeat: every}}
	rec := httptest.NewRecorder()
	rec.Header().Set("Vary", "Origin") // what the server set before
	s.serveStream(rec, httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		serve(w, w.(*streamWriter).beat)
	}))
	return rec
}

func TestAStreamsHeadersAreTheSDKs(t *testing.T) {
	t.Parallel()
	w := stream(t, time.Hour, func(w http.ResponseWriter, beat func()) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Mcp-Session-Id", "s")
		_, _ = w.Write([]byte("data: 1\n\n"))
		beat()
		_, _ = w.Write([]byte("data: 2\n\n"))
	})
	if got := w.Body.String(); got != "data: 1\n\n: ping\n\ndata: 2\n\n" {
		t.Errorf("%q", got)
	}
	if h := w.Header(); h.Get("Mcp-Session-Id") != "s" || h.Get("Vary") != "Origin" || h.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v", h)
	}
}

func TestAnErrorAfterACommentIsAnEvent(t *testing.T) {
	t.Parallel()
	w := stream(t, time.Hour, func(w http.ResponseWriter, beat func()) {
		beat()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("{\"error\":1}\n"))
	})
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" || w.Body.String() != ": ping\n\nevent: message\ndata: {\"error\":1}\n\n" {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}

func TestAnAnswerThatIsNoStreamGetsNoComment(t *testing.T) {
	t.Parallel()
	w := stream(t, time.Hour, func(w http.ResponseWriter, beat func()) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("{}"))
		beat()
	})
	if w.Code != 400 || w.Body.String() != "{}" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestNoCommentFollowsTheEnd(t *testing.T) {
	t.Parallel()
	var late func()
	w := stream(t, time.Hour, func(_ http.ResponseWriter, beat func()) { late = beat })
	if late(); w.Body.Len() != 0 {
		t.Errorf("%q", w.Body)
	}
}

// Comments and the SDK's events share one connection: with -race this fails
// where they do not also share a lock.
func TestCommentsNeverSplitAnEvent(t *testing.T) {
	t.Parallel()
	w := stream(t, time.Microsecond, func(w http.ResponseWriter, _ func()) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2000 {
			_, _ = w.Write([]byte("data: x\n\n"))
			w.(http.Flusher).Flush()
		}
	})
	events := 0
	for _, block := range strings.Split(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
		switch block {
		case "data: x":
			events++
		case ": ping":
		default:
			t.Fatalf("%q", block)
		}
	}
	if events != 2000 {
		t.Errorf("%d events", events)
	}
}

// stuck is a client that reads nothing: writing to it ends at a deadline only.
type stuck struct {
	http.ResponseWriter
	mu      sync.Mutex
	release chan struct{} // closed by a deadline within two seconds
	writing chan struct{}
}

func (s *stuck) Write([]byte) (int, error) {
	s.writing <- struct{}{}
	<-s.release
	return 0, os.ErrDeadlineExceeded
}

func (s *stuck) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !at.IsZero() && time.Until(at) < 2*time.Second && s.release != nil {
		close(s.release)
	}
	return nil
}

func TestAClientThatReadsNothingHoldsNoRequestThatWasCut(t *testing.T) {
	t.Parallel()
	w := &stuck{ResponseWriter: httptest.NewRecorder(), release: make(chan struct{}), writing: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	s := &Server{cfg: Config{Heartbeat: time.Millisecond}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.serveStream(w, httptest.NewRequestWithContext(ctx, "GET", "/mcp", nil), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
	}()
	within(t, "a comment", w.writing)
	cancel()
	within(t, "the end of the request", ended)
}
