package consent_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/consent"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// office is two nodes with a desk each, on one database and with one clock.
type office struct {
	store *postgres.Store
	one   *consent.Desk
	two   *consent.Desk
	clock atomic.Int64 // unix milliseconds

	tenant, instance tenants.ID
	owner, bo, cy    tenants.ID // cy and bo are plain members
}

func (o *office) now() time.Time { return time.UnixMilli(o.clock.Load()) }

func (o *office) pass(d time.Duration) { o.clock.Add(d.Milliseconds()) }

func newOffice(t *testing.T) *office {
	t.Helper()
	db := pgtest.New(t)
	store, err := postgres.Open(t.Context(), postgres.Options{ServiceDSN: db.ServiceDSN, RecorderDSN: db.RecorderDSN, ListenDSN: db.ListenDSN,
		MasterKey: make([]byte, 32), MaxConns: 4})
	must(t, err)
	t.Cleanup(store.Close)
	o := &office{store: store}
	o.clock.Store(time.Now().UnixMilli())
	both := cluster.NewMemory(o.now)
	desk := func(id string) *consent.Desk {
		n := both.Node(id, "")
		n.Start(t.Context())
		d := consent.New(consent.Config{Store: store, Box: store, Bus: n, Now: o.now})
		d.Start()
		t.Cleanup(func() {
			d.Stop()
			n.Stop()
		})
		return d
	}
	o.one, o.two = desk("one"), desk("two")
	person := func(email string) tenants.ID {
		u, err := store.CreateUser(t.Context(), tenants.User{Email: email, Name: email})
		must(t, err)
		return u.ID
	}
	o.owner, o.bo, o.cy = person("ann@example.org"), person("bo@example.org"), person("cy@example.org")
	tenant, err := store.CreateTenant(t.Context(), "Family", o.owner)
	must(t, err)
	o.tenant = tenant.ID
	o.in(t, func(tx tenants.Tx) error {
		in, err := tx.CreateInstance(t.Context(), tenants.Instance{Name: "home", DefaultLevel: contract.ReadWriteDelete, Enabled: true})
		o.instance = in.ID
		return errors.Join(err, tx.AddMember(t.Context(), o.bo, tenants.Member), tx.AddMember(t.Context(), o.cy, tenants.Member))
	})
	return o
}

func (o *office) in(t *testing.T, fn func(tx tenants.Tx) error) {
	t.Helper()
	must(t, o.store.In(t.Context(), o.tenant, fn))
}

// question is one of a new agent of a member.
func (o *office) question(t *testing.T, member tenants.ID) consent.Question {
	t.Helper()
	q := consent.Question{
		Tenant: o.tenant, Member: member, Instance: o.instance, Tool: "document", Action: "remove", RequestID: tenants.NewID(),
		Arguments: digest(t, `{"id":"a","deep":[1,2]}`),
	}
	o.in(t, func(tx tenants.Tx) error {
		agent, err := tx.CreateAgent(t.Context(), tenants.Agent{MemberID: member, InstanceID: o.instance, Name: "Claude", Origin: tenants.FromToken,
			Ceiling: contract.ReadWriteDelete})
		q.Agent = agent.ID
		if err != nil {
			return err
		}
		now, err := tx.Tenant(t.Context())
		q.RulesVersion = now.RulesVersion
		return err
	})
	return q
}

func (o *office) ask(t *testing.T, q consent.Question) tenants.Approval {
	t.Helper()
	a, err := o.one.Ask(t.Context(), q, contract.Preview{Counts: contract.PreviewCounts{Documents: 1}}, 10*time.Minute)
	must(t, err)
	return a
}

func (o *office) claim(t *testing.T, q consent.Question) consent.Standing {
	t.Helper()
	st, _, err := o.two.Claim(t.Context(), q)
	must(t, err)
	return st
}

