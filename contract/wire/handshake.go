package wire

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Names both ends must agree on before the first frame.
const (
	ALPN          = "siyuan-tunnel/1"             // TLS application protocol of the raw transport
	Path          = "/tunnel"                     // WebSocket endpoint
	WellKnownPath = "/.well-known/siyuan-broker"  // where Discovery is served
	Subprotocol   = "siyuan-tunnel.1"             // WebSocket subprotocol
	TokenType     = "siyuan-tunnel+jwt"           // typ header of the AUTH token
	ExporterLabel = "EXPORTER-siyuan-tunnel-auth" // RFC 8446 exporter bound into the token
	ExporterSize  = 32                            // bytes of exported keying material
	NonceSize     = 32                            // bytes of the CHALLENGE nonce
	TokenSkew     = 60 * time.Second              // how far iat may be from the broker's clock
)

// Versions are the protocol versions this build speaks, ascending.
func Versions() []int { return []int{1} }

// Negotiate is the highest version both lists have; ok is false if there is none.
func Negotiate(a, b []int) (version int, ok bool) {
	for _, v := range a {
		if v > version && slices.Contains(b, v) {
			version, ok = v, true
		}
	}
	return version, ok
}

// Kind says what a session is for.
type Kind string

// The kinds of session.
const (
	KindCalls Kind = "calls" // calls and events; one per connector
	KindBulk  Kind = "bulk"  // large bodies of one session of calls, beside it
	KindProbe Kind = "probe" // none: always refused with RejectKind, after the key was checked
)

// Challenge is the first frame, from the broker.
type Challenge struct {
	Versions []int  `json:"versions"`
	Nonce    string `json:"nonce"` // base64url without padding
}

// Auth is the connector's answer to a Challenge.
type Auth struct {
	Version  int    `json:"version"`
	Kind     Kind   `json:"kind"`
	Token    string `json:"token"`               // JWT, EdDSA
	Software string `json:"software,omitempty"`  // name and version, for people
	MaxCalls int    `json:"max_calls,omitempty"` // calls it runs at once; absent: as the broker likes
	Grants   int    `json:"grants,omitempty"`    // grants it remembers by digest; absent: none
	Bulk     bool   `json:"bulk,omitempty"`      // calls: it opens a bulk session when asked, and takes STREAM
	Safety   bool   `json:"safety,omitempty"`    // calls: it knows Call.Safety; without, a validation would be a write
	Epoch    int64  `json:"epoch,omitempty"`     // bulk: of the session it belongs to
}

// Welcome opens the session. Both ends start yamux right behind it.
type Welcome struct {
	Version        int    `json:"version"`
	Node           string `json:"node"`
	Epoch          int64  `json:"epoch"` // the newest epoch of an instance is the active one
	MaxFrame       int    `json:"max_frame"`
	MaxHeader      int    `json:"max_header"`
	MaxResult      int    `json:"max_result"` // bytes of a RESULT body
	MaxCalls       int    `json:"max_calls"`  // call streams the broker will open
	PingIntervalMS int64  `json:"ping_interval_ms"`
	PingTimeoutMS  int64  `json:"ping_timeout_ms"`
	Bulk           bool   `json:"bulk,omitempty"` // the broker takes a bulk session of this one
}

// RejectCode says why a connector may not connect or stay.
type RejectCode string

// The reasons of a REJECT. Only RejectRevoked is final.
const (
	RejectRevoked      RejectCode = "revoked"      // the credential will never work again
	RejectUnauthorized RejectCode = "unauthorized" // token not accepted; clock or address may be wrong
	RejectVersion      RejectCode = "unsupported_version"
	RejectKind         RejectCode = "unsupported_kind"
	RejectProtocol     RejectCode = "protocol_error"
	RejectReplaced     RejectCode = "replaced"  // a newer session of the instance took over
	RejectDraining     RejectCode = "draining"  // this node is stopping; connect again
	RejectElsewhere    RejectCode = "elsewhere" // bulk: the session it belongs to is not on this node
	RejectBusy         RejectCode = "busy"
	RejectInternal     RejectCode = "internal_error"
)

// Reject ends a handshake or a session.
type Reject struct {
	Code        RejectCode `json:"code"`
	Message     string     `json:"message"` // for people; never decides anything
	RetryAfterS int        `json:"retry_after_s,omitempty"`
}

// Error makes a Reject usable as the reason a session ended.
func (r *Reject) Error() string { return fmt.Sprintf("broker rejected: %s: %s", r.Code, r.Message) }

// Discovery is the document at WellKnownPath.
type Discovery struct {
	Issuer   string   `json:"issuer,omitempty"`
	Versions []int    `json:"versions"`
	Tunnel   Endpoint `json:"tunnel"`
	Pairing  []int    `json:"pairing,omitempty"` // versions of pairing; absent: the broker has none
}

// Endpoint lists the ways into the tunnel; an absent one is not offered.
type Endpoint struct {
	TLS string `json:"tls,omitempty"` // host:port
	WSS string `json:"wss,omitempty"` // URL
}

// Audience is the aud claim for a broker at the given base URL: the connector
// derives it from the address its owner configured, never from what a server
// says, so that a token cannot be relayed to another broker. It differs from
// every audience of the MCP endpoint.
func Audience(base *url.URL) string {
	host, port := strings.ToLower(base.Hostname()), base.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" && !(port == "443" && base.Scheme == "https") && !(port == "80" && base.Scheme == "http") {
		host += ":" + port
	}
	return "siyuan-tunnel:" + host
}
