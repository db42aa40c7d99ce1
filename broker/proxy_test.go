package broker

import (
	"net/http/httptest"
	"testing"
)

func TestOnlyATrustedProxyMaySayWhereARequestComesFrom(t *testing.T) {
	for name, c := range map[string]struct {
		proxies               []string
		peer, forwarded, want string
	}{
		"no proxy":                           {nil, "192.0.2.1:1000", "", "192.0.2.1"},
		"a client that claims to be proxied": {nil, "192.0.2.1:1000", "203.0.113.9", "192.0.2.1"},
		"loopback is not trusted by itself":  {nil, "127.0.0.1:1000", "203.0.113.9", "127.0.0.1"},
		"a trusted proxy":                    {[]string{"127.0.0.1"}, "127.0.0.1:1000", "203.0.113.9", "203.0.113.9"},
		"a trusted network":                  {[]string{"10.0.0.0/8"}, "10.1.2.3:1000", "203.0.113.9", "203.0.113.9"},
		"a client's own entry before it":     {[]string{"10.0.0.0/8"}, "10.1.2.3:1000", "198.51.100.1, 203.0.113.9", "203.0.113.9"},
		"two trusted proxies":                {[]string{"10.0.0.0/8"}, "10.1.2.3:1000", "203.0.113.9, 10.9.9.9", "203.0.113.9"},
		"IPv6":                               {[]string{"2001:db8::/32"}, "[2001:db8::1]:1000", "2001:db9::5", "2001:db9::5"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.peer
			if c.forwarded != "" {
				r.Header.Set("X-Forwarded-For", c.forwarded)
			}
			conf := Config{TrustedProxies: c.proxies}
			if got := conf.clientIP()(r); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
