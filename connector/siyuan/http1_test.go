package siyuan

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

func TestAnswersOfEveryForm(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*readBuffer)
	for name, c := range map[string]struct {
		raw    string
		status int
		body   string
		more   bool
		err    error
	}{
		"length":               {ok + "Content-Length: 5\r\n\r\nhello", 200, "hello", true, nil},
		"no body":              {ok + "Content-Length: 0\r\n\r\n", 200, "", true, nil},
		"bare line feeds":      {"HTTP/1.1 401 Unauthorized\nContent-Length: 2\n\nno", 401, "no", true, nil},
		"chunks":               {ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: 1\r\n\r\n", 200, "hello world", true, nil},
		"until it closes":      {ok + "\r\nhello", 200, "hello", false, nil},
		"last one":             {ok + "Connection: keep-alive, Close\r\nContent-Length: 1\r\n\r\nx", 200, "x", false, nil},
		"old protocol":         {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x", false, nil},
		"no reason":            {"HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n", 500, "", true, nil},
		"continue":             {"HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 1\r\n\r\nx", 200, "x", true, nil},
		"no content":           {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", true, nil},
		"a long header":        {ok + "X-Long: " + long + "\r\nContent-Length: 1\r\n\r\nx", 200, "x", true, nil},
		"half a body":          {ok + "Content-Length: 5\r\n\r\nhel", 0, "", false, io.ErrUnexpectedEOF},
		"half a chunk":         {ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", 0, "", false, io.ErrUnexpectedEOF},
		"no last chunk":        {ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 0, "", false, io.ErrUnexpectedEOF},
		"half a header":        {ok + "Content-Le", 0, "", false, io.ErrUnexpectedEOF},
		"too long":             {ok + "Content-Length: 101\r\n\r\n", 0, "", false, errTooLarge},
		"too long in chunks":   {ok + "Transfer-Encoding: chunked\r\n\r\n60\r\n" + strings.Repeat("x", 96) + "\r\n5\r\n", 0, "", false, errTooLarge},
		"too long to the end":  {ok + "\r\n" + strings.Repeat("x", 101), 0, "", false, errTooLarge},
		"two lengths":          {ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 0, "", false, errNoHTTP},
		"a negative length":    {ok + "Content-Length: -5\r\n\r\nhello", 0, "", false, errNoHTTP},
		"an empty length":      {ok + "Content-Length:\r\n\r\nhello", 0, "", false, errNoHTTP},
		"a wrong chunk size":   {ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 0, "", false, errNoHTTP},
		"a chunk that goes on": {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", 0, "", false, errNoHTTP},
		"compressed":           {ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", 0, "", false, errNoHTTP},
		"chunks in HTTP/1.0":   {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, "", false, errNoHTTP},
		"another protocol":     {"SSH-2.0-OpenSSH_9.6 nothing\r\n\r\n", 0, "", false, errNoHTTP},
		"HTTP/2":               {"HTTP/2.0 200 OK\r\n\r\n", 0, "", false, errNoHTTP},
		"switching protocols":  {"HTTP/1.1 101 Switching\r\n\r\n", 0, "", false, errNoHTTP},
		"a folded header":      {ok + "X: 1\r\n 2\r\n\r\n", 0, "", false, errNoHTTP},
		"an endless header":    {ok + "X: " + strings.Repeat("x", maxHeaderBytes) + "\r\n\r\n", 0, "", false, errNoHTTP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, more, err := readAnswer(bufio.NewReaderSize(strings.NewReader(c.raw), readBuffer), 100)
			if !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Fatalf("%v, want %v", err, c.err)
			}
			if err == nil && (a.status != c.status || string(a.body) != c.body || more != c.more) {
				t.Errorf("%d %q, more follows: %t", a.status, a.body, more)
			}
		})
	}
}

// What is taken for an answer here, net/http takes for the same one.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{ok + "Content-Length: 5\r\n\r\nhello", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", ok + "\r\nhello",
		"HTTP/1.0 204 No Content\r\nConnection: close\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n" + ok + "\r\n"} {
		f.Add([]byte(s))
	}
	const limit = 1 << 16
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, more, err := readAnswer(bufio.NewReaderSize(bytes.NewReader(raw), readBuffer), limit)
		if err != nil {
			return
		}
		if len(a.body) > limit {
			t.Fatalf("a body of %d bytes", len(a.body))
		}
		r := bufio.NewReader(bytes.NewReader(raw))
		resp, err := http.ReadResponse(r, nil)
		for err == nil && resp.StatusCode < 200 && resp.StatusCode != 101 {
			resp, err = http.ReadResponse(r, nil)
		}
		if err != nil {
			t.Skip("net/http is stricter, or another kind of lenient")
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Skip("net/http does not take the body")
		}
		if resp.StatusCode != a.status || !bytes.Equal(body, a.body) || more && resp.Close {
			t.Errorf("%d %q, more follows: %t; net/http has %d %q, close %t", a.status, a.body, more, resp.StatusCode, body, resp.Close)
		}
	})
}

