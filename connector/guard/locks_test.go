package guard

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestLocksExcludeAndLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	l := NewLocks()
	inside, most := 0, 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 50 {
		names := []string{"a", "b"}
		if i%2 == 0 {
			names = []string{"b", "a", "a"} // another order, and twice
		}
		wg.Go(func() {
			release, err := l.acquire(context.Background(), names)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			inside++
			most = max(most, inside)
			mu.Unlock()
			mu.Lock()
			inside--
			mu.Unlock()
			release()
		})
	}
	wg.Wait()
	if most != 1 || len(l.held) != 0 {
		t.Errorf("%d holders at once, %d names left; want 1 and 0", most, len(l.held))
	}
}

func TestAWaiterGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	l := NewLocks()
	release, err := l.acquire(context.Background(), []string{"b"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.acquire(ctx, []string{"a", "b"}); !errors.Is(err, context.Canceled) {
		t.Errorf("err %v, want canceled", err)
	}
	again, err := l.acquire(context.Background(), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	again()
	release()
	if len(l.held) != 0 {
		t.Errorf("%d names left", len(l.held))
	}
}
