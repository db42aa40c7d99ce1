package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/broker/people"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/tenants"
)

func newUser(a *app) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "user", Short: "People: add, invite, give a link for a new password, list"},
		newUserAdd(a), newUserInvite(a), newUserReset(a), newUserList(a))
}

// oneEmail takes exactly one argument, an address.
func oneEmail(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("want one e-mail address")
	}
	return nil
}

func newUserAdd(a *app) *cobra.Command {
	var name, tenant string
	cmd := &cobra.Command{
		Use:     "add EMAIL",
		Short:   "Add a person with a tenant of their own; prints a link with which they choose a password",
		Example: "  siyuan-broker user add ann@example.org --name Ann",
		Args:    oneEmail,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(c broker.Config, db *broker.Database) error {
				links := people.NewLinks(db, c.PublicURLs[0])
				if name == "" {
					name = args[0]
				}
				if tenant == "" {
					tenant = name
				}
				u, err := db.SignUp(cmd.Context(), tenants.SignUp{User: tenants.User{Email: args[0], Name: name}, Tenant: tenant, Now: links.Now()})
				if errors.Is(err, tenants.ErrConflict) {
					return fmt.Errorf("%s is a person here already; `siyuan-broker user reset %s` gives them a link", args[0], args[0])
				}
				if err != nil {
					return err
				}
				return printLink(cmd.OutOrStdout(), "Give this link to "+u.Email+"; it works once, within an hour:")(links.Reset(cmd.Context(), u.ID))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "how to call the person; empty: the address")
	f.StringVar(&tenant, "tenant", "", "name of their tenant; empty: the person's name")
	return cmd
}

func newUserInvite(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "invite EMAIL",
		Short: "Print a link with which the person of an address makes an account",
		Args:  oneEmail,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(c broker.Config, db *broker.Database) error {
				if people.SignUpMode(c.SignUp) == people.SignUpClosed {
					return cli.Fail(cli.ExitConfig, fmt.Errorf("sign_up is closed; `siyuan-broker user add %s` adds the person instead", args[0]))
				}
				_, err := db.UserByEmail(cmd.Context(), args[0])
				if err == nil {
					return fmt.Errorf("%s is a person here already; `siyuan-broker user reset %s` gives them a link", args[0], args[0])
				}
				if !errors.Is(err, tenants.ErrNotFound) {
					return err
				}
				return printLink(cmd.OutOrStdout(), "Give this link to "+args[0]+"; it works once, within seven days:")(
					people.NewLinks(db, c.PublicURLs[0]).Invite(cmd.Context(), args[0]))
			})
		},
	}
}

func newUserReset(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reset EMAIL",
		Short: "Print a link with which a person chooses a new password",
		Args:  oneEmail,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(c broker.Config, db *broker.Database) error {
				u, err := db.UserByEmail(cmd.Context(), args[0])
				if errors.Is(err, tenants.ErrNotFound) {
					return cli.Fail(cli.ExitNotFound, fmt.Errorf("nobody here has the address %s; `siyuan-broker user list` shows who there is", args[0]))
				}
				if err != nil {
					return err
				}
				return printLink(cmd.OutOrStdout(), "Give this link to "+u.Email+"; it works once, within an hour, and ends their sessions when it is used:")(
					people.NewLinks(db, c.PublicURLs[0]).Reset(cmd.Context(), u.ID))
			})
		},
	}
}

// printLink prints a link that was made without error.
func printLink(out io.Writer, text string) func(link string, err error) error {
	return func(link string, err error) error {
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n\n  %s\n", text, link)
		return err
	}
}

// userLine is a person as `user list` prints them.
type userLine struct {
	ID       tenants.ID `json:"id"`
	Email    string     `json:"email"`
	Name     string     `json:"name,omitempty"`
	Password bool       `json:"password"` // has one
	OIDC     string     `json:"oidc,omitempty"`
	Created  string     `json:"created"`
	Tenants  []string   `json:"tenants"`
}

func newUserList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the people of this broker",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), func(_ broker.Config, db *broker.Database) error {
				all, err := listUsers(cmd.Context(), db)
				if err != nil {
					return err
				}
				return cli.PrintJSON(cmd.OutOrStdout(), all)
			})
		},
	}
}

func listUsers(ctx context.Context, db *broker.Database) ([]userLine, error) {
	const page = 500
	all := []userLine{}
	for after := ""; ; after = all[len(all)-1].Email {
		users, err := db.Users(ctx, after, page)
		if err != nil {
			return nil, err
		}
		for _, u := range users {
			line := userLine{ID: u.ID, Email: u.Email, Name: u.Name, Password: u.PasswordHash != "", OIDC: u.OIDCIssuer, Created: u.CreatedAt.UTC().Format("2006-01-02T15:04:05Z"), Tenants: []string{}}
			memberships, err := db.MembershipsOf(ctx, u.ID)
			if err != nil {
				return nil, err
			}
			for _, m := range memberships {
				line.Tenants = append(line.Tenants, m.TenantName+" ("+string(m.Role)+")")
			}
			all = append(all, line)
		}
		if len(users) < page {
			return all, nil
		}
	}
}

// greetOperator prints, on a broker that has no people yet, the link that makes
// the first one. It goes to the console only, never to the log.
func greetOperator(ctx context.Context, c broker.Config, db *broker.Database, out io.Writer) error {
	link, err := people.NewLinks(db, c.PublicURLs[0]).Operator(ctx)
	if errors.Is(err, people.ErrInhabited) {
		return nil
	}
	return printLink(out, "Nobody has an account on this broker yet. Make yours with this link; it works once, within an hour (the next start prints a new one):")(link, err)
}
