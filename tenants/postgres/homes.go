package postgres

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

const instanceColumns = `id, name, default_level, enabled, epoch, created_at`

func scanInstance(r pgx.CollectableRow) (i tenants.Instance, err error) {
	err = r.Scan(&i.ID, &i.Name, intoLevel{&i.DefaultLevel}, &i.Enabled, &i.Epoch, intoTime{&i.CreatedAt})
	return i, err
}

func (t *tx) Instances(ctx context.Context) ([]tenants.Instance, error) {
	return list(ctx, t, "instances", scanInstance, `select `+instanceColumns+` from instances where tenant_id = $1 order by name`, t.tenant)
}

func (t *tx) Instance(ctx context.Context, instance tenants.ID) (tenants.Instance, error) {
	return one(ctx, t, "instance "+instance.String(), scanInstance,
		`select `+instanceColumns+` from instances where tenant_id = $1 and id = $2`, t.tenant, instance)
}

func (t *tx) CreateInstance(ctx context.Context, in tenants.Instance) (tenants.Instance, error) {
	if in.ID == uuid.Nil {
		in.ID = tenants.NewID()
	}
	return one(ctx, t, "create instance", scanInstance, `
		insert into instances (tenant_id, id, name, default_level) values ($1, $2, $3, $4)
		returning `+instanceColumns, t.tenant, in.ID, in.Name, in.DefaultLevel.String())
}

func (t *tx) UpdateInstance(ctx context.Context, instance tenants.ID, up tenants.InstanceUpdate) (tenants.Instance, error) {
	after, err := one(ctx, t, "update instance "+instance.String(), scanInstance, `
		update instances set
			name          = coalesce($3, name),
			default_level = coalesce($4::access_level, default_level),
			enabled       = coalesce($5, enabled)
		where tenant_id = $1 and id = $2
		returning `+instanceColumns, t.tenant, instance, up.Name, levelOrNull(up.DefaultLevel), up.Enabled)
	if err != nil || up.Enabled == nil || *up.Enabled {
		return after, err
	}
	return after, t.revoke(ctx, tenants.RevokedInstance, instance.String())
}

func scanNotebook(r pgx.CollectableRow) (n tenants.Notebook, err error) {
	err = r.Scan(&n.ID, &n.Name, &n.Icon, &n.Closed, &n.Position)
	return n, err
}

func (t *tx) Notebooks(ctx context.Context, instance tenants.ID) ([]tenants.Notebook, error) {
	return list(ctx, t, "notebooks of "+instance.String(), scanNotebook, `
		select id, name, icon, closed, position from notebooks
		where tenant_id = $1 and instance_id = $2 order by position, id`, t.tenant, instance)
}

// ReplaceNotebooks touches only rows that differ, so that a connector that
// reports the same list again changes nothing.
func (t *tx) ReplaceNotebooks(ctx context.Context, instance tenants.ID, all []tenants.Notebook) error {
	if all == nil {
		all = []tenants.Notebook{} // null is no list to SQL
	}
	reported := asJSON{all}
	what := "notebooks of " + instance.String()
	err := t.run(ctx, what, `
		delete from notebooks where tenant_id = $1 and instance_id = $2
			and id not in (select id from jsonb_to_recordset($3::jsonb) as r(id text))`, t.tenant, instance, reported)
	if err != nil {
		return err
	}
	return t.run(ctx, what, `
		insert into notebooks (tenant_id, instance_id, id, name, icon, closed, position)
		select $1::uuid, $2::uuid, id, name, icon, closed, position
		from jsonb_to_recordset($3::jsonb) as r(id text, name text, icon text, closed boolean, position integer)
		on conflict (tenant_id, instance_id, id) do update
			set name = excluded.name, icon = excluded.icon, closed = excluded.closed, position = excluded.position
			where (notebooks.name, notebooks.icon, notebooks.closed, notebooks.position)
				is distinct from (excluded.name, excluded.icon, excluded.closed, excluded.position)`,
		t.tenant, instance, reported)
}

const connectorColumns = `tenant_id, id, instance_id, name, os, version, public_key, fingerprint, epoch,
	policy_effect, paired_by, created_at, last_seen_at, last_address, revoked_at`

func scanConnector(r pgx.CollectableRow) (c tenants.Connector, err error) {
	err = r.Scan(&c.TenantID, &c.ID, &c.InstanceID, &c.Name, &c.OS, &c.Version, (*[]byte)(&c.PublicKey), &c.Fingerprint, &c.Epoch,
		&c.Effect, intoID{&c.PairedBy}, intoTime{&c.CreatedAt}, intoTime{&c.LastSeenAt}, &c.LastAddress, intoTime{&c.RevokedAt})
	return c, err
}

func (t *tx) Connectors(ctx context.Context, instance tenants.ID) ([]tenants.Connector, error) {
	return list(ctx, t, "connectors", scanConnector, `
		select `+connectorColumns+` from connectors
		where tenant_id = $1 and ($2::uuid is null or instance_id = $2)
		order by created_at, id`, t.tenant, idOrNull(instance))
}

func (t *tx) Connector(ctx context.Context, connector tenants.ID) (tenants.Connector, error) {
	return one(ctx, t, "connector "+connector.String(), scanConnector,
		`select `+connectorColumns+` from connectors where tenant_id = $1 and id = $2`, t.tenant, connector)
}

