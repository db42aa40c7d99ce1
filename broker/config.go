package broker

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"siyuan-broker/broker/people"
)

// Config is everything an operator can set. cmd/internal/settings fills it from
// a YAML file and the environment; `siyuan-broker config dump` shows it.
type Config struct {
	Listen          string        `key:"listen" env:"BROKER_LISTEN" default:"127.0.0.1:8080" doc:"Address of the HTTP listener: MCP, tunnel over WebSocket, health."`
	TLSCert         string        `key:"tls_cert" env:"BROKER_TLS_CERT" doc:"PEM certificate chain; with tls_key the listeners speak TLS themselves."`
	TLSKey          string        `key:"tls_key" env:"BROKER_TLS_KEY" doc:"PEM private key file of tls_cert."`
	TunnelListen    string        `key:"tunnel_listen" env:"BROKER_TUNNEL_LISTEN" doc:"Address of the raw TLS tunnel listener; empty: tunnels come over WebSocket only."`
	TunnelPublic    string        `key:"tunnel_public" env:"BROKER_TUNNEL_PUBLIC" doc:"host:port by which connectors reach tunnel_listen; empty: the host of the first public URL with tunnel_listen's port."`
	PublicURLs      []string      `key:"public_urls" env:"BROKER_PUBLIC_URLS" doc:"Base URLs people and agents use, the main one first; empty: http(s)://listen."`
	BehindTLSProxy  bool          `key:"behind_tls_proxy" env:"BROKER_BEHIND_TLS_PROXY" default:"false" doc:"A proxy in front terminates TLS. Without it a public bind without TLS is refused."`
	TrustedProxies  []string      `key:"trusted_proxies" env:"BROKER_TRUSTED_PROXIES" doc:"Addresses or CIDRs whose X-Forwarded-For is believed."`
	AllowedOrigins  []string      `key:"allowed_origins" env:"BROKER_ALLOWED_ORIGINS" doc:"Browser origins besides the public URLs that may call /mcp, such as https://app.example."`
	DatabaseURL     string        `key:"database_url" env:"DATABASE_URL" secret:"true" doc:"PostgreSQL as the service role; empty: the broker runs its own in the data folder."`
	DatabaseDirect  string        `key:"database_direct_url" env:"DATABASE_DIRECT_URL" secret:"true" doc:"PostgreSQL without a pooler in between: migrate connects with it as the owner, serve listens on it; empty: database_url."`
	DatabaseRecord  string        `key:"database_recorder_url" env:"DATABASE_RECORDER_URL" secret:"true" doc:"PostgreSQL as the recorder role; needed with database_url."`
	DatabaseAdmin   string        `key:"database_admin_url" env:"DATABASE_ADMIN_URL" secret:"true" doc:"PostgreSQL as a superuser, for migrate only: makes roles and database."`
	RedisURL        string        `key:"redis_url" env:"REDIS_URL" secret:"true" doc:"Redis that several nodes share, such as rediss://user:password@host:6379/0; empty: this is the only node."`
	PeerListen      string        `key:"peer_listen" env:"BROKER_PEER_LISTEN" doc:"Address where the other nodes reach this one's tunnels, such as 10.0.0.5:7443; needed with redis_url. Only nodes with the same master_key get in."`
	PeerPublic      string        `key:"peer_public" env:"BROKER_PEER_PUBLIC" doc:"host:port by which the other nodes reach peer_listen; empty: peer_listen itself."`
	MasterKey       string        `key:"master_key" env:"BROKER_MASTER_KEY" secret:"true" doc:"32 random bytes in base64 that seal the signing keys; empty: a file in the data folder, where the database is the broker's own."`
	Data            string        `key:"data" env:"BROKER_DATA" doc:"Folder for what the broker keeps itself; empty: the user's data folder, as root /var/lib/siyuan-broker."`
	NodeID          string        `key:"node_id" env:"BROKER_NODE_ID" doc:"Name of this node, unique among the nodes; empty: the host name."`
	LogLevel        string        `key:"log_level" env:"BROKER_LOG_LEVEL" default:"info" doc:"debug, info, warn or error."`
	LogFormat       string        `key:"log_format" env:"BROKER_LOG_FORMAT" default:"json" doc:"json or text."`
	CallTimeout     time.Duration `key:"call_timeout" env:"BROKER_CALL_TIMEOUT" default:"60s" doc:"Longest time of one tool call."`
	ShutdownTimeout time.Duration `key:"shutdown_timeout" env:"BROKER_SHUTDOWN_TIMEOUT" default:"20s" doc:"Longest wait for calls in flight when stopping."`
	CallsPerMinute  int           `key:"calls_per_minute" env:"BROKER_CALLS_PER_MINUTE" default:"600" doc:"Calls an agent may make in a minute, on all nodes together, where its tenant has no limit of its own; 0: any number."`
	ToolPerMinute   int           `key:"calls_per_minute_tool" env:"BROKER_CALLS_PER_MINUTE_TOOL" default:"0" doc:"Calls an agent may make to one tool in a minute, on all nodes together; 0: any number."`
	TenantPerMinute int           `key:"calls_per_minute_tenant" env:"BROKER_CALLS_PER_MINUTE_TENANT" default:"6000" doc:"Calls all agents of a tenant may make in a minute, on all nodes together; 0: any number."`
	Heartbeat       time.Duration `key:"sse_heartbeat" env:"BROKER_SSE_HEARTBEAT" default:"12s" doc:"Longest silence on a stream to an agent before a sign of life, from 1s to 5m. Shorter than the shortest idle timeout of the proxies on the way."`
	HotLane         bool          `key:"hot_lane" env:"BROKER_HOT_LANE" default:"true" doc:"Answer plain tool calls on the short way; off: every call goes through the MCP SDK, with the same answers but slower."`
	SignUp          string        `key:"sign_up" env:"BROKER_SIGN_UP" default:"invite" doc:"Who may make an account in the console: closed (the operator adds people), invite (with a link from siyuan-broker user invite) or open (anybody)."`
	OIDCIssuer      string        `key:"oidc_issuer" env:"BROKER_OIDC_ISSUER" doc:"URL of the OpenID provider with which people may sign in; empty: passwords only."`
	OIDCClientID    string        `key:"oidc_client_id" env:"BROKER_OIDC_CLIENT_ID" doc:"This broker's client id there. The redirect URI to register is the public URL followed by /console/oidc/callback."`
	OIDCSecret      string        `key:"oidc_client_secret" env:"BROKER_OIDC_CLIENT_SECRET" secret:"true" doc:"Its client secret; empty for a public client."`
	OIDCName        string        `key:"oidc_name" env:"BROKER_OIDC_NAME" doc:"What the button on the sign-in page calls the provider; empty: its host."`
	OIDCLinkByEmail bool          `key:"oidc_link_by_email" env:"BROKER_OIDC_LINK_BY_EMAIL" default:"false" doc:"An identity whose address the provider has verified may sign in to the account of that address. Only for a provider that you trust with that."`
	MaxRequestBytes int           `key:"max_request_bytes" env:"BROKER_MAX_REQUEST_BYTES" default:"4194304" doc:"Largest request body."`
	MaxUploadBytes  int           `key:"max_upload_bytes" env:"BROKER_MAX_UPLOAD_BYTES" default:"26214400" doc:"Largest file that agents may upload, where their tenant has no limit of its own. Files are let through and not kept."`
	MaxResultBytes  int           `key:"max_result_bytes" env:"BROKER_MAX_RESULT_BYTES" default:"8388608" doc:"Largest result passed inline."`
}

