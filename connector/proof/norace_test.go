//go:build !race

package proof

// thin is how much less is asked: see race_test.go.
const thin = 1
