package transfers

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestATokenNamesItsTenantAndNothingElseIsOne(t *testing.T) {
	t.Parallel()
	tenant := tenants.NewID()
	secret := []byte(strings.Repeat("\xff\x00", secretBytes/2))
	s := token(tenant, secret)
	if got, sec, ok := parseToken(s); !ok || got != tenant || string(sec) != string(secret) || len(s) != 64 {
		t.Errorf("%s (%d) is read as %s, %x, %t", s, len(s), got, sec, ok)
	}
	for _, bad := range []string{"", s[:63], s + "A", s + "/", "../" + s[3:], strings.Replace(s, "_", "/", 1), strings.ToUpper(s) + "=", " " + s[1:], s[:10] + "\n" + s[11:]} {
		if _, _, ok := parseToken(bad); ok && bad != s {
			t.Errorf("%q passes for a token", bad)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(token(tenants.NewID(), make([]byte, secretBytes)))
	f.Add("x")
	f.Fuzz(func(t *testing.T, s string) {
		if tenant, secret, ok := parseToken(s); ok && token(tenant, secret) != s {
			t.Errorf("%q is another way to write %q", s, token(tenant, secret))
		}
	})
}

// The parsed header is what browsers make of it; the raw one has no room for a
// second header or another parameter.
func TestADownloadIsKeptUnderAHarmlessName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"plan.pdf":                        "plan.pdf",
		"图 a.png":                         "图-a.png",
		"../../etc/passwd":                "passwd",
		"x\"; filename=\"evil.exe":        "x-filename-evil.exe",
		"a\r\nSet-Cookie: b=c.txt":        "a-Set-Cookie-b-c.txt",
		"rtl\u202etxt.exe":                "rtl-txt.exe",
		strings.Repeat("x", 5000) + ".md": strings.Repeat("x", 80) + ".md",
	} {
		raw := disposition(name)
		kind, params, err := mime.ParseMediaType(raw)
		if err != nil || kind != "attachment" || params["filename"] != want || len(params) != 1 {
			t.Errorf("%.40q: %s, %v, %v", name, raw, params, err)
		}
		if strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%.40q: %q", name, raw)
		}
	}
	for name, want := range map[string]string{"a.md": "text/markdown; charset=utf-8", "a.zip": "application/zip", "a.html": "application/octet-stream", "a.svg": "application/octet-stream", "": "application/octet-stream"} {
		if got := mediaType(name); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
}

