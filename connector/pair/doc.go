// Package pair makes a connector known to a broker: it begins a pairing, waits
// until a person has decided in the browser, and can take the connector's access
// back. It also keeps what the home knows about its pairing. It must not know
// terminals, tunnels or SiYuan.
package pair
