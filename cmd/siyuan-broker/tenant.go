package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

func newTenant(a *app) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "tenant", Short: "Tenants: create, say who belongs, and set what is allowed"},
		newTenantCreate(a), newTenantShow(a), newTenantMember(a), newTenantInvite(a), newTenantLevel(a), newTenantSwitch(a), newTenantConsent(a), newTenantToggle(a), newTenantResults(a), newTenantSkills(a), newTenantUploads(a), newTenantWrites(a))
}

func newTenantCreate(a *app) *cobra.Command {
	var name, email, instance string
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Create a tenant with its owner and a first instance",
		Example: "  siyuan-broker tenant create --name Home --email you@example.org",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" || email == "" {
				return cli.Usagef("--name and --email are required")
			}
			return a.withStore(cmd.Context(), func(_ broker.Config, db *broker.Database) error {
				made, err := createTenant(cmd.Context(), db, name, email, instance)
				if err != nil {
					return err
				}
				return cli.PrintJSON(cmd.OutOrStdout(), made)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "name of the tenant")
	f.StringVar(&email, "email", "", "e-mail address of its owner; the person is created if unknown")
	f.StringVar(&instance, "instance-name", "SiYuan", "name of the first instance (one SiYuan workspace)")
	return cmd
}

// newTenantIDs is what `tenant create` prints.
type newTenantIDs struct {
	Tenant   tenants.ID `json:"tenant"`
	Owner    tenants.ID `json:"owner"`
	Instance tenants.ID `json:"instance"`
}

func createTenant(ctx context.Context, store tenants.Store, name, email, instance string) (newTenantIDs, error) {
	owner, err := store.UserByEmail(ctx, email)
	if errors.Is(err, tenants.ErrNotFound) {
		owner, err = store.CreateUser(ctx, tenants.User{Email: email, Name: email})
	}
	if err != nil {
		return newTenantIDs{}, err
	}
	t, err := store.CreateTenant(ctx, name, owner.ID)
	if err != nil {
		return newTenantIDs{}, err
	}
	made := newTenantIDs{Tenant: t.ID, Owner: owner.ID}
	err = store.In(ctx, t.ID, func(tx tenants.Tx) error {
		in, err := tx.CreateInstance(ctx, tenants.Instance{Name: instance, DefaultLevel: contract.Read, Enabled: true})
		made.Instance = in.ID
		return errors.Join(err, audit(ctx, tx, "tenant.create", "tenant:"+t.ID.String()))
	})
	return made, err
}

// audit notes what the operator did on the command line.
func audit(ctx context.Context, tx tenants.Tx, verb, object string) error {
	return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "operator", Verb: verb, Object: object})
}

func newTenantShow(a *app) *cobra.Command {
	var tenant, email string
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the tenants of a person, or one tenant's instances, notebooks and connectors",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), func(_ broker.Config, db *broker.Database) error {
				var v any
				var err error
				if email != "" {
					v, err = tenantsOf(cmd.Context(), db, email)
				} else {
					v, err = describeTenant(cmd.Context(), db, tenant)
				}
				if err != nil {
					return err
				}
				return cli.PrintJSON(cmd.OutOrStdout(), v)
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the tenant")
	cmd.Flags().StringVar(&email, "email", "", "e-mail address of a person")
	return cmd
}

func tenantsOf(ctx context.Context, store tenants.Store, email string) (any, error) {
	u, err := store.UserByEmail(ctx, email)
	if err != nil {
		return nil, fmt.Errorf("person %s: %w", email, err)
	}
	return store.MembershipsOf(ctx, u.ID)
}

// instanceView is one instance as `tenant show` prints it.
type instanceView struct {
	Instance   tenants.Instance          `json:"instance"`
	Notebooks  []tenants.Notebook        `json:"notebooks"`
	Levels     map[string]contract.Level `json:"levels"`
	Switches   []contract.Switch         `json:"switches"`
	Toggles    []tenants.Toggle          `json:"toggles"`
	Connectors []connectorView           `json:"connectors"`
}

type connectorView struct {
	ID          tenants.ID             `json:"id"`
	Name        string                 `json:"name"`
	Fingerprint string                 `json:"fingerprint"`
	LastSeen    *time.Time             `json:"last_seen"`
	Revoked     bool                   `json:"revoked"`
	Policy      *contract.PolicyEffect `json:"home_policy"`
}

