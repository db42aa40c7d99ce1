package consent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// shownAtOnce bounds one look at what waits; more come when those are answered.
const shownAtOnce = 50

// ErrGone means that there is nothing of that id that the person could answer: it
// is not theirs, was answered, has expired, or its agent has no access any more.
var ErrGone = errors.New("this question is not open any more")

// Pending is a call that waits, as the person sees it who may answer.
type Pending struct {
	tenants.Approval
	Shown    contract.Preview
	Unknown  bool // what it would do cannot be shown any more
	Agent    string
	Member   string // e-mail of whom the agent works for; empty: of the person who looks
	Instance string
}

// mayDecide says who answers: those who manage the tenant, and members for their
// own agents unless the action is for the former alone.
func mayDecide(m tenants.Membership, a tenants.Approval) bool {
	if m.Role.Manages() {
		return true
	}
	action, ok := tools.New().Action(a.Tool, a.Action)
	return ok && action.Agreement != tools.InConsole && a.MemberID == m.User.ID
}

// Pending lists what a person may answer in a tenant, the oldest first.
// tenants.ErrNotFound for who is no member.
func (d *Desk) Pending(ctx context.Context, tenant, person tenants.ID) (all []Pending, err error) {
	err = d.in(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
		m, err := tx.Member(ctx, person)
		if err != nil {
			return err
		}
		own := person
		if m.Role.Manages() {
			own = tenants.ID{}
		}
		open, err := tx.OpenApprovals(ctx, own, d.cfg.Now(), shownAtOnce)
		if err != nil {
			return err
		}
		for _, a := range open {
			p, err := describe(ctx, tx, a, d.cfg.Now())
			switch {
			case errors.Is(err, ErrGone):
				continue
			case err != nil:
				return err
			}
			if p.MemberID == person {
				p.Member = ""
			}
			if mayDecide(m, a) {
				all = append(all, p)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pending approvals: %w", err)
	}
	return all, nil
}

// One is a call that waits, to who may answer it; ErrGone.
func (d *Desk) One(ctx context.Context, tenant, approval, person tenants.ID) (p Pending, err error) {
	now := d.cfg.Now()
	err = d.in(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
		m, err := tx.Member(ctx, person)
		if err != nil {
			return err
		}
		a, err := tx.Approval(ctx, approval)
		switch {
		case errors.Is(err, tenants.ErrSealed):
			a.Preview = nil
		case err != nil:
			return err
		}
		if !mayDecide(m, a) || a.State != tenants.ApprovalOpen || !now.Before(a.ExpiresAt) {
			return ErrGone
		}
		if p, err = describe(ctx, tx, a, now); p.MemberID == person {
			p.Member = ""
		}
		return err
	})
	switch {
	case errors.Is(err, tenants.ErrNotFound), errors.Is(err, ErrGone):
		return p, ErrGone
	case err != nil:
		return p, fmt.Errorf("look at approval: %w", err)
	}
	return p, nil
}

// describe adds the names; ErrGone when the agent may not act any more.
func describe(ctx context.Context, tx tenants.Tx, a tenants.Approval, now time.Time) (Pending, error) {
	p := Pending{Approval: a}
	agent, err := tx.Agent(ctx, a.AgentID)
	if err != nil {
		return p, err
	}
	if ended(agent, now) {
		return p, ErrGone
	}
	member, err := tx.Member(ctx, a.MemberID)
	if errors.Is(err, tenants.ErrNotFound) {
		return p, ErrGone
	} else if err != nil {
		return p, err
	}
	instance, err := tx.Instance(ctx, a.InstanceID)
	if err != nil {
		return p, err
	}
	p.Unknown = json.Unmarshal(a.Preview, &p.Shown) != nil
	p.Shown = p.Shown.Clean()
	p.Preview = nil
	p.Agent = cmp.Or(contract.PlainText(agent.Name, contract.PreviewRunes), "?")
	p.Member, p.Instance = member.User.Email, contract.PlainText(instance.Name, contract.PreviewRunes)
	return p, nil
}

// Agree is a person's yes to a call that they make themselves, in an agent's place
// (Question.By): it is put, answered and used up at once, so that nobody else can
// use it. Any Standing but Granted means that nothing was. tenants.ErrTooMany, and
// ErrGone for who may not agree to it.
func (d *Desk) Agree(ctx context.Context, q Question, shown contract.Preview, life time.Duration) (st Standing, err error) {
	a := d.approval(q, life)
	if a.Preview, err = json.Marshal(shown.Clean()); err != nil {
		return "", fmt.Errorf("agree: %w", err)
	}
	err = d.in(ctx, q.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		m, err := tx.Member(ctx, q.By)
		if err != nil {
			return err
		}
		if !mayDecide(m, a) {
			return ErrGone
		}
		before, err := tx.ApprovalOf(ctx, q.Agent, q.RequestID)
		if err == nil { // somebody was quicker, with the same form
			st = standing(before, q, a.CreatedAt)
			return nil
		} else if !errors.Is(err, tenants.ErrNotFound) {
			return err
		}
		if err := tx.OpenApproval(ctx, a, tenants.ApprovalBounds{PerAgent: perAgent, InAll: perTenant}); err != nil {
			return err
		}
		if err := answer(ctx, tx, a, q.By, true, a.CreatedAt); err != nil {
			return err
		}
		a.DecidedBy, st = q.By, Granted
		return use(ctx, tx, q, a, a.CreatedAt)
	})
	switch {
	case errors.Is(err, tenants.ErrNotFound), errors.Is(err, ErrGone):
		return "", ErrGone
	case err != nil:
		return "", fmt.Errorf("agree: %w", err)
	}
	return st, nil
}

