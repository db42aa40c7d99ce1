package main

import (
	"slices"
	"time"
)

// sample is one subject in one round at one size and concurrency.
type sample struct {
	p50, p99 time.Duration
	rate     float64                  // calls a second
	cpu      map[string]time.Duration // of a process, per call
	calls    int
	failed   int
	failure  error // the first
}

func summarise(took []time.Duration, over time.Duration) sample {
	slices.Sort(took)
	return sample{p50: quantile(took, 0.5), p99: quantile(took, 0.99), rate: float64(len(took)) / over.Seconds(), calls: len(took)}
}

// quantile of sorted durations.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// spread is a number as several rounds saw it.
type spread struct{ median, least, most float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(values))
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (v[len(v)/2-1] + mid) / 2
	}
	return spread{mid, v[0], v[len(v)-1]}
}

// over compares two subjects round by round: what slowed the machine in a round
// slowed both.
func over(a, b []sample, value func(sample) float64) (spread, bool) {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if below := value(b[i]); below > 0 && value(a[i]) > 0 {
			ratios = append(ratios, value(a[i])/below)
		}
	}
	return spreadOf(ratios), len(ratios) > 0
}

func each(s []sample, value func(sample) float64) spread {
	values := make([]float64, len(s))
	for i := range s {
		values[i] = value(s[i])
	}
	return spreadOf(values)
}

func p50(s sample) float64  { return micros(s.p50) }
func p99(s sample) float64  { return micros(s.p99) }
func rate(s sample) float64 { return s.rate }

func cpuOf(process string) func(sample) float64 {
	return func(s sample) float64 { return micros(s.cpu[process]) }
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
