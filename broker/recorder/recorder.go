package recorder

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"siyuan-broker/tenants"
)

const (
	queueSize    = 8192 // about 3 MB, eight seconds at a thousand calls a second
	batchSize    = 500
	flushEvery   = time.Second
	writeTimeout = 5 * time.Second
	retryAfter   = time.Second
	attempts     = 5 // then the batch is dropped: one bad record must not stop all others
)

// Copier is the part of tenants.Store that the Recorder needs.
type Copier interface {
	CopyCalls(ctx context.Context, calls []tenants.Call) error
}

// Options are the choices of a Recorder. Zero values take the defaults.
type Options struct {
	Log       *slog.Logger
	QueueSize int // 8192 calls; more are dropped and counted
	BatchSize int // 500
}

// Recorder writes call records in batches. What does not fit or cannot be
// written is counted, never waited for.
type Recorder struct {
	store Copier
	log   *slog.Logger
	batch int

	queue   chan tenants.Call
	written atomic.Uint64
	dropped atomic.Uint64
	unsaid  atomic.Uint64 // of those, what a full queue dropped since the log last said so

	stop    chan struct{}
	stopped sync.Once
	done    sync.WaitGroup
}

// New makes a Recorder that queues from now on and writes after Start.
func New(store Copier, o Options) *Recorder {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.QueueSize == 0 {
		o.QueueSize = queueSize
	}
	if o.BatchSize == 0 {
		o.BatchSize = batchSize
	}
	return &Recorder{store: store, log: o.Log, batch: o.BatchSize, queue: make(chan tenants.Call, o.QueueSize), stop: make(chan struct{})}
}

// Record hands over a call and returns at once. A full queue drops the call.
func (r *Recorder) Record(c tenants.Call) {
	select {
	case r.queue <- c:
	default:
		r.dropped.Add(1)
		r.unsaid.Add(1)
	}
}

// Stats are how many calls were written and how many were lost, since the
// start.
type Stats struct{ Written, Dropped uint64 }

// Stats counts what became of the recorded calls. What is queued is in neither.
func (r *Recorder) Stats() Stats { return Stats{r.written.Load(), r.dropped.Load()} }

// Start begins writing. Call it once.
func (r *Recorder) Start() {
	r.done.Add(1)
	go func() {
		defer r.done.Done()
		r.run()
	}()
}

// Stop writes what is queued, tries once for each batch, and returns. Calls
// recorded later stay unwritten. It may be called twice, and without Start.
func (r *Recorder) Stop() {
	r.stopped.Do(func() { close(r.stop) })
	r.done.Wait()
}

func (r *Recorder) run() {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	pending := make([]tenants.Call, 0, r.batch)
	flush := func() {
		if n := r.unsaid.Swap(0); n > 0 {
			r.log.Error("call records were lost: they come faster than they can be written", "calls", n, "lost_in_all", r.dropped.Load())
		}
		if len(pending) > 0 {
			r.write(pending)
			pending = pending[:0]
		}
	}
	for {
		select {
		case c := <-r.queue:
			if pending = append(pending, c); len(pending) == r.batch {
				flush()
			}
		case <-tick.C:
			flush()
		case <-r.stop:
			for range len(r.queue) {
				if pending = append(pending, <-r.queue); len(pending) == r.batch {
					flush()
				}
			}
			flush()
			return
		}
	}
}

// write copies one batch, again after a while where that fails. Meanwhile the
// queue fills and then drops.
func (r *Recorder) write(calls []tenants.Call) {
	for attempt := 1; ; attempt++ {
		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		err := r.store.CopyCalls(ctx, calls)
		cancel()
		if err == nil {
			r.written.Add(uint64(len(calls)))
			return
		}
		if attempt == attempts || !r.sleep(time.Duration(attempt)*retryAfter) {
			r.dropped.Add(uint64(len(calls)))
			r.log.Error("call records were lost", "calls", len(calls), "error", err)
			return
		}
		r.log.Warn("call records could not be written, trying again", "calls", len(calls), "error", err)
	}
}

// sleep waits for d and reports false when Stop came first.
func (r *Recorder) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.stop:
		return false
	}
}
