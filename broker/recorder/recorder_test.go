package recorder

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"siyuan-broker/tenants"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryStore is a Copier that keeps batches and fails when told to.
type memoryStore struct {
	mu      sync.Mutex
	batches [][]tenants.Call
	fails   int // so many times
	tries   int
}

var _ Copier = (*memoryStore)(nil)

func (m *memoryStore) CopyCalls(_ context.Context, calls []tenants.Call) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries++
	if m.fails > 0 {
		m.fails--
		return errors.New("away")
	}
	m.batches = append(m.batches, slices.Clone(calls))
	return nil
}

func (m *memoryStore) ids() []tenants.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []tenants.ID
	for _, b := range m.batches {
		for _, c := range b {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func record(r *Recorder, n int) []tenants.ID {
	var ids []tenants.ID
	for range n {
		id := tenants.NewID()
		ids = append(ids, id)
		r.Record(tenants.Call{ID: id})
	}
	return ids
}

func TestCallsAreWrittenInOrderWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		r := New(store, Options{})
		r.Start()
		defer r.Stop()
		want := record(r, 3)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := store.ids(); !slices.Equal(got, want) {
			t.Errorf("wrote %v, want %v", got, want)
		}
		if s := r.Stats(); s != (Stats{Written: 3}) {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestAFullBatchIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		r := New(store, Options{BatchSize: 4})
		r.Start()
		defer r.Stop()
		record(r, 9)
		synctest.Wait()
		if len(store.batches) != 2 || len(store.batches[0]) != 4 || len(store.batches[1]) != 4 {
			t.Errorf("batches %v", store.batches)
		}
	})
}

func TestStopWritesWhatIsQueued(t *testing.T) {
	t.Parallel()
	store := &memoryStore{}
	r := New(store, Options{BatchSize: 4})
	want := record(r, 10)
	r.Start()
	r.Stop()
	r.Stop()
	if got := store.ids(); !slices.Equal(got, want) {
		t.Errorf("wrote %d of 10", len(got))
	}
}

func TestAFullQueueDropsAndCountsAndNeverBlocks(t *testing.T) {
	t.Parallel()
	r := New(&memoryStore{}, Options{QueueSize: 2})
	record(r, 5) // nobody reads: a Record that waited would hang here
	if s := r.Stats(); s != (Stats{Dropped: 3}) {
		t.Errorf("stats %+v, want 3 dropped", s)
	}
}

func TestAStoreThatComesBackGetsTheBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{fails: 3}
		r := New(store, Options{})
		r.Start()
		defer r.Stop()
		want := record(r, 2)
		time.Sleep(8 * time.Second) // one to flush, then 1, 2 and 3 between the tries
		synctest.Wait()
		if got := store.ids(); !slices.Equal(got, want) {
			t.Errorf("wrote %v, want %v", got, want)
		}
	})
}

func TestABatchThatIsNeverTakenDoesNotStopTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{fails: 5}
		r := New(store, Options{BatchSize: 2})
		r.Start()
		defer r.Stop()
		record(r, 2)
		want := record(r, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := store.ids(); !slices.Equal(got, want) {
			t.Errorf("wrote %v, want the second batch", got)
		}
		if s := r.Stats(); s != (Stats{Written: 2, Dropped: 2}) {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestStopDoesNotWaitForAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{fails: 100}
		r := New(store, Options{BatchSize: 2})
		r.Start()
		record(r, 5)
		synctest.Wait() // in its first pause
		started := time.Now()
		r.Stop()
		if waited := time.Since(started); waited != 0 {
			t.Errorf("waited %s", waited)
		}
		if s := r.Stats(); s != (Stats{Dropped: 5}) {
			t.Errorf("stats %+v", s)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	r := New(&memoryStore{}, Options{})
	r.Start()
	defer r.Stop()
	for b.Loop() {
		r.Record(tenants.Call{})
	}
}
