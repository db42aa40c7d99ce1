package oauth

import (
	"cmp"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"siyuan-broker/contract"
)

// consentPage is what the consent page shows. Whatever a client says about
// itself is in Name, made plain; everything else is ours.
type consentPage struct {
	Name      string // empty: it gave none
	Imitates  bool   // the name has letters that look like others
	To        target // where the answer goes; zero for a device
	Described string // host that describes the client; empty: nobody
	Device    string // user code of a device that waits, "" for none
	Email     string
	Problem   string // key of a message
	Form      choices
}

// Kind is how the client gets its answer, for the choice of words.
func (c consentPage) Kind() string {
	if c.Device != "" {
		return "device"
	}
	return string(c.To.kind)
}

// Where is where the answer goes.
func (c consentPage) Where() host { return splitHost(c.To.show) }

// DescribedBy is who describes the client.
func (c consentPage) DescribedBy() host { return splitHost(c.Described) }

// host is a host name in two parts: Owned is what somebody registered, which
// alone says whose it is.
type host struct{ Before, Owned string }

// splitHost parts a host, which may have a port. What has no registered part,
// such as an address, is all owned.
func splitHost(s string) host {
	name, port := s, ""
	if h, p, err := net.SplitHostPort(s); err == nil {
		name, port = h, ":"+p
	}
	owned, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil || net.ParseIP(name) != nil {
		return host{"", s}
	}
	return host{strings.TrimSuffix(name, owned), owned + port}
}

// choices are the fields that consent and personal tokens have in common.
type choices struct {
	Places []placeChoice
	Many   bool // places of more than one tenant
	Levels []levelChoice
	Only   bool
	Tools  []toolChoice
	Days   []dayChoice
	Name   string
}

type placeChoice struct {
	place
	Chosen bool
}

type levelChoice struct {
	Level  contract.Level
	Chosen bool
}

type toolChoice struct {
	Name   string
	Chosen bool
}

type dayChoice struct {
	Days   int
	Chosen bool
}

// offer lists what a person can choose, with what they chose before; the first
// time the safe choices: the lowest level, one place only if there is no other.
func (s *Server) offer(all []place, f consentForm, most contract.Level, lives []int) choices {
	c := choices{Only: f.Only, Name: f.Name}
	highest := contract.None
	for i, p := range all {
		c.Places = append(c.Places, placeChoice{p, p.Value() == f.Place || len(all) == 1})
		c.Many = c.Many || p.Tenant != all[0].Tenant
		highest = max(highest, all[i].Highest)
	}
	for l := contract.Read; l <= min(most, highest); l++ {
		c.Levels = append(c.Levels, levelChoice{l, l.String() == f.Level || f.Level == "" && l == contract.Read})
	}
	for _, t := range s.cfg.Catalogue.Tools() {
		c.Tools = append(c.Tools, toolChoice{t.Name, slices.Contains(f.Tools, t.Name)})
	}
	for _, n := range lives {
		c.Days = append(c.Days, dayChoice{n, dayText(n) == f.Days || f.Days == "" && n == usualDays})
	}
	return c
}

func dayText(n int) string { return strconv.Itoa(n) }

// showConsent shows what a client asks for.
func (s *Server) showConsent(w http.ResponseWriter, r *http.Request, status int, who Person, a authorization, f consentForm, problem string) {
	s.showQuestion(w, r, status, who, consentPage{To: a.to, Described: a.client.described, Problem: problem}, a.client.name, f, a.most)
}

func (s *Server) showQuestion(w http.ResponseWriter, r *http.Request, status int, who Person, p consentPage, name string, f consentForm, most contract.Level) {
	all, err := s.places(r.Context(), who)
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	p.Name, p.Email = plainName(name, shownName), who.Email
	p.Imitates = imitates(p.Name)
	if f.Name == "" && p.Problem == "" {
		if f.Name = p.Name; p.Imitates {
			f.Name = "" // it would go on deceiving in the person's own list
		}
		f.Name = cmp.Or(f.Name, p.Described, strings.TrimSuffix(p.To.show, ":"), p.Device)
	}
	p.Form = s.offer(all, f, most, days)
	s.pages.Show(w, r, status, "consent", p)
}
