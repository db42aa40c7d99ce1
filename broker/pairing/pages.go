package pairing

import (
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"siyuan-broker/broker/page"
	"siyuan-broker/tenants"
)

//go:embed pages
var pageFiles embed.FS

// ConnectorsPath is where a person's connectors are listed.
const ConnectorsPath = "/console/connectors"

// Pages are what people see of pairing. They stand behind page.Guard and need
// somebody who is signed in.
type Pages struct {
	s      *Service
	pages  *page.Pages
	set    *page.Set
	person func(*http.Request) tenants.ID
	log    *slog.Logger
}

// NewPages makes the pages; person tells who made a request.
func NewPages(s *Service, p *page.Pages, person func(*http.Request) tenants.ID) (*Pages, error) {
	set, err := p.Load(pageFiles, "pages")
	if err != nil {
		return nil, err
	}
	return &Pages{s: s, pages: p, set: set, person: person, log: s.Log}, nil
}

// Handler shows every page and what it is reached by.
func (p *Pages) Handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET "+PagePath, p.askCode)
	m.HandleFunc("POST "+PagePath, p.takeCode)
	m.HandleFunc("GET "+PagePath+"/{id}", p.showMachine)
	m.HandleFunc("POST "+PagePath+"/{id}", p.decide)
	m.HandleFunc("GET "+ConnectorsPath, p.connectors)
	m.HandleFunc("POST "+ConnectorsPath+"/{tenant}/{id}/revoke", p.revoke)
	return m
}

type codeData struct{ Error string }

// askCode never fills in the code, whatever the address says: a person has to
// look at the machine.
func (p *Pages) askCode(w http.ResponseWriter, r *http.Request) {
	p.set.Show(w, r, http.StatusOK, "pair", codeData{})
}

func (p *Pages) takeCode(w http.ResponseWriter, r *http.Request) {
	found, err := p.s.Claim(r.Context(), p.person(r), r.PostForm.Get("code"))
	switch {
	case err == nil:
		page.Redirect(w, r, machinePath(found.ID))
	case errors.Is(err, ErrNoCode):
		p.set.Show(w, r, http.StatusNotFound, "pair", codeData{"pair.wrong"})
	case errors.Is(err, ErrTooManyTries):
		p.set.Show(w, r, http.StatusTooManyRequests, "pair", codeData{"pair.toomany"})
	default:
		p.fail(w, r, err)
	}
}

func machinePath(id tenants.ID) page.Local { return page.Path(PagePath + "/" + id.String()) }

// fail answers what is not the person's doing.
func (p *Pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	p.log.Error("pairing page failed", "path", r.URL.Path, "error", err)
	p.pages.Error(w, r, http.StatusInternalServerError)
}

// back tells what happened on another page.
func (p *Pages) back(w http.ResponseWriter, r *http.Request, kind page.Kind, key, to string) {
	p.pages.Say(w, r, kind, key)
	page.Redirect(w, r, page.Path(to))
}

// machineData is the page that shows a machine and asks where it belongs.
type machineData struct {
	Pairing  tenants.Pairing
	Choices  []Choice
	Several  bool   // tenants to choose from: their names are shown
	Selected string // TENANT/INSTANCE or TENANT/new
	NewName  string
	Error    string
	Instance InstanceChoice // occupied
}

// machine finds the pairing of a request. It answers itself when there is none.
func (p *Pages) machine(w http.ResponseWriter, r *http.Request) (d machineData, ok bool) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		p.pages.Error(w, r, http.StatusNotFound)
		return d, false
	}
	if d.Pairing, err = p.s.Claimed(r.Context(), p.person(r), id); err == nil {
		d.Choices, err = p.s.Choices(r.Context(), p.person(r))
	}
	switch {
	case errors.Is(err, ErrGone):
		p.back(w, r, page.Bad, "pair.gone", PagePath)
		return d, false
	case err != nil:
		p.fail(w, r, err)
		return d, false
	}
	d.Several = len(d.Choices) > 1
	return d, true
}

func (p *Pages) showMachine(w http.ResponseWriter, r *http.Request) {
	d, ok := p.machine(w, r)
	if !ok {
		return
	}
	d.Selected, d.NewName = suggested(d.Choices), d.Pairing.Name
	p.set.Show(w, r, http.StatusOK, "machine", d)
}

