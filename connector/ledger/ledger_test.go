package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/ledger"
	"siyuan-broker/contract"
)

// book is a ledger whose clock stands still until it is moved.
type book struct {
	*ledger.Ledger
	t   *testing.T
	cfg ledger.Config
	now time.Time
}

func newBook(t *testing.T, change func(*ledger.Config)) *book {
	t.Helper()
	b := &book{t: t, now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	b.cfg = ledger.Config{Path: filepath.Join(t.TempDir(), "ledger.db"), Fresh: true, Now: func() time.Time { return b.now }}
	if change != nil {
		change(&b.cfg)
	}
	b.open()
	t.Cleanup(func() { check(t, b.Close()) })
	return b
}

func (b *book) open() {
	b.t.Helper()
	var err error
	b.Ledger, err = ledger.Open(b.cfg)
	check(b.t, err)
}

// reopen is what a restart does.
func (b *book) reopen() {
	b.t.Helper()
	check(b.t, b.Close())
	b.open()
}

// key is a UUIDv7 of a time.
func key(at time.Time, n byte) string {
	var id uuid.UUID
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	id[6], id[8], id[15] = 0x70, 0x80, n
	return id.String()
}

func (b *book) request(n byte) ledger.Request {
	return ledger.Request{Scope: "t/i/m/a", ID: key(b.now, n), Action: "block.append", Args: []byte(`{"data":"my secret plan"}`)}
}

func (b *book) claim(r ledger.Request) *ledger.Claim {
	b.t.Helper()
	c, err := b.Claim(b.t.Context(), r)
	check(b.t, err)
	b.t.Cleanup(c.Release)
	return c
}

func (b *book) refuses(r ledger.Request, want contract.Code) {
	b.t.Helper()
	c, err := b.Claim(b.t.Context(), r)
	if err == nil {
		c.Release()
	}
	if got := contract.CodeOf(err); got != want {
		b.t.Errorf("code %q (%v), want %s", got, err, want)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var step = guard.Step{Op: "block.append", ID: "20240102100000-projdoc", New: []string{"20261130090000-newnew1"},
	Marks: []guard.Mark{{Look: guard.LookThere, ID: "20261130090000-newnew1", Before: "no", After: "yes"}}, Notebooks: []string{"20240101090000-work001"}}

func TestARepeatedRequestFindsTheAnswerOfTheFirst(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	r := b.request(1)
	c := b.claim(r)
	if c.Past().Known {
		t.Error("a new request has a past")
	}
	check(t, c.Step(t.Context(), step))
	check(t, c.Succeed(json.RawMessage(`{"success":true}`)))
	c.Release()
	for range 2 {
		past := b.claim(r).Past()
		if !past.Ended() || string(past.Body) != `{"success":true}` || len(past.Steps) != 1 || past.Steps[0].Notebooks[0] != step.Notebooks[0] {
			t.Errorf("past %+v", past)
		}
		b.reopen()
	}
}

func TestAKnownKeyWithOtherArgumentsIsAConflict(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	r := b.request(1)
	c := b.claim(r)
	check(t, c.Step(t.Context(), step))
	c.Release()
	other := r
	other.Args = []byte(`{"data":"another plan"}`)
	b.refuses(other, contract.Conflict)
	other = r
	other.Action = "block.prepend"
	b.refuses(other, contract.Conflict)
	other = r
	other.Scope = "t/i/m/another agent"
	if b.claim(other).Past().Known {
		t.Error("the keys of two agents meet")
	}
}

func TestAnEndOfWhichNothingIsKnownLeavesItsSteps(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	c := b.claim(b.request(1))
	check(t, c.Step(t.Context(), step))
	second := step
	second.Op = "block.attrs"
	check(t, c.Step(t.Context(), second))
	check(t, b.Close()) // as a kill does: nothing after the last step
	c.Release()
	b.open()
	past := b.claim(b.request(1)).Past()
	if past.Ended() || len(past.Steps) != 2 || past.Steps[1].Op != "block.attrs" || past.Steps[0].New[0] != step.New[0] {
		t.Errorf("past %+v", past)
	}
}

func TestWhatTheKernelRefusedIsForgotten(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	c := b.claim(b.request(1))
	check(t, c.Step(t.Context(), step))
	check(t, c.Drop(t.Context()))
	check(t, c.Fail(contract.Fail(contract.APIError, "No.")))
	c.Release()
	if b.claim(b.request(1)).Past().Known {
		t.Error("a request without effect is remembered")
	}
}

func TestAFailureAfterAWriteIsKept(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	c := b.claim(b.request(1))
	check(t, c.Step(t.Context(), step))
	check(t, c.Fail(contract.Fail(contract.WriteNotPersisted, "Not there.")))
	c.Release()
	b.reopen()
	past := b.claim(b.request(1)).Past()
	if contract.CodeOf(past.Err) != contract.WriteNotPersisted || past.Err.Message != "Not there." {
		t.Errorf("past %+v", past)
	}
}

func TestASecondCallWaitsForTheRunningOne(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	r := b.request(1)
	c := b.claim(r)
	var both sync.WaitGroup
	var past ledger.Past
	both.Go(func() {
		second, err := b.Claim(context.Background(), r)
		if err == nil {
			past = second.Past()
			second.Release()
		}
	})
	check(t, c.Step(t.Context(), step))
	check(t, c.Succeed(json.RawMessage(`{"n":1}`)))
	c.Release()
	both.Wait()
	if string(past.Body) != `{"n":1}` {
		t.Errorf("the second call found %+v", past)
	}
}

func TestAWaitThatEndsSaysThatTheFirstStillRuns(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	b.claim(b.request(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Claim(ctx, b.request(1)); contract.CodeOf(err) != contract.OutcomeUnknown {
		t.Errorf("error %v", err)
	}
}

func TestAFullLedgerRefusesNewRequestsAndAnswersOldOnes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ledger.Config){
		"by entries": func(c *ledger.Config) { c.Entries, c.Share = 3, 3 },
		"by bytes":   func(c *ledger.Config) { c.Bytes = 1<<20 + 64<<10 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook(t, change)
			wide := step
			wide.Repeatable = strings.Repeat("x", 8<<10)
			n := byte(0)
			var err error
			for ; n < 200; n++ {
				var c *ledger.Claim
				if c, err = b.Claim(t.Context(), b.request(n)); err != nil {
					break
				}
				check(t, c.Step(t.Context(), wide))
				check(t, c.Succeed(json.RawMessage(`{"ok":true}`)))
				c.Release()
			}
			if contract.CodeOf(err) != contract.LedgerFull || n < 2 {
				t.Fatalf("after %d requests: %v", n, err)
			}
			if past := b.claim(b.request(0)).Past(); string(past.Body) != `{"ok":true}` {
				t.Errorf("an old request: %+v", past)
			}
			b.now = b.now.Add(ledger.DefaultKeep + 3*ledger.Skew)
			b.claim(b.request(n)) // a week later there is room again
		})
	}
}

func TestOneAgentCannotFillTheLedgerForAll(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ledger.Config){
		"by entries": func(c *ledger.Config) { c.Entries = 8 },
		"by bytes":   func(c *ledger.Config) { c.Bytes = 4 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook(t, change)
			wide := step
			wide.Repeatable = strings.Repeat("x", 64<<10)
			n := byte(0)
			var err error
			for ; n < 200; n++ {
				var c *ledger.Claim
				if c, err = b.Claim(t.Context(), b.request(n)); err != nil {
					break
				}
				check(t, c.Step(t.Context(), wide))
				c.Release()
			}
			if contract.CodeOf(err) != contract.LedgerFull || n < 4 {
				t.Fatalf("after %d requests: %v", n, err)
			}
			other := b.request(n)
			other.Scope = "t/i/m/another"
			check(t, b.claim(other).Step(t.Context(), step))
			b.claim(b.request(0)) // its known requests are answered
		})
	}
}

