package guard

import (
	"context"
	"slices"
	"sync"
)

// Locks is a table of locks by name, shared by all sessions of one kernel. It
// has an entry per name in use, so it is as large as the number of running
// writes.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	token chan struct{} // holds one value while the lock is free
	users int           // holder and waiters
}

// NewLocks makes an empty table.
func NewLocks() *Locks { return &Locks{held: map[string]*lock{}} }

// acquire takes all the named locks, in one order for everybody, so that two
// callers cannot wait for each other. It gives up with the context.
func (l *Locks) acquire(ctx context.Context, names []string) (release func(), err error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	taken := 0
	release = func() {
		for _, name := range names[:taken] {
			l.put(name, true)
		}
	}
	for _, name := range names {
		select {
		case <-l.get(name).token:
			taken++
		case <-ctx.Done():
			l.put(name, false)
			release()
			return nil, ctx.Err()
		}
	}
	return release, nil
}

func (l *Locks) get(name string) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.held[name]
	if k == nil {
		k = &lock{token: make(chan struct{}, 1)}
		k.token <- struct{}{}
		l.held[name] = k
	}
	k.users++
	return k
}

func (l *Locks) put(name string, free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.held[name]
	if free {
		k.token <- struct{}{}
	}
	if k.users--; k.users == 0 {
		delete(l.held, name)
	}
}
