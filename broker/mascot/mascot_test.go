package mascot_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/here"
	"siyuan-broker/broker/mascot"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// shop is the cat of one tenant with an agent.
type shop struct {
	*mascot.Cat
	db   *postgres.Store
	snap *admission.Snapshot
}

func newShop(t *testing.T, coins int64) *shop {
	t.Helper()
	ctx, pg := t.Context(), pgtest.New(t)
	db, err := postgres.Open(ctx, postgres.Options{ServiceDSN: pg.ServiceDSN, RecorderDSN: pg.RecorderDSN, ListenDSN: pg.ListenDSN, MasterKey: make([]byte, 32), MaxConns: 8})
	must(t, err)
	t.Cleanup(db.Close)
	u, err := db.CreateUser(ctx, tenants.User{Email: "p@example.org", Name: "P"})
	must(t, err)
	tenant, err := db.CreateTenant(ctx, "Notes", u.ID)
	must(t, err)
	s := &shop{Cat: &mascot.Cat{Store: db, Now: time.Now}, db: db, snap: &admission.Snapshot{Principal: admission.Principal{Tenant: tenant.ID, Agent: tenants.NewID()}}}
	must(t, db.EarnCoins(ctx, []tenants.Earned{{Tenant: tenant.ID, Coins: coins, At: time.Now()}}))
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shop) call(name, args, request string) (json.RawMessage, *contract.Error) {
	action, _ := tools.New().Action("mascot", name)
	settled, err := action.Validate(json.RawMessage(args))
	if err != nil {
		return nil, err
	}
	body, err, mine := s.Answer(context.Background(), here.Call{Snapshot: s.snap, Action: action, Args: settled, RequestID: request})
	if !mine {
		return nil, contract.Fail(contract.Internal, "the call is left to the home")
	}
	return body, err
}

// TestTheShopSellsWhatWasPromised: names, prices and kinds are those of the
// catalogue that agents know.
func TestTheShopSellsWhatWasPromised(t *testing.T) {
	t.Parallel()
	body, err := newShop(t, 12).call("shop", `{}`, "")
	if err != nil {
		t.Fatal(err)
	}
	var out tools.MascotShopOut
	must(t, json.Unmarshal(body, &out))
	promised := map[string]struct {
		cost int64
		kind string
	}{"cat-food": {5, "food"}, "milk": {3, "drink"}, "dried-fish": {4, "food"}, "can-food": {6, "food"}, "catnip": {5, "snack"}, "chicken-leg": {7, "food"}, "cheese": {4, "snack"}}
	if len(out.Items) != len(promised) || out.Balance != 12 || out.TotalEarned != 12 || out.Action != "shop" {
		t.Errorf("%+v", out)
	}
	for _, i := range out.Items {
		if want := promised[i.ID]; i.Cost != want.cost || i.Type != want.kind || i.Label == "" || i.Emoji == "" {
			t.Errorf("%+v, want %+v", i, want)
		}
	}
}

func TestBuyingTakesThePriceOnceForARequest(t *testing.T) {
	t.Parallel()
	s := newShop(t, 8)
	request := tenants.NewID().String()
	for range 2 {
		body, err := s.call("buy", `{"item_id":"catnip","verbose":true}`, request)
		if err == nil {
			t.Fatalf("an unknown parameter was taken: %s", body)
		}
		body, err = s.call("buy", `{"item_id":"catnip"}`, request)
		if want := `{"success":true,"item_id":"catnip","item":"Catnip","type":"snack","emoji":"🌿","cost":5,"action":"buy","balance":3,"totalEarned":8}`; err != nil || string(body) != want {
			t.Errorf("%s %v\nwant %s", body, err, want)
		}
	}
	for args, want := range map[string]contract.Code{`{"item_id":"milk"}`: contract.Conflict, `{"item_id":"dog-food"}`: contract.InvalidValue} {
		if body, err := s.call("buy", args, request); contract.CodeOf(err) != want {
			t.Errorf("%s: %s %v", args, body, err)
		}
	}
	if _, err := s.call("buy", `{"item_id":"cheese"}`, tenants.NewID().String()); contract.CodeOf(err) != contract.InvalidValue {
		t.Errorf("too dear: %v", err)
	}
	if body, err := s.call("get_balance", `{}`, ""); err != nil || string(body) != `{"action":"get_balance","balance":3,"totalEarned":8}` {
		t.Errorf("%s %v", body, err)
	}
}

func TestValidatingBuysNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, 8)
	settled, _ := tools.MascotBuy.Validate(json.RawMessage(`{"item_id":"milk"}`))
	body, err, _ := s.Answer(t.Context(), here.Call{Snapshot: s.snap, Action: tools.MascotBuy.Action, Args: settled, RequestID: tenants.NewID().String(), Safety: contract.Safety{ValidateOnly: true}})
	var p here.Preflight
	must(t, json.Unmarshal(body, &p))
	if err != nil || !p.ValidateOnly || p.Executed {
		t.Errorf("%s %v", body, err)
	}
	if body, _ := s.call("get_balance", `{}`, ""); string(body) != `{"action":"get_balance","balance":8,"totalEarned":8}` {
		t.Errorf("%s", body)
	}
}

func TestCallsOfOtherToolsAreLeftToTheHome(t *testing.T) {
	t.Parallel()
	if _, _, mine := (&mascot.Cat{}).Answer(t.Context(), here.Call{Action: tools.FSLs.Action}); mine {
		t.Error("fs.ls is kept")
	}
}

// bank remembers what was earned.
type bank struct {
	copied int
	earned []tenants.Earned
	fails  error
}

func (b *bank) CopyCalls(_ context.Context, calls []tenants.Call) error {
	if b.fails == nil {
		b.copied += len(calls)
	}
	return b.fails
}

func (b *bank) EarnCoins(_ context.Context, e []tenants.Earned) error {
	b.earned = append(b.earned, e...)
	return errors.New("no room")
}

func TestEveryCallButTheCatsOwnEarnsACoin(t *testing.T) {
	t.Parallel()
	a, b := tenants.NewID(), tenants.NewID()
	at := time.UnixMilli(1)
	calls := []tenants.Call{
		{TenantID: a, Tool: "fs", Action: "ls", Outcome: tenants.OutcomeOK, StartedAt: at},
		{TenantID: a, Tool: "mascot", Action: "shop", Outcome: tenants.OutcomeOK},
		{TenantID: b, Tool: "block", Action: "append", Outcome: tenants.OutcomeUnknown, StartedAt: at},
		{TenantID: a, Tool: "", Outcome: tenants.OutcomeError, StartedAt: at.Add(1)},
	}
	till := &bank{}
	e := mascot.Earning{Copier: till, Bank: till, Log: slog.New(slog.DiscardHandler)}
	if err := e.CopyCalls(t.Context(), calls); err != nil {
		t.Errorf("records wait for coins: %v", err)
	}
	want := []tenants.Earned{{Tenant: a, Coins: 2, Failed: true, At: at.Add(1)}, {Tenant: b, Coins: 1, Tool: "block", Action: "append", Failed: true, At: at}}
	if till.copied != 4 || len(till.earned) != 2 || till.earned[0] != want[0] || till.earned[1] != want[1] {
		t.Errorf("%d copied, earned %+v\nwant %+v", till.copied, till.earned, want)
	}
	till.fails = errors.New("away")
	if err := e.CopyCalls(t.Context(), calls); err == nil || len(till.earned) != 2 {
		t.Errorf("records that were not written earned coins: %v %+v", err, till.earned)
	}
}
