package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"siyuan-broker/broker"
	"siyuan-broker/broker/oauth"
	"siyuan-broker/broker/people"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

const agentCallback = "http://localhost:3118/callback"

// person is somebody's browser: signed in by a one-time link, with forms sent
// as a browser sends them.
type person struct {
	w *world
	c *http.Client
}

func (x *tenant) person() *person {
	t := x.w.t
	t.Helper()
	jar, _ := cookiejar.New(nil)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := &person{x.w, &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	link, err := people.NewLinks(x.w.db, x.w.url).SignIn(t.Context(), x.owner)
	must(t, err)
	p.submit(link, nil)
	return p
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]+)">`)

// submit opens a page, fills in its form and sends it to where it is.
func (p *person) submit(at string, fields url.Values) *url.URL {
	p.w.t.Helper()
	resp, body := p.do(http.MethodGet, at, nil)
	m := hidden.FindAllStringSubmatch(body, -1)
	if resp.StatusCode != http.StatusOK || m == nil {
		p.w.t.Fatalf("GET %s: %d to %q\n%s", at, resp.StatusCode, resp.Header.Get("Location"), body)
	}
	form := url.Values{}
	for _, field := range m {
		form.Set(field[1], field[2])
	}
	for k, v := range fields {
		form[k] = v
	}
	resp, body = p.do(http.MethodPost, at, form)
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != http.StatusSeeOther {
		p.w.t.Fatalf("POST %s: %d\n%s", at, resp.StatusCode, body)
	}
	return to
}

func (p *person) do(method, at string, form url.Values) (*http.Response, string) {
	p.w.t.Helper()
	req, err := http.NewRequestWithContext(p.w.t.Context(), method, at, strings.NewReader(form.Encode()))
	must(p.w.t, err)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := p.c.Do(req)
	must(p.w.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(p.w.t, err)
	return resp, string(body)
}

// agrees lets a client into the tenant's instance.
func (p *person) agrees(x *tenant, level string) auth.AuthorizationCodeFetcher {
	return func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		to := p.submit(args.URL, url.Values{"answer": {"allow"}, "place": {x.id.String() + "/" + x.instance.String()}, "level": {level},
			"days": {"30"}, "name": {"the SDK"}, "which": {"all"}})
		q := to.Query()
		if q.Get("error") != "" {
			return nil, errors.New(q.Get("error") + ": " + q.Get("error_description"))
		}
		return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
	}
}

// signIn connects an MCP client that signs in by itself.
func (w *world) signIn(c auth.AuthorizationCodeHandlerConfig) (*mcp.ClientSession, *auth.AuthorizationCodeHandler) {
	w.t.Helper()
	transport := &http.Transport{}
	c.Client = &http.Client{Transport: transport}
	c.RedirectURL = agentCallback
	handler, err := auth.NewAuthorizationCodeHandler(&c)
	must(w.t, err)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(w.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: w.url + "/mcp", HTTPClient: c.Client, OAuthHandler: handler, MaxRetries: -1,
	}, nil)
	must(w.t, err)
	w.t.Cleanup(func() {
		_ = s.Close()
		transport.CloseIdleConnections()
	})
	return s, handler
}

// documentServer serves a client's metadata document at an address that only
// the test's broker reaches.
func documentServer(t *testing.T) (id string, reader oauth.Documents) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"client_id": "https://" + r.Host + "/client.json", "client_name": "SDK by document",
			"redirect_uris": []string{"http://localhost/callback"}})
	}))
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s.URL + "/client.json", oauth.NewFetcher(oauth.FetcherOptions{Reach: netip.Addr.IsLoopback, TLS: &tls.Config{RootCAs: pool}})
}

func TestTheSDKSignsInEveryWayAndReachesTheHome(t *testing.T) {
	t.Parallel()
	id, documents := documentServer(t)
	w := newNode(t, pgtest.New(t), "node-1", nil, broker.WithClientDocuments(documents))
	x := w.tenant("Ann", tenants.ID{})
	x.home(nil)
	p := x.person()
	_, err := w.db.CreateOAuthClient(t.Context(), tenants.OAuthClient{ID: "operators-own", Name: "Registered by hand", RedirectURIs: []string{agentCallback}})
	must(t, err)
	for name, c := range map[string]auth.AuthorizationCodeHandlerConfig{
		"by registration": {DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "SDK", RedirectURIs: []string{agentCallback}, GrantTypes: []string{"authorization_code", "refresh_token"}}}},
		"by document":       {ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: id}},
		"registered before": {PreregisteredClient: &oauthex.ClientCredentials{ClientID: "operators-own"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.AuthorizationCodeFetcher, c.RequestRefreshToken = p.agrees(x, "r"), true
			s, handler := w.signIn(c)
			list, err := s.ListTools(t.Context(), nil)
			must(t, err)
			if len(list.Tools) == 0 {
				t.Error("no tools")
			}
			if a := call(t.Context(), s, "notebook", map[string]any{"action": "list"}); a.err != nil || a.code != "" {
				t.Errorf("notebook list: %v %s", a.err, a.body)
			}
			source, err := handler.TokenSource(t.Context())
			must(t, err)
			token, err := source.Token()
			must(t, err)
			if token.RefreshToken == "" || token.Extra("scope") != "notes:read" {
				t.Errorf("refresh token %q, scope %v", token.RefreshToken, token.Extra("scope"))
			}
		})
	}
}

