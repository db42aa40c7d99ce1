package page

import (
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
)

//go:embed frame
var frameFiles embed.FS

// Options of Pages.
type Options struct {
	// PublicURLs are the base URLs by which people may come, the main one first.
	// Every other Host is answered 421.
	PublicURLs []string
	// Nav are the entries of the navigation for those who are signed in.
	Nav   []NavItem
	Paths Paths
	Log   *slog.Logger // nil: none
}

// Paths are the pages that the frame leads to.
type Paths struct {
	Home, Account, SignIn Local
	SignOut               Local // takes a form
	SwitchTenant          Local // takes a form with the field "tenant"
}

// NavItem is an entry of the navigation: a path and the key of its message.
type NavItem struct {
	Path Local
	Key  string
}

// Pages renders the pages of all sets. It is safe for concurrent use.
type Pages struct {
	opt    Options
	hosts  map[string]*url.URL // by lower-case host
	cross  *http.CrossOriginProtection
	frame  messages
	shared []source // templates of the layout and the components
	assets *assets
	own    *Set // the frame's own pages: errors
}

// New makes Pages for the given public URLs, which must be valid.
func New(o Options) (*Pages, error) {
	if len(o.PublicURLs) == 0 {
		return nil, errors.New("pages need a public URL")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Pages{opt: o, hosts: map[string]*url.URL{}, cross: http.NewCrossOriginProtection()}
	for _, raw := range o.PublicURLs {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("public URL %q: not an absolute URL", raw)
		}
		p.hosts[strings.ToLower(u.Host)] = u
	}
	var err error
	if p.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if err = p.loadFrame(); err != nil {
		return nil, fmt.Errorf("the frame of all pages: %w", err)
	}
	return p, nil
}

// SignIn is the page where people sign in.
func (p *Pages) SignIn() Local { return p.opt.Paths.SignIn }

// Base is the public URL by which a request came, without a slash at its end;
// the main one if its host is none of them.
func (p *Pages) Base(r *http.Request) string {
	if u, ok := p.hosts[strings.ToLower(r.Host)]; ok {
		return strings.TrimRight(u.String(), "/")
	}
	return strings.TrimRight(p.opt.PublicURLs[0], "/")
}

// Known reports whether a request came to one of the public hosts.
func (p *Pages) Known(r *http.Request) bool {
	_, ok := p.hosts[strings.ToLower(r.Host)]
	return ok
}

// Secure reports whether a request came by an https URL of ours. What decides
// is the configured URL of its host, never a header that a client could set.
func (p *Pages) Secure(r *http.Request) bool {
	return strings.HasPrefix(p.Base(r), "https://")
}

// Cookie makes a cookie of the kind all of ours have: for this host only, out
// of reach of scripts, not sent along by other sites' forms. Over https its name
// gets the prefix __Host-, so that no other host can set it.
func (p *Pages) Cookie(r *http.Request, name, value string) *http.Cookie {
	secure := p.Secure(r)
	return &http.Cookie{Name: cookieName(secure, name), Value: value, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode}
}

// CookieValue reads a cookie that Cookie named; "" when there is none.
func (p *Pages) CookieValue(r *http.Request, name string) string {
	c, err := r.Cookie(cookieName(p.Secure(r), name))
	if err != nil {
		return ""
	}
	return c.Value
}

// SessionCookie is the name of the cookie of people's sessions. Forms are bound
// to its value, so it is known here.
const SessionCookie = "session"

func cookieName(secure bool, name string) string {
	switch {
	case name == SessionCookie && secure:
		return "__Host-siyuan"
	case name == SessionCookie:
		return "siyuan_session"
	case secure:
		return "__Host-siyuan-" + name
	}
	return "siyuan_" + name
}
