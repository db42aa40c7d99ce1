package broker

import (
	"context"

	"siyuan-broker/tenants"
)

// book is mcpserver.Book over the store.
type book struct{ tenants.Store }

// Audit adds an entry to a tenant's audit log.
func (b book) Audit(ctx context.Context, tenant tenants.ID, e tenants.AuditEntry) error {
	return b.In(ctx, tenant, func(tx tenants.Tx) error { return tx.Audit(ctx, e) })
}
