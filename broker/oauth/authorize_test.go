package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"siyuan-broker/broker/oauth"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestARefusedRequestGoesBackToTheClientAndNamesTheIssuer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.request(r.app(), appURI)
	b := r.browser(r.owner)
	for name, x := range map[string]struct {
		q    request
		want string
	}{
		"no response type":     {q.with("response_type"), "unsupported_response_type"},
		"implicit":             {q.with("response_type", "token"), "unsupported_response_type"},
		"no PKCE":              {q.with("code_challenge"), "invalid_request"},
		"plain PKCE":           {q.with("code_challenge_method", "plain"), "invalid_request"},
		"PKCE by default":      {q.with("code_challenge_method"), "invalid_request"},
		"a short challenge":    {q.with("code_challenge", "abc"), "invalid_request"},
		"a foreign resource":   {q.with("resource", "https://other.example/mcp"), "invalid_target"},
		"the tunnel":           {q.with("resource", r.url+"/tunnel"), "invalid_target"},
		"two resources":        {q.with("resource", r.url+"/mcp", "https://other.example/mcp"), "invalid_target"},
		"a parameter twice":    {q.with("state", "a", "b"), "invalid_request"},
		"a fragment":           {q.with("response_mode", "fragment"), "invalid_request"},
		"a request object":     {q.with("request", "x"), "request_not_supported"},
		"no page to be shown":  {q.with("prompt", "none"), "consent_required"},
		"an array instead of…": {q.with("code_challenge", challenge(verifier)+"="), "invalid_request"},
	} {
		to := b.get(r.authorizeURL(x.q)).location(t)
		p := to.Query()
		if !strings.HasPrefix(to.String(), appURI+"?") || p.Get("error") != x.want || p.Get("error_description") == "" || p.Get("iss") != r.url || p.Has("code") {
			t.Errorf("%s: %v", name, to)
		}
	}
}

func TestNobodyIsSentToAnAddressThatIsNotTheClients(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	q := r.request(client, appURI)
	b := r.browser(r.owner)
	for name, x := range map[string]request{
		"unknown client":        q.with("client_id", "c_nobody"),
		"no client":             q.with("client_id"),
		"another address":       q.with("redirect_uri", "https://evil.example/cb"),
		"a longer address":      q.with("redirect_uri", appURI+"/x"),
		"a parameter more":      q.with("redirect_uri", appURI+"?x=1"),
		"another host":          q.with("redirect_uri", "https://app.example.evil.example/cb"),
		"a user name":           q.with("redirect_uri", "https://app.example@evil.example/cb"),
		"a script":              q.with("redirect_uri", "javascript:alert(1)"),
		"two addresses":         q.with("redirect_uri", appURI, "https://evil.example/cb"),
		"two clients":           q.with("client_id", client, "c_other"),
		"an unreachable client": q.with("client_id", "https://127.0.0.1/client.json"),
	} {
		for _, got := range []seen{b.get(r.authorizeURL(x)), b.submit(r.authorizeURL(x), b.get(r.authorizeURL(q)), url.Values{"answer": {"allow"}})} {
			if got.header.Get("Location") != "" || got.status < 400 || !strings.Contains(got.body, "<h1>") {
				t.Errorf("%s: %d to %q", name, got.status, got.header.Get("Location"))
			}
		}
	}
	if got := b.get(r.authorizeURL(q.with("redirect_uri"))); got.status != http.StatusOK {
		t.Errorf("the only address need not be named: %d", got.status)
	}
}

func TestSayingNoIsToldToTheClient(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.request(r.app(), appURI)
	b := r.browser(r.owner)
	got := b.submit(r.authorizeURL(q), b.get(r.authorizeURL(q)), url.Values{"answer": {"deny"}}).location(t).Query()
	if got.Get("error") != "access_denied" || got.Get("state") != "st~1" || got.Get("iss") != r.url || got.Has("code") {
		t.Errorf("got %v", got)
	}
	if len(r.agents(r.tenant)) != 0 {
		t.Error("an agent was made")
	}
}

func TestWhoIsNotSignedInCannotAgree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.request(r.app(), appURI)
	page := r.browser(r.owner).get(r.authorizeURL(q))
	stranger := r.browser(tenants.ID{})
	for _, got := range []seen{stranger.get(r.authorizeURL(q)), stranger.submit(r.authorizeURL(q), page, url.Values{"answer": {"allow"}})} {
		if got.status != http.StatusForbidden || got.header.Get("Location") != "" {
			t.Errorf("%d %s", got.status, got.header.Get("Location"))
		}
	}
}

