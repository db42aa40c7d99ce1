package broker

import (
	"context"
	"crypto/tls"
	"errors"
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
	if forBrowsers(c.Request(), err) {
		b.pages.Guard(b.people.Load(http.HandlerFunc(b.console.Missing))).ServeHTTP(c.Response(), c.Request())
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
		Issuer: b.Issuer(), Versions: wire.Versions(), Tunnel: b.tunnelEndpoint(b.baseOf(c.Request())), Pairing: []int{wire.PairVersion},
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
