package approvals

import (
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/broker/consent"
	"siyuan-broker/broker/page"
	"siyuan-broker/broker/saying"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

//go:embed pages
var pageFiles embed.FS

// Path is where calls that wait are listed.
const Path = "/console/approvals"

// Person tells who made a request and which tenant they look at; ok is false for
// somebody who belongs to none.
type Person func(*http.Request) (person, tenant tenants.ID, ok bool)

// Pages show what waits, and take the answers. They stand behind page.Guard and
// need somebody who is signed in.
type Pages struct {
	desk   *consent.Desk
	pages  *page.Pages
	set    *page.Set
	says   saying.Sayings
	person Person
	log    *slog.Logger
}

// New loads the pages.
func New(desk *consent.Desk, p *page.Pages, person Person, log *slog.Logger) (*Pages, error) {
	set, err := p.Load(pageFiles, "pages")
	if err != nil {
		return nil, err
	}
	says, err := saying.Load()
	return &Pages{desk: desk, pages: p, set: set, says: says, person: person, log: log}, err
}

// Handler shows every page and what it is reached by.
func (p *Pages) Handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET "+Path, p.list)
	m.HandleFunc("GET "+Path+"/list", p.part)
	m.HandleFunc("GET "+Path+"/{tenant}/{id}", p.one)
	m.HandleFunc("POST "+Path+"/{tenant}/{id}", p.decide)
	return m
}

// call is a call that waits, with its way to its own page: answers are given
// there, because a list that moves under the pointer is no place to agree.
type call struct {
	consent.Pending
	Action  string // tool.action
	Summary string
	Path    string
	Left    int // minutes, at least 1
}

func (p *Pages) shown(r *http.Request, tenant tenants.ID, a consent.Pending) call {
	c := call{Pending: a, Action: a.Tool + "." + a.Approval.Action, Path: Path + "/" + tenant.String() + "/" + a.ID.String()}
	if action, ok := tools.New().Action(a.Tool, a.Approval.Action); ok {
		c.Summary = p.says.Action(action, p.pages.LangOf(r))
	}
	c.Left = max(1, int(time.Until(a.ExpiresAt).Round(time.Minute)/time.Minute))
	return c
}

func (p *Pages) waiting(w http.ResponseWriter, r *http.Request) (all []call, ok bool) {
	person, tenant, ok := p.person(r)
	if !ok {
		return nil, true
	}
	pending, err := p.desk.Pending(r.Context(), tenant, person)
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		p.fail(w, r, err)
		return nil, false
	}
	for _, a := range pending {
		all = append(all, p.shown(r, tenant, a))
	}
	return all, true
}

func (p *Pages) list(w http.ResponseWriter, r *http.Request) {
	if all, ok := p.waiting(w, r); ok {
		p.set.Show(w, r, http.StatusOK, "approvals", all)
	}
}

// part is the list alone, which refreshes itself.
func (p *Pages) part(w http.ResponseWriter, r *http.Request) {
	if all, ok := p.waiting(w, r); ok {
		p.set.Fragment(w, r, "approvals", "waiting", all)
	}
}

// named are the ids in the path.
func named(r *http.Request) (tenant, id tenants.ID, ok bool) {
	tenant, err := uuid.Parse(r.PathValue("tenant"))
	id, idErr := uuid.Parse(r.PathValue("id"))
	return tenant, id, err == nil && idErr == nil
}

func (p *Pages) one(w http.ResponseWriter, r *http.Request) {
	person, _, _ := p.person(r)
	tenant, id, ok := named(r)
	if !ok {
		p.pages.Error(w, r, http.StatusNotFound)
		return
	}
	a, err := p.desk.One(r.Context(), tenant, id, person)
	switch {
	case errors.Is(err, consent.ErrGone):
		p.back(w, r, page.Bad, "approvals.gone")
	case err != nil:
		p.fail(w, r, err)
	default:
		p.set.Show(w, r, http.StatusOK, "approval", p.shown(r, tenant, a))
	}
}

func (p *Pages) decide(w http.ResponseWriter, r *http.Request) {
	person, _, _ := p.person(r)
	tenant, id, ok := named(r)
	answer := r.PostForm.Get("do")
	if !ok || answer != "approve" && answer != "deny" {
		p.pages.Error(w, r, http.StatusNotFound)
		return
	}
	err := p.desk.Decide(r.Context(), tenant, id, person, answer == "approve")
	switch {
	case errors.Is(err, consent.ErrGone):
		p.back(w, r, page.Bad, "approvals.gone")
	case err != nil:
		p.fail(w, r, err)
	case answer == "approve":
		p.back(w, r, page.Good, "approvals.approved")
	default:
		p.back(w, r, page.Info, "approvals.denied")
	}
}

// back tells what happened on the list.
func (p *Pages) back(w http.ResponseWriter, r *http.Request, kind page.Kind, key string) {
	p.pages.Say(w, r, kind, key)
	page.Redirect(w, r, page.Path(Path))
}

func (p *Pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	p.log.Error("approvals page failed", "path", r.URL.Path, "error", err)
	p.pages.Error(w, r, http.StatusServiceUnavailable)
}
