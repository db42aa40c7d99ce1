package cluster

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Slices is into how many parts a window is divided. A call counts until the
// whole part it fell into has left the window, so that no window of the given
// length, wherever it begins, holds more than the limit.
const Slices = 10

const limitKeysMax = 65536

// LocalLimiter is a Limiter of one process. It remembers the counters used
// last; one that is dropped starts anew.
type LocalLimiter struct {
	now func() time.Time

	mu       sync.Mutex
	counters *lru.Cache[LimitKey, *counter]
}

// counter is a window in parts; a part is valid while its number is recent.
type counter struct {
	slice time.Duration
	parts [Slices + 1]part
}

type part struct {
	number int64
	used   int
}

// NewLocalLimiter makes a Limiter without counters.
func NewLocalLimiter(now func() time.Time) *LocalLimiter {
	c, _ := lru.New[LimitKey, *counter](limitKeysMax) // fails only for a size below one
	return &LocalLimiter{now: now, counters: c}
}

// Allow is Limiter.Allow.
func (l *LocalLimiter) Allow(_ context.Context, key LimitKey, limit int, window time.Duration) (bool, time.Duration) {
	if limit < 1 || window <= 0 {
		return true, 0
	}
	slice := Slice(window)
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.counters.Get(key)
	if !ok || c.slice != slice {
		c = &counter{slice: slice}
		l.counters.Add(key, c)
	}
	return c.take(l.now(), limit)
}

// Slice is the length of one part of a window, in whole milliseconds.
func Slice(window time.Duration) time.Duration {
	ms := max(1, (window.Milliseconds()+Slices-1)/Slices)
	return time.Duration(ms) * time.Millisecond
}

func (c *counter) take(now time.Time, limit int) (bool, time.Duration) {
	current := now.UnixMilli() / c.slice.Milliseconds()
	used, oldest := 0, current
	for _, p := range c.parts {
		if p.used > 0 && p.number > current-int64(len(c.parts)) {
			used += p.used
			oldest = min(oldest, p.number)
		}
	}
	if used >= limit {
		free := time.UnixMilli((oldest + int64(len(c.parts))) * c.slice.Milliseconds())
		return false, max(time.Millisecond, free.Sub(now))
	}
	p := &c.parts[current%int64(len(c.parts))]
	if p.number != current {
		*p = part{number: current}
	}
	p.used++
	return true, 0
}
