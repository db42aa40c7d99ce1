package tunnel

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

var grant = &contract.Grant{V: 1, Tenant: "t", Instance: "i"}

func connected(t *testing.T, h Handler, change func(*Config)) (*peer, *Client, *fakeBroker) {
	t.Helper()
	b := startFake(t)
	cfg := config(t, b.url, h)
	if change != nil {
		change(&cfg)
	}
	c, _ := run(t, cfg)
	return b.session(), c, b
}

func TestABrokerThatBreaksTheProtocolIsDroppedAndDialledAgain(t *testing.T) {
	t.Parallel()
	hang := HandlerFunc(func(ctx context.Context, _ contract.Call, _ func(contract.Progress)) contract.Result {
		<-ctx.Done()
		return contract.Result{}
	})
	for name, do := range map[string]func(*peer){
		"call on a busy stream": func(p *peer) {
			c := p.open()
			c.send(wire.Call{ID: 1, Grant: grant}, `{}`)
			_ = c.w.Write(wire.FrameCall, wire.Call{ID: 2, Grant: grant}, []byte(`{}`)) // it may be dropped while it is written
		},
		"call without id":       func(p *peer) { _ = p.open().w.Write(wire.FrameCall, wire.Call{Grant: grant}, []byte(`{}`)) },
		"result to a connector": func(p *peer) { _ = p.open().w.Write(wire.FrameResult, wire.Result{ID: 1}, nil) },
		"frame above its limit": func(p *peer) {
			_ = p.open().w.Write(wire.FrameCall, wire.Call{ID: 1, Grant: grant}, make([]byte, 2<<20))
		},
		"grant of wrong shape": func(p *peer) { _ = p.open().w.Write(wire.FrameCall, json.RawMessage(`{"id":1,"grant":7}`), nil) },
		"welcome on control":   func(p *peer) { _ = p.w.Write(wire.FrameWelcome, welcome(), nil) },
		"garbage on control":   func(p *peer) { _, _ = p.control.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"more than the window": func(p *peer) { // a yamux data frame that the library would not send
			_, _ = p.conn.Write(append([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 4, 0, 1}, make([]byte, 256<<10+1)...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, c, b := connected(t, hang, nil)
			do(p)
			if !p.gone() {
				t.Fatal("the session lives")
			}
			b.session()
			eventually(t, "the calls are over", func() bool { return c.State().Calls == 0 })
		})
	}
}

func TestACallWithoutItsGrantIsNotStarted(t *testing.T) {
	t.Parallel()
	p, _, _ := connected(t, echo, nil)
	c := p.open()
	c.send(wire.Call{ID: 1, GrantDigest: "abc"}, `{}`)
	var g wire.GrantUnknown
	if c.expect(wire.FrameGrantUnknown, &g); g.ID != 1 || g.Digest != "abc" {
		t.Errorf("%+v", g)
	}
	c.send(wire.Call{ID: 2, Grant: grant}, `{"a":1}`)
	var r wire.Result
	if f := c.expect(wire.FrameResult, &r); r.ID != 2 || string(f.Body) != `{"a":1}` {
		t.Errorf("%+v %s", r, f.Body)
	}
}

func TestArgumentsThatAreNotBoundedJSONAreRefused(t *testing.T) {
	t.Parallel()
	p, _, _ := connected(t, echo, nil)
	c := p.open()
	for i, args := range []string{``, `{`, "\"\xff\"", strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		c.send(wire.Call{ID: uint64(i + 1), Grant: grant}, args)
		c.expectError(contract.InvalidArguments)
	}
}

func TestMoreCallsThanAllowedAreRateLimited(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	p, client, _ := connected(t, HandlerFunc(func(context.Context, contract.Call, func(contract.Progress)) contract.Result {
		<-release
		return contract.Result{Body: json.RawMessage(`1`)}
	}), func(c *Config) { c.MaxCalls = 2 })
	first, second, third := p.open(), p.open(), p.open()
	first.send(wire.Call{ID: 1, Grant: grant}, `{}`)
	second.send(wire.Call{ID: 1, Grant: grant}, `{}`)
	eventually(t, "both run", func() bool { return client.State().Calls == 2 })
	third.send(wire.Call{ID: 1, Grant: grant}, `{}`)
	third.expectError(contract.RateLimited)
	close(release)
	first.expect(wire.FrameResult, &wire.Result{})
	second.expect(wire.FrameResult, &wire.Result{})
	third.send(wire.Call{ID: 2, Grant: grant}, `{}`)
	third.expect(wire.FrameResult, &wire.Result{})
}

func TestCancelOrACloseEndsTheContextAndTheStream(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*caller){
		"cancel": func(c *caller) { _ = c.w.Write(wire.FrameCancel, wire.Cancel{ID: 1}, nil) },
		"close":  func(c *caller) { _ = c.st.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started, cause := make(chan struct{}), make(chan error, 1)
			p, _, _ := connected(t, HandlerFunc(func(ctx context.Context, _ contract.Call, _ func(contract.Progress)) contract.Result {
				close(started)
				<-ctx.Done()
				cause <- ctx.Err()
				return contract.Result{Body: json.RawMessage(`1`)}
			}), nil)
			c := p.open()
			c.send(wire.Call{ID: 1, Grant: grant}, `{}`)
			receive(t, started)
			stop(c)
			if err := receive(t, cause); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if f, err := c.r.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("after the end came %v, %v", f.Type, err)
			}
		})
	}
}

