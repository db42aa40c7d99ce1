package console

import (
	"errors"
	"net/http"

	"siyuan-broker/broker/page"
	"siyuan-broker/broker/people"
)

type signInPage struct {
	form
	Next     string
	SignUp   bool
	Provider string // name of the identity provider; empty: none
}

func (c *Console) signInPage(r *http.Request, f form) signInPage {
	p := signInPage{form: f, SignUp: c.People.SignUp == people.SignUpOpen}
	if c.People.OIDC != nil {
		p.Provider = c.People.OIDC.Name
	}
	if to, ok := page.ParseLocal(r.FormValue("next")); ok {
		p.Next = to.String()
	}
	return p
}

// SignIn shows the form.
func (c *Console) SignIn(w http.ResponseWriter, r *http.Request) {
	if _, ok := people.Signed(r); ok {
		page.Redirect(w, r, people.Back(r, HomePath))
		return
	}
	c.set.Show(w, r, http.StatusOK, "signin", c.signInPage(r, formOf(r)))
}

// DoSignIn takes address and password.
func (c *Console) DoSignIn(w http.ResponseWriter, r *http.Request) {
	f := formOf(r, "email")
	err := c.People.SignIn(w, r, f.Values["email"], r.PostFormValue("password"))
	if err == nil {
		page.Redirect(w, r, people.Back(r, HomePath))
		return
	}
	if status, ok := c.refused(w, r, f, err); ok {
		c.set.Show(w, r, status, "signin", c.signInPage(r, f))
	}
}

// SignOut ends the session of this browser.
func (c *Console) SignOut(w http.ResponseWriter, r *http.Request) {
	if err := c.People.SignOut(w, r); err != nil {
		c.failed(w, r, err)
		return
	}
	c.Pages.Say(w, r, page.Good, "signin.out")
	page.Redirect(w, r, c.Pages.SignIn())
}

type signUpPage struct {
	form
	Link     string
	Invited  people.Invitation
	Language page.Lang
	Provider string
}

// SignUp shows the form, for a link or where anybody may.
func (c *Console) SignUp(w http.ResponseWriter, r *http.Request) {
	link := r.URL.Query().Get("link")
	if link == "" && c.People.SignUp != people.SignUpOpen {
		c.set.Show(w, r, http.StatusForbidden, "closed", nil)
		return
	}
	p := signUpPage{form: formOf(r), Link: link, Language: c.Pages.LangOf(r)}
	if c.People.OIDC != nil {
		p.Provider = c.People.OIDC.Name
	}
	if link != "" {
		var err error
		if p.Invited, err = c.People.Invited(r, link); err != nil {
			c.badLink(w, r, err)
			return
		}
	}
	c.set.Show(w, r, http.StatusOK, "signup", p)
}

// DoSignUp makes the person.
func (c *Console) DoSignUp(w http.ResponseWriter, r *http.Request) {
	p := signUpPage{form: formOf(r, "email", "name"), Link: r.PostFormValue("link"), Language: c.Pages.LangOf(r)}
	signedIn, err := c.People.Join(w, r, people.NewPerson{
		Email: p.Values["email"], Name: p.Values["name"], Password: r.PostFormValue("password"), Link: p.Link, Locale: string(p.Language),
	})
	switch {
	case errors.Is(err, people.ErrClosed):
		c.set.Show(w, r, http.StatusForbidden, "closed", nil)
	case errors.Is(err, people.ErrLink):
		c.badLink(w, r, err)
	case err != nil:
		status, ok := c.refused(w, r, p.form, err)
		if !ok {
			return
		}
		if p.Link != "" {
			if p.Invited, err = c.People.Invited(r, p.Link); err != nil {
				c.badLink(w, r, err)
				return
			}
		}
		c.set.Show(w, r, status, "signup", p)
	case signedIn:
		page.Redirect(w, r, HomePath)
	default:
		c.Pages.Say(w, r, page.Good, "signup.done")
		to := c.Pages.SignIn()
		if next := after(p.Link); next != HomePath {
			to = to.With("next", next.String())
		}
		page.Redirect(w, r, to)
	}
}

