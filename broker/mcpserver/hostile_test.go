package mcpserver

import (
	"bufio"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/broker/token"
)

// A09: every forgery of a token of ours, at the door itself.
func TestForgedTokensAreRefusedAtTheDoor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	good, claims := r.token(t, tenantA, agent)
	key := r.store.keys[0]
	parsed, err := x509.ParsePKCS8PrivateKey(key.Private)
	if err != nil {
		t.Fatal(err)
	}
	private := parsed.(ed25519.PrivateKey)
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	type change func(h map[string]any, c jwt.MapClaims)
	sign := func(method jwt.SigningMethod, with any, edit change) string {
		c := jwt.MapClaims{
			"iss": publicURL, "aud": resource, "sub": member.String(), "tenant": tenantA.String(), "agent": agent.String(),
			"jti": claims.ID, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		}
		tok := jwt.NewWithClaims(method, c)
		tok.Header["typ"], tok.Header["kid"] = token.Type, key.KID
		if edit != nil {
			edit(tok.Header, c)
		}
		raw, err := tok.SignedString(with)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	ours := func(edit change) string { return sign(jwt.SigningMethodEdDSA, private, edit) }
	status := func(raw string) int {
		return r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", "")).Code
	}
	if got := status(ours(nil)); got != http.StatusOK {
		t.Fatalf("a token made here as the issuer does: %d", got)
	}
	head := func(name string, v any) string {
		return ours(func(h map[string]any, _ jwt.MapClaims) { h[name] = v })
	}
	claim := func(name string, v any) string {
		return ours(func(_ map[string]any, c jwt.MapClaims) {
			if c[name] = v; v == nil {
				delete(c, name)
			}
		})
	}
	parts := strings.Split(good, ".")
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: key.Public})
	hs := func(secret []byte) string { return sign(jwt.SigningMethodHS256, secret, nil) }
	later := time.Now().Add(time.Hour).Unix()
	for name, raw := range map[string]string{
		"alg none":                  sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"alg none, no signature":    base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"at+jwt","kid":"`+key.KID+`"}`)) + "." + parts[1] + ".",
		"alg None in capitals":      base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"NONE","typ":"at+jwt","kid":"`+key.KID+`"}`)) + "." + parts[1] + ".",
		"HS256 over the key":        hs(private.Public().(ed25519.PublicKey)),
		"HS256 over its DER":        hs(key.Public),
		"HS256 over its PEM":        hs(pemKey),
		"HS256 over the JWKS":       hs(r.keys.JWKS()),
		"HS256 over nothing":        hs(nil),
		"another key, our kid":      sign(jwt.SigningMethodEdDSA, stranger, nil),
		"a kid nobody has":          head("kid", "foreign"),
		"no kid":                    head("kid", nil),
		"a kid that is a path":      head("kid", "../../../../dev/null"),
		"a kid that is a URL":       head("kid", "https://evil.example/key.json"),
		"a kid that is SQL":         head("kid", "' or '1'='1"),
		"a kid that is an object":   head("kid", map[string]any{"a": 1}),
		"wrong typ":                 head("typ", "JWT"),
		"typ of an ID token":        head("typ", "id_token"),
		"no typ":                    head("typ", nil),
		"critical extension":        head("crit", []string{"exp"}),
		"nested":                    sign(jwt.SigningMethodEdDSA, private, func(h map[string]any, _ jwt.MapClaims) { h["cty"], h["typ"] = "JWT", "JWT" }),
		"a token around a token":    claim("aud", good),
		"for the tunnel":            claim("aud", publicURL+"/tunnel"),
		"for the tunnel's audience": claim("aud", "siyuan-tunnel"),
		"for a client":              claim("aud", "client-1"),
		"for another installation":  claim("aud", "https://other.example/mcp"),
		"for a prefix":              claim("aud", "https://notes.example/mc"),
		"by another issuer":         claim("iss", "https://evil.example"),
		"by nobody":                 claim("iss", nil),
		"expired":                   claim("exp", time.Now().Add(-time.Minute).Unix()),
		"without an end":            claim("exp", nil),
		"not yet":                   claim("nbf", later),
		"without jti":               claim("jti", nil),
		"of no tenant":              claim("tenant", nil),
		"of a tenant with wildcard": claim("tenant", "%"),
		"signature cut":             good[:len(good)-4],
		"two parts":                 parts[0] + "." + parts[1],
		"four parts":                good + ".x",
		"five parts, as a JWE":      good + ".x.y",
		"payload of another":        parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"x"}`)) + "." + parts[2],
	} {
		if got := status(raw); got != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, got)
		}
	}
	if r.server.cfg.Keys == nil || len(r.home.received()) != 0 {
		t.Error("a call reached the home")
	}
	// The other direction, so that the list above does not pass by accident.
	if got := status(claim("aud", []string{resource})); got != http.StatusOK {
		t.Errorf("our audience as a list: %d", got)
	}
}

func TestHugeTokensCostLittle(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	good, _ := r.token(t, tenantA, agent)
	parts := strings.Split(good, ".")
	for name, raw := range map[string]string{
		"one part":    strings.Repeat("A", 900<<10),
		"payload":     parts[0] + "." + strings.Repeat("A", 900<<10) + "." + parts[2],
		"signature":   good + strings.Repeat("A", 900<<10),
		"only points": strings.Repeat(".", 900<<10),
	} {
		before := allocated()
		w := r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", ""))
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, w.Code)
		}
		if used := allocated() - before; used > 64<<20 { // other tests allocate meanwhile
			t.Errorf("%s: %d bytes", name, used)
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// dial opens a connection to a node, for what http.Client would not send.
func (r *rig) dial(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	u, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

func requestHead(raw, rest string) string {
	return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		"Authorization: Bearer " + raw + "\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n" + rest + "\r\n"
}

// M14 on a real connection: bodies that come too slowly or never end, with and
// without a token.
func TestSlowAndEndlessBodiesAreCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.BodyTimeout = 200 * time.Millisecond; c.MaxBody = 64 << 10 })
	good, _ := r.token(t, tenantA, agent)
	for name, c := range map[string]struct {
		token, rest string
		status      int
	}{
		"half a body":           {good, "Content-Length: 100\r\n", http.StatusRequestTimeout},
		"no chunk":              {good, "Transfer-Encoding: chunked\r\n", http.StatusRequestTimeout},
		"half a body, no token": {"x", "Content-Length: 100\r\n", http.StatusUnauthorized},
		"no chunk, no token":    {"x", "Transfer-Encoding: chunked\r\n", http.StatusUnauthorized},
		"100 GB announced":      {good, "Content-Length: 107374182400\r\n", http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, reader := r.dial(t)
			if _, err := io.WriteString(conn, requestHead(c.token, c.rest)); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status {
				t.Errorf("%d, want %d", resp.StatusCode, c.status)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			if _, err := reader.ReadByte(); err == nil { // the connection is closed, not kept for more
				t.Error("the connection goes on")
			}
		})
	}
	t.Run("chunks without end", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil) // so much does not arrive in a short time on every machine
		good, _ := r.token(t, tenantA, agent)
		conn, reader := r.dial(t)
		if _, err := io.WriteString(conn, requestHead(good, "Transfer-Encoding: chunked\r\n")); err != nil {
			t.Fatal(err)
		}
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 16<<10, strings.Repeat(" ", 16<<10))
		sent := 0
		for sent < 64<<20 {
			if _, err := io.WriteString(conn, chunk); err != nil {
				break
			}
			sent += len(chunk)
		}
		if sent >= 64<<20 {
			t.Error("64 MiB were taken")
		}
		resp, err := http.ReadResponse(reader, nil)                                                                            // unless the reset came first
		if err == nil && resp.StatusCode != http.StatusRequestEntityTooLarge && resp.StatusCode != http.StatusRequestTimeout { // a loaded machine may be that slow
			t.Errorf("%d", resp.StatusCode)
		}
	})
}

func TestABodyThatArrivesSlowlyButInTimeIsServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.BodyTimeout = 5 * time.Second })
	good, _ := r.token(t, tenantA, agent)
	conn, reader := r.dial(t)
	if _, err := io.WriteString(conn, requestHead(good, "Transfer-Encoding: chunked\r\n")); err != nil {
		t.Fatal(err)
	}
	for _, b := range []byte(listTools) {
		if _, err := fmt.Fprintf(conn, "1\r\n%c\r\n", b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(conn, "0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(reader, nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
}

// A request that waits long for its answer is not ended by the limit on its
// body.
func TestTheBodysTimeIsNotTheCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.BodyTimeout, c.Heartbeat = 500*time.Millisecond, 250*time.Millisecond })
	raw, _ := r.token(t, tenantA, agent)
	listen := `{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`
	w := r.open(t, "POST", listen, modernHeader(raw, "subscriptions/listen", ""))
	for i := range 6 { // three times as long
		if w.comment() == "" {
			t.Fatalf("the stream ended after %d comments", i)
		}
	}
}

func TestHostileJSONIsRefusedOrHarmless(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	id := r.session(t, raw)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	call := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"notebook","arguments":` + arguments + `,` + meta + `}}`
	}
	for name, c := range map[string]struct {
		body   string
		status int // both eras
	}{
		"broken UTF-8 in a string":  {call("{\"action\":\"list\",\"x\":\"\xff\xfe\"}"), 400},
		"a cut UTF-8 sequence":      {call("{\"action\":\"\xe4\xb8\"}"), 400},
		"a surrogate in UTF-8":      {call("{\"action\":\"\xed\xa0\x80\"}"), 400},
		"UTF-16":                    {"\xff\xfe{\x00", 400},
		"a BOM":                     {"\xef\xbb\xbf" + callList, 400},
		"two messages":              {callList + callList, 400},
		"a comment":                 {"/* x */" + callList, 400},
		"NaN":                       {call(`{"action":NaN}`), 400},
		"a cut message":             {callList[:len(callList)-1], 400},
		"an id that is an object":   {strings.Replace(callList, `"id":3`, `"id":{}`, 1), 400},
		"an id that is a list":      {strings.Replace(callList, `"id":3`, `"id":[1]`, 1), 400},
		"a method that is a number": {strings.Replace(callList, `"tools/call"`, `7`, 1), 400},
		"a number":                  {"7", 400},
		"null":                      {"null", 400},
		"a deep array":              {call(deep(100_000)), 400},
		"deep objects":              {call(objects(100_000)), 400},
		"a deep batch":              {deep(1_000_000), 400},
		"never closed":              {strings.Repeat("[", 1_000_000), 400},
	} {
		for era, header := range map[string]map[string]string{"modern": modernHeader(raw, "tools/call", "notebook"), "legacy": legacyHeader(raw, id)} {
			w := r.send(t, "POST", "/mcp", c.body, header)
			if w.Code != c.status {
				t.Errorf("%s, %s: %d %.200s", name, era, w.Code, w.Body)
				continue
			}
			if code, _ := rpcError(t, w); code != -32700 && code != -32600 {
				t.Errorf("%s, %s: code %d", name, era, code)
			}
		}
	}
	if n := len(r.home.received()); n != 0 {
		t.Errorf("%d calls reached the home", n)
	}
	// Deep, but within what the decoder takes: refused by the action's schema.
	for era, header := range map[string]map[string]string{"modern": modernHeader(raw, "tools/call", "notebook"), "legacy": legacyHeader(raw, id)} {
		body := call(`{"action":"list","x":` + deep(500) + `}`)
		if era == "legacy" {
			body = strings.Replace(body, ","+meta, "", 1)
		}
		if w := r.send(t, "POST", "/mcp", body, header); w.Code != 200 || !strings.Contains(w.Body.String(), "validation_error") {
			t.Errorf("%s: %d %.300s", era, w.Code, w.Body)
		}
	}
}

