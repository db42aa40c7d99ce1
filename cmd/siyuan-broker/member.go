package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/broker/people"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/tenants"
)

func newTenantMember(a *app) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "member", Short: "Who belongs to a tenant: list, change a role, remove"},
		newMemberList(a), newMemberRole(a), newMemberRemove(a))
}

// memberLine is a member as `tenant member list` prints them.
type memberLine struct {
	ID    tenants.ID   `json:"id"`
	Email string       `json:"email"`
	Name  string       `json:"name,omitempty"`
	Role  tenants.Role `json:"role"`
	Since time.Time    `json:"since"`
}

func newMemberList(a *app) *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the members of a tenant",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := []memberLine{}
			err := a.inTenant(cmd.Context(), tenant, func(_ broker.Config, tx tenants.Tx, _ tenants.ID) error {
				all, err := tx.Members(cmd.Context())
				for _, m := range all {
					list = append(list, memberLine{m.User.ID, m.User.Email, m.User.Name, m.Role, m.Since.UTC()})
				}
				return err
			})
			if err != nil {
				return err
			}
			return cli.PrintJSON(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the tenant")
	return cmd
}

func newMemberRole(a *app) *cobra.Command {
	var tenant, role string
	cmd := &cobra.Command{
		Use:     "role EMAIL",
		Short:   "Make a member owner, admin or plain member",
		Example: "  siyuan-broker tenant member role ann@example.org --tenant T --role admin",
		Args:    oneEmail,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := readRole(role)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.inTenant(ctx, tenant, func(_ broker.Config, tx tenants.Tx, _ tenants.ID) error {
				m, err := memberBy(ctx, tx, args[0])
				if err != nil {
					return err
				}
				return errors.Join(tx.SetRole(ctx, m.User.ID, to), audit(ctx, tx, "member.role", "user:"+m.User.ID.String()+" "+role))
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the tenant")
	cmd.Flags().StringVar(&role, "role", "", "owner, admin or member")
	return cmd
}

func newMemberRemove(a *app) *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:   "remove EMAIL",
		Short: "End a membership, and with it the agents, teams and shares of the person there",
		Args:  oneEmail,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.inTenant(ctx, tenant, func(_ broker.Config, tx tenants.Tx, _ tenants.ID) error {
				m, err := memberBy(ctx, tx, args[0])
				if err != nil {
					return err
				}
				return errors.Join(tx.RemoveMember(ctx, m.User.ID), audit(ctx, tx, "member.remove", "user:"+m.User.ID.String()))
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the tenant")
	return cmd
}

func newTenantInvite(a *app) *cobra.Command {
	var tenant, role string
	cmd := &cobra.Command{
		Use:     "invite EMAIL",
		Short:   "Print a link with which the person of an address comes into a tenant",
		Example: "  siyuan-broker tenant invite ann@example.org --tenant T --role member",
		Args:    oneEmail,
		RunE: func(cmd *cobra.Command, args []string) error {
			as, err := readRole(role)
			if err != nil {
				return err
			}
			var link, text string
			ctx := cmd.Context()
			err = a.inTenant(ctx, tenant, func(c broker.Config, tx tenants.Tx, id tenants.ID) error {
				text = "Give this link to " + args[0] + "; it works once, within seven days:"
				if people.SignUpMode(c.SignUp) == people.SignUpClosed {
					text = "Give this link to " + args[0] + ", who needs an account (`siyuan-broker user add`); it works once, within seven days:"
				}
				var inv tenants.Invitation
				inv, link = people.InviteInto(c.PublicURLs[0], id, args[0], as, tenants.ID{}, time.Now())
				inv, err := tx.Invite(ctx, inv)
				switch {
				case errors.Is(err, tenants.ErrConflict):
					return fmt.Errorf("%s is a member already; `siyuan-broker tenant member role` changes what they are", args[0])
				case errors.Is(err, tenants.ErrTooMany):
					return fmt.Errorf("%d invitations are open, which is the most a tenant has; take some back in the console, under People", tenants.MaxInvitations)
				case err != nil:
					return err
				}
				return audit(ctx, tx, "invitation.create", "invitation:"+inv.ID.String()+" "+role)
			})
			return printLink(cmd.OutOrStdout(), text)(link, err)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the tenant")
	cmd.Flags().StringVar(&role, "role", string(tenants.Member), "owner, admin or member")
	return cmd
}

// inTenant runs fn in a tenant that is there.
func (a *app) inTenant(ctx context.Context, id string, fn func(broker.Config, tenants.Tx, tenants.ID) error) error {
	tenant, err := parseID("tenant", id)
	if err != nil {
		return err
	}
	return a.withStore(ctx, func(c broker.Config, db *broker.Database) error {
		return db.In(ctx, tenant, func(tx tenants.Tx) error {
			if _, err := tx.Tenant(ctx); err != nil {
				if errors.Is(err, tenants.ErrNotFound) {
					err = cli.Fail(cli.ExitNotFound, fmt.Errorf("there is no tenant %s; `siyuan-broker tenant show --email ADDRESS` names a person's", tenant))
				}
				return err
			}
			return fn(c, tx, tenant)
		})
	})
}

func readRole(s string) (tenants.Role, error) {
	if role := tenants.Role(s); role.Valid() {
		return role, nil
	}
	return "", cli.Usagef("--role: %q is not owner, admin or member", s)
}

// memberBy finds a member by address.
func memberBy(ctx context.Context, tx tenants.Tx, email string) (tenants.Membership, error) {
	want, err := tenants.NormalizeEmail(email)
	if err != nil {
		return tenants.Membership{}, err
	}
	all, err := tx.Members(ctx)
	if err != nil {
		return tenants.Membership{}, err
	}
	for _, m := range all {
		if m.User.Email == want {
			return m, nil
		}
	}
	return tenants.Membership{}, cli.Fail(cli.ExitNotFound, fmt.Errorf("%s is no member of this tenant; `siyuan-broker tenant member list` shows who is", want))
}