func digest(t *testing.T, args string) [sha256.Size]byte {
	t.Helper()
	d, err := consent.Digest(json.RawMessage(args))
	must(t, err)
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheDigestIsOfWhatArgumentsSay(t *testing.T) {
	t.Parallel()
	base := digest(t, `{"id":"a","n":1,"deep":{"x":1,"y":[1,2]}}`)
	for args, same := range map[string]bool{
		` {"deep": {"y":[1,2], "x":1}, "n":1, "id":"\u0061"} `: true,
		`{"id":"a","n":1,"deep":{"x":1,"y":[2,1]}}`:            false,
		`{"id":"a","n":"1","deep":{"x":1,"y":[1,2]}}`:          false,
		`{"id":"a","n":1}`: false,
	} {
		if (digest(t, args) == base) != same {
			t.Errorf("%s: same is %v", args, !same)
		}
	}
	if digest(t, `{"n":9007199254740993}`) == digest(t, `{"n":9007199254740992}`) {
		t.Error("two large numbers are one")
	}
	if _, err := consent.Digest(json.RawMessage(`{"id":`)); err == nil {
		t.Error("half an object has a digest")
	}
}

// others are questions that differ from q in one respect, with what is wrong when
// they come with q's confirmation.
func others(q consent.Question) map[string]struct {
	q    consent.Question
	want error
} {
	all := map[string]struct {
		q    consent.Question
		want error
	}{}
	but := func(name string, want error, change func(q *consent.Question)) {
		other := q
		change(&other)
		all[name] = struct {
			q    consent.Question
			want error
		}{other, want}
	}
	but("another tenant", consent.ErrCaller, func(q *consent.Question) { q.Tenant = tenants.NewID() })
	but("another member", consent.ErrCaller, func(q *consent.Question) { q.Member = tenants.NewID() })
	but("another agent", consent.ErrCaller, func(q *consent.Question) { q.Agent = tenants.NewID() })
	but("another instance", consent.ErrCaller, func(q *consent.Question) { q.Instance = tenants.NewID() })
	but("another tool", consent.ErrAction, func(q *consent.Question) { q.Tool = "block" })
	but("another action", consent.ErrAction, func(q *consent.Question) { q.Action = "move" })
	but("other arguments", consent.ErrArguments, func(q *consent.Question) { q.Arguments[31] ^= 1 })
	but("newer rules", consent.ErrRules, func(q *consent.Question) { q.RulesVersion++ })
	but("older rules", consent.ErrRules, func(q *consent.Question) { q.RulesVersion-- })
	return all
}

func TestASealedStateIsGoodForOneCallOnly(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	q := o.question(t, o.owner)
	for _, kind := range []consent.Kind{consent.Form, consent.Preview} {
		sealed, err := o.one.Seal(kind, q)
		must(t, err)
		for name, c := range others(q) {
			if _, err := o.two.Open(kind, sealed, c.q); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v, want %v", kind, name, err, c.want)
			}
		}
		other := consent.Form
		if kind == consent.Form {
			other = consent.Preview
		}
		half := []byte(sealed)
		half[len(half)/2] ^= 1
		for name, c := range map[string]struct {
			kind   consent.Kind
			sealed string
		}{
			"of the other kind": {other, sealed}, "empty": {kind, ""}, "no base64": {kind, "%%%"}, "cut": {kind, sealed[:len(sealed)-2]},
			"changed": {kind, string(half)}, "not sealed": {kind, "e30"},
		} {
			if _, err := o.two.Open(c.kind, c.sealed, q); !errors.Is(err, consent.ErrForged) {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
		}

		// A new request id is no difference: the call goes on under the one that was asked about.
		again := q
		again.RequestID = tenants.NewID()
		o.pass(consent.StateLife - time.Millisecond)
		c, err := o.two.Open(kind, sealed, again)
		if must(t, err); c.RequestID != q.RequestID {
			t.Errorf("%s: goes on as %s, want %s", kind, c.RequestID, q.RequestID)
		}
		must(t, o.two.Spend(t.Context(), again, c))
		for node, d := range map[string]*consent.Desk{"one": o.one, "two": o.two} {
			if err := d.Spend(t.Context(), q, c); !errors.Is(err, consent.ErrUsed) {
				t.Errorf("%s: used again on node %s: %v", kind, node, err)
			}
		}
		o.pass(time.Millisecond)
		if _, err := o.two.Open(kind, sealed, q); !errors.Is(err, consent.ErrExpired) {
			t.Errorf("%s: after its life: %v", kind, err)
		}
	}
}

func TestAnApprovalIsForOneCallOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	q := o.question(t, o.owner)
	if got := o.claim(t, q); got != consent.Unasked {
		t.Fatalf("before the question: %s", got)
	}
	a := o.ask(t, q)
	if got := o.claim(t, q); got != consent.Waiting {
		t.Errorf("before the answer: %s", got)
	}
	must(t, o.one.Decide(t.Context(), o.tenant, a.ID, o.owner, true))
	for name, c := range others(q) {
		want := consent.Other
		switch {
		case c.q.Tenant != q.Tenant, c.q.Agent != q.Agent:
			want = consent.Unasked // they do not even learn of the question
		case errors.Is(c.want, consent.ErrRules):
			want = consent.Stale
		}
		if got := o.claim(t, c.q); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, want := range []consent.Standing{consent.Granted, consent.Used, consent.Used} {
		if got := o.claim(t, q); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if err := o.two.Decide(t.Context(), o.tenant, a.ID, o.owner, false); !errors.Is(err, consent.ErrGone) {
		t.Errorf("answered after its use: %v", err)
	}
}

func TestAnApprovalLapses(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	unanswered, late := o.question(t, o.owner), o.question(t, o.owner)
	a, b := o.ask(t, unanswered), o.ask(t, late)
	must(t, o.one.Decide(t.Context(), o.tenant, b.ID, o.owner, true))
	o.pass(10*time.Minute - time.Second)
	if got := o.claim(t, unanswered); got != consent.Waiting {
		t.Errorf("a second before the end: %s", got)
	}
	o.pass(time.Second)
	for name, q := range map[string]consent.Question{"nobody answered": unanswered, "used too late": late} {
		if got := o.claim(t, q); got != consent.Lapsed {
			t.Errorf("%s: %s", name, got)
		}
	}
	if err := o.one.Decide(t.Context(), o.tenant, a.ID, o.owner, true); !errors.Is(err, consent.ErrGone) {
		t.Errorf("answered too late: %v", err)
	}
	if _, err := o.one.One(t.Context(), o.tenant, a.ID, o.owner); !errors.Is(err, consent.ErrGone) {
		t.Errorf("looked at too late: %v", err)
	}
	if all, err := o.one.Pending(t.Context(), o.tenant, o.owner); err != nil || len(all) != 0 {
		t.Errorf("still listed: %+v, %v", all, err)
	}
}

// The owner answers for every agent, a member for their own agents, and what is
// others' does not exist for a member.
func TestAMemberAnswersOnlyForTheirOwnAgents(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	stranger, err := o.store.CreateUser(t.Context(), tenants.User{Email: "eve@example.org", Name: "Eve"})
	must(t, err)
	for name, c := range map[string]struct {
		member, person tenants.ID
		action         string
		may            bool
	}{
		"a member, of their own":                   {o.bo, o.bo, "document.remove", true},
		"a member, of another member's":            {o.cy, o.bo, "document.remove", false},
		"a member, of the owner's":                 {o.owner, o.bo, "document.remove", false},
		"the owner, of a member's":                 {o.bo, o.owner, "document.remove", true},
		"a stranger":                               {o.bo, stranger.ID, "document.remove", false},
		"a member, of what is gone from the tools": {o.bo, o.bo, "document.burn", false},
	} {
		q := o.question(t, c.member)
		if c.action == "document.burn" {
			q.Action = "burn"
		}
		a := o.ask(t, q)
		p, err := o.two.One(t.Context(), o.tenant, a.ID, c.person)
		if c.may != (err == nil) || err != nil && !errors.Is(err, consent.ErrGone) || c.may && p.Shown.Counts.Documents != 1 {
			t.Errorf("%s sees %+v, %v", name, p, err)
		}
		all, err := o.two.Pending(t.Context(), o.tenant, c.person)
		listed := false
		for _, p := range all {
			listed = listed || p.ID == a.ID
		}
		if listed != c.may || err != nil && !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("%s: listed %v, %v", name, listed, err)
		}
		for _, yes := range []bool{false, true} { // the second answer comes too late in any case
			err := o.two.Decide(t.Context(), o.tenant, a.ID, c.person, yes)
			if may := c.may && !yes; may != (err == nil) || err != nil && !errors.Is(err, consent.ErrGone) {
				t.Errorf("%s decides %v: %v", name, yes, err)
			}
		}
		want := consent.Waiting
		if c.may {
			want = consent.Declined
		}
		if got := o.claim(t, q); got != want {
			t.Errorf("%s: the call is %s, want %s", name, got, want)
		}
	}
}

func TestWhatWaitsOfAnAgentWithoutAccessCannotBeAnswered(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for name, take := range map[string]func(tx tenants.Tx, q consent.Question) error{
		"the agent is revoked": func(tx tenants.Tx, q consent.Question) error { return tx.RevokeAgent(t.Context(), q.Agent) },
		"its member is gone":   func(tx tenants.Tx, q consent.Question) error { return tx.RemoveMember(t.Context(), q.Member) },
	} {
		q := o.question(t, o.bo)
		a := o.ask(t, q)
		o.in(t, func(tx tenants.Tx) error { return take(tx, q) })
		if err := o.one.Decide(t.Context(), o.tenant, a.ID, o.owner, true); !errors.Is(err, consent.ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
		if all, err := o.one.Pending(t.Context(), o.tenant, o.owner); err != nil || len(all) != 0 {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
		o.in(t, func(tx tenants.Tx) error {
			if _, err := tx.Member(t.Context(), o.bo); errors.Is(err, tenants.ErrNotFound) {
				return tx.AddMember(t.Context(), o.bo, tenants.Member)
			}
			return nil
		})
	}
}

// What people decided counts from the moment they did: the node that is asked may
// not have heard of it yet, and holds on to an older view of the caller.
func TestAnAgreementIsHeldAgainstTheStoreWhenItIsUsed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for name, c := range map[string]struct {
		change   func(tx tenants.Tx, q consent.Question) error
		standing consent.Standing
		err      error
	}{
		"the agent is revoked": {func(tx tenants.Tx, q consent.Question) error { return tx.RevokeAgent(t.Context(), q.Agent) }, consent.Ended, consent.ErrEnded},
		"a rule is changed": {func(tx tenants.Tx, _ consent.Question) error {
			return tx.SetConsent(t.Context(), o.instance, tenants.Consent{Tool: "document", Action: "remove", Mode: tenants.ConsentConsole})
		}, consent.Stale, consent.ErrRules},
	} {
		q := o.question(t, o.bo)
		a := o.ask(t, q)
		must(t, o.one.Decide(t.Context(), o.tenant, a.ID, o.bo, true))
		sealed, err := o.one.Seal(consent.Form, q)
		must(t, err)
		o.in(t, func(tx tenants.Tx) error { return c.change(tx, q) })
		for range 2 { // nothing is used up by it
			if got := o.claim(t, q); got != c.standing {
				t.Errorf("%s: %s, want %s", name, got, c.standing)
			}
			confirmed, err := o.two.Open(consent.Form, sealed, q)
			must(t, err)
			if err := o.two.Spend(t.Context(), q, confirmed); !errors.Is(err, c.err) {
				t.Errorf("%s: %v, want %v", name, err, c.err)
			}
		}
	}
}

// A person who makes a call in an agent's place agrees to it themselves, and needs
// no access of the agent's.
func TestAPersonAgreesToTheirOwnCallOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	agree := func(q consent.Question) (consent.Standing, error) {
		return o.one.Agree(t.Context(), q, contract.Preview{}, 10*time.Minute)
	}
	carried := 0
	q := o.question(t, o.bo)
	q.By, q.Carry = o.owner, func(_ context.Context, _ tenants.Tx, a tenants.Approval) error {
		if a.DecidedBy != o.owner {
			t.Errorf("carried out for %s", a.DecidedBy)
		}
		carried++
		return nil
	}
	o.in(t, func(tx tenants.Tx) error { return tx.RevokeAgent(t.Context(), q.Agent) })
	for _, want := range []consent.Standing{consent.Granted, consent.Used, consent.Used} {
		if got, err := agree(q); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	if got := o.claim(t, q); got != consent.Used || carried != 1 {
		t.Errorf("%s, carried out %d times", got, carried)
	}
	other := q
	other.Arguments[0] ^= 1
	if got, err := agree(other); err != nil || got != consent.Other {
		t.Errorf("other arguments: %s, %v", got, err)
	}
	for name, person := range map[string]tenants.ID{"another member": o.cy, "a stranger": tenants.NewID()} {
		q := o.question(t, o.bo)
		if q.By = person; !errors.Is(agreeError(agree(q)), consent.ErrGone) {
			t.Errorf("%s may agree", name)
		}
		if got := o.claim(t, q); got != consent.Unasked {
			t.Errorf("%s: %s", name, got)
		}
	}
	// What could not be carried out was not agreed to.
	failed := o.question(t, o.bo)
	failed.By, failed.Carry = o.bo, func(context.Context, tenants.Tx, tenants.Approval) error { return errors.New("away") }
	if _, err := agree(failed); err == nil {
		t.Error("no error")
	}
	failed.Carry = nil
	if got, err := agree(failed); err != nil || got != consent.Granted {
		t.Errorf("after the failure: %s, %v", got, err)
	}
}

func agreeError(_ consent.Standing, err error) error { return err }
