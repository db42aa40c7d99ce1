package mcpserver

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"siyuan-broker/broker/recorder"
	"siyuan-broker/broker/token"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

// The same with the real store: its pushes and its feed reach open streams and
// later requests within the two seconds that are promised, and its recorder
// role takes the records.
func TestChangesAndRevocationsInPostgresTakeEffectInTime(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := pgtest.New(t)
	pg, err := postgres.Open(ctx, postgres.Options{ServiceDSN: db.ServiceDSN, RecorderDSN: db.RecorderDSN, ListenDSN: db.ListenDSN, MasterKey: make([]byte, 32), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Close)
	if err := pg.Maintain(ctx, time.Now(), 1); err != nil {
		t.Fatal(err)
	}
	tenant, a := somebody(t, pg)
	rec := recorder.New(pg, recorder.Options{})
	r := newRigOn(t, pg, func(c *Config) { c.Recorder = rec })
	rec.Start()
	defer rec.Stop()
	r.home.will(func(context.Context, relayed) contract.Result { return contract.Result{Body: json.RawMessage(`{}`)} })

	raw, _, err := r.issuer.Issue(token.Request{Tenant: tenant, Member: a.MemberID, Agent: a.ID, Resource: resource, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if w := r.send(t, "POST", "/mcp", callList, modernHeader(raw, "tools/call", "notebook")); w.Code != http.StatusOK {
		t.Fatalf("call: %d %s", w.Code, w.Body)
	}
	shows := func(action string) bool {
		return actionsOf(t, r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", "")))[action]
	}
	if !shows("document.create") {
		t.Fatal("document.create is not listed to begin with")
	}
	in := func(fn func(tenants.Tx) error) {
		t.Helper()
		if err := pg.In(ctx, tenant, fn); err != nil {
			t.Fatal(err)
		}
	}
	in(func(tx tenants.Tx) error {
		return tx.SetToggle(ctx, a.InstanceID, tenants.Toggle{Tool: "document", Action: "create", Enabled: false})
	})
	inTime(t, "the toggle", func() bool { return !shows("document.create") })

	stream := r.openStream(t, "2025-11-25", raw)
	in(func(tx tenants.Tx) error { return tx.RevokeAgent(ctx, a.ID) })
	inTime(t, "the refusal", func() bool {
		return r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", "")).Code == http.StatusUnauthorized
	})
	within(t, "the end of the stream", stream)

	rec.Stop()
	in(func(tx tenants.Tx) error {
		calls, err := tx.Calls(ctx, tenants.CallFilter{AgentID: a.ID})
		if err == nil && (len(calls) != 1 || calls[0].Tool != "notebook" || calls[0].Action != "list" || calls[0].Outcome != tenants.OutcomeOK) {
			t.Errorf("recorded %+v", calls)
		}
		return err
	})
}

// inTime polls for what must happen within two seconds.
func inTime(t *testing.T, what string, ok func() bool) {
	t.Helper()
	started := time.Now()
	await(t, what, ok)
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("%s took %s", what, took)
	}
}

// somebody is an owner's agent in a new tenant, whose home allows everything.
func somebody(t *testing.T, pg *postgres.Store) (tenants.ID, tenants.Agent) {
	t.Helper()
	ctx := t.Context()
	u, err := pg.CreateUser(ctx, tenants.User{Email: "owner@notes.example", Name: "Owner"})
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := pg.CreateTenant(ctx, "Notes", u.ID)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	var a tenants.Agent
	err = pg.In(ctx, tenant.ID, func(tx tenants.Tx) error {
		in, err := tx.CreateInstance(ctx, tenants.Instance{Name: "Home", DefaultLevel: contract.ReadWriteDelete, Enabled: true})
		if err != nil {
			return err
		}
		c, err := tx.RegisterConnector(ctx, tenants.Connector{InstanceID: in.ID, Name: "home", PublicKey: key, PairedBy: u.ID})
		if err != nil {
			return err
		}
		if err := tx.SetPolicyEffect(ctx, c.ID, contract.PolicyEffect{MaxLevel: contract.ReadWriteDelete, Digest: "d"}); err != nil {
			return err
		}
		a, err = tx.CreateAgent(ctx, tenants.Agent{MemberID: u.ID, InstanceID: in.ID, Name: "agent", Origin: tenants.FromToken, Ceiling: contract.ReadWriteDelete})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tenant.ID, a
}
