package oauth

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// place is an instance that a person may let agents into.
type place struct {
	Tenant, Instance         tenants.ID
	TenantName, InstanceName string
	Highest                  contract.Level // the most that the person may give there
}

// Value is the place in a form.
func (p place) Value() string { return p.Tenant.String() + "/" + p.Instance.String() }

// maxTenants bounds how many of a person's tenants are looked into.
const maxTenants = 50

// places are the instances that a person sees, in their tenants in force.
func (s *Server) places(ctx context.Context, who Person) ([]place, error) {
	var all []place
	for _, m := range who.Memberships[:min(len(who.Memberships), maxTenants)] {
		err := s.cfg.Store.In(ctx, m.TenantID, func(tx tenants.Tx) error {
			of, err := placesOf(ctx, tx, who.ID)
			all = append(all, of...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("instances of tenant %s: %w", m.TenantID, err)
		}
	}
	return all, nil
}

// placesOf are a member's places in one tenant: all instances for who manages
// it, for others those in which something is shared with them.
func placesOf(ctx context.Context, tx tenants.Tx, member tenants.ID) ([]place, error) {
	t, err := tx.Tenant(ctx)
	if err != nil || t.Status != tenants.Active {
		return nil, err
	}
	m, err := tx.Member(ctx, member)
	if err != nil {
		return nil, err
	}
	instances, err := tx.Instances(ctx)
	if err != nil {
		return nil, err
	}
	shared := map[tenants.ID]contract.Level{}
	if !m.Role.Manages() {
		if shared, err = sharedWith(ctx, tx, member); err != nil {
			return nil, err
		}
	}
	var all []place
	for _, in := range instances {
		highest := shared[in.ID]
		if m.Role.Manages() {
			highest = contract.ReadWriteDelete
		}
		if in.Enabled && highest > contract.None {
			all = append(all, place{t.ID, in.ID, t.Name, in.Name, highest})
		}
	}
	return all, nil
}

// sharedWith is the highest level shared with a member in each instance,
// directly or through a team.
func sharedWith(ctx context.Context, tx tenants.Tx, member tenants.ID) (map[tenants.ID]contract.Level, error) {
	filters := []tenants.ShareFilter{{MemberID: member}}
	teams, err := tx.Teams(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range teams {
		if slices.Contains(t.Members, member) {
			filters = append(filters, tenants.ShareFilter{TeamID: t.ID})
		}
	}
	highest := map[tenants.ID]contract.Level{}
	for _, f := range filters {
		shares, err := tx.Shares(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, sh := range shares {
			highest[sh.InstanceID] = max(highest[sh.InstanceID], sh.Level)
		}
	}
	return highest, nil
}

// consentForm is what a person chose, as the form sends it.
type consentForm struct {
	Place string
	Level string
	Only  bool // the tools named, not all
	Tools []string
	Days  string
	Name  string
}

func readConsent(v url.Values) consentForm {
	return consentForm{
		Place: v.Get("place"), Level: v.Get("level"), Only: v.Get("which") == "only", Tools: v["tool"], Days: v.Get("days"), Name: v.Get("name"),
	}
}

// days are the lives a person can choose from; 0 is until it is taken back.
var days = []int{1, 7, 30, 90, 365, 0}

// usualDays is the choice offered first.
const usualDays = 90

// choose turns a form into an agent, after checking every part of it against
// what the person may give. problem is the key of a message; nothing was kept.
func (s *Server) choose(ctx context.Context, who Person, f consentForm, most contract.Level) (tenant tenants.ID, a tenants.Agent, problem string, err error) {
	all, err := s.places(ctx, who)
	if err != nil {
		return tenant, a, "", err
	}
	i := slices.IndexFunc(all, func(p place) bool { return p.Value() == f.Place })
	level, levelErr := contract.ParseLevel(f.Level)
	n, daysErr := strconv.Atoi(f.Days)
	a = tenants.Agent{MemberID: who.ID, Name: plainName(f.Name, shownName), Ceiling: level}
	switch {
	case i < 0:
		return tenant, a, "problem.place", nil
	case levelErr != nil || level == contract.None || level > most:
		return tenant, a, "problem.level", nil
	case level > all[i].Highest:
		return tenant, a, "problem.above", nil
	case daysErr != nil || !slices.Contains(days, n):
		return tenant, a, "problem.days", nil
	case a.Name == "":
		return tenant, a, "problem.name", nil
	}
	if a.Tools, problem = s.chosenTools(f); problem != "" {
		return tenant, a, problem, nil
	}
	a.InstanceID = all[i].Instance
	if n > 0 {
		a.ExpiresAt = s.now().Add(time.Duration(n) * 24 * time.Hour)
	}
	problem, err = s.fits(ctx, all[i].Tenant, n)
	return all[i].Tenant, a, problem, err
}

// chosenTools are the tools an agent is limited to; nil for all.
func (s *Server) chosenTools(f consentForm) (only []string, problem string) {
	if !f.Only {
		return nil, ""
	}
	for _, t := range s.cfg.Catalogue.Tools() {
		if slices.Contains(f.Tools, t.Name) {
			only = append(only, t.Name)
		}
	}
	if len(only) == 0 || len(only) < len(f.Tools) {
		return nil, "problem.tools"
	}
	return only, ""
}

// fits checks a choice against the tenant's limits.
func (s *Server) fits(ctx context.Context, tenant tenants.ID, n int) (problem string, err error) {
	err = s.cfg.Store.In(ctx, tenant, func(tx tenants.Tx) error {
		t, err := tx.Tenant(ctx)
		if err != nil {
			return err
		}
		if longest := t.Limits.AgentMaxDays; longest > 0 && (n == 0 || n > longest) {
			problem = "problem.long"
			return nil
		}
		if err := roomForAgent(ctx, tx); err == errTooManyAgents {
			problem = "problem.full"
			return nil
		} else if err != nil {
			return err
		}
		return nil
	})
	return problem, err
}
