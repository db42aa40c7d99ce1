// Package memory is the virtual files of the fs tool: /AGENTS.md, what the agents
// of a member remember of a workspace, and /USER_RULES.md, what people want of
// them. It answers the calls that name them, so that those never leave the
// broker, and adds the two names to the list of the root. It must not know how
// calls reach a home, nor protocols; what it may do is decided before it is
// asked, but for the one rule that writing needs an agent's ceiling.
package memory
