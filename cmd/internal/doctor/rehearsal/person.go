package rehearsal

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"siyuan-broker/cmd/internal/doctor"
)

// agentsPath is the page that only people who are signed in see, and where
// access is taken back.
const agentsPath = "/console/agents"

// person is the test person's browser, as a page sees it: it keeps cookies and
// sends forms with what they hold.
type person struct {
	c    *http.Client
	base string // of the pages, where the sign-in is
}

func newPerson(n doctor.Network, base string) *person {
	c := n.Client()
	c.Jar, _ = cookiejar.New(nil) // fails only for options
	return &person{c, base}
}

// open gets a page.
func (p *person) open(ctx context.Context, at string) (answer, error) {
	return say(ctx, p.c, http.MethodGet, at, nil, http.Header{"Accept": {"text/html"}, "Accept-Language": {"en"}, "Sec-Fetch-Site": {"none"}, "Sec-Fetch-Mode": {"navigate"}})
}

// send submits a page's form with changed fields.
func (p *person) send(ctx context.Context, at string, v url.Values) (answer, error) {
	u, err := url.Parse(at)
	if err != nil {
		return answer{}, bad("", "%q is no address", at)
	}
	return say(ctx, p.c, http.MethodPost, at, []byte(v.Encode()), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"text/html"},
		"Accept-Language": {"en"}, "Sec-Fetch-Site": {"same-origin"}, "Sec-Fetch-Mode": {"navigate"}, "Origin": {u.Scheme + "://" + u.Host}})
}

// signIn goes the way of somebody who opens a page, is asked who they are, and
// wants to be led back.
func (p *person) signIn(ctx context.Context, email, password string) error {
	page, err := p.open(ctx, p.base+agentsPath)
	if err != nil {
		return err
	}
	at, err := p.leads(page, p.base+agentsPath)
	if err != nil {
		return err
	}
	if page, err = p.open(ctx, at); err != nil {
		return err
	}
	f, ok := formWith(page.body, "password")
	if page.status != http.StatusOK || !ok {
		return bad(page.next(), "the sign-in page does not come: %s", page)
	}
	f.fields.Set("email", email)
	f.fields.Set("password", password)
	to := p.resolve(at, f.action)
	if page, err = p.send(ctx, to, f.fields); err != nil {
		return err
	}
	switch page.status {
	case http.StatusSeeOther:
	case http.StatusUnprocessableEntity:
		return bad("is it the right address and password? `siyuan-broker user reset` gives a link for a new one; accounts of an identity provider have no password", "the broker does not take address and password: %s", page)
	case http.StatusForbidden:
		return bad("the proxy in front must pass Host, Origin and cookies as they came", "the broker takes the form for one of another site: %s", page)
	default:
		return bad(page.next(), "the sign-in form is answered with %s", page)
	}
	return p.stillIn(ctx, page)
}

// stillIn checks that the browser got a session and that it comes through.
func (p *person) stillIn(ctx context.Context, signedIn answer) error {
	u, err := url.Parse(p.base)
	if err != nil {
		return bad("", "%q is no address", p.base)
	}
	set := signedIn.header.Values("Set-Cookie")
	i := slices.IndexFunc(set, func(c string) bool {
		return strings.HasPrefix(c, "__Host-siyuan=") || strings.HasPrefix(c, "siyuan_session=")
	})
	switch {
	case i < 0:
		return bad("the proxy in front must pass Set-Cookie as it is", "signed in, but no session came back (Set-Cookie has: %s)", names(set))
	case u.Scheme == "http" && strings.Contains(set[i], "Secure"):
		return &fault{doctor.Misconfigured("use the https address; where there is none, public_urls must not say https", "signed in, but the session is for https only and %s is not", p.base)}
	}
	page, err := p.open(ctx, p.base+agentsPath)
	switch {
	case err != nil:
		return err
	case page.status != http.StatusOK:
		return bad("the proxy in front must pass cookies as they are", "signed in, but the next page asks again: %s", page)
	}
	return nil
}

