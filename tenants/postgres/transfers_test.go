package postgres_test

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/tenants"
)

// transferOf is a URL of a home's agent.
func transferOf(h home) tenants.Transfer {
	id := tenants.NewID()
	return tenants.Transfer{
		ID: id, SecretHash: tenants.HashSecret(id.String()), InstanceID: h.instance, MemberID: h.owner, AgentID: h.agent, RequestID: tenants.NewID(),
		Tool: "file", Action: "upload_asset", Upward: true, Arguments: []byte(`{"fileName":"Nightfall.pdf"}`), MaxBytes: 7,
		CreatedAt: time.Now().Truncate(time.Microsecond).UTC(), ExpiresAt: time.Now().Add(5 * time.Minute).Truncate(time.Microsecond).UTC(),
	}
}

var many = tenants.TransferBounds{PerAgent: 100, InAll: 100}

func TestTransfersAreKeptSealedAndFoundByTheHashAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h, other := f.newHome(t, "a@example.org", home{}), f.newHome(t, "b@example.org", home{})
	x := transferOf(h)
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.PutTransfer(t.Context(), x, many) })
	var sealed []byte
	must(t, f.conn(t, f.db.AdminDSN).QueryRow(t.Context(), `select arguments from transfers where id = $1`, x.ID).Scan(&sealed))
	if bytes.Contains(sealed, []byte("Nightfall")) {
		t.Errorf("stored as %q", sealed)
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		for range 2 {
			got, err := tx.Transfer(t.Context(), x.SecretHash)
			must(t, err)
			if string(got.Arguments) != string(x.Arguments) || got.RequestID != x.RequestID || got.MaxBytes != 7 || !got.Upward || !got.UsedAt.IsZero() || !got.ExpiresAt.Equal(x.ExpiresAt) {
				t.Errorf("%+v, want %+v", got, x)
			}
		}
		_, err := tx.Transfer(t.Context(), tenants.HashSecret("other"))
		return expect(err, tenants.ErrNotFound)
	})
	f.in(t, other.tenant, func(tx tenants.Tx) error {
		_, err := tx.Transfer(t.Context(), x.SecretHash)
		return errors.Join(expect(err, tenants.ErrNotFound), expect(tx.UseTransfer(t.Context(), x.SecretHash, x.CreatedAt), tenants.ErrNotFound))
	})
	err := f.In(t.Context(), other.tenant, func(tx tenants.Tx) error { return tx.PutTransfer(t.Context(), x, many) })
	if err := expect(err, tenants.ErrNotFound); err != nil {
		t.Errorf("for another tenant's agent: %v", err)
	}
}

func expect(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return errors.Join(errors.New("not "+want.Error()), err)
}

func TestATransferIsUsedOnceByWhoeverComesFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	x := transferOf(h)
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.PutTransfer(t.Context(), x, many) })
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_ = f.In(t.Context(), h.tenant, func(tx tenants.Tx) error {
				if tx.UseTransfer(t.Context(), x.SecretHash, x.CreatedAt) == nil {
					won.Add(1)
				}
				return nil
			})
		})
	}
	if all.Wait(); won.Load() != 1 {
		t.Errorf("used %d times", won.Load())
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.FreeTransfer(t.Context(), x.SecretHash))
		if err := expect(tx.UseTransfer(t.Context(), x.SecretHash, x.ExpiresAt), tenants.ErrNotFound); err != nil {
			t.Errorf("used at its end: %v", err)
		}
		return tx.UseTransfer(t.Context(), x.SecretHash, x.ExpiresAt.Add(-time.Second))
	})
}

func TestANewURLOfARequestTakesTheOldOnesPlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	old, next := transferOf(h), transferOf(h)
	next.RequestID, next.CreatedAt = old.RequestID, old.CreatedAt.Add(time.Minute)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		bound := tenants.TransferBounds{PerAgent: 1, InAll: 1}
		must(t, tx.PutTransfer(t.Context(), old, bound))
		must(t, tx.UseTransfer(t.Context(), old.SecretHash, old.CreatedAt))
		must(t, tx.PutTransfer(t.Context(), next, bound))
		_, err := tx.Transfer(t.Context(), old.SecretHash)
		must(t, expect(err, tenants.ErrNotFound))
		must(t, expect(tx.FreeTransfer(t.Context(), old.SecretHash), tenants.ErrNotFound))
		got, err := tx.TransferOf(t.Context(), h.agent, old.RequestID)
		must(t, err)
		if got.SecretHash != next.SecretHash || !got.UsedAt.IsZero() || !got.CreatedAt.Equal(old.CreatedAt) || string(got.Arguments) != string(next.Arguments) {
			t.Errorf("%+v", got)
		}
		return expect(tx.PutTransfer(t.Context(), transferOf(h), bound), tenants.ErrTooMany)
	})
}

func TestTransfersAreForgottenAfterADay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	old, fresh := transferOf(h), transferOf(h)
	old.CreatedAt = old.CreatedAt.Add(-25 * time.Hour)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		return errors.Join(tx.PutTransfer(t.Context(), old, many), tx.PutTransfer(t.Context(), fresh, many))
	})
	must(t, f.Maintain(t.Context(), time.Now(), 30))
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		_, err := tx.Transfer(t.Context(), old.SecretHash)
		_, stays := tx.Transfer(t.Context(), fresh.SecretHash)
		return errors.Join(expect(err, tenants.ErrNotFound), stays)
	})
}