func TestOnlyGettingUsesADownloadUp(t *testing.T) {
	t.Parallel()
	request := func(method, header, value string) *http.Request {
		r := httptest.NewRequest(method, "/", nil)
		if header != "" {
			r.Header.Set(header, value)
		}
		return r
	}
	down, up := &transfer{}, &transfer{Transfer: tenants.Transfer{Upward: true}}
	for name, c := range map[string]struct {
		r    *http.Request
		t    *transfer
		want way
	}{
		"GET":            {request("GET", "", ""), down, using},
		"with a range":   {request("GET", "Range", "bytes=0-1"), down, using},
		"HEAD":           {request("HEAD", "", ""), down, looking},
		"prefetch":       {request("GET", "Sec-Purpose", "prefetch;prerender"), down, prefetching},
		"old prefetch":   {request("GET", "X-Moz", "prefetch"), down, prefetching},
		"PUT":            {request("PUT", "", ""), down, notAllowed},
		"DELETE":         {request("DELETE", "", ""), down, notAllowed},
		"PUT upward":     {request("PUT", "", ""), up, using},
		"POST upward":    {request("POST", "", ""), up, using},
		"GET upward":     {request("GET", "", ""), up, notAllowed},
		"HEAD of upload": {request("HEAD", "", ""), up, notAllowed},
	} {
		if got := methodOf(c.r, c.t); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestEveryErrorHasAStatusThatFits(t *testing.T) {
	t.Parallel()
	want := map[contract.Code]int{
		contract.TransferUsed: 410, contract.TransferExpired: 410, contract.TransferInterrupted: 400, contract.TooLarge: 413, contract.InvalidValue: 400,
		contract.NotFound: 404, contract.PermissionDenied: 403, contract.ActionDisabled: 403, contract.ConnectorOffline: 503, contract.SiYuanOffline: 503,
		contract.RateLimited: 429, contract.Timeout: 504, contract.OutcomeUnknown: 502, contract.WriteNotPersisted: 502, contract.APIError: 502,
		contract.Unsupported: 501, contract.Internal: 500, contract.ConfirmationRequired: 409, contract.Conflict: 409,
	}
	for _, e := range contract.Vocabulary() {
		got := statusOf(contract.Fail(e.Code, "x"))
		if w, listed := want[e.Code]; listed && got != w {
			t.Errorf("%s is %d, want %d", e.Code, got, w)
		}
		if got < 400 || got > 599 {
			t.Errorf("%s is %d", e.Code, got)
		}
	}
	w := httptest.NewRecorder()
	fail(w, contract.Fail(contract.ConnectorOffline, "x").After(7))
	if w.Header().Get("Retry-After") != "7" || w.Header().Get("Content-Type") != "application/json" || !strings.HasPrefix(w.Body.String(), `{"error":{"type":"offline"`) {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
}

func TestARevocationEndsTheTransfersOfWhoItTakesBack(t *testing.T) {
	t.Parallel()
	tenant, member, agent, instance := tenants.NewID(), tenants.NewID(), tenants.NewID(), tenants.NewID()
	for name, c := range map[string]struct {
		rev  tenants.Revocation
		want bool
	}{
		"the agent":             {tenants.Revocation{TenantID: tenant, Kind: tenants.RevokedAgent, Subject: agent.String()}, true},
		"the member":            {tenants.Revocation{TenantID: tenant, Kind: tenants.RevokedMember, Subject: member.String()}, true},
		"the home":              {tenants.Revocation{TenantID: tenant, Kind: tenants.RevokedInstance, Subject: instance.String()}, true},
		"the tenant":            {tenants.Revocation{TenantID: tenant, Kind: tenants.RevokedTenant}, true},
		"another agent":         {tenants.Revocation{TenantID: tenant, Kind: tenants.RevokedAgent, Subject: tenants.NewID().String()}, false},
		"another tenant's same": {tenants.Revocation{TenantID: tenants.NewID(), Kind: tenants.RevokedAgent, Subject: agent.String()}, false},
	} {
		d := &Desk{live: newLive()}
		ctx, end := d.live.track(t.Context(), tenant, tenants.Transfer{MemberID: member, AgentID: agent, InstanceID: instance})
		d.Revoked(c.rev)
		if got := ctx.Err() != nil; got != c.want {
			t.Errorf("%s: ended %t, want %t", name, got, c.want)
		}
		end()
		if len(d.live.all) != 0 {
			t.Errorf("%s: still known", name)
		}
	}
}

// stalled is a home that takes one piece and then none.
type stalled struct {
	contract.Stream
	got  chan int
	free chan struct{}
}

func (s *stalled) Write(p []byte) (int, error) {
	s.got <- len(p)
	<-s.free
	return 0, contract.Fail(contract.Offline, "gone")
}

// endless counts what is taken from it.
type endless struct{ taken int }

func (e *endless) Read(p []byte) (int, error) {
	e.taken += len(p)
	return len(p), nil
}

// While the home takes nothing, no more than one piece is read.
func TestAnUploadWaitsForTheHome(t *testing.T) {
	t.Parallel()
	home := &stalled{got: make(chan int), free: make(chan struct{})}
	body := &endless{}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("PUT", "/", body)
	d := &Desk{cfg: Config{Idle: time.Minute, Now: time.Now}}
	p := &passage{desk: d, t: &transfer{Transfer: tenants.Transfer{MaxBytes: 1 << 40}}, w: w, r: r, rc: http.NewResponseController(w)}
	done := make(chan error, 1)
	go func() { done <- p.send(t.Context(), home) }() // received below
	if n := <-home.got; n == 0 || body.taken > 2*buffer {
		t.Errorf("%d bytes were read while the home has %d", body.taken, n)
	}
	close(home.free)
	if err := <-done; contract.CodeOf(err) != contract.Offline {
		t.Errorf("%v", err)
	}
}

func TestAnUploadThatIsNotWhatWasAnnouncedIsNotEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args, body string
		max        int64
		want       contract.Code
	}{
		"short":   {`{"size":4}`, "abc", 4, contract.TransferInterrupted},
		"long":    {`{"size":2}`, "abc", 2, contract.TooLarge},
		"limited": {`{}`, "abc", 2, contract.TooLarge},
	} {
		home := &ended{}
		w := httptest.NewRecorder()
		r := httptest.NewRequest("PUT", "/", io.MultiReader(strings.NewReader(c.body))) // of unknown length
		p := &passage{desk: &Desk{cfg: Config{Idle: time.Minute}}, t: &transfer{Transfer: tenants.Transfer{MaxBytes: c.max}, sealed: sealed{Args: []byte(c.args)}}, w: w, r: r, rc: http.NewResponseController(w)}
		if err := p.up(t.Context(), home); contract.CodeOf(err) != c.want || home.closed {
			t.Errorf("%s: %v, ended %t", name, err, home.closed)
		}
	}
}

// ended is a home that takes everything and knows whether that was all.
type ended struct {
	contract.Stream
	closed bool
}

func (e *ended) Write(p []byte) (int, error) { return len(p), nil }
func (e *ended) CloseWrite() error           { e.closed = true; return nil }
func (e *ended) Read([]byte) (int, error)    { return 0, errors.New("nothing was asked") }

func TestADownloadThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &passage{desk: &Desk{cfg: Config{Idle: time.Minute}}, t: &transfer{sealed: sealed{Name: "a.txt"}}, w: w, r: r, rc: http.NewResponseController(w)}
		if err := p.down(r.Context(), &breaking{size: contract.UnknownSize}); err != nil && p.begun {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("%q passes for the whole file", b)
	}
}

// breaking is a home that breaks off after a piece.
type breaking struct {
	contract.Stream
	size int64
	sent bool
}

func (b *breaking) Size() int64 { return b.size }

func (b *breaking) Read(p []byte) (int, error) {
	if b.sent {
		return 0, contract.Fail(contract.Offline, "gone")
	}
	b.sent = true
	return copy(p, "half"), nil
}

func TestAnAnswerGetsTheRequestID(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{`{"a":1}`: `{"a":1,"requestId":"x"}`, `{}`: `{"requestId":"x"}`, `[1]`: `[1]`} {
		if got := string(withRequestID([]byte(in), "x")); got != want {
			t.Errorf("%s becomes %s", in, got)
		}
	}
}
