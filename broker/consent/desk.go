package consent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// Bounds of what waits.
const (
	perAgent       = 16  // open approvals
	perTenant      = 256 // open approvals
	waitsPerTenant = 64  // calls that wait on this node
	waitsInAll     = 4096
	storeTimeout   = 10 * time.Second
	lookAgain      = 5 * time.Second // while waiting: the net below the events

	defaultMinutes = 10
	mostMinutes    = 12 * 60 // a preview is gone after 24 h, with the rhythm of upkeep
)

// Config of a Desk. All fields but Now and Log are required.
type Config struct {
	Store tenants.Store
	Box   Box
	Bus   cluster.Bus
	Now   func() time.Time
	Log   *slog.Logger
}

// Desk is where calls wait for people, and people answer. It is safe for
// concurrent use.
type Desk struct {
	cfg  Config
	stop func()

	mu      sync.Mutex
	waits   map[waitKey]map[chan struct{}]bool
	tenants map[tenants.ID]int // calls that wait
	inAll   int
}

type waitKey struct{ tenant, approval tenants.ID }

// New makes a desk; Start lets it hear of decisions on other nodes.
func New(c Config) *Desk {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Desk{cfg: c, waits: map[waitKey]map[chan struct{}]bool{}, tenants: map[tenants.ID]int{}}
}

// in is a transaction that cannot hang.
func (d *Desk) in(ctx context.Context, tenant tenants.ID, fn func(ctx context.Context, tx tenants.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	run := func(tx tenants.Tx) error { return fn(ctx, tx) }
	return d.cfg.Store.In(ctx, tenant, run)
}

// Start listens until Stop.
func (d *Desk) Start() { d.stop = d.cfg.Bus.Subscribe(d.heard, cluster.ApprovalDecided) }

// Stop ends listening.
func (d *Desk) Stop() {
	if d.stop != nil {
		d.stop()
	}
}

// Standing is how a call stands with the people who may be asked.
type Standing string

// The standings. Only Granted lets a call be carried out, and only once.
const (
	Unasked  Standing = "unasked"
	Waiting  Standing = "waiting"
	Granted  Standing = "granted"  // and used up now
	Declined Standing = "declined" // a person said no
	Used     Standing = "used"     // the same call was let through before
	Other    Standing = "other"    // this request id was asked about with other arguments
	Lapsed   Standing = "lapsed"   // nobody answered, or the call came too late after the answer
	Stale    Standing = "stale"    // the rules have changed since the question
	Ended    Standing = "ended"    // the agent's access was taken back since
)

// Claim looks whether a call may be carried out because a person said so in the
// console, and uses that up. The approval is the newest of the request.
func (d *Desk) Claim(ctx context.Context, q Question) (st Standing, a tenants.Approval, err error) {
	now := d.cfg.Now()
	err = d.in(ctx, q.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if a, err = tx.ApprovalOf(ctx, q.Agent, q.RequestID); errors.Is(err, tenants.ErrNotFound) {
			st = Unasked
			return nil
		} else if err != nil {
			return err
		}
		if st = standing(a, q, now); st != Granted {
			return nil
		}
		switch err := q.inForce(ctx, tx, now); {
		case errors.Is(err, ErrEnded):
			st = Ended
			return nil
		case errors.Is(err, ErrRules):
			st = Stale
			return nil
		case err != nil:
			return err
		}
		return use(ctx, tx, q, a, now)
	})
	if err != nil {
		return "", a, fmt.Errorf("claim approval: %w", err)
	}
	return st, a, nil
}

// use uses an approval up and does what goes with that.
func use(ctx context.Context, tx tenants.Tx, q Question, a tenants.Approval, now time.Time) error {
	if err := tx.UseApproval(ctx, a.ID, now); err != nil || q.Carry == nil {
		return err
	}
	return q.Carry(ctx, tx, a)
}

func standing(a tenants.Approval, q Question, now time.Time) Standing {
	switch {
	case a.Tool != q.Tool, a.Action != q.Action, a.Arguments != q.Arguments, a.MemberID != q.Member, a.InstanceID != q.Instance:
		return Other
	case a.State == tenants.ApprovalUsed:
		return Used
	case a.State == tenants.ApprovalDenied && a.DecidedBy != (tenants.ID{}):
		return Declined
	case a.RulesVersion != q.RulesVersion:
		return Stale
	case !now.Before(a.ExpiresAt) || a.State == tenants.ApprovalDenied:
		return Lapsed
	case a.State == tenants.ApprovalApproved:
		return Granted
	}
	return Waiting
}

// Life is how long an approval waits in a tenant.
func Life(l tenants.Limits) time.Duration {
	m := l.ConsentMinutes
	if m <= 0 {
		m = defaultMinutes
	}
	return time.Duration(min(m, mostMinutes)) * time.Minute
}

// Ask puts a question before the people of the tenant. tenants.ErrTooMany when too
// many wait already.
func (d *Desk) Ask(ctx context.Context, q Question, p contract.Preview, life time.Duration) (tenants.Approval, error) {
	a := d.approval(q, life)
	var err error
	if a.Preview, err = json.Marshal(p.Clean()); err != nil {
		return a, fmt.Errorf("ask for approval: %w", err)
	}
	err = d.in(ctx, q.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		return tx.OpenApproval(ctx, a, tenants.ApprovalBounds{PerAgent: perAgent, InAll: perTenant})
	})
	if err != nil {
		return a, fmt.Errorf("ask for approval: %w", err)
	}
	return a, nil
}

// Keep notes that a call was agreed to but not carried out yet, because the home
// asks its owner too: the same call needs no second agreement here.
func (d *Desk) Keep(ctx context.Context, q Question, life time.Duration) error {
	a := d.approval(q, life)
	a.DecidedAt = a.CreatedAt
	if err := d.in(ctx, q.Tenant, func(ctx context.Context, tx tenants.Tx) error { return tx.KeepApproval(ctx, a) }); err != nil {
		return fmt.Errorf("keep approval: %w", err)
	}
	return nil
}

func (d *Desk) approval(q Question, life time.Duration) tenants.Approval {
	now := d.cfg.Now()
	return tenants.Approval{
		ID: tenants.NewID(), InstanceID: q.Instance, MemberID: q.Member, AgentID: q.Agent, RequestID: q.RequestID, Tool: q.Tool, Action: q.Action,
		Arguments: q.Arguments, RulesVersion: q.RulesVersion, CreatedAt: now, ExpiresAt: now.Add(life),
	}
}

// Spend uses a sealed confirmation of a call up; ErrUsed when somebody did before,
// on any node, ErrRules and ErrEnded.
func (d *Desk) Spend(ctx context.Context, q Question, c Confirmed) error {
	now := d.cfg.Now()
	err := d.in(ctx, q.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		first, err := tx.SpendConfirmation(ctx, c.ID, c.expires)
		switch {
		case err != nil:
			return err
		case !first:
			return ErrUsed
		}
		return q.inForce(ctx, tx, now)
	})
	if err != nil {
		return fmt.Errorf("spend confirmation: %w", err)
	}
	return nil
}
