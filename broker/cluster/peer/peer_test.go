package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

var masterKey = bytes.Repeat([]byte{7}, 32)

// home is the tunnels of the node that is called: one instance, t1's home.
type home struct {
	call func(ctx context.Context, c contract.Call, idempotent bool, progress func(contract.Progress)) contract.Result
}

func (h *home) Has(tenant, instance string) bool { return tenant == "t1" && instance == "home" }

func (h *home) Call(ctx context.Context, _, _ string, c contract.Call, idempotent bool, progress func(contract.Progress)) contract.Result {
	return h.call(ctx, c, idempotent, progress)
}

// OpenStream starts a transfer that sends back what it gets, unless the
// arguments say otherwise.
func (h *home) OpenStream(ctx context.Context, _, _ string, t contract.Transfer, _ bool) (contract.Stream, error) {
	if string(t.Args) == `"refused"` {
		return nil, contract.Fail(contract.RateLimited, "Too many.")
	}
	s := &loop{size: t.Size, fail: string(t.Args) == `"broken"`}
	s.r, s.w = io.Pipe()
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if t.Size == 0 {
		_ = s.CloseWrite()
	}
	return s, nil
}

// loop is a contract.Stream on which everything comes back.
type loop struct {
	r    *io.PipeReader
	w    *io.PipeWriter
	size int64
	fail bool
}

func (l *loop) Read(p []byte) (int, error)  { return l.r.Read(p) }
func (l *loop) Write(p []byte) (int, error) { return l.w.Write(p) }
func (l *loop) Size() int64                 { return l.size }
func (l *loop) CloseWrite() error {
	if l.fail {
		return l.w.CloseWithError(contract.Fail(contract.NotFound, "No such asset."))
	}
	return l.w.Close()
}

func (l *loop) Close() error {
	_ = l.w.CloseWithError(contract.Fail(contract.Timeout, "Given up."))
	return l.r.Close()
}

func echo(_ context.Context, c contract.Call, _ bool, _ func(contract.Progress)) contract.Result {
	return contract.Result{Body: c.Args}
}

func options(t testing.TB, node string, key []byte, old ...[]byte) Options {
	t.Helper()
	id, err := NewIdentity(key, old...)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Node: node, Identity: id, Timing: DefaultTiming(), Limits: DefaultLimits()}
}

func receive[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// serve starts node n2 with a home and returns the route to it.
func serve(t testing.TB, h *home, o Options) (*Server, cluster.Route) {
	t.Helper()
	s, err := NewServer(h, o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.Stop(ctx)
		if err := receive(t, served, "the listener to end"); err != nil {
			t.Error(err)
		}
	})
	return s, cluster.Route{Tenant: "t1", Instance: "home", Node: "n2", Address: ln.Addr().String(), Epoch: 1}
}

