package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"siyuan-broker/tenants"
)

func ended(h home, expires time.Time) tenants.EndedSession {
	return tenants.EndedSession{TenantID: h.tenant, AgentID: h.agent, SessionID: tenants.NewID(), ExpiresAt: expires}
}

func TestEndedSessionsAreReadInTheOrderOfTheirEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	a, b := f.newHome(t, "a@example.org", home{}), f.newHome(t, "b@example.org", home{})
	until := time.Now().UTC().Add(time.Hour).Truncate(time.Microsecond)
	want := []tenants.EndedSession{ended(a, until), ended(b, until), ended(a, until)}
	want[1].SessionID = want[0].SessionID // of another tenant: another session
	for _, e := range want {
		must(t, f.EndSession(ctx, e))
	}
	must(t, f.EndSession(ctx, want[0])) // again: nothing new
	all, err := f.EndedSessions(ctx, 0, 0)
	must(t, err)
	var last int64
	for i := range all {
		if all[i].Seq <= last {
			t.Errorf("%d after %d", all[i].Seq, last)
		}
		last = all[i].Seq
	}
	two, err := f.EndedSessions(ctx, all[0].Seq, 2)
	must(t, err)
	if d := cmp.Diff(all[1:], two); d != "" {
		t.Errorf("after the first (-want +got)\n%s", d)
	}
	for i := range all {
		all[i].Seq = 0
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	wantErr(t, f.EndSession(ctx, tenants.EndedSession{TenantID: tenants.NewID(), AgentID: a.agent, SessionID: tenants.NewID(), ExpiresAt: until}), tenants.ErrNotFound)
}

func TestAReaderOfEndedSessionsMissesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	homes := []home{f.newHome(t, "a@example.org", home{}), f.newHome(t, "b@example.org", home{}), f.newHome(t, "c@example.org", home{})}
	const each = 20
	var writers sync.WaitGroup
	for _, h := range homes {
		writers.Go(func() {
			for range each {
				if err := f.EndSession(t.Context(), ended(h, time.Now().Add(time.Hour))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	seen, last := 0, int64(0)
	for finished := false; ; {
		page, err := f.EndedSessions(t.Context(), last, 4)
		must(t, err)
		for _, e := range page {
			last = e.Seq
			seen++
		}
		if finished && len(page) == 0 {
			break
		}
		select {
		case <-done:
			finished = true
		default:
		}
	}
	if want := each * len(homes); seen != want {
		t.Errorf("a reader who polled all the time saw %d of %d", seen, want)
	}
}

func TestEndedSessionsWhoseIDsExpiredAreForgotten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	old, current := ended(h, time.Now().Add(-time.Minute)), ended(h, time.Now().Add(time.Hour))
	must(t, f.EndSession(ctx, old))
	must(t, f.EndSession(ctx, current))
	all, err := f.EndedSessions(ctx, 0, 0)
	must(t, err)
	if len(all) != 1 || all[0].SessionID != current.SessionID {
		t.Errorf("got %v", all)
	}
	must(t, f.Maintain(ctx, time.Now(), 1))
	if n := count(t, f.conn(t, f.db.AdminDSN), "ended_sessions"); n != 1 {
		t.Errorf("%d rows left, want 1", n)
	}
}
