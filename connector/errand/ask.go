package errand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/contract"
)

// ErrNotBegun means that the connector did not begin an errand in time and never
// will: nothing was done.
var ErrNotBegun = errors.New("the running connector did not begin within 10 s, and now will not: it is busy with another command, is just ending, or hangs; nothing was done, try again")

// Ask has the connector do an errand and waits for its answer. When ctx ends before
// it was begun, it is withdrawn.
//
// Errors: ErrNotBegun, outcome_unknown when the answer does not come or ctx ends
// after the errand was begun, and what the connector answers.
func (f *Folder) Ask(ctx context.Context, do string, args any) (json.RawMessage, error) {
	e, err := f.leave(do, args)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		begun := !f.has(e.ID, waiting)
		if begun {
			if body, over, err := f.outcome(e); over {
				return body, err
			}
		}
		switch {
		case ctx.Err() != nil && begun:
			return nil, unknown("You ended this command while the connector was at work on %q; it goes on.", do)
		case ctx.Err() != nil && f.withdraw(e):
			return nil, fmt.Errorf("nothing was done: %w", ctx.Err())
		case !begun && !f.now().Before(e.Expires) && f.withdraw(e):
			return nil, ErrNotBegun
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// leave puts an errand into the folder.
func (f *Folder) leave(do string, args any) (Errand, error) {
	all, err := f.list()
	if err != nil {
		return Errand{}, err
	}
	others := 0
	for _, e := range all {
		if e.kind == waiting {
			others++
		}
	}
	if others >= MaxWaiting {
		return Errand{}, fmt.Errorf("%d other commands wait for the connector; try again when they have ended", others)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Errand{}, err
	}
	body, err := json.Marshal(args)
	if err != nil {
		return Errand{}, err
	}
	now := f.now()
	e := Errand{ID: id.String(), Do: do, Args: body, Asked: now.UTC(), Expires: now.Add(Life).UTC()}
	if err := f.put(f.file(e.ID, waiting), e, maxErrand); err != nil {
		return e, fmt.Errorf("ask the running connector: %w", err)
	}
	return e, nil
}

// withdraw takes an errand back. It reports false when it was begun before.
func (f *Folder) withdraw(e Errand) bool { return os.Remove(f.file(e.ID, waiting)) == nil }

// outcome is what became of an errand that does not wait any more; over means that
// nothing more will come.
func (f *Folder) outcome(e Errand) (body json.RawMessage, over bool, err error) {
	info, atWork := os.Stat(f.file(e.ID, taken)) // first: the answer is there before it goes
	var a answer
	name := f.file(e.ID, answered)
	switch err := get(name, &a, maxAnswer); {
	case err == nil:
		_ = remove(name)
		if a.Err != nil {
			return nil, true, a.Err
		}
		return a.Body, true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, true, unknown("The answer of the connector to %q cannot be read.", e.Do).WithCause(err)
	case atWork != nil:
		return nil, true, unknown("The connector ended or was started anew before it answered %q.", e.Do)
	case f.now().Sub(info.ModTime()) > quiet:
		return nil, true, unknown("The connector ended while it was at work on %q.", e.Do)
	}
	return nil, false, nil
}

func unknown(format string, args ...any) *contract.Error {
	return contract.Fail(contract.OutcomeUnknown, format+" Before you repeat it, look at what was done.", args...)
}
