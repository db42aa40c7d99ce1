package oauth_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/broker/oauth"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestACodeBecomesAnAgentWithAnRFC9068Token(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	answer := r.agree(r.request(client, appURI), url.Values{"level": {"rw"}, "name": {"My app"}, "days": {"30"}})
	if answer.Get("state") != "st~1" || answer.Get("iss") != r.url {
		t.Errorf("answer to the client: %v", answer)
	}
	status, body := r.redeem(client, appURI, answer.Get("code"), nil)
	got := tokensOf(t, status, body)
	if got.scope != "notes:read notes:write" {
		t.Errorf("scope %q", got.scope)
	}
	if n := body["expires_in"].(float64); n < 600 || n > 900 {
		t.Errorf("lives %v s, want 10 to 15 minutes", n)
	}
	claims, err := r.verify.Verify(t.Context(), got.access)
	must(t, err)
	agents := r.agents(r.tenant)
	if len(agents) != 1 {
		t.Fatalf("%d agents", len(agents))
	}
	a := agents[0]
	if a.ID != claims.Agent || a.MemberID != r.owner || a.InstanceID != r.instance || a.Name != "My app" || a.Origin != tenants.FromOAuth ||
		a.ClientID != client || a.Ceiling != contract.ReadWrite || a.Tools != nil || a.ExpiresAt.Sub(a.CreatedAt).Round(time.Hour) != 30*24*time.Hour {
		t.Errorf("agent: %+v", a)
	}

	parsed, _, err := jwt.NewParser().ParseUnverified(got.access, jwt.MapClaims{})
	must(t, err)
	c := parsed.Claims.(jwt.MapClaims)
	if parsed.Header["typ"] != "at+jwt" || parsed.Header["kid"] == "" || parsed.Header["alg"] != "EdDSA" {
		t.Errorf("header: %v", parsed.Header)
	}
	for name, want := range map[string]string{"iss": r.url, "sub": r.owner.String(), "client_id": client, "scope": got.scope,
		"tenant": r.tenant.String(), "agent": a.ID.String()} {
		if c[name] != want {
			t.Errorf("%s is %v, want %s", name, c[name], want)
		}
	}
	if aud, err := c.GetAudience(); err != nil || len(aud) != 1 || aud[0] != r.url+"/mcp" || c["jti"] == "" {
		t.Errorf("aud %v, jti %v", aud, c["jti"])
	}
}

func TestTheAnswerSaysWhatThePersonGaveNotWhatTheClientWanted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	all := strings.Join(oauth.Scopes(), " ") + " offline_access openid"
	code := r.agree(r.request(client, appURI).with("scope", all), url.Values{"level": {"r"}}).Get("code")
	status, body := r.redeem(client, appURI, code, nil)
	if got := tokensOf(t, status, body); got.scope != "notes:read" {
		t.Errorf("scope %q", got.scope)
	}
}

func TestACodeThatIsRefusedIsNotUsedUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client, other := r.app(), r.app()
	code := r.agree(r.request(client, appURI), nil).Get("code")
	for _, x := range []struct {
		what, code string
		client     string
		change     url.Values
	}{
		{"another client", "invalid_grant", other, nil},
		{"another redirect URI", "invalid_grant", client, url.Values{"redirect_uri": {"https://app.example/other"}}},
		{"no verifier", "invalid_grant", client, url.Values{"code_verifier": nil}},
		{"a wrong verifier", "invalid_grant", client, url.Values{"code_verifier": {strings.Repeat("a", 43)}}},
		{"the challenge as the verifier", "invalid_grant", client, url.Values{"code_verifier": {challenge(verifier)}}},
		{"another resource", "invalid_target", client, url.Values{"resource": {"https://other.example/mcp"}}},
		{"two resources", "invalid_target", client, url.Values{"resource": {r.url + "/mcp", "https://other.example/mcp"}}},
		{"the tunnel as the resource", "invalid_target", client, url.Values{"resource": {r.url + "/tunnel"}}},
		{"a code that is none", "invalid_grant", client, url.Values{"code": {"sybc_x"}}},
		{"a code of nobody", "invalid_grant", client, url.Values{"code": {"sybc_" + base64.RawURLEncoding.EncodeToString(make([]byte, 48))}}},
		{"no grant type", "unsupported_grant_type", client, url.Values{"grant_type": nil}},
		{"a password", "unsupported_grant_type", client, url.Values{"grant_type": {"password"}}},
		{"a parameter twice", "invalid_request", client, url.Values{"code": {code, code}}},
	} {
		status, body := r.redeem(x.client, appURI, code, x.change)
		wantRefusal(t, x.what, status, body, http.StatusBadRequest, x.code)
	}
	if n := len(r.agents(r.tenant)); n != 0 {
		t.Errorf("%d agents were made", n)
	}
	status, body := r.redeem(client, appURI, code, url.Values{"resource": {r.url + "/mcp/"}}) // the slash does not matter
	tokensOf(t, status, body)
}

