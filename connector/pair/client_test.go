package pair

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/contract/wire"
)

// rfcKey is the key of RFC 8037, appendix A.1.
func rfcKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	seed, err := base64.RawURLEncoding.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	if err != nil {
		t.Fatal(err)
	}
	return ed25519.NewKeyFromSeed(seed)
}

func golden(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../contract/wire/testdata/pairing.golden")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(b), "# "+name+"\n")
	if !ok {
		t.Fatalf("no golden %q", name)
	}
	line, _, _ := strings.Cut(after, "\n")
	return line
}

// atNotes sends what is meant for notes.example to a handler.
type atNotes struct{ http.Handler }

func (a atNotes) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Result(), nil
}

// client is one of notes.example at the time of the goldens. slept notes every
// wait instead of waiting.
func client(t testing.TB, h http.HandlerFunc, slept *[]time.Duration) *Client {
	t.Helper()
	broker, err := ParseBroker("https://notes.example")
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 16)
	for i := range id {
		id[i] = byte(i)
	}
	return &Client{Broker: broker, Key: rfcKey(t), HTTP: &http.Client{Transport: atNotes{h}},
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) }, Rand: &again{b: id},
		Sleep: func(ctx context.Context, d time.Duration) error {
			if slept != nil {
				*slept = append(*slept, d)
			}
			return context.Cause(ctx)
		}}
}

// again yields the same bytes for ever.
type again struct {
	b []byte
	i int
}

func (a *again) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = a.b[a.i%len(a.b)]
		a.i++
	}
	return len(p), nil
}

func answer(w http.ResponseWriter, status int, body string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func TestRequestsAreTheGoldenBytes(t *testing.T) {
	t.Parallel()
	want := map[string]string{wire.PairPath: "PairRequest", wire.PairTokenPath: "ProofRequest token", wire.UnpairPath: "ProofRequest unpair"}
	reply := map[string]string{wire.PairPath: golden(t, "PairAnswer"), wire.PairTokenPath: golden(t, "Paired"), wire.UnpairPath: "{}"}
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if w := golden(t, want[r.URL.Path]); string(b) != w {
			t.Errorf("%s: sent\n%s\nwant\n%s", r.URL.Path, b, w)
		}
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Host != "notes.example" {
			t.Errorf("%s %s, %q to %s", r.Method, r.URL, r.Header.Get("Content-Type"), r.Host)
		}
		answer(w, 200, reply[r.URL.Path])
	}, nil)
	o, err := c.Begin(t.Context(), Machine{"desk", "linux/amd64", "siyuan-connector 1.0.0"})
	if err != nil || o.UserCode != "BCDF-GHJK" || o.Page != "https://notes.example/pair" || o.Life != 10*time.Minute {
		t.Fatalf("%+v, %v", o, err)
	}
	p, err := c.Await(t.Context(), o)
	if err != nil || p.TenantName != "Home" || p.InstanceName != "SiYuan" {
		t.Errorf("%+v, %v", p, err)
	}
	if err := c.Unpair(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheBrokerIsAskedAsOftenAsItLikes(t *testing.T) {
	t.Parallel()
	polls := []struct {
		status int
		body   string
	}{
		{400, `{"error":"authorization_pending"}`},
		{400, `{"error":"slow_down"}`},
		{400, `{"error":"authorization_pending"}`},
		{502, `<html>Bad Gateway</html>`}, // the broker restarts
		{500, `{"error":"server_error"}`},
		{200, golden(t, "Paired")},
	}
	want := []time.Duration{5, 5, 10, 10, 20, 40} // seconds before each poll
	n := 0
	var slept []time.Duration
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		answer(w, polls[n].status, polls[n].body)
		n++
	}, &slept)
	if _, err := c.Await(t.Context(), Offer{device: "d", Life: time.Hour, interval: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	for i, s := range slept {
		if s != want[i]*time.Second {
			t.Errorf("before poll %d it waited %v, want %d s", i, s, want[i])
		}
	}
	if len(slept) != len(want) {
		t.Errorf("%d polls, want %d", len(slept), len(want))
	}
}

func TestWaitingEndsWhenAPersonDecidesTheCodeExpiresOrTheOwnerStops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		want error
	}{
		{`{"error":"access_denied"}`, ErrDenied},
		{`{"error":"expired_token"}`, ErrExpired},
	} {
		client := client(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 400, c.body) }, nil)
		if _, err := client.Await(t.Context(), Offer{Life: time.Hour}); !errors.Is(err, c.want) || err.Error() != c.want.Error() {
			t.Errorf("%s: %v", c.body, err)
		}
	}
	pending := client(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 400, `{"error":"authorization_pending"}`) }, nil)
	pending.Sleep = nil
	if _, err := pending.Await(t.Context(), Offer{Life: time.Millisecond, interval: time.Hour}); !errors.Is(err, ErrExpired) {
		t.Errorf("after its life: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pending.Await(ctx, Offer{Life: time.Hour, interval: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

func TestAKeyThatIsInForceIsToldWhereItBelongs(t *testing.T) {
	t.Parallel()
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 409, `{"error":"already_paired","paired":`+golden(t, "Paired")+`}`)
	}, nil)
	_, err := c.Begin(t.Context(), Machine{})
	var already *AlreadyError
	if !errors.As(err, &already) || already.Place.InstanceName != "SiYuan" {
		t.Errorf("%v", err)
	}
}

