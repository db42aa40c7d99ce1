package mcpserver

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/tenants"
)

func someTicket() ticket {
	return ticket{
		id: tenants.NewID(), tenant: tenantA, member: member, agent: agent, era: "2025-06-18", form: true,
		expires: time.Now().Add(sessionLife).Truncate(time.Second),
	}
}

func TestATicketIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	k := newTicketKeys(&memoryKeys{}, time.Now)
	for _, era := range legacyEras {
		for flags := range 4 {
			want := someTicket()
			want.era, want.form, want.url = era, flags&1 != 0, flags&2 != 0
			id, err := k.seal(t.Context(), want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := k.open(t.Context(), id)
			if err != nil || got != want {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
			if len(id) > 256 {
				t.Errorf("an id has %d characters", len(id))
			}
			for _, c := range id { // what the protocol allows in a session id
				if c < 0x21 || c > 0x7e {
					t.Errorf("%q in an id", c)
				}
			}
		}
	}
}

func TestEveryByteOfATicketIsProtected(t *testing.T) {
	t.Parallel()
	k := newTicketKeys(&memoryKeys{}, time.Now)
	id, err := k.seal(t.Context(), someTicket())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		changed := append([]byte{}, raw...)
		changed[i] ^= 0x01
		if got, err := k.open(t.Context(), base64.RawURLEncoding.EncodeToString(changed)); !errors.Is(err, errNoSession) {
			t.Errorf("byte %d: %+v, %v", i, got, err)
		}
	}
}

func TestEraCodesNeverChange(t *testing.T) {
	t.Parallel()
	// Ids of the version before an update are out there.
	for era, code := range map[string]byte{"2024-11-05": 1, "2025-03-26": 2, "2025-06-18": 3, "2025-11-25": 4} {
		x := someTicket()
		x.era = era
		if got := x.body([keyIDLen]byte{})[ticketBody-10]; got != code {
			t.Errorf("%s is written as %d, want %d", era, got, code)
		}
	}
}

func FuzzOpenRefusesWhatWasNotSealed(f *testing.F) {
	k := newTicketKeys(&memoryKeys{}, time.Now)
	id, err := k.seal(context.Background(), someTicket())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(id)
	f.Add(id[:20])
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := k.open(t.Context(), s); err == nil && s != id {
			t.Errorf("%q was opened: %+v", s, got)
		}
	})
}

func TestKeysRotateAndOldSessionsGoOn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	store := &memoryKeys{}
	clock := func() time.Time { return now }
	one, two := newTicketKeys(store, clock), newTicketKeys(store, clock)
	count := func() int { keys, _ := store.SigningKeys(t.Context()); return len(keys) }
	if err := one.rotate(t.Context()); err != nil || count() != 0 {
		t.Fatalf("%v, %d keys before the first session", err, count())
	}
	seal := func(k *ticketKeys) string {
		t.Helper()
		id, err := k.seal(t.Context(), someTicket())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	opens := func(k *ticketKeys, id string) bool { _, err := k.open(t.Context(), id); return err == nil }
	first := seal(one)
	if !opens(two, first) {
		t.Error("another node does not know the first key")
	}
	now = now.Add(rotateTickets)
	if err := one.rotate(t.Context()); err != nil || count() != 2 {
		t.Fatalf("%v, %d keys", err, count())
	}
	old := seal(one) // the new key is not in force yet
	now = now.Add(rotateLead)
	fresh := seal(one)
	if kidOf(t, old) != kidOf(t, first) || kidOf(t, fresh) == kidOf(t, first) {
		t.Error("the new key signs too early or not at all")
	}
	for name, id := range map[string]string{"old": old, "new": fresh} {
		if !opens(two, id) {
			t.Errorf("another node refuses the %s id", name)
		}
	}
	now = now.Add(sessionLife)
	if opens(two, old) || !opens(two, fresh) {
		t.Error("the old key has not expired, or the new one has")
	}
	now = now.Add(time.Second)
	if err := two.rotate(t.Context()); err != nil || count() != 1 {
		t.Errorf("%v, %d keys, want the expired one gone", err, count())
	}
}

