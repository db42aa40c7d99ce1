package urldoctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/contract/wire"
)

// Doctor looks at one address.
type Doctor struct {
	URL     string // of the broker, without a slash at its end
	Network doctor.Network
}

// Names of probes that others need, here and in what follows on these probes.
const (
	address   = "address"
	challenge = "challenge"

	Resource = "resource" // what /mcp says about itself
	SignIn   = "sign-in"  // what the authorization server says about itself
)

// Probes lists the probes in the order in which an agent goes.
func (d *Doctor) Probes() []doctor.Probe {
	return []doctor.Probe{
		{Name: address, Run: d.address},
		{Name: "certificate", Needs: []string{address}, Run: d.certificate},
		{Name: challenge, Needs: []string{address}, Run: d.challenge},
		{Name: Resource, Needs: []string{challenge}, Run: d.resource},
		{Name: SignIn, Needs: []string{address}, Run: d.signIn},
		{Name: "browser agents", Needs: []string{SignIn}, Run: d.browsers},
		{Name: "large request", Needs: []string{challenge}, Run: d.large},
		{Name: "tunnel", Needs: []string{address}, Run: d.tunnel},
	}
}

// answer is what was answered, as far as probes look at it.
type answer struct {
	*http.Response
	body []byte
}

const bodyMax = 64 << 10

// ask sends a request; a body makes it wait for the server's 100, so that a
// refusal comes before the body goes.
func (d *Doctor) ask(ctx context.Context, method, url string, body []byte, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := d.Network.Client()
	if t, ok := client.Transport.(*http.Transport); ok {
		t.ExpectContinueTimeout = 5 * time.Second
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, bodyMax))
	return answer{resp, b}, err
}

func (d *Doctor) address(ctx context.Context) doctor.Finding {
	a, err := d.ask(ctx, http.MethodGet, d.URL+wire.WellKnownPath, nil)
	if err != nil {
		return doctor.Unreachable(err)
	}
	var doc wire.Discovery
	switch {
	case a.StatusCode >= 500:
		return doctor.Bad("is the broker running, and does the proxy in front know where?", "%s answers %s", d.URL, a.Status)
	case a.StatusCode >= 300 && a.StatusCode < 400:
		return doctor.Bad("use the address it leads to: agents do not follow redirects", "%s sends on to %s", d.URL, a.Header.Get("Location"))
	case a.StatusCode != http.StatusOK || json.Unmarshal(a.body, &doc) != nil || len(doc.Versions) == 0:
		return doctor.Bad("a proxy must pass every path of the broker, also those below /.well-known", "%s answers %s at %s, but not as a broker does", d.URL, a.Status, wire.WellKnownPath)
	}
	return doctor.Good("a broker answers; it calls itself %s", doc.Issuer)
}

func (d *Doctor) certificate(ctx context.Context) doctor.Finding {
	a, err := d.ask(ctx, http.MethodGet, d.URL+wire.WellKnownPath, nil)
	if err != nil {
		return doctor.Unreachable(err)
	}
	return d.Network.Certificate(a.TLS)
}

var metadataLink = regexp.MustCompile(`resource_metadata="([^"]+)"`)

// knock calls the MCP endpoint as an agent does that has no token yet.
func (d *Doctor) knock(ctx context.Context, body []byte, header ...string) (answer, error) {
	return d.ask(ctx, http.MethodPost, d.URL+"/mcp", body, append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, header...)...)
}

