package relay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

func TestABadStatusCostsOnlyItsSender(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(*fake){
		"not JSON":    func(f *fake) { f.status(`{`) },
		"not UTF-8":   func(f *fake) { f.status("{\"siyuan_version\":\"\xff\"}") },
		"deep":        func(f *fake) { f.status(strings.Repeat("[", 40) + strings.Repeat("]", 40)) },
		"wrong level": func(f *fake) { f.status(`{"policy":{"max_level":"root"}}`) },
		"a flood": func(f *fake) {
			for range statusBurst + 5 {
				_ = f.w.Write(wire.FrameStatus, nil, []byte(`{"state":"ready"}`))
			}
		},
		"two megabytes":         func(f *fake) { _ = f.w.Write(wire.FrameStatus, nil, make([]byte, 2<<20)) },
		"a result on control":   func(f *fake) { _ = f.w.Write(wire.FrameResult, wire.Result{ID: 1}, nil) },
		"a ping without number": func(f *fake) { _ = f.w.Write(wire.FramePing, "seven", nil) },
		"garbage":               func(f *fake) { _, _ = f.control.Write([]byte("GET / HTTP/1.1\r\n\r\n")) },
		"a header of numbers":   func(f *fake) { _ = f.w.Write(wire.FrameStatus, []int{1}, []byte(`{}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFakeDirectory(t)
			s, addr := startServer(t, d, nil)
			good := dialFake(t, d, addr).connect("c-2")
			bad := dialFake(t, d, addr).connect("c-1")
			online(t, s, 2)
			send(bad)
			await(t, s, "the sender is gone", func(st Stats) bool { return st.Sessions == 1 && st.ProtocolErrors == 1 })
			if _, ok := s.Hub().Session("tenant-2", "home"); !ok {
				t.Error("another tenant's session went with it")
			}
			if err := good.w.Write(wire.FramePing, wire.Ping{N: 5}, nil); err != nil {
				t.Fatal(err)
			}
			var p wire.Ping
			good.expect(wire.FramePong, &p)
			if p.N != 5 {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestTooMuchOfAStatusIsLeftOutAndCounted(t *testing.T) {
	t.Parallel()
	notebooks := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"id":"n","name":"x"},`, n), ",")
	}
	for name, c := range map[string]struct {
		head   wire.Status
		body   string
		kept   int // notebooks
		caps   int
		vetoes int
		left   int
	}{
		"at the limit":        {wire.Status{}, `{"notebooks":[` + notebooks(5000) + `]}`, 5000, 0, 0, 0},
		"too many notebooks":  {wire.Status{}, `{"notebooks":[` + notebooks(5003) + `]}`, 5000, 0, 0, 3},
		"the home says so":    {wire.Status{Omitted: 7}, `{"notebooks":[` + notebooks(1) + `]}`, 1, 0, 0, 7},
		"a negative count":    {wire.Status{Omitted: -7}, `{"notebooks":[` + notebooks(1) + `]}`, 1, 0, 0, 0},
		"endless notebook id": {wire.Status{}, `{"notebooks":[{"id":"` + strings.Repeat("x", 65) + `"},{"id":"ok"}]}`, 1, 0, 0, 1},
		"nameless notebook":   {wire.Status{}, `{"notebooks":[{"id":""}]}`, 0, 0, 0, 1},
		"endless ids in the policy": {wire.Status{}, `{"notebooks":[],"policy":{"max_level":"r","notebooks":{"` + strings.Repeat("x", 65) + `":"r","n":"rw"},"vetoed":["` +
			strings.Repeat("v", 129) + `","block.delete"]}}`, 0, 1, 1, 2},
		"too many vetoes": {wire.Status{}, `{"policy":{"vetoed":[` + strings.TrimSuffix(strings.Repeat(`"a.b",`, 2001), ",") + `]}}`, 0, 0, 2000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFakeDirectory(t)
			s, addr := startServer(t, d, nil)
			f := dialFake(t, d, addr).connect("c-1")
			await(t, s, "the first report is in", func(Stats) bool { i, _ := s.Hub().Session("tenant-1", "home"); return i.Reported })
			if err := f.w.Write(wire.FrameStatus, c.head, []byte(c.body)); err != nil {
				t.Fatal(err)
			}
			if err := f.w.Write(wire.FramePing, wire.Ping{N: 1}, nil); err != nil { // behind the status
				t.Fatal(err)
			}
			f.expect(wire.FramePong, &wire.Ping{})
			info, _ := s.Hub().Session("tenant-1", "home")
			p := info.Status.Policy
			if len(info.Status.Notebooks) != c.kept || len(p.Notebooks) != c.caps || len(p.Vetoed) != c.vetoes || info.Omitted != c.left {
				t.Errorf("%d notebooks, %d caps, %d vetoes, %d left out", len(info.Status.Notebooks), len(p.Notebooks), len(p.Vetoed), info.Omitted)
			}
		})
	}
}

