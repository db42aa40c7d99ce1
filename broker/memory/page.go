package memory

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"siyuan-broker/broker/page"
	"siyuan-broker/tenants"
)

//go:embed pages
var files embed.FS

// Paths of the page and its forms.
const (
	PagePath  = "/console/memory"
	ClearPath = "/console/memory/clear"
	RulesPath = "/console/memory/rules"
)

// PageOptions of Page. Viewer reports false when nobody is signed in.
type PageOptions struct {
	Pages  *page.Pages
	Store  Store
	Viewer func(r *http.Request) (tenants.Viewer, bool)
	Log    *slog.Logger
}

// Page shows people what their agents remember, lets them clear it, and takes
// their rules. Its handlers must stand behind people.RequireSignedIn.
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

type memoryPage struct {
	Belongs  bool
	Tenant   string
	Manages  bool
	MaxRules int
	Homes    []remembering
}

// remembering is a workspace with what the person's agents keep about it.
type remembering struct {
	ID       tenants.ID
	Name     string
	Versions []version // the newest first
	Rules    tenants.Rules
}

type version struct {
	Number int64
	Text   string
	Agent  string // empty: it is gone
	At     time.Time
}

// Show lists the person's workspaces. Needs a session.
func (p *Page) Show(w http.ResponseWriter, r *http.Request) {
	who, ok := p.opt.Viewer(r)
	if !ok {
		p.opt.Pages.Error(w, r, http.StatusForbidden)
		return
	}
	view := memoryPage{Belongs: who.Belongs, Tenant: who.Membership.TenantName, Manages: who.Membership.Role.Manages(), MaxRules: tenants.MaxRules}
	if who.Belongs {
		err := p.opt.Store.In(r.Context(), who.Membership.TenantID, func(tx tenants.Tx) (err error) {
			view.Homes, err = homes(r.Context(), tx, who)
			return err
		})
		if err != nil {
			p.failed(w, r, err)
			return
		}
	}
	p.set.Show(w, r, http.StatusOK, "memory", view)
}

// homes are the workspaces in which the person has agents, and all for those who
// manage the tenant.
func homes(ctx context.Context, tx tenants.Tx, who tenants.Viewer) ([]remembering, error) {
	instances, err := tx.Instances(ctx)
	if err != nil {
		return nil, err
	}
	agents, err := tx.Agents(ctx, tenants.AgentFilter{MemberID: who.ID})
	if err != nil {
		return nil, err
	}
	names := map[tenants.ID]string{}
	for _, a := range agents {
		names[a.ID] = a.Name
	}
	var list []remembering
	for _, in := range instances {
		uses := slices.ContainsFunc(agents, func(a tenants.Agent) bool { return a.InstanceID == in.ID })
		if !uses && !who.Membership.Role.Manages() {
			continue
		}
		h := remembering{ID: in.ID, Name: in.Name}
		kept, err := tx.Memories(ctx, in.ID, who.ID)
		if err != nil {
			return nil, err
		}
		for _, m := range kept {
			h.Versions = append(h.Versions, version{m.Version, m.Text, names[m.AgentID], m.WrittenAt})
		}
		if h.Rules, err = tx.RulesFor(ctx, in.ID, who.ID); err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}

// Clear forgets what the person's agents remember of a workspace, all versions of
// it. Needs a session.
func (p *Page) Clear(w http.ResponseWriter, r *http.Request) {
	p.change(w, r, "memory.cleared", func(ctx context.Context, tx tenants.Tx, who tenants.Viewer, instance tenants.ID) error {
		if err := tx.Forget(ctx, instance, who.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "member", ActorID: who.ID, Verb: "memory.clear", Object: "instance:" + instance.String()})
	})
}

// SaveRules changes the person's own rules, or for owners and admins those for
// everybody's agents. Needs a session.
func (p *Page) SaveRules(w http.ResponseWriter, r *http.Request) {
	text := strings.TrimSpace(strings.ReplaceAll(r.PostFormValue("text"), "\r\n", "\n"))
	all := r.PostFormValue("for") == "all"
	if utf8.RuneCountInString(text) > tenants.MaxRules || strings.ContainsRune(text, 0) {
		p.opt.Pages.Error(w, r, http.StatusBadRequest)
		return
	}
	p.change(w, r, "memory.saved", func(ctx context.Context, tx tenants.Tx, who tenants.Viewer, instance tenants.ID) error {
		member, object := who.ID, "instance:"+instance.String()
		if all {
			m, err := tx.Member(ctx, who.ID) // the role is read here, where it decides
			if err != nil {
				return err
			}
			if !m.Role.Manages() {
				return tenants.ErrNotFound
			}
			member, object = tenants.ID{}, object+" all"
		}
		if err := tx.SetRules(ctx, instance, member, text); err != nil {
			return err
		}
		return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "member", ActorID: who.ID, Verb: "rules.set", Object: object})
	})
}

// change runs what a form asks for and goes back to the page.
func (p *Page) change(w http.ResponseWriter, r *http.Request, done string, fn func(context.Context, tenants.Tx, tenants.Viewer, tenants.ID) error) {
	who, ok := p.opt.Viewer(r)
	instance, malformed := uuid.Parse(r.PostFormValue("instance"))
	if !ok || !who.Belongs || malformed != nil {
		p.opt.Pages.Error(w, r, http.StatusNotFound)
		return
	}
	err := p.opt.Store.In(r.Context(), who.Membership.TenantID, func(tx tenants.Tx) error {
		if _, err := tx.Instance(r.Context(), instance); err != nil {
			return err
		}
		return fn(r.Context(), tx, who, instance)
	})
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		p.opt.Pages.Error(w, r, http.StatusNotFound)
	case err != nil:
		p.failed(w, r, err)
	default:
		p.opt.Pages.Say(w, r, page.Good, done)
		page.Redirect(w, r, page.Path(PagePath))
	}
}

func (p *Page) failed(w http.ResponseWriter, r *http.Request, err error) {
	p.opt.Log.Error("page failed", "path", r.URL.Path, "error", err)
	p.opt.Pages.Error(w, r, http.StatusServiceUnavailable)
}
