package postgres_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"siyuan-broker/tenants"
)

// noon is when the pairings of these tests begin; the store has no clock of its
// own for them.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

var roomy = tenants.PairingBounds{PerOrigin: 100, InAll: 100}

func newPairing(t testing.TB, origin string) tenants.Pairing {
	t.Helper()
	key := newKey(t)
	return tenants.Pairing{ID: tenants.NewID(), Key: key, Fingerprint: tenants.Fingerprint(key), Name: "desk", OS: "linux/amd64", Version: "1.0.0", Address: origin, Origin: origin,
		State: tenants.PairingOpen, Interval: 5 * time.Second, CreatedAt: noon, ExpiresAt: noon.Add(10 * time.Minute)}
}

func TestAPairingIsFoundByItsCodesAndNobodyElsesPerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	ada, eve := f.person(t, "ada@example.org").ID, f.person(t, "eve@example.org").ID
	p := newPairing(t, "203.0.113.7")
	must(t, f.OpenPairing(ctx, p, "device", "BCDFGHJK", roomy))

	_, err := f.ClaimPairing(ctx, "BCDFGHJL", ada, noon)
	wantErr(t, err, tenants.ErrNotFound)
	_, err = f.ClaimPairing(ctx, "device", ada, noon)
	wantErr(t, err, tenants.ErrNotFound)
	got, err := f.ClaimPairing(ctx, "BCDFGHJK", ada, noon)
	must(t, err)
	p.ClaimedBy = ada
	if fmt.Sprint(got) != fmt.Sprint(p) {
		t.Errorf("claimed %+v, want %+v", got, p)
	}
	if _, err := f.ClaimedPairing(ctx, p.ID, ada); err != nil {
		t.Error(err)
	}
	_, err = f.ClaimedPairing(ctx, p.ID, eve)
	wantErr(t, err, tenants.ErrNotFound)
	wantErr(t, f.DenyPairing(ctx, p.ID, eve, noon), tenants.ErrNotFound)

	polled, soon, err := f.PollPairing(ctx, "device", noon, time.Second)
	must(t, err)
	if polled.ID != p.ID || soon {
		t.Errorf("polled %v, too soon %v", polled.ID, soon)
	}
	_, _, err = f.PollPairing(ctx, "BCDFGHJK", noon, time.Second)
	wantErr(t, err, tenants.ErrNotFound)
}

func TestPollingTooSoonSlowsDownAndNeverBeyondAMinute(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	must(t, f.OpenPairing(t.Context(), newPairing(t, "x"), "device", "BCDFGHJK", roomy))
	at := noon
	for i, c := range []struct {
		after    time.Duration // since the poll before
		soon     bool
		interval time.Duration // afterwards
	}{
		{0, false, 5 * time.Second}, // the first is never too soon
		{5 * time.Second, false, 5 * time.Second},
		{4 * time.Second, false, 5 * time.Second}, // a second early: the network's doing
		{3 * time.Second, true, 10 * time.Second},
		{5 * time.Second, true, 15 * time.Second},
		{15 * time.Second, false, 15 * time.Second},
		{0, true, 20 * time.Second},
	} {
		at = at.Add(c.after)
		p, soon, err := f.PollPairing(t.Context(), "device", at, 5*time.Second)
		must(t, err)
		if soon != c.soon || p.Interval != c.interval {
			t.Errorf("poll %d: too soon %v, interval %v; want %v, %v", i, soon, p.Interval, c.soon, c.interval)
		}
	}
	for range 12 {
		p, _, err := f.PollPairing(t.Context(), "device", at, 5*time.Second)
		must(t, err)
		if p.Interval > time.Minute {
			t.Fatalf("interval %v", p.Interval)
		}
	}
}

