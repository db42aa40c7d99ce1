package brokerdoctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/contract/wire"
)

// wayIn are the probes of one public URL, as an agent and a connector outside
// would use it.
func (d *Doctor) wayIn(i int, base string) []doctor.Probe {
	suffix := ""
	if i > 0 {
		suffix = fmt.Sprintf(" %d", i+1)
	}
	url := "public url" + suffix
	return []doctor.Probe{
		{Name: url, Needs: []string{configuration}, Run: func(ctx context.Context) doctor.Finding { return d.publicURL(ctx, base) }},
		{Name: "certificate" + suffix, Needs: []string{url}, Run: func(ctx context.Context) doctor.Finding { return d.certificate(ctx, base) }},
		{Name: "discovery" + suffix, Needs: []string{url}, Run: func(ctx context.Context) doctor.Finding { return d.discovery(ctx, base) }},
		{Name: "tunnel" + suffix, Needs: []string{url}, Run: func(ctx context.Context) doctor.Finding { return d.tunnel(ctx, base) }},
	}
}

// answer is what one path of a public URL answered.
type answer struct {
	status int
	body   []byte
	tls    *tls.ConnectionState
}

const answerMax = 64 << 10

func (d *Doctor) get(ctx context.Context, url string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	resp, err := d.Network.Client().Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	return answer{resp.StatusCode, body, resp.TLS}, err
}

func (d *Doctor) publicURL(ctx context.Context, base string) doctor.Finding {
	a, err := d.get(ctx, base+"/healthz")
	if err != nil {
		f := doctor.Unreachable(err)
		f.Found = base + ": " + f.Found
		return f
	}
	var health struct{ Status string }
	switch {
	case a.status >= 500:
		return doctor.Bad("is the broker running, and does the proxy know its address ("+d.Config.Listen+")?", "%s/healthz answers %d", base, a.status)
	case a.status >= 300 && a.status < 400:
		return doctor.Bad("name the address it leads to in public_urls: agents do not follow redirects", "%s/healthz redirects (%d)", base, a.status)
	case a.status != http.StatusOK || json.Unmarshal(a.body, &health) != nil || health.Status != "ok":
		return doctor.Bad("the proxy must pass every path of the broker, beginning at /", "%s/healthz answers %d, but not as a broker does", base, a.status)
	}
	return doctor.Good("%s answers", base)
}

func (d *Doctor) certificate(ctx context.Context, base string) doctor.Finding {
	a, err := d.get(ctx, base+"/healthz")
	if err != nil {
		return doctor.Unreachable(err)
	}
	return d.Network.Certificate(a.tls)
}

func (d *Doctor) discovery(ctx context.Context, base string) doctor.Finding {
	a, err := d.get(ctx, base+wire.WellKnownPath)
	if err != nil {
		return doctor.Unreachable(err)
	}
	var doc wire.Discovery
	if a.status != http.StatusOK || json.Unmarshal(a.body, &doc) != nil {
		return doctor.Bad("the proxy must pass every path of the broker, also those below /.well-known", "%s answers %d, but not as a broker does", wire.WellKnownPath, a.status)
	}
	if doc.Issuer != d.Config.PublicURLs[0] {
		return doctor.Misconfigured("give the running broker the same public_urls, or correct them here", "the broker that answers calls itself %s, the configuration %s", doc.Issuer, d.Config.PublicURLs[0])
	}
	if want := "ws" + strings.TrimPrefix(base, "http") + wire.Path; doc.Tunnel.WSS != want {
		return doctor.Doubtful("the proxy must pass the Host header as it came", "it sends connectors to %s instead of %s", doc.Tunnel.WSS, want)
	}
	ways := "over WebSocket"
	if doc.Tunnel.TLS != "" {
		ways = "directly at " + doc.Tunnel.TLS + ", and over WebSocket"
	}
	return doctor.Good("connectors are told to come %s", ways)
}

func (d *Doctor) tunnel(ctx context.Context, base string) doctor.Finding {
	c, _, f := d.Network.Upgrade(ctx, "ws"+strings.TrimPrefix(base, "http")+wire.Path)
	if c != nil {
		_ = c.Close()
	}
	return f
}
