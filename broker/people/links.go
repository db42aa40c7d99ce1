package people

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"time"

	"siyuan-broker/tenants"
)

// How long links can be used.
const (
	LinkLife   = time.Hour
	InviteLife = 7 * 24 * time.Hour
)

// Where links lead.
const (
	SignUpPath = "/console/signup"
	ResetPath  = "/console/reset"
	EnterPath  = "/console/enter"
	JoinPath   = "/console/join"
)

// Links makes the links that operators give to people. It needs nothing that
// serves pages, so commands beside a broker use it too.
type Links struct {
	Store tenants.SignInStore
	Base  string // public URL of the broker
	Now   func() time.Time
}

// NewLinks makes Links for a public URL.
func NewLinks(store tenants.SignInStore, base string) *Links {
	return &Links{Store: store, Base: base, Now: time.Now}
}

func (l *Links) make(ctx context.Context, path string, life time.Duration, link tenants.Link) (string, error) {
	secret := rand.Text()
	link.Hash, link.ExpiresAt = hashOf(secret), l.Now().Add(life)
	if err := l.Store.PutLink(ctx, link); err != nil {
		return "", err
	}
	return l.Base + path + "?" + url.Values{"link": {secret}}.Encode(), nil
}

// Invite is a link with which the person of an address signs up.
func (l *Links) Invite(ctx context.Context, email string) (string, error) {
	email, err := tenants.NormalizeEmail(email)
	if err != nil {
		return "", err
	}
	return l.make(ctx, SignUpPath, InviteLife, tenants.Link{Kind: tenants.LinkInvite, Email: email})
}

// Reset is a link with which a person sets a new password.
func (l *Links) Reset(ctx context.Context, user tenants.ID) (string, error) {
	return l.make(ctx, ResetPath, LinkLife, tenants.Link{Kind: tenants.LinkReset, UserID: user})
}

// SignIn is a link that signs a person in.
func (l *Links) SignIn(ctx context.Context, user tenants.ID) (string, error) {
	return l.make(ctx, EnterPath, LinkLife, tenants.Link{Kind: tenants.LinkSignIn, UserID: user})
}

// ErrInhabited means that the installation has people already.
var ErrInhabited = errors.New("the installation has people already")

// Operator is the link that makes the first person of an empty installation.
// ErrInhabited.
func (l *Links) Operator(ctx context.Context) (string, error) {
	someone, err := l.Store.Users(ctx, "", 1)
	if err != nil {
		return "", err
	}
	if len(someone) > 0 {
		return "", ErrInhabited
	}
	return l.make(ctx, SignUpPath, LinkLife, tenants.Link{Kind: tenants.LinkOperator})
}
