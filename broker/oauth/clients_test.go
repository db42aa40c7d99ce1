package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/oauth"
)

// library is client metadata documents by their address.
type library map[string]oauth.Document

func (l library) Document(_ context.Context, id string) (oauth.Document, error) {
	d, ok := l[id]
	if !ok {
		return oauth.Document{}, errors.New("it cannot be fetched")
	}
	return d, nil
}

const (
	claudeCodeDocument = "https://claude.ai/oauth/claude-code-client-metadata"
	vscodeDocument     = "https://vscode.dev/oauth/client-metadata.json"
	claudeDocument     = "https://claude.ai/oauth/mcp-oauth-client-metadata"
	chatgptDocument    = "https://chatgpt.com/oauth/client.json"
)

// documented are the documents that the clients publish, as far as they matter
// here.
var documented = library{
	claudeDocument:     {Name: "Claude", RedirectURIs: []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"}},
	chatgptDocument:    {Name: "ChatGPT", RedirectURIs: []string{"https://chatgpt.com/connector_platform_oauth_redirect"}},
	claudeCodeDocument: {Name: "Claude Code", RedirectURIs: []string{"http://localhost/callback", "http://127.0.0.1/callback"}},
	vscodeDocument:     {Name: "Visual Studio Code", RedirectURIs: []string{"http://127.0.0.1/", "http://127.0.0.1:33418/", "https://vscode.dev/redirect"}},
}

// The registrations are what the clients send, or the public record of it:
// addresses, grant types and the members they name.
func TestTheUsualClientsSignInAsTheyDo(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *oauth.Config) { c.Documents = documented })
	for name, x := range map[string]struct {
		register string // empty: by document
		client   string
		redirect string
		scope    string
		resource string // of the requests; "-": none
		refresh  url.Values
	}{
		"Claude": {
			register: `{"client_name":"Claude","redirect_uris":["https://claude.ai/api/mcp/auth_callback"],"grant_types":["authorization_code","refresh_token"],
				"response_types":["code"],"token_endpoint_auth_method":"none","scope":"notes:read notes:write notes:delete"}`,
			redirect: "https://claude.ai/api/mcp/auth_callback", scope: "notes:read notes:write notes:delete",
		},
		"Claude under its other name": {
			register: `{"client_name":"Claude","redirect_uris":["https://claude.com/api/mcp/auth_callback"],"token_endpoint_auth_method":"client_secret_post"}`,
			redirect: "https://claude.com/api/mcp/auth_callback",
		},
		"Claude by document": {client: claudeDocument, redirect: "https://claude.ai/api/mcp/auth_callback", scope: "notes:read notes:write notes:delete"},
		"ChatGPT by document": {
			client: chatgptDocument, redirect: "https://chatgpt.com/connector_platform_oauth_redirect", scope: "notes:read offline_access",
		},
		"ChatGPT": {
			register: `{"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector/oauth/OUbdUMlL15Ct"],"grant_types":["authorization_code","refresh_token"],
				"response_types":["code"],"token_endpoint_auth_method":"none"}`,
			redirect: "https://chatgpt.com/connector/oauth/OUbdUMlL15Ct", scope: "notes:read offline_access",
			refresh: url.Values{"scope": {"notes:read offline_access"}},
		},
		"ChatGPT of the old address": {
			register: `{"redirect_uris":["https://chatgpt.com/connector_platform_oauth_redirect"]}`,
			redirect: "https://chatgpt.com/connector_platform_oauth_redirect", resource: "-",
		},
		"Cursor in the app": {
			register: cursorRegistration, redirect: "cursor://anysphere.cursor-mcp/oauth/callback",
		},
		"Cursor in the web": {
			register: cursorRegistration, redirect: "https://www.cursor.com/agents/mcp/oauth/callback",
		},
		"Cursor in the terminal": {
			register: cursorRegistration, redirect: "http://localhost:8787/callback",
		},
		"VS Code by document": {client: vscodeDocument, redirect: "http://127.0.0.1:33418/"},
		"VS Code on the web":  {client: vscodeDocument, redirect: "https://vscode.dev/redirect"},
		"VS Code on another port, without the slash": {
			register: `{"client_name":"Visual Studio Code","client_uri":"https://code.visualstudio.com","application_type":"native","grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"],
				"response_types":["code"],"redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://127.0.0.1/","http://127.0.0.1:33418/"],"token_endpoint_auth_method":"none"}`,
			redirect: "http://127.0.0.1:51789",
		},
		"Claude Code by document": {client: claudeCodeDocument, redirect: "http://localhost:60351/callback"},
		"Claude Code": {
			register: `{"client_name":"Claude Code (siyuan)","redirect_uris":["http://localhost:3118/callback"],"grant_types":["authorization_code","refresh_token"],
				"response_types":["code"],"token_endpoint_auth_method":"none","application_type":"native"}`,
			redirect: "http://localhost:60351/callback", resource: "/mcp/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := x.client
			if x.register != "" {
				var answer map[string]any
				client, answer = r.register(x.register)
				if answer["token_endpoint_auth_method"] != "none" || answer["client_secret"] != nil || answer["client_id_issued_at"].(float64) < 1 {
					t.Errorf("registered: %v", answer)
				}
			}
			q := r.request(client, x.redirect)
			form := url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "redirect_uri": {x.redirect}, "code_verifier": {verifier}}
			if x.scope != "" {
				q = q.with("scope", x.scope)
			}
			switch x.resource {
			case "-":
				q = q.with("resource")
			default:
				q = q.with("resource", r.url+or(x.resource, "/mcp"))
				form.Set("resource", r.url+or(x.resource, "/mcp"))
			}
			answer := r.agree(q, nil)
			form.Set("code", answer.Get("code"))
			status, body := r.post(oauth.TokenPath, form)
			got := tokensOf(t, status, body)
			if !r.works(got.access) {
				t.Error("the access token does not work")
			}
			again := url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {got.refresh}}
			for k, v := range x.refresh {
				again[k] = v
			}
			status, body = r.post(oauth.TokenPath, again)
			if got = tokensOf(t, status, body); !r.works(got.access) {
				t.Error("the refreshed access token does not work")
			}
		})
	}
}

