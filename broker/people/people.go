package people

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/tenants"
)

// SignUpMode says who may sign up.
type SignUpMode string

// The modes.
const (
	SignUpClosed SignUpMode = "closed" // nobody: the operator adds people
	SignUpInvite SignUpMode = "invite" // who has an invitation link
	SignUpOpen   SignUpMode = "open"   // anybody
)

// Valid reports whether m is one of the modes.
func (m SignUpMode) Valid() bool { return m == SignUpClosed || m == SignUpInvite || m == SignUpOpen }

// Limit takes one of limit tries from a counter over a window, and says after
// how long another is worth it when none is left.
type Limit func(ctx context.Context, counter string, limit int, window time.Duration) (ok bool, retryAfter time.Duration)

// Options of People.
type Options struct {
	Store    tenants.Store
	Pages    *page.Pages
	Limit    Limit
	ClientIP func(*http.Request) string
	SignUp   SignUpMode
	OIDC     *Provider // nil: passwords only
	Hasher   *Hasher   // nil: DefaultHasher
	Now      func() time.Time
	Log      *slog.Logger
}

// What can go wrong for a person, besides the store being away.
var (
	// ErrWrong means that address and password do not belong together; whether
	// the address is known is not told.
	ErrWrong = errors.New("address or password is wrong")
	// ErrTooMany means that there were too many tries; see Wait.
	ErrTooMany = errors.New("too many tries")
	// ErrClosed means that signing up is not possible this way.
	ErrClosed = errors.New("signing up is closed")
	// ErrLink means that a link was used, has expired or never was.
	ErrLink = errors.New("the link was used already or has expired")
)

// People is who may be in and who is. It is safe for concurrent use.
type People struct {
	Options
	decoy string // a hash that no password fits, for addresses nobody has
}

// New makes People.
func New(o Options) (*People, error) {
	if o.Store == nil || o.Pages == nil || o.Limit == nil || o.ClientIP == nil || !o.SignUp.Valid() {
		return nil, errors.New("people: Store, Pages, Limit, ClientIP and SignUp are needed")
	}
	if o.Hasher == nil {
		o.Hasher = DefaultHasher()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &People{Options: o, decoy: o.Hasher.decoy()}, nil
}

// network is what an address is counted by: tries from one household or one
// machine with many IPv6 addresses are tries of one.
func (p *People) network(r *http.Request) string {
	addr, err := netip.ParseAddr(p.ClientIP(r))
	if err != nil {
		return "unknown"
	}
	addr = addr.Unmap()
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return "unknown"
	}
	return prefix.Addr().String()
}
