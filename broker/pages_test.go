package broker

import (
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"siyuan-broker/broker/people"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// forMachines are the routes that are no pages: a path, or, ending in a slash, all
// below it. Every other route must behave as one.
var forMachines = []string{"/mcp", "/mcp/", "/tunnel", "/tunnel/", "/transfer/", "/.well-known/", "/healthz", "/readyz", "/assets/", "/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/jwks", "/oauth/device"}

// served is a broker's routes, and a person who is signed in to it.
type served struct {
	t *testing.T
	b *Broker
	e *echo.Echo
}

func newServed(t *testing.T, change func(*Config)) *served {
	t.Helper()
	db := pgtest.New(t)
	c := sound()
	c.DatabaseURL, c.DatabaseRecord, c.DatabaseDirect = db.ServiceDSN, db.RecorderDSN, db.ListenDSN
	c.MasterKey, c.Data = base64.StdEncoding.EncodeToString(make([]byte, 32)), t.TempDir()
	c.PublicURLs = []string{"https://notes.example", "http://127.0.0.1:8080"}
	if change != nil {
		change(&c)
	}
	noError(t, c.Validate())
	log := slog.New(slog.DiscardHandler)
	store, err := OpenDatabase(t.Context(), &c, log)
	noError(t, err)
	t.Cleanup(func() { _ = store.Close(t.Context()) })
	b, err := New(c, store, "test", log)
	noError(t, err)
	return &served{t: t, b: b, e: b.routes()}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pages are the routes for people, with something put in for their parameters.
func (s *served) pages(method string) (paths []string) {
	param := regexp.MustCompile(`:[a-z_]+`)
	for _, r := range s.e.Routes() {
		machine := r.Path == "" || r.Method != method
		for _, prefix := range forMachines {
			machine = machine || r.Path == prefix || strings.HasSuffix(prefix, "/") && strings.HasPrefix(r.Path, prefix)
		}
		if !machine {
			paths = append(paths, param.ReplaceAllString(r.Path, "018f0000-0000-7000-8000-000000000000"))
		}
	}
	return paths
}

func (s *served) request(method, host, path string, form url.Values, cookies ...*http.Cookie) *http.Response {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = host
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	s.e.ServeHTTP(w, r)
	return w.Result()
}

// signIn makes a person with a tenant and gives their cookies.
func (s *served) signIn(email string) (tenants.User, []*http.Cookie) {
	s.t.Helper()
	u, err := s.b.db.SignUp(s.t.Context(), tenants.SignUp{User: tenants.User{Email: email}, Tenant: "Home", Now: time.Now()})
	noError(s.t, err)
	link, err := people.NewLinks(s.b.db, "https://notes.example").SignIn(s.t.Context(), u.ID)
	noError(s.t, err)
	at, err := url.Parse(link)
	noError(s.t, err)
	first := s.request(http.MethodGet, at.Host, at.RequestURI(), nil)
	visit := first.Cookies()
	resp := s.request(http.MethodPost, at.Host, at.Path, url.Values{"link": {at.Query().Get("link")}, "_form": {fieldOf(s.t, first)}}, visit...)
	if resp.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("entering by a link: %s", resp.Status)
	}
	return u, append(resp.Cookies(), visit...)
}

func fieldOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	var b strings.Builder
	_ = resp.Write(&b)
	m := regexp.MustCompile(`name="_form" value="([^"]+)"`).FindStringSubmatch(b.String())
	if m == nil {
		t.Fatalf("no form in %s", b.String())
	}
	return m[1]
}

func TestEveryPageHasTheHeadersThatKeepItSafe(t *testing.T) {
	t.Parallel()
	s := newServed(t, nil)
	_, cookies := s.signIn("ann@example.org")
	all := s.pages(http.MethodGet)
	if len(all) < 8 {
		t.Fatalf("only %d pages: %v", len(all), all)
	}
	for _, path := range all {
		for _, who := range [][]*http.Cookie{nil, cookies} {
			h := s.request(http.MethodGet, "notes.example", path, nil, who...).Header
			csp := h.Get("Content-Security-Policy")
			if !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") ||
				h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" ||
				h.Get("Referrer-Policy") == "" || h.Get("Strict-Transport-Security") == "" {
				t.Errorf("%s: %v", path, h)
			}
		}
	}
}

func TestEveryPageAnswersAtThePublicURLsOnly(t *testing.T) {
	t.Parallel()
	s := newServed(t, nil)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, path := range s.pages(method) {
			for _, host := range []string{"evil.example", "127.0.0.1:9", "notes.example.evil.example", "[::1]:8080"} {
				if resp := s.request(method, host, path, nil); resp.StatusCode != http.StatusMisdirectedRequest {
					t.Errorf("%s %s at %s: %s", method, path, host, resp.Status)
				}
			}
			if resp := s.request(method, "NOTES.example", path, nil); resp.StatusCode == http.StatusMisdirectedRequest {
				t.Errorf("%s %s is not answered at its own host", method, path)
			}
		}
	}
}

