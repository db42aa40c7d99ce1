package cases_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/home"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
)

// watched counts what a kernel is shown.
type watched struct {
	next   http.Handler
	tokens atomic.Int64 // requests that carried the token
	writes atomic.Int64
}

func (w *watched) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		w.tokens.Add(1)
	}
	if !strings.HasPrefix(r.URL.Path, "/api/system/") && !strings.HasPrefix(r.URL.Path, "/api/notebook/ls") {
		w.writes.Add(1)
	}
	w.next.ServeHTTP(rw, r)
}

// TestK25OnlyThePinnedWorkspaceIsTalkedTo: two kernels take turns at one address,
// and the connector is pinned to the first.
func TestK25OnlyThePinnedWorkspaceIsTalkedTo(t *testing.T) {
	t.Parallel()
	var kernels []*watched
	for range 2 {
		k, err := samplekernel.New(samplekernel.Options{Token: "kernel-token"})
		check(t, err)
		t.Cleanup(func() { check(t, k.Close()) })
		kernels = append(kernels, &watched{next: k.Handler()})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	addr := l.Addr().String()
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: kernels[0]}}
	server.Start()
	pin := home.PinFile(filepath.Join(t.TempDir(), "pin.json"))
	folder := atomic.Pointer[string]{}
	first, second := "/home/me/W1", "/home/me/W2"
	folder.Store(&first)
	h, stop := watch(t, "http://"+addr, pin, func(context.Context, string) string { return *folder.Load() })
	defer stop()
	await(t, h, contract.HomeReady)

	server.CloseClientConnections()
	server.Close()
	folder.Store(&second)
	l, err = net.Listen("tcp", addr)
	check(t, err)
	server = &httptest.Server{Listener: l, Config: &http.Server{Handler: kernels[1]}}
	server.Start()
	defer server.Close()
	await(t, h, contract.HomeWrongWorkspace)
	if e := h.Ready(); e == nil || contract.CodeOf(e) != contract.WrongWorkspace {
		t.Errorf("calls are answered %v", e)
	}
	if n := kernels[1].tokens.Load() + kernels[1].writes.Load(); n != 0 {
		t.Errorf("the other workspace got %d requests with the token or of a call", n)
	}
}

// watch looks after the SiYuan at url.
func watch(t *testing.T, url string, pin home.PinFile, folder func(context.Context, string) string) (*home.Home, func()) {
	t.Helper()
	h, err := home.New(home.Config{URL: url, Pin: pin, Policy: policy.Fixed(contract.ReadWrite), Log: slog.New(slog.DiscardHandler), Folder: folder})
	check(t, err)
	c, err := siyuan.New(siyuan.Config{BaseURL: url, Token: siyuan.NewToken("kernel-token"), Dial: h.Dial})
	check(t, err)
	h.Watch(c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Run(ctx)
	}()
	return h, func() {
		cancel()
		<-done
		c.Close()
	}
}

func await(t *testing.T, h *home.Home, want contract.HomeState) {
	t.Helper()
	limit := time.After(15 * time.Second)
	for h.Status().State != want {
		select {
		case <-h.Changed():
		case <-limit:
			t.Fatalf("state is %s, want %s", h.Status().State, want)
		}
	}
}

// TestK25WaysOfBeingTurnedAwayAreToldApart: a wrong token, too many requests,
// nobody there, and something else that listens.
func TestK25WaysOfBeingTurnedAwayAreToldApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		want   contract.Code
	}{
		"401": {http.StatusUnauthorized, contract.SiYuanUnauthorized}, "429": {http.StatusTooManyRequests, contract.RateLimited},
		"404": {http.StatusNotFound, contract.UnsupportedByKernel}, "500": {http.StatusInternalServerError, contract.APIError},
	} {
		d := newDesk(t)
		d.front.answering(func(string, []byte) (int, []byte, bool) { return c.status, []byte(`{"code":-1,"msg":"x"}`), true })
		if e := d.fails(t, c.want, "notebook.list", `{}`); e.Message == "" || e.Hint == "" {
			t.Errorf("%s: %s", name, e.Body())
		}
	}
	d := newDesk(t)
	d.client.Close()
	d.kernel.Faults().Set("", samplekernel.Fault{Kind: samplekernel.FaultDrop})
	d.fails(t, contract.SiYuanOffline, "notebook.list", `{}`)
	if e := guard.Public(errors.New("anything")); contract.CodeOf(e) != contract.Internal {
		t.Errorf("an error that nobody knows is %v", e)
	}
}
