package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/net/html"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/oauth"
	"siyuan-broker/broker/page"
	"siyuan-broker/broker/token"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clock is the time of a rig. It begins at the real one, because the database
// has its own.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

// rig is the authorization server on a database of its own, with one tenant.
type rig struct {
	t       *testing.T
	store   *postgres.Store
	url     string
	clock   *clock
	verify  *token.Verifier
	failure error // of the fan-out

	tenant, owner, instance tenants.ID
}

const ownerEmail = "owner@example.org"

func newRig(t *testing.T, change ...func(*oauth.Config)) *rig {
	t.Helper()
	db := pgtest.New(t)
	store, err := postgres.Open(t.Context(), postgres.Options{ServiceDSN: db.ServiceDSN, RecorderDSN: db.RecorderDSN, ListenDSN: db.ListenDSN,
		MasterKey: make([]byte, 32), MaxConns: 8})
	must(t, err)
	t.Cleanup(store.Close)
	r := &rig{t: t, store: store, clock: &clock{}}

	ts := httptest.NewUnstartedServer(nil)
	r.url = "http://" + ts.Listener.Addr().String()
	keys := token.NewKeys(store, token.KeysOptions{Now: r.clock.now})
	must(t, keys.Load(t.Context()))
	revoked := token.NewRevocations(store, token.RevocationsOptions{Now: r.clock.now, PollEvery: 50 * time.Millisecond})
	revoked.Start(t.Context())
	t.Cleanup(revoked.Stop)
	r.verify, err = token.NewVerifier(token.VerifierOptions{Issuer: r.url, Resources: []string{r.url + "/mcp"}, Keys: keys, Revoked: revoked, Now: r.clock.now})
	must(t, err)
	pages, err := page.New(page.Options{PublicURLs: []string{r.url}})
	must(t, err)
	limiter := cluster.NewLocalLimiter(r.clock.now)
	c := oauth.Config{
		Issuer: r.url, Resources: []string{r.url + "/mcp"}, Store: store, Tokens: &token.Issuer{URL: r.url, Keys: keys, Now: r.clock.now}, Verifier: r.verify,
		Pages: pages, People: r.person, Catalogue: tools.New(), Now: r.clock.now, FanOut: func() error { return r.failure },
		Limit: func(ctx context.Context, what, who string, limit int, window time.Duration) (bool, time.Duration) {
			return limiter.Allow(ctx, cluster.LimitKey{Agent: who, Tool: what}, limit, window)
		},
	}
	for _, fn := range change {
		fn(&c)
	}
	s, err := oauth.New(c)
	must(t, err)
	ts.Config.Handler = mount(s, pages)
	ts.Start()
	t.Cleanup(ts.Close)

	r.owner = r.newPerson("owner@example.org")
	made, err := store.CreateTenant(t.Context(), "Home", r.owner)
	must(t, err)
	r.tenant = made.ID
	r.instance = r.newInstance(r.tenant, "Notes")
	return r
}

func mount(s *oauth.Server, pages *page.Pages) http.Handler {
	mux := http.NewServeMux()
	for _, p := range oauth.MetadataPaths() {
		mux.HandleFunc(p, s.ServeMetadata)
	}
	mux.HandleFunc(oauth.TokenPath, s.ServeToken)
	mux.HandleFunc(oauth.RegisterPath, s.ServeRegister)
	mux.HandleFunc(oauth.RevokePath, s.ServeRevoke)
	mux.HandleFunc(oauth.DevicePath, s.ServeDevice)
	for path, h := range map[string]http.HandlerFunc{
		oauth.AuthorizePath: s.ServeAuthorize, oauth.VerifyPath: s.ServeVerify, oauth.AgentsPath: s.ServeAgents,
		oauth.AgentRevokePath: s.ServeAgentRevoke, oauth.TokenPagePath: s.ServePersonalToken, oauth.ConnectPath: s.ServeConnect,
	} {
		mux.Handle(path, pages.Guard(h))
	}
	return mux
}

// person stands in for people's sessions: the cookie is the id of the person.
func (r *rig) person(req *http.Request) (oauth.Person, bool) {
	c, err := req.Cookie("siyuan_session")
	if err != nil {
		return oauth.Person{}, false
	}
	id, err := uuid.Parse(c.Value)
	if err != nil {
		return oauth.Person{}, false
	}
	u, err := r.store.User(req.Context(), id)
	if err != nil {
		return oauth.Person{}, false
	}
	all, err := r.store.MembershipsOf(req.Context(), id)
	p := oauth.Person{ID: id, Email: u.Email, Memberships: all}
	if len(all) > 0 {
		p.Shown = all[0].TenantID
	}
	return p, err == nil
}

