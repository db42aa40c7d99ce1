package recorder

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
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

// Once a second at most, however many were lost.
func TestWhatAFullQueueDropsIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		r := New(&memoryStore{}, Options{QueueSize: 2, Log: slog.New(slog.NewTextHandler(&said, nil))})
		record(r, 5)
		r.Start()
		defer r.Stop()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "calls=3 lost_in_all=3") {
			t.Errorf("said %q", got)
		}
	})
}

// BenchmarkRecord is what a call pays: a copy into the queue, while batches are
// written beside it.
func BenchmarkRecord(b *testing.B) {
	r := New(&memoryStore{}, Options{})
	r.Start()
	defer r.Stop()
	c := tenants.Call{ID: tenants.NewID(), Tool: "notebook", Action: "list"}
	took := make([]time.Duration, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		lost, start := r.dropped.Load(), time.Now()
		r.Record(c)
		if d := time.Since(start); len(took) < cap(took) && r.dropped.Load() == lost { // dropping is cheaper
			took = append(took, d)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
	b.ReportMetric(float64(r.Stats().Dropped), "dropped")
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