func kidOf(t *testing.T, id string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw[1 : 1+keyIDLen])
}

// awayKeys is a store that cannot be reached, and counts who tries.
type awayKeys struct {
	memoryKeys
	asked int
}

var errAway = errors.New("away")

func (a *awayKeys) SigningKeys(context.Context) ([]tenants.SigningKey, error) {
	a.asked++
	return nil, errAway
}

func TestAStoreThatIsAwayIsNoReasonToEndSessions(t *testing.T) {
	t.Parallel()
	now := time.Now()
	store := &awayKeys{}
	k := newTicketKeys(store, func() time.Time { return now })
	id, err := newTicketKeys(&memoryKeys{}, time.Now).seal(t.Context(), someTicket())
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := k.open(t.Context(), id); !errors.Is(err, errAway) {
			t.Fatalf("%v", err)
		}
	}
	if store.asked != 1 {
		t.Errorf("the store was asked %d times in one moment", store.asked)
	}
	now = now.Add(reloadEvery)
	if _, err := k.open(t.Context(), id); !errors.Is(err, errAway) || store.asked != 2 {
		t.Errorf("%v, asked %d times", err, store.asked)
	}
	if _, err := k.seal(t.Context(), someTicket()); !errors.Is(err, errAway) {
		t.Errorf("%v", err)
	}
}

func TestEndedSessionsAreBoundedAndNeverComeBack(t *testing.T) {
	t.Parallel()
	s := newEndedSet()
	start := time.Now().Add(-time.Hour)
	birth := func(i int) ticket {
		x := someTicket()
		x.id = uuidAt(start.Add(time.Duration(i) * time.Second))
		return x
	}
	var all []ticket
	for i := range 1000 {
		x := birth(i)
		all = append(all, x)
		s.add(Ended{x.tenant, x.agent, x.id, x.expires})
		if n := len(s.agents[x.owner()].sessions); n > endedPerAgent {
			t.Fatalf("%d entries", n)
		}
	}
	for i := range all {
		if !s.has(&all[i]) {
			t.Fatalf("session %d came back", i)
		}
	}
	alive := birth(1001)
	other := birth(5)
	other.agent = agent2
	if s.has(&alive) || s.has(&other) {
		t.Error("a session that did not end is taken for ended")
	}
	s.sweep(all[0].expires.Add(-time.Minute))
	if !s.has(&all[0]) {
		t.Error("swept too soon")
	}
	if s.sweep(all[999].expires.Add(time.Minute)); len(s.agents) != 0 {
		t.Error("entries are kept for ever")
	}
}

// uuidAt is a UUIDv7 of a moment.
func uuidAt(at time.Time) uuid.UUID {
	id := tenants.NewID()
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id
}

func TestAListOfEndedSessionsIsReadInPages(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := NewMemoryEnded(func() time.Time { return now })
	var want []uuid.UUID
	add := func() {
		e := Ended{Tenant: tenantA, Agent: agent, Session: tenants.NewID(), Expires: now.Add(sessionLife)}
		want = append(want, e.Session)
		if err := m.End(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		add()
	}
	cursor := ""
	read := func() (got []uuid.UUID) {
		t.Helper()
		for {
			page, next, err := m.After(t.Context(), cursor, 2)
			if err != nil {
				t.Fatal(err)
			}
			cursor = next
			for _, e := range page {
				got = append(got, e.Session)
			}
			if len(page) < 2 {
				return got
			}
		}
	}
	same := func(got, want []uuid.UUID) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%d entries, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("entry %d differs", i)
			}
		}
	}
	same(read(), want)
	same(read(), nil)
	now = now.Add(sessionLife + time.Second)
	want = nil
	add() // drops the expired
	same(read(), want)
	cursor = ""
	same(read(), want)
}
