package connector

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"siyuan-broker/connector/errand"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/undo"
	"siyuan-broker/contract"
)

// The errands of `siyuan-connector undo`.
const (
	doSittings = "undo.list"
	doPreview  = "undo.preview"
	doUndo     = "undo.apply"
)

// undoArgs are those of a preview and of an undo.
type undoArgs struct {
	Choice restore.Choice `json:"choice"`
	Seen   string         `json:"seen,omitempty"`
}

// maxUndone bounds the documents of one plan in a running connector: its answer is
// one file, and other commands wait meanwhile.
const maxUndone = 2000

// running is the home of a connector that runs, which does the work.
type running struct{ errands *errand.Folder }

func ask[T any](ctx context.Context, r running, do string, args any) (out T, err error) {
	body, err := r.errands.Ask(ctx, do, args)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("the running connector answered what this command does not understand; are both of the same version? %w", err)
	}
	return out, nil
}

func (r running) Sittings(ctx context.Context) ([]restore.Sitting, error) {
	return ask[[]restore.Sitting](ctx, r, doSittings, struct{}{})
}

func (r running) Preview(ctx context.Context, c restore.Choice) (undo.Plan, error) {
	return ask[undo.Plan](ctx, r, doPreview, undoArgs{Choice: c})
}

func (r running) Undo(ctx context.Context, c restore.Choice, seen string) (undo.Plan, error) {
	return ask[undo.Plan](ctx, r, doUndo, undoArgs{Choice: c, Seen: seen})
}

func (r running) Close() error { return nil }

// doErrand does what commands of the owner ask. An errand's id is the request id of
// its write.
func (c *Connector) doErrand(ctx context.Context, e errand.Errand) (any, error) {
	way := wayBack{ledger: c.ledger, points: c.points, guard: c.guard, most: maxUndone}
	if e.Do == doSittings {
		return way.Sittings(ctx)
	}
	var args undoArgs
	if err := json.Unmarshal(e.Args, &args); err != nil {
		return nil, fmt.Errorf("read what %s is asked: %w", e.Do, err)
	}
	if err := c.recognised(ctx); err != nil {
		return nil, err
	}
	switch e.Do {
	case doPreview:
		return way.Preview(ctx, args.Choice)
	case doUndo:
		return way.undoAs(ctx, e.ID, args.Choice, args.Seen)
	}
	return nil, contract.Fail(contract.Unsupported, "The running connector knows no %q; it is of another version than this command. Start it anew.", e.Do)
}

// recognised waits a moment for a SiYuan that was just started, or for the first look
// of a connector that was.
func (c *Connector) recognised(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyIn)
	defer cancel()
	tick := time.NewTicker(readyLook)
	defer tick.Stop()
	for {
		err := c.home.Ready()
		if err == nil {
			return nil
		}
		c.home.Lost() // look again now rather than at the next turn
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

const readyLook = 500 * time.Millisecond
