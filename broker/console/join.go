package console

import (
	"net/http"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/broker/people"
	"siyuan-broker/tenants"
)

// joinPage is an invitation into a tenant. What it leads to is shown only to whom
// it is for; whether that person has an account is not told, because the inviter
// may know as little.
type joinPage struct {
	Link, Email string
	SignUp      bool // an account can be made with the link
	SignIn      string

	SignedIn string // address of who is signed in; empty: nobody
	Fits     bool   // it is the invited one
	Tenant   string
	Role     tenants.Role
	Until    time.Time
}

// Join shows an invitation into a tenant.
func (c *Console) Join(w http.ResponseWriter, r *http.Request) {
	link := r.URL.Query().Get("link")
	inv, err := c.People.InvitedInto(r, link)
	if err != nil {
		c.badLink(w, r, err)
		return
	}
	p := joinPage{Link: link, Email: inv.Email, SignUp: c.People.SignUp != people.SignUpClosed, SignIn: c.Pages.SignIn().With("next", joinAt(link).String()).String()}
	if s, ok := people.Signed(r); ok {
		p.SignedIn, p.Fits = s.User.Email, s.User.Email == inv.Email
	}
	if p.Fits {
		p.Tenant, p.Role, p.Until = inv.Tenant.Name, inv.Role, inv.ExpiresAt
	}
	c.set.Show(w, r, http.StatusOK, "join", p)
}

// DoJoin accepts the invitation. Needs a session.
func (c *Console) DoJoin(w http.ResponseWriter, r *http.Request) {
	s, _ := people.Signed(r)
	if err := c.People.Accept(r, s, r.PostFormValue("link")); err != nil {
		c.badLink(w, r, err)
		return
	}
	c.Pages.Say(w, r, page.Good, "join.done")
	page.Redirect(w, r, HomePath)
}

// joinAt is the page of an invitation into a tenant.
func joinAt(link string) page.Local { return page.Path(people.JoinPath).With("link", link) }

// after is where a link leads once its person has an account.
func after(link string) page.Local {
	if people.JoinsTenant(link) {
		return joinAt(link)
	}
	return HomePath
}
