package console

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/broker/people"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

//go:embed pages
var files embed.FS

// Live is what is known of an instance's home right now.
type Live struct {
	Connected     bool
	Since         time.Time          // of the connection
	State         contract.HomeState // of SiYuan; empty until reported
	SiYuanVersion string
	RTT           time.Duration // 0: not measured, or the tunnel ends at another node
}

// Options of Console.
type Options struct {
	Pages  *page.Pages
	People *people.People
	Store  tenants.Store
	Live   func(ctx context.Context, tenant, instance tenants.ID) Live
	// Pair is the page where a connector is paired, Connect the one that says how
	// agents connect; the zero value where there is none yet.
	Pair, Connect page.Local
	Now           func() time.Time
	Log           *slog.Logger
}

// Console has a handler for every page. Those with a session in their comment
// must stand behind people.RequireSignedIn.
type Console struct {
	Options
	set *page.Set
}

// HomePath is the start page of those who are signed in.
var HomePath = page.Path("/console")

// Paths are the pages the frame leads to.
func Paths() page.Paths {
	return page.Paths{
		Home: HomePath, Account: page.Path("/console/account"), SignIn: page.Path("/console/signin"),
		SignOut: page.Path("/console/signout"), SwitchTenant: page.Path("/console/tenant"),
	}
}

// New loads the pages.
func New(o Options) (*Console, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	set, err := load(o.Pages)
	return &Console{Options: o, set: set}, err
}

func load(p *page.Pages) (*page.Set, error) { return p.Load(files, "pages") }

// form is what a form's page shows when it comes back: what was typed, and what
// is wrong with it, as keys of messages by field. "" is about the whole form.
type form struct {
	Values map[string]string
	Wrong  map[string]string
}

func formOf(r *http.Request, fields ...string) form {
	f := form{Values: map[string]string{}, Wrong: map[string]string{}}
	for _, name := range fields {
		f.Values[name] = r.PostFormValue(name)
	}
	return f
}

// refused puts what people said into the form, or answers with an error page and
// reports false. Nothing of a person's input is lost either way: passwords are
// typed again.
func (c *Console) refused(w http.ResponseWriter, r *http.Request, f form, err error) (status int, ok bool) {
	field, key := "", ""
	switch {
	case errors.Is(err, people.ErrTooMany):
		c.Pages.Error(w, r, http.StatusTooManyRequests)
		return 0, false
	case errors.Is(err, people.ErrWrong):
		key = "wrong.pair"
	case errors.Is(err, people.ErrShort):
		field, key = "password", "wrong.short"
	case errors.Is(err, people.ErrLong):
		field, key = "password", "wrong.long"
	case errors.Is(err, people.ErrCommon):
		field, key = "password", "wrong.common"
	case errors.Is(err, tenants.ErrInvalid):
		field, key = "email", "wrong.email"
	case errors.Is(err, tenants.ErrConflict):
		field, key = "email", "wrong.taken"
	default:
		c.failed(w, r, err)
		return 0, false
	}
	f.Wrong[field] = key
	return http.StatusUnprocessableEntity, true
}

// failed answers for what is not the person's fault.
func (c *Console) failed(w http.ResponseWriter, r *http.Request, err error) {
	c.Log.Error("page failed", "path", r.URL.Path, "error", err)
	c.Pages.Error(w, r, http.StatusServiceUnavailable)
}

// Welcome tells somebody who opened the address where they are; those who are
// signed in go home.
func (c *Console) Welcome(w http.ResponseWriter, r *http.Request) {
	if _, ok := people.Signed(r); ok {
		page.Redirect(w, r, HomePath)
		return
	}
	c.set.Show(w, r, http.StatusOK, "welcome", struct {
		MCP    string
		SignUp bool
	}{c.Pages.Base(r) + "/mcp", c.People.SignUp == people.SignUpOpen})
}

// Missing answers for paths where nothing is.
func (c *Console) Missing(w http.ResponseWriter, r *http.Request) {
	c.Pages.Error(w, r, http.StatusNotFound)
}
