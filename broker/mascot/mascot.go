package mascot

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"siyuan-broker/broker/here"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// tool is the one whose calls earn nothing.
const tool = "mascot"

// shop is what there is to buy. Names and prices are a promise.
var shop = []tools.MascotItem{
	{ID: "cat-food", Label: "Cat food", Cost: 5, Type: "food", Emoji: "🍚"},
	{ID: "milk", Label: "Milk", Cost: 3, Type: "drink", Emoji: "🥛"},
	{ID: "dried-fish", Label: "Dried fish", Cost: 4, Type: "food", Emoji: "🐟"},
	{ID: "can-food", Label: "Canned food", Cost: 6, Type: "food", Emoji: "🥫"},
	{ID: "catnip", Label: "Catnip", Cost: 5, Type: "snack", Emoji: "🌿"},
	{ID: "chicken-leg", Label: "Chicken leg", Cost: 7, Type: "food", Emoji: "🍗"},
	{ID: "cheese", Label: "Cheese", Cost: 4, Type: "snack", Emoji: "🧀"},
}

// Store is the part of tenants.Store that the coins are kept in.
type Store interface {
	In(ctx context.Context, tenant tenants.ID, fn func(tenants.Tx) error) error
}

// Cat is the cat of every tenant. It is safe for concurrent use and keeps nothing
// between calls.
type Cat struct {
	Store Store
	Now   func() time.Time
}

// Answer implements here.Place for the mascot tool. Errors are those of the
// contract: invalid_value for what the shop does not sell or the coins do not pay
// for, conflict for a request id that bought something else.
func (m *Cat) Answer(ctx context.Context, c here.Call) (json.RawMessage, *contract.Error, bool) {
	switch c.Action {
	case tools.MascotGetBalance.Action:
		return here.Done(m.balance(ctx, c))
	case tools.MascotShop.Action:
		have, err := m.balance(ctx, c)
		return here.Done(tools.MascotShopOut{MascotBalanceOut: have, Items: shop}, err)
	case tools.MascotBuy.Action:
		return here.Done(m.buy(ctx, c))
	}
	return nil, nil, false
}

// Complete implements here.Place: a home's answers have nothing of the cat.
func (m *Cat) Complete(_ *tools.Action, _, body json.RawMessage) (json.RawMessage, *contract.Error) {
	return body, nil
}

func (m *Cat) balance(ctx context.Context, c here.Call) (out tools.MascotBalanceOut, err error) {
	err = m.Store.In(ctx, c.Snapshot.Principal.Tenant, func(tx tenants.Tx) error {
		now, err := tx.Mascot(ctx)
		out = tools.MascotBalanceOut{Action: c.Action.Name, Balance: now.Balance, TotalEarned: now.TotalCalls}
		return err
	})
	return out, err
}

func (m *Cat) buy(ctx context.Context, c here.Call) (any, error) {
	var in tools.MascotBuyIn
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(shop, func(s tools.MascotItem) bool { return s.ID == in.ItemID })
	if i < 0 {
		return nil, contract.Fail(contract.InvalidValue, "The shop does not sell that.").WithHint("mascot.shop lists what there is.")
	}
	if p, err := c.Strict(""); p != nil || err != nil {
		return p, err
	}
	key, err := c.Key()
	if err != nil {
		return nil, err
	}
	who, item := c.Snapshot.Principal, shop[i]
	var bought tenants.Purchase
	err = m.Store.In(ctx, who.Tenant, func(tx tenants.Tx) (err error) {
		bought, err = tx.Buy(ctx, tenants.Purchase{AgentID: who.Agent, RequestID: key, ItemID: item.ID, Cost: item.Cost, At: m.Now()})
		return err
	})
	switch {
	case errors.Is(err, tenants.ErrCoins):
		return nil, contract.Fail(contract.InvalidValue, "%s costs %d coins, and there are fewer; nothing was bought.", item.Label, item.Cost).
			WithHint("Each call of another tool earns one coin; mascot.get_balance tells how many there are.")
	case errors.Is(err, tenants.ErrConflict):
		return nil, contract.Fail(contract.Conflict, "That request id bought something else before; nothing was bought now.")
	case err != nil:
		return nil, err
	}
	return tools.MascotBuyOut{
		Success: true, ItemID: item.ID, Item: item.Label, Type: item.Type, Emoji: item.Emoji, Cost: bought.Cost,
		MascotBalanceOut: tools.MascotBalanceOut{Action: c.Action.Name, Balance: bought.Balance, TotalEarned: bought.TotalCalls},
	}, nil
}

// Copier takes batches of call records; *postgres.Store does.
type Copier interface {
	CopyCalls(ctx context.Context, calls []tenants.Call) error
}

// Bank takes coins; *postgres.Store does.
type Bank interface {
	EarnCoins(ctx context.Context, earned []tenants.Earned) error
}

// Earning stands before the store of call records and lets every batch that was
// written earn its coins, one for each call that is not the cat's own, failed ones
// too. So coins cost no call anything, and are there a moment later.
type Earning struct {
	Copier
	Bank Bank
	Log  *slog.Logger
}

// CopyCalls implements Copier. Coins that cannot be written are lost: the records
// are what matters.
func (e Earning) CopyCalls(ctx context.Context, calls []tenants.Call) error {
	if err := e.Copier.CopyCalls(ctx, calls); err != nil {
		return err
	}
	if err := e.Bank.EarnCoins(ctx, coins(calls)); err != nil {
		e.Log.WarnContext(ctx, "coins of the cat were lost", "calls", len(calls), "error", err)
	}
	return nil
}

// coins sums a batch up by tenant.
func coins(calls []tenants.Call) []tenants.Earned {
	var all []tenants.Earned
	place := map[tenants.ID]int{}
	for i := range calls {
		c := &calls[i]
		if c.Tool == tool {
			continue
		}
		at, ok := place[c.TenantID]
		if !ok {
			at = len(all)
			place[c.TenantID] = at
			all = append(all, tenants.Earned{Tenant: c.TenantID})
		}
		e := &all[at]
		e.Coins++
		e.Tool, e.Action, e.Failed, e.At = c.Tool, c.Action, c.Outcome != tenants.OutcomeOK, c.StartedAt
	}
	return all
}