func TestWhatIsWrongIsSaidWithWhatToDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path   string // the call that fails; empty: the check
		status int
		header string
		body   string
		want   string
	}{
		"some other site":      {"", 404, "", "<html>", "is not a siyuan-broker"},
		"JSON of another kind": {"", 200, "", `{"hello":1}`, "is not a siyuan-broker"},
		"an old broker":        {"", 200, "", `{"versions":[1],"tunnel":{}}`, "too old to pair"},
		"a new broker":         {"", 200, "", `{"versions":[1],"pairing":[2],"tunnel":{}}`, "pairs in versions [2]"},
		"a redirect":           {"", 302, "https://www.notes.example/", "", "sends on to https://www.notes.example/"},
		"a proxy alone":        {"", 502, "", "", "proxy in front"},
		"our clock is behind":  {wire.PairPath, 401, "", `{"error":"clock_skew","broker_time":1800000301}`, "5m1s behind the broker's"},
		"our clock is ahead":   {wire.PairPath, 401, "", `{"error":"clock_skew","broker_time":1799999000}`, "16m40s ahead of the broker's"},
		"an alias":             {wire.PairPath, 401, "", `{"error":"wrong_audience"}`, "public_urls"},
		"too many":             {wire.PairPath, 429, "", `{"error":"temporarily_unavailable"}`, "patience"},
		"a path is missing":    {wire.PairPath, 404, "", `<html>`, "does not know how to pair"},
		"a code with escapes":  {wire.PairPath, 200, "", `{"device_code":"d","user_code":"\u001b[2J","verification_uri":"https://notes.example/pair"}`, "cannot be used"},
		"a text with escapes":  {wire.PairPath, 400, "", `{"error":"invalid_request","error_description":"a\u001b]0;x\u0007b\u202ec."}`, "the broker refuses: a]0;xbc (invalid_request)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := client(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.header != "" {
					w.Header().Set("Location", c.header)
				}
				answer(w, c.status, c.body)
			}, nil)
			err := client.Check(t.Context())
			if c.path != "" {
				_, err = client.Begin(t.Context(), Machine{})
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

func TestWhyABrokerCannotBeReachedIsSaidInWords(t *testing.T) {
	t.Parallel()
	private := httptest.NewUnstartedServer(http.NotFoundHandler())
	private.Config.ErrorLog = log.New(io.Discard, "", 0)
	private.StartTLS()
	t.Cleanup(private.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	noHost := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "nowhere.example", IsNotFound: true}
	}}}
	otherName := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: private.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "notes.example.org"}}}
	for url, c := range map[string]struct {
		http *http.Client
		want string
	}{
		private.URL:                   {nil, "not signed by an authority"},
		private.URL + "/":             {otherName, "for another host"},
		"https" + plain.URL[4:]:       {nil, "does not speak TLS"},
		"http://" + l.Addr().String(): {nil, "nothing listens there"},
		"https://nowhere.example":     {noHost, "no host is called nowhere.example"},
	} {
		u, err := ParseBroker(url)
		if err != nil {
			t.Fatal(err)
		}
		err = (&Client{Broker: u, Key: rfcKey(t), HTTP: c.http}).Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", url, err, c.want)
		}
	}
}

func TestAnAddressIsReadAsPeopleTypeIt(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://notes.example/": "https://notes.example", " notes.example ": "https://notes.example", "notes.example:8443/base": "https://notes.example:8443/base",
		"http://127.0.0.1:8080": "http://127.0.0.1:8080", "http://[::1]:1": "http://[::1]:1", "http://LOCALHOST": "http://LOCALHOST",
	} {
		if u, err := ParseBroker(in); err != nil || u.String() != want {
			t.Errorf("%q: %v, %v", in, u, err)
		}
	}
	for _, in := range []string{"", "http://notes.example", "ftp://notes.example", "https://", "https://a:b@notes.example", "https://notes.example?code=x", "https://notes.example#x", "https://not es"} {
		if u, err := ParseBroker(in); err == nil {
			t.Errorf("%q is taken for %v", in, u)
		}
	}
}

func TestAnswersAreNotReadWithoutEnd(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(&again{b: []byte("x")}, 1<<20))
		sent.Add(1)
	}, nil)
	if err := c.Check(t.Context()); err == nil || len(err.Error()) > 1000 {
		t.Errorf("%v", err)
	}
}

func TestAStateIsKeptAndDamageIsSeen(t *testing.T) {
	t.Parallel()
	f := FileIn(t.TempDir() + "/made")
	if _, err := f.Read(); !errors.Is(err, ErrNotPaired) {
		t.Errorf("before: %v", err)
	}
	s := State{Broker: "https://notes.example", TenantName: "Home", Name: "SiYuan", At: time.Unix(1, 0).UTC()}
	if err := f.Write(s); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Read(); err != nil || got != s {
		t.Errorf("%+v, %v", got, err)
	}
	info, err := os.Stat(string(f))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := errors.Join(f.Forget(), f.Forget()); err != nil {
		t.Error(err)
	}
	for _, damage := range []string{"", "{", "{}", "null"} {
		if err := os.WriteFile(string(f), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(); err == nil || errors.Is(err, ErrNotPaired) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%q: %v", damage, err)
		}
	}
}

// Whatever a broker answers, a terminal gets nothing but plain text, and no wait
// is without end.
func FuzzAnswers(f *testing.F) {
	f.Add(200, []byte(golden(f, "PairAnswer")))
	f.Add(400, []byte(golden(f, "PairError clock")))
	f.Add(409, []byte(`{"error":"already_paired","paired":{}}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		c := client(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}, nil)
		o, err := c.Begin(t.Context(), Machine{})
		if err == nil && (!plain(o.UserCode) || !plain(o.Page) || o.Life <= 0 || o.Life > time.Hour || o.interval <= 0) {
			t.Errorf("%+v", o)
		}
		if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' && r != '\n' }) {
			t.Errorf("%q", err)
		}
	})
}