func TestMoreBytesThanTheWindowAllowsCostOnlyTheirSender(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, nil)
	dialFake(t, d, addr).connect("c-2")
	bad := dialFake(t, d, addr).connect("c-1")
	online(t, s, 2)
	// A yamux data frame on the control stream, id 1, larger than its window of
	// 256 KiB, past the library that would not send it.
	head := []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 4, 0, 1}
	_, _ = bad.conn.Write(append(head, make([]byte, 256<<10+1)...)) // cut off in the middle
	await(t, s, "the sender is gone", func(st Stats) bool { return st.Sessions == 1 })
	if !s.Hub().Has("tenant-2", "home") || s.Hub().Has("tenant-1", "home") {
		t.Error("the wrong session is left")
	}
}

func TestTheRemoteAddressIsWhatTheProxySays(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, func(c *Config) {
		c.RemoteAddr = func(r *http.Request) string { return "203.0.113.7" + strings.Repeat(" ", len(r.RemoteAddr)*100) }
	})
	dialFake(t, d, addr).connect("c-1")
	online(t, s, 1)
	if info, _ := s.Hub().Session("tenant-1", "home"); strings.TrimSpace(info.Remote) != "203.0.113.7" || len(info.Remote) > maxID {
		t.Errorf("%q", info.Remote)
	}
}

func TestAnUnknownHomeStateCountsAsOffline(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, nil)
	f := dialFake(t, d, addr).connect("c-1")
	f.status(`{"state":"levitating","siyuan_version":"9\u0007","later":{"a":1},"tenant":"tenant-2"}`)
	await(t, s, "the report is in", func(Stats) bool { i, _ := s.Hub().Session("tenant-1", "home"); return i.Status.SiYuanVersion == "9" })
	info, _ := s.Hub().Session("tenant-1", "home")
	if info.Status.State != contract.HomeOffline || info.Tenant != "tenant-1" {
		t.Errorf("%+v", info)
	}
}

// answers runs one call against a connector that answers as given.
func answers(t *testing.T, idempotent bool, answer func(*fake, *yamux.Stream, wire.Call)) (contract.Result, *Server, *fake, *yamux.Stream) {
	t.Helper()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, nil)
	f := dialFake(t, d, addr).connect("c-1")
	online(t, s, 1)
	result := goCall(s, "tenant-1", idempotent)
	st, call := f.accept()
	answer(f, st, call)
	return receive(t, result), s, f, st
}

func write(st *yamux.Stream, t wire.Type, header any, body string) {
	_ = wire.NewWriter(st, wire.Limits{Frame: 64 << 20, Header: 8 << 20}).Write(t, header, []byte(body))
}

func TestAnAnswerThatBreaksTheProtocolEndsTheSession(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*fake, *yamux.Stream, wire.Call){
		"wrong id": func(_ *fake, st *yamux.Stream, c wire.Call) {
			write(st, wire.FrameResult, wire.Result{ID: c.ID + 1}, `1`)
		},
		"a call": func(_ *fake, st *yamux.Stream, c wire.Call) { write(st, wire.FrameCall, wire.Call{ID: c.ID}, `1`) },
		"unasked grant": func(_ *fake, st *yamux.Stream, c wire.Call) {
			write(st, wire.FrameGrantUnknown, wire.GrantUnknown{ID: c.ID}, "")
		},
		"header not JSON": func(_ *fake, st *yamux.Stream, _ wire.Call) {
			_, _ = st.Write([]byte("\x00\x00\x00\x05\x22\x00\x00\x01{"))
		},
		"four gigabytes": func(_ *fake, st *yamux.Stream, _ wire.Call) {
			_, _ = st.Write([]byte("\xff\xff\xff\xff\x22\x00\x00\x00"))
		},
		"endless header": func(_ *fake, st *yamux.Stream, c wire.Call) {
			write(st, wire.FrameProgress, strings.Repeat("x", 300<<10), "")
		},
	} {
		for _, idempotent := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, read %v", name, idempotent), func(t *testing.T) {
				t.Parallel()
				res, s, f, _ := answers(t, idempotent, answer)
				want := contract.OutcomeUnknown
				if idempotent {
					want = contract.ConnectorOffline
				}
				if contract.CodeOf(res.Err) != want {
					t.Errorf("%v, want %s", res.Err, want)
				}
				if bye := f.rejected(); bye.Code != wire.RejectProtocol {
					t.Errorf("%+v", bye)
				}
				await(t, s, "the session is gone", func(st Stats) bool { return st.Sessions == 0 && st.ProtocolErrors == 1 })
			})
		}
	}
}