const cursorRegistration = `{"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback"],
	"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func TestOneBadRedirectURIDoesNotSinkTheGoodOnes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, got := r.register(`{"redirect_uris":["javascript:alert(1)","https://app.example/cb","http://evil.example/cb","https://app.example/cb"]}`)
	if uris := got["redirect_uris"].([]any); len(uris) != 1 || uris[0] != "https://app.example/cb" {
		t.Errorf("registered %v", uris)
	}
	refused := got["redirect_uris_refused"].([]any)
	if len(refused) != 2 || refused[0].(map[string]any)["uri"] != "javascript:alert(1)" || refused[1].(map[string]any)["reason"] == "" {
		t.Errorf("refused %v", refused)
	}
}

func TestRegistrationsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for body, want := range map[string]string{
		`{}`:                   "invalid_redirect_uri",
		`{"redirect_uris":[]}`: "invalid_redirect_uri",
		`{"redirect_uris":["http://a.example/"]}`: "invalid_redirect_uri",
		`{"redirect_uris":"https://a.example/"}`:  "invalid_client_metadata",
		`[]`:                                      "invalid_client_metadata",
		`x`:                                       "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"response_types":["token"]}`:                "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"x":"` + strings.Repeat("a", 70<<10) + `"}`: "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/` + strings.Repeat("a", 3000) + `"]}`:          "invalid_redirect_uri",
	} {
		status, answer := r.postJSON(oauth.RegisterPath, body)
		wantRefusal(t, body[:min(len(body), 60)], status, answer, http.StatusBadRequest, want)
	}
	many := make([]string, 30)
	for i := range many {
		many[i] = `"https://a.example/` + strings.Repeat("a", i) + `"`
	}
	if _, got := r.register(`{"redirect_uris":[` + strings.Join(many, ",") + `]}`); len(got["redirect_uris"].([]any)) != 20 {
		t.Errorf("%d redirect URIs", len(got["redirect_uris"].([]any)))
	}
}

func TestTwoRegistrationsInARowAreTwoClients(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.app(), r.app()
	if a == b {
		t.Fatal("one client")
	}
	mine, other := r.signIn(a), r.signIn(b)
	status, body := r.refresh(a, other.refresh)
	wantRefusal(t, "a's name, b's token", status, body, http.StatusBadRequest, "invalid_grant")
	status, body = r.refresh(a, mine.refresh)
	tokensOf(t, status, body)
	status, body = r.refresh(b, other.refresh)
	tokensOf(t, status, body)
}

func TestTheMetadataIsTheSameEverywhereAndSaysWhatClientsLookFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser(r.owner)
	var first string
	for _, path := range oauth.MetadataPaths() {
		got := b.get(path)
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" || got.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
		if first = or(first, got.body); got.body != first {
			t.Errorf("%s differs", path)
		}
	}
	var m map[string]any
	must(t, json.Unmarshal([]byte(first), &m))
	for key, want := range map[string]string{
		"issuer": "", "authorization_endpoint": "/oauth/authorize", "token_endpoint": "/oauth/token", "registration_endpoint": "/oauth/register",
		"revocation_endpoint": "/oauth/revoke", "device_authorization_endpoint": "/oauth/device", "jwks_uri": "/oauth/jwks",
	} {
		if m[key] != r.url+want {
			t.Errorf("%s is %v", key, m[key])
		}
	}
	for key, want := range map[string]string{
		"code_challenge_methods_supported": "S256", "token_endpoint_auth_methods_supported": "none", "response_types_supported": "code",
		"grant_types_supported": "refresh_token", "scopes_supported": "offline_access",
	} {
		list, _ := m[key].([]any)
		if !slices.Contains(list, any(want)) {
			t.Errorf("%s is %v", key, m[key])
		}
	}
	if len(m["code_challenge_methods_supported"].([]any)) != 1 || len(m["token_endpoint_auth_methods_supported"].([]any)) != 1 {
		t.Error("more is promised than is done")
	}
	for _, key := range []string{"client_id_metadata_document_supported", "authorization_response_iss_parameter_supported"} {
		if m[key] != true {
			t.Errorf("%s is %v", key, m[key])
		}
	}
}