func TestACodeLastsAMinute(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	code := r.agree(r.request(client, appURI), nil).Get("code")
	r.clock.move(61 * time.Second)
	status, body := r.redeem(client, appURI, code, nil)
	wantRefusal(t, "after a minute", status, body, http.StatusBadRequest, "invalid_grant")
}

func TestASecondUseOfACodeRevokesWhatCameOfTheFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	code := r.agree(r.request(client, appURI), nil).Get("code")
	status, body := r.redeem(client, appURI, code, nil)
	got := tokensOf(t, status, body)
	status, body = r.redeem(client, appURI, code, nil)
	wantRefusal(t, "again", status, body, http.StatusBadRequest, "invalid_grant")
	r.wantFamilyRevoked(client, got, "agent.code_reused")
}

// wantFamilyRevoked checks that nothing of an agent works any more, and that it
// was noted why.
func (r *rig) wantFamilyRevoked(client string, got tokens, verb string) {
	t := r.t
	t.Helper()
	status, body := r.refresh(client, got.refresh)
	wantRefusal(t, "refresh of a revoked family", status, body, http.StatusBadRequest, "invalid_grant")
	for deadline := time.Now().Add(2 * time.Second); r.works(got.access); {
		if time.Now().After(deadline) {
			t.Fatal("the access token still works after two seconds")
		}
	}
	var verbs []string
	r.in(r.tenant, func(tx tenants.Tx) error {
		log, err := tx.AuditLog(t.Context(), time.Now().Add(time.Minute), 100)
		for _, e := range log {
			verbs = append(verbs, e.Verb)
		}
		return err
	})
	if !strings.Contains(strings.Join(verbs, " "), verb) {
		t.Errorf("audited: %v; want %s", verbs, verb)
	}
}

func TestARefreshRotatesAndNeedsNeitherScopeNorResource(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	first := r.signIn(client)
	status, body := r.refresh(client, first.refresh)
	second := tokensOf(t, status, body)
	if second.refresh == first.refresh || second.access == first.access || second.scope != first.scope {
		t.Errorf("not rotated: %+v, then %+v", first, second)
	}
	a, err := r.verify.Verify(t.Context(), first.access)
	must(t, err)
	b, err := r.verify.Verify(t.Context(), second.access)
	must(t, err)
	if a.Agent != b.Agent || a.Audience != b.Audience {
		t.Errorf("the agent or its resource changed: %+v, %+v", a, b)
	}
	if n := len(r.agents(r.tenant)); n != 1 {
		t.Errorf("%d agents", n)
	}
	// What a client sends along is no reason to refuse.
	status, body = r.post(oauth.TokenPath, url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {second.refresh},
		"scope": {"notes:read notes:write notes:delete offline_access"}, "resource": {r.url + "/mcp/"}})
	if got := tokensOf(t, status, body); got.scope != first.scope {
		t.Errorf("a refresh widened the scope to %q", got.scope)
	}
}

