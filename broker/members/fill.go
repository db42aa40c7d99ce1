package members

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// roles in the order in which they are offered.
func roles() []tenants.Role { return []tenants.Role{tenants.Member, tenants.Admin, tenants.Owner} }

// shareLevels are the levels that a share can have.
func shareLevels() []contract.Level {
	return []contract.Level{contract.Read, contract.ReadWrite, contract.ReadWriteDelete}
}

// manage reads what owners and admins see.
func (p *Page) manage(r *http.Request, tx tenants.Tx, v *view, me tenants.ID) error {
	ctx := r.Context()
	v.Levels = shareLevels()
	for _, role := range roles() {
		if v.Role.MayGrant(role) {
			v.Grants = append(v.Grants, role)
		}
	}
	all, err := tx.Members(ctx)
	if err != nil {
		return err
	}
	called := map[tenants.ID]string{}
	for _, m := range all {
		row := member{ID: m.User.ID, Name: m.User.Name, Email: m.User.Email, Role: m.Role, Since: m.Since, Me: m.User.ID == me}
		row.Changes = !row.Me && v.Role.MayGrant(m.Role)
		called[row.ID] = row.Called()
		v.Members = append(v.Members, row)
	}
	open, err := tx.Invitations(ctx, p.opt.Now())
	if err != nil {
		return err
	}
	for _, inv := range open {
		v.Invitations = append(v.Invitations, invitation{inv.ID, inv.Email, inv.Role, called[inv.InvitedBy], inv.ExpiresAt})
	}
	teams, err := tx.Teams(ctx)
	if err != nil {
		return err
	}
	for _, t := range teams {
		row := team{ID: t.ID, Name: t.Name, Count: len(t.Members)}
		for _, m := range v.Members {
			row.Members = append(row.Members, teamMember{m.ID, m.Called(), slices.Contains(t.Members, m.ID)})
		}
		v.Teams = append(v.Teams, row)
	}
	wanted, _ := uuid.Parse(r.FormValue("instance")) // none, or one that is gone: the first
	return v.workspaces(ctx, tx, wanted)
}

// workspaces adds the list of them, and one with what is shared of it.
func (v *view) workspaces(ctx context.Context, tx tenants.Tx, wanted tenants.ID) error {
	instances, err := tx.Instances(ctx)
	if err != nil || len(instances) == 0 {
		return err
	}
	shown := max(0, slices.IndexFunc(instances, func(in tenants.Instance) bool { return in.ID == wanted }))
	for i, in := range instances {
		v.Homes = append(v.Homes, choice{in.ID, in.Name, i == shown})
	}
	h := &home{ID: instances[shown].ID, Name: instances[shown].Name}
	if h.Notebooks, err = tx.Notebooks(ctx, h.ID); err != nil {
		return err
	}
	for _, m := range v.Members {
		if !m.Role.Manages() {
			h.People = append(h.People, m)
		}
	}
	h.Receivers = len(h.People) + len(v.Teams)
	given, err := tx.Shares(ctx, tenants.ShareFilter{InstanceID: h.ID})
	for _, s := range given {
		h.Shares = append(h.Shares, v.share(h, s))
	}
	v.Home = h
	return err
}

func (v *view) share(h *home, s tenants.Share) share {
	row := share{ID: s.ID, Notebook: s.NotebookID, Level: s.Level, Team: s.TeamID != tenants.ID{}}
	for _, n := range h.Notebooks {
		if n.ID == s.NotebookID {
			row.Notebook = n.Name
		}
	}
	for _, t := range v.Teams {
		if t.ID == s.TeamID {
			row.With = t.Name
		}
	}
	for _, m := range v.Members {
		if m.ID == s.MemberID {
			row.With, row.Manages = m.Called(), m.Role.Manages()
		}
	}
	return row
}

// mine is what a plain member has, as admission would give it to an agent of
// theirs without a ceiling: what is hidden from the agent is not named here either.
func (p *Page) mine(ctx context.Context, tx tenants.Tx, me tenants.ID) (list []mine, err error) {
	shares, err := sharesOf(ctx, tx, me)
	if err != nil {
		return nil, err
	}
	instances, err := tx.Instances(ctx)
	if err != nil {
		return nil, err
	}
	for _, in := range instances {
		if len(shares[in.ID]) == 0 || !in.Enabled {
			continue
		}
		facts := tenants.Snapshot{TenantStatus: tenants.Active, Role: tenants.Member, Instance: in, Shares: shares[in.ID], Agent: tenants.Agent{Ceiling: contract.ReadWriteDelete}}
		if facts.Levels, err = tx.Levels(ctx, in.ID); err != nil {
			return nil, err
		}
		if facts.Connector, err = active(ctx, tx, in.ID); err != nil {
			return nil, err
		}
		notebooks, err := tx.Notebooks(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		rights, row := admission.Compile(&facts, p.opt.Catalogue), mine{Name: in.Name}
		for _, n := range notebooks {
			if l := rights.Level(n.ID); l != contract.None {
				row.Notebooks = append(row.Notebooks, shared{n.Name, l})
			}
		}
		if row.Notebooks != nil {
			list = append(list, row)
		}
	}
	return list, nil
}

// sharesOf are a member's highest shares by workspace and notebook.
func sharesOf(ctx context.Context, tx tenants.Tx, me tenants.ID) (map[tenants.ID]map[string]contract.Level, error) {
	all, err := tx.Shares(ctx, tenants.ShareFilter{})
	if err != nil {
		return nil, err
	}
	teams, err := tx.Teams(ctx)
	if err != nil {
		return nil, err
	}
	receives := map[tenants.ID]bool{me: true}
	for _, t := range teams {
		receives[t.ID] = slices.Contains(t.Members, me)
	}
	shares := map[tenants.ID]map[string]contract.Level{}
	for _, s := range all {
		if !receives[s.MemberID] && !receives[s.TeamID] {
			continue
		}
		if shares[s.InstanceID] == nil {
			shares[s.InstanceID] = map[string]contract.Level{}
		}
		shares[s.InstanceID][s.NotebookID] = max(shares[s.InstanceID][s.NotebookID], s.Level)
	}
	return shares, nil
}

// active is the connector whose policy holds; nil when none is paired.
func active(ctx context.Context, tx tenants.Tx, instance tenants.ID) (*tenants.SnapshotConnector, error) {
	connectors, err := tx.Connectors(ctx, instance)
	var c *tenants.SnapshotConnector
	for _, x := range connectors {
		if x.RevokedAt.IsZero() && (c == nil || x.Epoch >= c.Epoch) {
			c = &tenants.SnapshotConnector{ID: x.ID, Epoch: x.Epoch, Effect: x.Effect}
		}
	}
	return c, err
}
