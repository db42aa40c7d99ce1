// Package peer carries calls between the nodes of an installation: a call that
// entered at one node goes home over the tunnel of another, and what one node was
// sent is offered to the others, one of which waits for it. Nodes prove to each
// other that they hold the installation's master key and speak TLS 1.3 with keys
// derived from it, so there are no certificates to manage; inside run pooled
// streams with the tunnel's frames. It must not know tunnels, Redis or tenants'
// rules: what arrives has been decided by the node that sent it.
package peer
