// Package tools executes aggregated actions beside SiYuan. The [Executor] is
// what every front calls: it looks the action up in the catalogue, checks the
// arguments again, applies the home policy and the grant, opens a guard session
// and runs the one handler bound to the action. Each tool has a package of its
// own below this one, with a handler per action.
//
// Handlers work through guard.Session alone. Neither they nor this package know
// the kernel's client, MCP, or how a call came here.
package tools
