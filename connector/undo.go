package connector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/home"
	"siyuan-broker/connector/ledger"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/undo"
	"siyuan-broker/contract"
)

// Owner is a home as its owner opens it to take back what agents did, while the
// connector does not run: the two would not see each other's locks.
type Owner struct {
	ledger *ledger.Ledger
	points *restore.Store
	kernel *siyuan.Client
	guard  *guard.Guard
	stop   func() // ends the look after SiYuan, and waits for it
}

// readyIn bounds the wait for the first look at SiYuan.
const readyIn = 10 * time.Second

// OpenOwner opens the home. Its error says so when the connector runs, when SiYuan
// does not answer, and when it is not the pinned workspace.
func OpenOwner(ctx context.Context, cfg Config, log *slog.Logger) (*Owner, error) {
	p, err := policy.Load(cfg.Policy)
	if err != nil {
		return nil, err
	}
	h, err := home.New(home.Config{URL: cfg.URL, Pin: PinFile(cfg.Data), Policy: p, Log: log})
	if err != nil {
		return nil, err
	}
	o := &Owner{}
	if o.kernel, err = siyuan.New(siyuan.Config{BaseURL: cfg.URL, Token: siyuan.NewToken(cfg.Token), Dial: h.Dial, Logger: log}); err != nil {
		return nil, err
	}
	h.Watch(o.kernel)
	if o.ledger, o.points, err = openBooks(cfg, false); err != nil {
		o.kernel.Close()
		return nil, fmt.Errorf("%w; stop the connector before an undo", err)
	}
	o.guard = guard.New(o.kernel.Reader(), o.kernel.Writer(), guard.Options{Points: o.points, Logger: log, Settle: cfg.WriteSettle})
	running, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { h.Run(running) })
	o.stop = func() { cancel(); work.Wait() }
	if err := ready(ctx, h); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func ready(ctx context.Context, h *home.Home) error {
	ctx, cancel := context.WithTimeout(ctx, readyIn)
	defer cancel()
	for {
		select {
		case <-h.Changed():
			if err := h.Ready(); err == nil {
				return nil
			} else if contract.CodeOf(err) != contract.IndexUnavailable {
				return err
			}
		case <-ctx.Done():
			if err := h.Ready(); err != nil {
				return err
			}
			return ctx.Err()
		}
	}
}

// Close gives the home back.
func (o *Owner) Close() error {
	o.stop()
	o.kernel.Close()
	return errors.Join(o.guard.Close(), o.points.Close(), o.ledger.Close())
}

// Sittings lists what agents wrote, the newest first.
func (o *Owner) Sittings() ([]restore.Sitting, error) { return o.points.Sittings("") }

// session is the owner's: the home policy is for agents.
func (o *Owner) session(ctx context.Context) (*guard.Session, error) {
	w, err := o.guard.Workspace(ctx)
	if err != nil {
		return nil, guard.Public(err)
	}
	return o.guard.Session(w, &contract.Grant{
		V: contract.GrantVersion, Agent: contract.AgentRef{Name: "undo by the home owner"}, Default: contract.ReadWriteDelete,
	}), nil
}

// Preview tells what an undo would do. Nothing is changed.
func (o *Owner) Preview(ctx context.Context, c restore.Choice) (undo.Plan, error) {
	plan, _, err := o.plan(ctx, c)
	return plan, err
}

func (o *Owner) plan(ctx context.Context, c restore.Choice) (undo.Plan, *guard.Session, error) {
	points, err := o.points.Points(c)
	if err != nil {
		return undo.Plan{}, nil, err
	}
	s, err := o.session(ctx)
	if err != nil {
		return undo.Plan{}, nil, err
	}
	plan, err := undo.Make(ctx, s, points, c.Since)
	if err != nil {
		return undo.Plan{}, nil, guard.Public(err)
	}
	return plan, s, nil
}

// Undo does what Preview tells, judged anew. The ledger has it like every write.
func (o *Owner) Undo(ctx context.Context, c restore.Choice) (undo.Plan, error) {
	plan, s, err := o.plan(ctx, c)
	if err != nil || plan.Empty() {
		return plan, err
	}
	args, err := json.Marshal(c)
	if err != nil {
		return plan, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return plan, err
	}
	claim, err := o.ledger.Claim(ctx, ledger.Request{Scope: "home owner", ID: id.String(), Action: "undo", Args: args})
	if err != nil {
		return plan, err
	}
	defer claim.Release()
	err = plan.Apply(ctx, s, guard.Intent{RequestID: id.String(), Action: "undo", Entry: claim}, o.points, nil)
	if err != nil {
		return plan, guard.Public(err)
	}
	body, err := json.Marshal(plan)
	if err != nil {
		return plan, err
	}
	if len(body) > ledger.MaxAnswer {
		body = []byte(`{"success":true}`)
	}
	return plan, claim.Succeed(body)
}