func TestAPairingEndsOnceAndNotAfterItsTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "ada@example.org", home{})
	approve := func(id tenants.ID, at time.Time) error {
		return f.In(ctx, h.tenant, func(tx tenants.Tx) error {
			_, err := tx.ApprovePairing(ctx, id, h.owner, at)
			return err
		})
	}
	open := func(device, code string) tenants.Pairing {
		p := newPairing(t, "x")
		must(t, f.OpenPairing(ctx, p, device, code, roomy))
		return p
	}
	claim := func(code string) {
		_, err := f.ClaimPairing(ctx, code, h.owner, noon)
		must(t, err)
	}

	unclaimed := open("d1", "AAAAAAAA")
	wantErr(t, approve(unclaimed.ID, noon), tenants.ErrNotFound) // nobody typed the code

	late := noon.Add(10 * time.Minute)
	p := open("d2", "BBBBBBBB")
	claim("BBBBBBBB")
	wantErr(t, approve(p.ID, late), tenants.ErrNotFound)
	wantErr(t, f.DenyPairing(ctx, p.ID, h.owner, late), tenants.ErrNotFound)
	must(t, approve(p.ID, late.Add(-time.Second)))
	got, _, err := f.PollPairing(ctx, "d2", late, 0)
	must(t, err)
	if want := late.Add(-time.Second + 2*time.Minute); got.State != tenants.PairingApproved || !got.ExpiresAt.Equal(want) {
		t.Errorf("%s until %v; want approved, with time to collect until %v", got.State, got.ExpiresAt, want)
	}
	wantErr(t, approve(p.ID, noon), tenants.ErrNotFound)
	wantErr(t, f.DenyPairing(ctx, p.ID, h.owner, noon), tenants.ErrNotFound)
	_, err = f.ClaimPairing(ctx, "BBBBBBBB", h.owner, noon)
	wantErr(t, err, tenants.ErrNotFound)

	p = open("d3", "CCCCCCCC")
	claim("CCCCCCCC")
	must(t, f.DenyPairing(ctx, p.ID, h.owner, noon))
	wantErr(t, approve(p.ID, noon), tenants.ErrNotFound)
	_, err = f.ClaimPairing(ctx, "AAAAAAAA", h.owner, late)
	wantErr(t, err, tenants.ErrNotFound)
}

func TestOpenPairingsAreBoundedByOriginAndInAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	n := 0
	open := func(p tenants.Pairing) error {
		n++
		return f.OpenPairing(ctx, p, fmt.Sprintf("d%d", n), fmt.Sprintf("c%d", n), tenants.PairingBounds{PerOrigin: 2, InAll: 3})
	}
	first := newPairing(t, "a")
	must(t, open(first))
	must(t, open(newPairing(t, "a")))
	wantErr(t, open(newPairing(t, "a")), tenants.ErrTooMany)
	must(t, open(first)) // again by the same key takes the place of the first
	must(t, open(newPairing(t, "b")))
	wantErr(t, open(newPairing(t, "c")), tenants.ErrTooMany)
	wantErr(t, f.OpenPairing(ctx, newPairing(t, "c"), "other", "c4", roomy), tenants.ErrConflict)

	later := newPairing(t, "a")
	later.CreatedAt, later.ExpiresAt = first.ExpiresAt, first.ExpiresAt.Add(10*time.Minute)
	must(t, open(later)) // the others have expired
	if _, _, err := f.PollPairing(ctx, "d2", later.CreatedAt, 0); err != nil {
		t.Errorf("an expired pairing is known for a while: %v", err)
	}
	later = newPairing(t, "a")
	later.CreatedAt, later.ExpiresAt = noon.Add(2*time.Hour), noon.Add(3*time.Hour)
	must(t, open(later))
	_, _, err := f.PollPairing(ctx, "d2", later.CreatedAt, 0)
	wantErr(t, err, tenants.ErrNotFound)
}

func TestNoCodeOfAPairingIsInTheDatabase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const device, code = "a-device-code-of-a-machine", "BCDFGHJK"
	must(t, f.OpenPairing(t.Context(), newPairing(t, "x"), device, code, roomy))
	var row string
	must(t, f.conn(t, f.db.AdminDSN).QueryRow(t.Context(), `select p::text || encode(device_hash, 'escape') || encode(user_hash, 'escape') from pairings p`).Scan(&row))
	if bytes.Contains([]byte(row), []byte(device)) || bytes.Contains([]byte(row), []byte(code)) {
		t.Errorf("a code is stored in the clear: %s", row)
	}
	// A short code must not be found by trying all codes against the column alone.
	var unkeyed int
	must(t, f.conn(t, f.db.AdminDSN).QueryRow(t.Context(), `select count(*) from pairings where user_hash = sha256($1::bytea)`, []byte(code)).Scan(&unkeyed))
	if unkeyed != 0 {
		t.Error("the user code is hashed without a key")
	}
}