// names are cookies without their values, which are secret.
func names(cookies []string) string {
	all := []string{}
	for _, c := range cookies {
		name, _, _ := strings.Cut(c, "=")
		all = append(all, name)
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}

// leads checks that a page sends a stranger to the sign-in of the same address.
func (p *person) leads(page answer, from string) (string, error) {
	if page.status < 300 || page.status > 399 {
		return "", bad(page.next(), "a page for people who are signed in answers %s, and does not lead to the sign-in", page)
	}
	at := p.resolve(from, page.header.Get("Location"))
	if !strings.HasPrefix(at, p.base+"/") {
		return "", bad("does something in front redirect? public_urls and the proxy must agree on scheme and host", "the page leads to %s, away from %s", short(at), p.base)
	}
	return at, nil
}

func (p *person) resolve(from, to string) string {
	base, err := url.Parse(from)
	if err != nil {
		return to
	}
	u, err := base.Parse(to)
	if err != nil {
		return to
	}
	return u.String()
}

// allow agrees to what a page at an address asks for, with the least rights there
// are, and returns where the answer goes.
func (p *person) allow(ctx context.Context, at string, page answer, name string) (string, error) {
	if page.status != http.StatusOK {
		return "", bad(page.next(), "the question to the person does not come: %s", page)
	}
	f, ok := formWith(page.body, "place")
	if !ok {
		return "", bad("make an instance in the console, or share a notebook of one with the test person", "the person has no instance to let an agent into")
	}
	f.least()
	f.fields.Set("answer", "allow")
	f.fields.Set("name", name)
	page, err := p.send(ctx, p.resolve(at, f.action), f.fields)
	switch {
	case err != nil:
		return "", err
	case page.status == http.StatusForbidden && page.ours():
		return "", bad("the proxy in front must pass Host, Origin and cookies as they came", "the broker takes the form for one of another site: %s", page)
	case page.status != http.StatusSeeOther:
		return "", bad(page.next(), "the person agreed, but is not sent back to the client: %s", page)
	}
	return page.header.Get("Location"), nil
}

// takeBack revokes all agents of a name, and says how many.
func (p *person) takeBack(ctx context.Context, name string) (int, error) {
	page, err := p.open(ctx, p.base+agentsPath)
	if err != nil {
		return 0, err
	}
	if page.status != http.StatusOK {
		return 0, bad(page.next(), "the page of agents does not come: %s", page)
	}
	n := 0
	for _, f := range forms(page.body) {
		if f.fields.Get("agent") == "" || !strings.Contains(f.within, name) {
			continue
		}
		a, err := p.send(ctx, p.resolve(p.base+agentsPath, f.action), f.fields)
		if err != nil {
			return n, err
		}
		if a.status != http.StatusSeeOther {
			return n, bad("revoke what begins with "+name+" on the page of agents", "an agent could not be revoked: %s", a)
		}
		n++
	}
	return n, nil
}

// signOut ends the session.
func (p *person) signOut(ctx context.Context) error {
	page, err := p.open(ctx, p.base+agentsPath)
	if err != nil {
		return err
	}
	for _, f := range forms(page.body) {
		if !strings.HasSuffix(f.action, "/signout") {
			continue
		}
		a, err := p.send(ctx, p.resolve(p.base+agentsPath, f.action), f.fields)
		if err == nil && a.status != http.StatusSeeOther {
			err = bad(a.next(), "signing out is answered with %s", a)
		}
		return err
	}
	return bad(page.next(), "the page has no way to sign out: %s", page)
}

// pageForm is a form as a browser would send it.
type pageForm struct {
	action  string
	fields  url.Values
	choices map[string][]string // of radios, ticks and lists, in the order of the page
	within  string              // text of the article around it
}

// least chooses the least of everything: the page lists levels and times from
// the least up, and any place does.
func (f pageForm) least() {
	for _, name := range []string{"place", "level", "days"} {
		if all := f.choices[name]; len(all) > 0 {
			f.fields.Set(name, all[0])
		}
	}
	if all := f.choices["tool"]; len(all) > 0 && slices.Contains(f.choices["which"], "only") {
		f.fields.Set("which", "only")
		f.fields.Set("tool", all[0])
	}
}

// formWith is the form that has a field.
func formWith(body []byte, field string) (pageForm, bool) {
	for _, f := range forms(body) {
		if f.fields.Has(field) || len(f.choices[field]) > 0 {
			return f, true
		}
	}
	return pageForm{}, false
}

// forms reads the forms of a page.
func forms(body []byte) (all []pageForm) {
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "form" {
			all = append(all, readForm(n))
		}
	}
	return all
}

func readForm(n *html.Node) pageForm {
	f := pageForm{action: attribute(n, "action"), fields: url.Values{}, choices: map[string][]string{}}
	for up := n.Parent; up != nil; up = up.Parent {
		if up.Data == "article" {
			f.within = text(up)
		}
	}
	list := ""
	for x := range n.Descendants() {
		if x.Type != html.ElementNode {
			continue
		}
		name, value := attribute(x, "name"), attribute(x, "value")
		switch kind := attribute(x, "type"); {
		case x.Data == "select":
			list = name
		case x.Data == "option":
			f.choose(list, value, has(x, "selected"))
		case x.Data == "input" && (kind == "radio" || kind == "checkbox"):
			f.choose(name, value, has(x, "checked"))
		case x.Data == "input" && name != "":
			f.fields.Set(name, value)
		}
	}
	return f
}

func (f pageForm) choose(name, value string, chosen bool) {
	f.choices[name] = append(f.choices[name], value)
	if chosen {
		f.fields.Add(name, value)
	}
}

func has(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// pageText is what the main part of a page says, or all of it, without what one
// can press.
func pageText(body []byte) string {
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return ""
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "main" {
			return text(n)
		}
	}
	return text(doc)
}

func text(n *html.Node) string {
	var b strings.Builder
	for x := range n.Descendants() {
		if x.Type == html.TextNode && !slices.Contains([]string{"script", "style", "a", "button"}, x.Parent.Data) {
			b.WriteString(x.Data + " ")
		}
	}
	return strings.TrimSpace(b.String())
}
