package tunneltest

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"siyuan-broker/broker/relay"
	"siyuan-broker/cmd/internal/faultproxy"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
)

// crowd is a directory of many homes, each of its own instance.
type crowd struct {
	*directory
	mu     sync.Mutex
	epochs map[string]int64
}

func (c *crowd) NextEpoch(_ context.Context, _, connector string) (relay.Epoch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epochs[connector]++
	return relay.Epoch{Number: c.epochs[connector]}, nil
}

func TestT14BadMobileNetworksBreedNoZombies(t *testing.T) {
	t.Parallel()
	homes, rounds := 40, 12
	if soak {
		homes, rounds = 200, 200
	}
	_, key := keys(t)
	dir := &crowd{directory: newDirectory(nil), epochs: map[string]int64{}}
	for i := range homes {
		id := fmt.Sprintf("c-%d", i)
		dir.records[id] = relay.ConnectorRecord{Tenant: tenant, Instance: "of " + id, ID: id, PublicKey: key.Public().(ed25519.PublicKey)}
	}
	n, p := behindProxy(t, dir, "ws", func(c *relay.Config) {
		scaledNode(c)
		c.Limits.PerTenant = 10_000
	})
	for i := range homes {
		startHome(t, n.dial, nil, key, echo, func(c *tunnel.Config) {
			scaledHome(c)
			c.ConnectorID = fmt.Sprintf("c-%d", i)
			c.Backoff = tunnel.Backoff{Base: 50 * time.Millisecond, Cap: time.Second}
		})
	}
	eventually(t, "all are connected", func() bool { return len(n.hub.Sessions()) == homes })

	harm := []faultproxy.Rules{faultproxy.Both(faultproxy.Rule{Effect: faultproxy.Reset}), deadSilence,
		{Up: faultproxy.Rule{Effect: faultproxy.Drop}}, {Down: faultproxy.Rule{Effect: faultproxy.Drop}}, faultproxy.Both(faultproxy.Rule{Hide: true})}
	most := 0
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for range rounds {
		for _, c := range p.Conns() {
			if rand.IntN(100) < 30 {
				c.Set(harm[rand.IntN(len(harm))])
			}
		}
		<-tick.C
		most = max(most, n.hub.Stats().Sessions)
	}
	p.SetNew(faultproxy.Rules{})
	// A session that is closing says goodbye for a moment; a fenced one is no
	// longer live but may be among them.
	if grace := homes / 5; most > homes+grace {
		t.Errorf("%d sessions of %d homes", most, homes)
	}
	for _, c := range p.Conns() {
		c.Set(faultproxy.Rules{})
	}
	eventually(t, "each home has its one session", func() bool {
		return len(n.hub.Sessions()) == homes && n.hub.Stats().Sessions == homes
	})
	for i := range homes {
		id := fmt.Sprintf("of c-%d", i)
		eventually(t, "a call to "+id, func() bool {
			res := n.hub.Call(t.Context(), tenant, id, contract.Call{Grant: &contract.Grant{}, Args: []byte(`{}`)}, true, nil)
			return res.Err == nil
		})
	}
}

func TestADuplicatedConnectionIsNotASecondSession(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"tls", "ws"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			pub, key := keys(t)
			n, p := behindProxy(t, newDirectory(pub), transport, func(c *relay.Config) { c.Timing.Handshake = time.Second })
			p.Duplicate(true) // the twin gets the same bytes, the signed token among them
			bench := newWorkbench(10, 0)
			startHome(t, n.dial, n.tls, key, bench, nil)
			n.await(relay.SessionUp)
			if res := n.call(t.Context(), contract.Call{Tool: "write", RequestID: "w"}, false); res.Err != nil {
				t.Error(res.Err)
			}
			eventually(t, "the twin is turned away", func() bool { return n.hub.Stats().Rejected >= 1 })
			if arrived, _ := bench.counts("w"); arrived != 1 {
				t.Errorf("the write arrived %d times", arrived)
			}
			if s := n.hub.Stats(); s.Accepted != 1 || s.Sessions != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}
