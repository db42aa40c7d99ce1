package people

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"siyuan-broker/broker/page"
	"siyuan-broker/tenants"
)

// CallbackPath is where the identity provider sends people back to.
const CallbackPath = "/console/oidc/callback"

// ErrIdentity means that the identity provider's answer gives no way in; its text
// says why, for the log.
var ErrIdentity = errors.New("the identity provider's answer gives no way in")

// ErrNoAccount means that the identity is real and nobody here: there is no
// account, and signing up is not possible with it.
var ErrNoAccount = errors.New("no account for this identity")

// Provider is the installation's identity provider. It is asked for its keys and
// addresses when it is first needed, so that a broker starts without it.
type Provider struct {
	Issuer, ClientID, ClientSecret string
	Name                           string // what the button says
	// LinkByEmail lets an identity whose address the provider has verified sign in
	// to the account of that address. Only for a provider whose word about
	// addresses is to be trusted with that.
	LinkByEmail bool
	Client      *http.Client // nil: one with a time limit

	mu    sync.Mutex
	known *oidc.Provider
}

func (p *Provider) client() *http.Client {
	if p.Client != nil {
		return p.Client
	}
	return &http.Client{Timeout: 10 * time.Second}
}

func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known != nil {
		return p.known, nil
	}
	// The provider keeps the context for fetching keys later: not the request's.
	known, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client()), p.Issuer)
	if err != nil {
		return nil, fmt.Errorf("identity provider %s: %w", p.Issuer, err)
	}
	p.known = known
	return known, nil
}

func (p *Provider) config(known *oidc.Provider, base string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: known.Endpoint(),
		RedirectURL: base + CallbackPath, Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
	}
}

// flow is what a browser keeps while its person is at the provider. It is bound
// to the browser by its cookie, which no other host can set.
type flow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Next     string `json:"r,omitempty"`
	Link     string `json:"l,omitempty"` // secret of an invitation
	Expires  int64  `json:"e"`
}

const (
	flowCookie = "oidc"
	flowLife   = 10 * time.Minute
)

// AskProvider is the address at the identity provider to send a person to. next
// is where they want to go afterwards, link the secret of an invitation, if any.
func (p *People) AskProvider(w http.ResponseWriter, r *http.Request, next page.Local, link string) (string, error) {
	if p.OIDC == nil {
		return "", ErrClosed
	}
	known, err := p.OIDC.discover(r.Context())
	if err != nil {
		return "", err
	}
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: next.String(), Expires: p.Now().Add(flowLife).Unix()}
	if len(link) <= 100 {
		f.Link = link
	}
	b, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	c := p.Pages.Cookie(r, flowCookie, base64.RawURLEncoding.EncodeToString(b))
	c.MaxAge = int(flowLife / time.Second)
	http.SetCookie(w, c)
	return p.OIDC.config(known, p.Pages.Base(r)).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), nil
}

// ProviderAnswered takes the answer of the identity provider and signs the person
// in, making their account where that is possible. It says where they wanted to
// go. ErrIdentity, ErrNoAccount, ErrLink, ErrTooMany.
func (p *People) ProviderAnswered(w http.ResponseWriter, r *http.Request) (next page.Local, err error) {
	if p.OIDC == nil {
		return next, ErrClosed
	}
	if err := p.count(r.Context(), "oidc "+p.network(r), linksPerHour, time.Hour); err != nil {
		return next, err
	}
	f, err := p.flow(w, r)
	if err != nil {
		return next, err
	}
	next, _ = page.ParseLocal(f.Next)
	q := r.URL.Query()
	if reason := q.Get("error"); reason != "" {
		return next, fmt.Errorf("%w: %q", ErrIdentity, clean(reason, 100))
	}
	if iss := q.Get("iss"); iss != "" && iss != p.OIDC.Issuer {
		return next, fmt.Errorf("%w: it is of another provider", ErrIdentity)
	}
	who, err := p.identify(r, f, q.Get("code"))
	if err != nil {
		return next, err
	}
	u, err := p.accountOf(r, who, f)
	if err != nil {
		return next, err
	}
	return next, p.begin(w, r, u.ID)
}

