package activity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/consent"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// Store is the part of tenants.Store that is looked at.
type Store interface {
	In(ctx context.Context, tenant tenants.ID, fn func(tenants.Tx) error) error
}

// Snapshots knows what agents may do; *admission.Cache does.
type Snapshots interface {
	Get(ctx context.Context, tenant, agent tenants.ID) (*admission.Snapshot, error)
	InPlace(ctx context.Context, tenant, agent, person tenants.ID, role tenants.Role) (*admission.Snapshot, error)
}

// Recorder takes the record of a call; *recorder.Recorder does.
type Recorder interface {
	Record(c tenants.Call)
}

// Limit takes one call per minute from what limits a caller's use of a tool, over
// all nodes; what names the limit that is used up, "" where none is.
type Limit func(ctx context.Context, tenant, caller, tool string, perMinute int) (what string, retryAfter time.Duration)

// Relay carries calls home.
type Relay interface {
	Call(ctx context.Context, tenant, instance string, call contract.Call, idempotent bool, progress func(contract.Progress)) contract.Result
}

// Config of a Desk. All fields but Limit, Now and Log are required.
type Config struct {
	Store       Store
	Snapshots   Snapshots
	Relay       Relay
	Recorder    Recorder
	Limit       Limit // nil: calls are not counted
	Consent     *consent.Desk
	CallTimeout time.Duration // of one call home
	Now         func() time.Time
	Log         *slog.Logger
}

// Desk asks homes about what agents wrote, for people. It is safe for concurrent
// use and keeps nothing between calls.
type Desk struct{ cfg Config }

// NewDesk makes a desk.
func NewDesk(c Config) *Desk {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Desk{c}
}

// storeTimeout bounds one look at the store.
const storeTimeout = 10 * time.Second

// ErrClosed means that the tenant or the instance is switched off, so that its home
// is not asked.
var ErrClosed = errors.New("the space or its workspace is switched off")

// subject is one agent, before a person who may look at what it wrote. There is no
// other way to one than Desk.subject.
type subject struct {
	person   tenants.ID
	agent    tenants.Agent
	member   string // e-mail of whom the agent works for; empty: of the person
	instance string
	ended    bool // the agent has no access any more: the person acts within their own
	snap     *admission.Snapshot
}

// subject finds an agent for a person: their own, anybody's for those who manage
// the tenant. tenants.ErrNotFound for all others, ErrClosed where the home is not to
// be asked.
//
// Homes are asked with the agent's own grant. It never reaches further than the
// person: the member's shares bound it where the person is that member, and who
// manages a tenant reads in it whatever the tenant's levels leave, which bound it
// too. An agent whose access has ended has no grant; the person's own takes its
// place.
func (d *Desk) subject(ctx context.Context, tenant, person, agent tenants.ID) (of subject, err error) {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	of.person = person
	var m tenants.Membership
	err = d.cfg.Store.In(bounded, tenant, func(tx tenants.Tx) (err error) {
		if m, err = tx.Member(bounded, person); err != nil {
			return err
		}
		if of.agent, err = tx.Agent(bounded, agent); err != nil {
			return err
		}
		if of.agent.MemberID != person {
			if !m.Role.Manages() {
				return tenants.ErrNotFound // others' agents do not exist for a member
			}
			owner, err := tx.Member(bounded, of.agent.MemberID)
			if err != nil && !errors.Is(err, tenants.ErrNotFound) {
				return err
			}
			of.member = cmp.Or(owner.User.Email, "?")
		}
		in, err := tx.Instance(bounded, of.agent.InstanceID)
		of.instance = contract.PlainText(in.Name, contract.PreviewRunes)
		return err
	})
	if err != nil {
		return of, fmt.Errorf("look at agent: %w", err)
	}
	if of.snap, err = d.cfg.Snapshots.Get(bounded, tenant, agent); err != nil {
		return of, fmt.Errorf("look at agent: %w", err)
	}
	if of.ended = of.snap.InForce(d.cfg.Now()).EndsAccess(); of.ended {
		if of.snap, err = d.cfg.Snapshots.InPlace(bounded, tenant, agent, person, m.Role); err != nil {
			return of, fmt.Errorf("look at agent: %w", err)
		}
	}
	if of.snap.InForce(d.cfg.Now()) != admission.Permitted {
		return of, ErrClosed
	}
	return of, nil
}

// Choice is what is taken back: a sitting, a document, or one in the other. The
// zero value is everything.
type Choice struct {
	Sitting  int    // 0: any
	Document string // "": any
}

func (c Choice) sitting() *int {
	if c.Sitting == 0 {
		return nil
	}
	return &c.Sitting
}

