package page

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Lang is a language of the pages, as in HTML's lang attribute.
type Lang string

// The languages.
const (
	English Lang = "en"
	Chinese Lang = "zh-CN"
)

// Langs are all languages, the fallback first.
func Langs() []Lang { return []Lang{English, Chinese} }

// Name is what its speakers call it.
func (l Lang) Name() string {
	if l == Chinese {
		return "中文"
	}
	return "English"
}

// parseLang reads a BCP 47 tag as far as the pages tell languages apart.
func parseLang(tag string) (Lang, bool) {
	primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
	switch primary {
	case "zh":
		return Chinese, true
	case "en":
		return English, true
	}
	return "", false
}

const (
	langCookie = "lang"
	langDays   = 400
)

// LangOf is the language to answer in: asked for with ?lang=, chosen before in
// this browser, of the account, or what the browser prefers.
func (p *Pages) LangOf(r *http.Request) Lang {
	if l, ok := parseLang(r.URL.Query().Get("lang")); ok {
		return l
	}
	if l, ok := parseLang(p.CookieValue(r, langCookie)); ok {
		return l
	}
	if v := viewerOf(r); v != nil {
		if l, ok := parseLang(v.Locale); ok {
			return l
		}
	}
	return accepted(r.Header.Get("Accept-Language"))
}

// RememberLang keeps the choice of a language in this browser.
func (p *Pages) RememberLang(w http.ResponseWriter, r *http.Request, tag string) {
	if l, ok := parseLang(tag); ok {
		p.rememberLang(w, r, l)
		return
	}
	c := p.Cookie(r, langCookie, "")
	c.MaxAge = -1
	http.SetCookie(w, c)
}

func (p *Pages) rememberLang(w http.ResponseWriter, r *http.Request, l Lang) {
	c := p.Cookie(r, langCookie, string(l))
	c.MaxAge = langDays * 24 * 60 * 60
	http.SetCookie(w, c)
}

// accepted is the best of our languages by an Accept-Language header.
func accepted(header string) Lang {
	best, weight := English, 0.0
	for i, part := range strings.Split(header, ",") {
		if i == 20 {
			break
		}
		tag, params, _ := strings.Cut(part, ";")
		q := 1.0
		if s, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			q, _ = strconv.ParseFloat(s, 64) // nonsense counts as zero
		}
		if l, ok := parseLang(tag); ok && q > weight {
			best, weight = l, q
		}
	}
	return best
}

// messages are the texts of one set by language and key.
type messages map[Lang]map[string]string

// messageFile is where a set keeps its texts in a language.
func messageFile(l Lang) string {
	primary, _, _ := strings.Cut(string(l), "-")
	return "messages." + primary + ".json"
}

var otherVerb = regexp.MustCompile(`%[a-rt-z]`)

// loadMessages reads a set's texts. Every key must exist in every language, with
// as many %s in it, and no other verb.
func loadMessages(files fs.FS) (messages, error) {
	all := messages{}
	for _, l := range Langs() {
		b, err := fs.ReadFile(files, messageFile(l))
		if err != nil {
			return nil, err
		}
		m := map[string]string{}
		if err := json.Unmarshal(b, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", messageFile(l), err)
		}
		all[l] = m
	}
	for _, l := range Langs() {
		for key, text := range all[English] {
			other, ok := all[l][key]
			if !ok || other == "" {
				return nil, fmt.Errorf("%s: no text for %q", messageFile(l), key)
			}
			if strings.Count(other, "%s") != strings.Count(text, "%s") {
				return nil, fmt.Errorf("%s: %q has not as many %%s as the English text", messageFile(l), key)
			}
		}
		for key, text := range all[l] {
			if verb := otherVerb.FindString(text); verb != "" {
				return nil, fmt.Errorf("%s: %q has %s; arguments are put in for %%s", messageFile(l), key, verb)
			}
			if _, ok := all[English][key]; !ok {
				return nil, fmt.Errorf("%s: %q has no English text", messageFile(l), key)
			}
		}
	}
	return all, nil
}

// text is a message with its arguments put in for %s, in their order.
func text(message string, args ...any) string {
	parts := strings.Split(message, "%s")
	var b strings.Builder
	for i, part := range parts {
		b.WriteString(part)
		if i < len(args) && i < len(parts)-1 {
			fmt.Fprint(&b, args[i])
		}
	}
	return b.String()
}

// ago says how long something is past, in words.
func (m messages) ago(l Lang, past, now time.Time) string {
	d := now.Sub(past)
	units := []struct {
		key  string
		unit time.Duration
	}{{"ago.day", 24 * time.Hour}, {"ago.hour", time.Hour}, {"ago.minute", time.Minute}}
	i := slices.IndexFunc(units, func(u struct {
		key  string
		unit time.Duration
	}) bool {
		return d >= u.unit
	})
	if i < 0 {
		return m[l]["ago.now"]
	}
	n, key := int(d/units[i].unit), units[i].key
	if n != 1 {
		key += "s"
	}
	return text(m[l][key], n)
}
