package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/ledger"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// once runs a write at most once for its request id. A repeated request gets the
// outcome of the first; one whose outcome is not known is looked into, and run
// only when it is certain that it did not happen.
func (r *running) once(ctx context.Context, a *catalogue.Action, settled json.RawMessage, run func(guard.Entry) (json.RawMessage, error)) (json.RawMessage, error) {
	if r.e.cfg.Ledger == nil {
		if r.call.Replay {
			return nil, usedBefore(a)
		}
		return run(nil)
	}
	args, err := canonical(settled)
	if err != nil {
		return nil, err
	}
	claim, err := r.e.cfg.Ledger.Claim(ctx, ledger.Request{Scope: scope(r.call.Grant), ID: r.call.RequestID, Action: a.ID(), Args: args})
	if err != nil {
		return nil, err
	}
	defer claim.Release()
	past := claim.Past()
	if past.Known && !past.Ended() {
		if past, err = r.e.settle(ctx, claim); err != nil {
			return nil, err
		}
	}
	if past.Ended() {
		return r.replay(past)
	}
	if r.call.Replay {
		return nil, usedBefore(a)
	}
	body, err := run(claim)
	return r.keep(claim, body, err)
}

// usedBefore answers a call that may only be told what came of an earlier one,
// where nothing did.
func usedBefore(a *catalogue.Action) error {
	return contract.Fail(contract.ConfirmationUsed, "The agreement to %s was used before, and nothing is known of what came of it; nothing was done now.", a.ID())
}

// scope is whose request ids a grant uses.
func scope(g *contract.Grant) string {
	return strings.Join([]string{g.Tenant, g.Instance, g.Member, g.Agent.ID}, "/")
}

// settle finds out what became of a request whose end is not known, by looking
// at what its last step was to do: the steps before it were answered. It returns
// an empty past when nothing happened, and outcome_unknown when the state is
// neither that before nor that after.
func (e *Executor) settle(ctx context.Context, claim *ledger.Claim) (ledger.Past, error) {
	past := claim.Past()
	steps := past.Steps
	if len(steps) == 0 {
		return ledger.Past{}, claim.Again()
	}
	last := steps[len(steps)-1]
	verdict, err := e.cfg.Guard.Decide(ctx, last)
	switch {
	case err != nil:
		return past, unknown(steps, "SiYuan cannot be asked right now whether the write happened.").WithCause(err)
	case verdict == guard.Pending:
		return past, unknown(steps, "SiYuan did not do the write yet, and may still be at work on it.").After(5)
	case verdict == guard.Unclear:
		return past, unknown(steps, "The write may or may not have happened, and what it was about has changed since.")
	case verdict == guard.NotDone && !slices.ContainsFunc(steps[:len(steps)-1], func(s guard.Step) bool { return s.Repeatable == "" }):
		return ledger.Past{}, claim.Again()
	case verdict == guard.Done && !last.More:
		past.Body = tracedAnswer(steps)
		return past, claim.Trace(past.Body, nil)
	}
	if verdict == guard.NotDone {
		steps = steps[:len(steps)-1]
	}
	past.Err = contract.Fail(contract.PartlyDone, "The call was interrupted after %d of its writes; nothing more of it will happen.", len(steps)).
		WithDetail(map[string]any{"done": told(steps)})
	return past, claim.Trace(nil, past.Err)
}

// Recover decides, as far as that is possible, what became of writes that were
// under way when the connector ended. What stays open is decided when its sender
// asks again.
func (e *Executor) Recover(ctx context.Context) error {
	if e.cfg.Ledger == nil {
		return nil
	}
	return e.cfg.Ledger.Undecided(ctx, func(c *ledger.Claim) error {
		_, err := e.settle(ctx, c)
		if contract.CodeOf(err) == contract.OutcomeUnknown && ctx.Err() == nil && !guard.Unreachable(err) {
			return nil
		}
		return err
	})
}

// toldStep is a step as agents see it.
type toldStep struct {
	Op  string   `json:"op"`
	ID  string   `json:"id,omitempty"`
	New []string `json:"new,omitempty"`
}

