// Package approvals keeps the calls that wait for the home owner's own yes, in a
// folder of the connector's data folder: the running connector writes questions
// there, `siyuan-connector approvals` answers them. Who may write to that folder
// decides, and nobody else can; there is no socket and no way in from the broker.
//
// A question is one file and its answer is another, told by its name, so that
// each appears and disappears in one step and two programs need no lock. The
// package knows what a question says, but not the tools, the policy or the
// kernel.
package approvals