func TestPagesOfOtherOriginsMayCallWhatNeedsNoCookie(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser(r.owner)
	for path, method := range map[string]string{oauth.MetadataPaths()[0]: "GET", oauth.TokenPath: "POST", oauth.RegisterPath: "POST", oauth.RevokePath: "POST", oauth.DevicePath: "POST"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, r.url+path, nil)
		must(t, err)
		req.Header.Set("Origin", "https://inspector.example")
		req.Header.Set("Access-Control-Request-Method", method)
		got := b.do(req)
		if got.status != http.StatusNoContent || got.header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(got.header.Get("Access-Control-Allow-Methods"), method) ||
			!strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "Content-Type") || got.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
		req, err = http.NewRequestWithContext(t.Context(), http.MethodDelete, r.url+path, nil)
		must(t, err)
		if got := b.do(req); got.status != http.StatusMethodNotAllowed || !strings.Contains(got.header.Get("Allow"), method) {
			t.Errorf("DELETE %s: %d", path, got.status)
		}
	}
	if got := b.get(r.authorizeURL(r.request(r.app(), appURI))); got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("the consent page can be read from other origins")
	}
}

func TestOtherHostsAreMisdirected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser(r.owner)
	for _, path := range []string{oauth.MetadataPaths()[0], oauth.AuthorizePath, oauth.VerifyPath, oauth.AgentsPath} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
		must(t, err)
		req.Host = "evil.example"
		if got := b.do(req); got.status != http.StatusMisdirectedRequest {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

func TestEverythingThatStrangersMayAskForIsCounted(t *testing.T) {
	t.Parallel()
	limits := oauth.Limits{RegisterPerAddress: 3, RegisterInAll: 4, TokenPerAddress: 3, RefreshPerAgent: 2, AuthorizePerAddress: 3, DevicePerAddress: 3, CodesPerPerson: 3}
	address := "192.0.2.1:1"
	r := newRig(t, func(c *oauth.Config) {
		c.Limits = limits
		c.Address = func(*http.Request) string { return address }
	})
	b := r.browser(r.owner)
	registered := func() int {
		status, _ := r.postJSON(oauth.RegisterPath, `{"redirect_uris":["`+appURI+`"]}`)
		return status
	}
	for range 3 {
		if got := registered(); got != http.StatusCreated {
			t.Fatal(got)
		}
	}
	if got := registered(); got != http.StatusTooManyRequests {
		t.Errorf("a fourth registration from one address: %d", got)
	}
	address = "2001:db8::1"
	if got := registered(); got != http.StatusCreated {
		t.Errorf("from another address: %d", got)
	}
	address = "192.0.2.77:1"
	if got := registered(); got != http.StatusTooManyRequests {
		t.Errorf("more than all together: %d", got)
	}
	for _, x := range []struct {
		what string
		ask  func() int
		ok   int
	}{
		{"token", func() int { s, _ := r.refresh("c_x", "x"); return s }, http.StatusUnauthorized},
		{"device", func() int { s, _ := r.post(oauth.DevicePath, url.Values{"client_id": {"c_x"}}); return s }, http.StatusUnauthorized},
		{"authorize", func() int { return b.get(oauth.AuthorizePath).status }, http.StatusUnauthorized},
	} {
		address = "2001:db8:0:1::1"
		for range 3 {
			if got := x.ask(); got != x.ok {
				t.Errorf("%s: %d", x.what, got)
			}
		}
		address = "2001:db8:0:1:ffff::2" // one network is one machine's
		if got := x.ask(); got != http.StatusTooManyRequests {
			t.Errorf("%s: a fourth time: %d", x.what, got)
		}
		r.clock.move(2 * time.Minute)
		if got := x.ask(); got != x.ok {
			t.Errorf("%s: after the window: %d", x.what, got)
		}
	}
	form := b.get(oauth.VerifyPath)
	for range 3 {
		if got := b.submit(oauth.VerifyPath, form, url.Values{"code": {"BBBB-BBBB"}}).status; got != http.StatusUnprocessableEntity {
			t.Errorf("a guess: %d", got)
		}
	}
	if got := b.submit(oauth.VerifyPath, form, url.Values{"code": {"BBBB-BBBB"}}).status; got != http.StatusTooManyRequests {
		t.Errorf("a fourth guess: %d", got)
	}
}

func TestOneAgentCannotRefreshWithoutEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *oauth.Config) {
		c.Limits = oauth.DefaultLimits()
		c.Limits.RefreshPerAgent = 3
	})
	client := r.app()
	got := r.signIn(client)
	for range 3 {
		status, body := r.refresh(client, got.refresh)
		tokensOf(t, status, body)
	}
	status, body := r.refresh(client, got.refresh)
	wantRefusal(t, "a fourth time in a minute", status, body, http.StatusTooManyRequests, "slow_down")
}
