// Package wire is the codec of the tunnel between broker and connector: length
// prefixed frames, the JSON headers they carry, the handshake messages, the
// checks for JSON that comes from the other side, and the joining of small
// writes. It works on io.Reader and io.Writer and keeps no time. It must not
// know sockets, TLS, yamux or keys; docs/PROTOCOL.md describes the same format
// for implementers elsewhere.
package wire
