package oauth

import (
	"net/url"
	"strings"
	"testing"
)

func TestRedirectURIsThatClientsUseAreAccepted(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]struct {
		kind redirectKind
		show string
	}{
		"https://claude.ai/api/mcp/auth_callback":               {toSite, "claude.ai"},
		"https://claude.com/api/mcp/auth_callback":              {toSite, "claude.com"},
		"https://chatgpt.com/connector/oauth/OUbdUMlL15Ct":      {toSite, "chatgpt.com"},
		"https://chatgpt.com/connector_platform_oauth_redirect": {toSite, "chatgpt.com"},
		"https://www.cursor.com/agents/mcp/oauth/callback":      {toSite, "www.cursor.com"},
		"https://vscode.dev/redirect":                           {toSite, "vscode.dev"},
		"cursor://anysphere.cursor-mcp/oauth/callback":          {toApp, "cursor:"},
		"com.example.app:/oauth":                                {toApp, "com.example.app:"},
		"http://127.0.0.1:33418/":                               {toMachine, "127.0.0.1:33418"},
		"http://127.0.0.1:33418":                                {toMachine, "127.0.0.1:33418"},
		"http://localhost:3118/callback":                        {toMachine, "localhost:3118"},
		"http://[::1]:9/cb":                                     {toMachine, "[::1]:9"},
		"https://xn--bcher-kva.example/cb?client=1":             {toSite, "xn--bcher-kva.example"},
	} {
		got, err := parseRedirect(uri)
		if err != nil || got.kind != want.kind || got.show != want.show || got.uri != uri {
			t.Errorf("%s: got %+v, %v", uri, got, err)
		}
	}
}

func TestRedirectURIsThatLeadAstrayAreRefused(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{
		"", "/cb", "//evil.example/cb", "app.example/cb", "https:", "https:///cb", "https:/app.example",
		"http://app.example/cb", "http://127.0.0.1.evil.example/", "http://localhost.evil.example/", "http://127.0.0.2/", "http://0.0.0.0/", "http://2130706433/",
		"https://app.example/cb#fragment", "https://app.example/cb#", "https://user@app.example/cb", "https://app.example@evil.example/", "http://localhost@evil.example/",
		"https://app.example\\@evil.example/", "https://app.example/ cb", "https://app.example/\ncb", "https://app.example/\"><script>", "https://bücher.example/cb", "https://аpple.example/cb",
		"https://app.example/a/../b", "https://app.example/cb?code=1", "https://app.example/cb?state=1", "https://app.example/cb?iss=1", "https://app.example/cb?error=1",
		"javascript:alert(1)", "javascript://app.example/%0aalert(1)", "JaVaScRiPt://x", "data:text/html,x", "file:///etc/passwd", "vbscript:x", "blob:https://x", "about:blank",
		"ms-msdt:/id", "search-ms:query=x", "intent://x", "mailto:a@example.org", "tel:1", "cursor:callback", "ftp://app.example/", "ws://127.0.0.1/",
		"https://app.example/" + strings.Repeat("a", 2048),
	} {
		if got, err := parseRedirect(uri); err == nil {
			t.Errorf("%q is accepted: %+v", uri, got)
		}
	}
}

func TestRedirectURIsAreComparedExactlyExceptForLoopbackPorts(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		registered, asked string
		same              bool
	}{
		{"https://app.example/cb", "https://app.example/cb", true},
		{"https://app.example/cb", "https://app.example/cb/", false},
		{"https://app.example/cb", "https://app.example/CB", false},
		{"https://app.example/cb", "https://app.example:443/cb", false},
		{"https://app.example/cb", "https://app.example:8443/cb", false},
		{"https://app.example/cb", "https://app.example/cb?x=1", false},
		{"https://app.example/cb", "https://evil.app.example/cb", false},
		{"https://app.example/cb", "https://app.example/cb%2f..%2fx", false},
		{"https://127.0.0.1/cb", "https://127.0.0.1:8443/cb", false}, // https is a site wherever it is
		{"http://127.0.0.1:33418/", "http://127.0.0.1:51234/", true},
		{"http://127.0.0.1:33418/", "http://127.0.0.1:51234", true},
		{"http://127.0.0.1:33418", "http://127.0.0.1/", true},
		{"http://localhost/callback", "http://localhost:3118/callback", true},
		{"http://[::1]/callback", "http://[::1]:3118/callback", true},
		{"http://localhost/callback", "http://localhost:3118/other", false},
		{"http://localhost/callback", "http://localhost:3118/callback?x=1", false},
		{"http://localhost/callback", "http://127.0.0.1:3118/callback", false},
		{"http://localhost/callback", "https://localhost:3118/callback", false},
		{"http://localhost/callback", "http://localhost.evil.example:3118/callback", false},
		{"cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback", true},
		{"cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp:1/oauth/callback", false},
	} {
		if got := sameRedirect(x.registered, x.asked); got != x.same {
			t.Errorf("registered %s, asked %s: same is %v", x.registered, x.asked, got)
		}
	}
}

func TestTheAnswerKeepsTheParametersOfTheRedirectURI(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://app.example/cb":         "https://app.example/cb?code=x",
		"https://app.example/cb?":        "https://app.example/cb?code=x",
		"https://app.example/cb?a=%2F&b": "https://app.example/cb?a=%2F&b&code=x",
		"cursor://host/cb":               "cursor://host/cb?code=x",
		"http://127.0.0.1:33418":         "http://127.0.0.1:33418?code=x",
	} {
		to, err := parseRedirect(uri)
		if err != nil {
			t.Fatal(err)
		}
		if got := to.with(url.Values{"code": {"x"}}); got != want {
			t.Errorf("%s: got %s, want %s", uri, got, want)
		}
	}
}

// A redirect URI that is accepted never leaves its origin, whatever is added.
func FuzzRedirect(f *testing.F) {
	for _, s := range []string{"https://app.example/cb", "cursor://x/cb", "http://[::1]:9/cb?x=1", "javascript:alert(1)", "https://a@b/", "https://a\\b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		to, err := parseRedirect(s)
		if err != nil {
			return
		}
		before, err := url.Parse(s)
		if err != nil {
			t.Fatalf("%q is accepted and is no URI", s)
		}
		after, err := url.Parse(to.with(url.Values{"code": {"x"}, "state": {"&#?/"}}))
		if err != nil || after.Scheme != before.Scheme || after.Host != before.Host || after.Path != before.Path || after.Fragment != "" {
			t.Fatalf("%q became %v, %v", s, after, err)
		}
		if q := after.Query(); len(q["code"]) != 1 || len(q["state"]) != 1 {
			t.Fatalf("%q: the answer is ambiguous: %v", s, q)
		}
		if !sameRedirect(s, s) {
			t.Fatalf("%q is not the same as itself", s)
		}
	})
}

func TestAnOperatorsClientIsHeldToTheSameRules(t *testing.T) {
	t.Parallel()
	c, err := Preregister("own.script-1", "Own\u202e script", []string{"http://localhost/callback", "https://app.example/cb"})
	if err != nil || c.Name != "Own script" || len(c.RedirectURIs) != 2 || !c.ExpiresAt.IsZero() {
		t.Errorf("%+v, %v", c, err)
	}
	for id, uris := range map[string][]string{
		"https://app.example/c": {"https://app.example/cb"}, "": {"https://app.example/cb"}, "a b": {"https://app.example/cb"},
		"none": nil, "bad": {"https://app.example/cb", "javascript:alert(1)"},
	} {
		if c, err := Preregister(id, "", uris); err == nil {
			t.Errorf("%q: %+v", id, c)
		}
	}
}
