package members

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

//go:embed pages
var files embed.FS

// Paths of the page and its forms.
const (
	PagePath       = "/console/people"
	RolePath       = "/console/people/role"
	RemovePath     = "/console/people/remove"
	LeavePath      = "/console/people/leave"
	InvitePath     = "/console/people/invite"
	WithdrawPath   = "/console/people/withdraw"
	TeamPath       = "/console/people/team"
	TeamSavePath   = "/console/people/team/save"
	TeamDeletePath = "/console/people/team/delete"
	SharePath      = "/console/people/share"
	UnsharePath    = "/console/people/unshare"
)

// Store is the part of tenants.Store that the page needs.
type Store interface {
	In(ctx context.Context, tenant tenants.ID, fn func(tenants.Tx) error) error
}

// Options of New.
type Options struct {
	Pages     *page.Pages
	Store     Store
	Catalogue *tools.Catalogue
	// Viewer reports false when nobody is signed in.
	Viewer func(r *http.Request) (tenants.Viewer, bool)
	// Invite makes an invitation and its link, which starts with base.
	Invite func(base string, tenant tenants.ID, email string, role tenants.Role, by tenants.ID, now time.Time) (tenants.Invitation, string)
	// Limit takes one of limit tries from a counter over a window.
	Limit func(ctx context.Context, counter string, limit int, window time.Duration) (ok bool, retryAfter time.Duration)
	// Closed says that accounts are made by the operator only.
	Closed bool
	Home   page.Local // where somebody goes who left
	Now    func() time.Time
	Log    *slog.Logger
}

// Page shows and changes who belongs to a tenant. Its handlers must stand behind
// people.RequireSignedIn.
type Page struct {
	opt Options
	set *page.Set
}

// New loads the page.
func New(o Options) (*Page, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	set, err := load(o.Pages)
	return &Page{opt: o, set: set}, err
}

func load(p *page.Pages) (*page.Set, error) { return p.Load(files, "pages") }

// view is the page. Home is nil while the tenant has no workspace; Mine is for
// those who do not manage, everything else for those who do.
type view struct {
	Belongs, Manages bool
	Closed           bool
	Tenant           string
	Role             tenants.Role // of the viewer
	Grants           []tenants.Role

	Members     []member
	Invitations []invitation
	Teams       []team
	Homes       []choice
	Home        *home
	Levels      []contract.Level // that a share can have

	Mine []mine
}

type member struct {
	ID          tenants.ID
	Name, Email string
	Role        tenants.Role
	Since       time.Time
	Me          bool
	Changes     bool // the viewer may change and remove them
}

// Called is how to speak of the member.
func (m member) Called() string {
	if m.Name != "" {
		return m.Name
	}
	return m.Email
}

type invitation struct {
	ID    tenants.ID
	Email string
	Role  tenants.Role
	By    string // empty: the operator
	Until time.Time
}

type team struct {
	ID      tenants.ID
	Name    string
	Count   int
	Members []teamMember // all members of the tenant
}

type teamMember struct {
	ID     tenants.ID
	Called string
	In     bool
}

type choice struct {
	ID      tenants.ID
	Name    string
	Current bool
}

// home is one workspace with what is shared of it.
type home struct {
	ID        tenants.ID
	Name      string
	Notebooks []tenants.Notebook
	Shares    []share
	Receivers int // members and teams that something can be shared with
	People    []member
}

type share struct {
	ID       tenants.ID
	Notebook string // its name, or its id where the home does not report it
	With     string
	Team     bool
	Level    contract.Level
	Manages  bool // of a member whose role sees every notebook anyway
}

// mine is a workspace with what a plain member has of it.
type mine struct {
	Name      string
	Notebooks []shared
}

type shared struct {
	Name  string
	Level contract.Level // what agents of the member get at most
}

// Show is the page. Needs a session.
func (p *Page) Show(w http.ResponseWriter, r *http.Request) {
	who, ok := p.opt.Viewer(r)
	if !ok {
		p.opt.Pages.Error(w, r, http.StatusForbidden)
		return
	}
	v := view{Belongs: who.Belongs, Tenant: who.Membership.TenantName, Closed: p.opt.Closed}
	if who.Belongs {
		err := p.opt.Store.In(r.Context(), who.Membership.TenantID, func(tx tenants.Tx) error {
			return p.fill(r, tx, &v, who.ID)
		})
		if errors.Is(err, tenants.ErrNotFound) { // no longer a member
			p.opt.Pages.Error(w, r, http.StatusNotFound)
			return
		}
		if err != nil {
			p.failed(w, r, err)
			return
		}
	}
	p.set.Show(w, r, http.StatusOK, "people", v)
}

// fill reads what the viewer may see; the role that decides is the store's.
func (p *Page) fill(r *http.Request, tx tenants.Tx, v *view, me tenants.ID) error {
	ctx := r.Context()
	m, err := tx.Member(ctx, me)
	if err != nil {
		return err
	}
	v.Role, v.Manages = m.Role, m.Role.Manages()
	if !v.Manages {
		v.Mine, err = p.mine(ctx, tx, me)
		return err
	}
	return p.manage(r, tx, v, me)
}

func (p *Page) failed(w http.ResponseWriter, r *http.Request, err error) {
	p.opt.Log.Error("page failed", "path", r.URL.Path, "error", err)
	p.opt.Pages.Error(w, r, http.StatusServiceUnavailable)
}