// A page of another site can neither read the form nor make one up.
func TestConsentIsGivenOnOurOwnFormOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.request(r.app(), appURI)
	b := r.browser(r.owner)
	page := b.get(r.authorizeURL(q))
	allow := url.Values{"answer": {"allow"}}
	for name, form := range map[string]url.Values{
		"no token":        {"answer": {"allow"}, "_form": nil},
		"a made-up token": {"answer": {"allow"}, "_form": {"x"}},
		"another's token": {"answer": {"allow"}, "_form": formOf(t, r.browser(r.newPerson("eve@example.org")).get(r.authorizeURL(q)).body)["_form"]},
	} {
		if got := b.submit(r.authorizeURL(q), page, form); got.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.authorizeURL(q), strings.NewReader(url.Values{"answer": {"allow"}, "_form": formOf(t, page.body)["_form"]}.Encode()))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := b.do(req); got.status != http.StatusForbidden {
		t.Errorf("from another site: %d", got.status)
	}
	h := page.header
	csp := h.Get("Content-Security-Policy")
	if !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "default-src 'none'") || h.Get("X-Frame-Options") != "DENY" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("headers: %v", h)
	}
	if got := b.submit(r.authorizeURL(q), page, allow); got.status != http.StatusSeeOther {
		t.Errorf("our own form: %d", got.status)
	}
}

func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	hidden := r.newInstance(r.tenant, "Hidden")
	other, err := r.store.CreateTenant(ctx, "Other", r.newPerson("other@example.org"))
	must(t, err)
	foreign := r.newInstance(other.ID, "Foreign")
	guest := r.newPerson("guest@example.org")
	r.in(r.tenant, func(tx tenants.Tx) error {
		must(t, tx.AddMember(ctx, guest, tenants.Member))
		_, err := tx.Share(ctx, tenants.Share{InstanceID: r.instance, NotebookID: "20260101000000-diary00", MemberID: guest, Level: contract.ReadWrite})
		return err
	})
	q := r.request(r.app(), appURI)
	b := r.browser(guest)
	page := b.get(r.authorizeURL(q))
	if strings.Contains(page.body, "Hidden") || strings.Contains(page.body, "Foreign") || !strings.Contains(page.body, "Notes") || strings.Contains(page.body, `value="rwd"`) {
		t.Error("the page offers what the member does not have")
	}
	place := func(tenant, instance tenants.ID) url.Values {
		return url.Values{"answer": {"allow"}, "place": {tenant.String() + "/" + instance.String()}}
	}
	for name, form := range map[string]url.Values{
		"an instance not shared":                         place(r.tenant, hidden),
		"another tenant's instance":                      place(other.ID, foreign),
		"an instance under a tenant that is not its own": place(r.tenant, foreign),
		"a higher level":                                 {"answer": {"allow"}, "level": {"rwd"}},
		"no level":                                       {"answer": {"allow"}, "level": {"none"}},
		"a made-up level":                                {"answer": {"allow"}, "level": {"root"}},
		"a made-up life":                                 {"answer": {"allow"}, "days": {"36500"}},
		"a made-up tool":                                 {"answer": {"allow"}, "which": {"only"}, "tool": {"shell"}},
		"no tools":                                       {"answer": {"allow"}, "which": {"only"}},
		"no name":                                        {"answer": {"allow"}, "name": {"\u202e"}},
	} {
		got := b.submit(r.authorizeURL(q), page, form)
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `role="alert"`) {
			t.Errorf("%s: %d %s", name, got.status, got.header.Get("Location"))
		}
	}
	got := b.submit(r.authorizeURL(q), page, url.Values{"answer": {"allow"}, "level": {"rw"}, "which": {"only"}, "tool": {"block", "search"}})
	status, body := r.redeem(url.Values(q).Get("client_id"), appURI, got.location(t).Query().Get("code"), nil)
	tokensOf(t, status, body)
	a := r.agents(r.tenant)[0]
	if a.MemberID != guest || a.Ceiling != contract.ReadWrite || strings.Join(a.Tools, " ") != "block search" {
		t.Errorf("agent: %+v", a)
	}
}

func TestAClientGetsNoMoreThanItAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.request(r.app(), appURI).with("scope", "notes:read")
	b := r.browser(r.owner)
	page := b.get(r.authorizeURL(q))
	if strings.Contains(page.body, `value="rw"`) {
		t.Error("more is offered")
	}
	if got := b.submit(r.authorizeURL(q), page, url.Values{"answer": {"allow"}, "level": {"rw"}}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("more is given: %d", got.status)
	}
}

func TestTheTenantsLimitsHold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	r.in(r.tenant, func(tx tenants.Tx) error {
		_, err := tx.UpdateTenant(ctx, tenants.TenantUpdate{Limits: &tenants.Limits{MaxAgents: 1, AgentMaxDays: 30}})
		return err
	})
	client := r.app()
	q := r.request(client, appURI)
	b := r.browser(r.owner)
	page := b.get(r.authorizeURL(q))
	for _, days := range []string{"90", "0"} {
		if got := b.submit(r.authorizeURL(q), page, url.Values{"answer": {"allow"}, "days": {days}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s days: %d", days, got.status)
		}
	}
	first := r.agree(q, url.Values{"days": {"30"}}).Get("code")
	second := r.agree(q, url.Values{"days": {"30"}}).Get("code") // two consents at once: the limit counts agents
	status, body := r.redeem(client, appURI, first, nil)
	tokensOf(t, status, body)
	status, body = r.redeem(client, appURI, second, nil)
	wantRefusal(t, "one too many", status, body, http.StatusBadRequest, "access_denied")
	if got := b.submit(r.authorizeURL(q), page, url.Values{"answer": {"allow"}, "days": {"30"}}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a full tenant: %d", got.status)
	}
}

