package broker

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/oauth"
	"siyuan-broker/broker/people"
	"siyuan-broker/broker/token"
	"siyuan-broker/contract/tools"
)

// Option changes how a Broker is wired; for tests.
type Option func(*options)

type options struct {
	documents oauth.Documents
	heartbeat time.Duration
}

// WithClientDocuments reads OAuth clients' metadata documents by other means
// than from the internet.
func WithClientDocuments(d oauth.Documents) Option { return func(o *options) { o.documents = d } }

// WithHeartbeat sets after how much silence a stream gives a sign of life.
func WithHeartbeat(d time.Duration) Option { return func(o *options) { o.heartbeat = d } }

// newOAuth wires how agents sign in. It needs the pages.
func (b *Broker) newOAuth(resources []string, catalogue *tools.Catalogue, verifier *token.Verifier, o options) (err error) {
	b.oauth, err = oauth.New(oauth.Config{
		Issuer: b.Issuer(), Resources: resources, Store: b.db, Tokens: b.issuer, Verifier: verifier, Pages: b.pages, People: signedPerson,
		Limit: b.signInLimit, Catalogue: catalogue, Documents: o.documents, FanOut: b.revoked.Ready, Address: b.cfg.clientIP(), Now: b.now, Log: b.log,
	})
	return err
}

// signedPerson is who sent a request, in the words of the authorization server.
func signedPerson(r *http.Request) (oauth.Person, bool) {
	s, ok := people.Signed(r)
	if !ok {
		return oauth.Person{}, false
	}
	p := oauth.Person{ID: s.User.ID, Email: s.User.Email, Memberships: s.Memberships}
	if m, ok := s.Tenant(); ok {
		p.Shown = m.TenantID
	}
	return p, true
}

// signInLimit counts over all nodes what is asked of the authorization server.
func (b *Broker) signInLimit(ctx context.Context, what, who string, limit int, window time.Duration) (bool, time.Duration) {
	return b.cluster.net.Allow(ctx, cluster.LimitKey{Tenant: "sign-in", Agent: who, Tool: what}, limit, window)
}

// signInRoutes are the routes by which agents come in, and the pages about them.
func (b *Broker) signInRoutes(e *echo.Echo) {
	o := b.oauth
	for _, path := range oauth.MetadataPaths() {
		e.Any(path, bare(o.ServeMetadata))
	}
	e.Any(oauth.JWKSPath, echo.WrapHandler(b.keys))
	e.Any(oauth.TokenPath, bare(o.ServeToken))
	e.Any(oauth.RegisterPath, bare(o.ServeRegister))
	e.Any(oauth.RevokePath, bare(o.ServeRevoke))
	e.Any(oauth.DevicePath, bare(o.ServeDevice))

	e.GET(oauth.AuthorizePath, b.signed(o.ServeAuthorize))
	e.POST(oauth.AuthorizePath, b.signed(o.ServeAuthorize))
	e.GET(oauth.VerifyPath, b.signed(o.ServeVerify))
	e.POST(oauth.VerifyPath, b.signed(o.ServeVerify))
	e.GET(oauth.AgentsPath, b.signed(o.ServeAgents))
	e.POST(oauth.AgentRevokePath, b.signed(o.ServeAgentRevoke))
	e.GET(oauth.TokenPagePath, b.signed(o.ServePersonalToken))
	e.POST(oauth.TokenPagePath, b.signed(o.ServePersonalToken))
	e.GET(oauth.ConnectPath, b.signed(o.ServeConnect))
}

// bare serves what is for programs, with nothing around it.
func bare(h http.HandlerFunc) echo.HandlerFunc { return echo.WrapHandler(h) }
