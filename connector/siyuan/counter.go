package siyuan

import (
	"context"
	"sync/atomic"
	"time"
)

// Counter counts what one action costs the kernel. It may be read while calls
// are running.
type Counter struct{ calls, writes, nanos atomic.Int64 }

// Calls is the number of requests sent, retries and flushes included.
func (c *Counter) Calls() int { return int(c.calls.Load()) }

// Writes is how many of the calls were writes.
func (c *Counter) Writes() int { return int(c.writes.Load()) }

// Elapsed is the summed time of all calls; calls that overlap count each.
func (c *Counter) Elapsed() time.Duration { return time.Duration(c.nanos.Load()) }

type counterKey struct{}

// WithCounter returns a context whose kernel calls are counted by the returned
// Counter. A counter of an outer context goes on counting as well.
func WithCounter(ctx context.Context) (context.Context, *Counter) {
	c := &Counter{}
	outer, _ := ctx.Value(counterKey{}).([]*Counter)
	all := append(outer[:len(outer):len(outer)], c)
	return context.WithValue(ctx, counterKey{}, all), c
}

// Uncounted returns a context whose calls are counted by no Counter: for looking
// at what must not show, not even by how long one looked.
func Uncounted(ctx context.Context) context.Context {
	return context.WithValue(ctx, counterKey{}, nil)
}

func count(ctx context.Context, took time.Duration, write bool) {
	all, _ := ctx.Value(counterKey{}).([]*Counter)
	for _, c := range all {
		c.calls.Add(1)
		c.nanos.Add(int64(took))
		if write {
			c.writes.Add(1)
		}
	}
}
