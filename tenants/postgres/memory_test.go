package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"siyuan-broker/tenants"
)

func remembered(h home, version int64, text string) tenants.Memory {
	return tenants.Memory{InstanceID: h.instance, MemberID: h.owner, Version: version, Text: text, AgentID: h.agent, RequestID: tenants.NewID(), WrittenAt: time.Now()}
}

func TestAgentsMemoryIsVersionedAndBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	ctx := t.Context()
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		if m, err := tx.MemoryOf(ctx, h.instance, h.owner); err != nil || m.Version != 0 || m.Text != "" {
			t.Errorf("before anything was written: %+v %v", m, err)
		}
		return nil
	})
	for i := range int64(tenants.MemoryVersions + 5) {
		f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.Remember(ctx, remembered(h, i+1, fmt.Sprintf("text %d", i+1))) })
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		all, err := tx.Memories(ctx, h.instance, h.owner)
		must(t, err)
		if len(all) != tenants.MemoryVersions || all[0].Version != tenants.MemoryVersions+5 || all[0].Text != "text 25" || all[len(all)-1].Version != 6 {
			t.Errorf("%d versions from %d to %d", len(all), all[0].Version, all[len(all)-1].Version)
		}
		if again, err := tx.MemoryWritten(ctx, h.instance, h.owner, all[3].RequestID); err != nil || !again {
			t.Errorf("a request that wrote is not known: %v", err)
		}
		if again, err := tx.MemoryWritten(ctx, h.instance, h.owner, tenants.NewID()); err != nil || again {
			t.Errorf("a new request is known: %v", err)
		}
		return nil
	})
	for want, m := range map[error]tenants.Memory{
		tenants.ErrConflict: remembered(h, 25, "somebody else's"),
		tenants.ErrInvalid:  remembered(h, 26, strings.Repeat("字", tenants.MaxMemory+1)),
	} {
		if err := f.In(ctx, h.tenant, func(tx tenants.Tx) error { return tx.Remember(ctx, m) }); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.Remember(ctx, remembered(h, 26, strings.Repeat("字", tenants.MaxMemory))))
		must(t, tx.Forget(ctx, h.instance, h.owner))
		m, err := tx.MemoryOf(ctx, h.instance, h.owner)
		if m.Version != 0 || m.Text != "" {
			t.Errorf("after forgetting: %+v", m)
		}
		return err
	})
}

func TestRulesAreThePersonsOwnAndThoseForAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	ctx := t.Context()
	want := func(all, own string) {
		t.Helper()
		f.in(t, h.tenant, func(tx tenants.Tx) error {
			r, err := tx.RulesFor(ctx, h.instance, h.owner)
			if r != (tenants.Rules{All: all, Own: own}) {
				t.Errorf("rules %+v, want %q and %q", r, all, own)
			}
			return err
		})
	}
	want("", "")
	set := func(member tenants.ID, text string) {
		t.Helper()
		f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.SetRules(ctx, h.instance, member, text) })
	}
	set(h.owner, "answer in Dutch")
	set(tenants.ID{}, "never touch the diary")
	want("never touch the diary", "answer in Dutch")
	set(h.owner, "回答要简短")
	set(tenants.ID{}, "")
	want("", "回答要简短")
	if err := f.In(ctx, h.tenant, func(tx tenants.Tx) error { return tx.SetRules(ctx, tenants.NewID(), h.owner, "x") }); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("of a workspace that does not exist: %v", err)
	}
}

func TestAMembersMemoryAndRulesGoWithTheMember(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	f.fill(t, h)
	ctx := t.Context()
	other, err := f.CreateUser(ctx, tenants.User{Email: "b@example.org", Name: "B"})
	must(t, err)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.AddMember(ctx, other.ID, tenants.Member))
		m := remembered(h, 1, "x")
		m.MemberID = other.ID
		must(t, tx.Remember(ctx, m))
		must(t, tx.SetRules(ctx, h.instance, other.ID, "y"))
		must(t, tx.RemoveMember(ctx, other.ID))
		left, err := tx.Memories(ctx, h.instance, other.ID)
		must(t, err)
		rules, err := tx.RulesFor(ctx, h.instance, other.ID)
		if len(left) != 0 || rules.Own != "" {
			t.Errorf("%d versions and rules %q are left", len(left), rules.Own)
		}
		return err
	})
}