func TestAStrangeAnswerIsMadeHarmless(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(*fake, *yamux.Stream, wire.Call)
		want   contract.Code
	}{
		"result is not JSON": {func(_ *fake, st *yamux.Stream, c wire.Call) {
			write(st, wire.FrameResult, wire.Result{ID: c.ID}, `{"a":`)
		}, contract.Internal},
		"result is empty": {func(_ *fake, st *yamux.Stream, c wire.Call) { write(st, wire.FrameResult, wire.Result{ID: c.ID}, ``) }, contract.Internal},
		"result is not UTF-8": {func(_ *fake, st *yamux.Stream, c wire.Call) {
			write(st, wire.FrameResult, wire.Result{ID: c.ID}, "\"\xff\"")
		}, contract.Internal},
		"result is a deep one": {func(_ *fake, st *yamux.Stream, c wire.Call) {
			write(st, wire.FrameResult, wire.Result{ID: c.ID}, strings.Repeat("[", 9999)+strings.Repeat("]", 9999))
		}, contract.Internal},
		"error without error": {func(_ *fake, st *yamux.Stream, c wire.Call) { write(st, wire.FrameError, wire.Error{ID: c.ID}, "") }, contract.Internal},
		"unheard-of error": {func(_ *fake, st *yamux.Stream, c wire.Call) {
			write(st, wire.FrameError, wire.Error{ID: c.ID, Error: &contract.Error{Type: "melted", Message: "/home/me/token"}}, "")
		}, contract.Internal},
		"code of another type": {func(_ *fake, st *yamux.Stream, c wire.Call) {
			write(st, wire.FrameError, wire.Error{ID: c.ID, Error: &contract.Error{Type: contract.TypeConfirmation, Code: contract.NotFound}}, "")
		}, contract.Internal},
		"known error, odd values": {func(_ *fake, st *yamux.Stream, c wire.Call) {
			write(st, wire.FrameError, wire.Error{ID: c.ID, Error: &contract.Error{Type: contract.TypeNotFound, Message: "no\x00 " + strings.Repeat("ä", 5000), Retry: "always", RetryAfterS: 1 << 30}}, "")
		}, contract.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, s, f, st := answers(t, false, c.answer)
			if contract.CodeOf(res.Err) != c.want || res.Body != nil {
				t.Fatalf("%v %s", res.Err, res.Body)
			}
			if len(res.Err.Message) > maxMessage || strings.ContainsAny(res.Err.Message, "\x00/") || res.Err.RetryAfterS > 3600 || res.Err.Retry == "always" {
				t.Errorf("%+v", res.Err)
			}
			again := goCall(s, "tenant-1", true)
			call := f.next(st) // on the same stream
			write(st, wire.FrameResult, wire.Result{ID: call.ID}, `{"ok":true}`)
			if res := receive(t, again); string(res.Body) != `{"ok":true}` {
				t.Errorf("next call: %v", res.Err)
			}
		})
	}
}

func TestProgressIsBoundedAndOptional(t *testing.T) {
	t.Parallel()
	res, _, _, _ := answers(t, true, func(_ *fake, st *yamux.Stream, c wire.Call) {
		write(st, wire.FrameProgress, wire.Progress{ID: c.ID, Progress: contract.Progress{Done: 1, Message: "half"}}, "")
		write(st, wire.FrameResult, wire.Result{ID: c.ID, Stats: contract.Stats{KernelCalls: -5, TotalUS: -1, Notebook: strings.Repeat("n", 500)}}, `1`)
	})
	if res.Err != nil || res.Stats.KernelCalls != 0 || res.Stats.TotalUS != 0 || len(res.Stats.Notebook) != maxID {
		t.Errorf("%+v", res)
	}
}

func TestAStreamClosedUnderACallIsReplaced(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, nil)
	f := dialFake(t, d, addr).connect("c-1")
	online(t, s, 1)
	read := goCall(s, "tenant-1", true)
	st, _ := f.accept()
	_ = st.Close()
	st, call := f.accept() // the read comes again on another stream
	write(st, wire.FrameResult, wire.Result{ID: call.ID}, `2`)
	if res := receive(t, read); string(res.Body) != `2` {
		t.Errorf("%v", res.Err)
	}
	written := goCall(s, "tenant-1", false)
	f.next(st)
	_ = st.Close()
	if res := receive(t, written); !errors.Is(res.Err, contract.Fail(contract.OutcomeUnknown, "")) {
		t.Errorf("write: %v", res.Err)
	}
	if st := s.Hub().Stats(); st.Retried != 1 || st.Sessions != 1 || st.Unknown != 1 {
		t.Errorf("%+v", st)
	}
}

