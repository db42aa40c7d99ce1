// Package recorder keeps the record of calls off their path: a call hands over
// who, what, how long and how big, and goes on; batches reach the store later.
// It must not see contents, and it must never make a call wait or fail.
package recorder
