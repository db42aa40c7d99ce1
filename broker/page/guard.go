package page

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"
)

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

// formField is the hidden field of every form.
const formField = "_form"

// visitCookie holds a random value for people who are not signed in, so that
// their forms are bound to their browser too.
const visitCookie = "visit"

// Guard is what every page stands behind. It answers 421 for hosts that are not
// ours, sets the security headers, and lets a request that changes something
// through only from a form that we rendered for this very browser and session:
// browsers tell where a request comes from (Sec-Fetch-Site, Origin), and the
// form carries a value that other sites can neither read nor guess.
func (p *Pages) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secureHeaders(w.Header(), p.Secure(r))
		if !p.Known(r) {
			p.Error(w, r, http.StatusMisdirectedRequest)
			return
		}
		if lang, ok := parseLang(r.URL.Query().Get("lang")); ok {
			p.rememberLang(w, r, lang)
		}
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			r = p.withBinding(w, r)
		case http.MethodPost:
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			if !p.ours(r) {
				p.Error(w, r, http.StatusForbidden)
				return
			}
			if !readableForm(r) {
				p.Error(w, r, http.StatusBadRequest)
				return
			}
			r = p.withBinding(w, r)
		default:
			w.Header().Set("Allow", "GET, HEAD, POST")
			p.Error(w, r, http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ours reports whether a POST comes from a form that we rendered for this
// browser and session.
func (p *Pages) ours(r *http.Request) bool {
	if p.cross.Check(r) != nil {
		return false
	}
	bound := p.binding(r)
	if bound == "" || r.ParseForm() != nil {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(r.PostForm.Get(formField)), []byte(formToken(bound))) == 1
}

// readableForm reports whether all fields are text that can be stored and shown.
func readableForm(r *http.Request) bool {
	for _, values := range r.PostForm {
		for _, v := range values {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return false
			}
		}
	}
	return true
}

// binding is the secret of this browser's session, or of its visit.
func (p *Pages) binding(r *http.Request) string {
	if v, ok := r.Context().Value(bindingKey{}).(string); ok {
		return v
	}
	if v := p.CookieValue(r, SessionCookie); v != "" {
		return v
	}
	return p.CookieValue(r, visitCookie)
}

type bindingKey struct{}

// withBinding makes sure that forms rendered in answer to r can be bound.
func (p *Pages) withBinding(w http.ResponseWriter, r *http.Request) *http.Request {
	v := p.binding(r)
	if v == "" {
		v = rand.Text()
		http.SetCookie(w, p.Cookie(r, visitCookie, v))
	}
	return r.WithContext(context.WithValue(r.Context(), bindingKey{}, v))
}

// formToken is what a form carries: derived from the binding, one way, so that a
// page's text does not give the session away.
func formToken(binding string) string {
	sum := sha256.Sum256([]byte("siyuan-broker form\x00" + binding))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// policy is the Content-Security-Policy of every page. Nothing inline runs.
func policy(formAction string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"form-action 'self'" + formAction + "; base-uri 'none'; frame-ancestors 'none'"
}

func secureHeaders(h http.Header, secure bool) {
	h.Set("Content-Security-Policy", policy(""))
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // not no-referrer: browsers would send our own forms with Origin: null
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// AllowFormTo lets the forms of this answer end, by redirects, also at other
// origins ("https://client.example"), any origin of a scheme ("https:") or a
// private scheme ("cursor:"): browsers hold form-action against every hop. If one
// of them cannot be such a source, all are ignored, and the form ends here.
func AllowFormTo(w http.ResponseWriter, sources ...string) {
	for _, source := range sources {
		for _, c := range source {
			if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("+-.:/[]", c) {
				return
			}
		}
	}
	if len(sources) > 0 {
		w.Header().Set("Content-Security-Policy", policy(" "+strings.Join(sources, " ")))
	}
}
