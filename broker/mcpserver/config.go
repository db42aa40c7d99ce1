package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/consent"
	"siyuan-broker/broker/here"
	"siyuan-broker/broker/token"
	"siyuan-broker/broker/transfers"
	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

const (
	defaultCallTimeout = 60 * time.Second
	defaultMaxBody     = 4 << 20
	defaultAgents      = 4096
	defaultBodyTimeout = 30 * time.Second
	defaultHeartbeat   = 12 * time.Second // proxies and clients wait 15 s and more
	defaultQuestion    = 10 * time.Minute
	defaultSessions    = 64
	tenantSessions     = 1024
	nodeSessions       = 16384
	defaultIdle        = 10 * time.Minute // coming back costs less than a millisecond
)

// Tokens checks bearer tokens; *token.Verifier does. Verify returns errors that
// are token.ErrInvalid or token.ErrNotReady.
type Tokens interface {
	Verify(ctx context.Context, raw string) (token.Claims, error)
}

// Snapshots knows principals; *admission.Cache does. Get returns errors that
// are tenants.ErrNotFound or admission.ErrUnavailable.
type Snapshots interface {
	Get(ctx context.Context, tenant, agent tenants.ID) (*admission.Snapshot, error)
}

// Relay carries calls home; *relay.Hub does. It answers within ctx, in the
// public vocabulary, and calls progress from the calling goroutine.
type Relay interface {
	Call(ctx context.Context, tenant, instance string, call contract.Call, idempotent bool, progress func(contract.Progress)) contract.Result
}

// Recorder keeps records of calls; *recorder.Recorder does. It never blocks.
type Recorder interface {
	Record(c tenants.Call)
}

// Transfers hands out one-time URLs for calls whose content travels by itself;
// *transfers.Desk does.
type Transfers interface {
	Standing(ctx context.Context, o transfers.Order) (st transfers.Standing, renew bool, err *contract.Error)
	Issue(ctx context.Context, o transfers.Order) (tools.OneTimeURL, *contract.Error)
}

// Own carries out the actions that are the broker's own (tools.Action.AtBroker);
// levels.Changes does. Preview says what a call would do, Carry is done in the
// transaction in which a person's agreement to it is used up, Answer is for who
// made the call, once it is done.
type Own interface {
	Preview(ctx context.Context, snap *admission.Snapshot, args json.RawMessage) (contract.Preview, *contract.Error)
	Carry(snap *admission.Snapshot, args json.RawMessage) func(ctx context.Context, tx tenants.Tx, agreed tenants.Approval) error
	Answer(snap *admission.Snapshot, args json.RawMessage) (json.RawMessage, *contract.Error)
}

// Limit takes one call per minute from everything that limits an agent's use of
// a tool, over all nodes; perMinute is the tenant's own limit for its agents, or
// 0. It never waits for long and always answers; what names the limit that is
// used up, "" where none is.
type Limit func(ctx context.Context, tenant, agent, tool string, perMinute int) (what string, retryAfter time.Duration)

// Budget takes one write from what an agent may do before a person is asked, over
// all nodes, and reports whether one was left.
type Budget func(ctx context.Context, tenant, agent string, l tenants.Limits) bool

// budget is what is known of a request's Budget.
type budget int

const (
	budgetUnknown budget = iota
	budgetLeft
	budgetSpent
)

