package page

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Set is the pages of one package: their templates and texts.
type Set struct {
	p     *Pages
	texts messages
	pages map[string]map[Lang]*template.Template // by name of the page
}

// source is a template file.
type source struct{ name, text string }

// Load makes a Set of the files in a folder of what a room has embedded:
//
//   - NAME.html is the page NAME. It defines "title" and "main".
//   - NAME.part.html is for all pages of the set; what it defines can be used there.
//   - messages.en.json and messages.zh.json have its texts by key. The frame's
//     own texts (buttons, navigation) can be used as well.
//
// In a template, dot is a *View and so is $; .Data is what the handler gave.
// {{t "key" args…}} is a text in the page's language. Every form with
// method="post" gets its hidden field by itself; a form inside a {{define}} must
// be given the view (or {{template "x" $}}) as its dot. Components are documented
// in frame/components.part.html.
func (p *Pages) Load(room fs.FS, folder string) (*Set, error) {
	files, err := fs.Sub(room, folder)
	if err != nil {
		return nil, err
	}
	texts, err := loadMessages(files)
	if err != nil {
		return nil, err
	}
	for l := range texts {
		for key, text := range p.frame[l] {
			if _, own := texts[l][key]; own {
				return nil, fmt.Errorf("message %q is the frame's own", key)
			}
			texts[l][key] = text
		}
	}
	set := &Set{p: p, texts: texts, pages: map[string]map[Lang]*template.Template{}}
	names, err := fs.Glob(files, "*.html")
	if err != nil {
		return nil, err
	}
	shared := slices.Clone(p.shared)
	var own []source
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		text, err := guardForms(string(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s := source{strings.TrimSuffix(path.Base(name), ".html"), text}
		if strings.HasSuffix(s.name, ".part") {
			shared = append(shared, s)
		} else {
			own = append(own, s)
		}
	}
	for _, s := range own {
		set.pages[s.name] = map[Lang]*template.Template{}
		for _, l := range Langs() {
			if set.pages[s.name][l], err = set.parse(l, append(slices.Clone(shared), s)); err != nil {
				return nil, err
			}
		}
	}
	return set, nil
}

var (
	postForm   = regexp.MustCompile(`(?i)<form\b[^<>]*\bmethod="post"[^<>]*>`)
	anyForm    = regexp.MustCompile(`(?i)<form\b[^>]*>`)
	scripted   = regexp.MustCompile(`(?i)\shx-(post|put|patch|delete)=`)
	ownScript  = regexp.MustCompile(`<script src="\{\{asset "[a-z.]+"\}\}" defer></script>`)
	inlineCode = regexp.MustCompile(`(?i)<script\b|<style\b|\sstyle=|\son[a-z]+=|\shx-on|javascript:`)
)

// guardForms puts the hidden field into every form that changes something, and
// refuses what the Content-Security-Policy would block or what would send
// without the field.
func guardForms(text string) (string, error) {
	if bad := inlineCode.FindString(ownScript.ReplaceAllString(text, "")); bad != "" {
		return "", fmt.Errorf("%q: the pages' policy allows no inline script or style", strings.TrimSpace(bad))
	}
	if bad := scripted.FindString(text); bad != "" {
		return "", fmt.Errorf("%q: put hx-boost on a form instead, which carries the form's hidden field", strings.TrimSpace(bad))
	}
	for _, form := range anyForm.FindAllString(text, -1) {
		if !postForm.MatchString(form) && !strings.Contains(form, `method="get"`) {
			return "", fmt.Errorf(`%s: a form says method="post" or method="get" and has no < or > in its attributes`, form)
		}
	}
	return postForm.ReplaceAllString(text, `${0}{{csrf $$}}`), nil
}

func (s *Set) parse(l Lang, sources []source) (*template.Template, error) {
	t := template.New("").Option("missingkey=zero").Funcs(s.funcs(l))
	for _, src := range sources {
		if _, err := t.New(src.name).Parse(src.text); err != nil {
			return nil, err
		}
	}
	for _, need := range []string{"title", "main"} {
		if t.Lookup(need) == nil {
			return nil, fmt.Errorf("%s.html does not define %q", sources[len(sources)-1].name, need)
		}
	}
	return t, nil
}

func (s *Set) funcs(l Lang) template.FuncMap {
	return template.FuncMap{
		"t": func(key string, args ...any) (string, error) {
			message, ok := s.texts[l][key]
			if !ok {
				return "", fmt.Errorf("no message %q", key)
			}
			return text(message, args...), nil
		},
		"csrf":  csrf,
		"asset": s.p.assets.path,
		"props": props,
		"ago":   func(at time.Time) string { return s.texts.ago(l, at, time.Now()) },
		"langs": Langs,
		"inc":   func(n int) int { return n + 1 },
		"iso":   func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"date":  func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") + " UTC" },
	}
}

// csrf is the hidden field of a form.
func csrf(v *View) template.HTML {
	return template.HTML(`<input type="hidden" name="` + formField + `" value="` + v.form + `">`) //nolint:gosec // base64url
}

// props are the arguments of a component: names and values in turn.
func props(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("props: a name without a value")
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("props: %v is no name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// Names lists the pages of a set.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.pages)) }

// Text is a message of the set in the request's language.
func (s *Set) Text(r *http.Request, key string, args ...any) string {
	return text(s.texts[s.p.LangOf(r)][key], args...)
}

// Show answers with a page. What cannot be rendered is logged and answered 500:
// nobody gets half a page.
func (s *Set) Show(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	s.render(w, r, status, name, "layout", data)
}

// Fragment answers with one template that a page defines, for htmx to put into
// the page that is open.
func (s *Set) Fragment(w http.ResponseWriter, r *http.Request, name, fragment string, data any) {
	s.render(w, r, http.StatusOK, name, fragment, data)
}

func (s *Set) render(w http.ResponseWriter, r *http.Request, status int, name, entry string, data any) {
	var b bytes.Buffer
	if err := s.Execute(&b, s.p.view(w, r, s.texts, data), name, entry); err != nil {
		s.p.opt.Log.Error("page not rendered", "page", name, "path", r.URL.Path, "error", err)
		http.Error(w, "This page could not be shown. The operator finds the reason in the log.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", string(s.p.LangOf(r)))
	h.Add("Vary", "Accept-Language, Cookie")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser went away: nobody is left to be told
}

// Execute renders a template of a page into b: entry is "layout" for the whole
// page or the name of a definition. Tests use it to render every page in every
// language.
func (s *Set) Execute(b *bytes.Buffer, v *View, name, entry string) error {
	t, ok := s.pages[name][v.Lang]
	if !ok {
		return fmt.Errorf("no page %q", name)
	}
	return t.ExecuteTemplate(b, entry, v)
}