func TestACallIsCancelledEvenWhileItsProgressIsStuck(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	p, _, _ := connected(t, HandlerFunc(func(ctx context.Context, _ contract.Call, progress func(contract.Progress)) contract.Result {
		defer close(done)
		for ctx.Err() == nil { // more than the stream's window holds; nobody reads it
			progress(contract.Progress{Message: strings.Repeat("x", 8<<10)})
		}
		return contract.Result{}
	}), nil)
	c := p.open()
	c.send(wire.Call{ID: 1, Grant: grant}, `{}`)
	var first wire.Progress
	c.expect(wire.FrameProgress, &first)
	_ = c.w.Write(wire.FrameCancel, wire.Cancel{ID: 1}, nil)
	receive(t, done)
}

func TestTheTimeLeftIsTheHandlersDeadline(t *testing.T) {
	t.Parallel()
	left := make(chan time.Duration, 1)
	p, _, _ := connected(t, HandlerFunc(func(ctx context.Context, _ contract.Call, _ func(contract.Progress)) contract.Result {
		deadline, _ := ctx.Deadline()
		left <- time.Until(deadline)
		return contract.Result{Body: json.RawMessage(`1`)}
	}), func(c *Config) { c.Timing.MaxCall = 5 * time.Minute })
	c := p.open()
	for i, want := range map[int64]time.Duration{60_000: time.Minute, 0: 5 * time.Minute, -5: 5 * time.Minute, 1 << 62: 5 * time.Minute} {
		c.send(wire.Call{ID: uint64(i&0xffff + 7), Grant: grant, TimeLeftMS: i}, `{}`)
		c.expect(wire.FrameResult, &wire.Result{})
		if got := receive(t, left); got > want || got < want-10*time.Second {
			t.Errorf("time_left_ms %d: %v left, want %v", i, got, want)
		}
	}
}

func TestAResultAboveTheLimitBecomesAnError(t *testing.T) {
	t.Parallel()
	p, _, _ := connected(t, HandlerFunc(func(_ context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
		if c.Tool == "error" {
			return contract.Result{Err: contract.Fail(contract.Ambiguous, "%s", strings.Repeat("x", 100<<10))}
		}
		return contract.Result{Body: make([]byte, 1<<19+1), Stats: contract.Stats{KernelCalls: 3}}
	}), nil)
	c := p.open()
	c.send(wire.Call{ID: 1, Grant: grant}, `{}`)
	c.expectError(contract.TooLarge)
	c.send(wire.Call{ID: 2, Grant: grant, Tool: "error"}, `{}`) // its header is too large
	c.expectError(contract.Internal)
}

