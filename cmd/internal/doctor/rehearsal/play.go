package rehearsal

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"siyuan-broker/cmd/internal/doctor"
)

// server is the authorization server as its metadata describes it.
type server struct {
	Resource  string // that agents are told to ask tokens for
	Issuer    string `json:"issuer"`
	Authorize string `json:"authorization_endpoint"`
	Token     string `json:"token_endpoint"`
	Register  string `json:"registration_endpoint"`
	Revoke    string `json:"revocation_endpoint"`
}

// grant is what a client holds after signing in.
type grant struct {
	client  string // its id
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Type    string `json:"token_type"`
	Scope   string `json:"scope"`
}

// leastScope is what a test person gives.
const leastScope = "notes:read"

// play takes one client through everything, as far as there is a person to
// agree.
func (d *Doctor) play(ctx context.Context, c client) doctor.Finding {
	id, err := d.introduce(ctx, c)
	if err != nil {
		return finding(in("registration", err))
	}
	if err := d.ask(ctx, c, id); err != nil {
		return finding(in("authorization", err))
	}
	if d.person == nil {
		return doctor.Good("led to the sign-in; what comes after it was not tried")
	}
	g, err := d.grant(ctx, c, id)
	if err != nil {
		return finding(err)
	}
	defer d.drop(ctx, g)
	tools, err := d.use(ctx, c, *g)
	if err != nil {
		return finding(err)
	}
	if err := d.refresh(ctx, g); err != nil {
		return finding(in("refresh", err))
	}
	if err := in("tools after the refresh", d.talk(*g, c.era).hello(ctx)); err != nil {
		return finding(err)
	}
	took, err := d.revoke(ctx, c, g)
	if err != nil {
		return finding(in("revocation", err))
	}
	return doctor.Good("signed in, %d tools listed, help answered (protocol %s), refreshed; revoked within %d ms", tools, c.era, took.Milliseconds())
}

// introduce makes the client known, as it does itself.
func (d *Doctor) introduce(ctx context.Context, c client) (id string, err error) {
	if c.document != "" {
		return c.document, nil // the server reads it when it is asked
	}
	if d.server.Register == "" {
		return "", bad("is the metadata from the broker?", "no registration endpoint is named")
	}
	a, err := say(ctx, d.Network.Client(), http.MethodPost, d.server.Register, []byte(c.register), http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}})
	if err != nil {
		return "", err
	}
	var made struct {
		ID string `json:"client_id"`
	}
	if err := a.into(http.StatusCreated, &made); err != nil {
		return "", err
	}
	d.registered++
	if made.ID == "" {
		return "", bad(a.next(), "no client_id came back: %s", a)
	}
	return made.ID, nil
}

// request is the address to which a client sends the person.
func (d *Doctor) request(c client, id, verifier, state string) string {
	sum := sha256.Sum256([]byte(verifier))
	v := url.Values{
		"response_type": {"code"}, "client_id": {id}, "redirect_uri": {c.redirect}, "state": {state}, "resource": {d.server.Resource},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	if c.scope != "" {
		v.Set("scope", c.scope)
	}
	return d.server.Authorize + "?" + v.Encode()
}

// ask opens the request as a stranger, who must be led to the sign-in.
func (d *Doctor) ask(ctx context.Context, c client, id string) error {
	stranger := newPerson(d.Network, d.base())
	at := d.request(c, id, rand.Text()+rand.Text(), "s")
	page, err := stranger.open(ctx, at)
	if err != nil {
		return err
	}
	if page.status >= 400 {
		return d.refused(c, page)
	}
	_, err = stranger.leads(page, at)
	return err
}

// refused says why a client was not let ask.
func (d *Doctor) refused(c client, page answer) error {
	_, detail, _ := strings.Cut(pageText(page.body), "invalid_client: ")
	if c.document != "" && strings.Contains(detail, "metadata document") {
		u, _ := url.Parse(c.document) // one of ours
		return bad("let the broker's machine reach "+u.Host+":443 itself (it uses no proxy for this); if that site refuses it, people can sign in with a personal token meanwhile",
			"the broker cannot read the document by which %s names itself: %s", c.name, short(detail))
	}
	return bad(page.next(), "the client is refused: %s", page)
}

// grant lets the person agree and fetches the first tokens.
func (d *Doctor) grant(ctx context.Context, c client, id string) (*grant, error) {
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	at := d.request(c, id, verifier, state)
	page, err := d.person.open(ctx, at)
	switch {
	case err != nil:
		return nil, in("consent", err)
	case page.status >= 400: // documents are read only once somebody is signed in
		return nil, in("authorization", d.refused(c, page))
	}
	location, err := d.person.allow(ctx, at, page, d.agentName(c))
	if err != nil {
		return nil, in("consent", err)
	}
	code, err := d.readCode(c, location, state)
	if err != nil {
		return nil, in("answer to the client", err)
	}
	g, err := d.tokens(ctx, url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {code}, "redirect_uri": {c.redirect},
		"code_verifier": {verifier}, "resource": {d.server.Resource}})
	if err != nil {
		return nil, in("token", err)
	}
	g.client = id
	if g.Scope != leastScope {
		d.drop(ctx, g)
		return nil, in("token", bad("this is a fault of the broker: please report it", "the person gave %s, the token has %q", leastScope, g.Scope))
	}
	return g, nil
}

