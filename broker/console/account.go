package console

import (
	"net/http"

	"github.com/google/uuid"

	"siyuan-broker/broker/page"
	"siyuan-broker/broker/people"
)

type accountPage struct {
	form
	Session people.Session
	Locale  string
}

func (c *Console) showAccount(w http.ResponseWriter, r *http.Request, status int, f form) {
	s, _ := people.Signed(r)
	c.set.Show(w, r, status, "account", accountPage{form: f, Session: s, Locale: s.User.Locale})
}

// Account shows the person's account. Needs a session.
func (c *Console) Account(w http.ResponseWriter, r *http.Request) {
	c.showAccount(w, r, http.StatusOK, formOf(r))
}

var accountPath = page.Path("/console/account")

// DoProfile changes name and language. Needs a session.
func (c *Console) DoProfile(w http.ResponseWriter, r *http.Request) {
	s, _ := people.Signed(r)
	locale := r.PostFormValue("locale")
	if locale != "" && locale != string(page.English) && locale != string(page.Chinese) {
		c.Pages.Error(w, r, http.StatusBadRequest)
		return
	}
	if err := c.People.UpdateProfile(r.Context(), s, r.PostFormValue("name"), locale); err != nil {
		c.failed(w, r, err)
		return
	}
	c.Pages.RememberLang(w, r, locale)
	c.Pages.Say(w, r, page.Good, "account.saved")
	page.Redirect(w, r, accountPath)
}

// DoPassword changes the password. Needs a session.
func (c *Console) DoPassword(w http.ResponseWriter, r *http.Request) {
	s, _ := people.Signed(r)
	f := formOf(r)
	err := c.People.ChangePassword(r, s, r.PostFormValue("old"), r.PostFormValue("password"))
	if err == nil {
		c.Pages.Say(w, r, page.Good, "account.password.done")
		page.Redirect(w, r, accountPath)
		return
	}
	status, ok := c.refused(w, r, f, err)
	if !ok {
		return
	}
	if f.Wrong[""] == "wrong.pair" {
		f.Wrong = map[string]string{"old": "wrong.old"}
	}
	c.showAccount(w, r, status, f)
}

// DoSignOutEverywhere ends the person's sessions in other browsers. Needs a
// session.
func (c *Console) DoSignOutEverywhere(w http.ResponseWriter, r *http.Request) {
	s, _ := people.Signed(r)
	if err := c.People.SignOutEverywhere(r.Context(), s); err != nil {
		c.failed(w, r, err)
		return
	}
	c.Pages.Say(w, r, page.Good, "account.everywhere.done")
	page.Redirect(w, r, accountPath)
}

// DoTenant switches to another of the person's tenants. Needs a session.
func (c *Console) DoTenant(w http.ResponseWriter, r *http.Request) {
	s, _ := people.Signed(r)
	id, err := uuid.Parse(r.PostFormValue("tenant"))
	if err != nil {
		c.Pages.Error(w, r, http.StatusNotFound)
		return
	}
	if _, ok := s.Member(id); !ok {
		c.Pages.Error(w, r, http.StatusNotFound)
		return
	}
	if err := c.People.ShowTenant(r.Context(), s, id); err != nil {
		c.failed(w, r, err)
		return
	}
	page.Redirect(w, r, HomePath)
}
