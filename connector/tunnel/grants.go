package tunnel

import (
	"sync"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// Bounds of the grants that a session remembers.
const (
	maxGrants     = 256     // offered to the broker
	maxGrantBytes = 4 << 20 // of their CALL headers; those of large homes count more
)

// grants are those the broker sent on this session, by the name it gave them.
// Calls share them: nobody changes one.
type grants struct {
	mu   sync.Mutex
	have wire.Recent[string, *contract.Grant]
}

// resolve completes the header of a CALL that took size bytes; it reports
// whether the grant it names is here.
func (g *grants) resolve(h *wire.Call, size int) bool {
	if h.GrantDigest == "" {
		return h.Grant != nil // a broker that names none
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.Grant != nil {
		g.have.Max = maxGrantBytes
		g.have.Put(h.GrantDigest, h.Grant, max(size, maxGrantBytes/maxGrants))
		return true
	}
	h.Grant, _ = g.have.Get(h.GrantDigest)
	return h.Grant != nil
}
