package errand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/contract"
)

// Handler does an errand. Its answer is shown to the owner as JSON.
type Handler func(ctx context.Context, e Errand) (any, error)

// Serve does the errands of the folder one after the other until ctx ends.
func (f *Folder) Serve(ctx context.Context, log *slog.Logger, do Handler) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := f.turn(ctx, log, do); err != nil {
			log.Warn("an errand of the owner was not done or not answered", "error", err)
		}
	}
}

// Clear throws away what lies in the folder: it was meant for an earlier run of the
// connector. It is called before anybody can take this run for the one that serves.
func (f *Folder) Clear() error {
	all, err := f.list()
	if err != nil {
		return err
	}
	for _, e := range all {
		err = errors.Join(err, remove(f.file(e.id, e.kind)))
	}
	return err
}

// turn does what waits now, and throws away what nobody fetched.
func (f *Folder) turn(ctx context.Context, log *slog.Logger, do Handler) error {
	all, err := f.list()
	if err != nil {
		return err
	}
	var failures []error
	for _, e := range all {
		switch {
		case ctx.Err() != nil:
			return errors.Join(failures...)
		case e.kind == waiting:
			failures = append(failures, f.begin(ctx, log, e.id, do))
		case f.now().Sub(e.at) > keep: // of a command that was killed
			failures = append(failures, remove(f.file(e.id, e.kind)))
		}
	}
	return errors.Join(failures...)
}

// begin does one errand, unless it is none, is too old or was withdrawn.
func (f *Folder) begin(ctx context.Context, log *slog.Logger, id string, do Handler) error {
	mine := f.file(id, taken)
	if err := os.Rename(f.file(id, waiting), mine); err != nil {
		return nil // withdrawn
	}
	e, err := f.read(id)
	if err != nil {
		return errors.Join(err, remove(mine))
	}
	log.Info("doing what a command of the home owner asks", "do", e.Do, "id", e.ID)
	a := f.work(ctx, e, do)
	if a.Err != nil {
		log.Warn("what a command of the home owner asked failed", "do", e.Do, "id", e.ID, "error", a.Err)
	}
	if err = f.put(f.file(id, answered), a, maxAnswer); err != nil {
		a = answer{Err: contract.Internalf(err, "answer %q", e.Do)}
		err = errors.Join(err, f.put(f.file(id, answered), a, maxAnswer))
	}
	return errors.Join(err, remove(mine))
}

// read reads an errand that was taken.
func (f *Folder) read(id string) (e Errand, err error) {
	if err := get(f.file(id, taken), &e, maxErrand); err != nil {
		return e, err
	}
	if e.ID != id || uuid.Validate(id) != nil {
		return e, fmt.Errorf("%s%s is no errand", id, waiting)
	}
	// Asked later than now means that the clock was set back since.
	if now := f.now(); !now.Before(e.Expires) || e.Expires.After(now.Add(Life)) {
		return e, fmt.Errorf("%q of %s came too late", e.Do, e.Asked)
	}
	return e, nil
}

// work runs the handler and says all the while that it does.
func (f *Folder) work(ctx context.Context, e Errand, do Handler) (a answer) {
	ended := make(chan answer, 1)
	go func() { ended <- answerOf(do(ctx, e)) }()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		now := f.now()
		_ = os.Chtimes(f.file(e.ID, taken), now, now) // a missed one is made up for
		select {
		case a := <-ended:
			return a
		case <-tick.C:
		}
	}
}

func answerOf(v any, err error) answer {
	if err == nil {
		var body []byte
		if body, err = json.Marshal(v); err == nil {
			return answer{Body: body}
		}
	}
	if known, ok := errors.AsType[*contract.Error](err); ok {
		return answer{Err: known}
	}
	return answer{Err: contract.Internalf(err, "carry out the owner's command")}
}
