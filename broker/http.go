package broker

import (
	"context"
	"crypto/tls"

	"errors"
	"html/template"

	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// requestIDHeader carries the id that leads from an answer to the log.
const requestIDHeader = "X-Request-Id"

// withRequestID gives every request an id of ours. A client's own is not
// trusted: it could repeat another's.
func (b *Broker) withRequestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := contract.RandomID("req")
		c.Request().Header.Set(requestIDHeader, id)
		c.Response().Header().Set(requestIDHeader, id)
		return next(c)
	}
}

// httpError answers errors of routes in the public vocabulary.
func (b *Broker) httpError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	id := c.Response().Header().Get(requestIDHeader)
	status, e := http.StatusInternalServerError, contract.Internalf(err, "%s %s", c.Request().Method, c.Path())
	var he *echo.HTTPError
	if errors.As(err, &he) {
		status = he.Code
		e = contract.Fail(contract.NotFound, "There is no %s here.", http.StatusText(he.Code)).WithHint("Agents use /mcp.")
		if status == http.StatusMethodNotAllowed {
			e = contract.Fail(contract.InvalidArguments, "%s is not answered here.", c.Request().Method).WithHint("Use the method the documentation names.")
		}
		if status == http.StatusNotFound {
			e = contract.Fail(contract.NotFound, "Nothing is served at this path.").WithHint("Agents use /mcp.")
		}
	} else {
		b.log.Error("request failed", "request_id", id, "path", c.Path(), "error", err)
	}
	e.RequestID = id
	if err := c.JSONBlob(status, e.Body()); err != nil {
		b.log.Debug("answer not written", "request_id", id, "error", err)
	}
}

func (b *Broker) discovery(c echo.Context) error {
	return c.JSON(http.StatusOK, wire.Discovery{
		Issuer: b.Issuer(), Versions: wire.Versions(), Tunnel: b.tunnelEndpoint(b.baseOf(c.Request())),
	})
}

// baseOf is the public URL by which a request came, else the main one.
func (b *Broker) baseOf(r *http.Request) string {
	for _, base := range b.cfg.PublicURLs {
		if _, host, ok := strings.Cut(base, "://"); ok && strings.EqualFold(host, r.Host) {
			return base
		}
	}
	return b.cfg.PublicURLs[0]
}

// healthz says that the process runs and answers.
func (b *Broker) healthz(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says whether this node should get requests, and if not, why.
func (b *Broker) readyz(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), 2*time.Second)
	defer cancel()
	checks := map[string]string{}
	status := http.StatusOK
	check := func(name string, err error) {
		checks[name] = "ok"
		if err != nil {
			status = http.StatusServiceUnavailable
			checks[name] = "failed" // what failed in detail is for the log, not for strangers
			b.log.Warn("not ready", "check", name, "error", err)
		}
	}
	check("database", b.db.Ping(ctx))
	check("revocations", b.revoked.Ready())
	return c.JSON(status, checks)
}

var welcomePage = template.Must(template.New("welcome").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>siyuan-broker</title>
<style>:root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}code{background:#8882;padding:.15em .35em;border-radius:.3em;overflow-wrap:anywhere}h1{font-size:1.4rem}p.lang{margin-top:2.5rem}</style>
</head><body>
<h1>siyuan-broker</h1>
<p>This is a gateway that lets AI agents work in SiYuan notes, as far as their owner allows.</p>
<p>Agents connect by MCP to <code>{{.MCP}}</code> with a token from the owner.</p>
<div lang="zh-CN"><p class="lang">这是一个网关：AI 智能体可以在笔记主人允许的范围内使用思源笔记。</p>
<p>智能体通过 MCP 连接 <code>{{.MCP}}</code>，令牌由笔记主人发放。</p></div>
</body></html>
`))

// welcome tells a person who opened the address in a browser where they are.
func (b *Broker) welcome(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "text/html; charset=utf-8")
	c.Response().WriteHeader(http.StatusOK)
	return welcomePage.Execute(c.Response(), struct{ MCP string }{b.baseOf(c.Request()) + "/mcp"})
}

// LoopbackClient is a client for a node to ask itself, and the scheme its
// listener speaks. Its certificate is for the public name, not for loopback, so
// only who listens on this machine's port is trusted here; nothing secret is
// sent.
func (c *Config) LoopbackClient() (*http.Client, string) {
	if !c.TLS() {
		return http.DefaultClient, "http"
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}, "https" //nolint:gosec // see above
}
