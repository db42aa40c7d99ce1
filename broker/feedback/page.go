package feedback

import (
	"embed"
	"errors"
	"log/slog"
	"net/http"

	"github.com/google/uuid"

	"siyuan-broker/broker/page"
	"siyuan-broker/tenants"
)

//go:embed pages
var files embed.FS

// Paths of the page and its form.
const (
	PagePath   = "/console/feedback"
	DeletePath = "/console/feedback/delete"
)

// PageOptions of Page. Viewer reports false when nobody is signed in.
type PageOptions struct {
	Pages  *page.Pages
	Store  Store
	Viewer func(r *http.Request) (tenants.Viewer, bool)
	Log    *slog.Logger
}

// Page shows a tenant's owners and admins what agents said about this service,
// and lets them delete it. Its handlers must stand behind people.RequireSignedIn.
type Page struct {
	opt PageOptions
	set *page.Set
}

// NewPage loads the page.
func NewPage(o PageOptions) (*Page, error) {
	set, err := load(o.Pages)
	return &Page{o, set}, err
}

func load(p *page.Pages) (*page.Set, error) { return p.Load(files, "pages") }

type feedbackPage struct {
	Manages bool
	Tenant  string
	All     []tenants.Feedback // the newest first
}

// Show lists the feedback. Needs a session.
func (p *Page) Show(w http.ResponseWriter, r *http.Request) {
	who, ok := p.opt.Viewer(r)
	if !ok {
		p.opt.Pages.Error(w, r, http.StatusForbidden)
		return
	}
	view := feedbackPage{Manages: who.Belongs && who.Membership.Role.Manages(), Tenant: who.Membership.TenantName}
	if view.Manages {
		err := p.opt.Store.In(r.Context(), who.Membership.TenantID, func(tx tenants.Tx) (err error) {
			view.All, err = tx.Feedback(r.Context(), tenants.MaxFeedback)
			return err
		})
		if err != nil {
			p.failed(w, r, err)
			return
		}
	}
	p.set.Show(w, r, http.StatusOK, "feedback", view)
}

// Delete takes one entry away. Needs a session.
func (p *Page) Delete(w http.ResponseWriter, r *http.Request) {
	who, ok := p.opt.Viewer(r)
	id, malformed := uuid.Parse(r.PostFormValue("id"))
	if !ok || !who.Belongs || malformed != nil {
		p.opt.Pages.Error(w, r, http.StatusNotFound)
		return
	}
	err := p.opt.Store.In(r.Context(), who.Membership.TenantID, func(tx tenants.Tx) error {
		m, err := tx.Member(r.Context(), who.ID) // the role is read here, where it decides
		if err != nil {
			return err
		}
		if !m.Role.Manages() {
			return tenants.ErrNotFound
		}
		if err := tx.DeleteFeedback(r.Context(), id); err != nil {
			return err
		}
		return tx.Audit(r.Context(), tenants.AuditEntry{ActorKind: "member", ActorID: who.ID, Verb: "feedback.delete", Object: "feedback:" + id.String()})
	})
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		p.opt.Pages.Error(w, r, http.StatusNotFound)
	case err != nil:
		p.failed(w, r, err)
	default:
		p.opt.Pages.Say(w, r, page.Good, "feedback.deleted")
		page.Redirect(w, r, page.Path(PagePath))
	}
}

func (p *Page) failed(w http.ResponseWriter, r *http.Request, err error) {
	p.opt.Log.Error("page failed", "path", r.URL.Path, "error", err)
	p.opt.Pages.Error(w, r, http.StatusServiceUnavailable)
}
