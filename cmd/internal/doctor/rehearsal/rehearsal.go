package rehearsal

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/cmd/internal/doctor/urldoctor"
)

// Doctor rehearses at one address.
type Doctor struct {
	URL      string // of the broker, without a slash at its end
	Email    string // of the test person; empty: nobody signs in
	Password string
	Network  doctor.Network
	Silence  time.Duration // for how long a stream is watched; zero: 20 s, in which the broker gives one sign of life

	server     server
	person     *person // signed in; nil where nobody is
	run        string  // begins the names of this run's agents
	registered int     // clients that registered
}

const (
	usualSilence = 20 * time.Second
	leaving      = 10 * time.Second // for taking back what was made, also after an interrupt
	playing      = time.Minute      // for one client
)

// Names of probes that others need.
const (
	discovery = "discovery"
	account   = "account"
)

// Probes lists the probes; they follow those of urldoctor.
func (d *Doctor) Probes() []doctor.Probe {
	d.run = "doctor " + strings.ToLower(rand.Text()[:6])
	all := []doctor.Probe{{Name: discovery, Needs: []string{urldoctor.Resource, urldoctor.SignIn}, Run: d.discovery}}
	needs := []string{discovery}
	if d.Email != "" {
		all = append(all, doctor.Probe{Name: account, Needs: needs, Run: d.account})
		needs = append(needs, account)
	}
	for _, c := range clients() {
		all = append(all, doctor.Probe{Name: c.name, Needs: needs, Within: playing, Run: func(ctx context.Context) doctor.Finding { return d.play(ctx, c) }})
	}
	if d.Email == "" {
		return append(all, doctor.Probe{Name: account, Run: untried})
	}
	return append(all,
		doctor.Probe{Name: "headers", Needs: needs, Within: playing, Run: d.withToken(d.headers)},
		doctor.Probe{Name: "stream", Needs: needs, Within: playing + d.silence(), Run: d.withToken(d.stream)},
		doctor.Probe{Name: "clean-up", Needs: needs, Within: playing, Run: d.cleanUp},
	)
}

func (d *Doctor) silence() time.Duration { return cmp.Or(d.Silence, usualSilence) }

// base is where the authorization server's pages are.
func (d *Doctor) base() string { return strings.TrimRight(d.server.Issuer, "/") }

func untried(context.Context) doctor.Finding {
	return doctor.Nothing("nobody signed in: consent, tokens, refresh, revocation, tools, headers with a token and streams were not tried\n" +
		"give a test person: --email, and the password in DOCTOR_PASSWORD or DOCTOR_PASSWORD_FILE")
}

var metadataLink = regexp.MustCompile(`resource_metadata="([^"]+)"`)

// discovery goes the way from the 401 to the endpoints.
func (d *Doctor) discovery(ctx context.Context) doctor.Finding {
	if err := d.discover(ctx); err != nil {
		return finding(err)
	}
	return doctor.Good("from the 401 of %s to %s", d.URL+"/mcp", d.server.Token)
}

func (d *Doctor) discover(ctx context.Context) error {
	c := d.Network.Client()
	a, err := say(ctx, c, http.MethodPost, d.URL+"/mcp", []byte(`{}`), http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}})
	if err != nil {
		return err
	}
	link := metadataLink.FindStringSubmatch(a.header.Get("WWW-Authenticate"))
	if link == nil {
		return bad(a.next(), "/mcp does not say where to sign in: %s", a)
	}
	if a, err = say(ctx, c, http.MethodGet, link[1], nil, nil); err != nil {
		return in(link[1], err)
	}
	var resource struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	if err := a.into(http.StatusOK, &resource); err != nil {
		return in(link[1], err)
	}
	if len(resource.Servers) == 0 {
		return bad(a.next(), "%s names no authorization server", link[1])
	}
	issuer := resource.Servers[0]
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return bad("correct public_urls", "the authorization server %q is no address", short(issuer))
	}
	at := u.Scheme + "://" + u.Host + "/.well-known/oauth-authorization-server" + strings.TrimRight(u.Path, "/") // RFC 8414
	if a, err = say(ctx, c, http.MethodGet, at, nil, nil); err != nil {
		f := finding(err)
		return bad("the first of public_urls must be an address that agents and people reach", "agents are sent to sign in at %s, and there: %s", issuer, f.Found)
	}
	if err := a.into(http.StatusOK, &d.server); err != nil {
		return in(at, err)
	}
	if d.server.Issuer != issuer {
		return bad("all nodes must have the same public_urls", "the resource names %q, the metadata %q: agents stop there", issuer, short(d.server.Issuer))
	}
	d.server.Resource = resource.Resource
	return nil
}

// account signs the test person in.
func (d *Doctor) account(ctx context.Context) doctor.Finding {
	if u, err := url.Parse(d.base()); err != nil || u.Scheme != "https" && !loopback(u.Hostname()) {
		return doctor.Bad("use https", "the password is not sent to %s, where others could read it", d.base())
	}
	p := newPerson(d.Network, d.base())
	if err := p.signIn(ctx, d.Email, d.Password); err != nil {
		return finding(err)
	}
	d.person = p
	return doctor.Good("%s signed in at %s", d.Email, d.base())
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// withToken gives a probe a token of its own and takes it back.
func (d *Doctor) withToken(probe func(context.Context, grant) doctor.Finding) func(context.Context) doctor.Finding {
	return func(ctx context.Context) doctor.Finding {
		c := ourselves()
		id, err := d.introduce(ctx, c)
		if err != nil {
			return finding(in("registration", err))
		}
		g, err := d.grant(ctx, c, id)
		if err != nil {
			return finding(err)
		}
		defer d.drop(ctx, g)
		return probe(ctx, *g)
	}
}

// cleanUp takes back what is left of this run and signs the person out. It does
// so after an interrupt as well.
func (d *Doctor) cleanUp(ctx context.Context) doctor.Finding {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	n, err := d.person.takeBack(ctx, d.run)
	if err == nil {
		err = d.person.signOut(ctx)
	}
	if err != nil {
		f := finding(err)
		return doctor.Doubtful("look at the page of agents for what begins with "+d.run, "%s", f.Found)
	}
	left := fmt.Sprintf("%d registrations end by themselves: after a week, or 90 days for those that were used", d.registered)
	if n > 0 {
		return doctor.Good("%d agents that were left were revoked, the person is signed out; %s", n, left)
	}
	return doctor.Good("no agent is left, the person is signed out; %s", left)
}