func told(steps []guard.Step) []toldStep {
	all := make([]toldStep, len(steps))
	for i, s := range steps {
		all[i] = toldStep{s.Op, s.ID, s.New}
	}
	return all
}

// unknown says what to read to learn the outcome.
func unknown(steps []guard.Step, text string) *contract.Error {
	last := steps[len(steps)-1]
	read := last.New
	if last.ID != "" {
		read = append([]string{last.ID}, read...)
	}
	detail := map[string]any{"read": read, "undecided": told(steps[len(steps)-1:])}
	if len(steps) > 1 {
		detail["done"] = told(steps[:len(steps)-1])
	}
	return contract.Fail(contract.OutcomeUnknown, "%s", text).WithDetail(detail)
}

// tracedAnswer stands in for the answer of a write that was done but whose
// answer was lost, or is too long to keep.
func tracedAnswer(steps []guard.Step) json.RawMessage {
	out := struct {
		Success   bool       `json:"success"`
		Recovered bool       `json:"recovered"`
		ID        string     `json:"id,omitempty"`
		Done      []toldStep `json:"done"`
	}{Success: true, Recovered: true, Done: told(steps)}
	out.ID = steps[len(steps)-1].ID
	for _, s := range steps {
		if len(s.New) > 0 {
			out.ID = s.New[0]
		}
	}
	body, err := json.Marshal(out)
	if err != nil {
		return json.RawMessage(`{"success":true,"recovered":true}`) // texts always have a JSON form
	}
	return body
}

// replay answers with the outcome of the first call, to those who may still read
// what it was about.
func (r *running) replay(past ledger.Past) (json.RawMessage, error) {
	for _, st := range past.Steps {
		for _, notebook := range st.Notebooks {
			if r.effective.Level(notebook) == contract.None {
				return nil, contract.Fail(contract.NotFound, "What the request was about does not exist any more.")
			}
		}
	}
	if past.Err != nil {
		return nil, past.Err
	}
	return withFlag(past.Body, "replayed"), nil
}

// withFlag adds a true field to the front of an object.
func withFlag(body json.RawMessage, name string) json.RawMessage {
	rest := bytes.TrimPrefix(bytes.TrimSpace(body), []byte("{"))
	head := `{"` + name + `":true`
	if !bytes.HasPrefix(bytes.TrimSpace(rest), []byte("}")) {
		head += ","
	}
	return append([]byte(head), rest...)
}

// keep remembers how a call ended. A ledger that cannot be written does not
// change what happened: the steps are on disk, and a repeat looks at them.
func (r *running) keep(claim *ledger.Claim, body json.RawMessage, failure error) (json.RawMessage, error) {
	steps := claim.Steps()
	if len(steps) == 0 {
		return body, failure
	}
	var err error
	switch {
	case failure == nil && len(body) > ledger.MaxAnswer:
		err = claim.Trace(tracedAnswer(steps), nil)
	case failure == nil:
		err = claim.Succeed(body)
	default:
		failure, err = r.keepFailure(claim, steps, failure)
	}
	if err != nil {
		r.e.cfg.Logger.Error("the end of a write was not kept", "request_id", r.call.RequestID, "error", err.Error())
	}
	return body, failure
}

// keepFailure adds to an error what happened all the same. What is not known yet
// is not kept: the next call looks again.
func (r *running) keepFailure(claim *ledger.Claim, steps []guard.Step, failure error) (error, error) {
	e := *guard.Public(failure)
	if contract.CodeOf(&e) == contract.OutcomeUnknown {
		if e.Detail == nil {
			e.Detail = unknown(steps, "").Detail
		}
		return &e, nil
	}
	if e.Detail == nil {
		e.WithDetail(map[string]any{"done": told(steps)})
	}
	return &e, claim.Fail(&e)
}

// canonical gives equal arguments equal bytes.
func canonical(raw json.RawMessage) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, contract.Internalf(err, "read settled arguments")
	}
	return encode(v)
}
