package relay

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestDefaultsNoticeADeadLinkWithin45Seconds(t *testing.T) {
	t.Parallel()
	d := DefaultTiming()
	if worst := d.PingInterval + 2*d.PingTimeout; worst > 45*time.Second {
		t.Errorf("%v", worst)
	}
	if d.PingInterval > 25*time.Second || d.StreamClose > 10*time.Second {
		t.Errorf("%+v", d)
	}
	if s := d.Scale(0.01); s.PingInterval != d.PingInterval/100 || s.Directory != d.Directory/100 {
		t.Errorf("%+v", s)
	}
}

func TestT16PingsAreRandomAndAtMost25SecondsApart(t *testing.T) {
	t.Parallel()
	n := &session{cfg: &Config{Timing: DefaultTiming()}}
	least, most := time.Hour, time.Duration(0)
	for range 10_000 {
		d := n.nextPing()
		least, most = min(least, d), max(most, d)
	}
	// Evenly from 13.5 s to 18 s; with 10,000 draws both ends are nearly reached.
	if least < 13500*time.Millisecond || least > 13600*time.Millisecond || most > 18*time.Second || most < 17900*time.Millisecond {
		t.Errorf("from %v to %v", least, most)
	}
}

func TestThePoolServesInOrderAndKeepsItsBounds(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	p := &pool{maxOpen: 2, maxQueue: 3, open: func() { opened.Add(1) }}
	type got struct {
		who int
		s   *stream
		err error
	}
	results := make(chan got, 3)
	for i := range 3 {
		go func() { s, err := p.get(t.Context()); results <- got{i, s, err} }()
		for { // queued one after the other
			if _, _, queued := p.sizes(); queued == i+1 {
				break
			}
			runtime.Gosched()
		}
	}
	if _, err := p.get(t.Context()); !errors.Is(err, errQueueFull) {
		t.Errorf("fourth: %v", err)
	}
	if opened.Load() != 2 {
		t.Errorf("%d streams were asked for", opened.Load())
	}
	a, b := &stream{}, &stream{}
	p.add(a)
	if r := receive(t, results); r.who != 0 || r.s != a {
		t.Errorf("%+v", r)
	}
	p.add(b)
	if r := receive(t, results); r.who != 1 || r.s != b {
		t.Errorf("%+v", r)
	}
	p.drop() // a broke: the one who waits gets another
	if opened.Load() != 3 {
		t.Errorf("a dropped stream was not replaced: %d", opened.Load())
	}
	p.close()
	if r := receive(t, results); !errors.Is(r.err, errPoolClosed) {
		t.Errorf("%+v", r)
	}
	if _, err := p.get(t.Context()); !errors.Is(err, errPoolClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestAWaiterWhoGivesUpLosesNoStream(t *testing.T) {
	t.Parallel()
	p := &pool{maxOpen: 1, maxQueue: 3, open: func() {}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.get(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, _, queued := p.sizes(); queued != 0 {
		t.Errorf("%d still queued", queued)
	}
	turn := make(chan *stream, 1) // handed over in the moment of giving up
	s := &stream{}
	turn <- s
	p.leave(turn)
	if got, err := p.get(t.Context()); got != s {
		t.Errorf("%v %v", got, err)
	}
}

func TestUnusedStreamsAreReapedExceptOne(t *testing.T) {
	t.Parallel()
	p := &pool{maxOpen: 8, maxQueue: 1, open: func() {}}
	for range 5 {
		p.count++
		p.put(&stream{})
	}
	p.reap() // they were all used just now
	got := make([]*stream, 2)
	for i := range got {
		got[i], _ = p.get(t.Context())
	}
	for _, s := range got {
		p.put(s)
	}
	unused := p.reap()
	if open, busy, _ := p.sizes(); len(unused) != 2 || open != 3 || busy != 0 {
		t.Errorf("reaped %d, %d open, %d busy", len(unused), open, busy)
	}
	for range 3 {
		p.reap()
	}
	if open, _, _ := p.sizes(); open != 1 {
		t.Errorf("%d kept warm", open)
	}
}

func TestClipKeepsWholeRunesAndDropsControls(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"abcdef": "abcd", "ab": "ab", "aäää": "aä", "a\x00\x1bb": "ab"} {
		if got := clip(in, 4); got != want {
			t.Errorf("clip(%q) = %q, want %q", in, got, want)
		}
	}
}