// badLink answers for a link that leads nowhere, alike for used, expired and
// made-up ones.
func (c *Console) badLink(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, people.ErrTooMany):
		c.Pages.Error(w, r, http.StatusTooManyRequests)
	case errors.Is(err, people.ErrLink):
		c.set.Show(w, r, http.StatusGone, "badlink", nil)
	default:
		c.failed(w, r, err)
	}
}

type resetPage struct {
	form
	Link, Email string
}

// Reset shows the form for a new password.
func (c *Console) Reset(w http.ResponseWriter, r *http.Request) {
	p := resetPage{form: formOf(r), Link: r.URL.Query().Get("link")}
	if p.Link == "" {
		c.set.Show(w, r, http.StatusOK, "forgot", nil)
		return
	}
	var err error
	if p.Email, err = c.People.Resettable(r, p.Link); err != nil {
		c.badLink(w, r, err)
		return
	}
	c.set.Show(w, r, http.StatusOK, "reset", p)
}

// DoReset sets the new password.
func (c *Console) DoReset(w http.ResponseWriter, r *http.Request) {
	p := resetPage{form: formOf(r), Link: r.PostFormValue("link")}
	err := c.People.Reset(w, r, p.Link, r.PostFormValue("password"))
	if err == nil {
		c.Pages.Say(w, r, page.Good, "reset.done")
		page.Redirect(w, r, HomePath)
		return
	}
	if errors.Is(err, people.ErrLink) {
		c.badLink(w, r, err)
		return
	}
	if status, ok := c.refused(w, r, p.form, err); ok {
		if p.Email, err = c.People.Resettable(r, p.Link); err != nil {
			c.badLink(w, r, err)
			return
		}
		c.set.Show(w, r, status, "reset", p)
	}
}

// Enter shows the button of a link that signs in; a script presses it. Looking
// at a link does not use it up, so no program that looks ahead can.
func (c *Console) Enter(w http.ResponseWriter, r *http.Request) {
	c.set.Show(w, r, http.StatusOK, "enter", struct{ Link string }{r.URL.Query().Get("link")})
}

// DoEnter signs in with the link.
func (c *Console) DoEnter(w http.ResponseWriter, r *http.Request) {
	if err := c.People.Enter(w, r, r.PostFormValue("link")); err != nil {
		c.badLink(w, r, err)
		return
	}
	page.Redirect(w, r, HomePath)
}

// Provider sends a person to the identity provider.
func (c *Console) Provider(w http.ResponseWriter, r *http.Request) {
	link := r.URL.Query().Get("link")
	at, err := c.People.AskProvider(w, r, people.Back(r, after(link)), link)
	if errors.Is(err, people.ErrClosed) {
		c.Pages.Error(w, r, http.StatusNotFound)
		return
	}
	if err != nil {
		c.Log.Error("identity provider not reached", "error", err)
		c.set.Show(w, r, http.StatusBadGateway, "provider", "unreachable")
		return
	}
	http.Redirect(w, r, at, http.StatusSeeOther) // the configured provider's own address
}

// ProviderAnswered takes what the identity provider says.
func (c *Console) ProviderAnswered(w http.ResponseWriter, r *http.Request) {
	next, err := c.People.ProviderAnswered(w, r)
	switch {
	case err == nil:
		page.Redirect(w, r, next)
	case errors.Is(err, people.ErrClosed):
		c.Pages.Error(w, r, http.StatusNotFound)
	case errors.Is(err, people.ErrIdentity):
		c.Log.Warn("sign-in by the identity provider refused", "error", err)
		c.set.Show(w, r, http.StatusForbidden, "provider", "refused")
	case errors.Is(err, people.ErrNoAccount):
		c.Log.Info("sign-in by the identity provider refused", "error", err)
		c.set.Show(w, r, http.StatusForbidden, "provider", "unknown")
	default:
		c.badLink(w, r, err)
	}
}
