package broker

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"siyuan-broker/broker/approvals"
	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/console"
	"siyuan-broker/broker/feedback"
	"siyuan-broker/broker/members"
	"siyuan-broker/broker/memory"
	"siyuan-broker/broker/oauth"
	"siyuan-broker/broker/page"
	"siyuan-broker/broker/pairing"
	"siyuan-broker/broker/people"
	"siyuan-broker/broker/settings"
	"siyuan-broker/tenants"
)

// navigation is what everybody who is signed in finds at the top of each page.
func navigation() []page.NavItem {
	return []page.NavItem{
		{Path: console.HomePath, Key: "nav.home"},
		{Path: page.Path(oauth.AgentsPath), Key: "nav.agents"},
		{Path: page.Path(settings.PagePath), Key: "nav.settings"},
		{Path: page.Path(members.PagePath), Key: "nav.people"},
		{Path: page.Path(memory.PagePath), Key: "nav.memory"},
		{Path: page.Path(feedback.PagePath), Key: "nav.feedback"},
		{Path: page.Path(approvals.Path), Key: "nav.approvals"},
		{Path: page.Path(oauth.ConnectPath), Key: "nav.connect"},
		{Path: page.Path(pairing.PagePath), Key: "nav.pair"},
	}
}

// newPages wires what people see. It needs the cluster.
func (b *Broker) newPages() (err error) {
	b.pages, err = page.New(page.Options{PublicURLs: b.cfg.PublicURLs, Nav: navigation(), Paths: console.Paths(), Log: b.log})
	if err != nil {
		return err
	}
	b.people, err = people.New(people.Options{
		Store: b.db, Pages: b.pages, Limit: b.tries, ClientIP: b.cfg.clientIP(), SignUp: people.SignUpMode(b.cfg.SignUp), OIDC: b.cfg.provider(), Now: b.now, Log: b.log,
	})
	if err != nil {
		return err
	}
	b.console, err = console.New(console.Options{Pages: b.pages, People: b.people, Store: b.db, Live: b.live, Pair: page.Path(pairing.PagePath), Connect: page.Path(oauth.ConnectPath), Now: b.now, Log: b.log})
	return err
}

// provider is the configured identity provider; nil when there is none.
func (c *Config) provider() *people.Provider {
	if c.OIDCIssuer == "" {
		return nil
	}
	return &people.Provider{Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: c.OIDCSecret, Name: c.OIDCName, LinkByEmail: c.OIDCLinkByEmail}
}

// open serves a page to everybody, signed to those who are signed in.
func (b *Broker) open(h http.HandlerFunc) echo.HandlerFunc {
	return echo.WrapHandler(b.pages.Guard(b.people.Load(h)))
}

func (b *Broker) signed(h http.HandlerFunc) echo.HandlerFunc {
	return echo.WrapHandler(b.pages.Guard(b.people.Load(b.people.RequireSignedIn(h))))
}

// viewer is who sent a request; false for nobody.
func viewer(r *http.Request) (tenants.Viewer, bool) {
	s, ok := people.Signed(r)
	if !ok {
		return tenants.Viewer{}, false
	}
	v := tenants.Viewer{ID: s.User.ID}
	v.Membership, v.Belongs = s.Tenant()
	return v, true
}

// tries counts over all nodes what people try.
func (b *Broker) tries(ctx context.Context, counter string, limit int, window time.Duration) (bool, time.Duration) {
	return b.cluster.net.Allow(ctx, cluster.LimitKey{Tenant: "console", Agent: counter}, limit, window)
}

// live says what is known of a home right now. A tunnel that ends at another
// node is known to be there, not how it fares.
func (b *Broker) live(ctx context.Context, tenant, instance tenants.ID) console.Live {
	if s, ok := b.tunnel.Hub().Session(tenant.String(), instance.String()); ok {
		return console.Live{Connected: true, Since: s.Since, State: s.Status.State, SiYuanVersion: s.Status.SiYuanVersion, RTT: s.RTT}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	route, err := b.cluster.net.Lookup(ctx, tenant.String(), instance.String())
	return console.Live{Connected: err == nil && route.Node != b.cfg.NodeID}
}

// forBrowsers reports whether a request for a path that is not there comes from
// a person and should be answered with a page.
func forBrowsers(r *http.Request, err error) bool {
	var he *echo.HTTPError
	return errors.As(err, &he) && (he.Code == http.StatusNotFound || he.Code == http.StatusMethodNotAllowed) &&
		r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}
