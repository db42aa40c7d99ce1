package broker

import (
	"strings"
	"testing"
	"time"
)

// sound is a configuration that passes, for tests to break.
func sound() Config {
	return Config{
		Listen: "127.0.0.1:8080", LogLevel: "info", LogFormat: "json", CallTimeout: time.Minute, ShutdownTimeout: time.Second,
		MaxRequestBytes: 1 << 20, MaxResultBytes: 1 << 20, Data: "/data", NodeID: "n",
	}
}

func TestConfigurationThatCannotWorkIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string // "" for a sound one
	}{
		"defaults on loopback": {func(*Config) {}, ""},
		"public without TLS":   {func(c *Config) { c.Listen, c.PublicURLs = "0.0.0.0:80", []string{"https://x.example"} }, "tokens would travel in the clear"},
		"public behind a proxy": {func(c *Config) {
			c.Listen, c.BehindTLSProxy, c.PublicURLs = "0.0.0.0:80", true, []string{"https://x.example"}
		}, ""},
		"public without URL":             {func(c *Config) { c.Listen, c.BehindTLSProxy = ":80", true }, "public_urls"},
		"public URL in the clear":        {func(c *Config) { c.PublicURLs = []string{"http://x.example"} }, "must be https"},
		"public URL with a query":        {func(c *Config) { c.PublicURLs = []string{"https://x.example?a=b"} }, "not a base URL"},
		"half a certificate":             {func(c *Config) { c.TLSCert = "c.pem" }, "set both or neither"},
		"raw tunnel without certificate": {func(c *Config) { c.TunnelListen = ":7000" }, "the raw tunnel is TLS"},
		"listen without port":            {func(c *Config) { c.Listen = "localhost" }, "not host:port"},
		"database without recorder":      {func(c *Config) { c.DatabaseURL, c.MasterKey = "postgres://a@b/c", strings.Repeat("A", 43)+"=" }, "database_recorder_url"},
		"database without master key":    {func(c *Config) { c.DatabaseURL, c.DatabaseRecord = "postgres://a@b/c", "postgres://r@b/c" }, "openssl rand -base64 32"},
		"master key of the wrong length": {func(c *Config) { c.MasterKey = "AAAA" }, "not 32 bytes"},
		"proxy that is no address":       {func(c *Config) { c.TrustedProxies = []string{"proxy"} }, "neither an address nor a CIDR"},
		"no time for calls":              {func(c *Config) { c.CallTimeout = 0 }, "call_timeout"},
		"a heart that races":             {func(c *Config) { c.Heartbeat = time.Millisecond }, "sse_heartbeat"},
		"a heart that stands still":      {func(c *Config) { c.Heartbeat = time.Hour }, "sse_heartbeat"},
		"a heart of its own":             {func(c *Config) { c.Heartbeat = 25 * time.Second }, ""},
		"results of no size":             {func(c *Config) { c.MaxResultBytes = 0 }, "max_result_bytes"},
		"who may sign up":                {func(c *Config) { c.SignUp = "friends" }, "sign_up"},
		"identity provider in the clear": {func(c *Config) { c.OIDCIssuer, c.OIDCClientID = "http://login.example", "x" }, "oidc_issuer"},
		"identity provider without us":   {func(c *Config) { c.OIDCIssuer = "https://login.example" }, "oidc_client_id"},
		"us without identity provider":   {func(c *Config) { c.OIDCClientID = "x" }, "set oidc_issuer too"},
		"unknown log level":              {func(c *Config) { c.LogLevel = "loud" }, "log_level"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := sound()
			c.change(&conf)
			err := conf.Validate()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want something about %q", err, c.want)
			}
		})
	}
}

func TestTheResourceFollowsTheFirstPublicURL(t *testing.T) {
	c := sound()
	c.PublicURLs = []string{"https://notes.example/", "https://alias.example"}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := c.Resource(); got != "https://notes.example/mcp" {
		t.Errorf("resource is %s", got)
	}
	d := sound()
	if err := d.Validate(); err != nil || d.Resource() != "http://127.0.0.1:8080/mcp" {
		t.Errorf("resource is %s, %v", d.Resource(), err)
	}
}