func TestKeysThatMayHaveBeenUsedAndForgottenAreRefused(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	old := b.request(1)
	c := b.claim(old)
	check(t, c.Step(t.Context(), step))
	check(t, c.Succeed(json.RawMessage(`{}`)))
	c.Release()
	b.now = b.now.Add(ledger.DefaultKeep + 3*ledger.Skew)
	b.refuses(old, contract.RequestExpired)
	b.refuses(ledger.Request{ID: key(b.now.Add(2*ledger.Skew), 1)}, contract.InvalidArguments)
	b.refuses(ledger.Request{ID: "4f9b5b8e-0c4f-4b8e-9d0a-000000000000"}, contract.InvalidArguments)

	check(t, b.Close())
	check(t, os.Remove(b.cfg.Path)) // a lost ledger
	b.cfg.Fresh = false
	older := b.request(2)
	b.now = b.now.Add(time.Minute)
	b.open()
	b.refuses(older, contract.RequestExpired)
	b.claim(b.request(3))
	b.reopen()
	b.refuses(older, contract.RequestExpired)
}

func TestTheFileHoldsNoText(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	c := b.claim(b.request(1))
	check(t, c.Step(t.Context(), step))
	check(t, c.Succeed(json.RawMessage(`{"kramdown":"my secret plan"}`)))
	c.Release()
	check(t, b.Close())
	defer b.open()
	seen := 0
	check(t, filepath.WalkDir(filepath.Dir(b.cfg.Path), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("secret")) || bytes.Contains(text, []byte("kramdown")) {
			t.Errorf("%s holds text of the note", d.Name())
		}
		if bytes.Contains(text, []byte(step.ID)) {
			seen++
		}
		return err
	}))
	if seen == 0 {
		t.Error("not even the id was found: the test looks in the wrong place")
	}
}

