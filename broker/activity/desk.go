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
}

// Relay carries calls home.
type Relay interface {
	Call(ctx context.Context, tenant, instance string, call contract.Call, idempotent bool, progress func(contract.Progress)) contract.Result
}

// Config of a Desk. All fields but Now and Log are required.
type Config struct {
	Store       Store
	Snapshots   Snapshots
	Relay       Relay
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

// ErrEnded means that the agent has no access any more, so that nothing is asked
// or done in its place.
var ErrEnded = errors.New("the agent has no access any more")

// subject is one agent, before a person who may look at what it wrote. There is no
// other way to one than Desk.subject.
type subject struct {
	person   tenants.ID
	agent    tenants.Agent
	member   string // e-mail of whom the agent works for; empty: of the person
	instance string
	snap     *admission.Snapshot
}

// subject finds an agent for a person: their own, anybody's for those who manage
// the tenant. tenants.ErrNotFound for all others, ErrEnded where it has no access.
//
// Homes are asked with the agent's own grant. It never reaches further than the
// person: the member's shares bound it where the person is that member, and who
// manages a tenant reads in it whatever the tenant's levels leave, which bound it
// too.
func (d *Desk) subject(ctx context.Context, tenant, person, agent tenants.ID) (of subject, err error) {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	of.person = person
	err = d.cfg.Store.In(bounded, tenant, func(tx tenants.Tx) error {
		m, err := tx.Member(bounded, person)
		if err != nil {
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
	if of.snap.InForce(d.cfg.Now()) != admission.Permitted {
		return of, ErrEnded
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
	return out, d.home(ctx, of, contract.Call{Action: tools.TimelineListChanges.Name, Args: args}, true, &out)
}

// settled are arguments as they travel.
func settled(a *tools.Action, in any) (json.RawMessage, *contract.Error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, contract.Internalf(err, "encode arguments of %s", a.ID())
	}
	return a.Validate(raw)
}

// home asks an agent's home in the agent's scope.
func (d *Desk) home(ctx context.Context, of subject, call contract.Call, idempotent bool, out any) *contract.Error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.CallTimeout)
	defer cancel()
	p := of.snap.Principal
	call.Server, call.Tool, call.Grant = contract.DefaultServer, tools.TimelineUndo.Tool, of.snap.Grant(d.cfg.Now())
	if call.Method == "" {
		call.Method = contract.MethodCall
	}
	if call.RequestID == "" {
		call.RequestID = tenants.NewID().String()
	}
	call.ResultChars = of.snap.Limits.ResultChars
	r := d.cfg.Relay.Call(ctx, p.Tenant.String(), p.Instance.String(), call, idempotent, nil)
	if r.Err != nil {
		return r.Err
	}
	if err := json.Unmarshal(r.Body, out); err != nil {
		return contract.Internalf(err, "read the answer of %s", call.Action)
	}
	return nil
}

// undo takes back what a person saw and confirmed, at most once for one request.
// A repeated request is told what came of the first.
func (d *Desk) undo(ctx context.Context, of subject, c Choice, request tenants.ID) (out tools.TimelineUndoOut, err error) {
	args, failed := settled(tools.TimelineUndo.Action, tools.TimelineUndoIn{Sitting: c.sitting(), DocumentID: c.Document})
	if failed != nil {
		return out, failed
	}
	call := contract.Call{Action: tools.TimelineUndo.Name, Args: args, RequestID: request.String()}
	q, err := question(of, c, call, request)
	if err != nil {
		return out, err
	}
	if call.Replay, err = d.agree(ctx, of, call, q); err != nil {
		return out, err
	}
	failed = d.home(ctx, of, call, false, &out)
	if failed == nil {
		return out, nil
	}
	if contract.CodeOf(failed) == contract.ConfirmationRequired && !call.Replay { // the home asks its owner too: nothing was done
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
		RulesVersion: of.snap.RulesVersion, RequestID: request,
		Carry: func(ctx context.Context, tx tenants.Tx, agreed tenants.Approval) error {
			return note(ctx, tx, of.person, c, agreed)
		},
	}
	q.Arguments, err = consent.Digest(call.Args)
	return q, err
}

// agree puts the person's confirmation where every agreement to a call of an agent
// is kept, and uses it up; used says that this was done before.
func (d *Desk) agree(ctx context.Context, of subject, call contract.Call, q consent.Question) (used bool, err error) {
	standing, _, err := d.cfg.Consent.Claim(ctx, q)
	if err != nil || standing == consent.Used {
		return standing == consent.Used, err
	}
	if standing == consent.Unasked {
		if standing, err = d.confirm(ctx, of, call, q); err != nil {
			return false, err
		}
	}
	if standing != consent.Granted {
		return false, contract.Fail(contract.ConfirmationInvalid, "The confirmation is not good for this undo (%s).", standing)
	}
	return false, nil
}

// confirm opens the question with what the home says the undo would do, answers it
// for the person, and claims the answer.
func (d *Desk) confirm(ctx context.Context, of subject, call contract.Call, q consent.Question) (consent.Standing, error) {
	var shown contract.Preview
	ask := call
	ask.Method = contract.MethodPreview
	if failed := d.home(ctx, of, ask, true, &shown); failed != nil {
		return "", failed
	}
	a, err := d.cfg.Consent.Ask(ctx, q, shown, consent.Life(of.snap.Limits))
	if err != nil {
		return "", err
	}
	if err := d.cfg.Consent.Decide(ctx, q.Tenant, a.ID, of.person, true); err != nil {
		return "", err
	}
	standing, _, err := d.cfg.Consent.Claim(ctx, q)
	return standing, err
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