var initialize = []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"doctor","version":"1"}}}`)

// challenge is how every agent learns that it has to sign in, and where.
func (d *Doctor) challenge(ctx context.Context) doctor.Finding {
	a, err := d.knock(ctx, initialize)
	if err != nil {
		return doctor.Unreachable(err)
	}
	switch {
	case a.StatusCode == http.StatusMisdirectedRequest:
		return misdirected()
	case a.StatusCode == http.StatusForbidden:
		return doctor.Bad("add this address to public_urls, or make the proxy pass the Host header as it came; a filter in front may forbid it as well",
			"/mcp answers 403: as the broker does to a Host it does not know")
	case a.StatusCode != http.StatusUnauthorized:
		return doctor.Bad("does something in front ask for a sign-in of its own, or filter POST?", "/mcp answers %s to an agent without a token, not 401", a.Status)
	case !metadataLink.MatchString(a.Header.Get("WWW-Authenticate")):
		return doctor.Bad("a proxy must pass WWW-Authenticate of a 401 as it is", "the 401 of /mcp does not say where to sign in: WWW-Authenticate is %q", a.Header.Get("WWW-Authenticate"))
	}
	return doctor.Good("/mcp asks agents to sign in, and says where")
}

// misdirected is what the answer 421 means.
func misdirected() doctor.Finding {
	return doctor.Misconfigured("add this address to public_urls, or make the proxy pass the Host header as it came", "the broker does not know itself by this address (421)")
}

// resource follows the link of the challenge.
func (d *Doctor) resource(ctx context.Context) doctor.Finding {
	a, err := d.knock(ctx, initialize)
	if err != nil {
		return doctor.Unreachable(err)
	}
	link := metadataLink.FindStringSubmatch(a.Header.Get("WWW-Authenticate"))
	if link == nil || !strings.HasPrefix(link[1], d.URL+"/") {
		return d.elsewhere(link)
	}
	if a, err = d.ask(ctx, http.MethodGet, link[1], nil); err != nil {
		return doctor.Unreachable(err)
	}
	var doc struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	if a.StatusCode != http.StatusOK || json.Unmarshal(a.body, &doc) != nil || len(doc.Servers) == 0 {
		return doctor.Bad("a proxy must pass every path below /.well-known", "%s answers %s, not with what a resource says about itself", link[1], a.Status)
	}
	if doc.Resource != d.URL+"/mcp" {
		return doctor.Bad("the proxy must pass the Host header as it came, and public_urls must have this address", "agents that come by %s/mcp are told that this is %s; most of them stop there", d.URL, doc.Resource)
	}
	return doctor.Good("%s, signed in to at %s", doc.Resource, strings.Join(doc.Servers, ", "))
}

// elsewhere says why /mcp names another address than the one agents came by.
func (d *Doctor) elsewhere(link []string) doctor.Finding {
	scheme, rest, _ := strings.Cut(d.URL, "://")
	switch {
	case link == nil:
		return doctor.Bad("a proxy must pass WWW-Authenticate of a 401 as it is", "the 401 of /mcp does not say where to sign in")
	case strings.HasPrefix(link[1], "http://"+rest+"/"), strings.HasPrefix(link[1], "https://"+rest+"/"):
		return doctor.Misconfigured("public_urls must say "+d.URL+"; where a proxy in front speaks TLS, behind_tls_proxy belongs to it",
			"agents come by %s, but the broker takes itself for %s: most agents stop there", scheme, strings.SplitN(link[1], "/.well-known", 2)[0])
	}
	return doctor.Bad("add "+d.URL+" to public_urls, and make the proxy pass the Host header as it came", "/mcp sends agents that come by %s to another address: %s", d.URL, link[1])
}

// signIn reads the authorization server's metadata as agents do.
func (d *Doctor) signIn(ctx context.Context) doctor.Finding {
	a, err := d.ask(ctx, http.MethodGet, d.URL+"/.well-known/oauth-authorization-server", nil)
	if err != nil {
		return doctor.Unreachable(err)
	}
	var doc struct {
		Issuer       string   `json:"issuer"`
		Authorize    string   `json:"authorization_endpoint"`
		Token        string   `json:"token_endpoint"`
		Registration string   `json:"registration_endpoint"`
		Challenge    []string `json:"code_challenge_methods_supported"`
		Auth         []string `json:"token_endpoint_auth_methods_supported"`
		CIMD         bool     `json:"client_id_metadata_document_supported"`
		Iss          bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if a.StatusCode == http.StatusMisdirectedRequest {
		return misdirected()
	}
	if a.StatusCode != http.StatusOK || json.Unmarshal(a.body, &doc) != nil {
		return doctor.Bad("a proxy must pass every path below /.well-known", "the sign-in does not describe itself: %s", a.Status)
	}
	var missing []string
	for _, x := range []struct {
		ok   bool
		what string
	}{
		{doc.Issuer != "", "an issuer"}, {doc.Authorize != "" && doc.Token != "", "its endpoints"},
		{doc.Registration != "", "registration, which ChatGPT, Cursor and VS Code need"},
		{slices.Contains(doc.Challenge, "S256"), "PKCE with S256, which all need"},
		{slices.Contains(doc.Auth, "none") && doc.CIMD, "clients without secret that are known by a document, as Claude is"},
		{doc.Iss, "iss in its answers (RFC 9207)"},
	} {
		if !x.ok {
			missing = append(missing, x.what)
		}
	}
	if len(missing) > 0 {
		return doctor.Bad("is this answer from the broker? something in front may answer for it", "the sign-in does not offer: %s", strings.Join(missing, "; "))
	}
	return doctor.Good("%s offers what Claude, ChatGPT, Cursor and VS Code need", doc.Issuer)
}

// browsers asks as a browser does before a page of another site may talk to us.
func (d *Doctor) browsers(ctx context.Context) doctor.Finding {
	for _, x := range []struct{ method, path string }{
		{"GET", "/.well-known/oauth-protected-resource/mcp"}, {"GET", "/.well-known/oauth-authorization-server"}, {"POST", "/oauth/register"}, {"POST", "/oauth/token"},
	} {
		a, err := d.ask(ctx, http.MethodOptions, d.URL+x.path, nil, "Origin", "https://claude.ai", "Access-Control-Request-Method", x.method, "Access-Control-Request-Headers", "content-type")
		if err != nil {
			return doctor.Unreachable(err)
		}
		if got := a.Header.Get("Access-Control-Allow-Origin"); a.StatusCode >= 300 || got != "*" && got != "https://claude.ai" {
			return doctor.Bad("a proxy must pass OPTIONS, and the Access-Control headers of the answer", "%s answers %s to a browser's preflight, with Access-Control-Allow-Origin %q", x.path, a.Status, got)
		}
	}
	return doctor.Good("agents that run in a browser may ask")
}

// largeBytes is what a document with a picture takes.
const largeBytes = 3 << 20

// large asks to send a large body. It is refused for want of a token, by the
// broker; a proxy that refuses it for its size says so before.
func (d *Doctor) large(ctx context.Context) doctor.Finding {
	var welcome atomic.Bool // it was announced and not refused
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { welcome.Store(true) }})
	a, err := d.knock(ctx, bytes.Repeat([]byte(" "), largeBytes), "Expect", "100-continue")
	switch {
	case err != nil && welcome.Load(): // the broker refused for want of a token while the rest was on its way
		return doctor.Good("%d MB may be sent", largeBytes>>20)
	case err != nil:
		return doctor.Unreachable(err)
	case a.StatusCode == http.StatusUnauthorized:
		return doctor.Good("%d MB may be sent", largeBytes>>20)
	case a.StatusCode == http.StatusRequestEntityTooLarge:
		return doctor.Bad("raise the limit of the proxy in front, such as client_max_body_size of nginx, to 5 MB; the broker's own is max_request_bytes", "a request of %d MB is refused (413)%s", largeBytes>>20, by(a))
	}
	return doctor.Bad("look into the log of the proxy in front", "a request of %d MB is answered %s%s", largeBytes>>20, a.Status, by(a))
}

// by names who answered, where they say so.
func by(a answer) string {
	if s := a.Header.Get("Server"); s != "" {
		return fmt.Sprintf(" by %q", s)
	}
	return ""
}

func (d *Doctor) tunnel(ctx context.Context) doctor.Finding {
	c, _, f := d.Network.Upgrade(ctx, "ws"+strings.TrimPrefix(d.URL, "http")+wire.Path)
	if c != nil {
		_ = c.Close()
	}
	return f
}