func client(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// pair is n1's client and a route to n2.
func pair(t testing.TB, h *home) (*Client, *Server, cluster.Route) {
	s, to := serve(t, h, options(t, "n2", masterKey))
	return client(t, options(t, "n1", masterKey)), s, to
}

func aCall(args string) contract.Call {
	return contract.Call{Server: contract.DefaultServer, Method: contract.MethodCall, Tool: "block", Action: "get", RequestID: "r-1",
		Trace: "00-1-2-01", Grant: &contract.Grant{V: 1, Tenant: "t1", Instance: "home", Levels: map[string]contract.Level{"nb": contract.ReadWrite}, Switches: []contract.Switch{}},
		Args: json.RawMessage(args)}
}

func TestACallReachesTheHomeAsItWas(t *testing.T) {
	t.Parallel()
	got := make(chan contract.Call, 1)
	left := make(chan time.Duration, 1)
	c, _, to := pair(t, &home{func(ctx context.Context, call contract.Call, idempotent bool, progress func(contract.Progress)) contract.Result {
		if !idempotent {
			t.Error("a read arrived as a write")
		}
		deadline, _ := ctx.Deadline()
		left <- time.Until(deadline)
		got <- call
		progress(contract.Progress{Done: 1, Total: 2, Message: "half"})
		progress(contract.Progress{Done: 2, Total: 2})
		return contract.Result{Body: []byte(`{"a":1}`), Stats: contract.Stats{KernelCalls: 3, TotalUS: 5}}
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var steps []contract.Progress
	res, err := c.Call(ctx, to, aCall(`{"x":1}`), true, func(p contract.Progress) { steps = append(steps, p) })
	if err != nil || res.Err != nil || string(res.Body) != `{"a":1}` || res.Stats != (contract.Stats{KernelCalls: 3, TotalUS: 5}) {
		t.Fatalf("%s %v %+v, %v", res.Body, res.Err, res.Stats, err)
	}
	if len(steps) != 2 || steps[0] != (contract.Progress{Done: 1, Total: 2, Message: "half"}) {
		t.Errorf("progress %+v", steps)
	}
	if d := <-left; d > 30*time.Second || d < 20*time.Second {
		t.Errorf("the home has %v, the caller 30 s", d)
	}
	want, _ := json.Marshal(aCall(`{"x":1}`))
	if call, _ := json.Marshal(<-got); !bytes.Equal(call, want) {
		t.Errorf("arrived as %s, want %s", call, want)
	}
}

func TestAnErrorOfTheHomeKeepsItsWords(t *testing.T) {
	t.Parallel()
	want := contract.Fail(contract.StateChanged, "The note changed.").WithDetail(map[string]string{"id": "x"})
	c, _, to := pair(t, &home{func(context.Context, contract.Call, bool, func(contract.Progress)) contract.Result {
		return contract.Result{Err: want}
	}})
	res, err := c.Call(t.Context(), to, aCall(`{}`), false, nil)
	if err != nil || res.Err == nil || string(res.Err.Body()) != string(want.Body()) {
		t.Errorf("%+v, %v", res.Err, err)
	}
}

func TestAHomeThatIsNotThereIsElsewhere(t *testing.T) {
	t.Parallel()
	c, _, to := pair(t, &home{echo})
	for _, to := range []cluster.Route{{Tenant: "t2", Instance: "home", Node: "n2", Address: to.Address}, {Tenant: "t1", Instance: "away", Node: "n2", Address: to.Address}} {
		if _, err := c.Call(t.Context(), to, aCall(`{}`), false, nil); !errors.Is(err, cluster.ErrElsewhere) {
			t.Errorf("%v", err)
		}
	}
	if res, err := c.Call(t.Context(), to, aCall(`{"still":1}`), false, nil); err != nil || string(res.Body) != `{"still":1}` {
		t.Errorf("the next call on the stream: %s, %v", res.Body, err)
	}
}

func TestLargeBodiesPassAndLargerOnesAreRefused(t *testing.T) {
	t.Parallel()
	size := make(chan int, 10)
	c, _, to := pair(t, &home{func(_ context.Context, call contract.Call, _ bool, _ func(contract.Progress)) contract.Result {
		return contract.Result{Body: json.RawMessage(strings.Repeat(" ", <-size))}
	}})
	size <- 8 << 20
	if res, err := c.Call(t.Context(), to, aCall(strings.Repeat(" ", 4<<20)), true, nil); err != nil || len(res.Body) != 8<<20 {
		t.Errorf("%d bytes, %v, %v", len(res.Body), res.Err, err)
	}
	size <- 8<<20 + 1
	if res, err := c.Call(t.Context(), to, aCall(`{}`), true, nil); err != nil || contract.CodeOf(res.Err) != contract.TooLarge {
		t.Errorf("too large a result: %v, %v", res.Err, err)
	}
	if res, err := c.Call(t.Context(), to, aCall(strings.Repeat(" ", 9<<20)), true, nil); err != nil || contract.CodeOf(res.Err) != contract.TooLarge {
		t.Errorf("too large arguments: %v, %v", res.Err, err)
	}
	size <- 2
	if res, err := c.Call(t.Context(), to, aCall(`{}`), true, nil); err != nil || len(res.Body) != 2 {
		t.Errorf("afterwards: %v, %v", res.Err, err)
	}
}

func TestAHundredCallsRunAtOnce(t *testing.T) {
	t.Parallel()
	const count = 100
	var all sync.WaitGroup
	all.Add(count)
	c, _, to := pair(t, &home{func(_ context.Context, call contract.Call, _ bool, _ func(contract.Progress)) contract.Result {
		all.Done()
		all.Wait() // nobody answers before everybody is there
		return contract.Result{Body: call.Args}
	}})
	var callers sync.WaitGroup
	for i := range count {
		callers.Go(func() {
			args := fmt.Sprintf(`{"n":%d}`, i)
			if res, err := c.Call(t.Context(), to, aCall(args), true, nil); err != nil || string(res.Body) != args {
				t.Errorf("call %d: %s, %v", i, res.Body, err)
			}
		})
	}
	callers.Wait()
}

func TestACancelledCallIsCancelledAtTheHome(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan error, 1)
	c, _, to := pair(t, &home{func(ctx context.Context, _ contract.Call, _ bool, _ func(contract.Progress)) contract.Result {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return contract.Result{Err: contract.Fail(contract.Timeout, "cancelled")}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-started
		cancel()
	}()
	if _, err := c.Call(ctx, to, aCall(`{}`), false, nil); !errors.Is(err, cluster.ErrBroken) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := receive(t, ended, "the call at the home to end"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestACallThatIsCutOffIsBrokenAndTheNextOneWorks(t *testing.T) {
	t.Parallel()
	started, hold := make(chan struct{}, 1), make(chan struct{})
	c, _, to := pair(t, &home{func(ctx context.Context, call contract.Call, _ bool, _ func(contract.Progress)) contract.Result {
		if string(call.Args) != `{}` {
			return contract.Result{Body: call.Args}
		}
		started <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return contract.Result{}
	}})
	failed := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), to, aCall(`{}`), false, nil)
		failed <- err
	}()
	receive(t, started, "the call to start")
	c.Drop("n2")
	if err := receive(t, failed, "the call to fail"); !errors.Is(err, cluster.ErrBroken) {
		t.Errorf("%v", err)
	}
	close(hold)
	if res, err := c.Call(t.Context(), to, aCall(`{"n":1}`), false, nil); err != nil || string(res.Body) != `{"n":1}` {
		t.Errorf("%s, %v", res.Body, err)
	}
}

func TestStoppingFinishesCallsAndTakesNoMore(t *testing.T) {
	t.Parallel()
	started, hold := make(chan struct{}), make(chan struct{})
	c, s, to := pair(t, &home{func(_ context.Context, call contract.Call, _ bool, _ func(contract.Progress)) contract.Result {
		close(started)
		<-hold
		return contract.Result{Body: call.Args}
	}})
	answer := make(chan string, 1)
	go func() {
		res, err := c.Call(t.Context(), to, aCall(`{"n":1}`), false, nil)
		answer <- fmt.Sprintf("%s %v", res.Body, err)
	}()
	receive(t, started, "the call to start")
	stopped := make(chan struct{})
	go func() {
		s.Stop(t.Context())
		close(stopped)
	}()
	for { // until Stop is noticed; before, the call would be taken
		s.mu.Lock()
		stopping := s.stopping
		s.mu.Unlock()
		if stopping {
			break
		}
	}
	if _, err := c.Call(t.Context(), to, aCall(`{}`), false, nil); !errors.Is(err, cluster.ErrElsewhere) {
		t.Errorf("a call while stopping: %v", err)
	}
	close(hold)
	if got := receive(t, answer, "the running call"); got != `{"n":1} <nil>` {
		t.Errorf("%s", got)
	}
	receive(t, stopped, "the server to stop")
	limit := time.Now().Add(patience)
	for { // a call that overtakes the news of the end may be broken
		_, err := c.Call(t.Context(), to, aCall(`{}`), false, nil)
		if errors.Is(err, cluster.ErrUnreachable) {
			break
		}
		if !errors.Is(err, cluster.ErrBroken) || time.Now().After(limit) {
			t.Fatalf("a call afterwards: %v", err)
		}
	}
}

func TestOnlyHoldersOfTheMasterKeyGetIn(t *testing.T) {
	t.Parallel()
	other := bytes.Repeat([]byte{8}, 32)
	for name, c := range map[string]struct {
		caller, called Options
		ok             bool
	}{
		"same key":                       {options(t, "n1", masterKey), options(t, "n2", masterKey), true},
		"another key":                    {options(t, "n1", other), options(t, "n2", masterKey), false},
		"called has another key":         {options(t, "n1", masterKey), options(t, "n2", other), false},
		"the caller already has the new": {options(t, "n1", other, masterKey), options(t, "n2", masterKey, other), true},
		"another node at the address":    {options(t, "n1", masterKey), options(t, "n3", masterKey), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, to := serve(t, &home{echo}, c.called)
			_, err := client(t, c.caller).Call(t.Context(), to, aCall(`{}`), false, nil)
			if c.ok != (err == nil) || err != nil && !errors.Is(err, cluster.ErrUnreachable) {
				t.Errorf("%v, want success %v", err, c.ok)
			}
		})
	}
}

func TestAStrangerWithoutCertificateIsNotServed(t *testing.T) {
	t.Parallel()
	_, to := serve(t, &home{func(context.Context, contract.Call, bool, func(contract.Progress)) contract.Result {
		t.Error("a stranger's call arrived")
		return contract.Result{}
	}}, options(t, "n2", masterKey))
	conn, err := tls.Dial("tcp", to.Address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}})
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		if f, err := wire.NewReader(conn, wire.HandshakeLimits()).Next(); err == nil {
			t.Errorf("greeted with %v %s", f.Type, f.Header)
		}
	}
}

