package relay

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// keyOf is a UUIDv7 of a moment.
func keyOf(at time.Time) string {
	id := uuid.Must(uuid.NewV7())
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id.String()
}

// taken is a session of a connector that took over from another one at the given
// time.
func taken(t *testing.T, e Epoch, knows bool) (*Hub, *fake) {
	t.Helper()
	d := newFakeDirectory(t)
	d.took = e
	s, addr := startServer(t, d, nil)
	f := dialFake(t, d, addr)
	f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", nil), Safety: knows})
	f.start()
	online(t, s, 1)
	return s.Hub(), f
}

func TestAWriteFromBeforeATakeoverIsOnlyAskedAbout(t *testing.T) {
	t.Parallel()
	took := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		made       time.Time
		first      bool
		idempotent bool
		others     time.Time
		asked      bool
	}{
		"before":                  {made: took.Add(-time.Minute), others: took, asked: true},
		"within its millisecond":  {made: took, others: took.Add(time.Microsecond), asked: true},
		"after":                   {made: took.Add(time.Millisecond), others: took},
		"made for this call":      {made: took.Add(-time.Minute), first: true, others: took},
		"a read":                  {made: took.Add(-time.Minute), idempotent: true, others: took},
		"never another connector": {made: took.Add(-time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, f := taken(t, Epoch{OthersUntil: c.others}, true)
			answer := make(chan contract.Result, 1)
			go func() {
				answer <- hub.Call(context.Background(), "tenant-1", "home", contract.Call{Grant: &contract.Grant{}, RequestID: keyOf(c.made), First: c.first, Args: json.RawMessage(`{}`)}, c.idempotent, nil)
			}()
			st, call := f.accept()
			if call.Replay != c.asked {
				t.Errorf("replay %v, want %v", call.Replay, c.asked)
			}
			write(st, wire.FrameResult, wire.Result{ID: call.ID}, `{"replayed":true}`)
			if got := receive(t, answer); got.Err != nil || string(got.Body) != `{"replayed":true}` {
				t.Errorf("what the home remembers did not arrive: %s %v", got.Body, got.Err)
			}
		})
	}
}

func TestAnIDThatTheNewConnectorDoesNotKnowHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	took := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, knows := range []bool{true, false} { // whether the connector can be asked without writing
		hub, f := taken(t, Epoch{OthersUntil: took}, knows)
		answer := make(chan contract.Result, 1)
		id := keyOf(took.Add(-time.Minute))
		go func() {
			answer <- hub.Call(context.Background(), "tenant-1", "home", contract.Call{Grant: &contract.Grant{}, RequestID: id, Args: json.RawMessage(`{}`)}, false, nil)
		}()
		if knows {
			st, call := f.accept()
			write(st, wire.FrameError, wire.Error{ID: call.ID, Error: contract.Fail(contract.ConfirmationUsed, "Nothing is known.")}, "")
		}
		got := receive(t, answer)
		if contract.CodeOf(got.Err) != contract.OutcomeUnknown || got.Err.RequestID != id || got.Err.Retry != contract.RetryNo ||
			!strings.Contains(got.Err.Message, took.UTC().Format(time.RFC3339)) || !strings.Contains(got.Err.Hint, "new requestId") {
			t.Errorf("knows=%v: %+v", knows, got.Err)
		}
	}
}

func TestATransferFromBeforeATakeoverIsNotBegun(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	d.took = Epoch{OthersUntil: time.Now()}
	s, addr := startServer(t, d, nil)
	f := dialFake(t, d, addr)
	f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", nil), Bulk: true, Safety: true})
	f.start()
	online(t, s, 1)
	_, err := s.Hub().OpenStream(context.Background(), "tenant-1", "home", contract.Transfer{Call: contract.Call{Grant: &contract.Grant{}, RequestID: keyOf(time.Now().Add(-time.Minute))}}, false)
	if contract.CodeOf(err) != contract.OutcomeUnknown {
		t.Errorf("error %v", err)
	}
}

// The store knows when the epoch was drawn; until the session was up the other
// connector could still be called, and on another node a little longer.
func TestATakeoverCountsFromWhenTheOtherConnectorIsCalledNoMore(t *testing.T) {
	t.Parallel()
	drawn := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		e    Epoch
		want time.Time
	}{
		"a takeover":             {Epoch{TookOver: true, OthersUntil: drawn}, drawn.Add(3 * time.Second)},
		"one of long ago":        {Epoch{OthersUntil: drawn}, drawn},
		"a clock that is behind": {Epoch{TookOver: true, OthersUntil: drawn.Add(time.Minute)}, drawn.Add(time.Minute)},
		"none":                   {Epoch{}, time.Time{}},
	} {
		n := takeover{now: c.e.TookOver, at: c.e.OthersUntil}
		n.begin(drawn.Add(3 * time.Second))
		if !n.at.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, n.at, c.want)
		}
	}
}
