package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"siyuan-broker/cmd/internal/doctor"
)

// fault is a finding on its way to who asked for the step.
type fault struct{ doctor.Finding }

func (f *fault) Error() string { return f.Found }

// bad is a step that failed, why, and what to do next.
func bad(next, format string, args ...any) error { return &fault{doctor.Bad(next, format, args...)} }

// finding is what to tell of an error.
func finding(err error) doctor.Finding {
	var f *fault
	if errors.As(err, &f) {
		return f.Finding
	}
	return doctor.Unreachable(err)
}

// in says in which step a fault came up.
func in(step string, err error) error {
	if err == nil {
		return nil
	}
	f := finding(err)
	f.Found = step + ": " + f.Found
	return &fault{f}
}

// answer is what came back, as far as steps look at it.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// bodyMax bounds what is read of an answer: a tools/list is the longest.
const bodyMax = 4 << 20

// say is one request. Its error is a *fault where the answer was cut off, else
// that of the connection.
func say(ctx context.Context, c *http.Client, method, at string, body []byte, header http.Header) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return answer{}, bad("something in front may have rewritten an address", "%q is no address", at)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, bodyMax))
	if err != nil {
		return answer{}, bad("look into the log of the proxy in front", "the answer of %s was cut off: %v", at, err)
	}
	return answer{resp.StatusCode, resp.Header, b}, nil
}

// form posts fields, as to an endpoint for programs.
func form(ctx context.Context, c *http.Client, at string, v url.Values) (answer, error) {
	return say(ctx, c, http.MethodPost, at, []byte(v.Encode()), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}})
}

// into decodes a JSON answer of the status that is expected.
func (a answer) into(want int, v any) error {
	switch {
	case a.status != want:
		return bad(a.next(), "the answer is %s", a)
	case json.Unmarshal(a.body, v) != nil:
		return bad(a.next(), "the answer is not the JSON that a broker sends: %s", a)
	}
	return nil
}

// String is an answer in a few words: status, what it says, and who seems to
// have said it.
func (a answer) String() string {
	s := fmt.Sprintf("%d", a.status)
	if said := a.said(); said != "" {
		s += fmt.Sprintf(" %q", said)
	}
	return s + ", " + a.hop()
}

// said is the message of an answer, of either kind of endpoint or of a page.
func (a answer) said() string {
	var x struct {
		Code        any    `json:"error"`
		Description string `json:"error_description"`
	}
	s := ""
	if json.Unmarshal(a.body, &x) == nil {
		switch code := x.Code.(type) {
		case string:
			s = strings.Trim(code+": "+x.Description, ": ")
		case map[string]any: // of JSON-RPC
			s, _ = code["message"].(string)
		}
	} else if strings.HasPrefix(a.header.Get("Content-Type"), "text/") {
		s = pageText(a.body)
	}
	return short(s)
}

// short bounds what others wrote.
func short(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// hop guesses who answered: a proxy that passes an answer on puts its name on it
// too, so what the answer looks like decides.
func (a answer) hop() string {
	name := a.proxy()
	switch {
	case a.ours() && name != "":
		return "from the broker, by way of " + name
	case a.ours():
		return "from the broker"
	case name != "":
		return "from " + name + ", not from the broker"
	}
	return "probably not from the broker"
}

// ours reports whether an answer looks like one of the broker.
func (a answer) ours() bool {
	if a.header.Get("Content-Security-Policy") != "" && bytes.Contains(a.body, []byte("<main")) {
		return true
	}
	var x map[string]json.RawMessage
	if json.Unmarshal(a.body, &x) == nil {
		return x["jsonrpc"] != nil || x["error_description"] != nil || x["issuer"] != nil || x["resource"] != nil || x["access_token"] != nil || x["client_id"] != nil
	}
	return a.status >= 300 && a.status < 400 && a.header.Get("Content-Security-Policy") != ""
}

// proxy is how something in between names itself; empty where nothing does.
func (a answer) proxy() string {
	for _, name := range []string{"Server", "Via"} {
		if v := a.header.Get(name); v != "" {
			return fmt.Sprintf("%q", short(v))
		}
	}
	for mark, name := range map[string]string{"Cf-Ray": "Cloudflare", "X-Amz-Cf-Id": "CloudFront", "X-Azure-Ref": "Azure Front Door"} {
		if a.header.Get(mark) != "" {
			return name
		}
	}
	return ""
}

// next is what to do about an answer nobody expects.
func (a answer) next() string {
	switch {
	case !a.ours() && (a.status == http.StatusForbidden || a.status == http.StatusUnauthorized || a.status >= 300 && a.status < 400):
		return "something in front filters, or asks for a sign-in of its own: let the broker's paths pass"
	case !a.ours() && a.status == http.StatusRequestEntityTooLarge:
		return "raise the limit of the proxy in front, such as client_max_body_size of nginx"
	case !a.ours():
		return "let the proxy in front pass this path as it is; its log says more"
	case a.status == http.StatusTooManyRequests:
		return "the broker counts by address: wait a minute; if all clients come from one address, set trusted_proxies"
	case a.status == http.StatusMisdirectedRequest:
		return "add this address to public_urls, or make the proxy pass the Host header as it came"
	case a.status >= 500:
		return "the broker's log says why; `siyuan-broker doctor` without a URL looks at what it depends on"
	}
	return "the broker's log says more"
}
