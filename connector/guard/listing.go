package guard

import (
	"context"
	"sync"

	"siyuan-broker/connector/siyuan"
)

// listing shares one list of notebooks between calls that run at once, since every
// call begins with it. What a call gets was asked for after the call came, so a
// notebook that was closed before is closed for it.
type listing struct {
	turn chan struct{} // held while a list is fetched; capacity 1

	mu   sync.Mutex
	next *round // not begun yet; nil when nobody waits for one
}

// round is one list and the calls that share it.
type round struct {
	done      chan struct{}
	notebooks []siyuan.Notebook // read-only
	err       error
	abandoned bool // the call that fetched it was cancelled
}

func newListing() *listing { return &listing{turn: make(chan struct{}, 1)} }

func (l *listing) get(ctx context.Context, fetch func(context.Context) ([]siyuan.Notebook, error)) ([]siyuan.Notebook, error) {
	for {
		r := l.join()
		select {
		case l.turn <- struct{}{}:
			l.serve(ctx, r, fetch)
			<-l.turn
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !r.abandoned || ctx.Err() != nil {
			return r.notebooks, r.err
		}
	}
}

// join is the next round to begin.
func (l *listing) join() *round {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &round{done: make(chan struct{})}
	}
	return l.next
}

// serve fetches the list of r unless another call has done so. It needs the turn.
func (l *listing) serve(ctx context.Context, r *round, fetch func(context.Context) ([]siyuan.Notebook, error)) {
	l.mu.Lock()
	begun := l.next != r
	if !begun {
		l.next = nil
	}
	l.mu.Unlock()
	if begun {
		return // and done, since whoever began it had the turn
	}
	defer close(r.done)
	r.notebooks, r.err = fetch(ctx)
	r.abandoned = r.err != nil && ctx.Err() != nil
}
