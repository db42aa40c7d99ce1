package page

import (
	"context"
	"io/fs"
	"net/http"
	"net/url"
)

// Viewer is who looks at a page, as far as its frame shows it. Whoever knows
// sessions puts it into the request's context with WithViewer.
type Viewer struct {
	Name    string // or the e-mail address of who has no name
	Locale  string // of the account; empty: the browser's choice
	Tenant  string // name of the tenant that is shown; empty: none
	Tenants []Choice
}

// Choice is one of the tenants that a viewer can switch to.
type Choice struct {
	ID, Name string
	Current  bool
}

type viewerKey struct{}

// WithViewer marks a request as made by somebody who is signed in.
func WithViewer(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, &v)
}

func viewerOf(r *http.Request) *Viewer {
	v, _ := r.Context().Value(viewerKey{}).(*Viewer)
	return v
}

// View is what templates see as dot.
type View struct {
	Lang   Lang
	Viewer *Viewer // nil: nobody is signed in
	Base   string  // public URL by which the page was reached
	Path   string
	Nav    []NavItem
	Paths  Paths
	Flash  *Flash // nil: none
	Data   any    // of the page

	query url.Values
	form  string
}

// NewView makes a view without a request, for tests of templates.
func NewView(l Lang, viewer *Viewer, data any) *View {
	return &View{Lang: l, Viewer: viewer, Base: "https://notes.example", Path: "/", Data: data, form: "test"}
}

func (p *Pages) view(w http.ResponseWriter, r *http.Request, texts messages, data any) *View {
	return &View{
		Lang: p.LangOf(r), Viewer: viewerOf(r), Base: p.Base(r), Path: r.URL.Path, Nav: p.opt.Nav, Paths: p.opt.Paths,
		Flash: p.takeFlash(w, r, texts), Data: data, query: r.URL.Query(), form: formToken(p.binding(r)),
	}
}

// InLang is the address of this page in another language.
func (v *View) InLang(l Lang) string {
	q := url.Values{}
	for key, values := range v.query {
		q[key] = values
	}
	q.Set("lang", string(l))
	return "?" + q.Encode()
}

// Kind is how a message to the person looks.
type Kind string

// The kinds.
const (
	Good Kind = "good" // something was done
	Info Kind = "info"
	Bad  Kind = "bad" // something was refused
)

// Flash is a message shown once, on the page after a redirect.
type Flash struct {
	Kind Kind
	Key  string // of a message in the set of the page that shows it, or the frame's
}

const flashCookie = "flash"

// Say leaves a message for the next page. Only its key travels, so nobody can
// put words into our mouth.
func (p *Pages) Say(w http.ResponseWriter, r *http.Request, kind Kind, key string) {
	c := p.Cookie(r, flashCookie, string(kind)+"."+key)
	c.MaxAge = 60
	http.SetCookie(w, c)
}

func (p *Pages) takeFlash(w http.ResponseWriter, r *http.Request, texts messages) *Flash {
	v := p.CookieValue(r, flashCookie)
	if v == "" || r.Header.Get("HX-Request") == "true" {
		return nil
	}
	c := p.Cookie(r, flashCookie, "")
	c.MaxAge = -1
	http.SetCookie(w, c)
	for _, k := range []Kind{Good, Info, Bad} {
		if key, ok := cutKind(v, k); ok {
			if _, known := texts[English][key]; known {
				return &Flash{k, key}
			}
		}
	}
	return nil
}

func cutKind(v string, k Kind) (string, bool) {
	if len(v) > len(k)+1 && v[:len(k)+1] == string(k)+"." {
		return v[len(k)+1:], true
	}
	return "", false
}

// Error answers with a page that says what went wrong and what to do next, for
// the statuses the frame has words for; others are shown as 500.
func (p *Pages) Error(w http.ResponseWriter, r *http.Request, status int) {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusMisdirectedRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		status = http.StatusInternalServerError
	}
	p.own.Show(w, r, status, "error", struct{ Status int }{status})
}

// loadFrame reads the layout, the components and the frame's own pages.
func (p *Pages) loadFrame() error {
	files, err := fs.Sub(frameFiles, "frame")
	if err != nil {
		return err
	}
	p.own, err = p.Load(frameFiles, "frame") // its shared files are the frame
	if err != nil {
		return err
	}
	p.frame = p.own.texts
	names, err := fs.Glob(files, "*.part.html")
	if err != nil {
		return err
	}
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		text, err := guardForms(string(b))
		if err != nil {
			return err
		}
		p.shared = append(p.shared, source{name, text})
	}
	return nil
}
