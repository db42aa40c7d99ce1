package activity

import (
	"embed"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/google/uuid"

	"siyuan-broker/broker/consent"
	"siyuan-broker/broker/page"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

//go:embed pages
var pageFiles embed.FS

// Routes of the pages, in the pattern language of net/http.
const (
	ListPattern = "/console/agents/{agent}/activity"
	UndoPattern = "/console/agents/{agent}/undo"
)

// Bounds of a page.
const (
	sittingsShown  = 5 // the home is asked about each
	documentsShown = 10
	previewShown   = 50
)

// Person tells who made a request and which tenant they look at; ok is false for
// somebody who belongs to none.
type Person func(*http.Request) (person, tenant tenants.ID, ok bool)

// Pages show what an agent wrote and take undos. They stand behind page.Guard and
// need somebody who is signed in.
type Pages struct {
	desk   *Desk
	pages  *page.Pages
	set    *page.Set
	person Person
}

// NewPages loads the pages.
func NewPages(d *Desk, p *page.Pages, person Person) (*Pages, error) {
	set, err := p.Load(pageFiles, "pages")
	if err != nil {
		return nil, err
	}
	return &Pages{desk: d, pages: p, set: set, person: person}, nil
}

// Handler shows every page and what it is reached by.
func (p *Pages) Handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET "+ListPattern, p.list)
	m.HandleFunc("GET "+UndoPattern, p.preview)
	m.HandleFunc("POST "+UndoPattern, p.undo)
	return m
}

// subject finds the agent of a request, or answers that there is none.
func (p *Pages) subject(w http.ResponseWriter, r *http.Request) (of subject, ok bool) {
	person, tenant, ok := p.person(r)
	agent, err := uuid.Parse(r.PathValue("agent"))
	if !ok || err != nil {
		p.pages.Error(w, r, http.StatusNotFound)
		return of, false
	}
	of, err = p.desk.subject(r.Context(), tenant, person, agent)
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		p.pages.Error(w, r, http.StatusNotFound)
		return of, false
	case errors.Is(err, ErrClosed):
		p.set.Show(w, r, http.StatusOK, "activity", activityPage{about: describe(of), Problem: "problem.closed"})
		return of, false
	case err != nil:
		p.fail(w, r, err)
		return of, false
	}
	return of, true
}

func (p *Pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	p.desk.cfg.Log.ErrorContext(r.Context(), "activity page failed", "path", r.URL.Path, "error", err)
	p.pages.Error(w, r, http.StatusServiceUnavailable)
}

// list shows the sittings, a few to a page, with their documents as they are now.
func (p *Pages) list(w http.ResponseWriter, r *http.Request) {
	of, ok := p.subject(w, r)
	if !ok {
		return
	}
	view := activityPage{about: describe(of)}
	all, failed := p.desk.changes(r.Context(), of, Choice{}, 1, 1)
	if failed != nil {
		view.Problem = problemOf(failed)
		p.set.Show(w, r, http.StatusOK, "activity", view)
		return
	}
	number, _ := strconv.Atoi(r.URL.Query().Get("page"))
	number = max(1, number)
	from := min((number-1)*sittingsShown, len(all.Sittings))
	to := min(from+sittingsShown, len(all.Sittings))
	if from > 0 {
		view.Later = view.List + "?page=" + strconv.Itoa(number-1)
	}
	if to < len(all.Sittings) {
		view.Earlier = view.List + "?page=" + strconv.Itoa(number+1)
	}
	view.Sittings = make([]sittingView, to-from)
	var asked sync.WaitGroup
	for i, s := range all.Sittings[from:to] {
		asked.Go(func() {
			out, failed := p.desk.changes(r.Context(), of, Choice{Sitting: s.ID}, 1, documentsShown)
			view.Sittings[i] = showSitting(view.Undo, s, out, failed)
		})
	}
	asked.Wait() // what failed stands at its sitting
	p.set.Show(w, r, http.StatusOK, "activity", view)
}

// chosen reads what is to be undone; ok is false for what no page of ours asks for.
func chosen(v url.Values) (c Choice, ok bool) {
	sitting, err := strconv.Atoi(v.Get("sitting"))
	c = Choice{Sitting: sitting, Document: v.Get("document")}
	return c, err == nil && sitting > 0 && (c.Document == "" || contract.IsID(c.Document))
}

// preview shows what an undo would do. It changes nothing.
func (p *Pages) preview(w http.ResponseWriter, r *http.Request) {
	c, good := chosen(r.URL.Query())
	if !good {
		p.pages.Error(w, r, http.StatusNotFound)
		return
	}
	of, ok := p.subject(w, r)
	if !ok {
		return
	}
	view := undoPage{about: describe(of), Choice: c, Request: tenants.NewID()}
	out, failed := p.desk.changes(r.Context(), of, c, 1, previewShown)
	if failed != nil {
		view.Problem = problemOf(failed)
	} else {
		view.take(out)
	}
	p.set.Show(w, r, http.StatusOK, "undo", view)
}

// undo does what the preview showed. Loading the answer again does nothing more.
func (p *Pages) undo(w http.ResponseWriter, r *http.Request) {
	c, good := chosen(r.PostForm)
	request, err := uuid.Parse(r.PostForm.Get("request"))
	if !good || err != nil {
		p.pages.Error(w, r, http.StatusNotFound)
		return
	}
	of, ok := p.subject(w, r)
	if !ok {
		return
	}
	view := resultPage{about: describe(of), Choice: c, Request: request}
	out, err := p.desk.undo(r.Context(), of, c, request)
	failed, told := errors.AsType[*contract.Error](err)
	switch {
	case told:
		view.Problem = problemOf(failed)
		code := contract.CodeOf(failed)
		view.Again = code == contract.OutcomeUnknown || code == contract.ConfirmationRequired
	case errors.Is(err, tenants.ErrTooMany):
		view.Problem = "problem.many"
	case errors.Is(err, consent.ErrGone):
		view.Problem = "problem.gone"
	case err != nil:
		p.fail(w, r, err)
		return
	default:
		view.take(out)
	}
	p.set.Show(w, r, http.StatusOK, "undone", view)
}
