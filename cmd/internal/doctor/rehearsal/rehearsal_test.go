package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/broker"
	"siyuan-broker/broker/oauth"
	"siyuan-broker/cmd/internal/browser"
	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/cmd/internal/doctor/urldoctor"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

// documents are those that clients publish, as far as they matter here.
type documents map[string]oauth.Document

func (l documents) Document(_ context.Context, id string) (oauth.Document, error) {
	d, ok := l[id]
	if !ok {
		return d, errors.New("it cannot be fetched")
	}
	return d, nil
}

var published = documents{
	"https://claude.ai/oauth/mcp-oauth-client-metadata":   {Name: "Claude", RedirectURIs: []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"}},
	"https://claude.ai/oauth/claude-code-client-metadata": {Name: "Claude Code", RedirectURIs: []string{"http://localhost/callback", "http://127.0.0.1/callback"}},
	"https://chatgpt.com/oauth/client.json":               {Name: "ChatGPT", RedirectURIs: []string{"https://chatgpt.com/connector_platform_oauth_redirect"}},
	"https://vscode.dev/oauth/client-metadata.json":       {Name: "Visual Studio Code", RedirectURIs: []string{"http://127.0.0.1/", "http://127.0.0.1:33418/", "https://vscode.dev/redirect"}},
}

// The broker's signs of life, and how long a stream is watched here.
const (
	beat    = time.Second
	silence = 1500 * time.Millisecond
)

// someone makes a person; with an instance, agents can be let in.
func someone(t *testing.T, w *browser.World, email string, instance bool) tenants.ID {
	t.Helper()
	_, tenant := w.Person(email, email)
	if !instance {
		return tenant
	}
	if err := w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
		_, err := tx.CreateInstance(t.Context(), tenants.Instance{Name: "Laptop", DefaultLevel: contract.ReadWrite, Enabled: true})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return tenant
}

// agents are the tenant's, in force or not.
func agents(t *testing.T, w *browser.World, tenant tenants.ID) (all []tenants.Agent) {
	t.Helper()
	if err := w.DB.In(t.Context(), tenant, func(tx tenants.Tx) (err error) {
		all, err = tx.Agents(t.Context(), tenants.AgentFilter{IncludeRevoked: true})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// examine runs what the command runs, without the probes to skip.
func examine(t *testing.T, d *Doctor, skip ...string) map[string]doctor.Finding {
	t.Helper()
	probes := slices.DeleteFunc(append((&urldoctor.Doctor{URL: d.URL, Network: d.Network}).Probes(), d.Probes()...),
		func(p doctor.Probe) bool { return slices.Contains(skip, p.Name) })
	found := map[string]doctor.Finding{}
	doctor.Run(t.Context(), probes, func(f doctor.Finding) { found[f.Name] = f })
	return found
}

// butFor are the clients besides one.
func butFor(name string) (others []string) {
	for _, c := range clients() {
		if c.name != name {
			others = append(others, c.name)
		}
	}
	return others
}

func TestEveryClientSignsInAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	w := browser.Start(t, nil, broker.WithClientDocuments(published), broker.WithHeartbeat(beat))
	tenant := someone(t, w, "test@example.org", true)
	found := examine(t, &Doctor{URL: w.URL, Email: "test@example.org", Password: browser.Password, Silence: silence})
	for name, f := range found {
		if f.Status != doctor.OK && name != "certificate" { // plain http
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, c := range clients() {
		if f := found[c.name]; !strings.Contains(f.Found, c.era) || !strings.Contains(f.Found, "revoked within") {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	all := agents(t, w, tenant)
	if len(all) != len(clients())+2 {
		t.Errorf("%d agents were made", len(all))
	}
	for _, a := range all {
		if a.RevokedAt.IsZero() || a.Ceiling != contract.Read || len(a.Tools) != 1 || a.ExpiresAt.After(time.Now().Add(25*time.Hour)) {
			t.Errorf("%+v", a)
		}
	}
}

func TestWithoutAPersonItSaysWhatWasNotTried(t *testing.T) {
	t.Parallel()
	w := browser.Start(t, nil, broker.WithClientDocuments(published))
	found := examine(t, &Doctor{URL: w.URL})
	for _, c := range clients() {
		if f := found[c.name]; f.Status != doctor.OK || !strings.Contains(f.Found, "led to the sign-in") {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	if f := found[account]; f.Status != doctor.Skip || !strings.Contains(f.Found, "DOCTOR_PASSWORD") {
		t.Errorf("%+v", f)
	}
}

// The operator presses Ctrl-C while a client holds a token.
func TestAnInterruptLeavesNoAgent(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var at atomic.Pointer[url.URL]
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if r.In.URL.Path == "/mcp" && r.In.Header.Get("Authorization") != "" {
			interrupt()
		}
		r.SetURL(at.Load())
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	w := browser.Start(t, func(c *broker.Config) { c.PublicURLs = []string{proxy.URL} })
	at.Store(&url.URL{Scheme: "http", Host: w.Broker.Addr().String()})
	tenant := someone(t, w, "test@example.org", true)
	d := &Doctor{URL: proxy.URL, Email: "test@example.org", Password: browser.Password}
	probes := slices.DeleteFunc(d.Probes(), func(p doctor.Probe) bool { return slices.Contains(butFor("Cursor"), p.Name) })
	probes[0].Needs = nil // of urldoctor
	found := map[string]doctor.Finding{}
	doctor.Run(ctx, probes, func(f doctor.Finding) { found[f.Name] = f })
	if found["Cursor"].Status != doctor.Fail || found["clean-up"].Status != doctor.OK {
		t.Errorf("%+v", found)
	}
	all := agents(t, w, tenant)
	if len(all) != 1 || all[0].RevokedAt.IsZero() {
		t.Errorf("left: %+v", all)
	}
}

// A broker behind a front that does one thing wrong with the sign-in.
func TestTheStepOfTheSignInThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	var front atomic.Pointer[http.HandlerFunc]
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*front.Load())(w, r) }))
	t.Cleanup(proxy.Close)
	w := browser.Start(t, func(c *broker.Config) { c.PublicURLs = []string{proxy.URL} }, broker.WithClientDocuments(documents{}), broker.WithHeartbeat(beat))
	at, err := url.Parse("http://" + w.Broker.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	pass := func(ask func(*http.Request), answer func(*http.Response)) http.HandlerFunc {
		p := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(at)
				r.Out.Host = r.In.Host
				if ask != nil {
					ask(r.Out)
				}
			},
			ModifyResponse: func(resp *http.Response) error {
				if answer != nil {
					answer(resp)
				}
				return nil
			},
		}
		return p.ServeHTTP
	}
	sound := pass(nil, nil)
	instead := func(path string, h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				h(w, r)
				return
			}
			sound(w, r)
		}
	}
	html := func(status int, server, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Server", server)
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, c := range map[string]struct {
		front    http.HandlerFunc
		password string
		homeless bool // the person has no instance
		play     string
		fails    string
		says     string // part of it
	}{
		"a wrong password":         {front: sound, password: "another password", fails: account, says: "does not take address and password"},
		"no instance":              {front: sound, homeless: true, fails: "Cursor", says: "no instance to let an agent into"},
		"an unreachable document":  {front: sound, play: "Claude", fails: "Claude", says: `names itself: The client's metadata document cannot be used: it cannot be fetched.`},
		"cookies dropped":          {front: pass(nil, func(r *http.Response) { r.Header.Del("Set-Cookie") }), fails: account, says: "another site"},
		"the session dropped":      {front: pass(nil, dropSession), fails: account, says: "no session came back"},
		"a filter on registration": {front: instead("/oauth/register", html(403, "cloudflare", "<title>Attention</title><h1>Blocked</h1>")), fails: "Cursor", says: `registration: the answer is 403 "Attention Blocked", from "cloudflare", not from the broker`},
		"a filter on tokens":       {front: instead("/oauth/token", html(502, "nginx/1.22", "<h1>Bad Gateway</h1>")), fails: "Cursor", says: `token: the answer is 502 "Bad Gateway", from "nginx/1.22", not from the broker`},
		"answers without issuer": {front: pass(nil, func(r *http.Response) {
			if to := r.Header.Get("Location"); strings.HasPrefix(to, "cursor:") {
				r.Header.Set("Location", strings.Replace(to, "iss=", "was=", 1))
			}
		}), fails: "Cursor", says: "RFC 9207"},
		"revocations swallowed": {front: instead("/oauth/revoke", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }), fails: "Cursor", says: "the access token still works"},
	} {
		email := strings.ReplaceAll(name, " ", "-") + "@example.org"
		tenant := someone(t, w, email, !c.homeless)
		front.Store(&c.front)
		d := &Doctor{URL: proxy.URL, Email: email, Password: browser.Password, Silence: silence}
		if c.password != "" {
			d.Password = c.password
		}
		f := examine(t, d, append(butFor(cmp.Or(c.play, "Cursor")), "large request", "tunnel", "headers", "stream")...)[c.fails]
		if f.Status != doctor.Fail || !strings.Contains(f.Found, c.says) || f.Next == "" {
			t.Errorf("%s: %+v", name, f)
		}
		for _, a := range agents(t, w, tenant) {
			if a.RevokedAt.IsZero() {
				t.Errorf("%s: an agent is left: %s", name, a.Name)
			}
		}
	}
}

// dropSession takes away the cookie of the session and leaves that of the form.
func dropSession(r *http.Response) {
	all := r.Header.Values("Set-Cookie")
	r.Header.Del("Set-Cookie")
	for _, c := range all {
		if !strings.HasPrefix(c, "siyuan_session=") {
			r.Header.Add("Set-Cookie", c)
		}
	}
}

func TestThePasswordIsNotSentWhereOthersCanReadIt(t *testing.T) {
	t.Parallel()
	for issuer, sent := range map[string]bool{"http://notes.example": false, "http://192.0.2.1": false, "https://127.0.0.1:1": true, "http://127.0.0.1:1": true, "http://localhost:1": true} {
		d := &Doctor{Email: "a", Password: "b", server: server{Issuer: issuer}}
		if f := d.account(t.Context()); f.Status != doctor.Fail || strings.Contains(f.Found, "not sent") == sent {
			t.Errorf("%s: %+v", issuer, f)
		}
	}
}

func TestWhoAnsweredIsToldByWhatTheAnswerLooksLike(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]answer{
		"from the broker":                         {header: http.Header{}, body: []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32011,"message":"x"}}`)},
		`from the broker, by way of "nginx"`:      {header: http.Header{"Server": {"nginx"}}, body: []byte(`{"error":"invalid_grant","error_description":"x"}`)},
		`from "nginx", not from the broker`:       {header: http.Header{"Server": {"nginx"}}, body: []byte(`<html><center>nginx</center>`)},
		`from "1.1 varnish", not from the broker`: {header: http.Header{"Via": {"1.1 varnish"}}},
		"from Cloudflare, not from the broker":    {header: http.Header{"Cf-Ray": {"1"}}, body: []byte("error code: 1020")},
		"probably not from the broker":            {header: http.Header{}, body: []byte("404 page not found")},
		`from the broker, by way of "Caddy"`:      {header: http.Header{"Server": {"Caddy"}, "Content-Security-Policy": {"x"}}, body: []byte(`<main id="main">`)},
		`from "gateway", not from the broker`:     {header: http.Header{"Server": {"gateway"}}, body: []byte(`{"message":"no route"}`)},
	} {
		if got := a.hop(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