func TestProcessesThatShareARefreshTokenGetSiblings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	first := r.signIn(client)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var got []tokens
	for range 6 {
		wg.Go(func() {
			status, body := r.refresh(client, first.refresh)
			mu.Lock()
			defer mu.Unlock()
			if status == http.StatusOK {
				got = append(got, tokensOf(t, status, body))
			} else {
				t.Errorf("parallel refresh: %d %v", status, body)
			}
		})
	}
	wg.Wait()
	r.clock.move(110 * time.Second) // the slow one comes within two minutes
	status, body := r.refresh(client, first.refresh)
	got = append(got, tokensOf(t, status, body))
	seen := map[string]bool{}
	for _, x := range got {
		status, body := r.refresh(client, x.refresh) // each goes on by itself
		tokensOf(t, status, body)
		seen[x.refresh] = true
	}
	if len(seen) != 7 || len(r.agents(r.tenant)) != 1 {
		t.Errorf("%d refresh tokens of %d agents; want 7 of 1", len(seen), len(r.agents(r.tenant)))
	}
}

func TestARefreshTokenThatTurnsUpLaterRevokesTheFamily(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	first := r.signIn(client)
	status, body := r.refresh(client, first.refresh)
	second := tokensOf(t, status, body)
	r.clock.move(121 * time.Second)
	status, body = r.refresh(client, first.refresh)
	wantRefusal(t, "after the grace", status, body, http.StatusBadRequest, "invalid_grant")
	r.wantFamilyRevoked(client, second, "agent.refresh_reused")
}

func TestARefreshThatFailsForAnotherReasonConsumesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client, other := r.app(), r.app()
	first := r.signIn(client)
	status, body := r.refresh(other, first.refresh)
	wantRefusal(t, "another client", status, body, http.StatusBadRequest, "invalid_grant")
	status, body = r.post(oauth.TokenPath, url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {first.refresh},
		"resource": {"https://other.example/mcp"}})
	wantRefusal(t, "another resource", status, body, http.StatusBadRequest, "invalid_target")
	status, body = r.post(oauth.TokenPath, url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {first.refresh}, "client_secret": {"x"}})
	wantRefusal(t, "a secret", status, body, http.StatusUnauthorized, "invalid_client")
	r.clock.move(3 * time.Minute) // were it spent, this would be reuse
	status, body = r.refresh(client, first.refresh)
	tokensOf(t, status, body)
}

func TestARefreshTokenLivesThirtyDaysFromItsLastExchange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	got := tokens{refresh: ""}
	code := r.agree(r.request(client, appURI), url.Values{"days": {"0"}}).Get("code")
	status, body := r.redeem(client, appURI, code, nil)
	got = tokensOf(t, status, body)
	for range 3 { // 87 days in all
		r.clock.move(29 * 24 * time.Hour)
		status, body = r.refresh(client, got.refresh)
		got = tokensOf(t, status, body)
	}
	r.clock.move(31 * 24 * time.Hour)
	status, body = r.refresh(client, got.refresh)
	wantRefusal(t, "after 31 days", status, body, http.StatusBadRequest, "invalid_grant")
}

func TestNoTokenOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	code := r.agree(r.request(client, appURI), url.Values{"days": {"1"}}).Get("code")
	status, body := r.redeem(client, appURI, code, nil)
	got := tokensOf(t, status, body)
	r.clock.move(24*time.Hour - 5*time.Minute)
	status, body = r.refresh(client, got.refresh)
	got = tokensOf(t, status, body)
	if n := body["expires_in"].(float64); n < 200 || n > 300 {
		t.Errorf("five minutes before the end a token lives %v s", n)
	}
	r.clock.move(5*time.Minute + time.Second)
	status, body = r.refresh(client, got.refresh)
	wantRefusal(t, "after the end", status, body, http.StatusBadRequest, "invalid_grant")
}

