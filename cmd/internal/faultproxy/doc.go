// Package faultproxy is a TCP proxy that misbehaves on demand, in user space and
// without privileges: it cuts, resets, truncates, freezes, swallows, delays,
// throttles and duplicates connections, each direction for itself, while they
// run. Tests put it between a connector and a broker. It must not know what
// protocol passes through it.
package faultproxy
