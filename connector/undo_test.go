package connector

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/errand"
	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/home"
	"siyuan-broker/connector/ledger"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// keeping is a home with books, and the way back in it.
type keeping struct {
	*guardtest.Home
	wayBack
}

func newKeeping(t *testing.T) *keeping {
	t.Helper()
	k := &keeping{}
	dir := t.TempDir()
	k.Home = guardtest.NewKeeping(t, func(now func() time.Time) guard.Points {
		var err error
		if k.points, err = restore.Open(restore.Config{Path: filepath.Join(dir, "restore.db"), Now: now}); err != nil {
			t.Fatal(err)
		}
		return k.points
	})
	var err error
	if k.ledger, err = ledger.Open(ledger.Config{Path: filepath.Join(dir, "ledger.db"), Fresh: true}); err != nil {
		t.Fatal(err)
	}
	k.guard = k.Guard
	t.Cleanup(func() { _, _ = k.points.Close(), k.ledger.Close() })
	return k
}

// write lets an agent append a paragraph to a document.
func (k *keeping) write(t *testing.T, doc, text string) {
	t.Helper()
	ctx := context.Background()
	w, err := k.Guard.Workspace(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := k.Guard.Session(w, guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWrite}))
	at, err := s.Doc(ctx, doc, contract.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(ctx, guard.Intent{Action: "test", Targets: []guard.Target{at}}, func(ctx context.Context, tx *guard.Tx) error {
		_, err := tx.Append(ctx, at.Block(), guard.Text{Data: text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (k *keeping) holds(t *testing.T, text string) bool {
	t.Helper()
	all, err := k.Client.Reader().BlockKramdown(context.Background(), guardtest.Alpha, siyuan.KramdownMarkdown)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(all, text)
}

func TestAnUndoDoesWhatItsOwnerSawOrNothing(t *testing.T) {
	t.Parallel()
	k, ctx := newKeeping(t), context.Background()
	k.write(t, guardtest.Alpha, "First words.")
	seen, err := k.Preview(ctx, restore.Choice{})
	if err != nil || seen.Empty() {
		t.Fatalf("%+v, %v", seen, err)
	}
	if again, err := k.Preview(ctx, restore.Choice{}); err != nil || again.Stamp != seen.Stamp {
		t.Errorf("nothing changed, and the stamp is %s after %s, %v", again.Stamp, seen.Stamp, err)
	}
	k.write(t, guardtest.Alpha, "Second words.") // the same document and part
	if _, err := k.Undo(ctx, restore.Choice{}, seen.Stamp); contract.CodeOf(err) != contract.StateChanged {
		t.Errorf("%v, want state_changed", err)
	}
	if !k.holds(t, "First words.") || !k.holds(t, "Second words.") {
		t.Error("it was taken back all the same")
	}
	if seen, err = k.Preview(ctx, restore.Choice{}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Undo(ctx, restore.Choice{}, seen.Stamp); err != nil || k.holds(t, "First words.") || k.holds(t, "Second words.") {
		t.Errorf("after a look at it: %v", err)
	}
}

func TestAnUndoAskedTwiceIsDoneOnce(t *testing.T) {
	t.Parallel()
	k, ctx := newKeeping(t), context.Background()
	k.write(t, guardtest.Alpha, "New words.")
	for i, empty := range []bool{false, true} {
		if p, err := k.Undo(ctx, restore.Choice{}, ""); err != nil || p.Empty() != empty || k.holds(t, "New words.") {
			t.Errorf("undo %d: %+v, %v", i+1, p, err)
		}
	}
	all, err := k.Sittings(ctx)
	if err != nil || len(all) != 2 || !all[0].Undo {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := k.Undo(ctx, restore.Choice{Sitting: all[0].ID}, ""); err != nil || !k.holds(t, "New words.") {
		t.Errorf("the undo of the undo: %v", err)
	}
}

func TestARunningConnectorTakesBackABoundedNumberOfDocuments(t *testing.T) {
	t.Parallel()
	k, ctx := newKeeping(t), context.Background()
	k.write(t, guardtest.Alpha, "Words.")
	k.write(t, guardtest.Projects, "Words.")
	for most, want := range map[int]contract.Code{1: contract.TooLarge, 2: ""} {
		k.most = most
		if _, err := k.Preview(ctx, restore.Choice{}); contract.CodeOf(err) != want {
			t.Errorf("of at most %d: %v, want %q", most, err, want)
		}
	}
}

func TestARunningConnectorSaysWhyItCannotUndo(t *testing.T) {
	t.Parallel()
	p := policy.Fixed(contract.Read)
	h, err := home.New(home.Config{URL: "http://127.0.0.1:1", Pin: PinFile(t.TempDir()), Policy: p, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c := &Connector{home: h}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody waits for it
	if _, err := c.doErrand(ctx, errand.Errand{Do: doPreview, Args: []byte(`{}`)}); contract.CodeOf(err) != contract.SiYuanOffline {
		t.Errorf("%v, want siyuan_offline", err)
	}
	if _, err := c.doErrand(ctx, errand.Errand{Do: doUndo, Args: []byte(`"x"`)}); err == nil {
		t.Error("it undoes what it cannot read")
	}
}