// strangers are names that want to deceive, or to break the page.
var strangers = map[string]string{
	"markup":     `<script>alert(1)</script><img src=x onerror=alert(1)>`,
	"attribute":  `" autofocus onfocus="alert(1)`,
	"template":   `{{.Data}} {{template "layout" .}}`,
	"override":   "\u202eedualC \u2066verified\u2069",
	"long":       strings.Repeat("A", 5000),
	"wide":       strings.Repeat("﷽", 200),
	"piled":      "Z" + strings.Repeat("\u0335\u0336", 500),
	"lines":      "Claude\n\n\nVerified by your operator",
	"homoglyphs": "Сlaude",
	"empty":      "",
}

func TestAHostileNameCanNeitherDeceiveNorBreakThePage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser(r.owner)
	for what, name := range strangers {
		client, _ := r.register(`{"client_name":` + quoted(name) + `,"logo_uri":"https://evil.example/logo.png","client_uri":"https://claude.ai","redirect_uris":["` + appURI + `"]}`)
		page := b.get(r.authorizeURL(r.request(client, appURI)))
		if page.status != http.StatusOK {
			t.Errorf("%s: %d", what, page.status)
			continue
		}
		body := page.body
		for _, bad := range []string{"<script>alert", "<img src=x", " onfocus=\"", "\u202e", "\u2066", "evil.example", strings.Repeat("A", 61), "https://claude.ai"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s: the page contains %q", what, bad)
			}
		}
		if !strings.Contains(body, "unverified") || !strings.Contains(body, "<b>app.example</b>") {
			t.Errorf("%s: the page does not say that the name is unverified, or where it leads", what)
		}
		if what == "homoglyphs" && formOf(t, body).Get("name") != "app.example" {
			t.Errorf("the imitation is offered as the name in the person's list: %q", formOf(t, body).Get("name"))
		}
		if warned := strings.Contains(body, "letters that look like others"); warned != (what == "homoglyphs") {
			t.Errorf("%s: warned of imitation: %v", what, warned)
		}
	}
}

func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

func TestTheConsentPageSpeaksBothLanguagesAndNamesWhereItLeads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client, _ := r.register(`{"client_name":"Cursor","redirect_uris":["https://app.example/cb","http://localhost:8787/callback","cursor://anysphere.cursor-mcp/oauth/callback"]}`)
	b := r.browser(r.owner)
	for _, x := range []struct{ redirect, english, chinese, show string }{
		{"https://app.example/cb", "Access goes to", "权限将交给", "app.example"},
		{"http://localhost:5555/callback", "a program on this machine", "本机上的程序", "localhost:5555"},
		{"cursor://anysphere.cursor-mcp/oauth/callback", "the app on this machine", "本机上能打开以下链接的应用", "cursor:"},
	} {
		at := r.authorizeURL(r.request(client, x.redirect))
		english, chinese := b.get(at+"&lang=en"), b.get(at+"&lang=zh")
		if !strings.Contains(english.body, x.english) || !strings.Contains(english.body, "<b>"+x.show+"</b>") || !strings.Contains(english.body, ownerEmail) {
			t.Errorf("English page of %s", x.redirect)
		}
		if !strings.Contains(chinese.body, x.chinese) || !strings.Contains(chinese.body, "<b>"+x.show+"</b>") || !strings.Contains(chinese.body, `lang="zh-CN"`) {
			t.Errorf("Chinese page of %s", x.redirect)
		}
	}
}

func TestTheStoreBeingAwayIsNoVerdict(t *testing.T) {
	t.Parallel()
	var broken *brokenStore
	r := newRig(t, func(c *oauth.Config) {
		broken = &brokenStore{Store: c.Store}
		c.Store = broken
	})
	client := r.app()
	code := r.agree(r.request(client, appURI), nil).Get("code")
	status, body := r.redeem(client, appURI, code, nil)
	got := tokensOf(t, status, body)
	broken.away = true
	status, body = r.refresh(client, got.refresh)
	wantRefusal(t, "refresh", status, body, http.StatusServiceUnavailable, "temporarily_unavailable")
	if page := r.browser(r.owner).get(r.authorizeURL(r.request(client, appURI))); page.status != http.StatusServiceUnavailable {
		t.Errorf("consent page: %d", page.status)
	}
	broken.away = false
	status, body = r.refresh(client, got.refresh)
	tokensOf(t, status, body)
}

// brokenStore is a store that can be away.
type brokenStore struct {
	tenants.Store
	away bool
}

var errAway = errors.New("connection refused")

func (s *brokenStore) In(ctx context.Context, tenant tenants.ID, fn func(tenants.Tx) error) error {
	if s.away {
		return errAway
	}
	return s.Store.In(ctx, tenant, fn)
}
