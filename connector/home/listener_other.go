//go:build !linux

package home

import "net/netip"

// listenerFolder is not known on this system; the authenticated probe decides.
func listenerFolder(netip.AddrPort) string { return "" }