func describeTenant(ctx context.Context, store tenants.Store, id string) (any, error) {
	tenant, err := parseID("tenant", id)
	if err != nil {
		return nil, err
	}
	var views []instanceView
	err = store.In(ctx, tenant, func(tx tenants.Tx) error {
		instances, err := tx.Instances(ctx)
		if err != nil {
			return err
		}
		for _, in := range instances {
			v, err := describeInstance(ctx, tx, in)
			if err != nil {
				return err
			}
			views = append(views, v)
		}
		return nil
	})
	return views, err
}

func describeInstance(ctx context.Context, tx tenants.Tx, in tenants.Instance) (v instanceView, err error) {
	v.Instance = in
	if v.Notebooks, err = tx.Notebooks(ctx, in.ID); err != nil {
		return v, err
	}
	if v.Levels, err = tx.Levels(ctx, in.ID); err != nil {
		return v, err
	}
	if v.Switches, err = tx.Switches(ctx, in.ID); err != nil {
		return v, err
	}
	if v.Toggles, err = tx.Toggles(ctx, in.ID); err != nil {
		return v, err
	}
	all, err := tx.Connectors(ctx, in.ID)
	for _, c := range all {
		view := connectorView{ID: c.ID, Name: c.Name, Fingerprint: c.Fingerprint, Revoked: !c.RevokedAt.IsZero(), Policy: c.Effect}
		if !c.LastSeenAt.IsZero() {
			view.LastSeen = &c.LastSeenAt
		}
		v.Connectors = append(v.Connectors, view)
	}
	return v, err
}

// target is the instance a rule is for.
type target struct{ tenant, instance string }

func (t *target) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.tenant, "tenant", "", "id of the tenant")
	cmd.Flags().StringVar(&t.instance, "instance", "", "id of the instance")
}

// change runs fn in the tenant and audits it.
func (t *target) change(cmd *cobra.Command, a *app, verb, object string, fn func(ctx context.Context, tx tenants.Tx, instance tenants.ID) error) error {
	tenant, err := parseID("tenant", t.tenant)
	if err != nil {
		return err
	}
	instance, err := parseID("instance", t.instance)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	return a.withStore(ctx, func(_ broker.Config, db *broker.Database) error {
		return db.In(ctx, tenant, func(tx tenants.Tx) error {
			if _, err := tx.Instance(ctx, instance); err != nil {
				return err
			}
			return errors.Join(fn(ctx, tx, instance), audit(ctx, tx, verb, object))
		})
	})
}

func newTenantLevel(a *app) *cobra.Command {
	var t target
	var notebook, level string
	cmd := &cobra.Command{
		Use:   "level",
		Short: "Set the level of a notebook, or the default of an instance",
		Example: "  siyuan-broker tenant level --tenant T --instance I --level rw                # default of all notebooks\n" +
			"  siyuan-broker tenant level --tenant T --instance I --notebook N --level none",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := contract.ParseLevel(level)
			if err != nil {
				return cli.Usagef("--level: %v", err)
			}
			if notebook != "" && !contract.IsID(notebook) {
				return cli.Usagef("--notebook: %q is not a notebook id; `siyuan-broker tenant show` lists them", notebook)
			}
			return t.change(cmd, a, "level.set", "notebook:"+notebook+" "+level, func(ctx context.Context, tx tenants.Tx, in tenants.ID) error {
				if notebook == "" {
					_, err := tx.UpdateInstance(ctx, in, tenants.InstanceUpdate{DefaultLevel: &l})
					return err
				}
				return tx.SetLevel(ctx, in, notebook, l)
			})
		},
	}
	t.flags(cmd)
	cmd.Flags().StringVar(&notebook, "notebook", "", "id of the notebook; empty: the default of the instance")
	cmd.Flags().StringVar(&level, "level", "", "none, r, rw or rwd")
	return cmd
}

func newTenantSwitch(a *app) *cobra.Command {
	var t target
	var name string
	var on bool
	cmd := &cobra.Command{
		Use:   "switch",
		Short: "Allow or forbid workspace-wide actions to owners' and admins' agents",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range contract.Switches() {
				if string(s) == name {
					return t.change(cmd, a, "switch.set", fmt.Sprintf("switch:%s %v", name, on), func(ctx context.Context, tx tenants.Tx, in tenants.ID) error {
						return tx.SetSwitch(ctx, in, s, on)
					})
				}
			}
			return cli.Usagef("--name: one of %v", contract.Switches())
		},
	}
	t.flags(cmd)
	cmd.Flags().StringVar(&name, "name", "", fmt.Sprintf("one of %v", contract.Switches()))
	cmd.Flags().BoolVar(&on, "on", true, "--on=false forbids")
	return cmd
}

