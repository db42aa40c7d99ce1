// Package transfers lets files come and go beside calls: an action answers with a
// one-time URL, and whoever has it sends the file there or gets it from there. The
// URL is good once, for minutes, on every node; what its agent may do is looked at
// again when it is used. Bytes go straight on to the home, or come from there, at
// the pace of the slower end: nothing is kept here.
//
// The package knows how a file travels, and neither tools, pages nor MCP; what a
// URL is for stands in the contract.
package transfers
