package oauth_test

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/oauth"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// member joins the tenant with a share.
func (r *rig) member(email string, role tenants.Role) tenants.ID {
	r.t.Helper()
	id := r.newPerson(email)
	r.in(r.tenant, func(tx tenants.Tx) error {
		must(r.t, tx.AddMember(r.t.Context(), id, role))
		_, err := tx.Share(r.t.Context(), tenants.Share{InstanceID: r.instance, NotebookID: "20260101000000-diary00", MemberID: id, Level: contract.Read})
		return err
	})
	return id
}

// agentOf makes an agent of somebody, named after them.
func (r *rig) agentOf(person tenants.ID, name string) (a tenants.Agent) {
	r.t.Helper()
	r.in(r.tenant, func(tx tenants.Tx) (err error) {
		a, err = tx.CreateAgent(r.t.Context(), tenants.Agent{MemberID: person, InstanceID: r.instance, Name: name, Origin: tenants.FromToken, Ceiling: contract.Read})
		return err
	})
	return a
}

func TestMembersSeeTheirOwnAgentsAndManagersSeeAll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, member := r.member("admin@example.org", tenants.Admin), r.member("member@example.org", tenants.Member)
	people := map[string]tenants.ID{"agent-of-owner": r.owner, "agent-of-admin": admin, "agent-of-member": member}
	agents := map[string]tenants.Agent{}
	for name, id := range people {
		agents[name] = r.agentOf(id, name)
	}
	for who, sees := range map[tenants.ID]int{r.owner: 3, admin: 3, member: 1} {
		body := r.browser(who).get(oauth.AgentsPath).body
		n := 0
		for name := range agents {
			if strings.Contains(body, name) {
				n++
			}
		}
		if n != sees || who == member && !strings.Contains(body, "agent-of-member") {
			t.Errorf("%s sees %d agents, want %d", who, n, sees)
		}
	}
	revoke := func(who tenants.ID, name string) int {
		b := r.browser(who)
		return b.submit(oauth.AgentRevokePath, b.get(oauth.AgentsPath), url.Values{"agent": {agents[name].ID.String()}}).status
	}
	if got := revoke(member, "agent-of-owner"); got != http.StatusNotFound {
		t.Errorf("a member revokes the owner's agent: %d", got)
	}
	if got := revoke(member, "agent-of-member"); got != http.StatusSeeOther {
		t.Errorf("a member revokes their own: %d", got)
	}
	if got := revoke(admin, "agent-of-owner"); got != http.StatusSeeOther {
		t.Errorf("an admin revokes the owner's: %d", got)
	}
	for _, a := range r.agents(r.tenant) {
		if want := a.Name != "agent-of-admin"; a.RevokedAt.IsZero() == want {
			t.Errorf("%s: revoked at %v", a.Name, a.RevokedAt)
		}
	}
	stranger := r.newPerson("stranger@example.org")
	b := r.browser(stranger)
	page := b.get(oauth.TokenPagePath)
	if got := b.submit(oauth.AgentRevokePath, b.get(oauth.VerifyPath), url.Values{"agent": {agents["agent-of-admin"].ID.String()}}); got.status != http.StatusNotFound {
		t.Errorf("a stranger revokes: %d", got.status)
	}
	if strings.Contains(page.body, "<form") && strings.Contains(page.body, `name="place"`) {
		t.Error("a stranger is offered notes")
	}
}

func TestARevokedAgentEndsWithinTwoSecondsAndWhatCannotBeToldIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.signIn(r.app())
	b := r.browser(r.owner)
	agent := r.agents(r.tenant)[0]
	revoke := func() string {
		answer := b.submit(oauth.AgentRevokePath, b.get(oauth.VerifyPath), url.Values{"agent": {agent.ID.String()}})
		if answer.status != http.StatusSeeOther {
			t.Fatalf("%d %s", answer.status, answer.body)
		}
		return b.get(oauth.AgentsPath).body
	}
	if !r.works(got.access) {
		t.Fatal("the token does not work")
	}
	r.failure = errors.New("revocations were last read 12s ago")
	if body := revoke(); !strings.Contains(body, "could not make sure") || !strings.Contains(body, `role="alert"`) {
		t.Error("nothing was said of nodes that may not hear of it")
	}
	r.failure = nil
	for deadline := time.Now().Add(2 * time.Second); r.works(got.access); {
		if time.Now().After(deadline) {
			t.Fatal("the token still works")
		}
	}
	if body := revoke(); !strings.Contains(body, "no access any more") { // twice changes nothing
		t.Error("a second revocation")
	}
}

var tokenText = regexp.MustCompile(`<pre id="token"[^>]*>([^<]+)</pre>`)

func TestAPersonalTokenIsShownOnceAndWorks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser(r.owner)
	page := b.get(oauth.TokenPagePath)
	made := b.submit(oauth.TokenPagePath, page, url.Values{"name": {"nightly backup"}, "level": {"rw"}, "days": {"30"}, "which": {"only"}, "tool": {"document"}})
	m := tokenText.FindStringSubmatch(made.body)
	if made.status != http.StatusOK || m == nil || made.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", made.status, made.body)
	}
	claims, err := r.verify.Verify(t.Context(), m[1])
	must(t, err)
	a := r.agents(r.tenant)[0]
	if a.ID != claims.Agent || a.Name != "nightly backup" || a.Ceiling != contract.ReadWrite || strings.Join(a.Tools, " ") != "document" || a.Origin != tenants.FromToken || a.ClientID != "" ||
		claims.ClientID != "" || claims.Scope != "notes:read notes:write" || claims.ExpiresAt.Sub(a.ExpiresAt).Abs() > 2*time.Second {
		t.Errorf("agent %+v, claims %+v", a, claims)
	}
	if list := b.get(oauth.AgentsPath).body; strings.Contains(list, m[1]) || !strings.Contains(list, "nightly backup") {
		t.Error("the list shows the token, or not the agent")
	}
	for _, days := range []string{"0", "1", "400", ""} { // it always ends
		if got := b.submit(oauth.TokenPagePath, page, url.Values{"name": {"x"}, "days": {days}}); got.status != http.StatusUnprocessableEntity || tokenText.MatchString(got.body) {
			t.Errorf("%s days: %d", days, got.status)
		}
	}
	if n := len(r.agents(r.tenant)); n != 1 {
		t.Errorf("%d agents", n)
	}
}

func TestAClientTakesItsTokensBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client, other := r.app(), r.app()
	got := r.signIn(client)
	status, body := r.refresh(client, got.refresh)
	second := tokensOf(t, status, body)
	revoke := func(client, token string) (int, map[string]any) {
		return r.post(oauth.RevokePath, url.Values{"client_id": {client}, "token": {token}, "token_type_hint": {"access_token"}})
	}
	for _, token := range []string{got.access, got.refresh} {
		status, body = revoke(other, token)
		wantRefusal(t, "another client's token", status, body, http.StatusBadRequest, "invalid_request")
	}
	for _, nonsense := range []string{"x", "sybr_x", "eyJhbGciOiJub25lIn0.e30."} {
		if status, body = revoke(client, nonsense); status != http.StatusOK {
			t.Errorf("%q: %d %v", nonsense, status, body)
		}
	}
	if status, body = revoke(client, got.access); status != http.StatusOK {
		t.Fatalf("access token: %d %v", status, body)
	}
	for deadline := time.Now().Add(2 * time.Second); r.works(got.access); {
		if time.Now().After(deadline) {
			t.Fatal("the revoked access token still works")
		}
	}
	if !r.works(second.access) {
		t.Error("revoking one access token took another with it")
	}
	r.failure = errors.New("away")
	status, body = revoke(client, second.refresh)
	wantRefusal(t, "while the fan-out is down", status, body, http.StatusServiceUnavailable, "temporarily_unavailable")
	r.failure = nil
	if status, body = revoke(client, second.refresh); status != http.StatusOK {
		t.Errorf("again: %d %v", status, body)
	}
	r.wantFamilyRevoked(client, second, "agent.revoke")
}

func TestADeviceComesInByACodeThatThePersonTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client, _ := r.register(`{"client_name":"TV","grant_types":["urn:ietf:params:oauth:grant-type:device_code","refresh_token"]}`)
	begin := func() map[string]any {
		status, d := r.post(oauth.DevicePath, url.Values{"client_id": {client}, "scope": {"notes:read"}})
		if status != http.StatusOK || d["verification_uri"] != r.url+"/device" || d["verification_uri_complete"] != nil {
			t.Fatalf("%d %v", status, d)
		}
		return d
	}
	poll := func(d map[string]any, client string) (int, map[string]any) {
		r.clock.move(6 * time.Second)
		return r.post(oauth.TokenPath, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {client}, "device_code": {d["device_code"].(string)}})
	}
	d := begin()
	status, body := poll(d, client)
	wantRefusal(t, "before the answer", status, body, http.StatusBadRequest, "authorization_pending")
	r.clock.move(-5 * time.Second)
	status, body = poll(d, client)
	wantRefusal(t, "too fast", status, body, http.StatusBadRequest, "slow_down")
	status, body = poll(d, r.app())
	wantRefusal(t, "another client", status, body, http.StatusBadRequest, "invalid_grant")

	b := r.browser(r.owner)
	user := d["user_code"].(string)
	form := b.get(oauth.VerifyPath + "?user_code=" + user + "&code=" + user)
	if got := formOf(t, form.body).Get("code"); got != "" {
		t.Error("the code is filled in for the person")
	}
	if got := b.submit(oauth.VerifyPath, form, url.Values{"code": {"BBBB-BBBB"}}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong code: %d", got.status)
	}
	question := b.submit(oauth.VerifyPath, form, url.Values{"code": {strings.ToLower(strings.ReplaceAll(user, "-", " "))}})
	if question.status != http.StatusOK || !strings.Contains(question.body, user) || !strings.Contains(question.body, "TV") || strings.Contains(question.body, `value="rw"`) {
		t.Fatalf("%d %s", question.status, question.body)
	}
	if got := b.submit(oauth.VerifyPath, question, url.Values{"answer": {"allow"}, "level": {"rwd"}}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("more than asked for: %d", got.status)
	}
	if got := b.submit(oauth.VerifyPath, question, url.Values{"answer": {"allow"}}); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	status, body = poll(d, client)
	got := tokensOf(t, status, body)
	if !r.works(got.access) || got.scope != "notes:read" {
		t.Errorf("%+v", got)
	}
	status, body = poll(d, client)
	wantRefusal(t, "a second time", status, body, http.StatusBadRequest, "invalid_grant")
	r.wantFamilyRevoked(client, got, "agent.code_reused")

	d = begin()
	question = b.submit(oauth.VerifyPath, form, url.Values{"code": {d["user_code"].(string)}})
	b.submit(oauth.VerifyPath, question, url.Values{"answer": {"deny"}})
	status, body = poll(d, client)
	wantRefusal(t, "after a no", status, body, http.StatusBadRequest, "access_denied")

	d = begin()
	r.clock.move(11 * time.Minute)
	status, body = poll(d, client)
	wantRefusal(t, "too late", status, body, http.StatusBadRequest, "expired_token")
}
