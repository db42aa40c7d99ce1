package guard_test

import (
	"context"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
)

func TestACallIsRecordedWithTheNotebookItNames(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := guardtest.New(t).Writer(t)
	if _, _, err := s.Search(ctx, guard.Query{Text: "goals Nightfall"}); err != nil { // Alpha is found by a hidden title, read, and dropped
		t.Fatal(err)
	}
	if got := s.Touched(); got != "" {
		t.Errorf("after a search: %q", got)
	}
	b := block(t, s, guardtest.EntryP, contract.Read)
	if _, _, err := s.Search(ctx, guard.Query{Text: "small"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Kramdown(ctx, b); err != nil {
		t.Fatal(err)
	}
	if got := s.Touched(); got != guardtest.Diary {
		t.Errorf("after block %s: %q", guardtest.EntryP, got)
	}
	if _, err := s.Notebook(guardtest.Work, contract.ReadWriteDelete); contract.CodeOf(err) != contract.PermissionDenied || s.Touched() != guardtest.Work {
		t.Errorf("after a refusal: %q, %v", s.Touched(), err)
	}
}

// TestLookingAtWhatIsHiddenCostsWhatLookingAtNothingCosts: the number of kernel
// calls leaves the home with every answer.
func TestLookingAtWhatIsHiddenCostsWhatLookingAtNothingCosts(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	const database = "20240104120000-payroll"
	calls := func(f func(ctx context.Context, s *guard.Session) error) int {
		ctx, meter := guard.Measure(context.Background())
		if err := f(ctx, h.Writer(t)); err == nil {
			t.Error("not refused")
		}
		return meter.Calls()
	}
	write := func(text guard.Text) func(ctx context.Context, s *guard.Session) error {
		return func(ctx context.Context, s *guard.Session) error {
			b := block(t, s, guardtest.Links, contract.Read)
			return s.Write(ctx, intent(b), func(ctx context.Context, tx *guard.Tx) error {
				_, err := tx.Update(ctx, []guard.Update{{Block: b, Text: text}})
				return err
			})
		}
	}
	bare := calls(write(guard.Text{Data: "See ((" + guardtest.Secret + "))"}))
	if named := calls(write(guard.Text{Data: "See ((" + guardtest.Secret + ` "x"))`})); named != bare {
		t.Errorf("a reference with a name takes %d calls, one without %d", named, bare)
	}
	dom := func(av string) guard.Text {
		return guard.Text{DOM: true, Data: `<div data-node-id="` + guardtest.Links + `" data-type="NodeAttributeView" data-av-id="` + av + `"></div>`}
	}
	missing := calls(write(dom(guardtest.Missing)))
	h.Answer("/api/av/getMirrorDatabaseBlocks", `{"refDefs":[{"refID":"`+guardtest.SecretP+`","defIDs":[]},{"refID":"`+guardtest.Closed+`","defIDs":[]}]}`)
	h.Answer("/api/av/getAttributeView", `{"av":{"id":"`+database+`","keyValues":[]}}`)
	if hidden := calls(write(dom(database))); hidden != missing {
		t.Errorf("a hidden database takes %d calls, a missing one %d", hidden, missing)
	}
}