// newPerson makes somebody.
func (r *rig) newPerson(email string) tenants.ID {
	r.t.Helper()
	u, err := r.store.CreateUser(r.t.Context(), tenants.User{Email: email})
	must(r.t, err)
	return u.ID
}

func (r *rig) newInstance(tenant tenants.ID, name string) (id tenants.ID) {
	r.t.Helper()
	r.in(tenant, func(tx tenants.Tx) error {
		in, err := tx.CreateInstance(r.t.Context(), tenants.Instance{Name: name, DefaultLevel: contract.Read})
		must(r.t, err)
		id = in.ID
		on := true
		_, err = tx.UpdateInstance(r.t.Context(), id, tenants.InstanceUpdate{Enabled: &on})
		return err
	})
	return id
}

func (r *rig) in(tenant tenants.ID, fn func(tx tenants.Tx) error) {
	r.t.Helper()
	must(r.t, r.store.In(r.t.Context(), tenant, fn))
}

func (r *rig) agents(tenant tenants.ID) (all []tenants.Agent) {
	r.t.Helper()
	r.in(tenant, func(tx tenants.Tx) (err error) {
		all, err = tx.Agents(r.t.Context(), tenants.AgentFilter{IncludeRevoked: true})
		return err
	})
	return all
}

// browser is a person's, signed in where there is one.
type browser struct {
	r *rig
	c *http.Client
}

func (r *rig) browser(person tenants.ID) *browser {
	jar, _ := cookiejar.New(nil)
	u, _ := url.Parse(r.url)
	if person != (tenants.ID{}) {
		jar.SetCookies(u, []*http.Cookie{{Name: "siyuan_session", Value: person.String(), Path: "/"}})
	}
	c := &http.Client{Jar: jar, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r.t.Cleanup(c.CloseIdleConnections)
	return &browser{r, c}
}

// seen is an answer as a browser has it.
type seen struct {
	status int
	header http.Header
	body   string
}

func (s seen) location(t testing.TB) *url.URL {
	t.Helper()
	u, err := url.Parse(s.header.Get("Location"))
	if err != nil || s.status != http.StatusSeeOther {
		t.Fatalf("status %d, Location %q; want a redirect\n%s", s.status, s.header.Get("Location"), s.body)
	}
	return u
}

func (b *browser) do(req *http.Request) seen {
	b.r.t.Helper()
	resp, err := b.c.Do(req)
	must(b.r.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(b.r.t, err)
	return seen{resp.StatusCode, resp.Header, string(body)}
}

func (b *browser) get(at string) seen {
	b.r.t.Helper()
	if !strings.HasPrefix(at, "http") {
		at = b.r.url + at
	}
	req, err := http.NewRequestWithContext(b.r.t.Context(), http.MethodGet, at, nil)
	must(b.r.t, err)
	return b.do(req)
}

// submit sends the form of a page, with changes, to at.
func (b *browser) submit(at string, page seen, change url.Values) seen {
	b.r.t.Helper()
	v := formOf(b.r.t, page.body)
	for k, vs := range change {
		v[k] = vs
	}
	if !strings.HasPrefix(at, "http") {
		at = b.r.url + at
	}
	req, err := http.NewRequestWithContext(b.r.t.Context(), http.MethodPost, at, strings.NewReader(v.Encode()))
	must(b.r.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.do(req)
}

// formOf reads what the last form of a page would send.
func formOf(t testing.TB, body string) url.Values {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	must(t, err)
	v := url.Values{}
	attr := func(n *html.Node, key string) (string, bool) {
		for _, a := range n.Attr {
			if a.Key == key {
				return a.Val, true
			}
		}
		return "", false
	}
	var walk func(n *html.Node, selected string)
	walk = func(n *html.Node, selected string) {
		name, _ := attr(n, "name")
		value, _ := attr(n, "value")
		switch kind, _ := attr(n, "type"); {
		case n.Data == "form":
			v = url.Values{}
		case n.Data == "select":
			selected = name
		case n.Data == "option":
			if _, ok := attr(n, "selected"); ok {
				v.Set(selected, value)
			}
		case n.Data == "input" && (kind == "radio" || kind == "checkbox"):
			if _, ok := attr(n, "checked"); ok {
				v.Add(name, value)
			}
		case n.Data == "input":
			v.Set(name, value)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, selected)
		}
	}
	walk(doc, "")
	return v
}

// request is an authorization request as a client writes it.
type request url.Values

const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636, appendix B

func challenge(v string) string {
	sum := sha256.Sum256([]byte(v))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (r *rig) request(client, redirect string) request {
	return request{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "state": {"st~1"},
		"code_challenge": {challenge(verifier)}, "code_challenge_method": {"S256"}, "resource": {r.url + "/mcp"},
	}
}

func (q request) with(key string, values ...string) request {
	c := request{}
	for k, v := range q {
		c[k] = v
	}
	if c[key] = values; len(values) == 0 {
		delete(c, key)
	}
	return c
}

func (r *rig) authorizeURL(q request) string {
	return r.url + oauth.AuthorizePath + "?" + url.Values(q).Encode()
}

// agree lets a client in as the owner and returns the answer's parameters.
func (r *rig) agree(q request, change url.Values) url.Values {
	r.t.Helper()
	b := r.browser(r.owner)
	page := b.get(r.authorizeURL(q))
	if page.status != http.StatusOK {
		r.t.Fatalf("consent page: %d %s %s", page.status, page.header.Get("Location"), page.body)
	}
	v := url.Values{"answer": {"allow"}}
	for k, x := range change {
		v[k] = x
	}
	return b.submit(r.authorizeURL(q), page, v).location(r.t).Query()
}

// register registers a client as one would and returns its id.
func (r *rig) register(body string) (id string, answer map[string]any) {
	r.t.Helper()
	status, answer := r.postJSON(oauth.RegisterPath, body)
	if status != http.StatusCreated {
		r.t.Fatalf("registration: %d %v", status, answer)
	}
	return answer["client_id"].(string), answer
}

const appURI = "https://app.example/cb"

// app registers a client with one redirect URI.
func (r *rig) app() string {
	r.t.Helper()
	id, _ := r.register(`{"client_name":"App","redirect_uris":["` + appURI + `"]}`)
	return id
}

func (r *rig) postJSON(path, body string) (int, map[string]any) {
	return r.send(path, "application/json", body, nil)
}

// post sends a form to an endpoint.
func (r *rig) post(path string, v url.Values) (int, map[string]any) {
	r.t.Helper()
	return r.send(path, "application/x-www-form-urlencoded", v.Encode(), nil)
}

func (r *rig) send(path, kind, body string, header http.Header) (int, map[string]any) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	must(r.t, err)
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", kind)
	resp, err := http.DefaultTransport.RoundTrip(req)
	must(r.t, err)
	defer resp.Body.Close()
	var out map[string]any
	must(r.t, json.NewDecoder(resp.Body).Decode(&out))
	if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "*" {
		r.t.Errorf("%s: Access-Control-Allow-Origin %q", path, got)
	}
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		r.t.Errorf("%s: Cache-Control %q", path, got)
	}
	return resp.StatusCode, out
}

// redeem exchanges a code, with changes to what a client sends.
func (r *rig) redeem(client, redirect, code string, change url.Values) (int, map[string]any) {
	r.t.Helper()
	v := url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "redirect_uri": {redirect},
		"code_verifier": {verifier}, "resource": {r.url + "/mcp"}}
	for k, x := range change {
		if v[k] = x; len(x) == 0 {
			delete(v, k)
		}
	}
	return r.post(oauth.TokenPath, v)
}

