package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"siyuan-broker/connector/approvals"
	"siyuan-broker/contract"
)

// ownerCommand is where the home owner answers.
const ownerCommand = "siyuan-connector approvals"

// ownerAgrees lets a call through that the home owner does not want to confirm, or
// has confirmed; that is used up here, right before the handler begins. It stands
// behind the ledger: what came of a call that ran before is told without asking.
func (r *running) ownerAgrees(ctx context.Context, b Binding, settled json.RawMessage, in any, s *strict) error {
	a := b.action
	if s != nil && s.only || !r.e.cfg.Policy.Confirms(a, settled) {
		return nil
	}
	folder := r.e.cfg.Approvals
	if folder == nil {
		return contract.Fail(contract.ActionDisabled, "The home owner wants to confirm %s, and cannot be asked here.", a.ID()).
			WithHint("It works through a running siyuan-connector.")
	}
	args, err := canonical(settled)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(args)
	call := approvals.Call{
		Principal: scope(r.call.Grant), RequestID: r.call.RequestID, Tool: a.Tool, Action: a.Name, Arguments: hex.EncodeToString(sum[:]),
	}
	standing, q, err := folder.Claim(call)
	if err != nil {
		return contract.Internalf(err, "ask the home owner about %s", a.ID())
	}
	before := ""
	switch standing {
	case approvals.Granted:
		return nil
	case approvals.Asked:
		return r.ownerAsked(q, "")
	case approvals.Refused:
		return contract.Fail(contract.ConfirmationDeclined, "The home owner declined %s; nothing was done.", a.ID())
	case approvals.Other:
		return contract.Fail(contract.ConfirmationInvalid, "The home owner was asked about this request id with another action or other arguments; nothing was done.")
	case approvals.Lapsed:
		before = "The earlier question to the home owner has expired. "
	}
	p, err := r.preview(ctx, b, settled, in)
	if err != nil {
		return err
	}
	q, err = folder.Ask(call, r.call.Grant.Agent.Name, p)
	switch {
	case errors.Is(err, approvals.ErrTooMany):
		return contract.Fail(contract.RateLimited, "Too many calls wait for the home owner already; nothing was done.").
			WithHint("Ask the home owner to answer those first, with: %s", ownerCommand).After(60)
	case err != nil:
		return contract.Internalf(err, "ask the home owner about %s", a.ID())
	}
	r.e.cfg.Logger.InfoContext(ctx, "a call waits for your yes; see: "+ownerCommand, "id", q.ID, "action", a.ID(), "request_id", r.call.RequestID)
	return r.ownerAsked(q, before)
}

// ownerAsked is the answer while the owner has not answered.
func (r *running) ownerAsked(q approvals.Question, before string) error {
	return contract.Fail(contract.ConfirmationRequired, "%sThe home owner has to approve %s.%s on the machine of the notes first; nothing was done.", before, q.Call.Tool, q.Call.Action).
		WithHint("Tell the home owner to run `%s approve %s` there. Then send the same call again with requestId %s.", ownerCommand, q.ID, r.call.RequestID).
		WithDetail(map[string]any{"approval": q.ID, "expires_at": q.Expires.Format(time.RFC3339)})
}
