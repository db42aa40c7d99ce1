package page

import (
	"net/http"
	"net/url"
	"strings"
)

// maxLocal bounds a path with its query. An authorization request is one: its
// client_id and redirect_uri may be URLs of two thousand characters each.
const maxLocal = 8 << 10

// Local is a path on this host. Redirects take nothing else, so no page can be
// made to send people to another site. The zero value is the home page.
type Local struct{ path string }

// Path is a Local known when the program is written, such as "/console/agents".
// It panics for what is none.
func Path(s string) Local {
	l, ok := ParseLocal(s)
	if !ok {
		panic("page: not a local path: " + s)
	}
	return l
}

// ParseLocal reads a path with an optional query that came from outside. It
// refuses whatever a browser could take for another site: //host, /\host,
// schemes, control characters, and the same hidden behind percent signs or dots.
func ParseLocal(s string) (Local, bool) {
	if len(s) > maxLocal || !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") {
		return Local{}, false
	}
	for _, c := range s {
		if c <= ' ' || c == 0x7f || c == '\\' || c >= 0x80 {
			return Local{}, false
		}
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || u.Fragment != "" {
		return Local{}, false
	}
	if strings.Contains(u.Path, "//") || strings.Contains(u.Path, `\`) || strings.Contains(u.Path, "/..") || strings.Contains(u.Path, "/.") {
		return Local{}, false
	}
	return Local{s}, true
}

// String is the path; "/" for the zero value.
func (l Local) String() string {
	if l.path == "" {
		return "/"
	}
	return l.path
}

// With adds a query parameter.
func (l Local) With(key, value string) Local {
	sep := "?"
	if strings.Contains(l.path, "?") {
		sep = "&"
	}
	return Local{l.String() + sep + url.QueryEscape(key) + "=" + url.QueryEscape(value)}
}

// Redirect sends the browser to another page of ours with GET. A request of htmx
// is told so in htmx's way, which loads the whole page.
func Redirect(w http.ResponseWriter, r *http.Request, to Local) {
	if r.Header.Get("HX-Request") == "true" {
		w.Header().Set("HX-Redirect", to.String())
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusSeeOther)
}
