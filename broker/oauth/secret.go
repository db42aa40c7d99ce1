package oauth

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"siyuan-broker/tenants"
)

// Codes and refresh tokens begin with the tenant they belong to, so that they
// are looked for within that tenant and nowhere else; 256 random bits follow.
// The prefixes let people and scanners recognise one that lies about.
const (
	codePrefix    = "sybc_"
	refreshPrefix = "sybr_"
	devicePrefix  = "sybd_"
	randomBytes   = 32
)

// secret makes a new secret. Without a tenant it is only random.
func (s *Server) secret(prefix string, tenant tenants.ID) (string, error) {
	b := make([]byte, 0, len(tenant)+randomBytes)
	if tenant != (tenants.ID{}) {
		b = append(b, tenant[:]...)
	}
	random := make([]byte, randomBytes)
	if _, err := io.ReadFull(s.cfg.Rand, random); err != nil {
		return "", fmt.Errorf("random secret: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(append(b, random...)), nil
}

// tenantOf is the tenant in a secret; false for what is none of ours.
func tenantOf(prefix, secret string) (tenants.ID, bool) {
	text, ok := strings.CutPrefix(secret, prefix)
	var tenant tenants.ID
	if !ok || base64.RawURLEncoding.DecodedLen(len(text)) != len(tenant)+randomBytes {
		return tenant, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return tenant, false
	}
	copy(tenant[:], b)
	return tenant, tenant != (tenants.ID{})
}

// limit takes one event, or refuses.
func (s *Server) limit(r *http.Request, what, who string, limit int, window time.Duration) error {
	if ok, after := s.cfg.Limit(r.Context(), "oauth "+what, who, limit, window); !ok {
		return tooOften(after)
	}
	return nil
}

// address is whom to count a request against: the client's IPv4 address, or the
// network of its IPv6 one, of which one machine has many.
func (s *Server) address(r *http.Request) string {
	text := s.cfg.Address(r)
	if ap, err := netip.ParseAddrPort(text); err == nil {
		text = ap.Addr().String()
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return "unknown"
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.String()
}
