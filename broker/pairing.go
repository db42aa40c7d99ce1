package broker

import (
	"context"
	"net/http"
	"time"

	"siyuan-broker/broker/pairing"
	"siyuan-broker/broker/people"
	"siyuan-broker/tenants"
)

// newPairing wires how connectors are let in. It needs the pages.
func (b *Broker) newPairing(audiences []string) (err error) {
	b.pairing, err = pairing.New(pairing.Config{
		Store: b.db, Audiences: audiences, Base: b.pages.Base, Tunnel: b.tunnelEndpoint, Address: b.cfg.clientIP(),
		Connected: b.connected, Allow: b.tries, Now: b.now, Log: b.log,
	})
	if err != nil {
		return err
	}
	b.pairPages, err = pairing.NewPages(b.pairing, b.pages, func(r *http.Request) tenants.ID {
		s, _ := people.Signed(r) // the pages stand behind RequireSignedIn
		return s.User.ID
	})
	return err
}

// connected reports whether a connector's tunnel is up, here or on another node:
// a connector that is not the newest of its instance has none.
func (b *Broker) connected(ctx context.Context, c tenants.Connector) bool {
	if s, ok := b.tunnel.Hub().Session(c.TenantID.String(), c.InstanceID.String()); ok {
		return s.Connector == c.ID.String()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	route, err := b.cluster.net.Lookup(ctx, c.TenantID.String(), c.InstanceID.String())
	return err == nil && route.Node != b.cfg.NodeID && route.Epoch == c.Epoch
}
