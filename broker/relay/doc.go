// Package relay is the broker's end of the tunnels: it accepts connectors over
// raw TLS or WebSocket, checks who they are, keeps the one live session of each
// instance and carries calls to it on pooled streams. It must not know
// tools, permissions, Postgres or HTTP fronts: records come from a Directory,
// calls arrive decided. Everything a connector sends is untrusted; whatever it
// does wrong costs that connector its session and nobody else anything.
package relay
