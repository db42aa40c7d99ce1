package wire

import (
	"math/rand/v2"
	"testing"
)

func TestAFullMemoryForgetsWhatWasNotAskedFor(t *testing.T) {
	t.Parallel()
	r := Recent[string, int]{Max: 4}
	for i, k := range []string{"a", "b", "c", "d"} {
		r.Put(k, i, 1)
	}
	if v, ok := r.Get("a"); !ok || v != 0 { // moves a over to the young ones, and c and d to the old
		t.Errorf("a is %d, %t", v, ok)
	}
	r.Put("e", 4, 1)
	r.Put("f", 5, 1)
	for k, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false, "e": true, "f": true} {
		if _, ok := r.Get(k); ok != want {
			t.Errorf("%s is known: %t, want %t", k, ok, want)
		}
	}
	r.Drop("f")
	if _, ok := r.Get("f"); ok {
		t.Error("f was dropped and is known")
	}
}

func TestAMemoryStaysWithinItsBound(t *testing.T) {
	t.Parallel()
	const most = 100
	r := Recent[int, int]{Max: most}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		k := rnd.IntN(60)
		switch rnd.IntN(4) {
		case 0:
			r.Get(k)
		case 1:
			r.Drop(k)
		default:
			r.Put(k, k, 1+rnd.IntN(most))
		}
		held := 0
		for _, gen := range []map[int]costly[int]{r.young, r.old} {
			for _, e := range gen {
				held += e.cost
			}
		}
		if held > most || r.cost < 0 || r.cost > most/2 {
			t.Fatalf("holds %d, young %d; allowed are %d", held, r.cost, most)
		}
	}
}

func TestAMemoryWithoutRoomKeepsNothing(t *testing.T) {
	t.Parallel()
	var r Recent[string, int]
	r.Put("a", 1, 1)
	if _, ok := r.Get("a"); ok {
		t.Error("it was kept")
	}
}
