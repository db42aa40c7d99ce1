package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"siyuan-broker/tenants"
)

func feedbackOf(h home, text string) tenants.Feedback {
	return tenants.Feedback{ID: tenants.NewID(), InstanceID: h.instance, MemberID: h.owner, AgentID: h.agent, RequestID: tenants.NewID(), Description: text, Source: "mcp", WrittenAt: time.Now()}
}

func TestFeedbackIsKeptOnceForEachRequestAndListedByAge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	ctx := t.Context()
	first := feedbackOf(h, "第一")
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must2(t)(tx.AddFeedback(ctx, first, time.Now().Add(-time.Hour)))
		again := feedbackOf(h, "other words")
		again.RequestID = first.RequestID
		got, err := tx.AddFeedback(ctx, again, time.Now().Add(-time.Hour))
		if got.ID != first.ID || got.Description != "第一" {
			t.Errorf("the same request gave %+v", got)
		}
		must(t, err)
		later := feedbackOf(h, "second")
		later.WrittenAt = first.WrittenAt.Add(time.Second)
		must2(t)(tx.AddFeedback(ctx, later, time.Now().Add(-time.Hour)))
		all, err := tx.Feedback(ctx, 10)
		if len(all) != 2 || all[0].ID != later.ID || all[1].Source != "mcp" || all[1].AgentID != h.agent {
			t.Errorf("%+v", all)
		}
		must(t, err)
		must(t, tx.DeleteFeedback(ctx, later.ID))
		wantErr(t, tx.DeleteFeedback(ctx, later.ID), tenants.ErrNotFound)
		return nil
	})
	long := feedbackOf(h, strings.Repeat("字", 4001))
	if err := f.In(ctx, h.tenant, func(tx tenants.Tx) error { _, err := tx.AddFeedback(ctx, long, time.Now()); return err }); !errors.Is(err, tenants.ErrInvalid) {
		t.Errorf("too long: %v", err)
	}
}

func TestFeedbackHasARateAndABound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	ctx, now := t.Context(), time.Now()
	add := func(at, since time.Time, text string) error {
		v := feedbackOf(h, text)
		v.WrittenAt = at
		return f.In(ctx, h.tenant, func(tx tenants.Tx) error { _, err := tx.AddFeedback(ctx, v, since); return err })
	}
	for i := range tenants.FeedbackPerHour {
		must(t, add(now.Add(time.Duration(i)*time.Second), now.Add(-time.Minute), "x"))
	}
	if err := add(now, now.Add(-time.Minute), "one more"); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("above the rate: %v", err)
	}
	must(t, f.In(ctx, h.tenant, func(tx tenants.Tx) error { // fill up to the bound, each time as an hour later
		for i := range tenants.MaxFeedback {
			v := feedbackOf(h, fmt.Sprint(i))
			v.WrittenAt = now.Add(time.Duration(i+1) * time.Hour)
			must2(t)(tx.AddFeedback(ctx, v, v.WrittenAt.Add(-time.Hour)))
		}
		all, err := tx.Feedback(ctx, 2*tenants.MaxFeedback)
		if len(all) != tenants.MaxFeedback || all[0].Description != "499" || all[len(all)-1].Description != "0" {
			t.Errorf("%d kept, from %q to %q", len(all), all[0].Description, all[len(all)-1].Description)
		}
		return err
	}))
}
