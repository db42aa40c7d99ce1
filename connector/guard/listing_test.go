package guard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"siyuan-broker/connector/siyuan"
)

// fetches hands out numbered lists, each when it is let go.
type fetches struct {
	begun   int
	release chan error
}

func (f *fetches) fetch(ctx context.Context) ([]siyuan.Notebook, error) {
	f.begun++ // one at a time
	n := f.begun
	select {
	case err := <-f.release:
		return []siyuan.Notebook{{Sort: n}}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type listed struct {
	number int
	err    error
}

func ask(ctx context.Context, l *listing, f *fetches) <-chan listed {
	out := make(chan listed, 1)
	go func() {
		all, err := l.get(ctx, f.fetch)
		if err != nil {
			out <- listed{err: err}
			return
		}
		out <- listed{number: all[0].Sort}
	}()
	return out
}

func TestCallsAtOnceShareAListThatWasAskedForAfterThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, f := newListing(), &fetches{release: make(chan error)}
		first := ask(t.Context(), l, f)
		synctest.Wait() // it is fetching
		var later []<-chan listed
		for range 50 {
			later = append(later, ask(t.Context(), l, f))
		}
		synctest.Wait()
		f.release <- nil
		if got := <-first; got != (listed{number: 1}) {
			t.Errorf("the first call got %+v", got)
		}
		f.release <- nil
		for _, c := range later {
			if got := <-c; got != (listed{number: 2}) {
				t.Errorf("a later call got %+v, want the list asked for after it came", got)
			}
		}
		if f.begun != 2 {
			t.Errorf("%d lists for 51 calls, want 2", f.begun)
		}
	})
}

func TestACancelledCallLeavesItsListToTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, f := newListing(), &fetches{release: make(chan error)}
		first := ask(t.Context(), l, f)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		gone := ask(ctx, l, f)
		synctest.Wait()
		f.release <- nil
		<-first
		synctest.Wait() // gone is fetching
		other := ask(t.Context(), l, f)
		synctest.Wait()
		cancel()
		if got := <-gone; !errors.Is(got.err, context.Canceled) {
			t.Errorf("the cancelled call got %+v", got)
		}
		f.release <- nil
		if got := <-other; got != (listed{number: 3}) {
			t.Errorf("the other got %+v", got)
		}
	})
}

// TestAFollowerOfACancelledCallAsksItself: both wait for the same list when the
// call that fetches it is cancelled.
func TestAFollowerOfACancelledCallAsksItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, f := newListing(), &fetches{release: make(chan error)}
		first := ask(t.Context(), l, f)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		var all []<-chan listed
		for range 20 { // whoever comes to the turn first: half of them are cancelled
			all = append(all, ask(ctx, l, f), ask(t.Context(), l, f))
		}
		synctest.Wait()
		f.release <- nil
		<-first
		synctest.Wait()
		cancel()
		synctest.Wait()
		for done := false; !done; {
			select {
			case f.release <- nil:
				synctest.Wait()
			default:
				done = true
			}
		}
		for i, c := range all {
			got := <-c
			if i%2 == 1 && got.err != nil {
				t.Errorf("call %d, not cancelled, got %v", i, got.err)
			}
		}
	})
}

func TestAFailureIsToldToAllWhoWaitedForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, f := newListing(), &fetches{release: make(chan error)}
		first := ask(t.Context(), l, f)
		synctest.Wait()
		a, b := ask(t.Context(), l, f), ask(t.Context(), l, f)
		synctest.Wait()
		f.release <- nil
		<-first
		broken := errors.New("SiYuan is away")
		f.release <- broken
		for _, c := range []<-chan listed{a, b} {
			if got := <-c; !errors.Is(got.err, broken) {
				t.Errorf("got %+v", got)
			}
		}
	})
}