// Names that repeat are read in one way only: what is checked is what runs.
func TestRepeatedNamesAreReadTheSameEverywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	id := r.session(t, raw)
	// The header names what the last method says, or the SDK refuses.
	twice := strings.Replace(callList, `"method":"tools/call"`, `"method":"tools/list","method":"tools/call"`, 1)
	if w := r.send(t, "POST", "/mcp", twice, modernHeader(raw, "tools/list", "")); w.Code != http.StatusBadRequest {
		t.Errorf("the header says one thing, the body another: %d", w.Code)
	}
	// Written so that a lax reader sees an answer or a cancelling, which any
	// session would swallow.
	for name, body := range map[string]string{
		"method twice":        `{"jsonrpc":"2.0","id":7,"method":"notifications/cancelled","method":"ping"}`,
		"method in capitals":  `{"jsonrpc":"2.0","id":7,"method":"ping","METHOD":"notifications/cancelled"}`,
		"Method with capital": `{"jsonrpc":"2.0","id":7,"method":"ping","Method":"initialize"}`,
		"result beside":       `{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}`,
	} {
		w := r.send(t, "POST", "/mcp", body, legacyHeader(raw, id))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"id":7`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	// The last of two arguments counts, and only it reaches the home.
	body := `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"document","arguments":{"action":"create","notebook":"` + notebook + `","path":"/A","path":"/B"}}}`
	if w := r.send(t, "POST", "/mcp", body, legacyHeader(raw, id)); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var args map[string]json.RawMessage
	sent := r.home.last(t).call.Args
	if err := json.Unmarshal(sent, &args); err != nil || string(args["path"]) != `"/B"` || strings.Count(string(sent), "path") != 1 {
		t.Errorf("%s (%v)", sent, err)
	}
}

func TestNamesInHeadersMustBeThoseOfTheBody(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	encode := func(s string) string {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	for name, c := range map[string]struct {
		header map[string]string
		status int
	}{
		"as it is":               {nil, 200},
		"in base64":              {map[string]string{"Mcp-Name": encode("notebook")}, 200},
		"twice in base64":        {map[string]string{"Mcp-Name": encode(encode("notebook"))}, 400},
		"base64 with a line end": {map[string]string{"Mcp-Name": encode("notebook\n")}, 400},
		"base64 of no UTF-8":     {map[string]string{"Mcp-Name": encode("\xff")}, 400},
		"base64 without padding": {map[string]string{"Mcp-Name": "=?base64?" + base64.RawStdEncoding.EncodeToString([]byte("document")) + "?="}, 400},
		"in capitals":            {map[string]string{"Mcp-Name": "Notebook"}, 400},
		"none":                   {map[string]string{"Mcp-Name": ""}, 400},
		"no method":              {map[string]string{"Mcp-Method": ""}, 400},
		"another method":         {map[string]string{"Mcp-Method": "tools/list", "Mcp-Name": ""}, 400},
		"another version":        {map[string]string{"Mcp-Protocol-Version": "2026-07-29"}, 400},
		"a version of no time":   {map[string]string{"Mcp-Protocol-Version": "zzz"}, 400},
	} {
		header := modernHeader(raw, "tools/call", "notebook")
		for k, v := range c.header {
			header[k] = v
		}
		before := len(r.home.received())
		w := r.send(t, "POST", "/mcp", callList, header)
		if w.Code != c.status {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.status)
		}
		if called := len(r.home.received()) > before; called != (c.status == 200) {
			t.Errorf("%s: reached the home: %v", name, called)
		}
	}
}
