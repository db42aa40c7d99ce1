package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

const invitationColumns = `id, secret_hash, email, role, invited_by, created_at, expires_at`

func scanInvitation(r pgx.CollectableRow) (inv tenants.Invitation, err error) {
	var hash []byte
	if err = r.Scan(&inv.ID, &hash, &inv.Email, &inv.Role, intoID{&inv.InvitedBy}, intoTime{&inv.CreatedAt}, intoTime{&inv.ExpiresAt}); err != nil {
		return inv, err
	}
	inv.Hash = tenants.SecretHash(hash) // 32 bytes, says the schema
	return inv, nil
}

// HoldMembers locks the tenant's row, which every change of a membership changes.
func (t *tx) HoldMembers(ctx context.Context) error {
	return t.exec(ctx, "hold members", `select from tenants where id = $1 for update`, t.tenant)
}

func (t *tx) Invitations(ctx context.Context, now time.Time) ([]tenants.Invitation, error) {
	return list(ctx, t, "invitations", scanInvitation, `select `+invitationColumns+` from invitations
		where tenant_id = $1 and expires_at > $2 order by created_at desc, id desc`, t.tenant, now)
}

func (t *tx) Invite(ctx context.Context, inv tenants.Invitation) (tenants.Invitation, error) {
	email, err := tenants.NormalizeEmail(inv.Email)
	if err != nil {
		return inv, err
	}
	if err := t.HoldMembers(ctx); err != nil {
		return inv, err
	}
	err = t.run(ctx, "end the address's older invitation", `delete from invitations
		where tenant_id = $1 and (email = $2 or expires_at <= $3)`, t.tenant, email, inv.CreatedAt)
	if err != nil {
		return inv, err
	}
	var open int
	var member bool
	err = t.db.QueryRow(ctx, `select
		(select count(*) from invitations where tenant_id = $1),
		exists (select from memberships m join users u on u.id = m.user_id where m.tenant_id = $1 and u.email = $2)`,
		t.tenant, email).Scan(&open, &member)
	switch {
	case err != nil:
		return inv, failure(err, "invite")
	case member:
		return inv, fmt.Errorf("invite %s, a member: %w", email, tenants.ErrConflict)
	case open >= tenants.MaxInvitations:
		return inv, fmt.Errorf("invite: %d invitations are open: %w", open, tenants.ErrTooMany)
	}
	return one(ctx, t, "invite", scanInvitation, `
		insert into invitations (tenant_id, id, secret_hash, email, role, invited_by, created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8) returning `+invitationColumns,
		t.tenant, tenants.NewID(), inv.Hash[:], email, string(inv.Role), idOrNull(inv.InvitedBy), inv.CreatedAt, inv.ExpiresAt)
}

func (t *tx) Withdraw(ctx context.Context, invitation tenants.ID) error {
	return t.exec(ctx, "withdraw invitation "+invitation.String(),
		`delete from invitations where tenant_id = $1 and id = $2`, t.tenant, invitation)
}

func (t *tx) Invitation(ctx context.Context, hash tenants.SecretHash, now time.Time) (tenants.Invitation, error) {
	return one(ctx, t, "invitation", scanInvitation, `select `+invitationColumns+` from invitations
		where tenant_id = $1 and secret_hash = $2 and expires_at > $3
			and exists (select from tenants where id = $1 and status = 'active')`, t.tenant, hash[:], now)
}

func (t *tx) AcceptInvitation(ctx context.Context, hash tenants.SecretHash, user tenants.ID, now time.Time) (tenants.Invitation, error) {
	if err := t.HoldMembers(ctx); err != nil {
		return tenants.Invitation{}, err
	}
	inv, err := t.Invitation(ctx, hash, now)
	if err != nil {
		return inv, err
	}
	err = t.exec(ctx, "use invitation", `delete from invitations i using users u
		where i.tenant_id = $1 and i.id = $2 and u.id = $3 and u.email = i.email`, t.tenant, inv.ID, user)
	if err != nil {
		return inv, err
	}
	return inv, t.run(ctx, "add member "+user.String(), `insert into memberships (tenant_id, user_id, role) values ($1, $2, $3)
		on conflict (tenant_id, user_id) do nothing`, t.tenant, user, string(inv.Role))
}

// endInvitations ends those that somebody made and could not make with a role.
func (t *tx) endInvitations(ctx context.Context, by tenants.ID, role tenants.Role) error {
	granted := []string{}
	for _, r := range []tenants.Role{tenants.Owner, tenants.Admin, tenants.Member} {
		if role.MayGrant(r) {
			granted = append(granted, string(r))
		}
	}
	return t.run(ctx, "end invitations of member "+by.String(),
		`delete from invitations where tenant_id = $1 and invited_by = $2 and role <> all($3)`, t.tenant, by, granted)
}