// A kernel that closes its idle connections, as one that restarts does.
func TestAReadOnAClosedConnectionGoesOnceMoreAndAWriteNeverRidesOne(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	k := newKernel(t, func(w http.ResponseWriter, _ string) { sendData(w, "3.7.3") })
	c := newClient(t, k.URL, func(cfg *Config) {
		cfg.Retry.Attempts = 1
		cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			opened.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
	})
	for i := range 3 {
		if _, err := c.Version(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := opened.Load(); int(n) != i+1 {
			t.Errorf("%d connections for read %d", n, i+1)
		}
		k.CloseClientConnections()
	}
	if n := len(k.requests()); n != 3 {
		t.Errorf("%d requests arrived, want 3", n)
	}
}

func TestAReadWhoseAnswerBeganIsNotRepeatedOnItsOwn(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	k := newKernel(t, func(w http.ResponseWriter, _ string) {
		if n.Add(1) == 1 {
			sendData(w, "3.7.3")
			return
		}
		hijack(w, halfAnswer)
	})
	c := newClient(t, k.URL, func(cfg *Config) { cfg.Retry.Attempts = 1 })
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Version(t.Context()); KindOf(err) != Offline {
		t.Errorf("%v", err)
	}
	if n := len(k.requests()); n != 2 {
		t.Errorf("%d requests arrived, want 2", n)
	}
}

func TestARequestIsOneWrite(t *testing.T) {
	t.Parallel()
	var writes atomic.Int32
	k := newKernel(t, func(w http.ResponseWriter, _ string) { sendData(w, "3.7.3") })
	c := newClient(t, k.URL, func(cfg *Config) {
		cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return &counted{conn, &writes}, err
		}
	})
	for range 10 {
		if _, err := c.Version(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := writes.Load(); n != 10 {
		t.Errorf("10 requests took %d writes", n)
	}
}

type counted struct {
	net.Conn
	writes *atomic.Int32
}

func (c *counted) Write(b []byte) (int, error) { c.writes.Add(1); return c.Conn.Write(b) }

func TestAConnectionIsNotKeptForLong(t *testing.T) {
	t.Parallel()
	h := &http1{}
	ours, theirs := net.Pipe()
	h.put(&kernelConn{Conn: ours})
	h.mu.Lock()
	h.idle[0].since = time.Now().Add(-idleConnTimeout)
	h.mu.Unlock()
	if c := h.take(); c != nil {
		t.Error("an old one was taken")
	}
	h.sweep()
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("it is open: %v", err)
	}
	for range maxIdleConns + 3 {
		conn, _ := net.Pipe()
		h.put(&kernelConn{Conn: conn})
	}
	if n := len(h.idle); n != maxIdleConns {
		t.Errorf("%d are kept", n)
	}
	h.drop()
}

func TestCallsAtOnceFindTheirConnectionsAgain(t *testing.T) {
	t.Parallel()
	const atOnce = 32
	var dialled atomic.Int32
	var here sync.WaitGroup // everybody of a wave is at the kernel
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		here.Done()
		here.Wait()
		sendData(w, "3.7.3")
	}))
	t.Cleanup(web.Close)
	c := newClient(t, web.URL, func(c *Config) {
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	})
	for range 3 {
		here.Add(atOnce)
		var wave sync.WaitGroup
		for range atOnce {
			wave.Go(func() {
				if _, err := c.Version(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wave.Wait()
	}
	if n := dialled.Load(); n != atOnce {
		t.Errorf("%d connections for %d calls at once, three times over", n, atOnce)
	}
}

func TestDataOfAnotherTypeIsMalformedAndThatOfARefusalIsNotLookedAt(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		kind Kind
		text string
	}{
		`{"code":0,"msg":"","data":{"ID":"20240101000000-abcdefg"}}`: {0, ""},
		`{"code":0,"msg":"","data":{"ID":5}}`:                        {Malformed, "data: "},
		`{"data":{"ID":5},"code":0}`:                                 {Malformed, "data: "},
		`{"code":0,"msg":"","data":[]}`:                              {Malformed, "data: "},
		`{"code":0,"msg":"","data":null}`:                            {Malformed, "null data"},
		`{"code":0,"msg":""}`:                                        {Malformed, "null data"},
		`{"code":-1,"msg":"no","data":[]}`:                           {Rejected, "no"},
		`{"data":"text","code":-1,"msg":"no"}`:                       {Rejected, "no"},
		`{"code":3,"msg":"wait","data":7}`:                           {Indexing, "wait"},
		`{"code":404,"msg":"gone","data":7}`:                         {Missing, "gone"},
		`{"code":"0","msg":"","data":{"ID":"x"}}`:                    {Malformed, "envelope: "},
		`{"code":-1,"msg":7,"data":null}`:                            {Malformed, "envelope: "},
		`{"msg":"","data":{"ID":"x"}}`:                               {Malformed, "envelope without a code"},
		`{"msg":"","data":{"ID":5}}`:                                 {Malformed, "envelope without a code"},
		`{"code":0,"data":{"ID":"x"}`:                                {Malformed, "envelope: "},
	} {
		got, err := decode[struct{ ID ID }](call{path: "x/y"}, answer{status: http.StatusOK, contentType: "application/json", body: []byte(body)})
		if want.text == "" {
			if err != nil || got.ID == "" {
				t.Errorf("%s: %v, %v", body, got, err)
			}
			continue
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Kind != want.kind || !strings.Contains(fmt.Sprint(e.Msg, e.Err), want.text) {
			t.Errorf("%s: %#v, want %v with %q", body, err, want.kind, want.text)
		}
	}
}

func TestAKernelBehindTLSIsReachedAndItsCertificateChecked(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/notes of mine/api/system/version" {
			t.Errorf("path %q", r.URL.Path)
		}
		sendData(w, "3.7.3")
	}))
	t.Cleanup(web.Close)
	web.Config.ErrorLog = nil
	trusting := func(c *Config) { c.TLS = web.Client().Transport.(*http.Transport).TLSClientConfig }
	if v, err := newClient(t, web.URL+"/notes%20of%20mine/", trusting).Version(t.Context()); v != "3.7.3" || err != nil {
		t.Errorf("%s, %v", v, err)
	}
	once := func(c *Config) { c.Retry.Attempts = 1 }
	if _, err := newClient(t, web.URL, once).Version(t.Context()); KindOf(err) != Offline {
		t.Errorf("an unknown certificate: %v", err)
	}
}

