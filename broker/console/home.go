package console

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/broker/people"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// home is an instance as its card shows it.
type home struct {
	Name      string
	Enabled   bool
	Paired    bool // a connector is in force
	Live      Live
	LastSeen  time.Time // zero: never
	Notebooks int       // -1: not for the eyes of this member
	Kind, Key string    // how its state is shown
	RTT       string    // in milliseconds; empty: unknown
}

type homePage struct {
	Belongs bool // to a tenant at all
	Tenant  tenants.Membership
	Manages bool
	Homes   []home
	Pair    string
	Connect string
}

// Home lists the person's homes with their live state. Needs a session.
func (c *Console) Home(w http.ResponseWriter, r *http.Request) { c.showHome(w, r, false) }

// Homes is the part of Home that refreshes itself. Needs a session.
func (c *Console) Homes(w http.ResponseWriter, r *http.Request) { c.showHome(w, r, true) }

func (c *Console) showHome(w http.ResponseWriter, r *http.Request, part bool) {
	s, _ := people.Signed(r)
	var p homePage
	p.Tenant, p.Belongs = s.Tenant()
	if p.Belongs {
		var err error
		if p.Homes, err = c.homes(r.Context(), p.Tenant); err != nil {
			c.failed(w, r, err)
			return
		}
	}
	p.Manages = p.Tenant.Role.Manages()
	if c.Pair != (page.Local{}) {
		p.Pair = c.Pair.String()
	}
	if c.Connect != (page.Local{}) {
		p.Connect = c.Connect.String()
	}
	if part {
		c.set.Fragment(w, r, "home", "homes", p)
		return
	}
	c.set.Show(w, r, http.StatusOK, "home", p)
}

// homes are the instances that a member may know of: all for those who manage,
// else those with something shared with them.
func (c *Console) homes(ctx context.Context, m tenants.Membership) (list []home, err error) {
	err = c.Store.In(ctx, m.TenantID, func(tx tenants.Tx) error {
		instances, err := tx.Instances(ctx)
		if err != nil {
			return err
		}
		connectors, err := tx.Connectors(ctx, tenants.ID{})
		if err != nil {
			return err
		}
		visible, err := c.sharedWith(ctx, tx, m)
		if err != nil {
			return err
		}
		for _, in := range instances {
			if !m.Role.Manages() && !visible[in.ID] {
				continue
			}
			h := home{Name: in.Name, Enabled: in.Enabled, Notebooks: -1, Live: c.Live(ctx, m.TenantID, in.ID)}
			for _, k := range connectors {
				if k.InstanceID == in.ID && k.RevokedAt.IsZero() {
					h.Paired = true
					if k.LastSeenAt.After(h.LastSeen) {
						h.LastSeen = k.LastSeenAt
					}
				}
			}
			if m.Role.Manages() {
				notebooks, err := tx.Notebooks(ctx, in.ID)
				if err != nil {
					return err
				}
				h.Notebooks = len(notebooks)
			}
			h.describe()
			list = append(list, h)
		}
		return nil
	})
	return list, err
}

// sharedWith are the instances where a plain member has something.
func (c *Console) sharedWith(ctx context.Context, tx tenants.Tx, m tenants.Membership) (map[tenants.ID]bool, error) {
	if m.Role.Manages() {
		return nil, nil
	}
	shares, err := tx.Shares(ctx, tenants.ShareFilter{})
	if err != nil {
		return nil, err
	}
	teams, err := tx.Teams(ctx)
	if err != nil {
		return nil, err
	}
	mine := map[tenants.ID]bool{m.User.ID: true}
	for _, t := range teams {
		for _, id := range t.Members {
			if id == m.User.ID {
				mine[t.ID] = true
			}
		}
	}
	visible := map[tenants.ID]bool{}
	for _, s := range shares {
		if mine[s.MemberID] || mine[s.TeamID] {
			visible[s.InstanceID] = true
		}
	}
	return visible, nil
}

// describe says how the state of a home is shown.
func (h *home) describe() {
	if h.Live.RTT > 0 {
		h.RTT = strconv.Itoa(int(math.Ceil(float64(h.Live.RTT) / float64(time.Millisecond))))
	}
	switch {
	case !h.Enabled:
		h.Kind, h.Key = "off", "home.disabled"
	case !h.Live.Connected && !h.Paired:
		h.Kind, h.Key = "off", "home.unpaired"
	case !h.Live.Connected:
		h.Kind, h.Key = "off", "home.offline"
	case h.Live.State == contract.HomeReady:
		h.Kind, h.Key = "on", "home.on"
	case h.Live.State == contract.HomeOffline:
		h.Kind, h.Key = "wait", "home.siyuan"
	case h.Live.State == contract.HomeUnauthorized:
		h.Kind, h.Key = "wait", "home.token"
	case h.Live.State == contract.HomeWrongWorkspace:
		h.Kind, h.Key = "wait", "home.other"
	case h.Live.State == contract.HomeIndexing:
		h.Kind, h.Key = "wait", "home.indexing"
	default:
		h.Kind, h.Key = "on", "home.connected"
	}
}