// tokens are what a client has after signing in.
type tokens struct{ access, refresh, scope string }

func tokensOf(t testing.TB, status int, answer map[string]any) tokens {
	t.Helper()
	if status != http.StatusOK || answer["token_type"] != "Bearer" {
		t.Fatalf("token answer: %d %v", status, answer)
	}
	return tokens{answer["access_token"].(string), answer["refresh_token"].(string), answer["scope"].(string)}
}

// signIn takes a client through the whole flow.
func (r *rig) signIn(client string) tokens {
	r.t.Helper()
	code := r.agree(r.request(client, appURI), nil).Get("code")
	status, answer := r.redeem(client, appURI, code, nil)
	return tokensOf(r.t, status, answer)
}

func (r *rig) refresh(client, refresh string) (int, map[string]any) {
	r.t.Helper()
	return r.post(oauth.TokenPath, url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {refresh}})
}

// works reports whether an access token is good for /mcp.
func (r *rig) works(access string) bool {
	r.t.Helper()
	_, err := r.verify.Verify(r.t.Context(), access)
	if err != nil && !errors.Is(err, token.ErrInvalid) {
		r.t.Fatal(err)
	}
	return err == nil
}

func wantRefusal(t testing.TB, what string, status int, answer map[string]any, wantStatus int, wantCode string) {
	t.Helper()
	if status != wantStatus || answer["error"] != wantCode || answer["error_description"] == "" {
		t.Errorf("%s: got %d %v, want %d %s", what, status, answer, wantStatus, wantCode)
	}
}
