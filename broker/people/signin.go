package people

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/tenants"
)

// How many tries there are. Nobody can use them up for somebody else: a password
// is counted by account and network, and a browser in which the person signed in
// before is counted by itself.
const (
	triesPerAccount = 10 // from one network, or from one known browser
	triesPerNetwork = 60 // whatever the account
	triesWindow     = 15 * time.Minute
	signUpsPerHour  = 10 // from one network
	linksPerHour    = 60 // from one network
)

// TooMany is ErrTooMany with how long to wait.
type TooMany struct{ Wait time.Duration }

func (e *TooMany) Error() string { return fmt.Sprintf("%v: wait %v", ErrTooMany, e.Wait) }

// Is makes it an ErrTooMany.
func (e *TooMany) Is(target error) bool { return target == ErrTooMany }

func (p *People) count(ctx context.Context, counter string, limit int, window time.Duration) error {
	if ok, wait := p.Limit(ctx, counter, limit, window); !ok {
		return &TooMany{wait}
	}
	return nil
}

// SignIn signs a person in with their password. ErrWrong, ErrTooMany. Answer and
// time are the same for an address that nobody has.
func (p *People) SignIn(w http.ResponseWriter, r *http.Request, email, password string) error {
	ctx := r.Context()
	u, err := p.Store.UserByEmail(ctx, email)
	known := err == nil
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return err
	}
	if err := p.countTry(r, u, email); err != nil {
		return err
	}
	hash := p.decoy
	if known && u.PasswordHash != "" {
		hash = u.PasswordHash
	}
	if len(password) > passwordMost {
		password = "" // fits nothing
	}
	ok, old, err := p.Hasher.Check(ctx, hash, password)
	if errors.Is(err, errBusy) {
		return &TooMany{time.Minute}
	}
	if err != nil {
		return err
	}
	if !ok || !known || u.PasswordHash == "" {
		return ErrWrong
	}
	if old {
		if fresh, err := p.Hasher.Hash(ctx, password); err == nil { // else at the next sign-in
			if _, err := p.Store.UpdateUser(ctx, u.ID, tenants.UserUpdate{PasswordHash: &fresh}); err != nil {
				return err
			}
		}
	}
	return p.begin(w, r, u.ID)
}

// countTry counts a try of a password.
func (p *People) countTry(r *http.Request, u tenants.User, email string) error {
	ctx := r.Context()
	if device := p.Pages.CookieValue(r, deviceCookie); device != "" && len(device) <= 100 {
		hash := hashOf(device)
		known, err := p.Store.DeviceKnown(ctx, u.ID, hash) // u is zero for an address nobody has
		if err != nil {
			return err
		}
		if known {
			return p.count(ctx, "signin device "+u.ID.String()+" "+hex.EncodeToString(hash[:16]), triesPerAccount, triesWindow)
		}
	}
	network := p.network(r)
	if err := p.count(ctx, "signin network "+network, triesPerNetwork, triesWindow); err != nil {
		return err
	}
	account := hex.EncodeToString(hashOf(strings.ToLower(strings.TrimSpace(email)))[:16])
	return p.count(ctx, "signin account "+account+" "+network, triesPerAccount, triesWindow)
}

// NewPerson is what somebody who signs up says.
type NewPerson struct {
	Email, Name, Password, Locale string
	Link                          string // secret of an invitation or the operator's link; empty: none
}

// Invitation is what a link for signing up says.
type Invitation struct {
	Email    string // the only address it is good for; empty: any
	Operator bool   // it makes the first person of the installation
	Joins    bool   // it leads into a tenant, and is used up there
}

// Invited looks at a link for signing up without using it. ErrLink, ErrTooMany.
func (p *People) Invited(r *http.Request, secret string) (Invitation, error) {
	if JoinsTenant(secret) {
		inv, err := p.InvitedInto(r, secret)
		if err == nil && p.SignUp == SignUpClosed {
			err = ErrLink
		}
		return Invitation{Email: inv.Email, Joins: true}, err
	}
	l, err := p.link(r, secret)
	if err != nil {
		return Invitation{}, err
	}
	switch {
	case l.Kind == tenants.LinkOperator:
		return Invitation{Operator: true}, nil
	case l.Kind == tenants.LinkInvite && p.SignUp != SignUpClosed:
		return Invitation{Email: l.Email}, nil
	}
	return Invitation{}, ErrLink
}

// Join signs a new person up, with a tenant of their own. With a link they are
// signed in at once. Without one they are not, and an address that is taken is
// answered alike, so that nobody learns who has an account by asking here. A link
// into a tenant is as none in this, because anybody who owns a tenant can make
// one for any address; it stays good, to be accepted by who has signed in.
//
// ErrShort, ErrLong, ErrCommon, ErrClosed, ErrLink, ErrTooMany, and
// tenants.ErrInvalid for an address that is none; with a link also
// tenants.ErrConflict.
func (p *People) Join(w http.ResponseWriter, r *http.Request, n NewPerson) (signedIn bool, err error) {
	ctx := r.Context()
	var hash []byte
	if n.Link != "" {
		inv, err := p.Invited(r, n.Link)
		if err != nil {
			return false, err
		}
		if inv.Email != "" {
			n.Email = inv.Email
		}
		if !inv.Joins {
			hash = hashOf(n.Link)
		}
	} else if p.SignUp != SignUpOpen {
		return false, ErrClosed
	}
	if n.Email, err = tenants.NormalizeEmail(n.Email); err != nil {
		return false, err
	}
	if err := judge(n.Password, n.Email, n.Name); err != nil {
		return false, err
	}
	if hash == nil {
		if err := p.count(ctx, "signup "+p.network(r), signUpsPerHour, time.Hour); err != nil {
			return false, err
		}
	}
	password, err := p.hash(ctx, n.Password)
	if err != nil {
		return false, err
	}
	n.Name = clean(n.Name, 100)
	u, err := p.Store.SignUp(ctx, tenants.SignUp{
		User:   tenants.User{Email: n.Email, Name: n.Name, Locale: n.Locale, PasswordHash: password},
		Tenant: tenantName(n), Link: hash, Now: p.Now(),
	})
	switch {
	case errors.Is(err, tenants.ErrConflict) && hash == nil:
		return false, nil
	case errors.Is(err, tenants.ErrNotFound):
		return false, ErrLink
	case err != nil:
		return false, err
	case hash == nil:
		return false, nil
	}
	return true, p.begin(w, r, u.ID)
}

