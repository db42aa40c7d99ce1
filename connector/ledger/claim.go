package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"zombiezen.com/go/sqlite"

	"siyuan-broker/connector/guard"
	"siyuan-broker/contract"
)

// Request is one write as its sender names it.
type Request struct {
	Scope  string // whose keys these are: tenant, instance and principal
	ID     string // the at-most-once key, a UUIDv7
	Action string // "tool.action"
	Args   []byte // canonical: equal arguments have equal bytes
}

func (r Request) key() string { return r.Scope + "\n" + r.ID }

func (r Request) digest() []byte {
	sum := sha256.Sum256(append([]byte("arguments of "+r.Action+"\n"), r.Args...))
	return sum[:]
}

// state is how far a request came.
type state int

const (
	open   state = iota // steps were begun and not all is known about them
	done                // it succeeded; its answer is kept
	failed              // it failed for good; its error is kept
	traced              // it succeeded, which was found out later; its answer holds ids only
	broken              // it failed for good, which was found out later
)

// Past is what an earlier call of a request came to.
type Past struct {
	Known  bool            // there was one that reached the kernel
	Body   json.RawMessage // its answer, when it succeeded
	Traced bool            // the answer was made from the steps, not by the action
	Err    *contract.Error // its error, when it failed for good
	Steps  []guard.Step    // what it did or was about to do, in order
}

// Ended reports whether the outcome is known.
func (p Past) Ended() bool { return p.Body != nil || p.Err != nil }

// Claim is the right to run one request, which one call has at a time. It is the
// guard.Entry of the writes of that call.
type Claim struct {
	l    *Ledger
	req  Request
	past Past
	once sync.Once

	mu    sync.Mutex
	steps []guard.Step // of this call
}

var _ guard.Entry = (*Claim)(nil)

// Claim takes the right to run a request, waiting for a call that runs the same
// one, and tells what became of earlier ones.
//
// Errors: validation_error and request_id_expired for keys that cannot be used,
// conflict when the key was used for something else, ledger_full, and
// outcome_unknown when the running call does not end in time.
func (l *Ledger) Claim(ctx context.Context, r Request) (*Claim, error) {
	made, err := timeOf(r.ID)
	if err != nil {
		return nil, err
	}
	if err := l.take(ctx, r.key()); err != nil {
		return nil, contract.Fail(contract.OutcomeUnknown, "A call with this request id is still running.").WithCause(err)
	}
	c := &Claim{l: l, req: r}
	if err := l.within(func() error { return c.load(made) }); err != nil {
		c.Release()
		if _, told := errors.AsType[*contract.Error](err); told {
			return nil, err
		}
		return nil, contract.Internalf(err, "read the ledger of writes")
	}
	return c, nil
}

// timeOf is when a key was made.
func timeOf(id string) (time.Time, error) {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 {
		return time.Time{}, contract.InvalidFields(contract.Field{Path: "requestId", Message: "must be a UUIDv7"})
	}
	sec, nsec := u.Time().UnixTime()
	return time.Unix(sec, nsec), nil
}

