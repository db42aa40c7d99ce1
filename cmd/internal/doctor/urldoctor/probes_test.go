package urldoctor

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"siyuan-broker/broker"
	"siyuan-broker/cmd/internal/browser"
	"siyuan-broker/cmd/internal/doctor"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

// A real broker behind a proxy that does one thing wrong: the doctor names the
// step that fails and what to do.
func TestTheStepThatAProxyBreaksIsNamed(t *testing.T) {
	t.Parallel()
	var front atomic.Pointer[http.HandlerFunc]
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*front.Load())(w, r) }))
	t.Cleanup(proxy.Close)
	w := browser.Start(t, func(c *broker.Config) { c.PublicURLs = []string{proxy.URL} })
	at, err := url.Parse("http://" + w.Broker.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	pass := func(rewrite func(*http.Request), modify func(http.Header)) http.HandlerFunc {
		p := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(at)
				r.Out.Host = r.In.Host
				if rewrite != nil {
					rewrite(r.Out)
				}
			},
			ModifyResponse: func(resp *http.Response) error {
				if modify != nil {
					modify(resp.Header)
				}
				return nil
			},
		}
		return p.ServeHTTP
	}
	sound := pass(nil, nil)
	for _, c := range []struct {
		does  string
		front http.HandlerFunc
		fails string // the first probe that fails; empty: none
		says  string
	}{
		{"nothing wrong", sound, "", ""},
		{"its own Host", pass(func(r *http.Request) { r.Host = "backend:8080" }, nil), "challenge", "403"},
		{"no WWW-Authenticate", pass(nil, func(h http.Header) { h.Del("Www-Authenticate") }), "challenge", "does not say where"},
		{"a sign-in of its own", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/mcp" {
				http.Redirect(w, r, "/login", http.StatusFound)
				return
			}
			sound(w, r)
		}, "challenge", "answers 302"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://www.notes.example/", http.StatusMovedPermanently)
		}, "address", "sends on to https://www.notes.example/"},
		{"an upstream that is away", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "address", "502"},
		{"paths of its own", func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected") {
				http.NotFound(w, r)
				return
			}
			sound(w, r)
		}, "resource", "404"},
		{"an answer for the sign-in", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/.well-known/oauth-authorization-server" {
				_, _ = w.Write([]byte(`{"issuer":"https://other.example","authorization_endpoint":"a","token_endpoint":"b"}`))
				return
			}
			sound(w, r)
		}, "sign-in", "registration"},
		{"no CORS", pass(nil, func(h http.Header) { h.Del("Access-Control-Allow-Origin") }), "browser agents", "preflight"},
		{"1 MB at most", func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > 1<<20 {
				w.Header().Set("Server", "nginx")
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			sound(w, r)
		}, "large request", `by "nginx"`},
		{"no WebSocket", func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Upgrade")
			sound(w, r)
		}, "tunnel", ""},
	} {
		front.Store(&c.front)
		d := &Doctor{URL: proxy.URL}
		var failed []doctor.Finding
		for _, f := range doctor.Run(t.Context(), d.Probes(), func(doctor.Finding) {}) {
			if f.Status == doctor.Fail {
				failed = append(failed, f)
			}
		}
		switch {
		case c.fails == "" && len(failed) > 0:
			t.Errorf("a proxy with %s: %+v", c.does, failed)
		case c.fails != "" && (len(failed) == 0 || failed[0].Name != c.fails || !strings.Contains(failed[0].Found, c.says) || failed[0].Next == ""):
			t.Errorf("a proxy with %s: %+v; want %s to say %q and what to do", c.does, failed, c.fails, c.says)
		}
	}
}
