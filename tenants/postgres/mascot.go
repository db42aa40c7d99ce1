package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

// EarnCoins adds the coins of a batch of calls, in the order of the tenants, so
// that nodes that write at the same time do not wait for each other in a circle.
func (s *Store) EarnCoins(ctx context.Context, earned []tenants.Earned) error {
	if len(earned) == 0 {
		return nil
	}
	earned = slices.Clone(earned)
	slices.SortFunc(earned, func(a, b tenants.Earned) int { return bytes.Compare(a.Tenant[:], b.Tenant[:]) })
	var (
		who                    []string
		coins                  []int64
		tools, actions, states []string
		times                  []time.Time
	)
	for _, e := range earned {
		state := "success"
		if e.Failed {
			state = "error"
		}
		who, coins, times = append(who, e.Tenant.String()), append(coins, e.Coins), append(times, e.At)
		tools, actions, states = append(tools, e.Tool), append(actions, e.Action), append(states, state)
	}
	if _, err := s.service.Exec(ctx, `select earn_coins($1::text[]::uuid[], $2, $3, $4, $5, $6)`, who, coins, tools, actions, states, times); err != nil {
		return failure(err, "earn the coins of %d tenants", len(earned))
	}
	return nil
}

func scanMascot(r pgx.CollectableRow) (m tenants.Mascot, err error) {
	e := &m.Last
	err = r.Scan(&m.TotalCalls, &m.Balance, &e.Seq, &e.Tool, &e.Action, &e.Status, intoTime{&e.At}, intoText{&e.ItemID})
	e.TotalCalls, e.Balance = m.TotalCalls, m.Balance
	return m, err
}

const mascotColumns = `total_calls, total_calls - spent, seq, tool, action, status, at, item_id`

func (t *tx) Mascot(ctx context.Context) (tenants.Mascot, error) {
	found, err := list(ctx, t, "the cat", scanMascot, `select `+mascotColumns+` from mascots where tenant_id = $1`, t.tenant)
	if err != nil || len(found) == 0 {
		return tenants.Mascot{}, err
	}
	return found[0], nil
}

const purchaseColumns = `agent_id, request_id, item_id, cost, total_calls, balance, at`

func scanPurchase(r pgx.CollectableRow) (p tenants.Purchase, err error) {
	err = r.Scan(&p.AgentID, &p.RequestID, &p.ItemID, &p.Cost, &p.TotalCalls, &p.Balance, intoTime{&p.At})
	return p, err
}

// Buy holds the cat's row from its first statement on, so that purchases follow
// one another.
func (t *tx) Buy(ctx context.Context, p tenants.Purchase) (tenants.Purchase, error) {
	cats, err := list(ctx, t, "the cat", scanMascot, `select `+mascotColumns+` from mascots where tenant_id = $1 for update`, t.tenant)
	if err != nil {
		return p, err
	}
	before, err := list(ctx, t, "purchase of a request", scanPurchase, `select `+purchaseColumns+` from mascot_purchases
		where tenant_id = $1 and agent_id = $2 and request_id = $3`, t.tenant, p.AgentID, p.RequestID)
	switch {
	case err != nil:
		return p, err
	case len(before) > 0 && before[0].ItemID != p.ItemID:
		return before[0], failure(tenants.ErrConflict, "buy %s", p.ItemID)
	case len(before) > 0:
		return before[0], nil
	case len(cats) == 0 || cats[0].Balance < p.Cost:
		return p, failure(tenants.ErrCoins, "buy %s", p.ItemID)
	}
	p.TotalCalls, p.Balance = cats[0].TotalCalls, cats[0].Balance-p.Cost
	if err := t.exec(ctx, "spend coins", `update mascots set spent = spent + $2, seq = seq + 1,
		tool = 'mascot', action = 'buy', status = 'success', at = $3, item_id = $4 where tenant_id = $1`, t.tenant, p.Cost, p.At, p.ItemID); err != nil {
		return p, err
	}
	if err := t.exec(ctx, "note a purchase", `insert into mascot_purchases (tenant_id, `+purchaseColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		t.tenant, p.AgentID, p.RequestID, p.ItemID, p.Cost, p.TotalCalls, p.Balance, p.At); err != nil {
		return p, err
	}
	return p, t.run(ctx, "forget old purchases", `delete from mascot_purchases where tenant_id = $1 and at < $2`, t.tenant, p.At.Add(-tenants.PurchasesKept))
}