func TestNoFormIsTakenWithoutItsHiddenField(t *testing.T) {
	t.Parallel()
	s := newServed(t, nil)
	u, cookies := s.signIn("ann@example.org")
	_, others := s.signIn("eve@example.org")
	foreign := fieldOf(t, s.request(http.MethodGet, "notes.example", "/console/account", nil, others...))
	all := s.pages(http.MethodPost)
	if len(all) < 8 {
		t.Fatalf("only %d forms: %v", len(all), all)
	}
	for _, path := range all {
		for name, field := range map[string]string{"none": "", "made up": "AAAA", "another person's": foreign} {
			if resp := s.request(http.MethodPost, "notes.example", path, url.Values{"_form": {field}}, cookies...); resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s with the field of %s: %s", path, name, resp.Status)
			}
		}
	}
	own := fieldOf(t, s.request(http.MethodGet, "notes.example", "/console/account", nil, cookies...))
	if resp := s.request(http.MethodPost, "notes.example", "/console/account", url.Values{"_form": {own}, "name": {"Ann"}}, cookies...); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("with its own field: %s", resp.Status)
	}
	if got, err := s.b.db.User(t.Context(), u.ID); err != nil || got.Name != "Ann" {
		t.Errorf("the name is %q, %v", got.Name, err)
	}
}

func TestNoPageLeadsToAnotherSite(t *testing.T) {
	t.Parallel()
	s := newServed(t, nil)
	_, cookies := s.signIn("ann@example.org")
	for _, next := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "/%09/evil.example", "/%2f%2fevil.example", "javascript:alert(1)"} {
		for _, path := range s.pages(http.MethodGet) {
			for _, who := range [][]*http.Cookie{nil, cookies} {
				resp := s.request(http.MethodGet, "notes.example", path+"?next="+url.QueryEscape(next)+"&return_to="+url.QueryEscape(next)+"&redirect_uri="+url.QueryEscape(next), nil, who...)
				at := resp.Header.Get("Location")
				if to, err := url.Parse(at); at != "" && (err != nil || to.Host != "" || !strings.HasPrefix(at, "/") || strings.HasPrefix(at, "//")) {
					t.Errorf("%s leads to %s", path, at)
				}
			}
		}
	}
}

func TestStrangersSeeTheWelcomeAndMembersTheirHome(t *testing.T) {
	t.Parallel()
	s := newServed(t, nil)
	_, cookies := s.signIn("ann@example.org")
	if resp := s.request(http.MethodGet, "notes.example", "/", nil); resp.StatusCode != http.StatusOK {
		t.Errorf("a stranger: %s", resp.Status)
	}
	resp := s.request(http.MethodGet, "notes.example", "/", nil, cookies...)
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/console" {
		t.Errorf("a member: %s to %s", resp.Status, resp.Header.Get("Location"))
	}
}

// Tries of passwords are counted by the address they come from. Who could set
// that address would not be counted.
func TestForwardedAddressesAreBelievedFromTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	try := func(s *served, forwarded string) int {
		first := s.request(http.MethodGet, "notes.example", "/console/signin", nil)
		form := url.Values{"_form": {fieldOf(t, first)}, "email": {"ann@example.org"}, "password": {"wrong password"}}
		r := httptest.NewRequest(http.MethodPost, "/console/signin", strings.NewReader(form.Encode()))
		r.Host, r.RemoteAddr = "notes.example", "10.0.0.1:5000"
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Forwarded-For", forwarded)
		r.Header.Set("X-Real-Ip", forwarded)
		r.Header.Set("Forwarded", "for="+forwarded)
		for _, c := range first.Cookies() {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		s.e.ServeHTTP(w, r)
		return w.Code
	}
	for name, x := range map[string]struct {
		trusted []string
		last    int // of twelve tries, each with another address in the header
	}{
		"nobody is trusted":    {nil, http.StatusTooManyRequests},
		"somebody else is":     {[]string{"10.0.0.2"}, http.StatusTooManyRequests},
		"the proxy is trusted": {[]string{"10.0.0.1"}, http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServed(t, func(c *Config) { c.TrustedProxies = x.trusted })
			code := 0
			for i := range 12 {
				code = try(s, "198.51.100."+string(rune('0'+i%10))+string(rune('0'+i/10)))
			}
			if code != x.last {
				t.Errorf("the twelfth try: %d, want %d", code, x.last)
			}
		})
	}
}