func newTenantToggle(a *app) *cobra.Command {
	var t target
	var tool, action string
	var on bool
	cmd := &cobra.Command{
		Use:   "toggle",
		Short: "Switch one action of a tool, or one tool of a plugin, on or off",
		Example: "  siyuan-broker tenant toggle --tenant T --instance I --tool document --action remove\n" +
			"  siyuan-broker tenant toggle --tenant T --instance I --tool extension --action plugin__desk_tools__ring --on=false",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			known, err := toggled(tool, action)
			if err != nil {
				return err
			}
			return t.change(cmd, a, "toggle.set", fmt.Sprintf("action:%s.%s %v", tool, action, on), func(ctx context.Context, tx tenants.Tx, in tenants.ID) error {
				if on && known.Stands() { // the action behind it switches it on
					return tx.ClearToggle(ctx, in, tool, action)
				}
				return tx.SetToggle(ctx, in, tenants.Toggle{Tool: tool, Action: action, Enabled: on})
			})
		},
	}
	t.flags(cmd)
	cmd.Flags().StringVar(&tool, "tool", "", "name of the tool")
	cmd.Flags().StringVar(&action, "action", "", "name of the action")
	cmd.Flags().BoolVar(&on, "on", true, "--on=false switches off")
	return cmd
}

// toggled is the action that a toggle is for. The tools of plugins are known at each
// home alone, so any name that one could have is taken: it may be switched off
// before the plugin is there.
func toggled(tool, action string) (*tools.Action, error) {
	if known, ok := tools.New().Action(tool, action); ok {
		return known, nil
	}
	if tool != "extension" {
		return nil, cli.Usagef("there is no action %s.%s; `siyuan-broker catalogue` lists them", tool, action)
	}
	known, ok := tools.New().With([]contract.HomeTool{{Name: action}}).Action(tool, action)
	if !ok {
		return nil, cli.Usagef("%q is no name that a plugin's tool can have: letters, digits and _.- only, as extension.list gives it", action)
	}
	return known, nil
}

func newTenantResults(a *app) *cobra.Command {
	var tenant string
	var chars int
	cmd := &cobra.Command{
		Use:     "results",
		Short:   "Set how many characters an answer to an agent may have",
		Example: "  siyuan-broker tenant results --tenant T --chars 12000",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := parseID("tenant", tenant)
			if err != nil {
				return err
			}
			if chars != 0 && (chars < tools.MinResultChars || chars > tools.MaxResultChars) {
				return cli.Usagef("--chars: from %d to %d, or 0 for the default of %d", tools.MinResultChars, tools.MaxResultChars, tools.DefaultResultChars)
			}
			ctx := cmd.Context()
			return a.withStore(ctx, func(_ broker.Config, db *broker.Database) error {
				return db.In(ctx, id, func(tx tenants.Tx) error {
					return setLimit(ctx, tx, func(l *tenants.Limits) { l.ResultChars = chars }, fmt.Sprintf("result_chars %d", chars))
				})
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the tenant")
	cmd.Flags().IntVar(&chars, "chars", 0, fmt.Sprintf("characters; 0: the default, %d", tools.DefaultResultChars))
	return cmd
}

func newTenantUploads(a *app) *cobra.Command {
	var tenant string
	var bytes int64
	cmd := &cobra.Command{
		Use:     "uploads",
		Short:   "Set how large a file may be that agents upload",
		Example: "  siyuan-broker tenant uploads --tenant T --bytes 104857600",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := parseID("tenant", tenant)
			if err != nil {
				return err
			}
			if bytes < 0 {
				return cli.Usagef("--bytes: must not be negative; 0 is what max_upload_bytes says")
			}
			ctx := cmd.Context()
			return a.withStore(ctx, func(_ broker.Config, db *broker.Database) error {
				return db.In(ctx, id, func(tx tenants.Tx) error {
					return setLimit(ctx, tx, func(l *tenants.Limits) { l.UploadBytes = bytes }, fmt.Sprintf("upload_bytes %d", bytes))
				})
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the tenant")
	cmd.Flags().Int64Var(&bytes, "bytes", 0, "largest file; 0: what max_upload_bytes says")
	return cmd
}

func setLimit(ctx context.Context, tx tenants.Tx, set func(*tenants.Limits), told string) error {
	t, err := tx.Tenant(ctx)
	if err != nil {
		return err
	}
	limits := t.Limits
	set(&limits)
	if _, err := tx.UpdateTenant(ctx, tenants.TenantUpdate{Limits: &limits}); err != nil {
		return err
	}
	return audit(ctx, tx, "limits.set", told)
}
