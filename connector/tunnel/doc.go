// Package tunnel is the connector's end of the tunnel: it dials the broker,
// proves who it is, keeps a session up for ever and hands the calls that arrive
// to a Handler. It must not know SiYuan, policies or tools. The broker is not
// trusted with the stability of this process: what it sends is bounded like
// anything else from a network.
package tunnel
