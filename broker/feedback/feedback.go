package feedback

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"siyuan-broker/broker/here"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// per is the time in which a tenant's agents may send tenants.FeedbackPerHour.
const per = time.Hour

// Store is the part of tenants.Store that feedback is kept in.
type Store interface {
	In(ctx context.Context, tenant tenants.ID, fn func(tenants.Tx) error) error
}

// Box takes feedback. It is safe for concurrent use and keeps nothing between
// calls.
type Box struct {
	Store Store
	Now   func() time.Time
}

// Answer implements here.Place for the feedback tool. Errors are those of the
// contract: rate_limited for too much in an hour.
func (b *Box) Answer(ctx context.Context, c here.Call) (json.RawMessage, *contract.Error, bool) {
	if c.Action != tools.FeedbackSubmit.Action {
		return nil, nil, false
	}
	return here.Done(b.submit(ctx, c))
}

// Complete implements here.Place: a home's answers have nothing of it.
func (b *Box) Complete(_ *tools.Action, _, body json.RawMessage) (json.RawMessage, *contract.Error) {
	return body, nil
}

func (b *Box) submit(ctx context.Context, c here.Call) (out tools.FeedbackSubmitOut, err error) {
	var in tools.FeedbackSubmitIn
	if err := c.Decode(&in); err != nil {
		return out, err
	}
	key, err := c.Key()
	if err != nil {
		return out, err
	}
	p, now := c.Snapshot.Principal, b.Now()
	kept := tenants.Feedback{
		ID: tenants.NewID(), InstanceID: p.Instance, MemberID: p.Member, AgentID: p.Agent, RequestID: key,
		Description: in.Description, Impact: in.Impact, Suggestion: in.Suggestion,
		Agent: cmp.Or(in.Agent, contract.PlainText(p.AgentName, 200)), Source: cmp.Or(in.Source, "mcp"), WrittenAt: now,
	}
	err = b.Store.In(ctx, p.Tenant, func(tx tenants.Tx) (err error) {
		kept, err = tx.AddFeedback(ctx, kept, now.Add(-per))
		return err
	})
	switch {
	case errors.Is(err, tenants.ErrTooMany):
		return out, contract.Fail(contract.RateLimited, "Much feedback was sent in this hour already; this was not kept.").After(int(per.Seconds()))
	case errors.Is(err, tenants.ErrInvalid):
		return out, contract.Fail(contract.InvalidValue, "The text has a character that cannot be kept.").WithHint("Leave out the character U+0000.").WithCause(err)
	case err != nil:
		return out, err
	}
	return tools.FeedbackSubmitOut{Action: c.Action.Name, Success: true, ID: kept.ID.String(), CreatedTS: kept.WrittenAt.UnixMilli()}, nil
}