// Validate completes defaults that depend on other settings and reports every
// setting that cannot work, each with what to do about it.
func (c *Config) Validate() error {
	var bad []error
	fail := func(format string, args ...any) { bad = append(bad, fmt.Errorf(format, args...)) }

	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		fail("listen: %q is not host:port", c.Listen)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		fail("tls_cert and tls_key: set both or neither")
	}
	if err == nil && !loopback(host) && !c.TLS() && !c.BehindTLSProxy {
		fail("listen: %s is reachable from other machines, and tokens would travel in the clear; set tls_cert and tls_key, or behind_tls_proxy when a proxy in front does TLS", c.Listen)
	}
	if c.TunnelListen != "" && !c.TLS() {
		fail("tunnel_listen: the raw tunnel is TLS; set tls_cert and tls_key")
	}
	if len(c.PublicURLs) == 0 && err == nil {
		if !loopback(host) {
			fail("public_urls: name the URL people and agents use, such as https://notes.example")
		}
		scheme := "http"
		if c.TLS() {
			scheme = "https"
		}
		c.PublicURLs = []string{scheme + "://" + net.JoinHostPort(host, port)}
	}
	for i, raw := range c.PublicURLs {
		u, err := url.Parse(raw)
		switch {
		case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
			fail("public_urls: %q is not a base URL such as https://notes.example", raw)
		case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
			fail("public_urls: %q must be https; plain http is for loopback only", raw)
		default:
			c.PublicURLs[i] = strings.TrimRight(raw, "/")
		}
	}
	if c.DatabaseURL != "" && c.DatabaseRecord == "" {
		fail("database_recorder_url: needed with database_url; `siyuan-broker migrate` tells which roles it makes")
	}
	if err := validatePeers(c.RedisURL, c.PeerListen, c.PeerPublic, c.DatabaseURL); err != nil {
		bad = append(bad, err)
	}
	if c.Data == "" {
		c.Data = defaultData()
	}
	if c.NodeID == "" {
		c.NodeID, _ = os.Hostname() // an empty name is completed below
	}
	if c.NodeID == "" {
		c.NodeID = "node"
	}
	for _, p := range c.TrustedProxies {
		if _, err := ParsePrefix(p); err != nil {
			fail("trusted_proxies: %q is neither an address nor a CIDR", p)
		}
	}
	if c.MasterKey != "" {
		if _, err := c.masterKey(); err != nil {
			bad = append(bad, err)
		}
	} else if c.DatabaseURL != "" {
		fail("master_key: needed with database_url, the same on every node; make one with: openssl rand -base64 32")
	}
	if c.SignUp == "" {
		c.SignUp = string(people.SignUpInvite)
	}
	if !people.SignUpMode(c.SignUp).Valid() {
		fail("sign_up: %q is not closed, invite or open", c.SignUp)
	}
	if err := c.validateOIDC(); err != nil {
		bad = append(bad, err)
	}
	if !oneOf(c.LogLevel, "debug", "info", "warn", "error") {
		fail("log_level: %q is not debug, info, warn or error", c.LogLevel)
	}
	if !oneOf(c.LogFormat, "json", "text") {
		fail("log_format: %q is not json or text", c.LogFormat)
	}
	for name, d := range map[string]time.Duration{"call_timeout": c.CallTimeout, "shutdown_timeout": c.ShutdownTimeout} {
		if d <= 0 {
			fail("%s: must be greater than zero", name)
		}
	}
	if c.Heartbeat != 0 && (c.Heartbeat < time.Second || c.Heartbeat > 5*time.Minute) { // 0: the standard
		fail("sse_heartbeat: %v is not from 1s to 5m", c.Heartbeat)
	}
	for name, n := range map[string]int{"max_request_bytes": c.MaxRequestBytes, "max_result_bytes": c.MaxResultBytes} {
		if n < 4096 {
			fail("%s: must be at least 4096", name)
		}
	}
	if c.MaxUploadBytes < 0 {
		fail("max_upload_bytes: must not be negative")
	}
	return errors.Join(bad...)
}

