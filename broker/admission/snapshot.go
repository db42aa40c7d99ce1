package admission

import (
	"crypto/sha256"
	"maps"
	"sync/atomic"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// grantStep is how long one grant is handed out; it lives up to twice that.
// Within a step calls share one grant, so that the tunnel can name it by digest.
const grantStep = time.Minute

// Principal is who acts: one agent of one member on one instance.
type Principal struct {
	Tenant    tenants.ID
	Member    tenants.ID
	Agent     tenants.ID
	Instance  tenants.ID
	AgentName string
	Role      tenants.Role
	Ceiling   contract.Level // the agent's own
}

// Key names the principal across tokens, sessions and nodes; it starts with the
// tenant, because ids are unique within a tenant only.
func (p Principal) Key() string {
	return p.Tenant.String() + "/" + p.Member.String() + "/" + p.Agent.String()
}

// Snapshot is what admission knows about one principal. It is immutable and
// safe to share.
type Snapshot struct {
	Principal     Principal
	PolicyVersion int64
	RulesVersion  int64
	Limits        tenants.Limits
	Settings      tenants.Settings
	Connector     tenants.ID // the instance's newest; zero when none is paired

	catalogue *tools.Catalogue
	state     Reason    // not Permitted: the principal as a whole is barred
	expires   time.Time // zero: no end

	toggles  map[string]bool // by tool.action
	consents map[string]tenants.ConsentMode
	switches []contract.Switch // held, so none for plain members
	only     map[string]bool   // tools the agent is limited to; nil for all

	levels   map[string]contract.Level // granted, without the home policy; others have fallback
	fallback contract.Level
	home     contract.PolicyEffect
	best     contract.Level // highest effective level anywhere
	reach    contract.Level // what workspace-wide actions are measured against

	grant atomic.Pointer[contract.Grant] // the one of the current step
}

// Compile turns the facts of a tenant's store into a Snapshot. It keeps nothing
// of t that could change.
func Compile(t *tenants.Snapshot, catalogue *tools.Catalogue) *Snapshot {
	s := &Snapshot{
		Principal: Principal{
			Tenant: t.TenantID, Member: t.Member, Agent: t.Agent.ID, Instance: t.Instance.ID,
			AgentName: t.Agent.Name, Role: t.Role, Ceiling: t.Agent.Ceiling,
		},
		PolicyVersion: t.PolicyVersion, RulesVersion: t.RulesVersion, Limits: t.Limits, Settings: t.Settings,
		catalogue: catalogue, state: stateOf(t), expires: t.Agent.ExpiresAt,
		toggles: map[string]bool{}, consents: map[string]tenants.ConsentMode{},
		// Without a report nothing is known about the home, whose cap without a
		// policy file is r.
		home: contract.PolicyEffect{MaxLevel: contract.Read},
	}
	for _, x := range t.Toggles {
		s.toggles[x.Tool+"."+x.Action] = x.Enabled
	}
	for _, x := range t.Consents {
		s.consents[x.Tool+"."+x.Action] = x.Mode
	}
	if t.Role.Manages() {
		s.switches = append([]contract.Switch{}, t.Switches...)
	}
	if t.Agent.Tools != nil {
		s.only = map[string]bool{}
		for _, name := range t.Agent.Tools {
			s.only[name] = true
		}
	}
	if c := t.Connector; c != nil {
		s.Connector = c.ID
		if c.Effect != nil {
			s.home = *c.Effect
			s.home.Notebooks = maps.Clone(c.Effect.Notebooks)
			s.catalogue = catalogue.With(c.Effect.Tools)
		}
	}
	s.compileLevels(t)
	return s
}

// CompileInPlace is what a person may do in the place of an agent whose access has
// ended: what they may do themselves on its instance, with all that bounds members
// there, and no workspace switch. person has the role that the store has for them
// now. A plain member is somebody in the place of their own agents only: of others'
// nothing is left, because t has no shares but those of the agent's member.
func CompileInPlace(t *tenants.Snapshot, person tenants.ID, role tenants.Role, catalogue *tools.Catalogue) *Snapshot {
	own := *t
	if own.Role = role; !role.Manages() && person != t.Member {
		own.Role, own.Shares = "", nil
	}
	own.Agent.RevokedAt, own.Agent.ExpiresAt = time.Time{}, time.Time{}
	own.Agent.Ceiling, own.Agent.Tools, own.Switches = contract.ReadWriteDelete, nil, nil
	return Compile(&own, catalogue)
}

func stateOf(t *tenants.Snapshot) Reason {
	switch {
	case !t.Agent.RevokedAt.IsZero():
		return AgentRevoked
	case !t.Role.Valid():
		return NotAMember
	case t.TenantStatus != tenants.Active:
		return TenantSuspended
	case !t.Instance.Enabled:
		return InstanceDisabled
	}
	return Permitted
}

// compileLevels combines tenant, member and agent into what is granted, and
// finds the highest level that the home policy leaves of it.
func (s *Snapshot) compileLevels(t *tenants.Snapshot) {
	member := func(notebook string) contract.Level {
		if t.Role.Manages() {
			return contract.ReadWriteDelete
		}
		return t.Shares[notebook] // none where nothing is shared
	}
	s.fallback = contract.Min(t.Instance.DefaultLevel, member(""), s.Principal.Ceiling)
	s.levels = map[string]contract.Level{}
	set := func(notebook string) {
		tenant, ok := t.Levels[notebook]
		if !ok {
			tenant = t.Instance.DefaultLevel
		}
		if l := contract.Min(tenant, member(notebook), s.Principal.Ceiling); l != s.fallback {
			s.levels[notebook] = l
		}
	}
	for notebook := range t.Levels {
		set(notebook)
	}
	for notebook := range t.Shares {
		set(notebook)
	}
	s.best = contract.Min(s.fallback, s.home.MaxLevel)
	for notebook := range s.levels {
		s.best = max(s.best, s.Level(notebook))
	}
	for notebook := range s.home.Notebooks {
		s.best = max(s.best, s.Level(notebook))
	}
	s.reach = contract.Min(s.Principal.Ceiling, s.home.MaxLevel)
}

// Granted is the level that tenant, member and agent give on a notebook, before
// the home policy.
func (s *Snapshot) Granted(notebook string) contract.Level {
	if l, ok := s.levels[notebook]; ok {
		return l
	}
	return s.fallback
}

// Level is the effective level on a notebook, as far as the broker knows the
// home policy.
func (s *Snapshot) Level(notebook string) contract.Level {
	return contract.Min(s.Granted(notebook), s.home.Cap(notebook))
}

// InForce says why the principal as a whole may not act at now; Permitted when
// it may.
func (s *Snapshot) InForce(now time.Time) Reason {
	if s.state != Permitted {
		return s.state
	}
	if !s.expires.IsZero() && !now.Before(s.expires) {
		return AgentExpired
	}
	return Permitted
}

// Expires is when the agent's access ends; zero for never.
func (s *Snapshot) Expires() time.Time { return s.expires }

// Catalogue is every action there is for the principal, the tools of its home
// included.
func (s *Snapshot) Catalogue() *tools.Catalogue { return s.catalogue }

// Enabled reports whether Decide admits an action, in the form in which tool
// descriptions ask.
func (s *Snapshot) Enabled(a *tools.Action) bool { return Decide(s, a.Tool, a.Name).Allowed() }

// Strict reports whether writes can be validated before they are done.
func (s *Snapshot) Strict() bool { return s.Settings.StrictWrites != tenants.StrictOff }

// Profile is a digest of the admitted actions and of what else decides what is
// listed. Principals of equal profile see equal lists; it says nothing about
// levels.
func (s *Snapshot) Profile() [sha256.Size]byte {
	h := sha256.New()
	if s.Strict() {
		h.Write([]byte("strict\n"))
	}
	if s.Settings.SkillsExtension {
		h.Write([]byte("skills\n"))
	}
	for _, t := range s.catalogue.Tools() {
		for _, a := range t.Actions {
			if s.Enabled(a) {
				h.Write([]byte(a.ID() + "\n"))
			}
			if a.Stands() { // named and described by a home
				h.Write([]byte("\t" + a.By().Name + " " + a.Summary + "\n"))
			}
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Grant is what the connector is told about the principal: levels before the
// home policy, which the connector applies itself. It expires in one to two
// minutes. Calls of the same minute share one value, which must not be changed.
func (s *Snapshot) Grant(now time.Time) *contract.Grant {
	exp := now.Truncate(grantStep).Add(2 * grantStep).Unix()
	if g := s.grant.Load(); g != nil && g.Exp == exp {
		return g
	}
	g := &contract.Grant{
		V:      contract.GrantVersion,
		Tenant: s.Principal.Tenant.String(), Instance: s.Principal.Instance.String(), Member: s.Principal.Member.String(),
		Agent:  contract.AgentRef{ID: s.Principal.Agent.String(), Name: s.Principal.AgentName},
		Levels: s.levels, Default: s.fallback, Switches: s.switches,
		PolicyVersion: s.PolicyVersion, Exp: exp,
	}
	s.grant.Store(g)
	return g
}
