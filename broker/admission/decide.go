package admission

import (
	"slices"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// Reason says why a decision came out as it did.
type Reason string

// The reasons. The first is the only one that admits; those up to
// InstanceDisabled bar the principal as a whole.
const (
	Permitted        Reason = "permitted"
	AgentRevoked     Reason = "agent_revoked"
	AgentExpired     Reason = "agent_expired"
	NotAMember       Reason = "not_a_member"
	TenantSuspended  Reason = "tenant_suspended"
	InstanceDisabled Reason = "instance_disabled"

	NoSuchTool    Reason = "no_such_tool"
	NoSuchAction  Reason = "no_such_action"
	ToolNotGiven  Reason = "tool_not_given" // the agent is limited to other tools
	SwitchedOff   Reason = "switched_off"   // by the tenant, or by default
	HomeVeto      Reason = "home_veto"      // by the home policy
	NotManager    Reason = "not_manager"    // workspace-wide, and a plain member
	NoSwitch      Reason = "no_switch"      // workspace-wide, and its switch is off
	LevelTooLow   Reason = "level_too_low"  // in every notebook
	ConsentDenied Reason = "consent_denied" // the tenant answers no for everybody
)

// EndsAccess reports whether the principal's credential is of no use any more,
// so that its bearer has to be let in anew.
func (r Reason) EndsAccess() bool {
	return r == AgentRevoked || r == AgentExpired || r == NotAMember
}

// Decision is the answer of Decide.
type Decision struct {
	Reason Reason
	Tool   string
	Action string
	Need   contract.Level  // with LevelTooLow: what the action needs
	Have   contract.Level  // with LevelTooLow: the highest level there is
	Switch contract.Switch // with NoSwitch
}

// Allowed reports whether the action may be listed, explained and called.
func (d Decision) Allowed() bool { return d.Reason == Permitted }

// Decide says whether a principal may use an action of that settled name, and
// if not, why. It is pure: the same snapshot gives the same answer. What the
// action may touch is decided later and by notebook, with the grant.
func Decide(s *Snapshot, tool, action string) Decision {
	if a, ok := s.catalogue.Action(tool, action); ok && !a.ByName {
		return s.decide(a)
	}
	d := Decision{Reason: NoSuchAction, Tool: tool, Action: action}
	if _, known := s.catalogue.Tool(tool); !known {
		d.Reason = NoSuchTool
	}
	return d
}

func (s *Snapshot) decide(a *tools.Action) Decision {
	d := Decision{Reason: Permitted, Tool: a.Tool, Action: a.Name}
	switch {
	case s.state != Permitted:
		d.Reason = s.state
	case s.only != nil && !s.only[a.Tool]:
		d.Reason = ToolNotGiven
	case !s.switchedOn(a):
		d.Reason = SwitchedOff
	case s.home.Vetoes(a.Tool, a.Name) || s.home.Vetoes(a.Tool, a.By().Name):
		d.Reason = HomeVeto
	case a.Scope == tools.ScopeWorkspace && !s.Principal.Role.Manages():
		d.Reason = NotManager
	case a.Scope == tools.ScopeWorkspace && !slices.Contains(s.switches, a.Switch):
		d.Reason, d.Switch = NoSwitch, a.Switch
	case !s.highest(a).Allows(a.Level):
		d.Reason, d.Need, d.Have = LevelTooLow, a.Level, s.highest(a)
	case a.Dangerous && s.Consent(a) == tenants.ConsentDeny:
		d.Reason = ConsentDenied
	}
	return d
}

func (s *Snapshot) switchedOn(a *tools.Action) bool {
	if on, ok := s.toggles[a.ID()]; ok && (!on || !a.Stands()) {
		return on // one tool of a home can be switched off; the action behind it switches all
	}
	if a.Stands() {
		return s.switchedOn(a.By())
	}
	return !a.Off
}

// highest is the level an action is measured against before its targets are
// known: the best of any notebook, or for workspace-wide actions what the agent
// and the home allow at all.
func (s *Snapshot) highest(a *tools.Action) contract.Level {
	if a.Scope == tools.ScopeWorkspace {
		return s.reach
	}
	return s.best
}

// Consent says how a person agrees to a call of an admitted action: ConsentAllow
// where nobody is asked, which goes for all that are not dangerous. What an action
// needs at least, a tenant cannot lower.
func (s *Snapshot) Consent(a *tools.Action) tenants.ConsentMode {
	if a = a.By(); !a.Dangerous {
		return tenants.ConsentAllow
	}
	return ConsentMode(a, s.consents[a.ID()])
}

// ConsentModes are the ways of agreeing to a dangerous action that a tenant may
// choose from, the one without a choice first.
func ConsentModes(a *tools.Action) []tenants.ConsentMode {
	switch a.Agreement {
	case tools.InConsole:
		return []tenants.ConsentMode{tenants.ConsentConsole, tenants.ConsentDeny}
	case tools.ByPerson:
		return []tenants.ConsentMode{tenants.ConsentAsk, tenants.ConsentConsole, tenants.ConsentAllow, tenants.ConsentDeny}
	}
	return []tenants.ConsentMode{tenants.ConsentAsk, tenants.ConsentConsole, tenants.ConsentPreview, tenants.ConsentAllow, tenants.ConsentDeny}
}

// ConsentMode is what a tenant's choice comes to for a dangerous action: what is
// not among its modes, such as no choice at all, is the first of them.
func ConsentMode(a *tools.Action, chosen tenants.ConsentMode) tenants.ConsentMode {
	modes := ConsentModes(a)
	if slices.Contains(modes, chosen) {
		return chosen
	}
	return modes[0]
}
