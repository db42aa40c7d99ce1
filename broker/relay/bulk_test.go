package relay

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// offering connects a home that opens bulk sessions, and its node.
func offering(t *testing.T, change func(*Config)) (*Server, *fake) {
	t.Helper()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, change)
	f := dialFake(t, d, addr)
	f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", nil), Bulk: true})
	f.start()
	online(t, s, 1)
	return s, f
}

// bulk connects once more, for the session of the given epoch.
func (f *fake) bulk(connector string, epoch int64) *fake {
	f.t.Helper()
	b := dialFake(f.t, f.d, f.addr)
	b.auth(wire.Auth{Version: 1, Kind: wire.KindBulk, Token: b.token(connector, nil), Epoch: epoch})
	return b
}

// multiplexed completes a bulk handshake.
func (f *fake) multiplexed() *fake {
	f.t.Helper()
	f.expect(wire.FrameWelcome, &wire.Welcome{})
	_ = f.conn.SetDeadline(time.Time{})
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	var err error
	if f.mux, err = yamux.Client(f.conn, cfg); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = f.mux.Close() })
	return f
}

func large() contract.Call {
	return contract.Call{Grant: &contract.Grant{}, Args: json.RawMessage(`"` + strings.Repeat("x", wire.Inline) + `"`)}
}

func TestABulkSessionBelongsToOneLiveSessionOfItsConnector(t *testing.T) {
	t.Parallel()
	s, f := offering(t, nil)
	dialFake(t, f.d, f.addr).connect("c-2") // offers none; epoch 2
	online(t, s, 2)
	for name, b := range map[string]*fake{
		"an older epoch":          f.bulk("c-1", 99),
		"another connector's":     f.bulk("c-2", 1),
		"of one that offers none": f.bulk("c-2", 2),
		"of a connector not here": f.bulk("c-3", 1),
	} {
		if bye := b.rejected(); bye.Code != wire.RejectElsewhere {
			t.Errorf("%s: %+v", name, bye)
		}
	}
	if bye := f.bulk("c-1", 0).rejected(); bye.Code != wire.RejectKind {
		t.Errorf("without an epoch: %+v", bye)
	}
	f.bulk("c-1", 1).multiplexed()
	await(t, s, "it is up", func(st Stats) bool { return st.Bulk == 1 && st.Sessions == 2 })
	second := f.bulk("c-1", 1).multiplexed() // the first is believed to be dead
	_ = f.mux.Close()
	await(t, s, "it died with its session", func(st Stats) bool { return st.Bulk == 0 && st.Sessions == 1 })
	select {
	case <-second.mux.CloseChan():
	case <-time.After(patience):
		t.Error("its connection is still open")
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.epoch != 2 {
		t.Errorf("%d epochs were drawn for two sessions", f.d.epoch)
	}
}

func TestALargeCallAsksForABulkSessionAndUsesIt(t *testing.T) {
	t.Parallel()
	s, f := offering(t, nil)
	answer := make(chan contract.Result, 1)
	go func() { answer <- s.Hub().Call(context.Background(), "tenant-1", "home", large(), false, nil) }()
	f.expect(wire.FrameBulk, &struct{}{})
	b := f.bulk("c-1", 1).multiplexed()
	st, call := b.accept()
	if call.Bulk != 0 {
		t.Error("a call on the bulk session has a number for another way")
	}
	write(st, wire.FrameResult, wire.Result{ID: call.ID}, `"done"`)
	if res := receive(t, answer); string(res.Body) != `"done"` {
		t.Errorf("%s %v", res.Body, res.Err)
	}
}

func TestAHomeThatBringsNoBulkSessionIsAskedOnceAMinute(t *testing.T) {
	t.Parallel()
	s, f := offering(t, func(c *Config) { c.Timing.Bulk = 20 * time.Millisecond })
	var st *yamux.Stream
	for i := range 3 {
		answer := make(chan contract.Result, 1)
		go func() { answer <- s.Hub().Call(context.Background(), "tenant-1", "home", large(), false, nil) }()
		var call wire.Call
		if i == 0 {
			f.expect(wire.FrameBulk, &struct{}{})
			st, call = f.accept()
		} else {
			call = f.next(st)
		}
		write(st, wire.FrameResult, wire.Result{ID: call.ID}, `1`)
		if res := receive(t, answer); res.Err != nil {
			t.Error(res.Err)
		}
	}
	if err := f.w.Write(wire.FramePing, wire.Ping{N: 9}, nil); err != nil {
		t.Fatal(err)
	}
	f.expect(wire.FramePong, &wire.Ping{}) // and no second BULK before it
}

func TestAResultMayComeOverTheBulkSession(t *testing.T) {
	t.Parallel()
	s, f := offering(t, nil)
	b := f.bulk("c-1", 1).multiplexed()
	await(t, s, "it is up", func(st Stats) bool { return st.Bulk == 1 })
	push, err := b.mux.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	answer := callWith(s, &contract.Grant{})
	st, call := f.accept()
	for i := range 3 {
		if call.Bulk == 0 {
			t.Fatal("the call has no number")
		}
		write(push, wire.FrameResult, wire.Result{ID: call.Bulk + 1000}, `"nobody's"`)
		write(push, wire.FrameResult, wire.Result{ID: call.Bulk}, `"large"`)
		write(st, wire.FrameResult, wire.Result{ID: call.ID, Bulk: true, Stats: contract.Stats{KernelCalls: i}}, "")
		if res := receive(t, answer); string(res.Body) != `"large"` || res.Stats.KernelCalls != i {
			t.Errorf("%s %v", res.Body, res.Err)
		}
		answer = callWith(s, &contract.Grant{})
		call = f.next(st)
	}
	// One that never comes is lost with the bulk session.
	write(st, wire.FrameResult, wire.Result{ID: call.ID, Bulk: true}, "")
	_ = b.mux.Close()
	if res := receive(t, answer); contract.CodeOf(res.Err) != contract.OutcomeUnknown {
		t.Errorf("%s %v", res.Body, res.Err)
	}
	if st := s.Hub().Stats(); st.Sessions != 1 || st.ProtocolErrors != 0 {
		t.Errorf("%+v", st)
	}
}

func TestNonsenseOnABulkSessionEndsItsSession(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(f *fake, push *yamux.Stream){
		"a call": func(_ *fake, push *yamux.Stream) { write(push, wire.FrameCall, wire.Call{ID: 1}, `{}`) },
		"a result too large": func(_ *fake, push *yamux.Stream) {
			_, _ = push.Write([]byte("\xff\xff\xff\xff\x22\x00\x00\x00"))
		},
		"a result in two places": func(f *fake, _ *yamux.Stream) {
			st, call := f.accept()
			write(st, wire.FrameResult, wire.Result{ID: call.ID, Bulk: true}, `1`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := offering(t, nil)
			b := f.bulk("c-1", 1).multiplexed()
			await(t, s, "it is up", func(st Stats) bool { return st.Bulk == 1 })
			push, err := b.mux.OpenStream()
			if err != nil {
				t.Fatal(err)
			}
			answer := callWith(s, &contract.Grant{})
			send(f, push)
			receive(t, answer)
			await(t, s, "both are gone", func(st Stats) bool { return st.Sessions == 0 && st.Bulk == 0 && st.ProtocolErrors == 1 })
		})
	}
}