func (c *Claim) load(made time.Time) error {
	if err := c.l.prune(); err != nil {
		return err
	}
	same := true
	var s state
	var answer []byte
	err := c.l.query("SELECT action, digest, state, answer FROM writes WHERE scope = ? AND id = ?", []any{c.req.Scope, c.req.ID}, func(row *sqlite.Stmt) error {
		c.past.Known = true
		digest := make([]byte, row.ColumnLen(1))
		row.ColumnBytes(1, digest)
		same = row.ColumnText(0) == c.req.Action && bytes.Equal(digest, c.req.digest())
		s = state(row.ColumnInt(2))
		if row.ColumnLen(3) > 0 {
			answer = make([]byte, row.ColumnLen(3))
			row.ColumnBytes(3, answer)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !same:
		return contract.Fail(contract.Conflict, "The request id was used before for another call.")
	case !c.past.Known:
		return c.fresh(made)
	}
	if c.past.Steps, err = c.l.steps(c.req.Scope, c.req.ID); err != nil {
		return err
	}
	return c.open(s, answer)
}

// fresh admits a key that is not known.
func (c *Claim) fresh(made time.Time) error {
	now := c.l.cfg.Now()
	switch {
	case made.After(now.Add(Skew)):
		return contract.InvalidFields(contract.Field{Path: "requestId", Message: "is of a time to come; the clock of its maker is wrong"})
	case made.Before(now.Add(-c.l.cfg.Keep)):
		return contract.Fail(contract.RequestExpired, "The request id is older than the %s that this connector remembers; nothing was executed.", days(c.l.cfg.Keep))
	case made.Before(c.l.floor):
		return contract.Fail(contract.RequestExpired, "The request id is older than the memory of this connector, so it may have been used before; nothing was executed.")
	}
	return c.l.room(c.req.Scope)
}

// open makes the past of a stored state.
func (c *Claim) open(s state, answer []byte) error {
	switch s {
	case done, failed:
		plain, err := c.req.unseal(answer)
		if err != nil {
			return err
		}
		return c.past.read(s == done, plain)
	case traced, broken:
		c.past.Traced = true
		return c.past.read(s == traced, answer)
	}
	return nil
}

func (p *Past) read(succeeded bool, answer []byte) error {
	if succeeded {
		p.Body = answer
		return nil
	}
	p.Err = &contract.Error{}
	if err := json.Unmarshal(answer, p.Err); err != nil {
		return fmt.Errorf("read a kept error: %w", err)
	}
	return nil
}

// steps are those of a request, in order.
func (l *Ledger) steps(scope, id string) (all []guard.Step, err error) {
	err = l.query("SELECT step FROM steps WHERE scope = ? AND id = ? ORDER BY n", []any{scope, id}, func(row *sqlite.Stmt) error {
		var st guard.Step
		if err := json.Unmarshal([]byte(row.ColumnText(0)), &st); err != nil {
			return fmt.Errorf("read a kept step: %w", err)
		}
		all = append(all, st)
		return nil
	})
	return all, err
}

// Past is what became of earlier calls of the request.
func (c *Claim) Past() Past { return c.past }

// Steps are the kernel writes of this call so far.
func (c *Claim) Steps() []guard.Step {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]guard.Step(nil), c.steps...)
}

// Step implements guard.Entry.
func (c *Claim) Step(_ context.Context, st guard.Step) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := json.Marshal(st)
	if err != nil {
		return contract.Internalf(err, "write step %s", st.Op)
	}
	n := len(c.steps)
	err = c.transact(func() error {
		if n == 0 {
			if err := c.l.room(c.req.Scope); err != nil {
				return err
			}
			const begin = "INSERT INTO writes (scope, id, action, digest, began, state) VALUES (?, ?, ?, ?, ?, ?)"
			if err := c.l.exec(begin, c.req.Scope, c.req.ID, c.req.Action, c.req.digest(), c.l.cfg.Now().UnixMilli(), int(open)); err != nil {
				return err
			}
		}
		return c.l.exec("INSERT INTO steps (scope, id, n, step) VALUES (?, ?, ?, ?)", c.req.Scope, c.req.ID, n, string(b))
	})
	if err == nil {
		c.steps = append(c.steps, st)
	}
	return err
}

// Drop implements guard.Entry. A request without steps is forgotten: it may be
// sent again.
func (c *Claim) Drop(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.steps) - 1
	if n < 0 {
		return nil
	}
	err := c.transact(func() error {
		if n == 0 {
			return c.forget()
		}
		return c.l.exec("DELETE FROM steps WHERE scope = ? AND id = ? AND n = ?", c.req.Scope, c.req.ID, n)
	})
	if err == nil {
		c.steps = c.steps[:n]
	}
	return err
}

