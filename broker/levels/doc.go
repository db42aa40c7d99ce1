// Package levels carries out the one action that changes rights: an agent asks
// for another level of a notebook, and once a person has agreed to it in the
// console the level is set, in the transaction that uses the agreement up. It
// changes what the tenant gives at most; what an agent may at most and the home's
// own policy stay as they are.
//
// It must not know MCP, pages or how people are asked.
package levels
