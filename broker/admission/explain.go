package admission

import "siyuan-broker/contract"

// Error is the refusal in the public vocabulary; nil when the action is
// allowed.
func (d Decision) Error() *contract.Error {
	name := d.Tool + "." + d.Action
	switch d.Reason {
	case Permitted:
		return nil
	case NoSuchTool:
		return contract.Fail(contract.UnknownTool, "There is no tool %q.", d.Tool)
	case NoSuchAction:
		return contract.Fail(contract.UnknownAction, "The tool %s has no action %q.", d.Tool, d.Action)
	case ToolNotGiven:
		return contract.Fail(contract.ActionDisabled, "%s is not among the tools this agent was given.", d.Tool).
			WithHint("The person you work for can give this agent more tools in the console.")
	case SwitchedOff:
		return contract.Fail(contract.ActionDisabled, "%s is switched off.", name)
	case HomeVeto:
		return contract.Fail(contract.ActionDisabled, "%s is not allowed by the policy of the home.", name).
			WithHint("Only the owner of the home can change that, in the connector's policy file.")
	case NotManager:
		return contract.Fail(contract.PermissionDenied, "%s works on the whole workspace, which only agents of owners and admins may do.", name).
			WithHint("Use an action on a notebook instead, or ask an owner or admin to do it.")
	case NoSwitch:
		return contract.Fail(contract.ActionDisabled, "%s needs the workspace switch %q, which is off.", name, d.Switch).
			WithHint("A tenant owner or admin can switch it on in the console.")
	case LevelTooLow:
		return contract.Fail(contract.PermissionDenied, "%s needs level %s, and this agent has at most %s in any notebook.", name, d.Need, d.Have).
			WithHint("Levels are raised by people only: a tenant owner or admin for the notebook and the agent, the owner of the home in the connector's policy file.").
			WithDetail(map[string]any{"level_needed": d.Need, "level": d.Have})
	case ConsentDenied:
		return contract.Fail(contract.ActionDisabled, "%s is refused for everybody by the tenant's consent rules.", name)
	}
	return d.Reason.Error()
}

// Error is the refusal for a reason that bars the principal as a whole.
func (r Reason) Error() *contract.Error {
	switch r {
	case AgentRevoked, AgentExpired:
		return contract.Fail(contract.PermissionDenied, "This agent's access has ended.").
			WithHint("The person you work for has to connect it again.")
	case NotAMember:
		return contract.Fail(contract.PermissionDenied, "The person this agent works for no longer belongs to the tenant.").
			WithHint("A tenant owner or admin can invite them again.")
	case TenantSuspended:
		return contract.Fail(contract.PermissionDenied, "The tenant is suspended.").
			WithHint("Whoever runs this service can say why.")
	case InstanceDisabled:
		return contract.Fail(contract.PermissionDenied, "The SiYuan workspace is switched off here.").
			WithHint("A tenant owner or admin can switch it on in the console.")
	}
	return contract.Fail(contract.PermissionDenied, "This is not allowed.").WithHint("Ask the person you work for.")
}
