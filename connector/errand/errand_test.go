package errand

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"siyuan-broker/contract"
)

// house is a data folder with a clock that a test turns, and what was done there.
type house struct {
	*Folder
	data string

	mu   sync.Mutex
	time time.Time
	done []string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{data: filepath.Join(t.TempDir(), "[data]"), time: time.Now().Truncate(time.Second)}
	h.Folder = In(h.data, h.clock)
	return h
}

func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.time
}

func (h *house) later(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.time = h.time.Add(d)
}

// do is a handler that answers with what it was given.
func (h *house) do(_ context.Context, e Errand) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, e.Do)
	switch e.Do {
	case "refuse":
		return nil, contract.Fail(contract.SiYuanOffline, "SiYuan is away.")
	case "break":
		return nil, errors.New("secret details")
	case "answer too much":
		return strings.Repeat("x", maxAnswer), nil
	}
	return e.Args, nil
}

func (h *house) turned(t *testing.T) {
	t.Helper()
	if err := h.turn(t.Context(), slog.New(slog.DiscardHandler), h.do); err != nil {
		t.Logf("turn: %v", err)
	}
}

func (h *house) left(t *testing.T, do string) Errand {
	t.Helper()
	e, err := h.leave(do, map[string]int{"n": 7})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// served lets a connector serve the folder until the test ends.
func (h *house) served(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { h.Serve(ctx, slog.New(slog.DiscardHandler), h.do) })
	t.Cleanup(func() { cancel(); work.Wait() })
}

func (h *house) files(t *testing.T) []entry {
	t.Helper()
	all, err := h.list()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnErrandIsDoneAndAnswered(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.served(t)
	body, err := In(h.data, h.clock).Ask(t.Context(), "tell", map[string]int{"n": 7})
	var got struct{ N int }
	if err != nil || json.Unmarshal(body, &got) != nil || got.N != 7 {
		t.Errorf("answered %s, %v", body, err)
	}
}

func TestARefusalComesBackWithItsCode(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.served(t)
	if _, err := h.Ask(t.Context(), "refuse", nil); contract.CodeOf(err) != contract.SiYuanOffline {
		t.Errorf("%v, want siyuan_offline", err)
	}
	for _, do := range []string{"break", "answer too much"} {
		if _, err := h.Ask(t.Context(), do, nil); contract.CodeOf(err) != contract.Internal {
			t.Errorf("%s: %v, want internal", do, err)
		}
	}
}

func TestAnErrandIsDoneOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	e := h.left(t, "tell")
	h.turned(t)
	h.turned(t)
	if len(h.done) != 1 {
		t.Errorf("done %v", h.done)
	}
	if body, over, err := h.outcome(e); !over || err != nil || string(body) != `{"n":7}` {
		t.Errorf("%s, %t, %v", body, over, err)
	}
	if left := h.files(t); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWhatAKilledCommandLeftIsNotDoneLater(t *testing.T) {
	t.Parallel()
	for name, pass := range map[string]time.Duration{"after its life": Life, "with the clock set back": -time.Minute} {
		h := newHouse(t)
		h.left(t, "tell")
		h.later(pass)
		h.turned(t)
		if len(h.done) != 0 || len(h.files(t)) != 0 {
			t.Errorf("%s: done %v, files %v", name, h.done, h.files(t))
		}
	}
	h := newHouse(t)
	h.left(t, "tell")
	h.later(Life - 1)
	h.turned(t)
	if len(h.done) != 1 {
		t.Error("a moment before the end of its life it was not done")
	}
}

func TestANewRunDoesNothingOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	waits, begun := h.left(t, "tell"), h.left(t, "tell")
	if err := os.Rename(h.file(begun.ID, waiting), h.file(begun.ID, taken)); err != nil {
		t.Fatal(err)
	}
	if err := h.Clear(); err != nil {
		t.Fatal(err)
	}
	h.turned(t)
	if len(h.done) != 0 {
		t.Errorf("done %v", h.done)
	}
	for _, e := range []Errand{waits, begun} {
		if _, over, err := h.outcome(e); !over || contract.CodeOf(err) != contract.OutcomeUnknown {
			t.Errorf("its command is told %t, %v", over, err)
		}
	}
}

func TestAnErrandThatIsNotBegunIsWithdrawn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	at := h.time
	command := In(h.data, func() time.Time { at = at.Add(Life); return at }) // its whole life passes from one look to the next
	if _, err := command.Ask(t.Context(), "tell", nil); !errors.Is(err, ErrNotBegun) {
		t.Errorf("%v, want not begun", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Ask(gone, "tell", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
	h.turned(t)
	if len(h.done) != 0 || len(h.files(t)) != 0 {
		t.Errorf("done %v, files %v", h.done, h.files(t))
	}
}

func TestACommandLearnsThatTheConnectorDied(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	e := h.left(t, "tell")
	mine := h.file(e.ID, taken)
	if err := errors.Join(os.Rename(h.file(e.ID, waiting), mine), os.Chtimes(mine, h.time, h.time)); err != nil {
		t.Fatal(err)
	}
	h.later(quiet)
	if _, over, err := h.outcome(e); over || err != nil {
		t.Errorf("while it is at work: %t, %v", over, err)
	}
	h.later(1)
	if _, over, err := h.outcome(e); !over || contract.CodeOf(err) != contract.OutcomeUnknown {
		t.Errorf("after %s of silence: %t, %v", quiet, over, err)
	}
}

func TestACommandThatIsEndedSaysThatTheWorkGoesOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	serving, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		h.Serve(serving, slog.New(slog.DiscardHandler), func(context.Context, Errand) (any, error) {
			cancel()
			<-over
			return nil, nil
		})
	})
	_, err := h.Ask(ctx, "tell", nil)
	if contract.CodeOf(err) != contract.OutcomeUnknown || !strings.Contains(err.Error(), "it goes on") {
		t.Errorf("%v", err)
	}
	close(over)
	stop()
	work.Wait()
}

func TestDamagedAndForeignFilesAreThrownAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	e := h.left(t, "tell")
	h.turned(t)
	body, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.json": "{", "b.json": "{}", "c.json": string(body)} { // c has the id of another
		if err := os.WriteFile(filepath.Join(h.path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.turned(t)
	if len(h.done) != 1 {
		t.Errorf("done %v", h.done)
	}
	if left := h.files(t); len(left) != 1 || left[0].kind != answered {
		t.Errorf("left %v, want the first answer", left)
	}
	h.later(keep + time.Minute)
	h.turned(t)
	if left := h.files(t); len(left) != 0 {
		t.Errorf("nobody fetched it, and still there is %v", left)
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for range 16 {
		h.left(t, "tell")
	}
	if _, err := h.leave("tell", nil); err == nil {
		t.Error("the 17th is taken")
	}
	if _, err := newHouse(t).leave("tell", strings.Repeat("x", maxErrand)); err == nil {
		t.Error("one of more than 16 KiB is taken")
	}
}
