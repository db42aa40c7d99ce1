package guard_test

import (
	"context"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
)

// A write whose answer never came may still lie in SiYuan's hands.
func TestAWriteCountsAsNotDoneOnlyWhenItCannotComeAnyMore(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		age  time.Duration
		time time.Duration // that the call has; 0: any
		want guard.Verdict
		wait time.Duration
	}{
		{"just sent", time.Second, 0, guard.NotDone, 9 * time.Second},
		{"just sent, a short call", time.Second, 5 * time.Second, guard.Pending, 0},
		{"long ago", time.Hour, 0, guard.NotDone, time.Second},
		{"sent by a clock that was ahead", -time.Hour, 0, guard.NotDone, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var waited time.Duration
			g := guard.New(h.Client.Reader(), h.Client.Writer(), guard.Options{Now: func() time.Time { return now },
				Sleep: func(_ context.Context, d time.Duration) error { waited += d; return nil }})
			defer func() { _ = g.Close() }()
			ctx := t.Context()
			if c.time > 0 {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, c.time)
				defer cancel()
			}
			st := guard.Step{Op: "block.append", At: now.Add(-c.age).UnixMilli(),
				Marks: []guard.Mark{{Look: guard.LookThere, ID: guardtest.Missing, Before: "no", After: "yes"}}}
			got, err := g.Decide(ctx, st)
			if err != nil || got != c.want || waited != c.wait {
				t.Errorf("verdict %d, %v after %s, want %d after %s", got, err, waited, c.want, c.wait)
			}
		})
	}
}

// What comes while it is waited for is seen.
func TestAWriteThatComesLateIsSeen(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	const late = "20240102110099-latedoc"
	g := guard.New(h.Client.Reader(), h.Client.Writer(), guard.Options{Sleep: func(context.Context, time.Duration) error {
		h.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + late + ".sy", Title: "Late"})
		return nil
	}})
	defer func() { _ = g.Close() }()
	st := guard.Step{Op: "document.create", Marks: []guard.Mark{{Look: guard.LookThere, ID: late, Before: "no", After: "yes"}}}
	if got, err := g.Decide(t.Context(), st); err != nil || got != guard.Done {
		t.Errorf("verdict %d, %v", got, err)
	}
}