func (p *People) hash(ctx context.Context, password string) (string, error) {
	h, err := p.Hasher.Hash(ctx, password)
	if errors.Is(err, errBusy) {
		return "", &TooMany{time.Minute}
	}
	return h, err
}

// tenantName is how a new person's tenant is called until they call it
// otherwise.
func tenantName(n NewPerson) string {
	if n.Name != "" {
		return n.Name
	}
	local, _, _ := strings.Cut(n.Email, "@")
	return local
}

// link looks a link up.
func (p *People) link(r *http.Request, secret string) (tenants.Link, error) {
	ctx := r.Context()
	if err := p.count(ctx, "link "+p.network(r), linksPerHour, time.Hour); err != nil {
		return tenants.Link{}, err
	}
	if secret == "" || len(secret) > 100 {
		return tenants.Link{}, ErrLink
	}
	l, err := p.Store.Link(ctx, hashOf(secret), p.Now())
	if errors.Is(err, tenants.ErrNotFound) {
		return l, ErrLink
	}
	return l, err
}

// Resettable says whose password a link sets, without using it. ErrLink,
// ErrTooMany.
func (p *People) Resettable(r *http.Request, secret string) (email string, err error) {
	l, err := p.link(r, secret)
	if err != nil {
		return "", err
	}
	if l.Kind != tenants.LinkReset {
		return "", ErrLink
	}
	u, err := p.Store.User(r.Context(), l.UserID)
	return u.Email, err
}

// Reset sets a new password with a link, ends all sessions of the person and
// signs them in here. ErrShort, ErrLong, ErrCommon, ErrLink, ErrTooMany.
func (p *People) Reset(w http.ResponseWriter, r *http.Request, secret, password string) error {
	email, err := p.Resettable(r, secret)
	if err != nil {
		return err
	}
	if err := judge(password, email, ""); err != nil {
		return err
	}
	hash, err := p.hash(r.Context(), password)
	if err != nil {
		return err
	}
	u, err := p.Store.ResetPassword(r.Context(), hashOf(secret), hash, p.Now())
	if errors.Is(err, tenants.ErrNotFound) {
		return ErrLink
	}
	if err != nil {
		return err
	}
	return p.begin(w, r, u.ID)
}

// Enter signs in with a link that does just that. ErrLink, ErrTooMany.
func (p *People) Enter(w http.ResponseWriter, r *http.Request, secret string) error {
	if _, err := p.link(r, secret); err != nil {
		return err
	}
	l, err := p.Store.TakeLink(r.Context(), hashOf(secret), tenants.LinkSignIn, p.Now())
	if errors.Is(err, tenants.ErrNotFound) {
		return ErrLink
	}
	if err != nil {
		return err
	}
	return p.begin(w, r, l.UserID)
}

// ChangePassword sets a new password for somebody who is signed in and knows the
// old one, if they have one; all their other sessions end. ErrWrong, ErrShort,
// ErrLong, ErrCommon, ErrTooMany.
func (p *People) ChangePassword(r *http.Request, s Session, old, password string) error {
	ctx := r.Context()
	u, err := p.Store.User(ctx, s.User.ID)
	if err != nil {
		return err
	}
	if u.PasswordHash != "" {
		if err := p.count(ctx, "password "+u.ID.String(), triesPerAccount, triesWindow); err != nil {
			return err
		}
		ok, _, err := p.Hasher.Check(ctx, u.PasswordHash, old)
		if errors.Is(err, errBusy) {
			return &TooMany{time.Minute}
		}
		if err != nil {
			return err
		}
		if !ok {
			return ErrWrong
		}
	}
	if err := judge(password, u.Email, u.Name); err != nil {
		return err
	}
	hash, err := p.hash(ctx, password)
	if err != nil {
		return err
	}
	if _, err := p.Store.UpdateUser(ctx, u.ID, tenants.UserUpdate{PasswordHash: &hash}); err != nil {
		return err
	}
	return p.SignOutEverywhere(ctx, s)
}

// UpdateProfile changes how a person is called and in which language the pages
// speak to them; an empty locale leaves that to the browser.
func (p *People) UpdateProfile(ctx context.Context, s Session, name, locale string) error {
	name = clean(strings.TrimSpace(name), 100)
	_, err := p.Store.UpdateUser(ctx, s.User.ID, tenants.UserUpdate{Name: &name, Locale: &locale})
	return err
}

// Back is where somebody who signed in wanted to go.
func Back(r *http.Request, home page.Local) page.Local {
	if to, ok := page.ParseLocal(r.FormValue("next")); ok {
		return to
	}
	return home
}
