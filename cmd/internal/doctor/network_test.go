package doctor

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"siyuan-broker/contract/wire"
)

func rootsOf(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// closedPort is an address nobody listens on.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func get(t *testing.T, n Network, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := n.Client().Do(req)
	if err == nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

func TestEveryReasonAConnectionFailsIsToldApart(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	secure.Config.ErrorLog = nil
	open := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(open.Close)
	trusted := Network{Roots: rootsOf(secure)}
	for name, c := range map[string]struct {
		net  Network
		url  string
		want string
	}{
		"a name that does not resolve": {trusted, "https://nobody.invalid", "does not resolve"},
		"nothing listens":              {trusted, "https://" + closedPort(t), "connection refused"},
		"an unknown authority":         {Network{Roots: x509.NewCertPool()}, secure.URL, "authority this machine does not trust"},
		"another name":                 {trusted, strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), "for another name"},
		"a clock far ahead":            {Network{Roots: rootsOf(secure), Now: func() time.Time { return time.Now().AddDate(200, 0, 0) }}, secure.URL, "not valid now"},
		"no TLS":                       {trusted, strings.Replace(open.URL, "http:", "https:", 1), "does not speak TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := get(t, c.net, c.url)
			if err == nil {
				t.Fatal("it connected")
			}
			if f := Unreachable(err); f.Status != Fail || !strings.Contains(f.Found, c.want) && !strings.Contains(f.Found, "HTTP response to HTTPS client") {
				t.Errorf("got %+v for %v, want %q", f, err, c.want)
			}
		})
	}
	if f := Unreachable(context.DeadlineExceeded); !strings.Contains(f.Found, "no answer in time") {
		t.Errorf("a timeout: %+v", f)
	}
}

func TestACertificateNearItsEndIsAWarning(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	resp, err := get(t, Network{Roots: rootsOf(s)}, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	end := s.Certificate().NotAfter
	for _, c := range []struct {
		left time.Duration
		want Status
	}{{15 * 24 * time.Hour, OK}, {13*24*time.Hour + time.Hour, Warn}} {
		n := Network{Now: func() time.Time { return end.Add(-c.left) }}
		f := n.Certificate(resp.TLS)
		if f.Status != c.want || c.want == Warn && !strings.Contains(f.Next, "13 days") {
			t.Errorf("%v before its end: %+v", c.left, f)
		}
	}
	if f := (Network{}).Certificate(nil); f.Status != Skip {
		t.Errorf("without TLS: %+v", f)
	}
}

func TestClocksAreJudgedByTheTokensThatDependOnThem(t *testing.T) {
	for _, c := range []struct {
		ahead, within time.Duration
		want          Status
	}{
		{time.Second, 0, OK}, {-14 * time.Second, 0, OK}, {16 * time.Second, 0, Warn}, {-59 * time.Second, 0, Warn},
		{61 * time.Second, 0, Fail}, {-time.Hour, 0, Fail}, {61 * time.Second, 2 * time.Second, Warn},
	} {
		if f := Skew("the database's", c.ahead, c.within); f.Status != c.want {
			t.Errorf("%v ± %v: %+v, want %s", c.ahead, c.within, f, c.want)
		}
	}
	if f := Skew("the broker's", -time.Hour, 0); !strings.Contains(f.Found, "1h0m0s behind the broker's") {
		t.Errorf("got %q", f.Found)
	}
}

// tunnel is a server whose /tunnel does what a test wants.
func tunnel(t *testing.T, h http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http") + wire.Path
}

func accepted(t *testing.T, protocols []string, then func(net.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: protocols})
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		defer ws.CloseNow()
		then(websocket.NetConn(r.Context(), ws, websocket.MessageBinary))
	}
}

func TestAnUpgradeEndsWithTheBrokersChallenge(t *testing.T) {
	t.Parallel()
	nonce := base64.RawURLEncoding.EncodeToString(make([]byte, wire.NonceSize))
	address := tunnel(t, accepted(t, []string{wire.Subprotocol}, func(c net.Conn) {
		_ = wire.NewWriter(c, wire.HandshakeLimits()).Write(wire.FrameChallenge, wire.Challenge{Versions: []int{1}, Nonce: nonce}, nil)
		_, _ = c.Read(make([]byte, 1)) // until the client leaves
	}))
	c, ch, f := Network{}.Upgrade(t.Context(), address)
	if f.Status != OK || ch.Nonce != nonce {
		t.Fatalf("got %+v, %+v", ch, f)
	}
	_ = c.Close()
}

func TestWhatKeepsAnUpgradeBackIsRecognised(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want string
		is   Status
	}{
		"a proxy that drops the header": {status(http.StatusUpgradeRequired), "does not get through: 426", Fail},
		"a proxy that answers a page":   {status(http.StatusOK), "does not get through: 200", Fail},
		"a login page":                  {status(http.StatusForbidden), "asks for a login: 403", Fail},
		"another server":                {status(http.StatusNotFound), "nothing is served", Fail},
		"a busy broker":                 {status(http.StatusServiceUnavailable), "asks for patience: 503", Warn},
		"another WebSocket":             {accepted(t, nil, func(net.Conn) {}), "not one of a siyuan-broker", Fail},
		"a proxy that closes":           {accepted(t, []string{wire.Subprotocol}, func(net.Conn) {}), "first frame does not arrive", Fail},
		"a broker that speaks otherwise": {accepted(t, []string{wire.Subprotocol}, func(c net.Conn) {
			_ = wire.NewWriter(c, wire.HandshakeLimits()).Write(wire.FrameReject, wire.Reject{Code: wire.RejectBusy}, nil)
		}), "instead of CHALLENGE", Fail},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, f := Network{}.Upgrade(t.Context(), tunnel(t, c.h))
			if f.Status != c.is || !strings.Contains(f.Found, c.want) {
				t.Errorf("got %+v, want %q", f, c.want)
			}
		})
	}
}

func TestAProxyThatKeepsBytesBackIsRecognised(t *testing.T) {
	t.Parallel()
	address := tunnel(t, accepted(t, []string{wire.Subprotocol}, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, f := (Network{}).Upgrade(ctx, address); f.Status != Fail || !strings.Contains(f.Next, "no buffering") {
		t.Errorf("got %+v", f)
	}
}
