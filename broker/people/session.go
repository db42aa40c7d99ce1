package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/broker/page"
	"siyuan-broker/tenants"
)

// How long a session lives: without use, and in all. A use is noted at most so
// often.
const (
	idleLife    = 14 * 24 * time.Hour
	sessionLife = 90 * 24 * time.Hour
	touchEvery  = 5 * time.Minute
)

// Session is a person who is signed in.
type Session struct {
	User        tenants.User // without secrets
	HasPassword bool
	Memberships []tenants.Membership // by name of the tenant
	SignedInAt  time.Time

	shown tenants.ID
	hash  []byte
}

// Tenant is the membership that the person looks at: the one they chose, else
// their first. ok is false for somebody who belongs nowhere.
func (s Session) Tenant() (m tenants.Membership, ok bool) {
	if m, ok := s.Member(s.shown); ok {
		return m, true
	}
	if len(s.Memberships) == 0 {
		return m, false
	}
	return s.Memberships[0], true
}

// Member is the person's membership in a tenant.
func (s Session) Member(tenant tenants.ID) (m tenants.Membership, ok bool) {
	for _, m := range s.Memberships {
		if m.TenantID == tenant {
			return m, true
		}
	}
	return m, false
}

// Name is what to call the person.
func (s Session) Name() string {
	if s.User.Name != "" {
		return s.User.Name
	}
	return s.User.Email
}

type sessionKey struct{}

// Signed is the session of a request that went through Load.
func Signed(r *http.Request) (Session, bool) {
	s, ok := r.Context().Value(sessionKey{}).(*Session)
	if !ok {
		return Session{}, false
	}
	return *s, true
}

// Load finds out who makes a request and hands that on, also to the frame of the
// page. A cookie that is good for nothing is as none.
func (p *People) Load(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := p.session(r)
		if err != nil {
			p.Log.Error("session not loaded", "error", err)
			p.Pages.Error(w, r, http.StatusServiceUnavailable)
			return
		}
		if s != nil {
			ctx := context.WithValue(r.Context(), sessionKey{}, s)
			r = r.WithContext(page.WithViewer(ctx, viewer(*s)))
		}
		next.ServeHTTP(w, r)
	})
}

// RequireSignedIn sends those who are not signed in to the sign-in page, from
// where they come back to the page they wanted. It needs Load before it.
func (p *People) RequireSignedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := Signed(r); ok {
			next.ServeHTTP(w, r)
			return
		}
		to := p.Pages.SignIn()
		if r.Method == http.MethodGet {
			if back, ok := page.ParseLocal(r.URL.RequestURI()); ok {
				to = to.With("next", back.String())
			}
		}
		page.Redirect(w, r, to)
	})
}

func viewer(s Session) page.Viewer {
	v := page.Viewer{Name: s.Name(), Locale: s.User.Locale}
	current, ok := s.Tenant()
	if ok {
		v.Tenant = current.TenantName
	}
	for _, m := range s.Memberships {
		v.Tenants = append(v.Tenants, page.Choice{ID: m.TenantID.String(), Name: m.TenantName, Current: m.TenantID == current.TenantID})
	}
	return v
}

// session finds the session of a request; nil when there is none.
func (p *People) session(r *http.Request) (*Session, error) {
	secret := p.Pages.CookieValue(r, page.SessionCookie)
	if secret == "" || len(secret) > 100 {
		return nil, nil
	}
	ctx, now, hash := r.Context(), p.Now(), hashOf(secret)
	c, u, err := p.Store.ConsoleSession(ctx, hash, now, now.Add(-idleLife))
	if errors.Is(err, tenants.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := p.Store.MembershipsOf(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	if now.Sub(c.SeenAt) >= touchEvery {
		if err := p.Store.TouchConsoleSession(ctx, hash, now); err != nil {
			return nil, err
		}
	}
	s := &Session{User: u, HasPassword: u.PasswordHash != "", Memberships: all, SignedInAt: c.CreatedAt, shown: c.Shown, hash: hash}
	s.User.PasswordHash, s.User.OIDCIssuer, s.User.OIDCSubject = "", "", ""
	return s, nil
}

// begin signs a person in: always with a new secret, so a session that somebody
// planted before is not the one that is opened. What was open in this browser
// ends.
func (p *People) begin(w http.ResponseWriter, r *http.Request, user tenants.ID) error {
	if err := p.end(w, r); err != nil {
		return err
	}
	secret, now := rand.Text()+rand.Text(), p.Now()
	err := p.Store.BeginConsoleSession(r.Context(), tenants.ConsoleSession{
		Hash: hashOf(secret), UserID: user, Address: p.ClientIP(r), Browser: clean(r.UserAgent(), 300),
		CreatedAt: now, ExpiresAt: now.Add(sessionLife),
	})
	if err != nil {
		return err
	}
	c := p.Pages.Cookie(r, page.SessionCookie, secret)
	c.MaxAge = int(sessionLife / time.Second)
	http.SetCookie(w, c)
	return p.rememberDevice(w, r, user)
}

// end ends the session of this browser, if there is one.
func (p *People) end(w http.ResponseWriter, r *http.Request) error {
	secret := p.Pages.CookieValue(r, page.SessionCookie)
	if secret == "" {
		return nil
	}
	c := p.Pages.Cookie(r, page.SessionCookie, "")
	c.MaxAge = -1
	http.SetCookie(w, c)
	return p.Store.EndConsoleSession(r.Context(), hashOf(secret))
}

// SignOut ends the session of this browser.
func (p *People) SignOut(w http.ResponseWriter, r *http.Request) error { return p.end(w, r) }

// SignOutEverywhere ends all sessions of a person but this one.
func (p *People) SignOutEverywhere(ctx context.Context, s Session) error {
	return p.Store.EndConsoleSessions(ctx, s.User.ID, s.hash)
}

// ShowTenant makes a tenant the one a person looks at. ErrNotFound when they do
// not belong to it.
func (p *People) ShowTenant(ctx context.Context, s Session, tenant tenants.ID) error {
	if _, ok := s.Member(tenant); !ok || tenant == uuid.Nil {
		return tenants.ErrNotFound
	}
	return p.Store.ShowTenant(ctx, s.hash, tenant)
}

const deviceCookie = "device"

// rememberDevice marks this browser as one where a person signed in.
func (p *People) rememberDevice(w http.ResponseWriter, r *http.Request, user tenants.ID) error {
	secret := p.Pages.CookieValue(r, deviceCookie)
	if len(secret) < 26 || len(secret) > 100 {
		secret = rand.Text()
	}
	c := p.Pages.Cookie(r, deviceCookie, secret)
	c.MaxAge = 400 * 24 * 60 * 60
	http.SetCookie(w, c)
	return p.Store.RememberDevice(r.Context(), user, hashOf(secret), p.Now())
}

// hashOf is how secrets stand in the database. They are random, so a fast hash
// is enough.
func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// clean makes foreign text fit for the database and a page.
func clean(s string, most int) string {
	out := make([]rune, 0, min(len(s), most))
	for _, c := range s {
		if len(out) == most {
			break
		}
		if c >= ' ' && c != 0x7f && c != 0xfffd {
			out = append(out, c)
		}
	}
	return string(out)
}