// Config is everything a Server needs. The first block is required; zero values
// elsewhere mean the defaults.
type Config struct {
	PublicURLs []string // scheme, host and optional port of every public address; the first is preferred
	Issuer     string   // the authorization server that agents are sent to
	Catalogue  *tools.Catalogue
	Tokens     Tokens
	Snapshots  Snapshots
	Relay      Relay
	Recorder   Recorder

	// Legacy sessions outlive the process where Keys is a store; they end on
	// every node where Ended is shared; their answers find the right node where
	// Peers knows the others.
	Keys  KeyStore
	Ended EndedSessions
	Peers Peers
	Book  Book

	Version         string             // of this program, shown to clients
	Scopes          []string           // asked for in challenges and listed in the metadata
	Origins         []string           // of browser clients, besides the public URLs
	Preface         disclosure.Preface // joined to the instructions
	Here            here.Place         // answers calls in place of the home; nil: none
	Transfers       Transfers          // nil: files travel inside calls only
	Own             Own                // nil: actions of the broker's own are unsupported
	NoHotLane       bool               // leave every call to the SDK
	Limit           Limit              // nil: calls are not counted
	Budget          Budget             // nil: writes are not counted
	Consent         *consent.Desk      // where people are asked; nil: nobody can be
	Log             *slog.Logger
	Now             func() time.Time
	CallTimeout     time.Duration // 60 s for one call
	QuestionTimeout time.Duration // 10 min for a call with the questions it asks a person
	BodyTimeout     time.Duration // 30 s for a client to send a body
	Heartbeat       time.Duration // 12 s between signs of life on a silent stream
	SessionIdle     time.Duration // 10 min; a legacy session unused so long leaves memory
	MaxBody         int64         // 4 MiB
	MaxAgents       int           // 4096 agents with a server in memory; the longest unused goes with its sessions

	// Legacy sessions in memory, of one agent (64), one tenant (1024) and in all
	// (16384). Beyond them the longest unused leaves memory, which its client
	// does not notice.
	MaxSessions, MaxTenantSessions, MaxNodeSessions int

	// build makes the SDK's server of an agent; the conformance test adds what
	// its suite calls by name.
	build func(*mcp.Implementation, *mcp.ServerOptions) *mcp.Server
}

func (c *Config) complete() error {
	if len(c.PublicURLs) == 0 || c.Issuer == "" || c.Catalogue == nil || c.Tokens == nil || c.Snapshots == nil || c.Relay == nil || c.Recorder == nil {
		return errors.New("mcp server: PublicURLs, Issuer, Catalogue, Tokens, Snapshots, Relay and Recorder are required")
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.build == nil {
		c.build = mcp.NewServer
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Keys == nil {
		c.Keys = &memoryKeys{}
	}
	if c.Ended == nil {
		c.Ended = NewMemoryEnded(c.Now)
	}
	if c.Peers == nil {
		c.Peers = alone{}
	}
	if c.Book == nil {
		c.Book = unread{}
	}
	c.CallTimeout = cmp.Or(c.CallTimeout, defaultCallTimeout)
	c.QuestionTimeout = cmp.Or(c.QuestionTimeout, defaultQuestion)
	c.BodyTimeout = cmp.Or(c.BodyTimeout, defaultBodyTimeout)
	c.Heartbeat = cmp.Or(c.Heartbeat, defaultHeartbeat)
	c.SessionIdle = cmp.Or(c.SessionIdle, defaultIdle)
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	c.MaxAgents = cmp.Or(c.MaxAgents, defaultAgents)
	c.MaxSessions = cmp.Or(c.MaxSessions, defaultSessions)
	c.MaxTenantSessions = cmp.Or(c.MaxTenantSessions, tenantSessions)
	c.MaxNodeSessions = cmp.Or(c.MaxNodeSessions, nodeSessions)
	return nil
}

// Resource is the URL of /mcp under a public URL: what agents are given and
// what tokens are issued for.
func Resource(publicURL string) string { return strings.TrimRight(publicURL, "/") + "/mcp" }

// address is one public URL, split for comparing.
type address struct {
	origin string // scheme://host[:port], as browsers write it
	host   string // host[:port], lower case, without the scheme's default port
}

func parseAddress(publicURL string) (address, error) {
	u, err := url.Parse(publicURL)
	if err != nil {
		return address{}, fmt.Errorf("public URL %q: %w", publicURL, err)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return address{}, fmt.Errorf("public URL %q: want scheme and host only, such as https://notes.example", publicURL)
	}
	host := withoutDefaultPort(strings.ToLower(u.Host), u.Scheme)
	return address{u.Scheme + "://" + host, host}, nil
}

func withoutDefaultPort(host, scheme string) string {
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}