func TestAnUnreachableNodeFailsFastAfterTheFirstTry(t *testing.T) {
	t.Parallel()
	dials := make(chan struct{}, 10)
	o := options(t, "n1", masterKey)
	now := time.Unix(1000, 0)
	o.Now = func() time.Time { return now }
	o.Dial = func(context.Context, string) (net.Conn, error) {
		dials <- struct{}{}
		return nil, errors.New("connection refused")
	}
	c := client(t, o)
	to := cluster.Route{Tenant: "t1", Instance: "home", Node: "n2", Address: "n2:1"}
	for range 5 {
		if _, err := c.Call(t.Context(), to, aCall(`{}`), false, nil); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("%v", err)
		}
	}
	if len(dials) != 1 {
		t.Errorf("dialled %d times within half a second", len(dials))
	}
	now = now.Add(o.Timing.Again)
	_, _ = c.Call(t.Context(), to, aCall(`{}`), false, nil)
	if len(dials) != 2 {
		t.Errorf("dialled %d times after it", len(dials))
	}
}

func TestADialThatHangsEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	o := options(t, "n1", masterKey)
	o.Dial = func(ctx context.Context, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	c := client(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Call(ctx, cluster.Route{Node: "n2", Address: "n2:1"}, aCall(`{}`), false, nil); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

func TestANodeThatBreaksTheProtocolIsCutOff(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(*wire.Writer){
		"not a call": func(w *wire.Writer) { _ = w.Write(wire.FrameStatus, nil, []byte(`{}`)) },
		"without grant": func(w *wire.Writer) {
			_ = w.Write(wire.FrameCall, callHeader{Tenant: "t1", Instance: "home"}, []byte(`{}`))
		},
		"header is wrong": func(w *wire.Writer) { _ = w.Write(wire.FrameCall, "text", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, to := serve(t, &home{echo}, options(t, "n2", masterKey))
			c := client(t, options(t, "n1", masterKey))
			n, err := c.neighbour(to.Node, to.Address)
			if err != nil {
				t.Fatal(err)
			}
			s, err := n.stream(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			send(s.w)
			select {
			case <-s.mux.CloseChan():
			case <-time.After(patience):
				t.Error("still connected")
			}
		})
	}
}

func TestAWeakMasterKeyIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := NewIdentity(make([]byte, 16)); err == nil {
		t.Error("16 bytes were accepted")
	}
}

func BenchmarkForwardedCall(b *testing.B) {
	c, _, to := pair(b, &home{echo})
	call := aCall(`{"x":"` + strings.Repeat("y", 200) + `"}`)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Call(context.Background(), to, call, true, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
