package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

// collectFor is how long an approved machine has to come for the answer, at
// least.
const collectFor = 2 * time.Minute

// forgetAfter is how long an expired pairing can still be told from one that
// never was.
const forgetAfter = time.Hour

// codeKey is the key of short codes' hashes. After a change of the master key
// codes in use are unknown, and their machines begin anew.
func codeKey(master []byte) []byte {
	m := hmac.New(sha256.New, master)
	m.Write([]byte("siyuan-broker user codes"))
	return m.Sum(nil)
}

func (s *Store) hashUserCode(code string) []byte {
	m := hmac.New(sha256.New, s.codeKey)
	m.Write([]byte(code))
	return m.Sum(nil)
}

func hashDeviceCode(code string) []byte {
	sum := sha256.Sum256([]byte(code))
	return sum[:]
}

const pairingColumns = `id, public_key, fingerprint, name, os, version, address, origin, state, interval_ms, claimed_by, created_at, expires_at`

// pairingFields are where a row of pairingColumns goes.
func pairingFields(p *tenants.Pairing, ms *int) []any {
	return []any{&p.ID, (*[]byte)(&p.Key), &p.Fingerprint, &p.Name, &p.OS, &p.Version, &p.Address, &p.Origin, &p.State, ms,
		intoID{&p.ClaimedBy}, intoTime{&p.CreatedAt}, intoTime{&p.ExpiresAt}}
}

func scanPairing(r pgx.CollectableRow) (p tenants.Pairing, err error) {
	var ms int
	err = r.Scan(pairingFields(&p, &ms)...)
	p.Interval = time.Duration(ms) * time.Millisecond
	return p, err
}

// OpenPairing stores a pairing within the bounds. The lock makes the count true
// for those who open one at the same time.
func (s *Store) OpenPairing(ctx context.Context, p tenants.Pairing, deviceCode, userCode string, bounds tenants.PairingBounds) error {
	var perOrigin, inAll int
	err := pgx.BeginFunc(ctx, s.service, func(db pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`select pg_advisory_xact_lock(hashtext('siyuan pairings'))`)
		b.Queue(`delete from pairings where fingerprint = $1 and state = 'open' or expires_at < $2`, tenants.Fingerprint(p.Key), p.CreatedAt.Add(-forgetAfter))
		b.Queue(`select count(*) filter (where origin = $1), count(*) from pairings where state = 'open' and expires_at > $2`, p.Origin, p.CreatedAt).
			QueryRow(func(r pgx.Row) error { return r.Scan(&perOrigin, &inAll) })
		if err := db.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if perOrigin >= bounds.PerOrigin || inAll >= bounds.InAll {
			return tenants.ErrTooMany
		}
		_, err := db.Exec(ctx, `
			insert into pairings (id, device_hash, user_hash, public_key, fingerprint, name, os, version, address, origin, interval_ms, created_at, expires_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			p.ID, hashDeviceCode(deviceCode), s.hashUserCode(userCode), []byte(p.Key), tenants.Fingerprint(p.Key), p.Name, p.OS, p.Version,
			p.Address, p.Origin, p.Interval.Milliseconds(), p.CreatedAt, p.ExpiresAt)
		return err
	})
	if err != nil {
		return failure(err, "open pairing")
	}
	return nil
}

// PollPairing notes a poll. A second early is not too soon: the two requests may
// have travelled at different speeds.
func (s *Store) PollPairing(ctx context.Context, deviceCode string, at time.Time, slower time.Duration) (p tenants.Pairing, tooSoon bool, err error) {
	var ms int
	rows, err := s.service.Query(ctx, `
		with before as (
			select id as which, polled_at is not null and polled_at + interval_ms * interval '1 millisecond' - interval '1 second' > $2::timestamptz as soon
			from pairings where device_hash = $1 for update)
		update pairings set polled_at = $2::timestamptz,
			interval_ms = case when soon then least(interval_ms + $3::integer, 60000) else interval_ms end
		from before where id = which
		returning `+pairingColumns+`, soon`, hashDeviceCode(deviceCode), at, slower.Milliseconds())
	if err == nil {
		p, err = pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) (p tenants.Pairing, err error) {
			err = r.Scan(append(pairingFields(&p, &ms), &tooSoon)...)
			p.Interval = time.Duration(ms) * time.Millisecond
			return p, err
		})
	}
	if err != nil {
		return p, false, failure(err, "poll pairing")
	}
	return p, tooSoon, nil
}

func (s *Store) pairing(ctx context.Context, what, sql string, args ...any) (tenants.Pairing, error) {
	rows, err := s.service.Query(ctx, sql, args...)
	if err == nil {
		var p tenants.Pairing
		if p, err = pgx.CollectExactlyOneRow(rows, scanPairing); err == nil {
			return p, nil
		}
	}
	return tenants.Pairing{}, failure(err, "%s", what)
}

// ClaimPairing notes that a person typed the code of an open pairing.
func (s *Store) ClaimPairing(ctx context.Context, userCode string, person tenants.ID, at time.Time) (tenants.Pairing, error) {
	return s.pairing(ctx, "pairing by its code", `
		update pairings set claimed_by = $2 where user_hash = $1 and state = 'open' and expires_at > $3
		returning `+pairingColumns, s.hashUserCode(userCode), person, at)
}

// ClaimedPairing returns a pairing to the person who claimed it.
func (s *Store) ClaimedPairing(ctx context.Context, id, person tenants.ID) (tenants.Pairing, error) {
	return s.pairing(ctx, "pairing "+id.String(),
		`select `+pairingColumns+` from pairings where id = $1 and claimed_by = $2`, id, person)
}

// DenyPairing ends an open pairing.
func (s *Store) DenyPairing(ctx context.Context, id, person tenants.ID, at time.Time) error {
	_, err := s.pairing(ctx, "deny pairing "+id.String(), `
		update pairings set state = 'denied' where id = $1 and claimed_by = $2 and state = 'open' and expires_at > $3
		returning `+pairingColumns, id, person, at)
	return err
}

func (t *tx) ApprovePairing(ctx context.Context, id, person tenants.ID, at time.Time) (tenants.Pairing, error) {
	return one(ctx, t, fmt.Sprintf("approve pairing %s", id), scanPairing, `
		update pairings set state = 'approved', expires_at = greatest(expires_at, $4::timestamptz)
		where id = $1 and claimed_by = $2 and state = 'open' and expires_at > $3
		returning `+pairingColumns, id, person, at, at.Add(collectFor))
}
