package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"siyuan-broker/connector/siyuan/samplekernel"
)

// The kernel of a run is the sample kernel with a memory in front, so that it
// does not dominate what is measured: once it is frozen, a request that came
// before gets the answer of then. Beside its API it has two paths of ours.
const (
	echoPath   = "/bench/echo"   // answers the body: one kernel call for opponents
	freezePath = "/bench/freeze" // from now on nothing changes
)

// memoryMax bounds what is remembered, and requestMax one request.
const (
	memoryMax  = 4096
	requestMax = 8 << 20
)

// memory answers repeated requests to a kernel that does not change.
type memory struct {
	kernel http.Handler
	frozen atomic.Bool
	mu     sync.RWMutex
	known  map[string]*remembered
}

type remembered struct {
	status int
	header http.Header
	body   []byte
}

func (m *memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestMax))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch r.URL.Path {
	case echoPath:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body)
		return
	case freezePath:
		m.frozen.Store(true)
		return
	}
	key := r.Method + " " + r.URL.RequestURI() + "\n" + r.Header.Get("Authorization") + "\n" + string(body)
	m.mu.RLock()
	a := m.known[key]
	m.mu.RUnlock()
	if a == nil {
		got := &recording{header: http.Header{}, status: http.StatusOK}
		r.Body = io.NopCloser(bytes.NewReader(body))
		m.kernel.ServeHTTP(got, r)
		a = &remembered{got.status, got.header, got.body.Bytes()}
		if m.frozen.Load() {
			m.mu.Lock()
			if len(m.known) < memoryMax {
				m.known[key] = a
			}
			m.mu.Unlock()
		}
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// recording is a ResponseWriter that keeps everything.
type recording struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recording) Header() http.Header         { return r.header }
func (r *recording) WriteHeader(status int)      { r.status = status }
func (r *recording) Write(b []byte) (int, error) { return r.body.Write(b) }

// runKernel is the role "kernel".
func runKernel(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("kernel", flag.ContinueOnError)
	listen, token := flags.String("listen", "", "address"), flags.String("token", "", "API token")
	if err := flags.Parse(args); err != nil {
		return err
	}
	k, err := samplekernel.New(samplekernel.Options{Token: *token, IndexLag: -1, DeleteLag: -1, MountLag: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	return serve(ctx, *listen, "", &memory{kernel: k.Handler(), known: map[string]*remembered{}})
}
