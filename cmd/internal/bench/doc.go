// Command bench is `make bench`: it measures a whole call, from the agent to the
// kernel and back, against floors and against what a person would run instead,
// in interleaved rounds of one run, and prints one table with the targets. It
// starts everything it measures as processes of its own: the released broker
// with its own PostgreSQL, the released connector, a kernel, the opponents.
//
// Only ratios within one run mean anything, so nothing here passes or fails by
// time, and no test does. docs/performance.md says how to read it. The package
// knows both halves of the product and is linked into neither.
package main
