package here

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// Call is one admitted call with settled arguments.
type Call struct {
	Snapshot  *admission.Snapshot
	Action    *tools.Action
	Args      json.RawMessage
	RequestID string          // the at-most-once key, a UUIDv7
	Safety    contract.Safety // of a write
}

// Place answers some calls in place of a home. Answer leaves mine false for all
// others. Complete adds what is kept here to a home's answer.
type Place interface {
	Answer(ctx context.Context, c Call) (body json.RawMessage, err *contract.Error, mine bool)
	Complete(action *tools.Action, args, body json.RawMessage) (json.RawMessage, *contract.Error)
}

// Places are asked in their order; it is a Place itself.
type Places []Place

// Answer implements Place.
func (ps Places) Answer(ctx context.Context, c Call) (json.RawMessage, *contract.Error, bool) {
	for _, p := range ps {
		if body, err, mine := p.Answer(ctx, c); mine {
			return body, err, true
		}
	}
	return nil, nil, false
}

// Complete implements Place.
func (ps Places) Complete(action *tools.Action, args, body json.RawMessage) (json.RawMessage, *contract.Error) {
	for _, p := range ps {
		var err *contract.Error
		if body, err = p.Complete(action, args, body); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// Key is the at-most-once key of a call.
func (c Call) Key() (tenants.ID, error) {
	id, err := uuid.Parse(c.RequestID)
	if err != nil {
		return id, contract.Internalf(err, "read the request id")
	}
	return id, nil
}

// Decode reads the arguments into the input type of the action.
func (c Call) Decode(into any) error {
	args, _ := tools.Verbose(c.Args)
	if err := json.Unmarshal(args, into); err != nil {
		return contract.Internalf(err, "decode the arguments of %s", c.Action.ID())
	}
	return nil
}

// Done turns how a call ended into the answer of a Place.
func Done(out any, err error) (json.RawMessage, *contract.Error, bool) {
	if err != nil {
		return nil, contract.AsError(err), true
	}
	body, err := Encode(out)
	if err != nil {
		return nil, contract.AsError(err), true
	}
	return body, nil, true
}

// Encode writes an answer as agents get it.
func Encode(out any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, contract.Internalf(err, "encode result")
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// Preflight is the answer to a write that is to be validated only.
type Preflight struct {
	StateHash    string `json:"stateHash,omitempty"`
	Action       string `json:"action"`
	ValidateOnly bool   `json:"validateOnly"`
	Mode         string `json:"writeSafetyMode"`
	Attempted    bool   `json:"writeAttempted"`
	Executed     bool   `json:"writeExecuted"`
	Field        string `json:"preconditionField,omitempty"`
	Protocol     string `json:"mutationProtocol,omitempty"`
	Next         string `json:"nextStep,omitempty"`
}

// hashName begins every state hash and names how it is made.
const hashName = "sha256:v1:"

// Strict holds a write against what its caller asked of the strict protocol; state
// is all that the write depends on. It gives the answer where the write is only to
// be validated, and state_changed where the caller expects another state.
func (c Call) Strict(state string) (*Preflight, error) {
	sum := sha256.Sum256([]byte(c.Action.ID() + "\n" + state))
	hash := hex.EncodeToString(sum[:])
	switch {
	case c.Safety.ValidateOnly && c.Action.Guarded == tools.NoPrecondition:
		return &Preflight{
			Action: c.Action.Name, ValidateOnly: true, Mode: "strict", Protocol: "request-id-only",
			Next: "Send the call with a requestId and without validateOnly; it needs no hash.",
		}, nil
	case c.Safety.ValidateOnly:
		return &Preflight{StateHash: hashName + hash, Action: c.Action.Name, ValidateOnly: true, Mode: "strict", Field: c.Action.Guarded.Field()}, nil
	case c.Safety.Expect == "":
		return nil, nil
	}
	if want := strings.ToLower(strings.TrimPrefix(c.Safety.Expect, hashName)); len(want) < 4 || !strings.HasPrefix(hash, want) {
		return nil, contract.Fail(contract.StateChanged, "What the write is about is not as it was when it was validated; nothing was written.")
	}
	return nil, nil
}
