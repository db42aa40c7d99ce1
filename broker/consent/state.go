package consent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"siyuan-broker/tenants"
)

// StateLife is how long a sealed state can be sent back.
const StateLife = 5 * time.Minute

// Question is what a person is asked about: exactly one call.
type Question struct {
	Tenant       tenants.ID
	Member       tenants.ID
	Agent        tenants.ID
	Instance     tenants.ID
	Tool         string
	Action       string
	Arguments    [sha256.Size]byte // see Digest
	RulesVersion int64
	RequestID    tenants.ID // of the call that is carried out
	// By is a person who makes the call themselves, in the agent's place; it is for
	// them, then, whether the agent still has access or not. Zero: the agent does.
	By tenants.ID
	// Carry is done in the transaction that uses an approval up: a call of the broker's
	// own, or a line of the audit log; its error undoes both. nil: nothing is.
	Carry func(ctx context.Context, tx tenants.Tx, agreed tenants.Approval) error
}

// Digest is that of a call's arguments, whatever their order and spacing.
func Digest(args json.RawMessage) ([sha256.Size]byte, error) {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("arguments: %w", err)
	}
	b, err := json.Marshal(v) // sorts the keys
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("arguments: %w", err)
	}
	return sha256.Sum256(b), nil
}

// What is wrong with a confirmation. The texts are for agents and people.
var (
	ErrForged    = errors.New("it was not made here, or for something else")
	ErrCaller    = errors.New("it was made for another caller")
	ErrAction    = errors.New("it was made for another action")
	ErrArguments = errors.New("the arguments are not those that were asked about")
	ErrRules     = errors.New("the rules of the tenant have changed since")
	ErrExpired   = errors.New("it has expired")
	ErrUsed      = errors.New("it was used already")
	ErrEnded     = errors.New("the agent's access has ended")
)

// inForce holds a call against the store at the moment an agreement to it is used
// up: nothing that people decided before is still on its way to this node then.
// ErrEnded and ErrRules.
func (q Question) inForce(ctx context.Context, tx tenants.Tx, now time.Time) error {
	if q.By != (tenants.ID{}) {
		return nil
	}
	agent, err := tx.Agent(ctx, q.Agent)
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return ErrEnded
	case err != nil:
		return err
	case ended(agent, now):
		return ErrEnded
	}
	t, err := tx.Tenant(ctx)
	if err == nil && t.RulesVersion != q.RulesVersion {
		return ErrRules
	}
	return err
}

func ended(a tenants.Agent, now time.Time) bool {
	return !a.RevokedAt.IsZero() || !a.ExpiresAt.IsZero() && !now.Before(a.ExpiresAt)
}

// Kind says how a state may be sent back.
type Kind string

// The kinds of state.
const (
	Form    Kind = "form"    // with what a person entered into a form
	Preview Kind = "preview" // by an agent, which has read the preview
)

// Box seals with a key that all nodes have; *postgres.Store does. What is sealed
// under one name opens under no other.
type Box interface {
	Seal(name string, secret []byte) []byte
	Unseal(name string, sealed []byte) ([]byte, error)
}

const stateVersion = 1

// state is the content of a sealed state.
type state struct {
	V         int        `json:"v"`
	ID        tenants.ID `json:"jti"`
	Kind      Kind       `json:"kind"`
	Tenant    tenants.ID `json:"tenant"`
	Member    tenants.ID `json:"member"`
	Agent     tenants.ID `json:"agent"`
	Instance  tenants.ID `json:"instance"`
	Action    string     `json:"action"` // tool.action
	Arguments []byte     `json:"args"`
	Policy    int64      `json:"policy"`
	RequestID tenants.ID `json:"rid"`
	Expires   int64      `json:"exp"` // unix milliseconds
}

// Seal makes a state for a question.
func (d *Desk) Seal(kind Kind, q Question) (string, error) {
	text, err := json.Marshal(state{
		V: stateVersion, ID: tenants.NewID(), Kind: kind, Tenant: q.Tenant, Member: q.Member, Agent: q.Agent, Instance: q.Instance,
		Action: q.Tool + "." + q.Action, Arguments: q.Arguments[:], Policy: q.RulesVersion, RequestID: q.RequestID,
		Expires: d.cfg.Now().Add(StateLife).UnixMilli(),
	})
	if err != nil {
		return "", fmt.Errorf("seal state: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(d.cfg.Box.Seal(sealName(kind), text)), nil
}

func sealName(kind Kind) string { return "confirmation " + string(kind) }

// Confirmed is a state that fits.
type Confirmed struct {
	ID        tenants.ID
	RequestID tenants.ID // what the call that was asked about is carried out under
	expires   time.Time
}

// Open holds a state against the call that it came with. Errors are ErrForged and
// those after it up to ErrExpired.
func (d *Desk) Open(kind Kind, sealed string, q Question) (Confirmed, error) {
	var s state
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err == nil {
		raw, err = d.cfg.Box.Unseal(sealName(kind), raw)
	}
	if err != nil || json.Unmarshal(raw, &s) != nil || s.V != stateVersion || s.Kind != kind {
		return Confirmed{}, ErrForged
	}
	until := time.UnixMilli(s.Expires)
	switch {
	case s.Tenant != q.Tenant, s.Member != q.Member, s.Agent != q.Agent, s.Instance != q.Instance:
		return Confirmed{}, ErrCaller
	case s.Action != q.Tool+"."+q.Action:
		return Confirmed{}, ErrAction
	case !bytes.Equal(s.Arguments, q.Arguments[:]):
		return Confirmed{}, ErrArguments
	case s.Policy != q.RulesVersion:
		return Confirmed{}, ErrRules
	case !d.cfg.Now().Before(until):
		return Confirmed{}, ErrExpired
	}
	return Confirmed{ID: s.ID, RequestID: s.RequestID, expires: until}, nil
}
