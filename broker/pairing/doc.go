// Package pairing lets connectors in: a machine shows a short code, a signed-in
// owner or admin types it, sees which machine asks, and chooses the instance.
// It serves the wire side (RFC 8628 with a signature by the connector's key in
// every request) and the pages for people. It must not know how tunnels work,
// and it never believes what a machine says about itself: host name, system and
// version are shown as the machine's own word.
package pairing