func (t *tx) RegisterConnector(ctx context.Context, c tenants.Connector) (tenants.Connector, error) {
	if len(c.PublicKey) != ed25519.PublicKeySize {
		return tenants.Connector{}, fmt.Errorf("connector key has %d bytes, an Ed25519 key has %d: %w", len(c.PublicKey), ed25519.PublicKeySize, tenants.ErrInvalid)
	}
	if c.ID == uuid.Nil {
		c.ID = tenants.NewID()
	}
	return one(ctx, t, "register connector", scanConnector, `
		insert into connectors (tenant_id, id, instance_id, name, os, version, public_key, fingerprint, paired_by)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		returning `+connectorColumns,
		t.tenant, c.ID, c.InstanceID, c.Name, c.OS, c.Version, []byte(c.PublicKey), tenants.Fingerprint(c.PublicKey), idOrNull(c.PairedBy))
}

func (t *tx) SetPolicyEffect(ctx context.Context, connector tenants.ID, effect contract.PolicyEffect) error {
	var differs bool
	err := t.db.QueryRow(ctx, `select policy_effect is distinct from $3::jsonb from connectors
		where tenant_id = $1 and id = $2 for update`, t.tenant, connector, asJSON{effect}).Scan(&differs)
	if err != nil {
		return failure(err, "home policy of connector %s", connector)
	}
	if !differs { // reported again on every connect
		return nil
	}
	return t.exec(ctx, "home policy of connector "+connector.String(),
		`update connectors set policy_effect = $3::jsonb where tenant_id = $1 and id = $2`, t.tenant, connector, asJSON{effect})
}

func (t *tx) RevokeConnector(ctx context.Context, connector tenants.ID) error {
	return t.end(ctx, "connectors", tenants.RevokedConnector, connector)
}

// ConnectorByFingerprint finds the connector of a key before its tenant is
// known: whoever names the fingerprint sees that one row.
func (s *Store) ConnectorByFingerprint(ctx context.Context, fingerprint string) (c tenants.Connector, err error) {
	err = s.through(ctx, asConnector, fingerprint, func(b *pgx.Batch) {
		b.Queue(`select `+connectorColumns+` from connectors where fingerprint = $1
			order by revoked_at desc nulls first limit 1`, fingerprint).Query(func(rows pgx.Rows) (err error) {
			c, err = pgx.CollectExactlyOneRow(rows, scanConnector)
			return err
		})
	})
	if err != nil {
		return tenants.Connector{}, failure(err, "connector with key %s", fingerprint)
	}
	return c, nil
}

// NextEpoch makes a connector the active one of its instance. That another one was
// active before is kept with it: no restart of anything may forget it.
func (s *Store) NextEpoch(ctx context.Context, tenant, connector tenants.ID) (e tenants.Epoch, err error) {
	known := false
	err = s.through(ctx, asTenant, tenant.String(), func(b *pgx.Batch) {
		b.Queue(`select exists (select from connectors where tenant_id = $1 and id = $2)`, tenant, connector).
			QueryRow(func(r pgx.Row) error { return r.Scan(&known) })
		b.Queue(nextEpoch, tenant, connector).Query(func(rows pgx.Rows) (err error) {
			all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (e tenants.Epoch, err error) {
				err = r.Scan(&e.Number, &e.TookOver, intoTime{&e.OthersUntil})
				return e, err
			})
			if len(all) == 1 {
				e = all[0]
			}
			return err
		})
	})
	switch {
	case err != nil:
	case !known:
		err = tenants.ErrNotFound
	case e.Number == 0:
		err = tenants.ErrRevoked
	}
	if err != nil {
		return tenants.Epoch{}, failure(err, "next epoch of connector %s", connector)
	}
	return e, nil
}

// The update of the instance is first and locks it, so that connectors that come
// at once see each other. last_seen_at of the others is when their sessions really
// ended, where a node lived to say so.
const nextEpoch = `
	with next as (
		update instances i set epoch = i.epoch + 1
		from connectors c join tenants t on t.id = c.tenant_id
		where c.tenant_id = $1 and c.id = $2 and c.revoked_at is null and t.status = 'active'
			and i.tenant_id = c.tenant_id and i.id = c.instance_id and i.enabled
		returning i.id, i.epoch, c.epoch < i.epoch - 1 as took_over),
	drawn as (
		update connectors c set epoch = next.epoch,
			others_until = case when next.took_over then clock_timestamp() else c.others_until end
		from next where c.tenant_id = $1 and c.id = $2
		returning c.epoch, next.took_over, c.others_until, next.id)
	select drawn.epoch, drawn.took_over, greatest(drawn.others_until, (
		select max(o.last_seen_at) from connectors o
		where o.tenant_id = $1 and o.instance_id = drawn.id and o.id <> $2))
	from drawn`

// MarkSeen notes that a connector is alive; an older time changes nothing.
func (s *Store) MarkSeen(ctx context.Context, tenant, connector tenants.ID, at time.Time, address, version string) error {
	err := s.through(ctx, asTenant, tenant.String(), func(b *pgx.Batch) {
		b.Queue(`update connectors set last_seen_at = $3, last_address = $4, version = $5
			where tenant_id = $1 and id = $2 and (last_seen_at is null or last_seen_at <= $3)`, tenant, connector, at, address, version)
	})
	if err != nil {
		return failure(err, "mark connector %s as seen", connector)
	}
	return nil
}
