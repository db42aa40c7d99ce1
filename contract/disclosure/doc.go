// Package disclosure decides what an agent is told about the catalogue and
// when: the short descriptors of tools/list, the server instructions, and help,
// which alone has everything. All of it is derived from contract/tools and a
// function that says what the caller may use, so nothing is listed that cannot
// be called. The package knows nothing of MCP libraries, tenants or transports.
package disclosure
