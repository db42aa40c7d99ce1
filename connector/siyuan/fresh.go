package siyuan

import (
	"context"
	"sync"
)

// level says how much of our own writes a read must see.
type level uint8

const (
	levelNone  level = iota // answers from no queue: files, settings
	levelTree               // block trees: behind queued writes only
	levelIndex              // the SQL index: behind every write, by seconds
)

// freshness remembers whether a write of ours may still sit in one of the
// kernel's queues, and merges the flushes of concurrent readers into one.
//
// Writes are counted after their answer came: a reader must see what was
// written before it began, and a flush that starts later covers that.
type freshness struct {
	mu      sync.Mutex
	written uint64 // writes so far
	queued  uint64 // value of written at the last write that tree reads do not see at once
	flushed uint64 // value of written when the last successful flush began
	flying  *flight
}

type flight struct{ done chan struct{} }

func (f *freshness) wrote(queued bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written++
	if queued {
		f.queued = f.written
	}
}

// ensure returns once every write that was finished when it was called is
// visible at the given level. A waiter whose leader failed takes the lead
// itself, so that one canceled caller does not fail the others.
func (f *freshness) ensure(ctx context.Context, l level, flush func(context.Context) error) error {
	f.mu.Lock()
	want := f.written
	if l == levelTree {
		want = f.queued
	}
	for l != levelNone && f.flushed < want {
		if leader := f.flying; leader != nil {
			f.mu.Unlock()
			select {
			case <-leader.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			f.mu.Lock()
			continue
		}
		if err := f.lead(ctx, flush); err != nil {
			f.mu.Unlock()
			return err
		}
	}
	f.mu.Unlock()
	return nil
}

// lead runs one flush; f.mu is held on entry and on return.
func (f *freshness) lead(ctx context.Context, flush func(context.Context) error) error {
	mine := &flight{done: make(chan struct{})}
	covers := f.written
	f.flying = mine
	f.mu.Unlock()
	err := flush(ctx)
	f.mu.Lock()
	f.flying = nil
	if err == nil {
		f.flushed = max(f.flushed, covers)
	}
	close(mine.done)
	return err
}