// readCode reads the answer that a browser would carry to the client.
func (d *Doctor) readCode(c client, location, state string) (string, error) {
	u, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, c.redirect) {
		return "", bad("does something in front rewrite Location?", "the person is sent to %s, not to %s", short(location), c.redirect)
	}
	q := u.Query()
	switch {
	case q.Get("error") != "":
		return "", bad("the broker's log says more", "the client is told %s: %s", short(q.Get("error")), short(q.Get("error_description")))
	case q.Get("state") != state || q.Get("code") == "":
		return "", bad("does something in front rewrite Location?", "the answer lacks its code or the client's state")
	case q.Get("iss") != d.server.Issuer:
		return "", bad("does something in front rewrite Location?", "the answer names %q as its issuer, the metadata %q (RFC 9207)", short(q.Get("iss")), d.server.Issuer)
	}
	return q.Get("code"), nil
}

func (d *Doctor) tokens(ctx context.Context, v url.Values) (*grant, error) {
	a, err := form(ctx, d.Network.Client(), d.server.Token, v)
	if err != nil {
		return nil, err
	}
	var g grant
	if err := a.into(http.StatusOK, &g); err != nil {
		return nil, err
	}
	if g.Access == "" || g.Refresh == "" || !strings.EqualFold(g.Type, "Bearer") {
		return nil, bad("is the answer from the broker?", "the answer lacks an access token, a refresh token, or the type Bearer")
	}
	return &g, nil
}

// refresh exchanges the refresh token with neither scope nor resource, as most
// clients do.
func (d *Doctor) refresh(ctx context.Context, g *grant) error {
	next, err := d.tokens(ctx, url.Values{"grant_type": {"refresh_token"}, "client_id": {g.client}, "refresh_token": {g.Refresh}})
	if err != nil {
		return err
	}
	if next.Refresh == g.Refresh {
		return bad("something in front may keep answers of /oauth/token: they must not be cached", "the same refresh token came back")
	}
	g.Access, g.Refresh, g.Scope = next.Access, next.Refresh, next.Scope
	return nil
}

// revocationMost is how long a revoked token may still work.
const revocationMost = 2 * time.Second

// revoke takes the access back and waits until the token is dead.
func (d *Doctor) revoke(ctx context.Context, c client, g *grant) (time.Duration, error) {
	began := time.Now()
	if err := d.takeBack(ctx, *g); err != nil {
		return 0, err
	}
	dead := *g
	g.Refresh = "" // nothing is left to drop
	for {
		a, err := d.talk(dead, c.era).post(ctx, "tools/list", "", nil)
		if err != nil {
			return 0, err
		}
		took := time.Since(began)
		switch {
		case a.status == http.StatusUnauthorized:
			return took, nil
		case took > revocationMost:
			return 0, bad("do the nodes hear of changes (database_direct_url, redis_url)? `siyuan-broker doctor` on each says; something in front may also keep answers of /mcp",
				"%s after it was revoked, the access token still works", took.Round(time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (d *Doctor) takeBack(ctx context.Context, g grant) error {
	a, err := form(ctx, d.Network.Client(), d.server.Revoke, url.Values{"client_id": {g.client}, "token": {g.Refresh}})
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return bad(a.next(), "the answer is %s", a)
	}
	return nil
}

// drop takes back what a play that failed leaves. What cannot be taken back here
// is found by the clean-up.
func (d *Doctor) drop(ctx context.Context, g *grant) {
	if g.Refresh == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	_ = d.takeBack(ctx, *g)
}

// agentName is how the agents of this run are called in the person's list.
func (d *Doctor) agentName(c client) string { return fmt.Sprintf("%s as %s", d.run, c.name) }
