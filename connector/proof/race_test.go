//go:build race

package proof

// raceDetector makes every call about ten times as dear.
const raceDetector = true
