package home

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kernel answers the few endpoints that Home asks, as the recordings do.
type kernel struct {
	system, dir string
	token       string
	progress    atomic.Int64
	authorized  atomic.Int64 // requests that carried a token
}

func (k *kernel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var data any
	if r.Header.Get("Authorization") != "" {
		k.authorized.Add(1)
	}
	switch r.URL.Path {
	case "/api/system/bootProgress":
		data = map[string]any{"progress": k.progress.Load(), "details": ""}
	case "/api/system/getConf", "/api/notebook/lsNotebooks":
		if r.Header.Get("Authorization") != "Token "+k.token {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"code":-1,"msg":"Auth failed [header: Authorization]"}`))
			return
		}
		data = map[string]any{"boxDocEnabled": true, "notebooks": []any{map[string]any{
			"id": "20240101090000-work001", "name": "Work", "icon": "1f4bc", "sort": 1, "sortMode": 15, "closed": false,
			"subFileCount": 0, "newFlashcardCount": 0, "dueFlashcardCount": 0, "flashcardCount": 0, "encrypted": false, "unlocked": false,
		}}}
		if strings.HasSuffix(r.URL.Path, "getConf") {
			data = map[string]any{"conf": map[string]any{
				"system":   map[string]any{"id": k.system, "kernelVersion": "3.7.3", "workspaceDir": k.dir},
				"fileTree": map[string]any{"boxDocEnabled": true}, "editor": map[string]any{"readOnly": false}, "readonly": false,
				"graph": map[string]any{"local": map[string]any{}, "global": map[string]any{}},
			}}
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(map[string]any{"code": 0, "msg": "", "data": data})
}

func newKernel(system string) *kernel {
	k := &kernel{system: system, dir: "/home/me/SiYuan", token: "right"}
	k.progress.Store(100)
	return k
}

// serve answers on addr ("" for any) until the test ends or stop is called.
func serve(t *testing.T, addr string, h http.Handler) (url string, stop func()) {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	var once atomic.Bool
	stop = func() {
		if once.CompareAndSwap(false, true) {
			s.CloseClientConnections()
			s.Close()
		}
	}
	t.Cleanup(stop)
	return s.URL, stop
}

// watch runs a Home for a kernel at url.
func watch(t *testing.T, url, pin string) *Home {
	t.Helper()
	return watchBy(t, url, pin, nil)
}

func watchBy(t *testing.T, url, pin string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Home {
	t.Helper()
	h, err := New(Config{URL: url, Pin: PinFile(pin), Policy: policy.Fixed(contract.ReadWrite), Log: slog.New(slog.DiscardHandler), Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	c, err := siyuan.New(siyuan.Config{BaseURL: url, Token: siyuan.NewToken("right"), Dial: h.Dial})
	if err != nil {
		t.Fatal(err)
	}
	h.Watch(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		c.Close()
	})
	return h
}

// await waits for a state; Changed tells when to look.
func await(t *testing.T, h *Home, want contract.HomeState) contract.HomeStatus {
	t.Helper()
	limit := time.After(15 * time.Second)
	for {
		if s := h.Status(); s.State == want {
			return s
		}
		select {
		case <-h.Changed():
		case <-limit:
			t.Fatalf("state is %s, want %s", h.Status().State, want)
		}
	}
}

func TestAReadySiYuanIsPinnedAndReported(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, "", newKernel("one"))
	pin := filepath.Join(t.TempDir(), "pin.json")
	h := watch(t, url, pin)
	s := await(t, h, contract.HomeReady)
	if s.SiYuanVersion != "3.7.3" || len(s.Notebooks) != 1 || s.Notebooks[0].Name != "Work" || s.Policy.MaxLevel != contract.ReadWrite {
		t.Errorf("reported %+v", s)
	}
	if err := h.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	if p, err := PinFile(pin).Load(); err != nil || p == nil || p.System == "" {
		t.Errorf("pin is %+v, %v", p, err)
	}
}

func TestAConnectorStartsBeforeSiYuanAndNoticesItComing(t *testing.T) {
	t.Parallel()
	url, stop := serve(t, "", newKernel("one"))
	stop()
	h := watch(t, url, filepath.Join(t.TempDir(), "pin.json"))
	if code := contract.CodeOf(h.Ready()); code != contract.SiYuanOffline {
		t.Errorf("code is %s, want siyuan_offline", code)
	}
	serve(t, strings.TrimPrefix(url, "http://"), newKernel("one"))
	await(t, h, contract.HomeReady)
}

func TestABootingSiYuanIsToldFromOneThatIsAway(t *testing.T) {
	t.Parallel()
	k := newKernel("one")
	k.progress.Store(40)
	url, _ := serve(t, "", k)
	h := watch(t, url, filepath.Join(t.TempDir(), "pin.json"))
	await(t, h, contract.HomeIndexing)
	if k.authorized.Load() != 0 {
		t.Error("the token was sent to a kernel that is still booting")
	}
	k.progress.Store(100)
	await(t, h, contract.HomeReady)
}

func TestARefusedTokenIsToldFromOffline(t *testing.T) {
	t.Parallel()
	k := newKernel("one")
	k.token = "another"
	url, _ := serve(t, "", k)
	h := watch(t, url, filepath.Join(t.TempDir(), "pin.json"))
	await(t, h, contract.HomeUnauthorized)
	if code := contract.CodeOf(h.Ready()); code != contract.SiYuanUnauthorized {
		t.Errorf("code is %s", code)
	}
}

// K25: another kernel takes over the port.
func TestAnotherWorkspaceAtTheSameAddressGetsNoCalls(t *testing.T) {
	t.Parallel()
	url, stop := serve(t, "", newKernel("one"))
	pin := filepath.Join(t.TempDir(), "pin.json")
	h := watch(t, url, pin)
	await(t, h, contract.HomeReady)
	stop()
	stranger := newKernel("two")
	serve(t, strings.TrimPrefix(url, "http://"), stranger)
	await(t, h, contract.HomeWrongWorkspace)
	if code := contract.CodeOf(h.Ready()); code != contract.WrongWorkspace {
		t.Errorf("code is %s", code)
	}
	shown := stranger.authorized.Load()
	if _, err := h.Dial(t.Context(), "tcp", strings.TrimPrefix(url, "http://")); err == nil {
		t.Error("a connection to the stranger was opened")
	}
	if shown != 1 {
		t.Errorf("the token was shown %d times, want once, by the probe", shown)
	}
	if err := PinFile(pin).Forget(); err != nil {
		t.Fatal(err)
	}
	h.Lost()
	await(t, h, contract.HomeReady)
}

// TestAWorkspaceThatChangesWhileItIsRecognisedGetsNoCalls: everything that is
// connected after the notebooks were listed leads to a stranger.
func TestAWorkspaceThatChangesWhileItIsRecognisedGetsNoCalls(t *testing.T) {
	t.Parallel()
	strange, _ := serve(t, "", newKernel("two"))
	var moved atomic.Bool
	one := newKernel("one")
	url, stop := serve(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "lsNotebooks") {
			moved.Store(true)
		}
		one.ServeHTTP(w, r)
	}))
	h := watchBy(t, url, filepath.Join(t.TempDir(), "pin.json"), func(ctx context.Context, network, addr string) (net.Conn, error) {
		if moved.Load() {
			addr = strings.TrimPrefix(strange, "http://")
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	})
	await(t, h, contract.HomeReady)
	stop()
	await(t, h, contract.HomeWrongWorkspace)
}

func TestAListenerWithAnotherFolderIsNotShownTheToken(t *testing.T) {
	t.Parallel()
	k := newKernel("one")
	url, _ := serve(t, "", k)
	pin := filepath.Join(t.TempDir(), "pin.json")
	if err := PinFile(pin).Save(Pin{System: "s", Workspace: "w", Folder: "/somewhere/else"}); err != nil {
		t.Fatal(err)
	}
	h, err := New(Config{URL: url, Pin: PinFile(pin), Policy: policy.Fixed(contract.Read), Log: slog.New(slog.DiscardHandler),
		Folder: func(context.Context, string) string { return "/home/me/SiYuan" }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := siyuan.New(siyuan.Config{BaseURL: url, Token: siyuan.NewToken("right"), Dial: h.Dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h.Watch(c)
	if got := h.look(t.Context()); got != contract.HomeWrongWorkspace {
		t.Errorf("state is %s", got)
	}
	if k.authorized.Load() != 0 {
		t.Error("the token was shown")
	}
}

// TestWhoComesWhileSiYuanIsRecognisedIsNotShownTheToken: the pinned workspace ends
// right after the system said whose the address is, and another one is there when
// the token is due.
func TestWhoComesWhileSiYuanIsRecognisedIsNotShownTheToken(t *testing.T) {
	t.Parallel()
	url, stop := serve(t, "", newKernel("one"))
	stranger := newKernel("two")
	pin := PinFile(filepath.Join(t.TempDir(), "pin.json"))
	if err := pin.Save(Pin{System: "one", Workspace: "w", Folder: "/home/me/W1"}); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	h, err := New(Config{URL: url, Pin: pin, Policy: policy.Fixed(contract.Read), Log: slog.New(slog.DiscardHandler),
		Folder: func(context.Context, string) string {
			if asked.Add(1) > 1 {
				return "/home/me/W2"
			}
			stop()
			serve(t, strings.TrimPrefix(url, "http://"), stranger)
			return "/home/me/W1"
		}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := siyuan.New(siyuan.Config{BaseURL: url, Token: siyuan.NewToken("right"), Dial: h.Dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h.Watch(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Run(ctx)
	}()
	await(t, h, contract.HomeWrongWorkspace)
	cancel()
	<-done
	if n := stranger.authorized.Load(); n != 0 {
		t.Errorf("the stranger was shown the token %d times", n)
	}
}

func TestADamagedPinIsNotOverwritten(t *testing.T) {
	t.Parallel()
	pin := PinFile(filepath.Join(t.TempDir(), "pin.json"))
	if err := pin.Save(Pin{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pin.Load(); err == nil {
		t.Error("an empty pin was accepted")
	}
}
