package postgres_test

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
)

func TestARecordedCallIsReadBackAsItWas(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	now := time.Now().UTC().Truncate(time.Microsecond)
	must(t, f.Maintain(ctx, now, 30))
	full := tenants.Call{TenantID: h.tenant, ID: tenants.NewID(), StartedAt: now, InstanceID: h.instance, MemberID: h.owner, AgentID: h.agent,
		ConnectorID: h.connector, Tool: "block", Action: "append", NotebookID: diary, RequestID: "r", Outcome: tenants.OutcomeError,
		ErrorType: "offline", ErrorCode: "siyuan_offline",
		Legs:    tenants.Legs{Total: 7 * time.Second, Admission: 1, Consent: 2 * time.Millisecond, Queue: 3 * time.Microsecond, Tunnel: 4 * time.Microsecond, Home: 5 * time.Microsecond, Kernel: 6 * time.Microsecond},
		BytesIn: 10, BytesOut: 20}
	bare := tenants.Call{TenantID: h.tenant, ID: tenants.NewID(), StartedAt: now.Add(-time.Minute), InstanceID: h.instance, MemberID: h.owner,
		AgentID: h.agent, Tool: "fs", Action: "ls", Outcome: tenants.OutcomeOK}
	must(t, f.CopyCalls(ctx, []tenants.Call{bare, full}))
	full.Legs.Admission = 0 // kept to the microsecond
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		for _, c := range []struct {
			name   string
			filter tenants.CallFilter
			want   []tenants.Call
		}{
			{"all, newest first", tenants.CallFilter{}, []tenants.Call{full, bare}},
			{"a page", tenants.CallFilter{Limit: 1}, []tenants.Call{full}},
			{"before", tenants.CallFilter{Before: now}, []tenants.Call{bare}},
			{"since", tenants.CallFilter{Since: now}, []tenants.Call{full}},
			{"tool and agent", tenants.CallFilter{Tool: "fs", AgentID: h.agent, MemberID: h.owner, InstanceID: h.instance}, []tenants.Call{bare}},
			{"outcome", tenants.CallFilter{Outcome: tenants.OutcomeError}, []tenants.Call{full}},
			{"another agent", tenants.CallFilter{AgentID: h.owner}, nil},
		} {
			got, err := tx.Calls(ctx, c.filter)
			must(t, err)
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s (-want +got)\n%s", c.name, d)
			}
		}
		return nil
	})
}

func TestABatchOfCallsIsWrittenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.newHome(t, "a@example.org", home{})
	must(t, f.Maintain(t.Context(), time.Now(), 30))
	call := tenants.Call{TenantID: h.tenant, ID: tenants.NewID(), StartedAt: time.Now(), Tool: "fs", Action: "ls", Outcome: tenants.OutcomeOK}
	wantErr(t, f.CopyCalls(t.Context(), []tenants.Call{call, call}), tenants.ErrConflict)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		got, err := tx.Calls(t.Context(), tenants.CallFilter{})
		if len(got) != 0 {
			t.Errorf("half a batch was written: %v", got)
		}
		return err
	})
}

func TestOldDaysOfCallsAreDroppedAndNewOnesMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	day := time.Date(2026, 3, 10, 23, 59, 59, 0, time.UTC)
	at := func(d time.Time) error {
		return f.CopyCalls(ctx, []tenants.Call{{TenantID: h.tenant, ID: tenants.NewID(), StartedAt: d, Tool: "fs", Action: "ls", Outcome: tenants.OutcomeOK}})
	}
	if err := at(day); err == nil {
		t.Error("a call was written without a partition: where to?")
	}
	must(t, f.Maintain(ctx, day, 3))
	must(t, f.Maintain(ctx, day, 3)) // again does nothing
	must(t, at(day))
	must(t, at(day.AddDate(0, 0, 7)))
	must(t, f.Maintain(ctx, day.AddDate(0, 0, 3), 3)) // the 10th is three days old: kept
	must(t, f.Maintain(ctx, day.AddDate(0, 0, 4), 3)) // four: dropped
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		got, err := tx.Calls(ctx, tenants.CallFilter{})
		if len(got) != 1 || got[0].StartedAt.Day() != 17 {
			t.Errorf("got %v, want the call of the 17th only", got)
		}
		return err
	})
	wantErr(t, f.Maintain(ctx, day, 0), tenants.ErrInvalid)
}

func TestTheAuditLogIsReadNewestFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	old := tenants.AuditEntry{ID: tenants.NewID(), At: noon, ActorKind: "member", ActorID: h.owner, Verb: "agent.revoke", Object: "agent:x", Detail: json.RawMessage(`{"a": 1}`)}
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.Audit(ctx, old))
		return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "system", Verb: "x"})
	})
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		all, err := tx.AuditLog(ctx, time.Time{}, 0)
		must(t, err)
		if len(all) != 2 || all[0].Verb != "x" || all[0].At.IsZero() {
			t.Errorf("got %v", all)
		}
		before, err := tx.AuditLog(ctx, noon.Add(time.Second), 10)
		if d := cmp.Diff([]tenants.AuditEntry{old}, before); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		return err
	})
	wantErr(t, f.In(ctx, h.tenant, func(tx tenants.Tx) error {
		return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "ghost", Verb: "x"})
	}), tenants.ErrInvalid)
}

func TestAReaderOfRevocationsMissesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	homes := []home{f.newHome(t, "a@example.org", home{}), f.newHome(t, "b@example.org", home{}), f.newHome(t, "c@example.org", home{})}
	const each = 10
	var writers sync.WaitGroup
	for _, h := range homes {
		writers.Go(func() {
			for range each {
				if err := f.In(ctx, h.tenant, func(tx tenants.Tx) error {
					return tx.RevokeToken(ctx, tenants.NewID().String(), time.Now().Add(time.Hour))
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	var seen int
	var last int64
	for finished := false; ; {
		page, err := f.Revocations(ctx, last, 4)
		must(t, err)
		for _, r := range page {
			if r.Seq <= last {
				t.Errorf("%d after %d", r.Seq, last)
			}
			last = r.Seq
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

func TestExpiredRevocationsAreNotServedAndAreForgotten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.RevokeToken(ctx, "old", time.Now().Add(-time.Minute)))
		return tx.RevokeToken(ctx, "new", time.Now().Add(time.Hour))
	})
	all, err := f.Revocations(ctx, 0, 0)
	must(t, err)
	if len(all) != 1 || all[0].Subject != "new" || all[0].TenantID != h.tenant {
		t.Errorf("got %v", all)
	}
	must(t, f.Maintain(ctx, time.Now(), 1))
	if n := count(t, f.conn(t, f.db.AdminDSN), "revocations"); n != 1 {
		t.Errorf("%d rows left, want 1", n)
	}
}

func TestSigningKeysAreSealedAndSurviveANewMasterKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	secret := []byte("the private part of a key")
	key := tenants.SigningKey{KID: "k1", Alg: "EdDSA", Purpose: "access", Private: secret, Public: []byte("pub"), NotBefore: from}
	must(t, f.PutSigningKey(ctx, key))
	wantErr(t, f.PutSigningKey(ctx, key), tenants.ErrConflict)
	var sealed []byte
	must(t, f.conn(t, f.db.AdminDSN).QueryRow(ctx, `select sealed from signing_keys`).Scan(&sealed))
	if bytes.Contains(sealed, secret) {
		t.Error("the private part is stored in the clear")
	}
	must(t, f.RetireSigningKey(ctx, "k1", from.AddDate(0, 1, 0), from.AddDate(0, 2, 0)))
	wantErr(t, f.RetireSigningKey(ctx, "k2", from, from), tenants.ErrNotFound)

	next := bytes.Repeat([]byte{7}, 32)
	open := func(current []byte, old ...[]byte) *postgres.Store {
		s, err := postgres.Open(ctx, postgres.Options{ServiceDSN: f.db.ServiceDSN, RecorderDSN: f.db.RecorderDSN, MasterKey: current, OldMasterKeys: old})
		must(t, err)
		t.Cleanup(s.Close)
		return s
	}
	_, err := open(next).SigningKeys(ctx)
	wantErr(t, err, tenants.ErrSealed)
	must(t, open(next, masterKey).Reseal(ctx))
	got, err := open(next).SigningKeys(ctx)
	must(t, err)
	key.RetiresAt, key.ExpiresAt, key.CreatedAt = from.AddDate(0, 1, 0), from.AddDate(0, 2, 0), got[0].CreatedAt
	if d := cmp.Diff([]tenants.SigningKey{key}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	must(t, f.DeleteSigningKey(ctx, "k1"))
	wantErr(t, f.DeleteSigningKey(ctx, "k1"), tenants.ErrNotFound)
}

func TestASealedKeyCannotBePassedOffAsAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	must(t, f.PutSigningKey(t.Context(), tenants.SigningKey{KID: "k1", Alg: "EdDSA", Purpose: "access", Private: []byte("x")}))
	_, err := f.conn(t, f.db.AdminDSN).Exec(t.Context(), `update signing_keys set kid = 'k2'`)
	must(t, err)
	_, err = f.SigningKeys(t.Context())
	wantErr(t, err, tenants.ErrSealed)
}

func TestSettingsOfTheInstallationAreJSON(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	type value struct{ A, B string }
	var got value
	wantErr(t, f.Setting(t.Context(), "k", &got), tenants.ErrNotFound)
	for _, want := range []value{{"1", "2"}, {"3", "日"}} {
		must(t, f.SetSetting(t.Context(), "k", want))
		must(t, f.Setting(t.Context(), "k", &got))
		if got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