func TestTokensAndCodesDieWithTheMembership(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	member := r.member("member@example.org", tenants.Member)
	codes := make([]string, 2)
	for i := range codes {
		b, q := r.browser(member), r.request(client, appURI)
		codes[i] = b.submit(r.authorizeURL(q), b.get(r.authorizeURL(q)), url.Values{"answer": {"allow"}}).location(t).Query().Get("code")
	}
	status, body := r.redeem(client, appURI, codes[0], nil)
	got := tokensOf(t, status, body)
	r.in(r.tenant, func(tx tenants.Tx) error { return tx.RemoveMember(t.Context(), member) })
	status, body = r.refresh(client, got.refresh)
	wantRefusal(t, "refresh of a former member", status, body, http.StatusBadRequest, "invalid_grant")
	status, body = r.redeem(client, appURI, codes[1], nil)
	wantRefusal(t, "code of a former member", status, body, http.StatusBadRequest, "invalid_grant")
	if n := len(r.agents(r.tenant)); n != 1 {
		t.Errorf("%d agents, want the revoked one", n)
	}
}

func TestAClientMayNameItselfInABasicHeaderWithoutASecret(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	code := r.agree(r.request(client, appURI), nil).Get("code")
	v := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {appURI}, "code_verifier": {verifier}}
	basic := func(user, password string) http.Header {
		return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(user)+":"+url.QueryEscape(password)))}}
	}
	const form = "application/x-www-form-urlencoded"
	status, body := r.send(oauth.TokenPath, form, v.Encode(), basic(client, "secret"))
	wantRefusal(t, "with a secret", status, body, http.StatusUnauthorized, "invalid_client")
	status, body = r.send(oauth.TokenPath, form, v.Encode()+"&client_id=other", basic(client, ""))
	wantRefusal(t, "two names", status, body, http.StatusUnauthorized, "invalid_client")
	status, body = r.send(oauth.TokenPath, form, v.Encode(), basic(client, ""))
	tokensOf(t, status, body)
}

func TestAnExpiredClientIsToldToRegisterAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	got := r.signIn(client) // now it is in use, and stays
	const week = 7 * 24 * time.Hour
	r.clock.move(-week - time.Hour)
	unused := r.app() // expired an hour ago
	r.clock.move(week + time.Hour)
	for name, id := range map[string]string{"expired": unused, "never registered": "c_nobody", "empty document": "https://"} {
		status, body := r.refresh(id, got.refresh)
		want := http.StatusUnauthorized
		code := "invalid_client"
		if id == "https://" { // known by no registration: its tokens are other's
			want, code = http.StatusBadRequest, "invalid_grant"
		}
		wantRefusal(t, name, status, body, want, code)
	}
	status, body := r.refresh(client, got.refresh)
	tokensOf(t, status, body)
}

func TestWhatIsNoFormIsRefusedWithWords(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, path := range []string{oauth.TokenPath, oauth.RevokePath, oauth.DevicePath} {
		status, body := r.postJSON(path, `{"grant_type":"authorization_code"}`)
		wantRefusal(t, path+" with JSON", status, body, http.StatusBadRequest, "invalid_request")
		status, body = r.post(path, url.Values{"grant_type": {"refresh_token"}})
		wantRefusal(t, path+" without a client", status, body, http.StatusBadRequest, "invalid_request")
		status, body = r.post(path, url.Values{"client_id": {strings.Repeat("x", 70<<10)}})
		wantRefusal(t, path+" too long", status, body, http.StatusBadRequest, "invalid_request")
	}
}

func TestCodesAndTokensAreStoredAsHashesOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.app()
	code := r.agree(r.request(client, appURI), nil).Get("code")
	status, body := r.redeem(client, appURI, code, nil)
	got := tokensOf(t, status, body)
	r.in(r.tenant, func(tx tenants.Tx) error {
		c, err := tx.OAuthCode(t.Context(), tenants.HashSecret(code))
		must(t, err)
		x, err := tx.RefreshToken(t.Context(), tenants.HashSecret(got.refresh))
		must(t, err)
		for _, v := range []any{c, x} {
			b, err := json.Marshal(v)
			must(t, err)
			if strings.Contains(string(b), code) || strings.Contains(string(b), got.refresh) || strings.Contains(string(b), got.access) {
				t.Errorf("a secret is kept: %s", b)
			}
		}
		return nil
	})
}
