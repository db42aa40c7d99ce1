package people

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"siyuan-broker/tenants"
)

// Secrets of invitations into a tenant begin with the tenant, so that they are
// looked for within it and nowhere else; random letters follow.
const joinPrefix = "syi_"

func joinSecret(tenant tenants.ID) string {
	return joinPrefix + base64.RawURLEncoding.EncodeToString(tenant[:]) + rand.Text()
}

// tenantOf is the tenant in a secret; false for what is no invitation into one.
func tenantOf(secret string) (tenant tenants.ID, ok bool) {
	text, ok := strings.CutPrefix(secret, joinPrefix)
	size := base64.RawURLEncoding.EncodedLen(len(tenant))
	if !ok || len(text) <= size {
		return tenant, false
	}
	n, err := base64.RawURLEncoding.Decode(tenant[:], []byte(text[:size]))
	return tenant, err == nil && n == len(tenant)
}

// JoinsTenant reports whether a link's secret is of an invitation into a tenant.
// Whether that is in force is not said.
func JoinsTenant(secret string) bool {
	_, ok := tenantOf(secret)
	return ok
}

// InviteInto makes an invitation into a tenant and the link by which it is
// accepted, which can be had here only. It stores nothing: that is tenants.Tx's
// Invite, in the transaction that looks at who may invite. by is zero for an
// operator.
func InviteInto(base string, tenant tenants.ID, email string, role tenants.Role, by tenants.ID, now time.Time) (inv tenants.Invitation, link string) {
	secret := joinSecret(tenant)
	inv = tenants.Invitation{Hash: tenants.HashSecret(secret), Email: email, Role: role, InvitedBy: by, CreatedAt: now, ExpiresAt: now.Add(InviteLife)}
	return inv, base + JoinPath + "?" + url.Values{"link": {secret}}.Encode()
}

// TenantInvitation is an invitation and what it leads to.
type TenantInvitation struct {
	tenants.Invitation
	Tenant tenants.Tenant
}

// InvitedInto looks at an invitation into a tenant without using it. ErrLink,
// ErrTooMany.
func (p *People) InvitedInto(r *http.Request, secret string) (inv TenantInvitation, err error) {
	err = p.inInvited(r, secret, func(tx tenants.Tx) error {
		if inv.Invitation, err = tx.Invitation(r.Context(), tenants.HashSecret(secret), p.Now()); err != nil {
			return err
		}
		inv.Tenant, err = tx.Tenant(r.Context())
		return err
	})
	return inv, err
}

// Accept uses an invitation up: the person becomes a member and looks at that
// tenant. ErrLink, also when it is for another address; ErrTooMany.
func (p *People) Accept(r *http.Request, s Session, secret string) error {
	ctx := r.Context()
	err := p.inInvited(r, secret, func(tx tenants.Tx) error {
		inv, err := tx.AcceptInvitation(ctx, tenants.HashSecret(secret), s.User.ID, p.Now())
		if err != nil {
			return err
		}
		return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "member", ActorID: s.User.ID, Verb: "invitation.accept", Object: "invitation:" + inv.ID.String() + " " + string(inv.Role)})
	})
	if err != nil {
		return err
	}
	tenant, _ := tenantOf(secret)
	return p.Store.ShowTenant(ctx, s.hash, tenant)
}

// inInvited runs fn in the tenant that a secret names, counted as a look at a link.
func (p *People) inInvited(r *http.Request, secret string, fn func(tenants.Tx) error) error {
	if err := p.count(r.Context(), "link "+p.network(r), linksPerHour, time.Hour); err != nil {
		return err
	}
	tenant, ok := tenantOf(secret)
	if !ok || len(secret) > 100 {
		return ErrLink
	}
	err := p.Store.In(r.Context(), tenant, fn)
	if errors.Is(err, tenants.ErrNotFound) {
		return ErrLink
	}
	return err
}
