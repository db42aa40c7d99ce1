package guard_test

import (
	"context"
	"sync"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
)

func TestOneJudgeServesManyStatementsAtOnce(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			rows, more, err := h.Writer(t).SQL(context.Background(), "SELECT id FROM blocks WHERE type = 'd'", 2)
			if err != nil || len(rows) != 2 || !more {
				t.Errorf("%d rows, more %v, err %v", len(rows), more, err)
			}
		})
	}
	calls.Wait()
}

func TestAClosedGuardJudgesNoStatement(t *testing.T) {
	t.Parallel()
	for _, used := range []bool{true, false} {
		h := guardtest.New(t)
		s := h.Writer(t)
		if used {
			if _, _, err := s.SQL(context.Background(), "SELECT 1", 1); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := h.Guard.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, _, err := s.SQL(context.Background(), "SELECT 1", 1); contract.CodeOf(err) != contract.Internal {
			t.Errorf("code %q, want internal_error", contract.CodeOf(err))
		}
	}
}

func TestSQLEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	s := guardtest.New(t).Writer(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := s.SQL(ctx, "SELECT 1", 1); err == nil {
		t.Error("a canceled call gave rows")
	}
}
