package oauth_test

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"siyuan-broker/broker/mcpserver/mcptest"
)

// The suite prints the address it would open in a browser and waits on its own
// callback; here a person signs in and agrees.
func TestTheConformanceSuiteSignsInAndFindsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	must(t, l.Close())
	client, _ := r.register(fmt.Sprintf(`{"client_name":"Conformance","redirect_uris":["http://127.0.0.1:%d/callback"],"token_endpoint_auth_method":"none"}`, port))

	cmd := mcptest.Command(t, mcptest.Conformance, "authorization", "--url", r.url, "--client-id", client, "--resource", r.url+"/mcp", "-p", fmt.Sprint(port))
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = cmd.Stdout
	must(t, cmd.Start())
	link := regexp.MustCompile(`https?://\S+` + regexp.QuoteMeta(authorizeIn(t, r)) + `\S+`)
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if at := link.FindString(lines.Text()); at != "" {
			b := r.browser(r.owner)
			page := b.get(at)
			b.get(b.submit(at, page, url.Values{"answer": {"allow"}}).location(t).String())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	if !strings.Contains(said.String(), "Total: 3 passed, 0 failed") {
		t.Errorf("the suite says\n%s", &said)
	}
}

// authorizeIn is the path of the authorization endpoint.
func authorizeIn(t *testing.T, r *rig) string {
	t.Helper()
	u, err := url.Parse(r.authorizeURL(nil))
	must(t, err)
	return u.Path
}
