package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// The strict write protocol: validateOnly runs a handler as far as its first
// write, where the targets are proven and locked, and answers with the hash of
// their state; a call with that hash writes only while they still have it. A
// handler knows nothing of it.

// errValidated ends a handler whose write was only to be validated.
var errValidated = errors.New("validated")

// errTwoWrites is a programming error: the hash would have covered only the first.
var errTwoWrites = errors.New("tools: a handler wrote twice in one call")

// strict is the watch of one call. An action makes all its changes in one write,
// so what it sees is all there is.
type strict struct {
	structure bool
	only      bool   // to be validated and not done
	want      string // 64 digits; "" with only
	seen      bool
	before    guard.State
	after     guard.State
}

func (s *strict) Structure() bool { return s.structure }

func (s *strict) Before(now guard.State) error {
	if s.seen {
		return contract.Internalf(errTwoWrites, "write under a hash")
	}
	s.seen, s.before = true, now
	switch {
	case s.only:
		return errValidated
	case now.Hash != guard.HashPrefix+s.want:
		return contract.Fail(contract.StateChanged, "What the write is about has changed since it was validated; nothing was written.")
	}
	return nil
}

func (s *strict) After(now guard.State) { s.after = now }

// watch is the strict protocol as an intent wants it; nil where nobody asked.
func (r *Request) watch() guard.Watch {
	if r.strict == nil {
		return nil
	}
	return r.strict
}

// leaseScope names one call of one principal.
func (r *running) leaseScope(a *catalogue.Action, settled json.RawMessage) (string, error) {
	args, err := canonical(settled)
	return scope(r.call.Grant) + "\n" + a.ID() + "\n" + string(args), err
}

// preflight answers validateOnly.
func (r *running) preflight(a *catalogue.Action, settled json.RawMessage, run func(*strict) error) (json.RawMessage, error) {
	out := preflightAnswer{Action: a.Name, ValidateOnly: true, Mode: "strict"}
	if a.Guarded == catalogue.NoPrecondition {
		required := false
		out.Protocol, out.Required = "request-id-only", &required
		out.Next = "Send the call with a requestId and without validateOnly; it needs no hash."
		return encode(out)
	}
	key, err := r.leaseScope(a, settled)
	if err != nil {
		return nil, err
	}
	s := &strict{structure: a.Guarded == catalogue.OnStructure, only: true}
	if err := run(s); !errors.Is(err, errValidated) {
		if err == nil {
			err = contract.Fail(contract.Unsupported, "This call would write nothing, so there is nothing to validate.").WithHint("Send it without validateOnly.")
		}
		return nil, err
	}
	prefix, expires := r.e.leases.give(key, s.before.Hash, r.e.cfg.Now())
	out.Field, out.PrefixLength, out.Expires, out.Targets = a.Guarded.Field(), len(prefix), expires.UTC().Format(time.RFC3339), len(s.before.Targets)
	body, err := encode(out)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"`+string(a.Guarded)+`Hash":"`+prefix+`",`), bytes.TrimPrefix(body, []byte("{"))...), nil
}

// preflightAnswer is the answer to validateOnly, but for the hash, whose name
// depends on the action.
type preflightAnswer struct {
	Action       string `json:"action"`
	ValidateOnly bool   `json:"validateOnly"`
	Mode         string `json:"writeSafetyMode"`
	Attempted    bool   `json:"writeAttempted"`
	Executed     bool   `json:"writeExecuted"`
	Field        string `json:"preconditionField,omitempty"`
	PrefixLength int    `json:"hashPrefixLength,omitempty"`
	Expires      string `json:"leaseExpiresAt,omitempty"`
	Targets      int    `json:"targetCount,omitempty"`
	Protocol     string `json:"mutationProtocol,omitempty"`
	Required     *bool  `json:"preflightRequired,omitempty"`
	Next         string `json:"nextStep,omitempty"`
}

// expecting runs a write under the hash that its caller gave.
func (r *running) expecting(a *catalogue.Action, settled json.RawMessage, run func(*strict) (json.RawMessage, error)) (json.RawMessage, error) {
	if a.Guarded == catalogue.NoPrecondition {
		return nil, contract.InvalidFields(contract.Field{Path: "expectedStateHash", Message: "is not for " + a.ID() + ", which needs no hash"})
	}
	key, err := r.leaseScope(a, settled)
	if err != nil {
		return nil, err
	}
	l, err := r.e.leases.find(key, r.call.Safety.Expect, r.e.cfg.Now())
	if err != nil {
		return nil, err
	}
	s := &strict{structure: a.Guarded == catalogue.OnStructure, want: l.hash}
	body, err := run(s)
	if s.seen && !refusedBefore(err) {
		r.e.leases.drop(l)
	}
	if err != nil {
		return nil, err
	}
	return s.sign(body, r.call.RequestID), nil
}

// refusedBefore: a definite no from before the write, after which the lease may
// be used for a corrected try.
func refusedBefore(err error) bool {
	if err == nil {
		return false
	}
	switch guard.Public(err).Type {
	case contract.TypeValidation, contract.TypePermission, contract.TypeDisabled:
		return true
	}
	return false
}

// sign adds what the protocol promises about the write.
func (s *strict) sign(body json.RawMessage, requestID string) json.RawMessage {
	state := "committed"
	if s.after.Hash == s.before.Hash {
		state = "no_change"
	}
	safety, err := json.Marshal(map[string]any{
		"requestId": requestID, "writeSafetyMode": "strict", "writeSafetyGuaranteed": true, "writeAttempted": true,
		"writeExecuted": true, "replayed": false, "transactionState": state, "previousHash": s.before.Hash, "resultHash": s.after.Hash,
	})
	rest, isObject := bytes.CutSuffix(bytes.TrimSpace(body), []byte("}"))
	if err != nil || !isObject {
		return body
	}
	if !bytes.HasSuffix(bytes.TrimSpace(rest), []byte("{")) {
		rest = append(rest[:len(rest):len(rest)], ',')
	}
	return append(append(append(rest[:len(rest):len(rest)], `"safety":`...), safety...), '}')
}

// write runs a write as its caller wants it: validated only, under a hash, or
// as it is.
func (r *running) write(ctx context.Context, a *catalogue.Action, settled json.RawMessage, run func(guard.Entry, *strict) (json.RawMessage, error)) (json.RawMessage, error) {
	switch s := r.call.Safety; {
	case s.ValidateOnly:
		return r.preflight(a, settled, func(s *strict) error { _, err := run(nil, s); return err })
	case s.Expect != "":
		return r.once(ctx, a, settled, func(e guard.Entry) (json.RawMessage, error) {
			return r.expecting(a, settled, func(s *strict) (json.RawMessage, error) { return run(e, s) })
		})
	}
	return r.once(ctx, a, settled, func(e guard.Entry) (json.RawMessage, error) { return run(e, nil) })
}
