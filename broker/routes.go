package broker

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// routes shows every route. /mcp, /tunnel and /transfer are mounted bare: no middleware
// that buffers or rewrites, because both stream.
func (b *Broker) routes() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = b.cfg.clientIP()
	e.HTTPErrorHandler = b.httpError
	e.Pre(b.withRequestID)
	e.Use(middleware.Recover())

	e.Any("/mcp", echo.WrapHandler(b.mcp))
	e.Any("/mcp/", echo.WrapHandler(b.mcp))
	e.Any("/transfer/*", echo.WrapHandler(b.transfers)) // streams too
	e.GET("/tunnel", echo.WrapHandler(b.tunnel))
	e.POST("/tunnel/pair", echo.WrapHandler(b.pairing.Pair()))
	e.POST("/tunnel/pair/token", echo.WrapHandler(b.pairing.Token()))
	e.POST("/tunnel/unpair", echo.WrapHandler(b.pairing.Unpair()))

	e.GET("/.well-known/siyuan-broker", b.discovery)
	e.Any("/.well-known/oauth-protected-resource", echo.WrapHandler(http.HandlerFunc(b.mcp.ServeMetadata)))
	e.Any("/.well-known/oauth-protected-resource/mcp", echo.WrapHandler(http.HandlerFunc(b.mcp.ServeMetadata)))
	e.Any("/.well-known/oauth-protected-resource/mcp/", echo.WrapHandler(http.HandlerFunc(b.mcp.ServeMetadata)))
	b.signInRoutes(e)

	e.GET("/healthz", b.healthz)
	e.GET("/readyz", b.readyz)

	// Pages for people. Each stands behind pages.Guard; see pages.go.
	c := b.console
	e.GET("/", b.open(c.Welcome))
	e.GET("/assets/*", echo.WrapHandler(b.pages.Assets()))
	e.GET("/console/signin", b.open(c.SignIn))
	e.POST("/console/signin", b.open(c.DoSignIn))
	e.POST("/console/signout", b.open(c.SignOut))
	e.GET("/console/oidc", b.open(c.Provider))
	e.GET("/console/oidc/callback", b.open(c.ProviderAnswered))
	e.GET("/console/signup", b.open(c.SignUp))
	e.POST("/console/signup", b.open(c.DoSignUp))
	e.GET("/console/reset", b.open(c.Reset))
	e.POST("/console/reset", b.open(c.DoReset))
	e.GET("/console/enter", b.open(c.Enter))
	e.POST("/console/enter", b.open(c.DoEnter))
	e.GET("/console/join", b.open(c.Join))
	e.POST("/console/join", b.signed(c.DoJoin))
	e.GET("/console", b.signed(c.Home))
	e.GET("/console/homes", b.signed(c.Homes))
	e.POST("/console/tenant", b.signed(c.DoTenant))
	e.GET("/console/account", b.signed(c.Account))
	e.POST("/console/account", b.signed(c.DoProfile))
	e.POST("/console/account/password", b.signed(c.DoPassword))
	e.POST("/console/account/signout-everywhere", b.signed(c.DoSignOutEverywhere))

	// Calls that wait for a person.
	waiting := b.signed(b.approvals.Handler().ServeHTTP)
	e.GET("/console/approvals", waiting)
	e.GET("/console/approvals/list", waiting)
	e.GET("/console/approvals/:tenant/:id", waiting)
	e.POST("/console/approvals/:tenant/:id", waiting)

	// Letting connectors in. The handler has the same patterns once more, for what
	// is in the path.
	pair := b.signed(b.pairPages.Handler().ServeHTTP)
	e.GET("/pair", pair)
	e.POST("/pair", pair)
	e.GET("/pair/:id", pair)
	e.POST("/pair/:id", pair)
	e.GET("/console/connectors", pair)
	e.POST("/console/connectors/:tenant/:id/revoke", pair)
	b.activityRoutes(e)
	b.settingsRoutes(e)
	b.membersRoutes(e)
	b.memoryRoutes(e)
	b.feedbackRoutes(e)
	return e
}