func TestOneProcessAtATime(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	if l, err := ledger.Open(b.cfg); err == nil {
		_ = l.Close()
		t.Error("a second ledger opened the same file")
	}
}

func TestADamagedFileIsAnError(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "ledger.db")
	check(t, os.WriteFile(name, bytes.Repeat([]byte("damaged "), 1000), 0o600))
	if l, err := ledger.Open(ledger.Config{Path: name}); err == nil {
		_ = l.Close()
		t.Error("a damaged file was opened")
	}
}

func TestAClosedLedgerStopsAWriteBeforeTheKernel(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	c := b.claim(b.request(1))
	check(t, b.Close())
	if err := c.Step(t.Context(), step); contract.CodeOf(err) != contract.Internal {
		t.Errorf("error %v", err)
	}
}

func TestUndecidedRequestsAreFoundAndSettled(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	for n := range byte(4) {
		c := b.claim(b.request(n))
		check(t, c.Step(t.Context(), step))
		if n == 0 {
			check(t, c.Succeed(json.RawMessage(`{}`)))
		}
		c.Release()
	}
	b.reopen()
	n := 0
	check(t, b.Undecided(t.Context(), func(c *ledger.Claim) error {
		if len(c.Past().Steps) != 1 {
			t.Errorf("past %+v", c.Past())
		}
		n++
		switch n {
		case 1:
			return c.Again()
		case 2:
			return c.Trace(json.RawMessage(`{"recovered":true}`), nil)
		}
		return c.Trace(nil, contract.Fail(contract.PartlyDone, "Half."))
	}))
	if n != 3 {
		t.Fatalf("%d undecided, want 3", n)
	}
	for i, want := range []string{`{}`, "", `{"recovered":true}`, "partly_done"} {
		past := b.claim(b.request(byte(i))).Past()
		got := string(past.Body)
		if past.Err != nil {
			got = string(contract.CodeOf(past.Err))
		}
		if got != want || past.Known != (want != "") {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
	}
	st, err := b.Stats()
	check(t, err)
	if st.Entries != 3 || st.Undecided != 0 || st.Bytes == 0 || !st.Oldest.Equal(b.now) {
		t.Errorf("stats %+v", st)
	}
	stop := errors.New("stop")
	c := b.claim(b.request(9))
	check(t, c.Step(t.Context(), step))
	c.Release()
	if err := b.Undecided(t.Context(), func(*ledger.Claim) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}

func TestManyRequestsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBook(t, nil)
	var all sync.WaitGroup
	errs := make(chan error, 64)
	for n := range byte(64) {
		all.Go(func() {
			c, err := b.Claim(context.Background(), b.request(n/2)) // two of each
			if err != nil {
				errs <- err
				return
			}
			defer c.Release()
			if c.Past().Ended() {
				return
			}
			errs <- errors.Join(c.Step(context.Background(), step), c.Succeed(json.RawMessage(fmt.Sprint(n/2))))
		})
	}
	all.Wait()
	close(errs)
	ran := 0
	for err := range errs {
		check(t, err)
		ran++
	}
	if ran != 32 {
		t.Errorf("%d requests ran, want 32", ran)
	}
}
