package relay

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/hashicorp/yamux"

	"siyuan-broker/contract/wire"
)

func TestATokenThatIsNotExactlyRightIsRefused(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, nil)
	for name, spoil := range map[string]func(*jwt.Token, jwt.MapClaims){
		"other nonce":       func(_ *jwt.Token, c jwt.MapClaims) { c["nonce"] = strings.Repeat("A", 43) },
		"no nonce":          func(_ *jwt.Token, c jwt.MapClaims) { delete(c, "nonce") },
		"MCP audience":      func(_ *jwt.Token, c jwt.MapClaims) { c["aud"] = "http://" + addr + "/mcp" },
		"no audience":       func(_ *jwt.Token, c jwt.MapClaims) { delete(c, "aud") },
		"issued too early":  func(_ *jwt.Token, c jwt.MapClaims) { c["iat"] = time.Now().Add(-63 * time.Second).Unix() },
		"issued in future":  func(_ *jwt.Token, c jwt.MapClaims) { c["iat"] = time.Now().Add(63 * time.Second).Unix() },
		"no time":           func(_ *jwt.Token, c jwt.MapClaims) { delete(c, "iat") },
		"no jti":            func(_ *jwt.Token, c jwt.MapClaims) { delete(c, "jti") },
		"endless jti":       func(_ *jwt.Token, c jwt.MapClaims) { c["jti"] = strings.Repeat("x", 129) },
		"sub is not kid":    func(_ *jwt.Token, c jwt.MapClaims) { c["sub"] = "c-2" },
		"unknown connector": func(k *jwt.Token, c jwt.MapClaims) { c["sub"], k.Header["kid"] = "nobody", "nobody" },
		"an agent's token":  func(k *jwt.Token, _ jwt.MapClaims) { k.Header["typ"] = "JWT" },
		"alg none":          func(k *jwt.Token, _ jwt.MapClaims) { k.Method = jwt.SigningMethodNone; k.Header["alg"] = "none" },
		"public key as secret": func(k *jwt.Token, _ jwt.MapClaims) {
			k.Method, k.Header["alg"] = jwt.SigningMethodHS256, "HS256"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := dialFake(t, d, addr)
			f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", spoil)})
			if bye := f.rejected(); bye.Code != wire.RejectUnauthorized {
				t.Errorf("%+v", bye)
			}
		})
	}
	if len(s.Hub().Sessions()) != 0 {
		t.Error("somebody got in")
	}
}

func TestATokenIsGoodOnce(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	_, addr := startServer(t, d, func(c *Config) { c.Rand = zeros{} }) // every nonce is the same
	first := dialFake(t, d, addr)
	token := first.token("c-1", nil)
	first.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: token})
	first.expect(wire.FrameWelcome, &wire.Welcome{})
	second := dialFake(t, d, addr)
	if second.nonce != first.nonce {
		t.Fatal("the test needs equal nonces")
	}
	second.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: token})
	if bye := second.rejected(); bye.Code != wire.RejectUnauthorized || !strings.Contains(bye.Message, "used before") {
		t.Errorf("%+v", bye)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestHandshakesThatBreakTheRulesAreRejected(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	_, addr := startServer(t, d, nil)
	for name, c := range map[string]struct {
		do   func(*fake)
		want wire.RejectCode
	}{
		"version from the future": {func(f *fake) { f.auth(wire.Auth{Version: 2, Kind: wire.KindCalls, Token: f.token("c-1", nil)}) }, wire.RejectVersion},
		"bulk session":            {func(f *fake) { f.auth(wire.Auth{Version: 1, Kind: wire.KindBulk, Token: f.token("c-1", nil)}) }, wire.RejectKind},
		"a call first":            {func(f *fake) { _ = f.w.Write(wire.FrameCall, wire.Call{ID: 1}, nil) }, wire.RejectProtocol},
		"not JSON":                {func(f *fake) { _, _ = f.conn.Write([]byte("\x00\x00\x00\x05\x02\x00\x00\x01{")) }, wire.RejectProtocol},
		"a megabyte":              {func(f *fake) { _ = f.w.Write(wire.FrameAuth, nil, make([]byte, 1<<20)) }, wire.RejectProtocol},
		"not a token":             {func(f *fake) { f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: "x.y.z"}) }, wire.RejectUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			f := dialFake(t, d, addr)
			c.do(f)
			if bye := f.rejected(); bye.Code != c.want {
				t.Errorf("%+v, want %s", bye, c.want)
			}
			if _, err := f.r.Next(); err == nil {
				t.Error("the connection stays open")
			}
		})
	}
}