// answer notes a person's answer, with its line in the audit log.
func answer(ctx context.Context, tx tenants.Tx, a tenants.Approval, person tenants.ID, yes bool, now time.Time) error {
	if err := tx.DecideApproval(ctx, a.ID, person, yes, now); err != nil {
		return err
	}
	verb := "approval.deny"
	if yes {
		verb = "approval.approve"
	}
	detail, err := json.Marshal(map[string]string{"action": a.Tool + "." + a.Action, "agent": a.AgentID.String(), "request": a.RequestID.String()})
	if err != nil {
		return err
	}
	return tx.Audit(ctx, tenants.AuditEntry{ActorKind: "member", ActorID: person, Verb: verb, Object: "approval:" + a.ID.String(), Detail: detail})
}

// Decide is a person's answer. It reaches a waiting call on any node at once.
// ErrGone.
func (d *Desk) Decide(ctx context.Context, tenant, approval, person tenants.ID, yes bool) error {
	now := d.cfg.Now()
	err := d.in(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
		m, err := tx.Member(ctx, person)
		if err != nil {
			return err
		}
		a, err := tx.Approval(ctx, approval)
		if err != nil && !errors.Is(err, tenants.ErrSealed) {
			return err
		}
		if !mayDecide(m, a) {
			return ErrGone // others' questions do not exist for a member
		}
		if _, err := describe(ctx, tx, a, now); err != nil {
			return err
		}
		return answer(ctx, tx, a, person, yes, now)
	})
	switch {
	case errors.Is(err, tenants.ErrNotFound), errors.Is(err, ErrGone):
		return ErrGone
	case err != nil:
		return fmt.Errorf("decide approval: %w", err)
	}
	e := cluster.Event{Kind: cluster.ApprovalDecided, Tenant: tenant.String(), Subject: approval.String()}
	if err := d.cfg.Bus.Publish(ctx, e); err != nil {
		d.cfg.Log.WarnContext(ctx, "other nodes hear of a decision only when they look again", "tenant", tenant, "error", err)
	}
	return nil
}