func TestACallWaitingForAStreamMovesToTheNewSession(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, func(c *Config) { c.Limits.Streams = 1 })
	f := dialFake(t, d, addr).connect("c-1")
	online(t, s, 1)
	first := goCall(s, "tenant-1", false)
	f.accept()
	second := goCall(s, "tenant-1", false)
	await(t, s, "the second waits", func(st Stats) bool { return st.Queued == 1 })
	g := dialFake(t, d, addr).connect("c-1")
	if res := receive(t, first); !errors.Is(res.Err, contract.Fail(contract.OutcomeUnknown, "")) {
		t.Errorf("the write that was sent: %v", res.Err)
	}
	st, call := g.accept()
	write(st, wire.FrameResult, wire.Result{ID: call.ID}, `1`)
	if res := receive(t, second); string(res.Body) != `1` {
		t.Errorf("the write that was not sent: %v", res.Err)
	}
	if bye := f.rejected(); bye.Code != wire.RejectReplaced {
		t.Errorf("%+v", bye)
	}
}

func TestExtraStreamsOfAConnectorAreIgnored(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, nil)
	f := dialFake(t, d, addr).connect("c-1")
	online(t, s, 1)
	for range 14 { // the backlog is 16
		st, err := f.mux.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		write(st, wire.FrameStatus, nil, `{"state":"ready"}`)
	}
	result := goCall(s, "tenant-1", true)
	st, call := f.accept()
	write(st, wire.FrameResult, wire.Result{ID: call.ID}, `1`)
	if res := receive(t, result); res.Err != nil {
		t.Error(res.Err)
	}
}

func TestAMuteConnectorIsDeadAfterThePingTimeout(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, func(c *Config) {
		c.Timing.PingInterval, c.Timing.PingTimeout = time.Second, time.Second
	})
	f := dialFake(t, d, addr).connect("c-1")
	var p wire.Ping
	f.expect(wire.FramePing, &p)
	if err := f.w.Write(wire.FramePong, p, nil); err != nil {
		t.Fatal(err)
	}
	for first := p.N; p.N == first; { // it may have been repeated before it was answered
		f.expect(wire.FramePing, &p)
	} // satisfied once; now nothing is answered
	await(t, s, "it is dropped", func(st Stats) bool { return st.PingTimeouts == 1 && st.Sessions == 0 })
	repeats := 0
	for ; ; repeats++ { // so that the connector does not think us dead meanwhile
		fr, err := f.r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		var again wire.Ping
		if err == nil {
			err = f.r.Decode(fr, &again)
		}
		if err != nil || fr.Type != wire.FramePing || again.N != p.N {
			t.Fatalf("%v %+v %v after PING %d", fr.Type, again, err, p.N)
		}
	}
	if repeats == 0 {
		t.Error("the PING was not repeated")
	}
}

func TestEqualIdsOfTwoTenantsDoNotMeet(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, nil)
	one, two := dialFake(t, d, addr).connect("c-1"), dialFake(t, d, addr).connect("c-2")
	online(t, s, 2)
	result := goCall(s, "tenant-2", true)
	st, call := two.accept()
	write(st, wire.FrameResult, wire.Result{ID: call.ID}, `"two"`)
	if res := receive(t, result); string(res.Body) != `"two"` {
		t.Errorf("%v", res.Err)
	}
	s.Hub().Fence("tenant-1", "home", 99)
	if bye := one.rejected(); bye.Code != wire.RejectReplaced {
		t.Errorf("%+v", bye)
	}
	if _, ok := s.Hub().Session("tenant-2", "home"); !ok {
		t.Error("fencing one tenant reached the other")
	}
}

func TestLastSeenFallsBackToThisNodesMemory(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	now := time.Now().Truncate(time.Second)
	s, addr := startServer(t, d, func(c *Config) { c.Now = func() time.Time { return now } })
	if at := s.Hub().LastSeen(t.Context(), "tenant-1", "home"); !at.IsZero() { // and the directory is down
		t.Errorf("never connected, seen %v", at)
	}
	f := dialFake(t, d, addr).connect("c-1")
	online(t, s, 1)
	_ = f.mux.Close()
	await(t, s, "it is gone", func(st Stats) bool { return st.Sessions == 0 })
	res := receive(t, goCall(s, "tenant-1", true))
	if want := fmt.Sprintf(`{"last_seen":%q}`, now.UTC().Format(time.RFC3339)); string(res.Err.Detail) != want {
		t.Errorf("%s, want %s", res.Err.Detail, want)
	}
	if at := s.Hub().LastSeen(t.Context(), "tenant-2", "home"); !at.IsZero() {
		t.Errorf("another tenant's instance of that id was seen %v", at)
	}
}

func TestACallWithoutGrantNeverReachesAHome(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, nil)
	dialFake(t, d, addr).connect("c-1")
	online(t, s, 1)
	res := s.Hub().Call(t.Context(), "tenant-1", "home", contract.Call{RequestID: "r"}, true, nil)
	if contract.CodeOf(res.Err) != contract.Internal || res.Err.RequestID != "r" {
		t.Errorf("%v", res.Err)
	}
}
