package wire

// Recent is a bounded memory of what was used lately: the sender of grants
// remembers with it which ones the other end has, the receiver keeps them by
// digest. Entries live in two generations, so that forgetting costs nothing per
// entry and whatever was asked for since the last turn stays. The zero value
// holds nothing and takes no memory. It is not safe for concurrent use.
type Recent[K comparable, V any] struct {
	Max int // summed cost of what is kept; less may be

	young, old map[K]costly[V]
	cost       int // of young
}

type costly[V any] struct {
	v    V
	cost int
}

// Get finds an entry and keeps it for longer.
func (r *Recent[K, V]) Get(k K) (v V, ok bool) {
	e, ok := r.young[k]
	if ok {
		return e.v, true
	}
	if e, ok = r.old[k]; ok {
		r.Put(k, e.v, e.cost)
	}
	return e.v, ok
}

// Put adds an entry of the given cost; one that is larger than half of Max is
// not kept.
func (r *Recent[K, V]) Put(k K, v V, cost int) {
	r.Drop(k)
	if cost > r.Max/2 {
		return
	}
	if r.cost+cost > r.Max/2 {
		r.old, r.young, r.cost = r.young, nil, 0
	}
	if r.young == nil {
		r.young = map[K]costly[V]{}
	}
	r.young[k] = costly[V]{v, cost}
	r.cost += cost
}

// Drop forgets an entry.
func (r *Recent[K, V]) Drop(k K) {
	if e, ok := r.young[k]; ok {
		r.cost -= e.cost
		delete(r.young, k)
	}
	delete(r.old, k)
}
