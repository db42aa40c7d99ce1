package cluster

import (
	"slices"
	"sync"
)

const subscriberQueue = 1024 // events a subscriber may be behind

// Fanout hands events to the subscribers of one process. Make one with
// NewFanout.
type Fanout struct {
	mu     sync.Mutex
	subs   map[*subscriber]struct{}
	closed bool
	queue  int
}

// NewFanout makes a Fanout without subscribers.
func NewFanout() *Fanout { return &Fanout{subs: map[*subscriber]struct{}{}, queue: subscriberQueue} }

// subscriber owns one goroutine that calls fn.
type subscriber struct {
	fn    func(Event)
	kinds []Kind
	bound int
	done  chan struct{}

	mu      sync.Mutex
	pending []Event
	ended   bool
	wake    chan struct{} // one pending wake-up is enough
}

// Subscribe is Bus.Subscribe.
func (f *Fanout) Subscribe(fn func(Event), kinds ...Kind) (stop func()) {
	s := &subscriber{fn: fn, kinds: kinds, bound: f.queue, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	f.mu.Lock()
	closed := f.closed
	if !closed {
		f.subs[s] = struct{}{}
	}
	f.mu.Unlock()
	if closed {
		return func() {}
	}
	go s.run() // ended and waited for by the returned function, or by Close
	return func() {
		f.mu.Lock()
		delete(f.subs, s)
		f.mu.Unlock()
		s.end()
		<-s.done
	}
}

// Deliver queues an event for every subscriber that wants it. It never blocks;
// where a queue is full it becomes one Lost.
func (f *Fanout) Deliver(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs {
		s.put(e)
	}
}

// Close ends every subscription, dropping what is queued, and waits.
func (f *Fanout) Close() {
	f.mu.Lock()
	f.closed = true
	subs := f.subs
	f.subs = map[*subscriber]struct{}{}
	f.mu.Unlock()
	for s := range subs {
		s.end()
	}
	for s := range subs {
		<-s.done
	}
}

func (s *subscriber) put(e Event) {
	if e.Kind != Lost && len(s.kinds) > 0 && !slices.Contains(s.kinds, e.Kind) {
		return
	}
	s.mu.Lock()
	if len(s.pending) >= s.bound {
		s.pending = append(s.pending[:0], Event{Kind: Lost})
	}
	s.pending = append(s.pending, e)
	s.mu.Unlock()
	s.poke()
}

func (s *subscriber) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscriber) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.poke()
}

func (s *subscriber) run() {
	defer close(s.done)
	for range s.wake {
		for {
			s.mu.Lock()
			batch, ended := s.pending, s.ended
			s.pending = nil
			s.mu.Unlock()
			if ended {
				return
			}
			if len(batch) == 0 {
				break
			}
			for _, e := range batch {
				s.fn(e)
			}
		}
	}
}