// suggested is the place that hardly anybody would not choose: the only
// instance, if it waits for a connector, or a new one where there is none.
func suggested(all []Choice) string {
	if len(all) != 1 {
		return ""
	}
	switch in := all[0].Instances; {
	case len(in) == 0:
		return all[0].Tenant.String() + "/new"
	case len(in) == 1 && len(in[0].Connectors) == 0:
		return all[0].Tenant.String() + "/" + in[0].ID.String()
	}
	return ""
}

// parsePlace reads what was chosen.
func parsePlace(value, newName string) (to Place, ok bool) {
	tenant, instance, _ := strings.Cut(value, "/")
	var err error
	if to.Tenant, err = uuid.Parse(tenant); err != nil {
		return to, false
	}
	if instance == "new" {
		to.NewName = newName
		return to, true
	}
	to.Instance, err = uuid.Parse(instance)
	return to, err == nil && to.Instance != uuid.Nil
}

func (p *Pages) decide(w http.ResponseWriter, r *http.Request) {
	d, ok := p.machine(w, r)
	if !ok {
		return
	}
	if r.PostForm.Get("do") != "approve" {
		p.deny(w, r, d.Pairing.ID)
		return
	}
	d.Selected, d.NewName = r.PostForm.Get("place"), r.PostForm.Get("name")
	to, ok := parsePlace(d.Selected, d.NewName)
	if !ok {
		d.Error = "machine.choose"
		p.set.Show(w, r, http.StatusBadRequest, "machine", d)
		return
	}
	_, err := p.s.Approve(r.Context(), p.person(r), d.Pairing.ID, to, r.PostForm.Get("again") == "yes")
	switch {
	case err == nil:
		p.back(w, r, page.Good, "pair.approved", ConnectorsPath)
	case errors.Is(err, ErrOccupied):
		d.Instance = chosen(d.Choices, to)
		p.set.Show(w, r, http.StatusOK, "occupied", d)
	case errors.Is(err, ErrGone):
		p.back(w, r, page.Bad, "pair.gone", PagePath)
	case errors.Is(err, ErrName):
		d.Error = "machine.badname"
		p.set.Show(w, r, http.StatusConflict, "machine", d)
	case errors.Is(err, ErrLimit):
		d.Error = "machine.limit"
		p.set.Show(w, r, http.StatusConflict, "machine", d)
	case errors.Is(err, ErrNotAllowed):
		d.Error = "machine.notallowed"
		p.set.Show(w, r, http.StatusForbidden, "machine", d)
	default:
		p.fail(w, r, err)
	}
}

func chosen(all []Choice, to Place) InstanceChoice {
	for _, c := range all {
		for _, in := range c.Instances {
			if c.Tenant == to.Tenant && in.ID == to.Instance {
				return in
			}
		}
	}
	return InstanceChoice{}
}

func (p *Pages) deny(w http.ResponseWriter, r *http.Request, id tenants.ID) {
	err := p.s.Deny(r.Context(), p.person(r), id)
	switch {
	case err == nil:
		p.back(w, r, page.Info, "pair.denied", PagePath)
	case errors.Is(err, ErrGone):
		p.back(w, r, page.Bad, "pair.gone", PagePath)
	default:
		p.fail(w, r, err)
	}
}

type listData struct {
	Tenants []Listed
	Several bool
}

func (p *Pages) connectors(w http.ResponseWriter, r *http.Request) {
	list, err := p.s.List(r.Context(), p.person(r))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	p.set.Show(w, r, http.StatusOK, "connectors", listData{list, len(list) > 1})
}

func (p *Pages) revoke(w http.ResponseWriter, r *http.Request) {
	tenant, err := uuid.Parse(r.PathValue("tenant"))
	id, idErr := uuid.Parse(r.PathValue("id"))
	if err != nil || idErr != nil {
		p.pages.Error(w, r, http.StatusNotFound)
		return
	}
	err = p.s.Revoke(r.Context(), p.person(r), tenant, id)
	switch {
	case err == nil:
		p.back(w, r, page.Good, "connectors.revoke.done", ConnectorsPath)
	case errors.Is(err, ErrNotAllowed):
		p.back(w, r, page.Bad, "connectors.revoke.failed", ConnectorsPath)
	default:
		p.fail(w, r, err)
	}
}