// validateOIDC checks the identity provider and completes its name.
func (c *Config) validateOIDC() error {
	if c.OIDCIssuer == "" {
		if c.OIDCClientID != "" || c.OIDCSecret != "" || c.OIDCLinkByEmail {
			return errors.New("oidc_client_id, oidc_client_secret, oidc_link_by_email: they are for an identity provider; set oidc_issuer too, or leave them out")
		}
		return nil
	}
	u, err := url.Parse(c.OIDCIssuer)
	if err != nil || u.Host == "" || (u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname()))) {
		return fmt.Errorf("oidc_issuer: %q is not an https URL such as https://login.example", c.OIDCIssuer)
	}
	if c.OIDCClientID == "" {
		return errors.New("oidc_client_id: needed with oidc_issuer")
	}
	if c.OIDCName == "" {
		c.OIDCName = u.Hostname()
	}
	return nil
}

// TLS reports whether the listeners speak TLS themselves.
func (c *Config) TLS() bool { return c.TLSCert != "" && c.TLSKey != "" }

// Resource is the URL of the MCP endpoint, the audience of agents' tokens.
func (c *Config) Resource() string { return c.PublicURLs[0] + "/mcp" }

// defaultData is the data folder of this account.
func defaultData() string {
	if os.Geteuid() == 0 {
		return "/var/lib/siyuan-broker"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "siyuan-broker")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "siyuan-broker-data"
	}
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "siyuan-broker")
	case "windows":
		return filepath.Join(home, "AppData", "Local", "siyuan-broker")
	}
	return filepath.Join(home, ".local", "share", "siyuan-broker")
}

func (c *Config) masterKey() ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(c.MasterKey)
	if err != nil || len(key) != 32 {
		return nil, errors.New("master_key: not 32 bytes in base64; make one with: openssl rand -base64 32")
	}
	return key, nil
}

// ParsePrefix reads an address or a CIDR.
func ParsePrefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func oneOf(s string, all ...string) bool {
	for _, x := range all {
		if s == x {
			return true
		}
	}
	return false
}