// flow reads and ends what AskProvider began.
func (p *People) flow(w http.ResponseWriter, r *http.Request) (f flow, err error) {
	b, err := base64.RawURLEncoding.DecodeString(p.Pages.CookieValue(r, flowCookie))
	c := p.Pages.Cookie(r, flowCookie, "")
	c.MaxAge = -1
	http.SetCookie(w, c)
	if err != nil || json.Unmarshal(b, &f) != nil || f.State == "" || p.Now().Unix() >= f.Expires {
		return f, fmt.Errorf("%w: it does not belong to a sign-in that this browser began within %v", ErrIdentity, flowLife)
	}
	if subtle.ConstantTimeCompare([]byte(f.State), []byte(r.URL.Query().Get("state"))) != 1 {
		return f, fmt.Errorf("%w: its state is not the one that was sent", ErrIdentity)
	}
	return f, nil
}

// identity is who the provider says somebody is.
type identity struct {
	Issuer, Subject string
	Email, Name     string
	Verified        bool // the provider knows that Email is theirs
}

// identify exchanges the code and checks the token.
func (p *People) identify(r *http.Request, f flow, code string) (who identity, err error) {
	ctx := oidc.ClientContext(r.Context(), p.OIDC.client())
	known, err := p.OIDC.discover(ctx)
	if err != nil {
		return who, err
	}
	if code == "" {
		return who, fmt.Errorf("%w: it has no code", ErrIdentity)
	}
	tokens, err := p.OIDC.config(known, p.Pages.Base(r)).Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return who, fmt.Errorf("%w: exchange the code: %w", ErrIdentity, err)
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return who, fmt.Errorf("%w: no id_token", ErrIdentity)
	}
	token, err := known.Verifier(&oidc.Config{ClientID: p.OIDC.ClientID, Now: p.Now}).Verify(ctx, raw)
	if err != nil {
		return who, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(f.Nonce)) != 1 {
		return who, fmt.Errorf("%w: its nonce is not the one that was sent", ErrIdentity)
	}
	var claims struct {
		Email    string `json:"email"`
		Verified any    `json:"email_verified"` // some providers send a string
		Name     string `json:"name"`
	}
	if err := token.Claims(&claims); err != nil {
		return who, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	who = identity{Issuer: token.Issuer, Subject: token.Subject, Name: clean(strings.TrimSpace(claims.Name), 100)}
	if email, err := tenants.NormalizeEmail(claims.Email); err == nil {
		who.Email, who.Verified = email, claims.Verified == true || claims.Verified == "true"
	}
	if who.Subject == "" || len(who.Subject) > 255 {
		return who, fmt.Errorf("%w: no subject", ErrIdentity)
	}
	return who, nil
}

// accountOf finds or makes the account of an identity. An address that the
// provider did not verify never decides.
func (p *People) accountOf(r *http.Request, who identity, f flow) (tenants.User, error) {
	ctx := r.Context()
	u, err := p.Store.UserByOIDC(ctx, who.Issuer, who.Subject)
	if !errors.Is(err, tenants.ErrNotFound) {
		return u, err
	}
	if !who.Verified {
		return u, fmt.Errorf("%w: the provider has not verified its address", ErrNoAccount)
	}
	u, err = p.Store.UserByEmail(ctx, who.Email)
	switch {
	case err == nil && p.OIDC.LinkByEmail && u.OIDCSubject == "":
		return p.Store.UpdateUser(ctx, u.ID, tenants.UserUpdate{OIDCIssuer: &who.Issuer, OIDCSubject: &who.Subject})
	case err == nil:
		return u, fmt.Errorf("%w: its address has an account that is not linked to it", ErrNoAccount)
	case !errors.Is(err, tenants.ErrNotFound):
		return u, err
	}
	var hash []byte
	if f.Link != "" {
		inv, err := p.Invited(r, f.Link)
		if err != nil {
			return u, err
		}
		if !inv.Operator && inv.Email != who.Email {
			return u, fmt.Errorf("%w: the invitation is for another address", ErrNoAccount)
		}
		if !inv.Joins {
			hash = hashOf(f.Link)
		}
	} else if p.SignUp != SignUpOpen {
		return u, fmt.Errorf("%w: signing up needs an invitation", ErrNoAccount)
	}
	u, err = p.Store.SignUp(ctx, tenants.SignUp{
		User:   tenants.User{Email: who.Email, Name: who.Name, OIDCIssuer: who.Issuer, OIDCSubject: who.Subject},
		Tenant: tenantName(NewPerson{Email: who.Email, Name: who.Name}), Link: hash, Now: p.Now(),
	})
	if errors.Is(err, tenants.ErrNotFound) {
		return u, ErrLink
	}
	return u, err
}
