package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/broker/token"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// How long things last.
const (
	codeLife     = time.Minute         // of an authorization code
	accessLife   = 15 * time.Minute    // of an access token
	refreshLife  = 30 * 24 * time.Hour // of a refresh token; each exchange begins it anew
	refreshGrace = 2 * time.Minute     // in which a spent refresh token still works
	unusedLife   = 7 * 24 * time.Hour  // of a registration that nobody consented to yet
	clientLife   = 90 * 24 * time.Hour // of a registration since its last use
	deviceLife   = 10 * time.Minute
	devicePoll   = 5 * time.Second
)

// Tokens signs access tokens; *token.Issuer does.
type Tokens interface {
	Issue(token.Request) (string, token.Claims, error)
}

// Verifier reads access tokens; *token.Verifier does.
type Verifier interface {
	Verify(ctx context.Context, raw string) (token.Claims, error)
}

// Person is who is signed in, with the tenants they belong to.
type Person struct {
	ID          tenants.ID
	Email       string
	Memberships []tenants.Membership
	Shown       tenants.ID // the tenant that their pages show; zero: they belong to none
}

// member is the person's membership in a tenant.
func (p Person) member(tenant tenants.ID) (tenants.Membership, bool) {
	for _, m := range p.Memberships {
		if m.TenantID == tenant {
			return m, true
		}
	}
	return tenants.Membership{}, false
}

// People knows who sent a request that came through the guard for people who
// are signed in.
type People func(r *http.Request) (Person, bool)

// Limit takes one of limit events in any window from the counter of what for
// who, over all nodes; when none is left it says after how long there is.
type Limit func(ctx context.Context, what, who string, limit int, window time.Duration) (ok bool, retryAfter time.Duration)

// Config is everything a Server needs. The first block is required.
type Config struct {
	Issuer    string   // issuer identifier, and the base of all endpoints
	Resources []string // the URL of /mcp under every public URL, the preferred one first
	Store     tenants.Store
	Tokens    Tokens
	Verifier  Verifier
	Pages     *page.Pages
	People    People
	Limit     Limit
	Catalogue *tools.Catalogue

	Documents Documents                    // the reader of client metadata documents; nil: one that reaches public addresses only
	FanOut    func() error                 // why other nodes may not hear of a revocation now; nil: they always do
	Address   func(r *http.Request) string // the client's address; nil: that of the connection
	Limits    Limits                       // zero: DefaultLimits
	Now       func() time.Time
	Rand      io.Reader
	Log       *slog.Logger
}

// Limits bound how often something may be asked for. Hosted clients come for
// many people from few addresses, so those per address are generous.
type Limits struct {
	RegisterPerAddress  int // an hour
	RegisterInAll       int // an hour
	TokenPerAddress     int // a minute
	RefreshPerAgent     int // a minute
	AuthorizePerAddress int // a minute
	DevicePerAddress    int // a minute
	CodesPerPerson      int // user codes typed in ten minutes
}

// DefaultLimits are the limits of a broker.
func DefaultLimits() Limits {
	return Limits{
		RegisterPerAddress: 200, RegisterInAll: 1000, TokenPerAddress: 1200, RefreshPerAgent: 60,
		AuthorizePerAddress: 120, DevicePerAddress: 30, CodesPerPerson: 20,
	}
}

// Server is the authorization server and its pages. It is safe for concurrent
// use.
type Server struct {
	cfg       Config
	log       *slog.Logger
	now       func() time.Time
	resources map[string]bool // canonical
	documents Documents
	pages     *page.Set
	metadata  []byte
}

// New makes a Server.
func New(c Config) (*Server, error) {
	if c.Issuer == "" || len(c.Resources) == 0 || c.Store == nil || c.Tokens == nil || c.Verifier == nil || c.Pages == nil ||
		c.People == nil || c.Limit == nil || c.Catalogue == nil {
		return nil, errors.New("authorization server: issuer, resources, store, tokens, verifier, pages, people, limit and catalogue are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.FanOut == nil {
		c.FanOut = func() error { return nil }
	}
	if c.Address == nil {
		c.Address = func(r *http.Request) string { return r.RemoteAddr }
	}
	if c.Limits == (Limits{}) {
		c.Limits = DefaultLimits()
	}
	s := &Server{cfg: c, log: c.Log, now: c.Now, resources: map[string]bool{}, documents: c.Documents}
	if s.documents == nil {
		s.documents = NewFetcher(FetcherOptions{Now: c.Now})
	}
	for _, r := range c.Resources {
		s.resources[token.CanonicalResource(r)] = true
	}
	var err error
	if s.metadata, err = metadataDocument(c.Issuer); err != nil {
		return nil, err
	}
	if s.pages, err = loadPages(c.Pages); err != nil {
		return nil, fmt.Errorf("pages of the authorization server: %w", err)
	}
	return s, nil
}

// resource is the canonical form of a resource that a client named, the
// preferred one where it named none; false where it is not ours.
func (s *Server) resource(named []string) (string, bool) {
	if len(named) == 0 {
		return token.CanonicalResource(s.cfg.Resources[0]), true
	}
	first := token.CanonicalResource(named[0])
	for _, n := range named[1:] {
		if token.CanonicalResource(n) != first {
			return "", false // a token is for one resource
		}
	}
	return first, s.resources[first]
}