func TestASilentConnectionIsClosed(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, func(c *Config) { c.Timing.Handshake = 3 * time.Second; c.Limits.Handshakes = 1 })
	f := dialFake(t, d, addr)
	if _, err := f.r.Next(); err == nil {
		t.Error("it got a frame for its silence")
	}
	await(t, s, "the connection is counted", func(st Stats) bool { return st.Rejected == 1 })
	dialFake(t, d, addr).connect("c-1") // its place is free again
	online(t, s, 1)
}

func TestAConnectionWithoutControlStreamIsClosed(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, func(c *Config) { c.Timing.Handshake = 3 * time.Second })
	f := dialFake(t, d, addr)
	f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", nil)})
	f.expect(wire.FrameWelcome, &wire.Welcome{})
	await(t, s, "the connection is counted", func(st Stats) bool { return st.Rejected == 1 && st.Accepted == 0 })
}

func TestOnlyTheHolderOfTheKeyLearnsOfARevocation(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	d.revoked["c-1"] = true
	_, addr := startServer(t, d, nil)
	stranger := newFakeDirectory(t) // another key
	f := dialFake(t, stranger, addr)
	f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", nil)})
	if bye := f.rejected(); bye.Code != wire.RejectUnauthorized {
		t.Errorf("stranger: %+v", bye)
	}
	f = dialFake(t, d, addr)
	f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", nil)})
	if bye := f.rejected(); bye.Code != wire.RejectRevoked {
		t.Errorf("owner: %+v", bye)
	}
}

func TestARevocationDuringTheHandshakeCounts(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	d.lookup = func(string) error { close(asked); <-answer; return nil }
	s, addr := startServer(t, d, nil)
	f := dialFake(t, d, addr)
	f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", nil)})
	receive(t, asked)
	s.Hub().Cut("tenant-1", "c-1") // the directory has read the record before
	close(answer)
	f.expect(wire.FrameWelcome, &wire.Welcome{})
	mux, err := yamux.Client(f.conn, yamux.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer mux.Close()
	_, _ = mux.OpenStream() // may find the connection closed already
	await(t, s, "it is turned away", func(st Stats) bool { return st.Rejected == 1 && st.Accepted == 0 })
	if !mux.IsClosed() {
		receive(t, mux.CloseChan())
	}
}

func TestAFailingDirectoryAsksConnectorsToWait(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	d.lookup = func(string) error { return errors.New("password=hunter2 refused") }
	_, addr := startServer(t, d, nil)
	f := dialFake(t, d, addr)
	f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", nil)})
	if bye := f.rejected(); bye.Code != wire.RejectInternal || bye.RetryAfterS < 1 || strings.Contains(bye.Message, "hunter2") {
		t.Errorf("%+v", bye)
	}
}

func TestATenantMayHoldOnlySoManySessions(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, func(c *Config) { c.Limits.Sessions = 1 })
	dialFake(t, d, addr).connect("c-1")
	online(t, s, 1)
	f := dialFake(t, d, addr).connect("c-2")
	if bye := f.rejected(); bye.Code != wire.RejectBusy || bye.RetryAfterS < 1 {
		t.Errorf("%+v", bye)
	}
	dialFake(t, d, addr).connect("c-1") // the same connector may always come back
	await(t, s, "it replaced itself", func(st Stats) bool { return st.Replaced == 1 })
}

func TestTheTokenLogIsBoundedInAllAndPerConnector(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	l := newTokenLog(150)
	use := func(connector string, i int, at time.Time) string {
		var bye *wire.Reject
		if errors.As(l.use(tokenKey{"t", connector, fmt.Sprint(i)}, at), &bye) {
			return string(bye.Code)
		}
		return "ok"
	}
	for i := range maxPerConnector {
		if got := use("a", i, now); got != "ok" {
			t.Fatalf("token %d: %s", i, got)
		}
	}
	if got := use("a", 1000, now); got != string(wire.RejectBusy) {
		t.Errorf("one connector beyond its share: %s", got)
	}
	for i := range 50 {
		if got := use("b", i, now); got != "ok" {
			t.Fatalf("other connector, token %d: %s", i, got)
		}
	}
	if got := use("c", 0, now); got != string(wire.RejectBusy) {
		t.Errorf("full log: %s", got)
	}
	if got := use("b", 7, now.Add(119*time.Second)); got != string(wire.RejectUnauthorized) {
		t.Errorf("replay while iat could still pass: %s", got)
	}
	if got := use("c", 0, now.Add(121*time.Second)); got != "ok" {
		t.Errorf("after the old ones expired: %s", got)
	}
	if len(l.used) != 1 || len(l.per) != 1 {
		t.Errorf("%d tokens, %d connectors are remembered", len(l.used), len(l.per))
	}
}

func TestNoncesDiffer(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	_, addr := startServer(t, d, nil)
	a, b := dialFake(t, d, addr).nonce, dialFake(t, d, addr).nonce
	if a == b || len(a) != 43 {
		t.Errorf("%q, %q", a, b)
	}
}