func (c *Claim) forget() error {
	if err := c.l.exec("DELETE FROM steps WHERE scope = ? AND id = ?", c.req.Scope, c.req.ID); err != nil {
		return err
	}
	return c.l.exec("DELETE FROM writes WHERE scope = ? AND id = ?", c.req.Scope, c.req.ID)
}

// Again forgets the steps of earlier calls, which did not happen, so that the
// request can be run.
func (c *Claim) Again() error {
	err := c.transact(c.forget)
	if err == nil {
		c.past = Past{}
	}
	return err
}

// Succeed keeps the answer of the request, when it wrote anything.
func (c *Claim) Succeed(body json.RawMessage) error { return c.end(done, body) }

// Fail keeps the error of a request that wrote something and will not be
// continued.
func (c *Claim) Fail(err *contract.Error) error {
	b, cause := json.Marshal(err)
	if cause != nil {
		return contract.Internalf(cause, "keep an error")
	}
	return c.end(failed, b)
}

// Trace keeps what was found out about an earlier call: an answer or an error,
// made of ids.
func (c *Claim) Trace(body json.RawMessage, failure *contract.Error) error {
	s, answer := traced, []byte(body)
	if failure != nil {
		s = broken
		var err error
		if answer, err = json.Marshal(failure); err != nil {
			return contract.Internalf(err, "keep an error")
		}
	}
	return c.store(s, answer)
}

func (c *Claim) end(s state, answer []byte) error {
	if len(c.Steps()) == 0 {
		return nil
	}
	sealed, err := c.req.seal(answer)
	if err != nil {
		return err
	}
	return c.store(s, sealed)
}

func (c *Claim) store(s state, answer []byte) error {
	return c.transact(func() error {
		return c.l.exec("UPDATE writes SET state = ?, answer = ? WHERE scope = ? AND id = ?", int(s), answer, c.req.Scope, c.req.ID)
	})
}

func (c *Claim) transact(f func() error) error {
	err := c.l.within(func() error { return c.l.transact(f) })
	if _, told := errors.AsType[*contract.Error](err); err == nil || told {
		return err
	}
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultFull {
		return contract.Fail(contract.LedgerFull, "The disk or the ledger of the connector is full; nothing more was executed.").WithCause(err)
	}
	return contract.Internalf(err, "write the ledger of writes")
}

// Release gives the right back. It is safe to call twice.
func (c *Claim) Release() { c.once.Do(func() { c.l.give(c.req.key()) }) }

// Undecided claims, one after the other, the requests whose outcome is not known
// and that no call runs, and hands each to f. It ends at f's first error.
func (l *Ledger) Undecided(ctx context.Context, f func(*Claim) error) error {
	var keys [][2]string
	err := l.within(func() error {
		return l.query("SELECT scope, id FROM writes WHERE state = ? ORDER BY began", []any{int(open)}, func(row *sqlite.Stmt) error {
			keys = append(keys, [2]string{row.ColumnText(0), row.ColumnText(1)})
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("list undecided writes: %w", err)
	}
	for _, k := range keys {
		if err := l.undecided(ctx, Request{Scope: k[0], ID: k[1]}, f); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) undecided(ctx context.Context, r Request, f func(*Claim) error) error {
	if err := l.take(ctx, r.key()); err != nil {
		return err
	}
	c := &Claim{l: l, req: r}
	defer c.Release()
	still := false
	err := l.within(func() (err error) {
		err = l.query("SELECT 1 FROM writes WHERE scope = ? AND id = ? AND state = ?", []any{r.Scope, r.ID, int(open)}, func(*sqlite.Stmt) error {
			still = true
			return nil
		})
		if err == nil {
			c.past.Steps, err = l.steps(r.Scope, r.ID)
		}
		return err
	})
	if err != nil || !still {
		return err
	}
	c.past.Known = true
	return f(c)
}
