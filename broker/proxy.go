package broker

import (
	"net"

	"github.com/labstack/echo/v4"
)

// clientIP tells the address a request comes from: the peer's, or what a
// trusted proxy says in X-Forwarded-For. Entries that a client put there itself
// stand left of the first untrusted one and are not believed.
func (c *Config) clientIP() echo.IPExtractor {
	trust := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, s := range c.TrustedProxies {
		p, err := ParsePrefix(s)
		if err != nil { // Validate refused it
			continue
		}
		trust = append(trust, echo.TrustIPRange(&net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}))
	}
	return echo.ExtractIPFromXFFHeader(trust...)
}
