package tunnel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// comeback is when each of n connectors makes its first attempt after a broker
// that was away from 0 to down is back. ask is what the broker's proxy answers
// meanwhile as Retry-After.
func comeback(n int, b Backoff, down, ask time.Duration) (back []time.Duration, attempts int) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		var at time.Duration
		for i := 0; ; i++ {
			if at += b.Delay(i, ask, r.Float64); at >= down {
				break
			}
			attempts++
		}
		back = append(back, at-down)
	}
	slices.Sort(back)
	return back, attempts
}

// busiest is the largest number of them within any one second.
func busiest(back []time.Duration) int {
	most, from := 0, 0
	for i, at := range back {
		for at-back[from] >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

func TestT05AThousandConnectorsComeBackWithoutAHerd(t *testing.T) {
	t.Parallel()
	const n = 1000
	b := Backoff{Base: time.Second, Cap: time.Minute}
	for name, c := range map[string]struct {
		backoff   Backoff
		down, ask time.Duration
		within    time.Duration // all are back
		most      int           // in any second
		attempts  int           // of one connector while the broker was away, at most
	}{
		// Waits are even from 0 to 60 s, 30 s in the mean: 6 h hold 720 of them.
		// The rest of a wait that is under way has density (1 - x/60)/30 a
		// second, 33 of a thousand in the first; that is a Poisson number, six
		// deviations of 5.8 above it is 68.
		"six hours away": {b, 6 * time.Hour, 0, time.Minute, 68, 750},
		// Another cap: as above with 300 s, 7 a second; six deviations: 23.
		"six hours away, cap of five minutes": {Backoff{Base: time.Second, Cap: 5 * time.Minute}, 6 * time.Hour, 0, 5 * time.Minute, 23, 160},
		// After four to five draws the bound is 16 to 32 s: at most 125 a second
		// and six deviations of 11. Who drew little is at the cap already.
		"fifteen seconds away": {b, 15 * time.Second, 0, time.Minute, 191, 10},
	} {
		back, attempts := comeback(n, c.backoff, c.down, c.ask)
		if last := back[n-1]; last > c.within {
			t.Errorf("%s: the last is back after %v", name, last)
		}
		if got := busiest(back); got > c.most {
			t.Errorf("%s: %d came back within a second, allowed are %d", name, got, c.most)
		}
		if attempts > c.attempts*n {
			t.Errorf("%s: %d attempts each", name, attempts/n)
		}
	}
}

func TestT05RetryAfterIsHonouredAndSpread(t *testing.T) {
	t.Parallel()
	const n, ask = 1000, 30 * time.Second
	b := Backoff{Base: time.Second, Cap: time.Minute}
	back, _ := comeback(n, b, 0, 0)
	if back[n-1] > time.Second {
		t.Errorf("without Retry-After the last comes after %v", back[n-1])
	}
	r := rand.New(rand.NewPCG(3, 4))
	asked := make([]time.Duration, n)
	for i := range asked {
		asked[i] = b.Delay(0, ask, r.Float64)
	}
	slices.Sort(asked)
	// Evenly within 15 s: 67 a second, and six deviations of 8.
	if asked[0] < ask || asked[n-1] > ask+ask/2 || busiest(asked) > 116 {
		t.Errorf("from %v to %v, at most %d in a second", asked[0], asked[n-1], busiest(asked))
	}
}
