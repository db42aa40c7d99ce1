package page

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func newPages(t testing.TB, urls ...string) *Pages {
	t.Helper()
	p, err := New(Options{PublicURLs: urls, Nav: []NavItem{{Path("/console"), "nav.home"}},
		Paths: Paths{Home: Path("/console"), Account: Path("/console/account"), SignIn: Path("/signin"), SignOut: Path("/signout"), SwitchTenant: Path("/tenant")}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func files(page string) fs.FS {
	return fstest.MapFS{
		"messages.en.json": {Data: []byte(`{"hello":"Hello %s"}`)},
		"messages.zh.json": {Data: []byte(`{"hello":"你好 %s"}`)},
		"one.html":         {Data: []byte(`{{define "title"}}One{{end}}{{define "main"}}` + page + `{{end}}`)},
	}
}

func TestEveryPageOfTheFrameRendersInEveryLanguage(t *testing.T) {
	p := newPages(t, "https://notes.example")
	var samples []any
	for _, status := range []int{400, 403, 404, 405, 421, 429, 500, 503} {
		samples = append(samples, struct{ Status int }{status})
	}
	for _, problem := range p.own.Check(map[string][]any{"error": samples}) {
		t.Error(problem)
	}
}

func TestASetIsRefusedWhere(t *testing.T) {
	p := newPages(t, "https://notes.example")
	with := func(name, content string) fs.FS {
		f := files("x").(fstest.MapFS)
		f[name] = &fstest.MapFile{Data: []byte(content)}
		return f
	}
	for why, f := range map[string]fs.FS{
		"a key has no Chinese text":       with("messages.en.json", `{"hello":"Hello %s","more":"More"}`),
		"a key has no English text":       with("messages.zh.json", `{"hello":"你好 %s","more":"多"}`),
		"the texts take different values": with("messages.zh.json", `{"hello":"你好"}`),
		"a key is the frame's":            with("messages.en.json", `{"hello":"Hello %s","frame.copy":"x"}`),
		"a text takes a number by %d":     with("messages.zh.json", `{"hello":"你好 %s，%d"}`),
		"a page has no title":             with("one.html", `{{define "main"}}x{{end}}`),
		"a form does not say its method":  files(`<form action="/x"></form>`),
		"a script is inline":              files(`<script>alert(1)</script>`),
		"a style is inline":               files(`<p style="color:red">x</p>`),
		"a handler is inline":             files(`<p onclick="x()">x</p>`),
		"htmx sends without a form":       files(`<button hx-post="/x">x</button>`),
	} {
		if _, err := p.Load(f, "."); err == nil {
			t.Errorf("it was loaded although %s", why)
		}
	}
	if _, err := p.Load(files(`{{t "hello" "x"}}`), "."); err != nil {
		t.Errorf("a good set is refused: %v", err)
	}
}

// site is a page with a form behind the guard, as a server.
type site struct {
	*httptest.Server
	sent int
}

func newSite(t *testing.T) *site {
	s := &site{}
	var p *Pages
	var set *Set
	s.Server = httptest.NewUnstartedServer(nil)
	p = newPages(t, "http://"+s.Listener.Addr().String())
	set, err := p.Load(files(`<form method="post" action="/"><button>go</button></form>{{t "hello" .Data}}`), ".")
	if err != nil {
		t.Fatal(err)
	}
	s.Config.Handler = p.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			s.sent++
		}
		set.Show(w, r, http.StatusOK, "one", "<Ann>")
	}))
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func browser(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func read(t *testing.T, resp *http.Response, err error) (*http.Response, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

var hidden = regexp.MustCompile(`name="_form" value="([^"]+)"`)

func TestAFormIsTakenFromTheBrowserItWasRenderedForOnly(t *testing.T) {
	s := newSite(t)
	ann, eve := browser(t), browser(t)
	get := func(c *http.Client) string {
		resp, err := c.Get(s.URL)
		_, body := read(t, resp, err)
		m := hidden.FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("no hidden field in %s", body)
		}
		return m[1]
	}
	annField, eveField := get(ann), get(eve)
	if annField == eveField {
		t.Fatal("two browsers got the same hidden field")
	}
	for _, x := range []struct {
		what   string
		field  string
		header map[string]string
		want   int
	}{
		{"no field", "", nil, 403},
		{"another browser's field", eveField, nil, 403},
		{"another site, old browser", annField, map[string]string{"Origin": "https://evil.example"}, 403},
		{"another site, new browser", annField, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a sibling host", annField, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"a sandboxed frame", annField, map[string]string{"Origin": "null"}, 403},
		{"its own", annField, map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
	} {
		before := s.sent
		req, _ := http.NewRequest(http.MethodPost, s.URL, strings.NewReader(url.Values{"_form": {x.field}}.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for k, v := range x.header {
			req.Header.Set(k, v)
		}
		rsp, err := ann.Do(req)
		resp, _ := read(t, rsp, err)
		if resp.StatusCode != x.want || (s.sent > before) != (x.want == 200) {
			t.Errorf("%s: %d, and %d forms got through", x.what, resp.StatusCode, s.sent-before)
		}
	}
	for what, body := range map[string]string{"no text": "_form=" + annField + "&a=%ff", "a NUL": "_form=" + annField + "&a=%00"} {
		rsp, err := ann.Post(s.URL, "application/x-www-form-urlencoded", strings.NewReader(body))
		if resp, _ := read(t, rsp, err); resp.StatusCode != 400 {
			t.Errorf("%s: %d", what, resp.StatusCode)
		}
	}
	rsp, err := ann.Post(s.URL, "application/x-www-form-urlencoded", strings.NewReader("_form="+annField+"&a="+strings.Repeat("x", maxForm)))
	if resp, _ := read(t, rsp, err); resp.StatusCode == 200 {
		t.Error("a form larger than allowed was taken")
	}
}

func TestPagesCannotBeFramedAndRunNothingInline(t *testing.T) {
	s := newSite(t)
	rsp, err := browser(t).Get(s.URL)
	resp, body := read(t, rsp, err)
	csp := resp.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "script-src 'self';"} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy lacks %s: %s", want, csp)
		}
	}
	if strings.Contains(csp, "unsafe") || resp.Header.Get("X-Frame-Options") != "DENY" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers: %v", resp.Header)
	}
	if !strings.Contains(body, "Hello &lt;Ann&gt;") {
		t.Errorf("data is not escaped: %s", body)
	}
}

func TestAHostThatIsNotOursIsMisdirected(t *testing.T) {
	s := newSite(t)
	for _, host := range []string{"evil.example", "notes.example", ""} {
		req, _ := http.NewRequest(http.MethodGet, s.URL, nil)
		req.Host = host
		req.Header.Set("X-Forwarded-Host", s.Listener.Addr().String())
		if host == "" {
			continue
		}
		rsp, err := browser(t).Do(req)
		if resp, body := read(t, rsp, err); resp.StatusCode != http.StatusMisdirectedRequest || !strings.Contains(body, s.URL) {
			t.Errorf("%q: %d", host, resp.StatusCode)
		}
	}
}

func TestOnlyPathsOfThisHostAreLocal(t *testing.T) {
	for _, s := range []string{"/", "/console", "/console/agents?a=b&c=%2F", "/oauth/authorize?redirect_uri=https%3A%2F%2Fx.example%2Fcb"} {
		if l, ok := ParseLocal(s); !ok || l.String() != s {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", "console", "//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example", "/%2f/evil.example", "/%5cevil.example",
		"javascript:alert(1)", "/..//evil.example", "/.//evil.example", "/%2e%2e//evil.example", "/\x00", "/a\r\nSet-Cookie: x=y", "/ü", "/#x", "/" + strings.Repeat("a", maxLocal)} {
		if _, ok := ParseLocal(s); ok {
			t.Errorf("%q is taken for a path of this host", s)
		}
	}
}

func FuzzLocalStaysHere(f *testing.F) {
	for _, s := range []string{"/", "//x", "/\\x", "/%2f%2fx", "/a/../..//x", "https://x"} {
		f.Add(s)
	}
	base, _ := url.Parse("https://notes.example/here")
	f.Fuzz(func(t *testing.T, s string) {
		l, ok := ParseLocal(s)
		if !ok {
			return
		}
		u, err := base.Parse(l.String())
		if err != nil || u.Host != "notes.example" || u.Scheme != "https" || strings.HasPrefix(u.Path, "//") {
			t.Errorf("%q leads to %v (%v)", s, u, err)
		}
	})
}

func TestTheLanguageIsTheOneAskedForElseTheBrowsers(t *testing.T) {
	for header, want := range map[string]Lang{
		"": English, "zh-CN,zh;q=0.9,en;q=0.8": Chinese, "en-GB,zh;q=0.5": English, "de, zh;q=0.3": Chinese, "en;q=0.2,zh-TW;q=0.3": Chinese, "zh;q=abc": English,
	} {
		if got := accepted(header); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
	s, c := newSite(t), browser(t)
	for _, x := range []struct{ path, want string }{{"/", "Hello"}, {"/?lang=zh-CN", "你好"}, {"/", "你好"}, {"/?lang=tlh", "你好"}, {"/?lang=en", "Hello"}} {
		rsp, err := c.Get(s.URL + x.path)
		if _, body := read(t, rsp, err); !strings.Contains(body, x.want) {
			t.Errorf("%s is not in the language of %q", x.path, x.want)
		}
	}
}

func TestCookiesAreForThisHostAndOverHTTPSOnlyWhereWeSpeakIt(t *testing.T) {
	p := newPages(t, "https://notes.example", "http://127.0.0.1:8080")
	for host, want := range map[string]string{"notes.example": "__Host-siyuan", "127.0.0.1:8080": "siyuan_session"} {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+"/", nil)
		c := p.Cookie(r, SessionCookie, "x")
		if c.Name != want || !c.HttpOnly || c.Secure != strings.HasPrefix(want, "__Host-") || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("%s: %v", host, c)
		}
	}
}

func TestAFlashSaysOnlyWhatWeHaveWordsFor(t *testing.T) {
	p := newPages(t, "https://notes.example")
	set, err := p.Load(files(`x`), ".")
	if err != nil {
		t.Fatal(err)
	}
	show := func(cookie string) string {
		r := httptest.NewRequest(http.MethodGet, "https://notes.example/", nil)
		r.AddCookie(&http.Cookie{Name: "__Host-siyuan-flash", Value: cookie})
		w := httptest.NewRecorder()
		if set.Show(w, r, 200, "one", nil); w.Code != 200 {
			t.Errorf("%q breaks the page", cookie)
		}
		return w.Body.String()
	}
	if !strings.Contains(show("good.frame.copied"), `<div class="alert good" role="status">Copied</div>`) {
		t.Error("a message of ours is not shown")
	}
	for _, bad := range []string{"good.Send us your password", "x.frame.copied", "good.", "."} {
		if strings.Contains(show(bad), "alert") {
			t.Errorf("%q is shown", bad)
		}
	}
}

func TestFormsMayEndOnlyAtWhatCanBeASource(t *testing.T) {
	for source, want := range map[string]bool{"https://claude.ai": true, "cursor:": true, "http://[::1]:3000": true,
		"https://x.example; script-src *": false, "x 'unsafe-inline'": false, "x,y": false} {
		w := httptest.NewRecorder()
		secureHeaders(w.Header(), true)
		AllowFormTo(w, source)
		if got := strings.Contains(w.Header().Get("Content-Security-Policy"), "form-action 'self' "+source+";"); got != want {
			t.Errorf("%q: %v", source, w.Header())
		}
	}
}

func TestAssetsAreKeptByTheirHash(t *testing.T) {
	p := newPages(t, "https://notes.example")
	for _, name := range []string{"app.css", "app.js", "htmx.min.js", "logo.svg"} {
		at, err := p.assets.path(name)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		p.Assets().ServeHTTP(w, httptest.NewRequest(http.MethodGet, at, nil))
		if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", at, w.Code, w.Header())
		}
	}
	w := httptest.NewRecorder()
	p.Assets().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/assets/../page.go", nil))
	if w.Code != 404 {
		t.Errorf("outside the assets: %d", w.Code)
	}
}