func TestRevokingAnAgentOnItsPageCutsItsOpenStreamWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ann", tenants.ID{})
	p := x.person()
	s, _ := w.signIn(auth.AuthorizationCodeHandlerConfig{AuthorizationCodeFetcher: p.agrees(x, "rw"),
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{RedirectURIs: []string{agentCallback}}}})
	_, err := s.ListTools(t.Context(), nil)
	must(t, err)
	token := signedInToken(t, w, p, x)
	stream := listen(t, w, token)
	var agents []tenants.Agent
	x.change(func(tx tenants.Tx) (err error) {
		agents, err = tx.Agents(t.Context(), tenants.AgentFilter{})
		return err
	})
	for _, a := range agents {
		p.revoke(a.ID)
	}
	within(t, 2*time.Second, "the stream ends", func() bool {
		select {
		case <-stream:
			return true
		default:
			return false
		}
	})
	resp, _ := w.post(token, map[string]string{"MCP-Protocol-Version": "2025-11-25"}, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	challenge := resp.Header.Get("WWW-Authenticate")
	if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(challenge, `error="invalid_token"`) ||
		!strings.Contains(challenge, `resource_metadata="`+w.url+`/.well-known/oauth-protected-resource/mcp"`) || !strings.Contains(challenge, `scope="notes:read notes:write notes:delete"`) {
		t.Errorf("%d %s", resp.StatusCode, challenge)
	}
}

// revoke takes an agent back on the page of agents.
func (p *person) revoke(agent tenants.ID) {
	p.w.t.Helper()
	_, body := p.do(http.MethodGet, p.w.url+oauth.AgentsPath, nil)
	m := hidden.FindStringSubmatch(body)
	resp, body := p.do(http.MethodPost, p.w.url+oauth.AgentRevokePath, url.Values{m[1]: {m[2]}, "agent": {agent.String()}})
	if resp.StatusCode != http.StatusSeeOther {
		p.w.t.Fatalf("revoke: %d\n%s", resp.StatusCode, body)
	}
}

// signedInToken is the access token of an agent that came in by OAuth, got with
// plain requests.
func signedInToken(t *testing.T, w *world, p *person, x *tenant) string {
	t.Helper()
	post := func(path, kind, body string) map[string]any {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
		must(t, err)
		req.Header.Set("Content-Type", kind)
		resp, err := p.c.Transport.RoundTrip(req)
		must(t, err)
		defer resp.Body.Close()
		var out map[string]any
		must(t, json.NewDecoder(resp.Body).Decode(&out))
		return out
	}
	client, _ := post("/oauth/register", "application/json", `{"redirect_uris":["`+agentCallback+`"]}`)["client_id"].(string)
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" // RFC 7636, appendix B
	result, err := p.agrees(x, "r")(t.Context(), &auth.AuthorizationArgs{URL: w.url + "/oauth/authorize?" + url.Values{"response_type": {"code"}, "client_id": {client},
		"redirect_uri": {agentCallback}, "code_challenge": {challenge}, "code_challenge_method": {"S256"}}.Encode()})
	must(t, err)
	out := post("/oauth/token", "application/x-www-form-urlencoded", url.Values{"grant_type": {"authorization_code"}, "client_id": {client},
		"code": {result.Code}, "code_verifier": {verifier}}.Encode())
	access, _ := out["access_token"].(string)
	if access == "" {
		t.Fatalf("no token: %v", out)
	}
	return access
}

// listen opens an agent's stream of a legacy session; the channel closes when
// the stream ends.
func listen(t *testing.T, w *world, token string) <-chan struct{} {
	t.Helper()
	resp, _ := w.post(token, nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	session := resp.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatalf("no session: %d", resp.StatusCode)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/mcp", nil)
	must(t, err)
	for k, v := range map[string]string{"Authorization": "Bearer " + token, "Accept": "text/event-stream", "Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"} {
		req.Header.Set(k, v)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err = transport.RoundTrip(req)
	must(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("stream: %d", resp.StatusCode)
	}
	ended := make(chan struct{})
	go func() { // ends with the broker at the latest
		defer close(ended)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}()
	return ended
}

// A token for /mcp opens neither the tunnel nor the console, and neither of
// their credentials opens /mcp.
func TestACredentialOpensOneDoorOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ann", tenants.ID{})
	p := x.person()
	token := signedInToken(t, w, p, x)
	for path, want := range map[string][]int{
		"/tunnel": {http.StatusUnauthorized, http.StatusForbidden, http.StatusBadRequest, http.StatusUpgradeRequired}, "/console": {http.StatusSeeOther}, "/console/agents": {http.StatusSeeOther},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := p.c.Transport.RoundTrip(req) // without the cookies
		must(t, err)
		_ = resp.Body.Close()
		ok := false
		for _, s := range want {
			ok = ok || resp.StatusCode == s
		}
		if !ok {
			t.Errorf("%s with an agent's token: %d", path, resp.StatusCode)
		}
	}
	u, err := url.Parse(w.url)
	must(t, err)
	for _, c := range p.c.Jar.Cookies(u) {
		if resp, _ := w.post(c.Value, nil, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("/mcp with the cookie %s: %d", c.Name, resp.StatusCode)
		}
	}
	if resp, _ := w.post(token, nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`); resp.StatusCode != http.StatusOK {
		t.Errorf("/mcp with the agent's token: %d", resp.StatusCode)
	}
}
