package relay

import (
	"errors"
	"sync"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// maxGrants is how many grants a session is remembered to have, whatever the
// connector offers to keep.
const maxGrants = 1024

// errGrantUnknown is a connector's answer to a digest that it has forgotten.
var errGrantUnknown = errors.New("the connector does not have this grant")

// grants remembers which grants a connector has, so that a call can name one by
// its digest. A grant is an immutable value that many calls share: its digest is
// computed once, for its address. The zero value sends every grant whole.
type grants struct {
	mu    sync.Mutex
	names wire.Recent[*contract.Grant, string]
	sent  wire.Recent[string, struct{}]
}

// offer says how many grants the connector keeps.
func (g *grants) offer(n int) {
	n = max(0, min(n, maxGrants))
	g.names.Max, g.sent.Max = n, n
}

// name is the digest of a grant, and whether the connector has it. It is empty
// where the connector keeps none.
func (g *grants) name(grant *contract.Grant) (digest string, has bool) {
	g.mu.Lock()
	off := g.names.Max == 0
	digest, known := g.names.Get(grant)
	_, has = g.sent.Get(digest)
	g.mu.Unlock()
	if off || known {
		return digest, has
	}
	digest, err := grant.Digest()
	if err != nil {
		return "", false // what cannot be written cannot be sent either, and says so there
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names.Put(grant, digest, 1)
	_, has = g.sent.Get(digest)
	return digest, has
}

// has notes that the connector answered a call which carried the grant.
func (g *grants) has(digest string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent.Put(digest, struct{}{}, 1)
}

// forgot notes that the connector has it no more.
func (g *grants) forgot(digest string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent.Drop(digest)
}
