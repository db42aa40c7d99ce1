package connector

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/connector/errand"
	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/home"
	"siyuan-broker/connector/ledger"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/undo"
	"siyuan-broker/contract"
)

// WayBack is a home as its owner opens it to take back what agents did.
type WayBack interface {
	// Sittings lists what agents wrote, the newest first.
	Sittings(ctx context.Context) ([]restore.Sitting, error)
	// Preview tells what an undo would do. Nothing is changed.
	Preview(ctx context.Context, c restore.Choice) (undo.Plan, error)
	// Undo does what Preview tells, judged anew. With seen, the stamp of a plan that
	// the owner agreed to, it does that plan or, as state_changed, nothing.
	Undo(ctx context.Context, c restore.Choice, seen string) (undo.Plan, error)
	// Close gives the home back.
	Close() error
}

// OpenWayBack opens the home: through the connector that runs, which alone has the
// locks of documents under way, else by itself. Its error says so when SiYuan does
// not answer, and when it is not the pinned workspace.
func OpenWayBack(ctx context.Context, cfg Config, log *slog.Logger) (WayBack, error) {
	l, points, err := openBooks(cfg, false)
	if ledger.InUse(err) {
		return running{errand.In(cfg.Data, time.Now)}, nil
	}
	if err != nil {
		return nil, err
	}
	o, err := openStopped(ctx, cfg, log, wayBack{ledger: l, points: points})
	if err != nil {
		return nil, errors.Join(err, points.Close(), l.Close())
	}
	return o, nil
}

// stopped is a home whose connector does not run, and cannot be started meanwhile.
type stopped struct {
	wayBack
	kernel *siyuan.Client
	stop   func() // ends the look after SiYuan, and waits for it
}

// readyIn bounds the wait for the first look at SiYuan.
const readyIn = 10 * time.Second

func openStopped(ctx context.Context, cfg Config, log *slog.Logger, books wayBack) (*stopped, error) {
	p, err := policy.Load(cfg.Policy)
	if err != nil {
		return nil, err
	}
	h, err := home.New(home.Config{URL: cfg.URL, Pin: PinFile(cfg.Data), Policy: p, Log: log})
	if err != nil {
		return nil, err
	}
	o := &stopped{wayBack: books}
	if o.kernel, err = siyuan.New(siyuan.Config{BaseURL: cfg.URL, Token: siyuan.NewToken(cfg.Token), Dial: h.Dial, Logger: log}); err != nil {
		return nil, err
	}
	h.Watch(o.kernel)
	o.guard = guard.New(o.kernel.Reader(), o.kernel.Writer(), guard.Options{Points: o.points, Logger: log, Settle: cfg.WriteSettle})
	looking, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { h.Run(looking) })
	o.stop = func() { cancel(); work.Wait() }
	if err := ready(ctx, h); err != nil {
		return nil, errors.Join(err, o.leave())
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

// leave ends what works with SiYuan; the books stay open.
func (o *stopped) leave() error {
	o.stop()
	o.kernel.Close()
	return o.guard.Close()
}

func (o *stopped) Close() error {
	return errors.Join(o.leave(), o.points.Close(), o.ledger.Close())
}

// wayBack does what the owner asks, with the books and the guard of the one process
// that writes.
type wayBack struct {
	ledger *ledger.Ledger
	points *restore.Store
	guard  *guard.Guard
	most   int // documents of one plan; 0: as many as there are
}

func (o *wayBack) Sittings(context.Context) ([]restore.Sitting, error) { return o.points.Sittings("") }

// session is the owner's: the home policy is for agents.
func (o *wayBack) session(ctx context.Context) (*guard.Session, error) {
	w, err := o.guard.Workspace(ctx)
	if err != nil {
		return nil, guard.Public(err)
	}
	return o.guard.Session(w, &contract.Grant{
		V: contract.GrantVersion, Agent: contract.AgentRef{Name: "undo by the home owner"}, Default: contract.ReadWriteDelete,
	}), nil
}

func (o *wayBack) Preview(ctx context.Context, c restore.Choice) (undo.Plan, error) {
	plan, _, err := o.plan(ctx, c)
	return plan, err
}

// plan judges a choice. What undos wrote is meant only where their sitting is named:
// a second undo since the same time takes nothing back and forth.
func (o *wayBack) plan(ctx context.Context, c restore.Choice) (undo.Plan, *guard.Session, error) {
	c.NoUndo = c.Sitting == 0
	points, err := o.points.Points(c)
	if err != nil {
		return undo.Plan{}, nil, err
	}
	docs := map[string]bool{}
	for _, p := range points {
		docs[p.Doc] = true
	}
	if o.most > 0 && len(docs) > o.most {
		return undo.Plan{}, nil, contract.Fail(contract.TooLarge,
			"These are the changes of %d documents, more than the %d that a running connector takes back at once. Name one sitting, one document or a later time, or stop the connector first.", len(docs), o.most)
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

func (o *wayBack) Undo(ctx context.Context, c restore.Choice, seen string) (undo.Plan, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return undo.Plan{}, err
	}
	return o.undoAs(ctx, id.String(), c, seen)
}

// undoAs is Undo under a request id. The ledger has it like every write.
func (o *wayBack) undoAs(ctx context.Context, id string, c restore.Choice, seen string) (undo.Plan, error) {
	plan, s, err := o.plan(ctx, c)
	if err != nil {
		return plan, err
	}
	if seen != "" && plan.Stamp != seen {
		return plan, contract.Fail(contract.StateChanged, "What this undo would do changed since you saw its preview, so nothing was done. Look at it again.")
	}
	if plan.Empty() {
		return plan, nil
	}
	args, err := json.Marshal(c)
	if err != nil {
		return plan, err
	}
	claim, err := o.ledger.Claim(ctx, ledger.Request{Scope: "home owner", ID: id, Action: "undo", Args: args})
	if err != nil {
		return plan, err
	}
	defer claim.Release()
	s.InConversation(restore.UndoConversation(id))
	err = plan.Apply(ctx, s, guard.Intent{RequestID: id, Action: "undo", Entry: claim}, o.points, nil)
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