func TestStatusIsSentOnChangeButNotTooOften(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{})
	p, _, _ := connected(t, echo, func(c *Config) {
		c.Status.Changed, c.Timing.StatusGap = changed, 300*time.Millisecond
	})
	began := time.Now()
	for range 5 {
		changed <- struct{}{} // each is taken, at most two are sent
	}
	for range 2 {
		f, err := p.r.Next()
		if err != nil || f.Type != wire.FrameStatus {
			t.Fatalf("%v %v", f.Type, err)
		}
	}
	if d := time.Since(began); d < 250*time.Millisecond {
		t.Errorf("two reports within %v", d)
	}
}

func TestTheBrokersShorterPingTimesApply(t *testing.T) {
	t.Parallel()
	b := startFake(t)
	c, _ := run(t, config(t, b.url, echo))
	conn, _ := b.next()
	w := welcome()
	w.PingIntervalMS, w.PingTimeoutMS = 180, 120
	if err := wire.NewWriter(conn, wire.HandshakeLimits()).Write(wire.FrameWelcome, w, nil); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Time{})
	began := time.Now()
	_, _ = io.Copy(io.Discard, conn) // a broker that reads and never speaks
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("dropped after %v", d)
	}
	eventually(t, "it says why", func() bool { return strings.Contains(c.State().LastError, "sign of life") })
}

func TestAConnectorThatHasNowhereToMoveSaysThatItStillServes(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{slept: make(chan time.Duration)}
	p, c, b := connected(t, echo, func(c *Config) { c.Clock, c.Uniform = clock, func() float64 { return 0.5 } })
	eventually(t, "connected", func() bool { return c.State().Phase == Connected })
	if err := p.w.Write(wire.FrameDrain, wire.Drain{WithinMS: 4000}, nil); err != nil {
		t.Fatal(err)
	}
	if d := receive(t, clock.slept); d != 500*time.Millisecond { // half of a quarter of it
		t.Errorf("moves after %v", d)
	}
	for range 3 {
		conn, _ := b.next()
		_ = conn.Close()
		receive(t, clock.slept)
		eventually(t, "the failure is known", func() bool { return c.State().LastError != "" })
		if s := c.State(); s.Phase != Connected || !s.Draining || s.Node != "n" || s.Attempt == 0 {
			t.Errorf("%+v", s)
		}
	}
	call := p.open()
	call.send(wire.Call{ID: 1, Grant: grant}, `{}`)
	call.expect(wire.FrameResult, &wire.Result{})
	_ = p.mux.Close()
	eventually(t, "it is over", func() bool { s := c.State(); return s.Phase != Connected && !s.Draining })
	conn, _ := b.next()
	_ = conn.Close()
	receive(t, clock.slept)
	b.session()
	eventually(t, "connected elsewhere", func() bool { s := c.State(); return s.Phase == Connected && !s.Draining && s.LastError == "" })
}

func TestTheOldSessionIsLeftOnlyOnceTheNewOneServes(t *testing.T) {
	t.Parallel()
	p, _, b := connected(t, echo, func(c *Config) { c.Uniform = func() float64 { return 0 } })
	if err := p.w.Write(wire.FrameDrain, wire.Drain{WithinMS: 60_000}, nil); err != nil {
		t.Fatal(err)
	}
	left := make(chan wire.Type, 1)
	go func() {
		f, _ := p.r.Next() // ends with the session
		left <- f.Type
	}()
	next := b.session() // accepted, but no call can come here yet
	select {
	case f := <-left:
		t.Errorf("%s before the new node opened a call stream", f)
	case <-time.After(50 * time.Millisecond):
	}
	next.open().send(wire.Call{ID: 1, Grant: grant}, `{}`)
	if f := receive(t, left); f != wire.FrameDrain {
		t.Errorf("%s", f)
	}
}
