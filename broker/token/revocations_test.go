package token

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"siyuan-broker/tenants"
)

func TestRevocationsArePolledEachSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := newFeed()
		r := NewRevocations(feed, RevocationsOptions{})
		r.Start(t.Context())
		defer r.Stop()
		feed.revoke(tenantA, tenants.RevokedConnector, "c1", time.Time{})
		time.Sleep(time.Second)
		synctest.Wait()
		if !r.Revoked(tenantA, tenants.RevokedConnector, "c1") {
			t.Error("not seen after a second")
		}
		if r.Revoked(tenantB, tenants.RevokedConnector, "c1") || r.Revoked(tenantA, tenants.RevokedAgent, "c1") {
			t.Error("seen under another tenant or kind")
		}
	})
}

func TestAPushIsFasterThanThePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := newFeed()
		r := NewRevocations(feed, RevocationsOptions{PollEvery: time.Hour})
		var events []tenants.Event
		r.OnEvent(func(e tenants.Event) { events = append(events, e) })
		var seen []string
		r.OnRevoked(func(v tenants.Revocation) {
			if !r.Revoked(v.TenantID, v.Kind, v.Subject) {
				t.Error("the hook ran before the entry counted")
			}
			seen = append(seen, v.Subject)
		})
		r.Start(t.Context())
		defer r.Stop()
		feed.revoke(tenantA, tenants.RevokedAgent, "a1", time.Time{})
		feed.revoke(tenantA, tenants.RevokedAgent, "a2", time.Time{})
		feed.pushes <- tenants.Event{Revocation: 2}
		synctest.Wait()
		if len(seen) != 2 || seen[0] != "a1" || seen[1] != "a2" {
			t.Errorf("hooks saw %v", seen)
		}
		feed.pushes <- tenants.Event{Policy: tenantA, Version: 3}
		synctest.Wait()
		if len(events) != 2 || events[1].Policy != tenantA {
			t.Errorf("events %v", events)
		}
		if len(seen) != 2 {
			t.Errorf("entries were reported twice: %v", seen)
		}
	})
}

func TestManyRevocationsAreReadInBatches(t *testing.T) {
	t.Parallel()
	feed := newFeed()
	for range 2*pollBatch + 1 {
		feed.revoke(tenantA, tenants.RevokedAgent, tenants.NewID().String(), time.Time{})
	}
	r := NewRevocations(feed, RevocationsOptions{})
	r.poll(t.Context())
	if len(r.set) != 2*pollBatch+1 {
		t.Errorf("%d entries, want %d", len(r.set), 2*pollBatch+1)
	}
}

func TestReadinessFollowsTheAgeOfTheLastPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := newFeed()
		feed.setFail(errors.New("away"))
		r := NewRevocations(feed, RevocationsOptions{StaleAfter: 5 * time.Second})
		r.Start(t.Context())
		defer r.Stop()
		if err := r.Ready(); !errors.Is(err, ErrNotReady) {
			t.Errorf("before the first poll succeeded: %v", err)
		}
		feed.setFail(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if err := r.Ready(); err != nil {
			t.Errorf("after a poll: %v", err)
		}
		feed.setFail(errors.New("away"))
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if err := r.Ready(); err == nil {
			t.Error("ready with revocations of six seconds ago")
		}
		if !r.loaded() {
			t.Error("known tokens stop being served")
		}
	})
}

func TestUselessRevocationsAreForgotten(t *testing.T) {
	t.Parallel()
	feed, clock := newFeed(), newClock()
	r := NewRevocations(feed, RevocationsOptions{Now: clock.now})
	feed.revoke(tenantA, tenants.RevokedToken, "j1", clock.now().Add(time.Minute))
	r.poll(t.Context())
	clock.advance(2 * time.Minute)
	r.poll(t.Context())
	if len(r.set) != 0 {
		t.Errorf("%d entries left", len(r.set))
	}
}

func TestStopMayComeTwiceAndWithoutStart(t *testing.T) {
	t.Parallel()
	r := NewRevocations(newFeed(), RevocationsOptions{})
	r.Stop()
	r.Start(t.Context())
	r.Stop()
	r.Stop()
}