// changes is one page of what an agent wrote, as the home tells it now.
func (d *Desk) changes(ctx context.Context, of subject, c Choice, page, size int) (out tools.TimelineListChangesOut, failed *contract.Error) {
	in := tools.TimelineListChangesIn{Sitting: c.sitting(), DocumentID: c.Document, PageIn: tools.PageIn{Page: &page, PageSize: &size}}
	args, failed := settled(tools.TimelineListChanges.Action, in)
	if failed != nil {
		return out, failed
	}
	v := d.visit(of, contract.Call{Action: tools.TimelineListChanges.Name, Args: args})
	failed = v.count(ctx)
	if failed == nil {
		failed = v.home(ctx, contract.MethodCall, true, &out)
	}
	v.end(failed)
	return out, failed
}

// settled are arguments as they travel.
func settled(a *tools.Action, in any) (json.RawMessage, *contract.Error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, contract.Internalf(err, "encode arguments of %s", a.ID())
	}
	return a.Validate(raw)
}

// undo takes back what a person saw and confirmed, at most once for one request.
// A repeated request is told what came of the first.
func (d *Desk) undo(ctx context.Context, of subject, c Choice, request tenants.ID) (out tools.TimelineUndoOut, err error) {
	args, failed := settled(tools.TimelineUndo.Action, tools.TimelineUndoIn{Sitting: c.sitting(), DocumentID: c.Document})
	if failed != nil {
		return out, failed
	}
	v := d.visit(of, contract.Call{Action: tools.TimelineUndo.Name, Args: args, RequestID: request.String()})
	defer func() {
		if err == nil {
			v.end(nil)
		} else {
			v.end(contract.AsError(err))
		}
	}()
	if failed := v.count(ctx); failed != nil {
		return out, failed
	}
	q, err := question(of, c, v.call, request)
	if err != nil {
		return out, err
	}
	if v.call.Replay, err = d.agree(ctx, v, q); err != nil {
		return out, err
	}
	failed = v.home(ctx, contract.MethodCall, false, &out)
	if failed == nil {
		return out, nil
	}
	if contract.CodeOf(failed) == contract.ConfirmationRequired && !v.call.Replay { // the home asks its owner too: nothing was done
		if err := d.cfg.Consent.Keep(context.WithoutCancel(ctx), q, consent.Life(of.snap.Limits)); err != nil {
			d.cfg.Log.WarnContext(ctx, "a person will be asked again", "error", err)
		}
	}
	return out, failed
}

// question is what the person confirmed: exactly this call of the agent.
func question(of subject, c Choice, call contract.Call, request tenants.ID) (q consent.Question, err error) {
	p := of.snap.Principal
	q = consent.Question{
		Tenant: p.Tenant, Member: p.Member, Agent: p.Agent, Instance: p.Instance, Tool: tools.TimelineUndo.Tool, Action: call.Action,
		RulesVersion: of.snap.RulesVersion, RequestID: request, By: of.person,
		Carry: func(ctx context.Context, tx tenants.Tx, agreed tenants.Approval) error {
			return note(ctx, tx, of.person, c, agreed)
		},
	}
	q.Arguments, err = consent.Digest(call.Args)
	return q, err
}

// agree puts the person's confirmation where every agreement to a call of an agent
// is kept, with what the home says the undo would do, and uses it up; used says that
// this was done before.
func (d *Desk) agree(ctx context.Context, v *visit, q consent.Question) (used bool, err error) {
	standing, _, err := d.cfg.Consent.Claim(ctx, q)
	if err == nil && standing == consent.Unasked {
		var shown contract.Preview
		if failed := v.home(ctx, contract.MethodPreview, true, &shown); failed != nil {
			return false, failed
		}
		standing, err = d.cfg.Consent.Agree(ctx, q, shown, consent.Life(v.of.snap.Limits))
	}
	switch {
	case err != nil:
		return false, err
	case standing == consent.Used:
		return true, nil
	case standing != consent.Granted:
		return false, contract.Fail(contract.ConfirmationInvalid, "The confirmation is not good for this undo (%s).", standing)
	}
	return false, nil
}

// note is the line of the audit log: who took back what of which agent.
func note(ctx context.Context, tx tenants.Tx, person tenants.ID, c Choice, agreed tenants.Approval) error {
	if agreed.DecidedBy == (tenants.ID{}) {
		return nil // kept while the home asked its owner: it has its line already
	}
	detail, err := json.Marshal(map[string]any{
		"sitting": c.Sitting, "document": c.Document, "request": agreed.RequestID.String(), "approval": agreed.ID.String(), "instance": agreed.InstanceID.String(),
	})
	if err != nil {
		return fmt.Errorf("note an undo: %w", err)
	}
	return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "member", ActorID: person, Verb: "agent.undo", Object: "agent:" + agreed.AgentID.String(), Detail: detail})
}