func TestATokenCannotBringHeadersOfItsOwn(t *testing.T) {
	t.Parallel()
	k := newKernel(t, func(w http.ResponseWriter, _ string) { sendData(w, []any{}) })
	c := newClient(t, k.URL, func(cfg *Config) { cfg.Token = NewToken("x\r\nX-Evil: 1") })
	if err := c.Writer().ReloadTags(t.Context()); !errors.Is(err, BadArgument) {
		t.Errorf("%v", err)
	}
	if n := len(k.requests()); n != 0 {
		t.Error("it was sent")
	}
}

// BenchmarkKernelCall compares the client with net/http in the same run.
func BenchmarkKernelCall(b *testing.B) {
	for name, size := range map[string]int{"200B": 200, "100KiB": 100 << 10} {
		body := []byte(`{"code":0,"msg":"","data":"` + strings.Repeat("x", size) + `"}`)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		}))
		b.Cleanup(web.Close)
		c, err := New(Config{BaseURL: web.URL, Token: NewToken("t")})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		k, p := call{path: "block/getBlockInfo"}, payload{contentType: "application/json", bytes: []byte(`{"id":"20240101090000-work001"}`)}
		b.Run(name+"/raw", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if a, _, err := c.roundTrip(b.Context(), k, p); err != nil || len(a.body) != len(body) {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/nethttp", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, web.URL+"/api/"+k.path, bytes.NewReader(p.bytes))
				req.Header.Set("Content-Type", p.contentType)
				resp, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || len(got) != len(body) {
					b.Fatal(err)
				}
			}
		})
	}
}
