package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

// SigningKeys returns every key with its private part opened, oldest first.
func (s *Store) SigningKeys(ctx context.Context) ([]tenants.SigningKey, error) {
	rows, err := s.service.Query(ctx, `
		select kid, alg, purpose, sealed, public, not_before, retires_at, expires_at, created_at
		from signing_keys order by not_before, kid`)
	if err != nil {
		return nil, failure(err, "signing keys")
	}
	keys, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (k tenants.SigningKey, err error) {
		var sealed []byte
		err = r.Scan(&k.KID, &k.Alg, &k.Purpose, &sealed, &k.Public,
			intoTime{&k.NotBefore}, intoTime{&k.RetiresAt}, intoTime{&k.ExpiresAt}, intoTime{&k.CreatedAt})
		if err == nil {
			k.Private, err = s.box.open(k.KID, sealed)
		}
		return k, err
	})
	if err != nil {
		return nil, failure(err, "signing keys")
	}
	return keys, nil
}

// PutSigningKey stores a new key sealed.
func (s *Store) PutSigningKey(ctx context.Context, k tenants.SigningKey) error {
	_, err := s.service.Exec(ctx, `
		insert into signing_keys (kid, alg, purpose, sealed, public, not_before, retires_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		k.KID, k.Alg, k.Purpose, s.box.seal(k.KID, k.Private), k.Public, k.NotBefore, timeOrNull(k.RetiresAt), timeOrNull(k.ExpiresAt))
	if err != nil {
		return failure(err, "store signing key %s", k.KID)
	}
	return nil
}

// RetireSigningKey sets when a key stops signing and verifying.
func (s *Store) RetireSigningKey(ctx context.Context, kid string, retires, expires time.Time) error {
	tag, err := s.service.Exec(ctx, `update signing_keys set retires_at = $2, expires_at = $3 where kid = $1`,
		kid, timeOrNull(retires), timeOrNull(expires))
	if err == nil && tag.RowsAffected() == 0 {
		err = tenants.ErrNotFound
	}
	if err != nil {
		return failure(err, "retire signing key %s", kid)
	}
	return nil
}

// DeleteSigningKey removes a key.
func (s *Store) DeleteSigningKey(ctx context.Context, kid string) error {
	tag, err := s.service.Exec(ctx, `delete from signing_keys where kid = $1`, kid)
	if err == nil && tag.RowsAffected() == 0 {
		err = tenants.ErrNotFound
	}
	if err != nil {
		return failure(err, "delete signing key %s", kid)
	}
	return nil
}

// Reseal seals every signing key with the current master key, after which the
// old ones can be forgotten.
func (s *Store) Reseal(ctx context.Context) error {
	keys, err := s.SigningKeys(ctx)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	for _, k := range keys {
		b.Queue(`update signing_keys set sealed = $2 where kid = $1`, k.KID, s.box.seal(k.KID, k.Private))
	}
	if err := s.service.SendBatch(ctx, b).Close(); err != nil {
		return failure(err, "reseal signing keys")
	}
	return nil
}

// Setting reads one JSON value of the installation.
func (s *Store) Setting(ctx context.Context, key string, into any) error {
	var value []byte
	if err := s.service.QueryRow(ctx, `select value::text from installation_settings where key = $1`, key).Scan(&value); err != nil {
		return failure(err, "setting %s", key)
	}
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("setting %s: %w", key, err)
	}
	return nil
}

// SetSetting writes one JSON value of the installation.
func (s *Store) SetSetting(ctx context.Context, key string, value any) error {
	_, err := s.service.Exec(ctx, `
		insert into installation_settings (key, value) values ($1, $2::jsonb)
		on conflict (key) do update set value = excluded.value`, key, asJSON{value})
	if err != nil {
		return failure(err, "setting %s", key)
	}
	return nil
}
