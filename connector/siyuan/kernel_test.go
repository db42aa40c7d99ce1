package siyuan

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// request is what a fake kernel was sent.
type request struct {
	path   string
	auth   string
	fields map[string]json.RawMessage // of the JSON body, or of the form as JSON strings
}

// kernel is a fake that records requests and answers by a function.
type kernel struct {
	*httptest.Server
	mu   sync.Mutex
	seen []request
}

func newKernel(t *testing.T, answer func(w http.ResponseWriter, path string)) *kernel {
	t.Helper()
	k := &kernel{}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := request{path: strings.TrimPrefix(r.URL.Path, "/api/"), auth: r.Header.Get("Authorization")}
		req.fields = bodyFields(r)
		// The server notices that a client went away only behind the whole body.
		_, _ = io.Copy(io.Discard, r.Body)
		k.mu.Lock()
		k.seen = append(k.seen, req)
		k.mu.Unlock()
		defer func() {
			switch recover() {
			case nil:
			case errHang:
				<-r.Context().Done()
			default:
				t.Error("the fake kernel panicked")
			}
		}()
		answer(w, req.path)
	}))
	t.Cleanup(k.Close)
	return k
}

// errHang makes a fake kernel keep a request until the client goes away.
var errHang = errors.New("hang")

func bodyFields(r *http.Request) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		_ = json.NewDecoder(r.Body).Decode(&fields)
		return fields
	}
	for form := multipart.NewReader(r.Body, params["boundary"]); ; {
		part, err := form.NextPart()
		if err != nil {
			return fields
		}
		data, _ := io.ReadAll(part)
		fields[part.FormName()], _ = json.Marshal(string(data))
	}
}

// requests are what was sent so far.
func (k *kernel) requests() []request {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]request(nil), k.seen...)
}

// paths are the endpoints called so far.
func (k *kernel) paths() []string {
	var all []string
	for _, r := range k.requests() {
		all = append(all, r.path)
	}
	return all
}

func sendJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func sendData(w http.ResponseWriter, data any) {
	sendJSON(w, http.StatusOK, map[string]any{"code": 0, "msg": "", "data": data})
}

// noWait is a clock whose sleeps take no time and are remembered.
type noWait struct {
	mu    sync.Mutex
	slept []time.Duration
}

func (*noWait) Now() time.Time { return time.Unix(1_700_000_000, 0) }

func (c *noWait) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = append(c.slept, d)
	return ctx.Err()
}

const testToken = "s3cr3t-token"

func newClient(t *testing.T, url string, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{
		BaseURL: url, Token: NewToken(testToken), Clock: &noWait{}, Random: func() float64 { return 1 },
	}
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// exchange is one recorded request with its answer.
type exchange struct {
	Path        string          `json:"path"`
	Status      int             `json:"status"`
	ContentType string          `json:"content_type"`
	Answer      json.RawMessage `json:"answer"`
}

func load[T any](t *testing.T, name string) T {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// replay is a kernel that answers each endpoint with the named recording, and
// checkBlockExist with false unless a recording says otherwise.
func replay(t *testing.T, names ...string) *kernel {
	t.Helper()
	all := load[map[string]exchange](t, "exchanges.json")
	byPath := map[string]exchange{}
	for _, name := range names {
		x, ok := all[name]
		if !ok {
			t.Fatalf("no recording %q", name)
		}
		byPath[strings.TrimPrefix(x.Path, "/api/")] = x
	}
	return newKernel(t, func(w http.ResponseWriter, path string) {
		x, ok := byPath[path]
		if !ok {
			sendData(w, path != "block/checkBlockExist")
			return
		}
		w.Header().Set("Content-Type", x.ContentType)
		w.WriteHeader(x.Status)
		var text string
		if json.Unmarshal(x.Answer, &text) == nil {
			_, _ = io.WriteString(w, text)
			return
		}
		_, _ = w.Write(x.Answer)
	})
}
