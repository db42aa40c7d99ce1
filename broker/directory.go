package broker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/broker/relay"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// directory is relay.Directory over the store. On the wire a connector names
// itself by the fingerprint of its key; inside it is known by its record's id.
type directory struct {
	store tenants.Store

	mu   sync.Mutex
	seen map[connectorKey]seen
}

type connectorKey struct{ tenant, connector tenants.ID }

// seen is what a session told last, so that the next note of life does not
// blank it.
type seen struct{ address, version string }

func newDirectory(store tenants.Store) *directory {
	return &directory{store: store, seen: map[connectorKey]seen{}}
}

func (d *directory) Connector(ctx context.Context, fingerprint string) (relay.ConnectorRecord, error) {
	c, err := d.store.ConnectorByFingerprint(ctx, fingerprint)
	if errors.Is(err, tenants.ErrNotFound) {
		return relay.ConnectorRecord{}, relay.ErrUnknownConnector
	}
	if err != nil {
		return relay.ConnectorRecord{}, err
	}
	return relay.ConnectorRecord{
		Tenant: c.TenantID.String(), Instance: c.InstanceID.String(), ID: c.ID.String(),
		PublicKey: c.PublicKey, Revoked: !c.RevokedAt.IsZero(),
	}, nil
}

func (d *directory) NextEpoch(ctx context.Context, tenant, connector string) (relay.Epoch, error) {
	k, err := keyOf(tenant, connector)
	if err != nil {
		return relay.Epoch{}, err
	}
	e, err := d.store.NextEpoch(ctx, k.tenant, k.connector)
	return relay.Epoch(e), err
}

func (d *directory) Status(ctx context.Context, tenant, instance, connector string, s contract.HomeStatus) error {
	k, err := keyOf(tenant, connector)
	if err != nil {
		return err
	}
	inst, err := uuid.Parse(instance)
	if err != nil {
		return err
	}
	return d.store.In(ctx, k.tenant, func(tx tenants.Tx) error {
		if err := tx.SetPolicyEffect(ctx, k.connector, s.Policy); err != nil {
			return err
		}
		// While SiYuan is away its notebooks are as they were.
		if s.State != contract.HomeReady {
			return nil
		}
		list := make([]tenants.Notebook, len(s.Notebooks))
		for i, n := range s.Notebooks {
			list[i] = tenants.Notebook{ID: n.ID, Name: n.Name, Icon: n.Icon, Closed: n.Closed, Position: i}
		}
		return tx.ReplaceNotebooks(ctx, inst, list)
	})
}

// noted keeps address and version of a session for the next Seen.
func (d *directory) noted(s relay.SessionInfo) {
	if k, err := keyOf(s.Tenant, s.Connector); err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.seen[k] = seen{s.Remote, s.Software}
	}
}

func (d *directory) forget(s relay.SessionInfo) {
	if k, err := keyOf(s.Tenant, s.Connector); err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.seen, k)
	}
}

func (d *directory) Seen(ctx context.Context, tenant, _, connector string, at time.Time) error {
	k, err := keyOf(tenant, connector)
	if err != nil {
		return err
	}
	d.mu.Lock()
	last := d.seen[k]
	d.mu.Unlock()
	return d.store.MarkSeen(ctx, k.tenant, k.connector, at, last.address, last.version)
}

func (d *directory) LastSeen(ctx context.Context, tenant, instance string) (time.Time, error) {
	k, err := keyOf(tenant, instance)
	if err != nil {
		return time.Time{}, err
	}
	var latest time.Time
	err = d.store.In(ctx, k.tenant, func(tx tenants.Tx) error {
		all, err := tx.Connectors(ctx, k.connector) // the second id is the instance here
		for _, c := range all {
			if c.LastSeenAt.After(latest) {
				latest = c.LastSeenAt
			}
		}
		return err
	})
	return latest, err
}

// keyOf reads the two ids of a record: its tenant's and its own.
func keyOf(tenant, id string) (connectorKey, error) {
	t, err := uuid.Parse(tenant)
	if err != nil {
		return connectorKey{}, err
	}
	own, err := uuid.Parse(id)
	return connectorKey{t, own}, err
}
