//go:build race

package proof

// thin is how much less is asked under the race detector, which makes every
// call about ten times as dear: what it looks for needs few of them. The proofs
// themselves are complete without it.
const thin = 12
