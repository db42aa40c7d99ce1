package broker

import (
	"context"

	"siyuan-broker/broker/approvals"
	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/consent"
	"siyuan-broker/tenants"
)

// newConsent wires where calls wait for people. It needs the cluster.
func (b *Broker) newConsent() {
	b.consent = consent.New(consent.Config{Store: b.db, Box: b.db, Bus: b.cluster.net, Now: b.now, Log: b.log})
}

// newApprovals wires the page on which people answer. It needs the pages.
func (b *Broker) newApprovals() (err error) {
	b.approvals, err = approvals.New(b.consent, b.pages, tenantPerson, b.log)
	return err
}

// budget counts an agent's writes over all nodes.
func (b *Broker) budget(ctx context.Context, tenant, agent string, l tenants.Limits) bool {
	limit := tenants.WriteBudget
	switch {
	case l.WriteBudget == tenants.NoWriteBudget:
		return true
	case l.WriteBudget > 0:
		limit = l.WriteBudget
	}
	ok, _ := b.cluster.net.Allow(ctx, cluster.LimitKey{Tenant: tenant, Agent: agent, Tool: "(writes)"}, limit, l.Window())
	return ok
}
