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

// approvalOf is a call of a home's agent that waits.
func approvalOf(h home) tenants.Approval {
	return tenants.Approval{
		ID: tenants.NewID(), InstanceID: h.instance, MemberID: h.owner, AgentID: h.agent, RequestID: tenants.NewID(),
		Tool: "document", Action: "remove", Arguments: [32]byte{1, 2, 3}, RulesVersion: 7, Preview: []byte(`{"title":"Nightfall"}`),
		CreatedAt: time.Now().Truncate(time.Microsecond).UTC(), ExpiresAt: time.Now().Add(10 * time.Minute).Truncate(time.Microsecond).UTC(),
	}
}

var wide = tenants.ApprovalBounds{PerAgent: 100, InAll: 100}

func TestApprovalsAreKeptSealedAndForgetWhatTheyShowed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	a := approvalOf(h)
	admin := f.conn(t, f.db.AdminDSN)
	stored := func() (preview []byte) {
		must(t, admin.QueryRow(t.Context(), `select preview from approvals where id = $1`, a.ID).Scan(&preview))
		return preview
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.OpenApproval(t.Context(), a, wide) })
	if p := stored(); len(p) == 0 || bytes.Contains(p, []byte("Nightfall")) {
		t.Errorf("stored as %q", p)
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		got, err := tx.Approval(t.Context(), a.ID)
		must(t, err)
		want := a
		want.State = tenants.ApprovalOpen
		if string(got.Preview) != string(a.Preview) || got.Arguments != a.Arguments || got.State != want.State || !got.ExpiresAt.Equal(a.ExpiresAt) {
			t.Errorf("%+v, want %+v", got, want)
		}
		list, err := tx.OpenApprovals(t.Context(), h.owner, a.CreatedAt, 10)
		if must(t, err); len(list) != 1 || string(list[0].Preview) != string(a.Preview) {
			t.Errorf("list %+v", list)
		}
		other, err := tx.OpenApprovals(t.Context(), tenants.NewID(), a.CreatedAt, 10)
		if must(t, err); len(other) != 0 {
			t.Errorf("another member's: %+v", other)
		}
		return tx.DecideApproval(t.Context(), a.ID, h.owner, true, a.CreatedAt)
	})
	if p := stored(); p != nil {
		t.Errorf("after the answer: %q", p)
	}
}

func TestAnApprovalIsAnsweredAndUsedOnceAndInTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	ctx := t.Context()
	at := time.Now()
	for name, c := range map[string]struct {
		run  func(tx tenants.Tx, id tenants.ID) error
		want error
	}{
		"use before an answer": {func(tx tenants.Tx, id tenants.ID) error { return tx.UseApproval(ctx, id, at) }, tenants.ErrNotFound},
		"answer after the end": {func(tx tenants.Tx, id tenants.ID) error {
			return tx.DecideApproval(ctx, id, h.owner, true, at.Add(time.Hour))
		}, tenants.ErrNotFound},
		"answer yes": {func(tx tenants.Tx, id tenants.ID) error { return tx.DecideApproval(ctx, id, h.owner, true, at) }, nil},
		"answer, then use": {func(tx tenants.Tx, id tenants.ID) error {
			return errors.Join(tx.DecideApproval(ctx, id, h.owner, true, at), tx.UseApproval(ctx, id, at))
		}, nil},
		"answer no, then use": {func(tx tenants.Tx, id tenants.ID) error {
			return errors.Join(tx.DecideApproval(ctx, id, h.owner, false, at), tx.UseApproval(ctx, id, at))
		}, tenants.ErrNotFound},
		"use after the end": {func(tx tenants.Tx, id tenants.ID) error {
			return errors.Join(tx.DecideApproval(ctx, id, h.owner, true, at), tx.UseApproval(ctx, id, at.Add(time.Hour)))
		}, tenants.ErrNotFound},
		"answer twice": {func(tx tenants.Tx, id tenants.ID) error {
			return errors.Join(tx.DecideApproval(ctx, id, h.owner, false, at), tx.DecideApproval(ctx, id, h.owner, true, at))
		}, tenants.ErrNotFound},
		"use twice": {func(tx tenants.Tx, id tenants.ID) error {
			return errors.Join(tx.DecideApproval(ctx, id, h.owner, true, at), tx.UseApproval(ctx, id, at), tx.UseApproval(ctx, id, at))
		}, tenants.ErrNotFound},
		"one that does not exist": {func(tx tenants.Tx, _ tenants.ID) error {
			return tx.DecideApproval(ctx, tenants.NewID(), h.owner, true, at)
		}, tenants.ErrNotFound},
	} {
		a := approvalOf(h)
		f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.OpenApproval(ctx, a, wide) })
		if err := f.In(ctx, h.tenant, func(tx tenants.Tx) error { return c.run(tx, a.ID) }); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestOneOfManyUsesAnApproval(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	a := approvalOf(h)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		return errors.Join(tx.OpenApproval(t.Context(), a, wide), tx.DecideApproval(t.Context(), a.ID, h.owner, true, time.Now()))
	})
	spend := tenants.NewID()
	var used, spent atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if f.In(t.Context(), h.tenant, func(tx tenants.Tx) error { return tx.UseApproval(t.Context(), a.ID, time.Now()) }) == nil {
				used.Add(1)
			}
			_ = f.In(t.Context(), h.tenant, func(tx tenants.Tx) error {
				first, err := tx.SpendConfirmation(t.Context(), spend, time.Now().Add(time.Minute))
				if err == nil && first {
					spent.Add(1)
				}
				return err
			})
		})
	}
	all.Wait()
	if used.Load() != 1 || spent.Load() != 1 {
		t.Errorf("used %d times, spent %d times; want once each", used.Load(), spent.Load())
	}
}

func TestOpenApprovalsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	open := func(b tenants.ApprovalBounds, at time.Time) error {
		a := approvalOf(h)
		a.CreatedAt = at
		return f.In(t.Context(), h.tenant, func(tx tenants.Tx) error { return tx.OpenApproval(t.Context(), a, b) })
	}
	now := time.Now()
	must(t, open(tenants.ApprovalBounds{PerAgent: 2, InAll: 9}, now))
	must(t, open(tenants.ApprovalBounds{PerAgent: 2, InAll: 9}, now))
	for _, b := range []tenants.ApprovalBounds{{PerAgent: 2, InAll: 9}, {PerAgent: 9, InAll: 2}} {
		if err := open(b, now); !errors.Is(err, tenants.ErrTooMany) {
			t.Errorf("%+v: %v", b, err)
		}
	}
	must(t, open(tenants.ApprovalBounds{PerAgent: 2, InAll: 9}, now.Add(time.Hour))) // the others have expired
}

func TestExpiredApprovalsForgetWhatTheyShowed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	old, now := approvalOf(h), approvalOf(h)
	old.CreatedAt, old.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		return errors.Join(tx.OpenApproval(t.Context(), old, wide), tx.OpenApproval(t.Context(), now, wide))
	})
	must(t, f.Maintain(t.Context(), time.Now(), 30))
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		a, err := tx.Approval(t.Context(), old.ID)
		if must(t, err); a.Preview != nil || a.State != tenants.ApprovalDenied {
			t.Errorf("expired: %+v", a)
		}
		a, err = tx.Approval(t.Context(), now.ID)
		if must(t, err); a.Preview == nil || a.State != tenants.ApprovalOpen {
			t.Errorf("waiting: %+v", a)
		}
		return nil
	})
}
