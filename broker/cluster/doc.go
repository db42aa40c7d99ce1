// Package cluster is what the nodes of one installation have in common: which
// node holds the tunnel of an instance (Routes), how many calls are left
// (Limiter), what changed (Bus) and who is there (Nodes). A single node uses
// the in-process Memory; redisnet shares the same four through Redis; one suite,
// clustertest, holds both to the same behaviour. Relay carries a call to
// wherever its home is.
//
// Nothing here is the truth about anything: routes are hints that the node
// they point to confirms, events may be lost and then say so, limits go on in
// part while the shared counter is away. So the package must not know
// Postgres, tunnels, tools or permissions.
package cluster
