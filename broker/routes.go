package broker

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// routes shows every route. /mcp and /tunnel are mounted bare: no middleware
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
	e.GET("/tunnel", echo.WrapHandler(b.tunnel))

	e.GET("/.well-known/siyuan-broker", b.discovery)
	e.Any("/.well-known/oauth-protected-resource", echo.WrapHandler(http.HandlerFunc(b.mcp.ServeMetadata)))
	e.Any("/.well-known/oauth-protected-resource/mcp", echo.WrapHandler(http.HandlerFunc(b.mcp.ServeMetadata)))
	e.Any("/.well-known/oauth-protected-resource/mcp/", echo.WrapHandler(http.HandlerFunc(b.mcp.ServeMetadata)))
	e.GET("/oauth/jwks", echo.WrapHandler(b.keys))

	e.GET("/healthz", b.healthz)
	e.GET("/readyz", b.readyz)
	e.GET("/", b.welcome)
	return e
}
