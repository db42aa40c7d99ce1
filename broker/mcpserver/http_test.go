package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/broker/token"
	"siyuan-broker/tenants"
)

const (
	initialize = `{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	meta       = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	discover   = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`
	listTools  = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + meta + `}}`
	callList   = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"notebook","arguments":{"action":"list"},` + meta + `}}`
)

// send makes one request against the handler without a network.
func (r *rig) send(t testing.TB, method, path, body string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, "https://notes.example"+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		if k == "Host" {
			req.Host = v
			continue
		}
		if req.Header.Del(k); v != "" {
			req.Header.Set(k, v)
		}
	}
	w := httptest.NewRecorder()
	r.handlers.ServeHTTP(w, req)
	return w
}

func modernHeader(raw, method, name string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + raw, "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name}
}

// rpcError is the JSON-RPC error of a body.
func rpcError(t *testing.T, w *httptest.ResponseRecorder) (code int, message string) {
	t.Helper()
	var body struct {
		Version string           `json:"jsonrpc"`
		ID      *json.RawMessage `json:"id"`
		Error   struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Version != "2.0" || body.Error.Message == "" {
		t.Errorf("status %d, body %q is no JSON-RPC error", w.Code, w.Body)
	}
	return body.Error.Code, body.Error.Message
}

const challenge = `Bearer error="invalid_token", resource_metadata="https://notes.example/.well-known/oauth-protected-resource/mcp", scope="notes"`

func TestOnlyATokenInForceOpensTheDoor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	good, claims := r.token(t, tenantA, agent)
	if w := r.send(t, "POST", "/mcp", listTools, modernHeader(good, "tools/list", "")); w.Code != http.StatusOK {
		t.Fatalf("good token: %d %s", w.Code, w.Body)
	}
	sign := func(method jwt.SigningMethod, key any, typ, aud string, exp time.Time) string {
		tok := jwt.NewWithClaims(method, jwt.MapClaims{
			"iss": publicURL, "aud": aud, "sub": member.String(), "tenant": tenantA.String(), "agent": agent.String(), "jti": claims.ID,
			"iat": time.Now().Unix(), "exp": exp.Unix(),
		})
		tok.Header["typ"], tok.Header["kid"] = typ, r.store.keys[0].KID
		raw, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	later := time.Now().Add(time.Hour)
	unknownAgent, _ := r.token(t, tenantA, agent2)
	otherTenant, _ := r.token(t, tenantB, agent)
	otherMember, _, err := r.issuer.Issue(token.Request{Tenant: tenantA, Member: tenants.NewID(), Agent: agent, Resource: resource, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	tunnel, _, err := r.issuer.Issue(token.Request{Tenant: tenantA, Member: member, Agent: agent, Resource: publicURL + "/tunnel", Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]string{
		"nothing":                       "",
		"basic":                         "Basic " + good,
		"no scheme":                     good,
		"two words":                     "Bearer " + good + " x",
		"rubbish":                       "Bearer rubbish",
		"alg none":                      "Bearer " + sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, token.Type, resource, later),
		"HS256 keyed with public bytes": "Bearer " + sign(jwt.SigningMethodHS256, r.store.keys[0].Public, token.Type, resource, later),
		"HS256 keyed with the JWKS":     "Bearer " + sign(jwt.SigningMethodHS256, r.keys.JWKS(), token.Type, resource, later),
		"for the tunnel":                "Bearer " + tunnel,
		"agent that does not exist":     "Bearer " + unknownAgent,
		"agent of another tenant":       "Bearer " + otherTenant,
		"somebody else's agent":         "Bearer " + otherMember,
	} {
		for _, method := range []string{"POST", "GET", "DELETE", "PUT", "HEAD"} {
			w := r.send(t, method, "/mcp", listTools, map[string]string{"Authorization": header, "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"})
			if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != challenge {
				t.Errorf("%s, %s: %d %q", name, method, w.Code, w.Header().Get("WWW-Authenticate"))
				continue
			}
			if code, _ := rpcError(t, w); code != codeUnauthorized {
				t.Errorf("%s, %s: code %d", name, method, code)
			}
		}
	}
}

// racing is a Tokens whose revocation falls between the first look at a token
// and the moment from which the request can be cut.
type racing struct {
	claims token.Claims
	looks  atomic.Int32
}

func (r *racing) Verify(context.Context, string) (token.Claims, error) {
	if r.looks.Add(1) > 1 {
		return token.Claims{}, token.ErrRevoked
	}
	return r.claims, nil
}

func TestARevocationBetweenTwoLooksIsNotMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Tokens = &racing{claims: token.Claims{ID: "j", Tenant: tenantA, Member: member, Agent: agent, ExpiresAt: time.Now().Add(time.Hour)}}
	})
	if w := r.send(t, "POST", "/mcp", listTools, modernHeader("x", "tools/list", "")); w.Code != http.StatusUnauthorized {
		t.Errorf("%d", w.Code)
	}
}

func TestATokenIsTakenFromOneHeaderOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	good, _ := r.token(t, tenantA, agent)
	if w := r.send(t, "POST", "/mcp?access_token="+good, listTools, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}); w.Code != http.StatusUnauthorized {
		t.Errorf("in the query: %d", w.Code)
	}
	req := httptest.NewRequestWithContext(t.Context(), "POST", "https://notes.example/mcp", strings.NewReader(listTools))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Add("Authorization", "Bearer "+good)
	req.Header.Add("Authorization", "Bearer "+good)
	w := httptest.NewRecorder()
	if r.handlers.ServeHTTP(w, req); w.Code != http.StatusUnauthorized {
		t.Errorf("twice: %d", w.Code)
	}
}

func TestPrincipalsThatMayNotActAreTurnedAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*tenants.Snapshot)
		status int
	}{
		"revoked agent":     {func(f *tenants.Snapshot) { f.Agent.RevokedAt = time.Now() }, http.StatusUnauthorized},
		"expired agent":     {func(f *tenants.Snapshot) { f.Agent.ExpiresAt = time.Now().Add(-time.Second) }, http.StatusUnauthorized},
		"former member":     {func(f *tenants.Snapshot) { f.Role = "" }, http.StatusUnauthorized},
		"suspended tenant":  {func(f *tenants.Snapshot) { f.TenantStatus = tenants.Suspended }, http.StatusForbidden},
		"disabled instance": {func(f *tenants.Snapshot) { f.Instance.Enabled = false }, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			f := facts(tenantA, agent)
			c.change(f)
			r.store.put(f)
			raw, _ := r.token(t, tenantA, agent)
			w := r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", ""))
			if w.Code != c.status || (w.Code == http.StatusUnauthorized) != (w.Header().Get("WWW-Authenticate") != "") {
				t.Errorf("%d %q, want %d", w.Code, w.Header().Get("WWW-Authenticate"), c.status)
			}
			rpcError(t, w)
		})
	}
}

func TestAStoreThatIsAwayIsNotTheCallersFault(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.store.mu.Lock()
	r.store.fail = io.ErrUnexpectedEOF
	r.store.mu.Unlock()
	raw, _ := r.token(t, tenantA, agent)
	w := r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", ""))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	if _, message := rpcError(t, w); strings.Contains(message, "EOF") {
		t.Errorf("the cause leaked: %s", message)
	}
}

func TestHostsOriginsAndTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Origins = []string{"https://app.example"} })
	raw, _ := r.token(t, tenantA, agent)
	for name, c := range map[string]struct {
		header map[string]string
		status int
	}{
		"the public host":             {nil, 200},
		"in capitals":                 {map[string]string{"Host": "NOTES.example"}, 200},
		"with the default port":       {map[string]string{"Host": "notes.example:443"}, 200},
		"localhost":                   {map[string]string{"Host": "localhost:1234"}, 200},
		"127.0.0.1":                   {map[string]string{"Host": "127.0.0.1:1234"}, 200},
		"::1":                         {map[string]string{"Host": "[::1]:1234"}, 200},
		"another port":                {map[string]string{"Host": "notes.example:8443"}, 403},
		"another host":                {map[string]string{"Host": "evil.example"}, 403},
		"a longer host":               {map[string]string{"Host": "notes.example.evil.example"}, 403},
		"localhost as a prefix":       {map[string]string{"Host": "localhost.evil.example"}, 403},
		"a private address":           {map[string]string{"Host": "192.168.1.1"}, 403},
		"own origin":                  {map[string]string{"Origin": "https://notes.example"}, 200},
		"an allowed origin":           {map[string]string{"Origin": "https://app.example"}, 200},
		"another origin":              {map[string]string{"Origin": "https://evil.example"}, 403},
		"own origin in plain http":    {map[string]string{"Origin": "http://notes.example"}, 403},
		"a loopback origin":           {map[string]string{"Origin": "http://localhost:3000"}, 403},
		"the null origin":             {map[string]string{"Origin": "null"}, 403},
		"JSON with a charset":         {map[string]string{"Content-Type": "application/json; charset=utf-8"}, 200},
		"text":                        {map[string]string{"Content-Type": "text/plain"}, 415},
		"a form":                      {map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415},
		"JSON of another kind":        {map[string]string{"Content-Type": "application/jsonp"}, 415},
		"no type":                     {map[string]string{"Content-Type": ""}, 415},
		"text, before the token":      {map[string]string{"Content-Type": "text/plain", "Authorization": ""}, 415},
		"no token, from evil.example": {map[string]string{"Host": "evil.example", "Authorization": ""}, 403},
	} {
		header := modernHeader(raw, "tools/list", "")
		for k, v := range c.header {
			header[k] = v
		}
		w := r.send(t, "POST", "/mcp", listTools, header)
		if w.Code != c.status {
			t.Errorf("%s: %d, want %d (%s)", name, w.Code, c.status, w.Body)
		}
		if w.Code != 200 {
			rpcError(t, w)
		}
		allowed := ""
		if c.status == 200 {
			allowed = c.header["Origin"]
		}
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != allowed {
			t.Errorf("%s: Access-Control-Allow-Origin %q, want %q", name, got, allowed)
		}
		if w.Header().Get("X-Accel-Buffering") != "no" {
			t.Errorf("%s: proxies may buffer", name)
		}
	}
}

func TestPreflightNeedsNoToken(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.send(t, "OPTIONS", "/mcp", "", map[string]string{"Origin": publicURL, "Content-Type": "", "Access-Control-Request-Method": "POST"})
	if w.Code != http.StatusNoContent || w.Header().Get("Access-Control-Allow-Origin") != publicURL {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	for _, h := range []string{"Authorization", "Content-Type", "Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Last-Event-ID"} {
		if !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), h) {
			t.Errorf("%s is not allowed", h)
		}
	}
	if w := r.send(t, "OPTIONS", "/mcp", "", map[string]string{"Origin": "https://evil.example"}); w.Code != http.StatusForbidden || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %d %v", w.Code, w.Header())
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	big := strings.Replace(callList, `"list"`, `"`+strings.Repeat("x", 4<<20)+`"`, 1)
	for name, header := range map[string]map[string]string{
		"modern": modernHeader(raw, "tools/call", "notebook"), "legacy": {"Authorization": "Bearer " + raw}, "in a session": legacyHeader(raw, r.session(t, raw)),
	} {
		if w := r.send(t, "POST", "/mcp", big, header); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d", name, w.Code)
		}
		// The same without a length or an end: the limit must hold while reading.
		endless := &counting{}
		req := httptest.NewRequestWithContext(t.Context(), "POST", "https://notes.example/mcp", endless)
		req.ContentLength = -1
		for k, v := range header {
			req.Header.Set(k, v)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		if r.handlers.ServeHTTP(w, req); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s, chunked: %d %s", name, w.Code, w.Body)
		}
		if endless.n > 5<<20 {
			t.Errorf("%s, chunked: %d bytes were read", name, endless.n)
		}
	}
}

// counting is a body of 64 MiB of spaces that counts what is read of it.
type counting struct{ n int }

func (c *counting) Read(b []byte) (int, error) {
	if c.n >= 64<<20 {
		return 0, io.EOF
	}
	for i := range b {
		b[i] = ' '
	}
	c.n += len(b)
	return len(b), nil
}

func TestAClientsTokenWithoutAScopeIsToldWhichToAskFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	issue := func(client, scope string) string {
		raw, _, err := r.issuer.Issue(token.Request{Tenant: tenantA, Member: member, Agent: agent, Resource: resource, ClientID: client, Scope: scope, Life: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, c := range map[string]struct {
		client, scope string
		status        int
	}{
		"a client without":              {"client", "", http.StatusForbidden},
		"a client with another":         {"client", "notesx other", http.StatusForbidden},
		"a client with it":              {"client", "other notes", http.StatusOK},
		"a personal token has no scope": {"", "", http.StatusOK},
	} {
		w := r.send(t, "POST", "/mcp", listTools, modernHeader(issue(c.client, c.scope), "tools/list", ""))
		const want = `Bearer error="insufficient_scope", resource_metadata="https://notes.example/.well-known/oauth-protected-resource/mcp", scope="notes"`
		if w.Code != c.status || (w.Header().Get("WWW-Authenticate") == want) != (c.status == http.StatusForbidden) {
			t.Errorf("%s: %d %q", name, w.Code, w.Header().Get("WWW-Authenticate"))
		}
	}
}

func TestBothPathsWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	for _, path := range []string{"/mcp", "/mcp/"} {
		if w := r.send(t, "POST", path, discover, modernHeader(raw, "server/discover", "")); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "supportedVersions") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		w := r.send(t, "POST", path, discover, nil)
		if want := `resource_metadata="https://notes.example/.well-known/oauth-protected-resource` + path + `"`; !strings.Contains(w.Header().Get("WWW-Authenticate"), want) {
			t.Errorf("%s: %q", path, w.Header().Get("WWW-Authenticate"))
		}
	}
}

func TestMetadataNamesTheResourceAsItWasTyped(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.PublicURLs = append(c.PublicURLs, "https://other.example:8443/") })
	for _, c := range []struct{ host, path, resource string }{
		{"notes.example", "", "https://notes.example/mcp"},
		{"notes.example", "/mcp", "https://notes.example/mcp"},
		{"notes.example", "/mcp/", "https://notes.example/mcp/"},
		{"other.example:8443", "/mcp", "https://other.example:8443/mcp"},
		{"evil.example", "/mcp", "https://notes.example/mcp"},
	} {
		w := r.send(t, "GET", MetadataPath+c.path, "", map[string]string{"Host": c.host})
		var got struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
			Methods  []string `json:"bearer_methods_supported"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Resource != c.resource || len(got.Servers) != 1 || got.Servers[0] != publicURL || len(got.Scopes) != 1 || len(got.Methods) != 1 || got.Methods[0] != "header" {
			t.Errorf("%+v: %+v", c, got)
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%+v: not readable for browsers", c)
		}
	}
}

