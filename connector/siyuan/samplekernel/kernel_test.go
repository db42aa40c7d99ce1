package samplekernel_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel"
)

// clock is a time that only moves when told to.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock {
	return &clock{t: time.Date(2026, 11, 30, 12, 51, 0, 0, time.UTC)}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// rig is a kernel with a clock of its own and a way to ask it.
type rig struct {
	t     *testing.T
	k     *samplekernel.Kernel
	clock *clock
}

const token = "test-token"

func newRig(t *testing.T, opt samplekernel.Options) *rig {
	t.Helper()
	c := newClock()
	opt.Clock = c.now
	if opt.Token == "" {
		opt.Token = token
	}
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	k, err := samplekernel.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return &rig{t, k, c}
}

type answer struct {
	Code int             `json:"code"`
	Msg  string          `json:"msg"`
	Data json.RawMessage `json:"data"`
}

func (r *rig) raw(method, path string, body []byte, header http.Header) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequest(method, path, bytes.NewReader(body))
	req.Header.Set("Authorization", "Token "+token)
	for k, v := range header {
		req.Header[k] = v
	}
	w := httptest.NewRecorder()
	r.k.Handler().ServeHTTP(w, req)
	return w
}

func (r *rig) call(path string, body any) answer {
	r.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	w := r.raw(http.MethodPost, path, raw, nil)
	var a answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		r.t.Fatalf("%s: status %d, body %q: %v", path, w.Code, w.Body, err)
	}
	return a
}

type obj = map[string]any

// ok calls and decodes the data of an answer that must have code 0.
func ok[T any](r *rig, path string, body any) (v T) {
	r.t.Helper()
	a := r.call(path, body)
	if a.Code != 0 {
		r.t.Fatalf("%s: code %d %s", path, a.Code, a.Msg)
	}
	if err := json.Unmarshal(a.Data, &v); err != nil {
		r.t.Fatalf("%s: data %s: %v", path, a.Data, err)
	}
	return v
}

func (r *rig) sql(stmt string) []obj {
	r.t.Helper()
	return ok[[]obj](r, "/api/query/sql", obj{"stmt": stmt})
}

// notebook makes a notebook and lets its mounting end.
func (r *rig) notebook(name string) string {
	r.t.Helper()
	id := ok[struct{ Notebook struct{ ID string } }](r, "/api/notebook/createNotebook", obj{"name": name}).Notebook.ID
	r.clock.advance(samplekernel.DefaultMountLag)
	return id
}

func (r *rig) doc(box, path, markdown string) string {
	r.t.Helper()
	return ok[string](r, "/api/filetree/createDocWithMd", obj{"notebook": box, "path": path, "markdown": markdown})
}

func TestSampleWorkspaceIsFoundAgainAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, samplekernel.Options{Dir: dir, Sample: true})
	const count = "select count(*) as n from blocks where type='p'"
	before := r.sql(count)[0]["n"]
	if before.(float64) < 20 {
		t.Fatalf("only %v paragraphs in the sample", before)
	}
	r.k.Close()
	again := newRig(t, samplekernel.Options{Dir: dir, Sample: true})
	// root documents are indexed twice when made and once when found
	roots := again.sql("select count(*) as n from blocks where type='d' and id=box")[0]["n"].(float64)
	if after := again.sql(count)[0]["n"]; after.(float64) != before.(float64)-roots {
		t.Fatalf("%v paragraphs before the restart, %v after", before, after)
	}
}

func BenchmarkStartWithSample(b *testing.B) {
	for b.Loop() {
		k, err := samplekernel.New(samplekernel.Options{Sample: true})
		if err != nil {
			b.Fatal(err)
		}
		if err := k.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