func TestModernRequestsOnTheWire(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	encoded := "=?base64?" + base64.StdEncoding.EncodeToString([]byte("notebook")) + "?="
	for name, c := range map[string]struct {
		body, method, name string
		status             int
		contains           string
	}{
		"list is private JSON":     {listTools, "tools/list", "", 200, `"cacheScope":"private"`},
		"plain name":               {callList, "tools/call", "notebook", 200, `{\"done\":true}`},
		"base64 name":              {callList, "tools/call", encoded, 200, `{\"done\":true}`},
		"another name":             {callList, "tools/call", "document", 400, "-32020"},
		"another name in base64":   {callList, "tools/call", "=?base64?ZG9jdW1lbnQ=?=", 400, "-32020"},
		"base64 that is none":      {callList, "tools/call", "=?base64?***?=", 400, "-32020"},
		"another method in header": {listTools, "tools/call", "notebook", 400, "-32020"},
		"ping is gone":             {strings.Replace(listTools, "tools/list", "ping", 1), "ping", "", 404, "-32601"},
	} {
		w := r.send(t, "POST", "/mcp", c.body, modernHeader(raw, c.method, c.name))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.contains) {
			t.Errorf("%s: %d %s, want %d with %s", name, w.Code, w.Body, c.status, c.contains)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		if w := r.send(t, method, "/mcp", "", modernHeader(raw, "", "")); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	if w := r.send(t, "POST", "/mcp", strings.ReplaceAll(listTools, "2026-07-28", "2027-01-01"), map[string]string{
		"Authorization": "Bearer " + raw, "Mcp-Protocol-Version": "2027-01-01", "Mcp-Method": "tools/list",
	}); w.Code != 400 || !strings.Contains(w.Body.String(), "-32022") {
		t.Errorf("a version of the future: %d %s", w.Code, w.Body)
	}
}

func TestToolsListIsOneTextWithoutOutputSchema(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	w := r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", ""))
	var got struct {
		Result struct {
			Tools []map[string]json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if want := len(catalogue.Tools()) - 1; len(got.Result.Tools) != want { // extension has nothing to offer without its switch
		t.Errorf("%d tools, want %d", len(got.Result.Tools), want)
	}
	for _, tool := range got.Result.Tools {
		var schema map[string]json.RawMessage
		if err := json.Unmarshal(tool["inputSchema"], &schema); err != nil {
			t.Fatal(err)
		}
		if tool["outputSchema"] != nil || !bytes.Equal(schema["type"], []byte(`"object"`)) || schema["oneOf"] != nil || schema["anyOf"] != nil || schema["allOf"] != nil {
			t.Errorf("tool %s: schema %s", tool["name"], tool["inputSchema"])
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration passed")
	}
	for _, bad := range []string{"", "notes.example", "ftp://notes.example", "https://", "https://notes.example/path", "https://user@notes.example", "https://notes.example?x", "https://a b"} {
		if a, err := parseAddress(bad); err == nil {
			t.Errorf("%q passed as %+v", bad, a)
		}
	}
}

func TestAfterCloseRequestsAreTurnedAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	r.server.Close()
	if w := r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", "")); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d", w.Code)
	}
}
